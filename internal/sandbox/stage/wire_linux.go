package stage

import (
	"syscall"

	"github.com/pawl-run/pawl/internal/proc/stage"
)

// Arg is the hidden first argument that turns the binary into a stage.
const Arg = "__pawl-cell"

// Descriptors of a stage beside those of proc's own.
const (
	OrderFD = stage.ExtraFD     // a file that holds an encoded Order
	LinkFD  = stage.ExtraFD + 1 // a sequenced-packet socket: messages go out, and it ends when the program runs
	MoreFD  = stage.ExtraFD + 2 // the first that a Mount may name
)

// Order is what a stage has to do.
type Order struct {
	Cell   bool    // it runs in a cell of package proc, and makes a root from Mounts
	Mounts []Mount // in this order; nothing else exists in the new root
	Host   string  // host name in a cell
	Ports  []int   // of loopback, in a cell: listening sockets for them are sent over the link

	// User and Group are who the program runs as; -1 leaves them.
	User, Group int

	Rules Rules
	Local bool // sockets of the family UNIX and of the types beyond streams may be made
}

// Rules are what Landlock permits. Of each path, what is below it too.
type Rules struct {
	List    []string // directories that may be listed
	Read    []string // read and executed
	Write   []string // everything
	Connect []int    // ports; only if Network
	Network bool     // TCP is permitted to Connect alone; false: Landlock does not look at it
}

// Kind is what is mounted.
type Kind byte

// The kinds of mount.
const (
	Bind     Kind = 'b' // From, recursively
	Overlay  Kind = 'o' // Layers, and Upper with Work if it can be written
	Memory   Kind = 't' // a tmpfs of Size bytes
	Proc     Kind = 'p' // a fresh one
	Terminal Kind = 'd' // a fresh devpts
	Link     Kind = 'l' // no mount: a symbolic link to From
	Again    Kind = 'r' // what is at To by then, recursively; nothing if that does not exist
	Lower    Kind = 'w' // no mount of the root: FD stands for From wherever a later mount names that
	Hide     Kind = 'x' // nothing to be seen of what is at To by then, if that exists
)

// Mount is one mount of the new root. Its parents are made, and belong to the
// user of the program.
type Mount struct {
	Kind     Kind
	From, To string
	Layers   []string
	Upper    string
	Work     string
	Size     int  // bytes
	Mode     int  // of a Memory
	ReadOnly bool // set-uid bits never count
	Devices  bool // device nodes count
	FD       int  // of a Bind: what to mount, detached and with all its attributes; 0: From
}

// Message is what a stage says over the link, one in each packet.
type Message struct {
	Port int // a listening socket for it comes along; 0: the stage was refused

	Step  string
	Errno syscall.Errno
}

// Encode returns the form that a stage reads from OrderFD.
func (o Order) Encode() []byte {
	b := appendBools(nil, o.Cell, o.Local, o.Rules.Network)
	b = stage.AppendNumber(b, len(o.Mounts))
	for _, m := range o.Mounts {
		b = append(b, byte(m.Kind))
		b = stage.AppendTexts(b, m.From, m.To, m.Upper, m.Work)
		b = stage.AppendList(b, m.Layers)
		b = stage.AppendNumber(stage.AppendNumber(stage.AppendNumber(b, m.Size), m.Mode), m.FD)
		b = appendBools(b, m.ReadOnly, m.Devices)
	}
	b = stage.AppendTexts(b, o.Host)
	b = appendNumbers(b, o.Ports)
	for _, n := range []int{o.User, o.Group} {
		b = stage.AppendNumber(b, n)
	}
	for _, list := range [][]string{o.Rules.List, o.Rules.Read, o.Rules.Write} {
		b = stage.AppendList(b, list)
	}
	return appendNumbers(b, o.Rules.Connect)
}

// decodeOrder is the inverse of Encode. It reports false for anything else.
func decodeOrder(b []byte) (o Order, ok bool) {
	r := reader{stage.NewReader(b)}
	o.Cell, o.Local, o.Rules.Network = r.readBool(), r.readBool(), r.readBool()
	for range r.Count() {
		var m Mount
		m.Kind = Kind(r.Byte())
		m.From, m.To, m.Upper, m.Work = r.Text(), r.Text(), r.Text(), r.Text()
		m.Layers, m.Size, m.Mode, m.FD = r.List(), r.Number(), r.Number(), r.Number()
		m.ReadOnly, m.Devices = r.readBool(), r.readBool()
		o.Mounts = append(o.Mounts, m)
	}
	o.Host, o.Ports = r.Text(), r.readNumbers()
	o.User, o.Group = r.Number(), r.Number()
	o.Rules.List, o.Rules.Read, o.Rules.Write = r.List(), r.List(), r.List()
	o.Rules.Connect = r.readNumbers()
	return o, r.AllRead()
}

// encode returns the form that ParseMessage reads.
func (m Message) encode() []byte {
	return stage.AppendTexts(stage.AppendNumber(stage.AppendNumber(nil, m.Port), int(m.Errno)), m.Step)
}

// ParseMessage reads one packet.
func ParseMessage(b []byte) (Message, bool) {
	r := reader{stage.NewReader(b)}
	m := Message{Port: r.Number(), Errno: syscall.Errno(r.Number()), Step: r.Text()}
	return m, r.AllRead()
}
