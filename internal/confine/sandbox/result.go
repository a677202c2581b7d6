package sandbox

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage/selftest"
)

// Answer says whether an action inside a box succeeded.
type Answer string

// The answers.
const (
	Works  Answer = selftest.Works
	Denied Answer = selftest.Denied
)

// Row is the result of one action that was tried inside a box.
type Row struct {
	Action string `json:"action"`
	Want   Answer `json:"want,omitempty"` // empty: the tier promises nothing
	Got    Answer `json:"got"`
	Detail string `json:"detail,omitempty"` // mostly the name of an errno
	OK     bool   `json:"ok"`
}

// Result is what a self-test found.
type Result struct {
	Tier        Tier          `json:"tier"`
	Kernel      string        `json:"kernel"`
	LandlockABI int           `json:"landlock_abi"` // 0: the kernel has none
	Namespaces  bool          `json:"namespaces"`   // the tier starts programs in namespaces of their own
	Rows        []Row         `json:"rows"`
	Absent      []string      `json:"absent,omitempty"`    // actions that need a program which is not installed
	NoLayers    *NoLayers     `json:"no_layers,omitempty"` // nil: the tree was layered, or the tier has no layers
	Took        time.Duration `json:"took_ns"`             // how long the program in the box ran
}

// Failed returns the rows that are not as the tier promises.
func (r Result) Failed() []Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.OK })
}

// Actions of the host's programs that must work if the program is installed.
const (
	commit  = "check and commit with git"
	node    = "start Node"
	compile = "compile and run a program"
)

// hostTools are tried by the self-test of every tier.
var hostTools = []string{commit, node, compile}

// alwaysWorks are the actions that must work in every tier. Serving is not among them:
// it needs a network of its own.
var alwaysWorks = append([]string{selftest.WriteTree, selftest.WriteHome, selftest.WriteTemp, selftest.ReadUsr, selftest.Fork}, hostTools...)

// mayWorkInLandlock are the actions that only tier full promises to deny.
var mayWorkInLandlock = []string{
	selftest.ChangeOutside, selftest.WriteProtected, selftest.RenameProtected, selftest.SeeProcesses, selftest.GainCapability, selftest.Serve,
}

// promised returns what the tier promises about an action, "" if nothing.
func (t Tier) promised(action string) Answer {
	switch {
	case t != Full && t != Landlock && t != Seatbelt:
		return ""
	case slices.Contains(alwaysWorks, action):
		return Works
	case t == Full && (action == selftest.Serve || action == selftest.ServeUnbound):
		return Works
	case t == Landlock && action == selftest.ExceedProcesses:
		return "" // Without a namespace the kernel would count all processes of the user, so a control group or pawl counts.
	case t != Full && slices.Contains(mayWorkInLandlock, action):
		return ""
	}
	return Denied
}

// newRow compares an answer with what the tier promises.
func (t Tier) newRow(action string, got Answer, detail string) Row {
	want := t.promised(action)
	return Row{Action: action, Want: want, Got: got, Detail: detail, OK: want == "" || want == got}
}
