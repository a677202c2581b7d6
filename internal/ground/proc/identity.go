package proc

import (
	"os"
	"sync"
)

// Identity identifies a process, also against a later one with the same pid. It may
// be stored and compared after a restart. The zero Identity is not a process.
type Identity struct {
	PID   int
	Start int64  // when it started, in a unit of the platform; 0: unknown
	Boot  string // the boot of the host, with the PID namespace if that is not the host's own; empty: unknown
	Host  string // host name
}

var self = sync.OnceValue(func() Identity {
	id := Identity{PID: os.Getpid(), Boot: bootID()}
	id.Start, _ = startOf(id.PID)
	id.Host, _ = os.Hostname()
	return id
})

// Self returns the identity of this process.
func Self() Identity { return self() }

// SameHost reports whether id is of this boot of this host and of this PID namespace,
// so that Alive can tell whether it lives. An earlier boot of the same host counts
// as another host: its processes are dead, but only the host name shows that.
func SameHost(id Identity) bool {
	return id.Host == Self().Host && id.Boot == Self().Boot
}

// Alive reports whether exactly this process lives on this host. A zombie is dead,
// and so is a process whose pid now belongs to another. Alive is false for processes
// of other hosts, which may live: ask SameHost first. Outside Linux, where Start is
// unknown, a reused pid counts as alive.
func Alive(id Identity) bool {
	if id.PID <= 0 || !SameHost(id) {
		return false
	}
	start, alive := startOf(id.PID)
	return alive && start == id.Start
}
