// Package gate runs the checks by which the runtime, and not the agent,
// decides whether a tree is good: commands whose exit status is the verdict.
//
// A gate runs in a directory that its caller has made from exactly the tree
// under judgement. The package trusts nothing that the agent wrote about it.
package gate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

// Exec starts a program so that its whole tree of processes is gone when Run
// returns.
type Exec interface {
	Run(ctx context.Context, s proc.Spec) (proc.Result, error)
}

// Command is one command gate.
type Command struct {
	Name    string // verify, guard
	Line    string // run by the shell
	Dir     string
	Env     []string // complete
	Tag     string
	Timeout time.Duration
	Output  io.Writer // gets what the gate prints, as it prints it
}

// Exit statuses by which a shell says that it never ran the program.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitKilled        = 124 // by convention, as timeout(1) does
)

// evidence is how much of a gate's output is kept for the trace and for the
// next attempt: its end, where compilers and test runners sum up.
const evidence = 4 << 10

// Run runs the gate. The error is for gates that could not be run at all; a
// gate that fails is a result.
func Run(ctx context.Context, exec Exec, c Command) (loop.GateResult, error) {
	tail := proc.NewRing(0, evidence)
	out := io.Writer(tail)
	if c.Output != nil {
		out = io.MultiWriter(tail, c.Output)
	}
	res, err := exec.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", c.Line}, Dir: c.Dir, Env: c.Env, Stdout: out, Stderr: out, Timeout: c.Timeout, Tag: c.Tag,
	})
	if err != nil {
		return loop.GateResult{}, fmt.Errorf("start %s gate %q: %w", c.Name, c.Line, err)
	}
	g := loop.GateResult{
		Name: c.Name, Kind: "command", Exit: res.Exit, Pass: res.Exit == 0 && res.Ended == proc.Exited,
		Evidence: strings.TrimSpace(tail.String()), Took: res.Took,
	}
	if res.Ended == proc.TimedOut {
		g.Exit, g.Evidence = exitKilled, strings.TrimSpace(g.Evidence+fmt.Sprintf("\n(stopped after %s)", c.Timeout))
	}
	return g, nil
}

// Missing reports whether the result says that the gate's program does not
// exist or cannot be executed, so that another try of the agent is pointless.
func Missing(g loop.GateResult) bool {
	return g.Exit == exitNotFound || g.Exit == exitNotExecutable
}

// Feedback is what the next attempt should read of a failed gate.
func Feedback(g loop.GateResult) string {
	return fmt.Sprintf("%s failed with exit status %d:\n%s", g.Name, g.Exit, g.Evidence)
}
