package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

func (a *app) cmdApprovals() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "approvals [LOOP|ID]", Short: "List what waits for a human, or show one question", Args: between(0, 1), ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				ref := strings.Join(args, "")
				if strings.HasPrefix(ref, "ap_") || strings.Contains(ref, "#") {
					v, err := s.Approval(cmd.Context(), ref)
					if err != nil {
						return err
					}
					return a.printApproval(v)
				}
				list, err := s.Approvals(cmd.Context(), ref, all)
				if err != nil {
					return err
				}
				return a.printApprovals(list, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were answered, expired or became void")
	return cmd
}

func (a *app) printApprovals(list []control.ApprovalView, all bool) error {
	if a.json {
		return a.printJSON(listOf("pawl.approvals/v1", list))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.Out, "nothing waits for you.")
		return err
	}
	table := [][]string{{"ID", "RUN", "STATE", "ON YES", "CHANGE", "EXPIRES"}}
	now := a.Now()
	for _, v := range list {
		state := string(v.State)
		if v.By != "" {
			state += " by " + cleanLine(v.By)
		}
		expires := "–"
		if v.State == loop.ApprovalOpen {
			expires = "in " + span(v.Expires.Sub(now))
		}
		table = append(table, []string{v.ID, cleanLine(v.Run), state, excerpt(v.Does, 70), changeOf(v), expires})
	}
	if err := a.columns(table); err != nil || all {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "\npawl approvals ID shows one, pawl approve ID says yes, pawl reject ID says no.\n")
	return err
}

func changeOf(v control.ApprovalView) string {
	if v.Files == 0 {
		return "–"
	}
	return fmt.Sprintf("%s +%d −%d", count(v.Files, "file"), v.Added, v.Removed)
}

// printApproval shows what exactly a yes does, before it is said.
func (a *app) printApproval(v control.ApprovalView) error {
	if a.json {
		return a.printJSON(v)
	}
	p, s := printer{w: a.Out}, a.style()
	p.line("%s", joined("  ", s.bold(v.ID), cleanLine(v.Run), string(v.State)))
	p.field("  ", "on yes", v.Does)
	p.said("  ", "it says", v.Action.Why)
	p.field("  ", "change", changeOf(v))
	p.field("  ", "tree", v.Tree)
	for _, g := range v.Gates {
		p.field("  ", "gate", joined(" ", mark(s, g.Pass), g.Name, countsText(g)))
	}
	for _, flag := range v.Action.Flags {
		p.field("  ", "careful", flag)
	}
	p.field("  ", "hash", v.Hash)
	p.field("  ", "stale", v.Stale)
	if v.State != loop.ApprovalOpen && v.By == "" {
		p.field("  ", "note", v.Note)
	}
	if v.By != "" {
		p.field("  ", "answer", fmt.Sprintf("%s, from %s, %s", v.By, v.From, ago(a.Now(), v.Answered)))
		p.field("  ", "note", v.Note)
	}
	if v.Action.Commit != "" {
		p.field("  ", "look", "pawl diff "+v.Run)
	}
	return p.err
}

// countsText is what a gate said: its exit status, and the tests that reported.
func countsText(g control.GateView) string {
	text := "passes"
	if !g.Pass {
		text = fmt.Sprintf("fails (exit status %d)", g.Exit)
	}
	return joined("; ", joined(", ", text, testsText(g), triesText(g)), g.Note)
}

// triesText is how the tries of a flaky gate went.
func triesText(g control.GateView) string {
	if len(g.Tries) < 2 {
		return ""
	}
	passed := 0
	for _, t := range g.Tries {
		if t.Pass {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d tries passed", passed, len(g.Tries))
}

// testsText is how many tests reported, and how many on the base.
func testsText(g control.GateView) string {
	switch {
	case g.Tests == nil:
		return ""
	case g.Base == nil:
		return count(g.Tests.Ran(), "test") + " reported"
	}
	return fmt.Sprintf("%s reported, %d on the base", count(g.Tests.Ran(), "test"), g.Base.Ran())
}

// span is a time from now in days, hours or minutes.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", max(0, int(d.Minutes())))
}
