package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func newShellCommand(a *app) *cobra.Command {
	command := ""
	cmd := &cobra.Command{
		Use: "shell RUN", Short: "Look at a run's files from inside, in a shell in its sandbox", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Start a shell on a copy of what a run made: its proposal, else its snapshot, else its base. It is confined as the gates
of the run were, with the same toolchains, variables and hosts, so that what fails there fails here. With -c it runs
one command and exits with its status. The copy is thrown away at the end, with all that you change in it.`,
		Example: "  pawl shell keep-tests-green#3\n  pawl shell keep-tests-green -c 'go test ./...'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return runShell(cmd.Context(), a, args[0], command)
		},
	}
	cmd.Flags().StringVarP(&command, "command", "c", "", "run this `command` instead of a shell")
	return cmd
}

// shellLine starts a shell that has the terminal, so that an interrupt reaches what runs in
// it; without setsid it does without job control.
const shellLine = `if command -v setsid >/dev/null 2>&1; then exec setsid -c -w "$0"; fi; exec "$0"`

func runShell(ctx context.Context, a *app, ref, command string) error {
	if command == "" && !a.canAsk() {
		return &loop.Fault{Exit: loop.ExitUsage, What: "a shell needs a terminal", Fix: "name a command: {1}", Actions: []loop.Command{loop.PawlCommand("shell", ref).WithFlag("command", "COMMAND").WithBlanks("COMMAND")}}
	}
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	o.ReadOnly, o.Gates = true, true
	return a.openVerbs(ctx, o, func(s *api.Workspace) error {
		run, tree, err := s.Runs.TreeOf(ctx, ref)
		if err != nil {
			return err
		}
		a.printer().Note("pawl: a copy of %s, %s at %s; what you change in it is thrown away", output.CleanLine(tree.Run), tree.What, shortHash(tree.Commit))
		p := proc.Spec{Argv: []string{"/bin/sh", "-c", command}, Stdout: a.Out, Stderr: a.Err}
		start := func() (int, error) { return s.Runs.Shell(ctx, run, tree, p) }
		var exit int
		if command == "" {
			p.Argv = []string{"/bin/sh", "-c", shellLine, cmp.Or(a.lookupEnv("SHELL"), "/bin/sh")}
			p.Env = []string{"TERM=" + cmp.Or(a.lookupEnv("TERM"), "dumb"), "PS1=" + tree.Run + ` \w $ `}
			exit, err = onTerminal(&p, start)
		} else {
			exit, err = start()
		}
		if err == nil && exit != 0 {
			err = quietError(exit)
		}
		return errors.Join(err, context.Cause(ctx))
	})
}
