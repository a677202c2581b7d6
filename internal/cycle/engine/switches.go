package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Switch returns which kill switch file is set for a loop of the workspace at
// root, and the zero switch if none is. Existence is all that
// counts: a folder, a dangling link or a file without permissions are switches
// too, and so is any error other than absence. An empty name asks for the
// switch of all loops only. Named are more paths, of the loop's definition.
func Switch(root, name string, named ...string) loop.KillSwitch {
	rels := []string{filepath.Join(".loops", loop.PausedFile)}
	if name != "" {
		rels = append(rels, filepath.Join(".loops", name, loop.PausedFile))
	}
	for _, rel := range append(rels, named...) {
		at := rel
		if !filepath.IsAbs(at) {
			at = filepath.Join(root, rel)
		}
		_, err := os.Lstat(at)
		switch {
		case err == nil:
			return loop.KillSwitch{Path: rel}
		case !errors.Is(err, fs.ErrNotExist):
			return loop.KillSwitch{Path: rel, Unread: err.Error()}
		}
	}
	return loop.KillSwitch{}
}

// switchFile returns the kill switch file that stops the run, or the zero KillSwitch.
func (h *heldRun) switchFile() loop.KillSwitch {
	return Switch(h.target.Workspace.Root, h.target.Loop.Name, h.def.SwitchPaths()...)
}

func (h *heldRun) switchEnding() *ending { return pausedBy(h.switchFile()) }

// pausedBy returns how a run ends that sw stops, or nil if sw is zero. One in the store may have
// been set from a node that does not have this checkout.
func pausedBy(sw loop.KillSwitch) *ending {
	if sw.IsZero() {
		return nil
	}
	detail := sw.String()
	if sw.Scope != "" {
		detail = sw.Scope.Command()
	}
	return &ending{outcome: loop.OutcomePaused, reason: loop.ReasonKillSwitch, detail: detail, cause: loop.Cause{Switch: sw}}
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
	if err != nil {
		return nil, err
	}
	return pausedBy(loop.KillSwitch{Scope: asked.Switch}), nil
}

// explainPaused turns the error of a loop that a switch in the store keeps from starting
// into one for a person. It says who set the switch.
func explainPaused(ctx context.Context, tx *store.Tx, t Target, err error) error {
	paused, ok := errors.AsType[*loop.PausedError](err)
	if !ok {
		return err
	}
	if paused.By.Scope == loop.SwitchLoop {
		return PausedFault(t.Loop.Name, paused.By)
	}
	set, err := tx.Switches(ctx, t.Workspace.ID)
	if err != nil || len(set) == 0 {
		return errors.Join(err, PausedFault(t.Loop.Name, paused.By))
	}
	return PausedFault(t.Loop.Name, set[0].KillSwitch())
}

// PausedFault is the error of a run that a switch keeps from starting.
func PausedFault(name string, sw loop.KillSwitch) error {
	words := sw.String()
	if sw.Scope == loop.SwitchLoop {
		words = "`pawl pause " + name + "`"
	}
	f := &loop.Fault{Exit: loop.ExitPaused, What: name + " is paused", Why: setWords + words}
	one, all := loop.PawlCommand("resume", name), loop.PawlCommand("resume").WithFlag("all")
	if sw.Scope == loop.SwitchStore {
		all = loop.PawlCommand("resume").WithFlag("everywhere")
	}
	switch clears := sw.ClearedBy(name); {
	case sw.StopsAll():
		return f.WithAdvice(loop.Advise("{1} clears it; {2} does not", all, one))
	case clears.String() != one.String():
		return f.WithAdvice(clears.Then("; ", loop.Advise("{1} lists what stops the loop", loop.PawlCommand("check", name))))
	}
	return f.WithAdvice(loop.Advise("{1} (or {2}) clears it", one, all))
}

// setWords stand before a switch that kept an effect from being applied.
const setWords = "the kill switch is set: "
