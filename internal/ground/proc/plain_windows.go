package proc

import (
	"context"
	"os"
)

// singleChild is a program alone: Windows has no group to kill.
type singleChild struct {
	process *os.Process
	dead    chan struct{}
	state   *os.ProcessState
}

func startPlain(_ context.Context, p program, stdio [3]*os.File) (child, error) {
	process, err := os.StartProcess(p.path, p.argv, &os.ProcAttr{Dir: p.dir, Env: p.env, Files: stdio[:]})
	if err != nil {
		return nil, execError(p, err)
	}
	c := &singleChild{process: process, dead: make(chan struct{})}
	go func() {
		defer close(c.dead)
		c.state, _ = process.Wait()
	}()
	return c, nil
}

func (c *singleChild) done() <-chan struct{} { return c.dead }

// term kills: Windows has no signal that asks a program to end.
func (c *singleChild) term() { c.kill() }

func (c *singleChild) kill() { _ = c.process.Kill() }

func (c *singleChild) reap() status {
	if c.state == nil {
		return status{exit: -1}
	}
	return status{exit: c.state.ExitCode()}
}
