package cli

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

type answerOptions struct {
	by, note string
	yes      bool
	control.LandRequest
}

func (a *app) cmdApprove() *cobra.Command {
	var o answerOptions
	cmd := &cobra.Command{
		Use: "approve ID|RUN|LOOP", Short: "Say yes to what waits for you, and do it", Args: exactly(1), ValidArgsFunction: a.completeApprovals,
		Long: `Say yes to one question, once, and carry it out. What exactly will happen is shown before, and on a terminal you are
asked again. Without a terminal --yes is required: piped text is not an answer. An answer binds to the action, the tree and
the definition: if any of them moved since, nothing is done and the question is void. If the base moved, nothing lands: the
change is made again there and gated, a new question is asked, and the command exits with 13.

A second answer exits with 16 and says who was first.`,
		Example: "  pawl approvals\n  pawl approve ap_06c… --note 'read the diff'\n  pawl approve keep-tests-green#3 --yes\n  pawl approve keep-tests-green   # its newest open question",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answering(cmd.Context(), args[0], o, true)
		},
	}
	o.flags(cmd)
	yesFlag(cmd, &o.yes)
	return cmd
}

func (a *app) cmdReject() *cobra.Command {
	var o answerOptions
	cmd := &cobra.Command{
		Use: "reject ID|RUN|LOOP", Short: "Say no to what waits for you", Args: exactly(1), ValidArgsFunction: a.completeApprovals,
		Long: `Say no to one question, once. Nothing lands; the branch stays for you to look at or delete.

The loop does not make the same proposal again until its base, its definition or what it found has changed. To ask for
something else at once: pawl run LOOP --request "what should be different".`,
		Example: "  pawl reject ap_06c… --note 'changes the API'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answering(cmd.Context(), args[0], o, false)
		},
	}
	o.flags(cmd)
	return cmd
}

func (a *app) cmdLand() *cobra.Command {
	var o answerOptions
	cmd := &cobra.Command{
		Use: "land RUN", Short: "Land the gated proposal of a run", Args: exactly(1), ValidArgsFunction: a.completeLoops,
		Long: `Land what a run proposed, exactly the tree that its gates passed, on the branch that it started from: by a
fast-forward, with --merge by a merge commit, or with --pr as a pull request through gh. It is an approval that is asked
and answered at once, with the same checks, and without a terminal --yes is required.`,
		Example: "  pawl land keep-tests-green#3\n  pawl land keep-tests-green --merge --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.landing(cmd.Context(), args[0], o)
		},
	}
	o.flags(cmd)
	yesFlag(cmd, &o.yes)
	cmd.Flags().BoolVar(&o.Merge, "merge", false, "with a merge commit instead of a fast-forward")
	var pr bool
	cmd.Flags().BoolVar(&pr, "pr", false, "push the branch and open a pull request instead")
	cmd.PreRun = func(*cobra.Command, []string) {
		if pr {
			o.Via = "pr"
		}
	}
	return cmd
}

func (o *answerOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.by, "by", "", "`who` answers (default: $USER)")
	cmd.Flags().StringVar(&o.note, "note", "", "why, for the record")
}

// answering shows what it is about and then answers it.
func (a *app) answering(ctx context.Context, ref string, o answerOptions, yes bool) error {
	if err := a.human(); err != nil {
		return err
	}
	return a.writing(ctx, nil, func(s *compose.Verbs) error {
		v, err := s.Approval(ctx, ref)
		if err != nil {
			return err
		}
		if !yes {
			v, err := s.Reject(ctx, v.ID, a.answerBy(o))
			if err != nil {
				return err
			}
			return a.printApproval(v)
		}
		if err := a.agreed(v, o, "pawl approve "+v.ID); err != nil {
			return err
		}
		return a.carriedOut(s.Approve(ctx, v.ID, a.answerBy(o)))
	})
}

func (a *app) landing(ctx context.Context, ref string, o answerOptions) error {
	if err := a.human(); err != nil {
		return err
	}
	return a.writing(ctx, nil, func(s *compose.Verbs) error {
		v, err := s.Landing(ctx, ref, o.LandRequest)
		if err != nil {
			return err
		}
		if err := a.agreed(v, o, v.LandCommand()); err != nil {
			return err
		}
		return a.carriedOut(s.Land(ctx, v, a.answerBy(o)))
	})
}

// agreed shows what approving would do, and asks whether to do it.
func (a *app) agreed(v control.ApprovalView, o answerOptions, command string) error {
	if !a.json {
		if err := a.printApproval(v); err != nil {
			return err
		}
	}
	return a.consent(o.yes, v.Does, command)
}

// carriedOut prints the run that a yes fired. One that landed nothing, because the
// base moved, comes with the error that says so.
func (a *app) carriedOut(view control.RunView, err error) error {
	if view.ID == "" {
		return err
	}
	if printed := a.account(view); printed != nil {
		return printed
	}
	return err
}

// human refuses the answers of agents: what runs inside of a run knows its id.
func (a *app) human() error {
	if run := a.variable("PAWL_RUN"); run != "" {
		return &loop.Fault{
			Exit: loop.ExitRefused, What: "an agent cannot answer", Why: "this process is part of run " + run, Fix: "let a human answer, outside of the run",
		}
	}
	return nil
}

// answerBy says who answers, and where.
func (a *app) answerBy(o answerOptions) loop.Answer {
	by := a.actor(o.by)
	return loop.Answer{By: by.Who, From: by.From, Note: o.note}
}

// actor is who uses the command: a person by the name given or by their account, or
// the agent of a run.
func (a *app) actor(name string) loop.Actor {
	who := cmp.Or(name, a.variable("USER"), a.variable("LOGNAME"), "somebody")
	if host, err := os.Hostname(); err == nil && name == "" {
		who += "@" + host
	}
	if run := a.variable("PAWL_RUN"); run != "" {
		return loop.Actor{Who: run, Role: loop.RoleAgent, From: "cli"}
	}
	return loop.Actor{Who: who, Role: loop.RoleHuman, From: "cli"}
}

// completeApprovals offers the open questions.
func (a *app) completeApprovals(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var words []string
	err := a.reading(cmd.Context(), func(s *compose.Verbs) error {
		list, err := s.Approvals(cmd.Context(), "", false)
		for _, v := range list {
			words = append(words, v.ID+"\t"+strings.TrimSpace(v.Run+" "+v.Does))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return firstOnly(words)(cmd, args, prefix)
}
