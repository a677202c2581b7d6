//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that the server runs as, because PostgreSQL refuses to run as root.
// Nil is the user of the test process.
type account struct{ uid, gid int }

// nobody is the account that every Unix has.
const nobody = 65534

func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		return &account{nobody, nobody}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the user postgres: %w", err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	return &account{uid, gid}, errors.Join(uidErr, gidErr)
}

// giveFile gives a file to the account.
func (a *account) giveFile(name string) error {
	if a == nil {
		return nil
	}
	return os.Chown(name, a.uid, a.gid)
}

// runAs makes cmd run as the account, in its own process group: an interrupt of the tests
// must not reach the watchdog before they have ended.
func runAs(cmd *exec.Cmd, a *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}
