package engine

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/turn"
	"github.com/pawl-run/pawl/internal/workspace/kit"
)

// Where programs with a root of their own see what is no part of a tree.
const (
	turnSeen    = "/run/pawl/turn"    // prompt and report
	objectsSeen = "/run/pawl/objects" // the repository's objects, for a throw-away git directory
)

// place is where one program works: a copy, as the program sees it.
type place struct {
	agent.Exec
	dir   string // the copy, as programs see it
	files string // where the host finds what programs write to it
	done  func() // lets go of it
}

// use is what a place is for.
type use struct {
	turn    string     // folder of prompt and report; empty: there is none
	vouched bool       // only what a human vouches for runs there, so that it may add to the caches of all
	setup   bool       // it downloads dependencies
	hosts   []string   // that it may reach beside those of the definition
	seat    *turn.Seat // what an agent's program needs around it; nil: it is none
	masks   []string   // of the tree, which are not shown unless the scope names them
}

// place makes the place of programs on a copy.
func (s site) place(ctx context.Context, k *copied, u use) (place, error) {
	tier := s.tier()
	if tier == sandbox.None || tier == sandbox.External {
		exec := s.Exec
		if len(k.path) > 0 {
			exec = prefixed{exec, k.path}
		}
		return place{limited{exec}, k.Dir, k.Dir, func() {}}, nil
	}
	tools, err := s.kit(ctx)
	if err != nil {
		return place{}, err
	}
	protect, err := s.protect(k)
	if err != nil {
		return place{}, err
	}
	masks, err := s.masks(k, u.masks)
	if err != nil {
		return place{}, err
	}
	port, err := s.egress(u.hosts)
	if err != nil {
		return place{}, err
	}
	box := sandbox.Box{
		Tier: tier, Tree: s.root, Layers: k.Overlay(), Dir: k.Dir, Home: s.seenHome(), Protect: protect, Masks: masks, Scratch: filepath.Join(k.scratch, "home"),
		Binds: tools.Binds(tier), Ports: []sandbox.Port{port},
	}
	if u.turn != "" {
		box.Binds = append(box.Binds, sandbox.Bind{From: u.turn, To: turnSeen, Write: true})
	}
	around(&box, u.seat, tier)
	for _, store := range k.stores {
		box.Binds = append(box.Binds, sandbox.Bind{From: store.Host, To: store.Inside})
	}
	p := place{dir: s.seen(k), files: k.where(), done: func() {}}
	env := append(tools.Env(tier), "PATH="+tools.Path(k.path...))
	if tier.Mounts() {
		if u.setup {
			binds, more := tools.Sources(s.shelf())
			box.Binds, env = append(box.Binds, binds...), append(more, env...)
		}
		if box.Views, p.done, err = tools.Views(s.shelf(), kit.Access{
			Scratch: k.caches(), Vouched: u.vouched, Layer: k.layer, Downloads: u.setup,
		}); err != nil {
			return place{}, err
		}
	}
	p.Exec = limited{confined{box, env}}
	return p, nil
}

// seen is where programs see a copy.
func (s site) seen(k *copied) string {
	if s.tier().Mounts() {
		return s.root
	}
	return k.Dir
}

// prefixed starts programs with directories before all others of PATH.
type prefixed struct {
	Exec
	path []string
}

// Run starts s.
func (p prefixed) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	for i, kv := range s.Env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			s.Env = slices.Clone(s.Env)
			s.Env[i] = "PATH=" + strings.Join(append(slices.Clone(p.path), list), string(os.PathListSeparator))
		}
	}
	return p.Exec.Run(ctx, s)
}

// gate is the place as gates know it.
func (p place) gate() gate.Place { return gate.Place{Exec: p.Exec, Dir: p.dir, Files: p.files} }

func (s site) tier() sandbox.Tier { return sandbox.Tier(s.def.Sandbox) }

// seenHome is where programs with a root of their own have their home: at the
// user's own path, so that tools look for caches and programs where they are.
func (s site) seenHome() string {
	for _, kv := range s.Environ {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && filepath.IsAbs(home) && filepath.Clean(home) == home && home != "/" {
			return home
		}
	}
	return "/home/pawl"
}

// protect lists what the scope keeps any agent from changing and what has a
// name of its own, for mounts to hold while a program runs. Globs are for the
// list of changes, which is judged exactly.
func (s site) protect(k *copied) ([]string, error) {
	there, err := k.names()
	if err != nil {
		return nil, err
	}
	scope, err := s.scope()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, glob := range slices.Concat([]string{".loops/**"}, policy.Protected, s.def.Protect) {
		name := strings.TrimSuffix(strings.TrimPrefix(glob, "**/"), "/**")
		if strings.ContainsAny(name, "*?[]{}\\") || path.Clean(name) != name || name == ".git" {
			continue
		}
		// What is not there cannot be mounted, and is not worth a judgement.
		if top, _, _ := strings.Cut(name, "/"); there != nil && !there[top] {
			continue
		}
		if !scope.Judge(name).Allowed && !scope.Judge(name+"/x").Allowed {
			paths = append(paths, path.Join(s.root, name))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// masks are the places of names in a copy, without those that the scope lets an
// agent work on.
func (s site) masks(k *copied, names []string) ([]string, error) {
	scope, err := s.scope()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		if !scope.Judge(name).Allowed && !scope.Judge(name+"/x").Allowed {
			paths = append(paths, path.Join(s.seen(k), name))
		}
	}
	return paths, nil
}

// scope is what the definition lets an agent change.
func (s site) scope() (policy.Scope, error) {
	return policy.NewScope(s.def.Scope, slices.Concat(s.def.Protect, gatePrograms(s.def)))
}

// turnDir holds the prompt and the report of one turn while the run lives.
func (e *Engine) turnDir(id string, n int) string {
	return filepath.Join(e.runDir(id), "turn-"+strconv.Itoa(n))
}

const (
	promptName = "prompt.md"
	reportName = "report.json"
)

// stepEnviron is what an agent is told of its step. Its gates are told the same,
// so that nothing in the tree can tell who runs it.
func (s site) stepEnviron(step string, n int) []string {
	dir := sandbox.Bind{From: s.turnDir(s.id, n), To: turnSeen}.At(s.tier())
	return []string{"PAWL_STEP=" + step, "PAWL_PROMPT=" + filepath.Join(dir, promptName), "PAWL_REPORT=" + filepath.Join(dir, reportName)}
}

// openTurn makes the folder of a turn, for the user that programs run as.
func (s site) openTurn(n int) (string, error) {
	dir := s.turnDir(s.id, n)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, s.give(dir)
}

// freshTurn makes the folder of a turn anew: what an earlier try of it left there
// is no report of this one, and may be links.
func (s site) freshTurn(n int) (string, error) {
	if err := os.RemoveAll(s.turnDir(s.id, n)); err != nil {
		return "", err
	}
	return s.openTurn(n)
}

// seenTurn is where programs see the folder of a turn.
func (s site) seenTurn(dir string) string {
	return sandbox.Bind{From: dir, To: turnSeen}.At(s.tier())
}

// owned reports whether programs run as another user than pawl.
func (s site) owned() bool {
	uid, _ := s.tier().Owner()
	return uid != os.Geteuid()
}

// give makes a file or folder belong to the user that programs run as.
func (s site) give(name string) error {
	uid, gid := s.tier().Owner()
	if uid == os.Geteuid() {
		return nil
	}
	return os.Lchown(name, uid, gid)
}
