package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// UserNamespace makes a user namespace with these mappings, in which nothing runs, and
// returns it open. It is for mounts that show files with other owners.
func UserNamespace(uids, gids []syscall.SysProcIDMap) (*os.File, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	defer null.Close()
	// A stage without an order does nothing. Its namespace exists until it is reaped.
	w, err := spawnInUserNamespace([]string{"pawl", stage.Arg}, []*os.File{null, null, null}, &syscall.ProcAttr{
		Env: []string{}, Sys: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: uids, GidMappings: gids, Setsid: true, Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	defer func() {
		_ = syscall.Kill(w.pid, syscall.SIGKILL) // It is not reaped yet.
		<-w.done()
		w.reapStatus()
	}()
	name := "/proc/" + strconv.Itoa(w.pid) + "/ns/user"
	if f, err := os.Open(name); err == nil {
		return f, nil
	}
	// A program that its user may not read is not shown while it lives. A dead one is.
	<-w.done()
	return os.Open(name)
}
