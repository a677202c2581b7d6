package proc

import (
	"os"
	"sync"
)

// Identity is a process that cannot be mistaken for a later one with the same
// pid. It may be stored and compared after a restart. The zero Identity is no
// process.
type Identity struct {
	PID   int
	Start int64  // when it started, in the platform's own unit; 0 where that is not known
	Boot  string // the boot of the host, and the PID namespace where it is not the host's own; empty where that is not known
	Node  string // host name
}

var self = sync.OnceValue(func() Identity {
	id := Identity{PID: os.Getpid(), Boot: bootID()}
	id.Start, _ = startOf(id.PID)
	id.Node, _ = os.Hostname()
	return id
})

// Self returns the identity of this process.
func Self() Identity { return self() }

// SameHost reports whether id is of this boot of this host (and of this PID
// namespace), so that Alive can judge it. An earlier boot of the same host is
// another host: what ran there is dead, but only the node name tells so.
func SameHost(id Identity) bool {
	return id.Node == Self().Node && id.Boot == Self().Boot
}

// Alive reports whether that very process lives on this host. A zombie is dead,
// and so is a process whose pid now belongs to another. It is false for every
// other host; ask SameHost before concluding anything from that. Where Start is
// not known, outside Linux, a reused pid counts as alive.
func Alive(id Identity) bool {
	if id.PID <= 0 || !SameHost(id) {
		return false
	}
	start, alive := startOf(id.PID)
	return alive && start == id.Start
}
