package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/demo"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newDemoCommand(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch a loop turn a red test green", Args: exactArgs(0),
		Long: `Make a small git repository with a failing test and run a loop on it, live, to a proposed branch.

The agent is a script that comes with pawl. No key, no network, and nothing of yours is touched.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), a, dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "make it in `dir` (default: a temporary folder)")
	return cmd
}

func runDemo(ctx context.Context, a *app, dir string) error {
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp(strings.TrimSpace(a.lookupEnv("TMPDIR")), "pawl-demo-"); err != nil {
			return err
		}
	}
	place, err := demo.Make(ctx, a.absPath(dir), a.Environ)
	if err != nil {
		_ = os.Remove(a.absPath(dir)) // Only an empty folder is removed.
		return err
	}
	p := a.printer()
	if !p.JSON {
		p.Line("A repository with a failing test: %s", output.Clean(place.Repo))
		p.Line("")
	}
	a.workspace, a.home = place.Repo, place.Home
	request := runs.StartRequest{Loop: demo.Loop}
	if err := setup.CheckConfinement(ctx, place.Home, setup.ConfiningTiers()[0]); err != nil {
		// The script that acts is pawl's own, so it needs no sandbox.
		request.Overrides.Sandbox = "none"
		why := err.Error()
		if f, ok := errors.AsType[*loop.Fault](err); ok {
			why = f.Why
		}
		p.Note("The demo runs with sandbox none: %s. Your own loops will not, unless they say so; pawl doctor --sandbox tells the fix.\n", output.CleanLine(why))
	}
	start := func(ctx context.Context, c verb.Caller) (runs.View, error) { return api.StartRun.Call(ctx, c, request) }
	if err := runLoop(ctx, a, runOptions{}, start); err != nil || p.JSON {
		return err
	}
	printNextSteps(p, place, a.Program)
	return p.Err()
}

// printNextSteps says what happened in the demo and what to type next.
func printNextSteps(p *output.Printer, place demo.Place, program string) {
	alias := ""
	if program != "" && program != "pawl" { // PATH does not find pawl.
		alias = "\n  alias pawl=" + loop.QuoteWord(loop.QuoteWord(output.Clean(program)))
	}
	p.Line("%s", p.Style.Bold("\nWhat happened")+`
  The agent worked on a copy. Its first change made one test pass and broke another: pawl ran the
  tests itself and refused it. The agent read why, tried again, and the tests passed. The result is
  a branch for you to judge; your branch, your files and your index are as they were.

`+p.Style.Bold("Go on")+`
  cd `+loop.QuoteWord(output.Clean(place.Repo))+`
  export PAWL_HOME=`+loop.QuoteWord(output.Clean(place.Home))+alias+`
  pawl trace `+demo.Loop+`     the five steps of each iteration
  pawl why `+demo.Loop+`       which rule decided what
  pawl diff `+demo.Loop+`      the change
  pawl approve `+demo.Loop+`   lands it: exactly the tree that the tests passed
  pawl run `+demo.Loop+`       quiet now: nothing to do, no token spent
  cat .loops/`+demo.Loop+`/run-log.md`)
}
