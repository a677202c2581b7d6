// Package gate runs the checks with which the runtime, not the agent, decides
// whether a tree is good: commands whose exit status is the verdict, unless their
// own output contradicts it; invariants, which are expressions; and reviewers,
// which are models and are asked through an Ask.
//
// A gate runs in a directory that its caller has made from exactly the tree under
// judgement. The package trusts nothing that the agent wrote about the tree: none
// of its texts makes a gate pass. Counts from the output of test runners can only
// make a gate fail that would have passed: code under test shares a process with
// its tests, so a report can be forged and proves nothing. The package writes
// nothing. It reads a command line to make it countable, never to find out
// whether it is safe.
package gate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/judging"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Command is a gate that is a command: its exit status is the verdict.
type Command struct {
	Name string // verify, guard
	Line string // run by the shell
	Fail loop.Reason
}

// Check identifies the gate's check.
func (c Command) Check() Check {
	return Check{Name: c.Name, Kind: loop.GateCommand, Line: c.Line, Fail: c.Fail}
}

// Input is what a gate needs to judge one tree.
type Input struct {
	Place
	Env     []string // the complete environment of its programs
	Tag     string
	Timeout time.Duration // of each try
	Output  io.Writer     // gets what the gate prints, as it prints it; may be nil

	// Rule is for a gate that is known to be flaky. The zero Rule is one try.
	Rule Rule

	// Fresh returns the place for each try after the first: a copy in which no
	// earlier try left anything. Nil uses the same for all of them.
	Fresh func(context.Context) (Place, error)

	// Tree is the tree under judgement and Base the one that it is compared with, as
	// git has them: what is in Place may be layers, which no process of the host sees
	// as a whole. Gates are also run on the base itself, where both are the same: one
	// that judges changes passes there. Base is nil if it is not known.
	Tree, Base judging.Tree

	// Ask asks a model. It is not nil; where there is no model it is NoModel.
	Ask Ask

	Work
}

// Work is what gates that are not commands judge beside the tree. The zero Work is
// that of a tree which nobody has worked on, as the base.
type Work struct {
	Iteration int   // 1 is the first
	Tokens    int64 // used so far
	Diff      invariant.Diff

	// Outputs are what the command gates have printed in this iteration, by their
	// names, and BaseOutputs what they print on the base.
	Outputs, BaseOutputs map[string]string

	Goal     envelope.Field
	Criteria []string // of the reviewer; empty: its gate's own
	Claims   []string // what agents say that reviewers missed
	Changes  string   // the difference from the base, as a patch
	Said     string   // what the agent reported
	Makers   []string // the models that did the work, as the meter saw them
}

// Place is where a gate runs.
type Place struct {
	Exec  proc.Runner
	Dir   string // the tree under judgement, as programs see it
	Files string // where this process finds files that programs write there; empty means Dir
}

func (p Place) files() string {
	if p.Files == "" {
		return p.Dir
	}
	return p.Files
}

// Exit statuses of a shell that did not run the program.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitKilled        = 124 // by convention, as timeout(1) does
)

// evidence is how much of a gate's output is kept for the trace and for the
// next attempt: its end, where compilers and test runners sum up.
const evidence = 4 << 10

// Run runs the gate, counts the tests that it ran and judges it. An error means
// that the gate could not run at all; a gate that fails is a result.
//
// Calls of go test in the command line are changed to print events, which are
// counted and turned back into ordinary output. What the output does not say is
// looked up in the JUnit reports that the gate wrote into its directory.
func (c Command) Run(ctx context.Context, in Input) (loop.GateResult, error) {
	s := parseLine(c.Line)
	if in.Rule == (Rule{}) {
		return c.runOnce(ctx, in, s)
	}
	return c.runRule(ctx, in, s)
}

// runOnce runs the gate once.
func (c Command) runOnce(ctx context.Context, in Input, s script) (loop.GateResult, error) {
	tail := proc.NewRing(0, evidence)
	out := newOutput(tail, in.Output, s)
	earlier := findReportsIn(in.files())
	res, err := in.Exec.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", s.instrumented}, Dir: in.Dir, Env: in.Env, Stdout: out, Stderr: out, Timeout: in.Timeout, Tag: in.Tag,
	})
	if err != nil {
		return loop.GateResult{}, fmt.Errorf("start %s gate %q: %w", c.Name, c.Line, err)
	}
	out.flush()
	g := loop.GateResult{
		Name: c.Name, Kind: loop.GateCommand, Exit: res.Exit, Pass: res.Exit == 0 && res.Ended == proc.Exited,
		Evidence: strings.TrimSpace(tail.String()), Took: res.Took,
	}
	g.Tests, g.Names = out.testCounts(in.files(), earlier)
	if res.Ended == proc.TimedOut {
		g.Exit, g.Evidence = exitKilled, strings.TrimSpace(g.Evidence+fmt.Sprintf("\n(stopped after %s)", in.Timeout))
	}
	if !g.Pass && res.Limit != "" && res.Limit != proc.TimeLimit {
		g.Evidence = strings.TrimSpace(g.Evidence + "\n(it ran into the limit of " + strings.ReplaceAll(string(res.Limit), "_", " ") + ")")
	}
	if g.Pass && g.Tests == nil && s.tests {
		g.Note = uncounted
	}
	return Judge(g, nil), nil
}

// Missing reports whether the result says that the gate's program does not
// exist or cannot be executed, so that another try of the agent is pointless.
func Missing(g loop.GateResult) bool {
	return g.Exit == exitNotFound || g.Exit == exitNotExecutable
}

// Stopped reports whether the gate was ended before it had finished, so that its
// result says nothing about the tree.
func Stopped(g loop.GateResult) bool { return g.Exit == exitKilled || g.Exit > 128 }

// Feedback returns what the next attempt is told about a failed gate.
func Feedback(g loop.GateResult) string {
	if g.Exit == 0 && g.Note != "" {
		return fmt.Sprintf("%s failed: %s:\n%s", g.Name, g.Note, g.Evidence)
	}
	return fmt.Sprintf("%s failed with exit status %d:\n%s", g.Name, g.Exit, g.Evidence)
}
