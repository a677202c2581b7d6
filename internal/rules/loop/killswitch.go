package loop

import (
	"cmp"
	"path"
)

// PausedFile is the name of the kill switch: in .loops it stops every loop of
// the workspace, in .loops/<name> one.
const PausedFile = "PAUSED"

// KillSwitch is a kill switch that is set: a file, one in the store, or a label on the
// code host. A switch that could not be looked at counts as set. The zero KillSwitch says
// that nothing stops the loop.
type KillSwitch struct {
	Path   string      `json:"path,omitempty"`   // of the file; relative to the workspace unless the definition names it otherwise
	Scope  SwitchScope `json:"scope,omitempty"`  // of the one in the store
	Label  string      `json:"label,omitempty"`  // address of what has the label
	Unread string      `json:"unread,omitempty"` // why the file cannot be read; without a path: why the label cannot be asked for
	Row    Switch      `json:"-"`                // of the one in the store, if it was read
}

// IsZero reports whether no switch is set.
func (k KillSwitch) IsZero() bool { return k == KillSwitch{} }

// labelWords begin the words for a label that stops a loop.
const labelWords = "the label " + PauseLabel

// unreadLabel stands between them and why the label cannot be asked for.
const unreadLabel = " cannot be asked for, which counts as set at L3: "

// unreadFile stands between a file and why it cannot be read.
const unreadFile = " (cannot be read: "

// String names the switch, and is empty if none is set.
func (k KillSwitch) String() string {
	switch {
	case k.Path != "" && k.Unread != "":
		return k.Path + unreadFile + k.Unread + ")"
	case k.Path != "":
		return k.Path
	case k.Scope == SwitchLoop:
		return "pawl pause"
	case k.Scope != "":
		return cmp.Or(k.Row, Switch{Scope: k.Scope}).String()
	case k.Label != "":
		return labelWords + " is on " + k.Label
	case k.Unread != "":
		return labelWords + unreadLabel + k.Unread
	}
	return ""
}

// StopsAll reports whether the switch is one of all loops: those of the workspace, or of
// all workspaces.
func (k KillSwitch) StopsAll() bool {
	return k.Path == path.Join(".loops", PausedFile) || k.Scope == SwitchWorkspace || k.Scope == SwitchStore
}

// ClearedBy is what clears the switch, which stops the loop with that name; empty: all
// loops.
func (k KillSwitch) ClearedBy(name string) Advice {
	folder := path.Dir(k.Path)
	switch {
	case k.Scope == SwitchStore:
		return Advise("{1}", PawlCommand("resume").WithFlag("everywhere"))
	case k.StopsAll():
		return Advise("{1}", PawlCommand("resume").WithFlag("all"))
	case k.Label != "":
		return Advise("remove the label from " + k.Label)
	case k.Path == "" && k.Unread != "":
		return Advise("{1}", HostCommand("gh", "auth", "status"))
	case path.Base(k.Path) == PausedFile && path.Dir(folder) == ".loops":
		return Advise("{1}", PawlCommand("resume", path.Base(folder)))
	case k.Path != "":
		return Advise("remove " + k.Path + ", or take it out of kill_switch")
	}
	return Advise("{1}", PawlCommand("resume", name))
}
