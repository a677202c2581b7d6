//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// account is whom the server runs as, which only Unix lets a test choose.
type account struct{}

func serverAccount() (*account, error) {
	return nil, errors.New("the private cluster needs Unix sockets and signals; run these tests on Linux, macOS or in WSL2")
}

func (*account) own(string) error { return nil }

func apart(*exec.Cmd, *account) {}
