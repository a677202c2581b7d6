package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func newConfigCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Work on definitions", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use: "edit LOOP|PATH", Short: "Edit a definition, check it, and only then save it", Args: exactArgs(1), ValidArgsFunction: completeDefinitions(a),
		Long: `Open a copy of a definition in $VISUAL or $EDITOR. When the editor ends the copy is checked; with errors it can be
edited again. The definition itself is replaced at once and only by what you agree to.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := loops.FindDefinitions(a.formats(), a.workDir(), args[0])
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
	editor := cmp.Or(strings.TrimSpace(a.lookupEnv("VISUAL")), strings.TrimSpace(a.lookupEnv("EDITOR")))
	if editor == "" && !a.canAsk() {
		return &loop.Fault{
			Exit: loop.ExitError, What: "edit " + f.Shown, Why: "this is not a terminal, and neither VISUAL nor EDITOR is set",
			Fix: "run it on a terminal, or set EDITOR to a program that edits the file that it is given",
		}
	}
	d, err := loops.NewDraft(f)
	if err != nil {
		return err
	}
	p := a.printer()
	for {
		err := d.OpenIn(ctx, loops.Editor{Line: cmp.Or(editor, "vi"), Dir: a.Dir, Environ: a.Environ, In: a.In, Out: a.Out, Err: a.Err})
		if err != nil {
			return err
		}
		changed, err := d.IsChanged()
		switch {
		case err != nil:
			return err
		case !changed:
			p.Note("%s is unchanged", output.Clean(d.Shown))
			return d.Remove()
		}
		problem := checkDraft(a, d)
		answer, answered := "s", true
		switch {
		case problem == nil:
		case !a.canAsk():
			answered = false
		default:
			answer, answered = a.ask("e edits again, s saves it as it is, q leaves the definition as it was [e] ")
		}
		switch {
		case !answered || answer == "q":
			return &loop.Fault{
				Exit: loop.ExitNotReady, What: d.Shown + " stays as it was", Why: "the edited copy has errors",
				Fix: "your version is kept in " + d.Copy,
			}
		case answer == "s":
			if err := d.Save(); err != nil {
				return err
			}
			p.Note("saved %s", output.Clean(d.Shown))
			return errors.Join(d.Remove(), problem)
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
	o := checkOptions{least: loops.LeastScore}
	p := a.printer()
	printFindings(p, c, false)
	printVerdict(p, c, o)
	return notReadyError([]loops.Checked{c}, o)
}
