package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/demo"
	"github.com/pawl-run/pawl/internal/loop"
)

func (a *app) cmdDemo() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch a loop turn a red test green", Args: exactly(0),
		Long: `Make a small git repository with a failing test and run a loop on it, live, to a proposed branch.

The agent is a script that comes with pawl. No key, no network, and nothing of yours is touched.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "make it in `dir` (default: a temporary folder)")
	return cmd
}

func (a *app) demo(ctx context.Context, dir string) error {
	dir, err := a.demoDir(dir)
	if err != nil {
		return err
	}
	place, err := demo.Make(ctx, dir, a.Environ)
	if err != nil {
		_ = os.Remove(dir) // Only what is empty goes.
		return err
	}
	p := printer{w: a.Out}
	if !a.json {
		p.line("A repository with a failing test: %s", clean(place.Repo))
		p.line("")
	}
	a.workspace, a.home = place.Repo, place.Home
	request := control.RunRequest{Loop: demo.Loop}
	if err := control.Confines(ctx, place.Home, control.ConfiningTiers()[0]); err != nil {
		// The script that acts is pawl's own: the demo can do without.
		request.Overrides.Sandbox = "none"
		_, _ = fmt.Fprintf(a.Err, "The demo runs with sandbox none: %s. Your own loops will not, unless they say so; pawl doctor --sandbox tells the fix.\n\n", cleanLine(why(err)))
	}
	if err := a.run(ctx, runOptions{RunRequest: request}); err != nil || a.json {
		return err
	}
	p.line("%s", a.explanation(place))
	return p.err
}

// why is the cause of a refusal.
func why(err error) string {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f.Why
	}
	return err.Error()
}

// demoDir is where the demo goes: absolute, and kept either way.
func (a *app) demoDir(dir string) (string, error) {
	switch {
	case dir == "":
		return os.MkdirTemp(strings.TrimSpace(a.variable("TMPDIR")), "pawl-demo-")
	case filepath.IsAbs(dir):
		return dir, nil
	}
	return filepath.Join(a.Dir, dir), nil
}

// explanation says what happened and what to type next.
func (a *app) explanation(p demo.Place) string {
	return a.style().bold("\nWhat happened") + `
  The agent worked on a copy. Its first change made one test pass and broke another: pawl ran the
  tests itself and refused it. The agent read why, tried again, and the tests passed. The result is
  a branch for you to judge; your branch, your files and your index are as they were.

` + a.style().bold("Go on") + `
  cd ` + shellWord(clean(p.Repo)) + `
  export PAWL_HOME=` + shellWord(clean(p.Home)) + a.alias() + `
  pawl trace ` + demo.Loop + `     the five steps of each iteration
  pawl why ` + demo.Loop + `       which rule decided what
  pawl diff ` + demo.Loop + `      the change
  pawl approve ` + demo.Loop + `   lands it: exactly the tree that the tests passed
  pawl run ` + demo.Loop + `       quiet now: nothing to do, no token spent
  cat .loops/` + demo.Loop + `/run-log.md`
}

// alias is the line by which the commands below it work if PATH has no pawl.
func (a *app) alias() string {
	if a.Program == "" || a.Program == "pawl" {
		return ""
	}
	return "\n  alias pawl=" + shellWord(shellWord(clean(a.Program)))
}

// shellWord is a text as one word of a shell.
func shellWord(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@%") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
