package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

type answerOptions struct {
	by, note string
	yes      bool
	approvals.LandRequest
}

func newApproveCommand(a *app) *cobra.Command {
	var o answerOptions
	cmd := &cobra.Command{
		Use: "approve ID|RUN|LOOP", Short: "Say yes to what waits for you, and do it", Args: exactArgs(1), ValidArgsFunction: completeApprovals(a),
		Long: `Say yes to one question, once, and carry it out. What exactly will happen is shown before, and on a terminal you are
asked again. Without a terminal --yes is required: piped text is not an answer. An answer binds to the action, the tree and
the definition: if any of them moved since, nothing is done and the question is void. If the base moved, nothing lands: the
change is made again there and gated, a new question is asked, and the command exits with 13.

A second answer exits with 16 and says who was first.`,
		Example: "  pawl approvals\n  pawl approve ap_06c… --note 'read the diff'\n  pawl approve keep-tests-green#3 --yes\n  pawl approve keep-tests-green   # its newest open question",
		RunE: func(cmd *cobra.Command, args []string) error {
			return approve(cmd.Context(), a, args[0], o)
		},
	}
	o.addFlags(cmd)
	addYesFlag(cmd, &o.yes)
	return cmd
}

func newRejectCommand(a *app) *cobra.Command {
	var o answerOptions
	changes := false
	cmd := &cobra.Command{
		Use: "reject ID|RUN|LOOP", Short: "Say no to what waits for you", Args: exactArgs(1), ValidArgsFunction: completeApprovals(a),
		Long: `Say no to one question, once. Nothing lands; the branch stays for you to look at or delete.

The loop does not make the same proposal again until its base, its definition or what it found has changed.

With --request-changes the note says what is to be different: a run goes on at once with the same step, from the work that
was proposed, and asks again.`,
		Example: "  pawl reject ap_06c… --note 'changes the API'\n  pawl reject ap_06c… --request-changes --note 'keep the old name as an alias'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withCallerAs(cmd.Context(), a.actor(o.by), a.printProgress, func(c verb.Caller) error {
				v, err := api.Reject.Call(cmd.Context(), c, api.AnswerRequest{Approval: args[0], Note: o.note, Changes: changes})
				if err != nil {
					return err
				}
				return printApproval(a.printer(), v)
			})
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&changes, "request-changes", false, "go on with the step, as the note says")
	return cmd
}

func newLandCommand(a *app) *cobra.Command {
	var o answerOptions
	pr := false
	cmd := &cobra.Command{
		Use: "land RUN", Short: "Land the gated proposal of a run", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Land what a run proposed, exactly the tree that its gates passed, on the branch that it started from: by a
fast-forward, with --merge by a merge commit, or with --pr as a pull request through gh. It is an approval that is asked
and answered at once, with the same checks, and without a terminal --yes is required.`,
		Example: "  pawl land keep-tests-green#3\n  pawl land keep-tests-green --merge --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if pr {
				o.Via = "pr"
			}
			return land(cmd.Context(), a, args[0], o)
		},
	}
	o.addFlags(cmd)
	addYesFlag(cmd, &o.yes)
	cmd.Flags().BoolVar(&o.Merge, "merge", false, "with a merge commit instead of a fast-forward")
	cmd.Flags().BoolVar(&pr, "pr", false, "push the branch and open a pull request instead")
	return cmd
}

func (o *answerOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.by, "by", "", "`who` answers (default: $USER)")
	cmd.Flags().StringVar(&o.note, "note", "", "why, for the record")
}

// approve shows what will happen, asks for consent, and does it.
func approve(ctx context.Context, a *app, ref string, o answerOptions) error {
	if err := a.requireHuman(); err != nil {
		return err
	}
	return a.withCallerAs(ctx, a.actor(o.by), a.printProgress, func(c verb.Caller) error {
		if _, err := verb.RecoverRuns.Call(ctx, c, verb.None{}); err != nil {
			return err
		}
		v, err := api.ShowApproval.Call(ctx, c, api.ApprovalRef{Approval: ref})
		if err != nil {
			return err
		}
		if err := showAndConfirm(a, v, o.yes, "pawl approve "+v.ID); err != nil {
			return err
		}
		run, err := api.Approve.Call(ctx, c, api.AnswerRequest{Approval: v.ID, Note: o.note})
		return printLanded(a.printer(), run, err)
	})
}

// land is approve for a question that it asks itself.
func land(ctx context.Context, a *app, ref string, o answerOptions) error {
	if err := a.requireHuman(); err != nil {
		return err
	}
	return a.withCallerAs(ctx, a.actor(o.by), a.printProgress, func(c verb.Caller) error {
		landing := api.LandingRequest{Run: ref, LandRequest: o.LandRequest}
		v, err := api.ShowLanding.Call(ctx, c, landing)
		if err != nil {
			return err
		}
		if err := showAndConfirm(a, v, o.yes, v.Land.String()); err != nil {
			return err
		}
		landing.Hash, landing.Note = v.Hash, o.note
		run, err := api.Land.Call(ctx, c, landing)
		return printLanded(a.printer(), run, err)
	})
}

// showAndConfirm shows what approving will do, and asks whether to do it.
func showAndConfirm(a *app, v approvals.View, yes bool, command string) error {
	if p := a.printer(); !p.JSON {
		if err := printApproval(p, v); err != nil {
			return err
		}
	}
	return a.requireConsent(yes, v.Does, command)
}

// printLanded prints the run that an approval started. If the base moved, nothing
// landed: there is a run, and an error that says so.
func printLanded(p *output.Printer, run runs.View, err error) error {
	if run.ID == "" {
		return err
	}
	if failed := printAccount(p, run); failed != nil {
		return failed
	}
	return err
}
