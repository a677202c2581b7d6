package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newApprovalsCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "approvals [LOOP|ID]", Short: "List what waits for a human, or show one question", Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				ref := strings.Join(args, "")
				if strings.HasPrefix(ref, "ap_") || strings.Contains(ref, "#") {
					v, err := api.ShowApproval.Call(cmd.Context(), c, api.ApprovalRef{Approval: ref})
					if err != nil {
						return err
					}
					return printApproval(a.printer(), v)
				}
				list, err := api.ListApprovals.Call(cmd.Context(), c, api.ApprovalQuery{Loop: ref, All: all})
				if err != nil {
					return err
				}
				return printApprovals(a.printer(), list, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were answered, expired or became void")
	return cmd
}

func printApprovals(p *output.Printer, rows []approvals.View, all bool) error {
	list := output.List[approvals.View]{
		Schema: "pawl.approvals/v1", Heading: []string{"ID", "RUN", "STATE", "ON YES", "CHANGE", "EXPIRES"}, Empty: "nothing waits for you.",
		Cells: func(v approvals.View) []string {
			state, expires := string(v.State), "–"
			if v.By != "" {
				state += " by " + output.CleanLine(v.By)
			}
			if slices.Contains(loop.PendingStates(), v.State) {
				expires = "in " + formatSpan(v.Expires.Sub(p.Now()))
			}
			return []string{v.ID, output.CleanLine(v.Run), state, excerpt(v.Does, 70), describeChange(v), expires}
		},
	}
	if !all {
		list.Below = func() {
			p.Line("")
			p.Line("pawl approvals ID shows one, pawl approve ID says yes, pawl reject ID says no.")
		}
	}
	return list.Print(p, rows)
}

func describeChange(v approvals.View) string {
	if v.Files == 0 {
		return "–"
	}
	return fmt.Sprintf("%s +%d −%d", pluralize(v.Files, "file"), v.Added, v.Removed)
}

// printApproval shows a question and what happens if it is approved.
func printApproval(p *output.Printer, v approvals.View) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s", joinNonEmpty("  ", p.Style.Bold(v.ID), output.CleanLine(v.Run), string(v.State)))
	p.Field("  ", "on yes", v.Does)
	says := "it says"
	if v.Action.Kind == loop.ActionQuestion {
		says = "it asks"
	}
	p.QuotedField("  ", says, v.Action.Why)
	p.Field("  ", "change", describeChange(v))
	p.Field("  ", "tree", v.Tree)
	for _, g := range v.Gates {
		verdict := "passes"
		if !g.Pass {
			verdict = fmt.Sprintf("fails (exit status %d)", g.Exit)
		}
		verdict = joinNonEmpty(", ", verdict, countTests(g), countTries(g))
		p.Field("  ", "gate", joinNonEmpty(" ", mark(p.Style, g.Pass), g.Name, joinNonEmpty("; ", verdict, g.Note)))
	}
	for _, flag := range v.Action.Flags {
		p.Field("  ", "careful", flag)
	}
	p.Field("  ", "hash", v.Hash)
	p.Field("  ", "stale", v.Stale)
	if v.Node != "" {
		p.Field("  ", "on node", output.CleanLine(v.Node)+", in "+output.CleanLine(v.Path)+": answer it there")
	}
	if v.State != loop.ApprovalOpen && v.By == "" {
		p.Field("  ", "note", v.Note)
	}
	if v.By != "" {
		p.Field("  ", "answer", fmt.Sprintf("%s, from %s, %s", v.By, v.From, p.Ago(v.Answered)))
		p.Field("  ", "note", v.Note)
	}
	p.Field("  ", "not landed", output.CleanLine(v.Failure))
	switch {
	case v.Action.Kind == loop.ActionPush:
		p.Field("  ", "look", "git log -p "+shortHash(v.Action.Onto)+".."+shortHash(v.Action.Commit))
	case v.Action.Commit != "":
		p.Field("  ", "look", "pawl diff "+v.Run)
	}
	return p.Err()
}

// formatSpan is a time from now in days, hours or minutes.
func formatSpan(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", max(0, int(d.Minutes())))
}
