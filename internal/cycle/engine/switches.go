package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// PausedFile is the name of the kill switch: in .loops it stops every loop of
// the workspace, in .loops/<name> one.
const PausedFile = "PAUSED"

// Switch returns which kill switch file is set for a loop of the workspace at
// root, or why it cannot be read, and "" if none is. Existence is all that
// counts: a folder, a dangling link or a file without permissions are switches
// too, and so is any error other than absence. An empty name asks for the
// switch of all loops only. Named are more paths, of the loop's definition.
func Switch(root, name string, named ...string) string {
	rels := []string{filepath.Join(".loops", PausedFile)}
	if name != "" {
		rels = append(rels, filepath.Join(".loops", name, PausedFile))
	}
	for _, rel := range append(rels, named...) {
		at := rel
		if !filepath.IsAbs(at) {
			at = filepath.Join(root, rel)
		}
		_, err := os.Lstat(at)
		switch {
		case err == nil:
			return rel
		case !errors.Is(err, fs.ErrNotExist):
			return rel + " (cannot be read: " + err.Error() + ")"
		}
	}
	return ""
}

func (h *heldRun) switchEnding() *ending {
	if sw := Switch(h.target.Workspace.Root, h.target.Loop.Name, h.def.SwitchPaths()...); sw != "" {
		return &ending{outcome: loop.OutcomePaused, reason: loop.ReasonKillSwitch, detail: sw}
	}
	return nil
}

// storeEnding is how a run ends for which a switch was set in the store, perhaps
// from a node that does not have this checkout.
func storeEnding(scope loop.SwitchScope) ending {
	return ending{outcome: loop.OutcomePaused, reason: loop.ReasonKillSwitch, detail: scope.Command()}
}

// viewing is how rows are read: once, or until the store answers.
type viewing func(context.Context, func(*store.Reader) error) error

// anySwitchEnding looks at the files and at the store's switches.
func (h *heldRun) anySwitchEnding(ctx context.Context) (*ending, error) {
	if end := h.switchEnding(); end != nil {
		return end, nil
	}
	var asked store.Asked
	err := h.Store.View(ctx, func(r *store.Reader) (err error) {
		asked, err = r.Asked(ctx, h.run.ID)
		return err
	})
	if err != nil || asked.Switch == "" {
		return nil, err
	}
	end := storeEnding(asked.Switch)
	return &end, nil
}

// explainPaused turns the error of a loop that a switch in the store keeps from starting
// into one for a person. It says who set the switch.
func explainPaused(ctx context.Context, tx *store.Tx, t Target, err error) error {
	paused, ok := errors.AsType[*loop.PausedError](err)
	if !ok {
		return err
	}
	if paused.Scope == loop.SwitchLoop {
		return PausedFault(t.Loop.Name, "`pawl pause "+t.Loop.Name+"`")
	}
	set, err := tx.Switches(ctx, t.Workspace.ID)
	if err != nil || len(set) == 0 {
		return errors.Join(err, PausedFault(t.Loop.Name, paused.Scope.Command()))
	}
	return PausedFault(t.Loop.Name, set[0].String())
}

// PausedFault is the error of a run that a switch, as Switch returns it, keeps from
// starting.
func PausedFault(name, sw string) error {
	f := &loop.Fault{Exit: loop.ExitPaused, What: name + " is paused", Why: setWords + sw}
	one, all := loop.PawlCommand("resume", name), loop.PawlCommand("resume").WithFlag("all")
	if stopsStore(sw) {
		all = loop.PawlCommand("resume").WithFlag("everywhere")
	}
	switch clears := ClearedBy(name, sw); {
	case StopsAll(sw):
		return f.WithAdvice(loop.Advise("{1} clears it; {2} does not", all, one))
	case clears.String() != one.String():
		return f.WithAdvice(clears.Then("; ", loop.Advise("{1} lists what stops the loop", loop.PawlCommand("check", name))))
	}
	return f.WithAdvice(loop.Advise("{1} (or {2}) clears it", one, all))
}

// setWords stand before a switch that kept an effect from being applied.
const setWords = "the kill switch is set: "

// ClearedBy is what clears a switch, as Switch, the label and the detail of a paused
// run name it.
func ClearedBy(name, sw string) loop.Advice {
	if _, after, ok := strings.Cut(sw, setWords); ok {
		sw = after
	}
	file, _, _ := strings.Cut(sw, " (cannot be read: ")
	switch {
	case stopsStore(sw):
		return loop.Advise("{1}", loop.PawlCommand("resume").WithFlag("everywhere"))
	case StopsAll(sw):
		return loop.Advise("{1}", loop.PawlCommand("resume").WithFlag("all"))
	case strings.HasPrefix(sw, labelWords+" is on "):
		return loop.Advise("remove the label from " + strings.TrimPrefix(sw, labelWords+" is on "))
	case strings.HasPrefix(sw, labelWords):
		return loop.Advise("{1}", loop.HostCommand("gh", "auth", "status"))
	case filepath.Base(file) == PausedFile && filepath.Dir(filepath.Dir(file)) == ".loops":
		return loop.Advise("{1}", loop.PawlCommand("resume", filepath.Base(filepath.Dir(file))))
	case strings.Contains(file, "/") && !strings.ContainsAny(file, " `"):
		return loop.Advise("remove " + file + ", or take it out of kill_switch")
	}
	return loop.Advise("{1}", loop.PawlCommand("resume", name))
}

// StopsAll reports whether a switch, as Switch returns it or the store has it, is one
// of all loops: those of the workspace, or of all workspaces.
func StopsAll(sw string) bool {
	all := filepath.Join(".loops", PausedFile)
	return sw == all || strings.HasPrefix(sw, all+" ") || strings.Contains(sw, loop.SwitchWorkspace.Command()) || stopsStore(sw)
}

func stopsStore(sw string) bool { return strings.Contains(sw, loop.SwitchStore.Command()) }
