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

// account is whom the server runs as. PostgreSQL refuses to run as root; nil
// is the user of the test process.
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

// own gives a file to the account.
func (a *account) own(name string) error {
	if a == nil {
		return nil
	}
	return os.Chown(name, a.uid, a.gid)
}

// apart has cmd run as the account, in a process group of its own: an
// interrupt typed at the tests must reach the watchdog only by their end.
func apart(cmd *exec.Cmd, a *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}
