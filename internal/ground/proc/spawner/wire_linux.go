package spawner

import (
	"syscall"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// Arg is the hidden first argument that turns the binary into a spawner.
const Arg = "__pawl-spawner"

// LinkFD is a sequenced-packet socket: each packet that comes in is a Request with its
// files, and each is answered by a Reply.
const LinkFD = 3

// Sizes of packets.
const (
	MaxRequest = 64 << 10
	MaxFiles   = 64
	ReplySize  = 16
)

// Request asks for one more process of this binary. Its files are those that come along
// with the packet, from 0 on.
type Request struct {
	Argv, Env []string
	// Sys is known by its Cloneflags, mappings, AmbientCaps, Setsid and Pdeathsig alone.
	Sys *syscall.SysProcAttr
}

// Encode returns the packet of r.
func (r Request) Encode() []byte {
	b := stage.AppendList(stage.AppendList(nil, r.Argv), r.Env)
	b = stage.AppendNumber(stage.AppendNumber(b, int(r.Sys.Cloneflags)), int(r.Sys.Pdeathsig))
	for _, yes := range []bool{r.Sys.Setsid, r.Sys.GidMappingsEnableSetgroups} {
		n := 0
		if yes {
			n = 1
		}
		b = stage.AppendNumber(b, n)
	}
	for _, ids := range [][]syscall.SysProcIDMap{r.Sys.UidMappings, r.Sys.GidMappings} {
		b = stage.AppendNumber(b, len(ids))
		for _, m := range ids {
			b = stage.AppendNumber(stage.AppendNumber(stage.AppendNumber(b, m.ContainerID), m.HostID), m.Size)
		}
	}
	b = stage.AppendNumber(b, len(r.Sys.AmbientCaps))
	for _, c := range r.Sys.AmbientCaps {
		b = stage.AppendNumber(b, int(c))
	}
	return b
}

// parseRequest is the inverse of Encode. It reports false for any other input.
func parseRequest(b []byte) (Request, bool) {
	in := stage.NewReader(b)
	r := Request{Argv: in.List(), Env: in.List(), Sys: &syscall.SysProcAttr{}}
	r.Sys.Cloneflags, r.Sys.Pdeathsig = uintptr(in.Number()), syscall.Signal(in.Number())
	r.Sys.Setsid, r.Sys.GidMappingsEnableSetgroups = in.Number() == 1, in.Number() == 1
	for _, ids := range []*[]syscall.SysProcIDMap{&r.Sys.UidMappings, &r.Sys.GidMappings} {
		for range in.Count() {
			*ids = append(*ids, syscall.SysProcIDMap{ContainerID: in.Number(), HostID: in.Number(), Size: in.Number()})
		}
	}
	for range in.Count() {
		r.Sys.AmbientCaps = append(r.Sys.AmbientCaps, uintptr(in.Number()))
	}
	return r, in.AllRead()
}

// Reply says which process was started, or why none was.
type Reply struct {
	PID   int
	Errno syscall.Errno // 0: it was started
}

func (r Reply) encode() []byte {
	return stage.AppendNumber(stage.AppendNumber(nil, r.PID), int(r.Errno))
}

// ParseReply reads one packet of ReplySize bytes.
func ParseReply(b []byte) (Reply, bool) {
	in := stage.NewReader(b)
	r := Reply{PID: in.Number(), Errno: syscall.Errno(in.Number())}
	return r, in.AllRead()
}
