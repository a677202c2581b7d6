//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// onTerminal gives a program a terminal of its own while run carries it out, and passes on
// what is typed into this process's terminal and what the program prints.
func onTerminal(p *proc.Spec, run func() (int, error)) (exit int, err error) {
	ours, theirs, err := pty.Open()
	if err != nil {
		return 0, fmt.Errorf("open a terminal for the shell: %w", err)
	}
	p.Stdin, p.Stdout, p.Stderr = theirs, theirs, theirs
	_ = pty.InheritSize(os.Stdin, ours) // A terminal of the usual size will do.
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("use this terminal: %w", err), ours.Close(), theirs.Close())
	}
	defer func() { err = errors.Join(err, term.Restore(int(os.Stdin.Fd()), before)) }()
	ended := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-resized:
				_ = pty.InheritSize(os.Stdin, ours)
			}
		}
	})
	passing.Go(func() { _, _ = io.Copy(os.Stdout, ours) }) // It ends when nobody has the other end any more.
	go func() { _, _ = io.Copy(ours, os.Stdin) }()         // It ends with this process: nothing ends a read of a terminal.
	exit, err = run()
	close(ended)
	err = errors.Join(err, theirs.Close())
	passing.Wait()
	return exit, errors.Join(err, ours.Close())
}
