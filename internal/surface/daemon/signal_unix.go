//go:build unix

package daemon

import (
	"fmt"
	"os"
	"syscall"
)

// reloadSignal asks a daemon to read the definitions again.
const reloadSignal = syscall.SIGUSR1

// ReloadSignals are the signals that ask this process to read the definitions again.
func ReloadSignals() []os.Signal { return []os.Signal{reloadSignal} }

// End asks a daemon to end. It returns before it has.
func End(r Running) error { return signal(r, syscall.SIGTERM) }

// Reload asks a daemon to read the definitions again, soon.
func Reload(r Running) error { return signal(r, reloadSignal) }

// isOwn reports whether a file is of this user.
func isOwn(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

func signal(r Running, s os.Signal) error {
	p, err := os.FindProcess(r.Holder.PID)
	if err == nil {
		err = p.Signal(s)
	}
	if err != nil {
		return fmt.Errorf("signal the daemon, process %d: %w", r.Holder.PID, err)
	}
	return nil
}
