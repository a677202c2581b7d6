package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Rows also say which files of a checkout are written and what moves its branches. A file that
// defines a loop, or that git reads, would let a row say by a file what it may not say itself.

// admitChanges refuses rows that would write another file of the checkout than one of a
// memory.
func (e *Engine) admitChanges(changes []loop.PendingChange) error {
	if e.Accepted == nil {
		return nil
	}
	for _, ch := range changes {
		names := []string{ch.Path}
		if ch.Kind == loop.ChangeAside {
			names = append(names, path.Join(path.Dir(ch.Path), ch.Content))
			if strings.Contains(ch.Content, "/") {
				names[1] = ch.Content
			}
		}
		for _, name := range names {
			if !isMemoryFile(name) {
				return rowFault(fmt.Sprintf("write %s for run %s", name, ch.RunID), "it is not a file of a loop's memory")
			}
		}
	}
	return nil
}

// admitEffect refuses an effect that nobody on this machine let happen: a landing without a
// yes that was given here or a definition that lands by itself, and a commit of the memory
// with other files.
func (o *outbox) admitEffect(ctx context.Context, e loop.Effect) error {
	if o.Accepted == nil {
		return nil
	}
	what := "apply effect " + e.Key
	switch e.Kind {
	case effect.KindLand, effect.KindPush, effect.KindPullRequest, effect.KindBranchPush:
		id, _, _ := strings.Cut(e.Key, "/")
		if id != o.run.ID {
			return o.admitLanding(ctx, e, id)
		}
		if o.def.Tier != loop.TierUnattended || len(o.def.Autoland) == 0 {
			return rowFault(what, "its definition lets nothing land by itself")
		}
		if err := o.admit(o.target, o.def, o.run.Overrides); err != nil {
			return err
		}
		return o.admitTree(ctx, what, e.Args[effect.ArgOnto], e.Args[effect.ArgCommit])
	case effect.KindMemoryCommit:
		names, err := memoryPaths(e)
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(names, func(name string) bool { return !isMemoryFile(name) }); at >= 0 {
			return rowFault(what, names[at]+" is not a file of a loop's memory")
		}
		if e.Args[effect.ArgTree] == "" {
			return nil
		}
		if err := o.admit(o.target, o.def, o.run.Overrides); err != nil {
			return err
		}
		return o.admitTree(ctx, what, e.Args[effect.ArgOnto], e.Args[effect.ArgTree])
	case effect.KindMemoryPush, effect.KindMemoryPull:
		if o.def.Protocol != loop.ProtocolBoot {
			return rowFault(what, "only loops of the protocol boot push by themselves")
		}
		return o.admit(o.target, o.def, o.run.Overrides)
	}
	return nil
}

// admitLanding refuses a landing that is not the one to which somebody said yes here.
func (o *outbox) admitLanding(ctx context.Context, e loop.Effect, id string) error {
	var a loop.Approval
	err := o.Store.View(ctx, func(r *store.Reader) (err error) {
		a, err = r.Approval(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	if err := o.admitAnswer(a); err != nil {
		return err
	}
	allows := func(r loop.EffectRequest) bool {
		return r.Kind == e.Kind && maps.Equal(decided(r.Args), decided(e.Args))
	}
	if !a.Action.MayAdvance(e.Args[effect.ArgOnto]) || !slices.ContainsFunc(effect.RequestsFor(a, o.Now()), allows) {
		return rowFault("apply effect "+e.Key, "it is not what "+a.ID+" allows")
	}
	return nil
}

// decided returns the arguments of a landing that follow from the yes to it. The others say
// when it is tried, and from where: MayAdvance judges that.
func decided(args map[string]string) map[string]string {
	args = maps.Clone(args)
	for _, free := range []string{effect.ArgOnto, effect.ArgWhen, effect.ArgApproval, effect.ArgRetry} {
		delete(args, free)
	}
	return args
}

// admitTree refuses a commit or tree that changes what the scope of the definition does not
// allow, in comparison with onto. Files of the memory may change, too.
func (h *heldRun) admitTree(ctx context.Context, what, onto, to string) error {
	scope, err := policy.NewScope(h.def.Scope, h.def.Protect)
	if err != nil {
		return err
	}
	changed, err := h.target.Repo.Changed(ctx, onto, to)
	if err != nil {
		return err
	}
	for _, name := range changed {
		if v := scope.Judge(name); !v.Allowed && !isMemoryFile(name) {
			return rowFault(what, fmt.Sprintf("it changes %s: %s", name, v.Rule))
		}
	}
	return nil
}

// memoryPaths are the files that a commit of the memory has, by its row.
func memoryPaths(e loop.Effect) (paths []string, err error) {
	if text := e.Args[effect.ArgPaths]; text != "" {
		if err := json.Unmarshal([]byte(text), &paths); err != nil {
			return nil, fmt.Errorf("read the paths of effect %s: %w", e.Key, err)
		}
	}
	if text := e.Args[effect.ArgFiles]; text != "" {
		files, err := effect.DecodeFiles(text)
		if err != nil {
			return nil, err
		}
		paths = slices.AppendSeq(paths, maps.Keys(files))
	}
	return paths, nil
}

func rowFault(what, why string) error {
	return &loop.Fault{
		Exit: loop.ExitRefused, What: what, Why: why + ", so no pawl has written this row", Err: loop.ErrNotAcceptedHere,
		Fix: "find out who can write to the database; {1} says where its rows were changed", Actions: []loop.Command{loop.PawlCommand("audit verify")},
	}
}

// isMemoryFile reports whether a protocol may keep what it remembers in a file of that name:
// a document that decides nothing, neither for loops nor for gates, programs and git.
func isMemoryFile(name string) bool {
	if rest, ok := strings.CutPrefix(name, ".loops/"); ok {
		dir, file := path.Split(rest)
		return strings.Count(dir, "/") == 1 && (file == "run-log.md" || file == "STATE.md" || strings.HasPrefix(file, "STATE.md."))
	}
	if ext := path.Ext(name); ext != ".md" && ext != ".json" && !strings.Contains(path.Base(name), ".broken-") {
		return false
	}
	return anywhere.Judge(name).Allowed
}

// anywhere allows every file that the built-in groups do not protect.
var anywhere = func() policy.Scope {
	s, err := policy.NewScope([]string{"**"}, nil)
	if err != nil {
		panic("engine: " + err.Error())
	}
	return s
}()
