package loop

import "time"

// SwitchScope is what a kill switch of the store stops. The empty scope is that of no
// switch.
type SwitchScope string

// The scopes. That of a loop is a column of the loop, the others are rows.
const (
	SwitchLoop      SwitchScope = "loop"
	SwitchWorkspace SwitchScope = "workspace"
	SwitchStore     SwitchScope = "store"
)

// Command is what sets the switch, as details of runs and messages name it.
func (s SwitchScope) Command() string {
	switch s {
	case SwitchWorkspace:
		return "`pawl pause --all`"
	case SwitchStore:
		return "`pawl pause --everywhere`"
	case SwitchLoop:
	}
	return "`pawl pause`"
}

// Switch is a kill switch of a workspace or of the whole store.
type Switch struct {
	Scope     SwitchScope `json:"scope"`
	Workspace string      `json:"workspace,omitempty"` // its id; empty: of the whole store
	By        Actor       `json:"by"`
	Why       string      `json:"why,omitempty"`
	At        time.Time   `json:"at"`
}

// String names the switch, who set it, when, and why.
func (s Switch) String() string {
	text := s.Scope.Command()
	if s.By.Who != "" {
		text += ", set by " + s.By.Who
	}
	if !s.At.IsZero() {
		text += " at " + s.At.UTC().Format(time.RFC3339)
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// KillSwitch returns s as what stops a loop.
func (s Switch) KillSwitch() KillSwitch { return KillSwitch{Scope: s.Scope, Row: s} }

// PausedError means that a kill switch, a file or one in the store, keeps a run from starting
// or an effect from being applied. It is ErrPaused.
type PausedError struct{ By KillSwitch }

func (e *PausedError) Error() string {
	if e.By.Scope == "" {
		return ErrPaused.Error() + ": " + e.By.String()
	}
	return ErrPaused.Error() + " by " + e.By.Scope.Command()
}

// Is makes every PausedError an ErrPaused.
func (e *PausedError) Is(target error) bool { return target == ErrPaused }

// HeldRun is a run that a process holds, and whether that process has stopped it.
type HeldRun struct {
	ID        string
	LoopID    string
	Loop      string // its name
	N         int64
	Workspace string // its id
	State     RunState
	Phase     Phase
	Holder    Holder
	Node      string        // its name; empty: the node is not known
	Stopped   bool          // the holder has said that no program of the run is left
	Heard     time.Time     // when the lease was extended for the last time
	Lease     time.Duration // that it has had since
	Left      time.Duration // of the lease, by the database's clock; not positive: it is over
}
