package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/pawl-run/pawl/internal/proc/stage"
)

// UserNamespace opens a user namespace that knows the ids, in which nothing runs.
// It is for mounts that show files as those of another owner.
func UserNamespace(uids, gids []syscall.SysProcIDMap) (*os.File, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	defer null.Close()
	// A stage without an order does nothing and ends. Its namespace lives for as
	// long as it is not reaped.
	w, err := spawnProcess("/proc/self/exe", []string{"pawl", stage.Arg}, []*os.File{null, null, null}, &syscall.ProcAttr{
		Env: []string{}, Sys: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: uids, GidMappings: gids, Setsid: true, Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	defer w.reapStatus()
	<-w.done()
	return os.Open("/proc/" + strconv.Itoa(w.pid) + "/ns/user")
}
