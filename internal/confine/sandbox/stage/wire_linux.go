package stage

import (
	"syscall"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// Arg is the hidden first argument that turns the binary into a stage.
const Arg = "__pawl-cell"

// Descriptors of a stage besides those of proc's stage.
const (
	OrderFD = stage.ExtraFD     // a file that holds an encoded Order
	LinkFD  = stage.ExtraFD + 1 // a sequenced-packet socket: messages go out, and it ends when the program runs
	MoreFD  = stage.ExtraFD + 2 // the first descriptor that a Mount may name
)

// Order is what a stage has to do.
type Order struct {
	Cell   bool    // the stage runs in a cell of package proc, and builds a root from Mounts
	Mounts []Mount // in this order; nothing else exists in the new root
	Host   string  // host name in a cell
	Ports  []int   // ports of a cell's loopback: the stage sends listening sockets for them over the link

	// User and Group are the ids of the program; -1: those of the stage.
	User, Group int

	Rules Rules
	Local bool // the program may make UNIX sockets, datagram sockets and servers
}

// Rules are what Landlock permits. Each path includes everything below it.
type Rules struct {
	List    []string // directories that may be listed
	Read    []string // read and executed
	Write   []string // everything
	Connect []int    // ports; only if Network
	Network bool     // TCP is permitted to the ports of Connect only; false: Landlock does not restrict TCP
}

// Kind is what is mounted.
type Kind byte

// The kinds of mount.
const (
	Bind     Kind = 'b' // From and the mounts below it
	Overlay  Kind = 'o' // Layers, with Upper and Work if it can be written
	Memory   Kind = 't' // a tmpfs of Size bytes
	Proc     Kind = 'p' // a new /proc
	Terminal Kind = 'd' // a new devpts
	Link     Kind = 'l' // not a mount: a symbolic link to From
	Again    Kind = 'r' // To itself, as earlier mounts left it, with the mounts below it; skipped if To does not exist
	Lower    Kind = 'w' // not in the new root: FD is mounted over From, for later mounts that use From as a layer
	Hide     Kind = 'x' // /dev/null or an empty directory over To; skipped if To does not exist
)

// Mount is one mount of the new root. Missing parents are made, and belong to the
// program's user.
type Mount struct {
	Kind     Kind
	From, To string
	Layers   []string
	Upper    string
	Work     string
	Size     int // bytes
	Mode     int // of a Memory
	ReadOnly bool
	Devices  bool // device nodes work; set-uid bits never do
	FD       int  // of a Bind or Lower: the detached mount, with its attributes set; of a Bind, 0 means From
}

// Message is what a stage sends over the link, one in each packet.
type Message struct {
	Port int // a listening socket for it comes along; 0: Step failed

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

// decodeOrder is the inverse of Encode. It reports false for any other input.
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
