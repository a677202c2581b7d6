package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/loop"
)

// PausedFile is the name of the kill switch: in .loops it stops every loop of
// the workspace, in .loops/<name> one.
const PausedFile = "PAUSED"

// Switch returns which kill switch file is set for a loop of the workspace at
// root, or why it cannot be read, and "" if none is. Existence is all that
// counts: a folder, a dangling link or a file without permissions are switches
// too, and so is any error other than absence. An empty name asks for the
// switch of all loops only.
func Switch(root, name string) string {
	rels := []string{filepath.Join(".loops", PausedFile)}
	if name != "" {
		rels = append(rels, filepath.Join(".loops", name, PausedFile))
	}
	for _, rel := range rels {
		_, err := os.Lstat(filepath.Join(root, rel))
		switch {
		case err == nil:
			return rel
		case !errors.Is(err, fs.ErrNotExist):
			return rel + " (cannot be read: " + err.Error() + ")"
		}
	}
	return ""
}

// killSwitch is the first phase after the claim, before any state is read.
func (c *cycle) killSwitch(context.Context) (*ending, error) {
	c.enter(loop.PhaseKillSwitch)
	return c.paused(), nil
}

func (c *cycle) paused() *ending {
	if sw := Switch(c.t.Workspace.Root, c.t.Loop.Name); sw != "" {
		return &ending{outcome: loop.OutcomePaused, reason: loop.ReasonKillSwitch, detail: sw}
	}
	return nil
}

func pausedFault(name, sw string) error {
	return &loop.Fault{
		Exit: loop.ExitPaused, What: "run " + name, Why: "the kill switch is set: " + sw,
		Fix: "`pawl resume " + name + "` (or `pawl resume --all`) clears it",
	}
}
