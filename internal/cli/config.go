package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/readiness"
)

func newConfigCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Work on definitions", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use: "edit LOOP|PATH", Short: "Edit a definition, check it, and only then save it", Args: exactArgs(1), ValidArgsFunction: completeDefinitions(a),
		Long: `Open a copy of a definition in $VISUAL or $EDITOR. When the editor ends the copy is checked; with errors it can be
edited again. The definition itself is replaced at once and only by what you agree to.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := loops.Definitions(a.workDir(), args[0])
			if err != nil {
				return err
			}
			return editDefinition(cmd.Context(), a, all[0])
		},
	})
	return cmd
}

// editDefinition lets a person edit a copy until it is saved or given up. A copy that
// was not saved is kept and named, so that nothing that a person wrote is lost.
func editDefinition(ctx context.Context, a *app, f loops.Found) error {
	if strings.TrimSpace(a.lookupEnv("VISUAL")+a.lookupEnv("EDITOR")) == "" && !a.canAsk() {
		return &loop.Fault{
			Exit: loop.ExitError, What: "edit " + f.Shown, Why: "this is not a terminal, and neither VISUAL nor EDITOR is set",
			Fix: "run it on a terminal, or set EDITOR to a program that edits the file that it is given",
		}
	}
	d, err := loops.Edit(f)
	if err != nil {
		return err
	}
	p := a.printer()
	for {
		if err := runEditor(ctx, a, d.Copy); err != nil {
			return err
		}
		changed, err := d.Changed()
		switch {
		case err != nil:
			return err
		case !changed:
			p.Note("%s is unchanged", output.Clean(d.Shown))
			return d.Remove()
		}
		problem := checkDraft(a, d)
		switch askAboutDraft(a, problem) {
		case "e":
		case "s":
			if err := d.Save(); err != nil {
				return err
			}
			p.Note("saved %s", output.Clean(d.Shown))
			return errors.Join(d.Remove(), problem)
		default:
			return &loop.Fault{
				Exit: loop.ExitNotReady, What: d.Shown + " stays as it was", Why: "the edited copy has errors",
				Fix: "your version is kept in " + d.Copy,
			}
		}
	}
}

// checkDraft prints the findings of the copy. The error says why the loop is not
// ready.
func checkDraft(a *app, d loops.Draft) error {
	c, err := d.Check()
	if err != nil {
		printError(a.Err, err, loop.ExitUnreadable)
		return err
	}
	o := checkOptions{least: readiness.LeastScore}
	p := a.printer()
	printFindings(p, c, false)
	printVerdict(p, c, o)
	return notReadyError([]loops.Checked{c}, o)
}

// askAboutDraft returns what to do with the copy: e edits again, s saves, q quits.
// Without a problem it is saved; with one, and nobody to ask, it is not.
func askAboutDraft(a *app, problem error) string {
	switch {
	case problem == nil:
		return "s"
	case !a.canAsk():
		return "q"
	}
	answer, ok := a.ask("e edits again, s saves it as it is, q leaves the definition as it was [e] ")
	switch {
	case !ok:
		return "q"
	case answer == "s" || answer == "q":
		return answer
	}
	return "e"
}

// runEditor runs the person's editor on a file and waits for it.
func runEditor(ctx context.Context, a *app, path string) error {
	line := cmp.Or(strings.TrimSpace(a.lookupEnv("VISUAL")), strings.TrimSpace(a.lookupEnv("EDITOR")), "vi")
	spec := proc.Spec{
		// The variable may hold arguments, which the shell splits.
		Argv: []string{"/bin/sh", "-c", line + ` "$1"`, "sh", path}, Dir: a.Dir, Env: a.Environ, Stdin: a.In, Stdout: a.Out, Stderr: a.Err,
	}
	res, err := proc.Foreground{}.Run(ctx, spec)
	if err == nil && res.Exit != 0 {
		err = fmt.Errorf("it ended with exit status %d", res.Exit)
	}
	if err != nil {
		return &loop.Fault{
			Exit: loop.ExitError, What: "edit with " + line, Why: err.Error(), Err: err, Fix: "set VISUAL or EDITOR to your editor; the copy is " + path,
		}
	}
	return nil
}
