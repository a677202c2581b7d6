package sandbox

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/sandbox/stage/selftest"
)

// Answer says what became of an action inside a box.
type Answer string

// The answers.
const (
	Works  Answer = selftest.Works
	Denied Answer = selftest.Denied
)

// Row is one action that was tried inside a box.
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
	NoLayers    *NoLayers     `json:"no_layers,omitempty"` // nil: the tree was layers, or the tier has none
	Took        time.Duration `json:"took_ns"`             // the life of the box
}

// Failed returns the rows that are not as the tier promises.
func (r Result) Failed() []Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.OK })
}

// What programs of the host must be able to do, if they are installed.
const (
	commit  = "check and commit with git"
	node    = "start Node"
	compile = "compile and run a program"
)

// hostTools are started by the self-test of every tier.
var hostTools = []string{commit, node, compile}

// alwaysWorks is what works in every tier. A tier without a network of its own
// cannot offer servers.
var alwaysWorks = append([]string{selftest.WriteTree, selftest.WriteHome, selftest.WriteTemp, selftest.ReadUsr, selftest.Fork}, hostTools...)

// mayWorkInLandlock is what tier landlock does not promise to deny.
var mayWorkInLandlock = []string{
	selftest.ChangeOutside, selftest.WriteProtected, selftest.RenameProtected, selftest.SeeProcesses, selftest.GainCapability, selftest.Serve,
}

// promised is what a tier promises of an action; empty: nothing.
func (t Tier) promised(action string) Answer {
	switch {
	case t != Full && t != Landlock && t != Seatbelt:
		return ""
	case slices.Contains(alwaysWorks, action):
		return Works
	case t == Full && (action == selftest.Serve || action == selftest.ServeUnbound):
		return Works
	case t == Landlock && action == selftest.ExceedProcesses:
		return "" // Who has no namespace of their own is counted with all that the user runs; a control group or pawl counts.
	case t != Full && slices.Contains(mayWorkInLandlock, action):
		return ""
	}
	return Denied
}

// newRow holds an answer against what the tier promises.
func (t Tier) newRow(action string, got Answer, detail string) Row {
	want := t.promised(action)
	return Row{Action: action, Want: want, Got: got, Detail: detail, OK: want == "" || want == got}
}
