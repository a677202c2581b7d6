package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/readiness"
)

func (a *app) cmdConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Work on definitions", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use: "edit LOOP|PATH", Short: "Edit a definition, check it, and only then save it", Args: exactly(1), ValidArgsFunction: a.completeDefinitions,
		Long: `Open a copy of a definition in $VISUAL or $EDITOR. When the editor ends the copy is checked; with errors it can be
edited again. The definition itself is replaced at once and only by what you agree to.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := control.Definitions(a.dir(), args[0])
			if err != nil {
				return err
			}
			return a.edit(cmd.Context(), all[0])
		},
	})
	return cmd
}

// edit goes round until the copy is saved or given up. A copy that was not
// saved is kept and named, because nothing that a person wrote is lost.
func (a *app) edit(ctx context.Context, f control.Found) error {
	if strings.TrimSpace(a.variable("VISUAL")+a.variable("EDITOR")) == "" && !a.asks() {
		return &loop.Fault{
			Exit: loop.ExitError, What: "edit " + f.Shown, Why: "this is no terminal, and neither VISUAL nor EDITOR is set",
			Fix: "run it on a terminal, or set EDITOR to a program that edits the file that it is given",
		}
	}
	d, err := control.Edit(f)
	if err != nil {
		return err
	}
	for {
		if err := a.editor(ctx, d.Copy); err != nil {
			return err
		}
		changed, err := d.Changed()
		switch {
		case err != nil:
			return err
		case !changed:
			_, _ = fmt.Fprintf(a.Err, "%s is unchanged\n", clean(d.Shown))
			return d.Remove()
		}
		wrong := a.judge(d)
		switch a.verdict(wrong) {
		case "e":
		case "s":
			if err := d.Save(); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(a.Err, "saved %s\n", clean(d.Shown))
			return errors.Join(d.Remove(), wrong)
		default:
			return &loop.Fault{
				Exit: loop.ExitNotReady, What: d.Shown + " stays as it was", Why: "the edited copy has errors",
				Fix: "your version is kept in " + d.Copy,
			}
		}
	}
}

// judge prints what is wrong with the copy and returns it as an error, if it
// keeps the loop from running.
func (a *app) judge(d control.Draft) error {
	c, err := d.Check()
	if err != nil {
		a.explain(err, loop.ExitUnreadable)
		return err
	}
	o := checkOptions{least: readiness.LeastScore}
	a.findings(c, false)
	a.panel(c, o)
	return notReady([]control.Checked{c}, o)
}

// verdict is what to do with the copy: e edits again, s saves, q leaves. What
// has no errors is saved; with nobody to ask, what has some is not.
func (a *app) verdict(wrong error) string {
	switch {
	case wrong == nil:
		return "s"
	case !a.asks():
		return "q"
	}
	answer, ok := a.answer("e edits again, s saves it as it is, q leaves the definition as it was [e] ")
	switch {
	case !ok:
		return "q"
	case answer == "s" || answer == "q":
		return answer
	}
	return "e"
}

// editor runs the person's editor on a file and waits for it.
func (a *app) editor(ctx context.Context, path string) error {
	line := cmp.Or(strings.TrimSpace(a.variable("VISUAL")), strings.TrimSpace(a.variable("EDITOR")), "vi")
	spec := proc.Spec{
		// The variable may hold arguments, which is for the shell to part.
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
