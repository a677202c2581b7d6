package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Session is a command that goes on while it is asked and answers. Whoever
// started it closes both pipes and waits for Ended.
type Session struct {
	In    *os.File
	Out   *os.File
	Ended chan error // carries the end of the process, once
}

// Start starts a command and returns at once. The command ends when ctx does.
func (g Git) Start(ctx context.Context, args ...string) (*Session, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start git %s: %w", args[0], err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start git %s: %w", args[0], err), childIn.Close(), in.Close())
	}
	ended := make(chan error, 1)
	go func() {
		stderr := &Bounded{Limit: maxStderr}
		res, err := g.Run.Run(ctx, proc.Spec{
			Argv: append(append([]string{"git"}, overrides...), args...),
			Dir:  g.Dir, Env: g.Env,
			Stdin: childIn, Stdout: childOut, Stderr: stderr,
			Grace: time.Second,
		})
		err = g.ending(ctx, args[0], res, err, stderr.String())
		// These ends were the child's. Closing them tells the other side.
		ended <- errors.Join(err, childIn.Close(), childOut.Close())
	}()
	return &Session{In: in, Out: out, Ended: ended}, nil
}
