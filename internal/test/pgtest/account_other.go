//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// account is the user that the server runs as. Only on Unix can a test choose it.
type account struct{}

func serverAccount() (*account, error) {
	return nil, errors.New("the private cluster needs Unix sockets and signals; run these tests on Linux, macOS or in WSL2")
}

func (*account) giveFile(string) error { return nil }

func runAs(*exec.Cmd, *account) {}
