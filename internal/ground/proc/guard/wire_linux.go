package guard

import (
	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// Arg is the hidden first argument that turns the binary into a guard.
const Arg = "__pawl-guard"

// LinkFD is a sequenced-packet socket, with a Message in each packet.
const LinkFD = 3

// Event is the kind of a Message.
type Event byte

// The messages to a guard, and Killed, which it sends.
const (
	Extended Event = 'E' // the programs of Tag may live until KillAt
	Started  Event = 'S' // Root is the root of one of Tag's trees; its pidfd comes along, if there are pidfds
	Ended    Event = 'D' // that tree is dead, and will be reaped
	Released Event = 'R' // Tag has no programs any more
	Killed   Event = 'K' // the time of Tag is over: what lives of its programs is about to be killed
)

// Root is the first process of a tree.
type Root struct {
	stage.ID

	Kind stage.Kind
}

// Message is what pawl and a guard tell each other. Which fields count depends on the
// event. Times are those of BootTime.
type Message struct {
	Event Event
	Tag   string // the environment entry of the run's programs
	Root  Root

	KillAt int64
	Until  int64 // when the lease ends: who comes later cannot keep the promise any more
}

// MaxMessage is the largest packet.
const MaxMessage = 4096

// Encode returns the packet of m.
func (m Message) Encode() []byte {
	b := stage.AppendTexts([]byte{byte(m.Event), byte(m.Root.Kind)}, m.Tag)
	for _, n := range []int64{int64(m.Root.PID), m.Root.Start, m.KillAt, m.Until} {
		b = stage.AppendNumber(b, int(n))
	}
	return b
}

// ParseMessage reads one packet.
func ParseMessage(b []byte) (Message, bool) {
	r := stage.NewReader(b)
	m := Message{Event: Event(r.Byte())}
	m.Root.Kind = stage.Kind(r.Byte())
	m.Tag = r.Text()
	m.Root.PID, m.Root.Start = r.Number(), int64(r.Number())
	m.KillAt, m.Until = int64(r.Number()), int64(r.Number())
	return m, r.AllRead()
}

// BootTime is how many nanoseconds ago the machine was started, the time included in
// which it was suspended.
func BootTime() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // It exists since Linux 2.6.39.
	return t.Nano()
}
