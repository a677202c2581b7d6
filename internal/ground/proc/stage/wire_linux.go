package stage

import "syscall"

// Arg is the hidden first argument that turns the binary into a stage.
const Arg = "__pawl-stage"

// Descriptors of a stage besides standard input, output and error.
const (
	OrderFD = 3 // a file that holds an encoded Order
	LinkFD  = 4 // a stream socket: commands come in, reports go out
	ExtraFD = 5 // the first of the descriptors that another stage uses
)

// Commands to a stage, over the link. When the link ends, the tree dies.
const (
	Go   = 'G' // start the program; the first command, and needed only if there is one
	Term = 'T' // send SIGTERM to the program's process group
)

// Kind is the way in which a stage owns the tree below it.
type Kind byte

// The kinds of stage.
const (
	KindPID       Kind = 'p' // PID 1 of a PID namespace, made with privilege
	KindUser      Kind = 'u' // the same inside a user namespace of its own
	KindSubreaper Kind = 's' // an ordinary process that adopts orphans and kills them at the end
	KindCell      Kind = 'c' // PID 1 of new namespaces, which another stage sets up
)

// Order is what a stage has to do.
type Order struct {
	Kind Kind
	Dir  string // empty: the working directory of the process that started the stage
	Path string // empty: set up, report Started and exit, which probes the host
	Argv []string
	Env  []string

	Bounds Bounds
}

// Encode returns the form that a stage reads from OrderFD.
func (o Order) Encode() []byte {
	b := []byte{byte(o.Kind)}
	b = AppendTexts(b, o.Dir, o.Path)
	b = AppendList(b, o.Argv)
	b = AppendList(b, o.Env)
	return o.Bounds.appendTo(b)
}

// decodeOrder is the inverse of Encode. It reports false for any other input.
func decodeOrder(b []byte) (o Order, ok bool) {
	r := NewReader(b)
	o = Order{Kind: Kind(r.Byte()), Dir: r.Text(), Path: r.Text(), Argv: r.List(), Env: r.List(), Bounds: r.readBounds()}
	return o, r.AllRead()
}

// Event is the kind of a Report.
type Event byte

// The events that a stage reports: Starting, Started and Ended, in this order, or
// Refused in place of one of the first two. If the link ends after Starting, the
// program may have run: it can kill the stage before the stage reports Started.
const (
	Starting Event = 'F' // the next thing is the fork
	Started  Event = 'S' // the program's exec succeeded
	Ended    Event = 'E' // Status is the program's; its tree is dead or dies with the stage
	Refused  Event = 'R' // Step and Errno say why; the program did not run
)

// Step is what a stage was doing when it was refused.
type Step byte

// The steps of a start.
const (
	StepOrder     Step = iota + 1 // reading the order
	StepPrivate                   // detaching the mount namespace from the host's
	StepProc                      // mounting a fresh /proc
	StepDrop                      // giving up the capabilities of the user namespace
	StepSubreaper                 // becoming a child subreaper
	StepDir                       // entering the working directory
	StepGroup                     // entering the control group
	StepLimit                     // limiting the size of files
	StepProcesses                 // limiting the number of processes
	StepExec                      // executing the program
)

func (s Step) String() string {
	switch s {
	case StepOrder:
		return "read the order"
	case StepPrivate:
		return "detach mounts"
	case StepProc:
		return "mount /proc"
	case StepDrop:
		return "drop capabilities"
	case StepSubreaper:
		return "become a subreaper"
	case StepDir:
		return "enter the working directory"
	case StepGroup:
		return "enter the control group"
	case StepLimit:
		return "limit the size of files"
	case StepProcesses:
		return "limit the number of processes"
	case StepExec:
		return "execute the program"
	default:
		return "unknown step"
	}
}

// ReportSize is the length of an encoded Report.
const ReportSize = 10

// Report is a message of a stage over the link.
type Report struct {
	Event  Event
	Step   Step
	Errno  syscall.Errno
	Status syscall.WaitStatus
}

// encode returns the form that ParseReport reads. Errno and Status share one field,
// because no event has both.
func (r Report) encode() []byte {
	n := int(r.Status)
	if r.Event == Refused {
		n = int(r.Errno)
	}
	return AppendNumber([]byte{byte(r.Event), byte(r.Step)}, n)
}

// ParseReport reads one report of ReportSize bytes.
func ParseReport(b [ReportSize]byte) Report {
	n := NewReader(b[2:]).Number()
	report := Report{Event: Event(b[0]), Step: Step(b[1])}
	if report.Event == Refused {
		report.Errno = syscall.Errno(n)
	} else {
		report.Status = syscall.WaitStatus(n)
	}
	return report
}
