package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
)

func (a *app) cmdShow() *cobra.Command {
	return &cobra.Command{
		Use: "show LOOP|RUN", Short: "Show a loop with its steps, or one run", Args: exactly(1), ValidArgsFunction: a.completeLoops,
		Long: "Show a loop with its steps, or one run.\n\nA RUN is a run id or LOOP#N.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				if isRun(args[0]) {
					view, err := s.Run(cmd.Context(), args[0])
					if err != nil {
						return err
					}
					return a.printRun(view)
				}
				row, err := s.Show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printLoop(row)
			})
		},
	}
}

// isRun tells a run from a loop: a loop's name has no number sign.
func isRun(ref string) bool { return strings.HasPrefix(ref, "run_") || strings.Contains(ref, "#") }

func (a *app) printLoop(row control.LoopRow) error {
	if a.json {
		return a.printJSON(row)
	}
	p := printer{w: a.Out}
	p.line("%s · %s · %s", a.style().bold(cleanLine(row.Name)), orDash(string(row.Tier)), a.loopState(row))
	p.field("  ", "problem", row.Problem)
	p.field("  ", "paused", row.Paused)
	p.field("  ", "goal", row.Goal)
	p.field("  ", "protocol", row.Protocol)
	p.field("  ", "cadence", row.Cadence)
	p.field("  ", "scope", strings.Join(row.Scope, ", "))
	p.field("  ", "verify", row.Verify)
	p.field("  ", "guard", row.Guard)
	p.field("  ", "agent", row.Agent)
	if row.LastN > 0 {
		p.field("  ", "last run", fmt.Sprintf("%s#%d %s, %s", row.Name, row.LastN, joined(": ", firstOf(string(row.Outcome), row.State), row.Reason.Sentence()),
			ago(a.Now(), row.LastRun)))
		p.field("  ", "branch", row.Branch)
	}
	p.field("  ", "rests", restText(row.Rests))
	p.field("  ", "drift", row.Drift)
	for _, id := range row.Approvals {
		p.field("  ", "asks you", id+"   (pawl approve "+id+")")
	}
	for _, b := range row.Budgets {
		p.field("  ", "budget", burnDown(b))
	}
	if len(row.Steps) > 0 {
		p.line("  steps")
	}
	for _, step := range row.Steps {
		p.line("    %-13s %s%s", step.State, cleanLine(step.Title), stepNotes(step))
	}
	return p.err
}

// restText says why a loop does not act, and until when.
func restText(r *control.RestView) string {
	switch {
	case r == nil:
		return ""
	case r.Until == nil:
		return "until somebody resumes it: " + r.Reason.Because(r.Detail)
	}
	return "until " + r.Until.UTC().Format("2006-01-02 15:04 UTC") + ": " + r.Reason.Because(r.Detail)
}

func stepNotes(s loop.Step) string {
	notes := ""
	if s.Attempts > 0 {
		notes += " · " + count(s.Attempts, "attempt")
	}
	if s.Streak > 0 {
		notes += fmt.Sprintf(" · %s failed %s on the same tree", s.StreakGate, count(s.Streak, "time"))
	}
	if s.WaitsFor != "" {
		notes += " · waits for " + cleanLine(s.WaitsFor)
	}
	return notes
}

func (a *app) printRun(v control.RunView) error {
	if a.json {
		return a.printJSON(v)
	}
	p := printer{w: a.Out}
	a.runHead(&p, v)
	for _, it := range v.Iterations {
		p.line("  iteration %d · %s · %s", it.N, verdict(a.style(), it), excerpt(it.Step, 80))
	}
	p.field("  ", "next", control.Next(v))
	return p.err
}

// runHead is the account of a run that every command prints alike.
func (a *app) runHead(p *printer, v control.RunView) {
	p.line("%s · %s", a.style().bold(runName(v)), a.style().result(v.Outcome, v.Reason, v.State))
	p.detailed("why", v.Reason, v.Detail)
	p.said("  ", "it says", v.Summary)
	p.field("  ", "request", v.Request)
	p.field("  ", "id", v.ID)
	p.field("  ", "base", shortHash(v.Base))
	if v.Branch != "" {
		p.field("  ", "branch", v.Branch+" ("+shortHash(v.Commit)+")")
	}
	p.field("  ", "kept in", v.Snapshot)
	p.field("  ", "approval", joined(" · ", v.Approval, string(v.Answer)))
	if v.Overrides != (loop.Overrides{}) {
		p.field("  ", "overrides", overrides(v.Overrides))
	}
	p.field("  ", "when", ago(a.Now(), v.Started))
	p.field("  ", "agent", joined(", ", v.Agent, authText(v.Auth)))
	p.field("  ", "tokens", tokens(v.Tokens))
	p.field("  ", "cost", costText(v))
	p.field("  ", "time", spent(v.MS))
	p.field("  ", "sandbox", sandbox(v.Sandbox))
}

// authText says how an agent got at its model, and what that means.
func authText(a loop.Auth) string {
	switch a {
	case loop.AuthInject:
		return "its key stayed outside of the sandbox (inject)"
	case loop.AuthLend:
		return "its login was in the sandbox (lend), model_tools: not enforced"
	}
	return ""
}

// costText is what a run cost, with the date of the prices.
func costText(v control.RunView) string {
	switch {
	case v.CostUSD != nil:
		return fmt.Sprintf("%.4f US dollars, prices as of %s", *v.CostUSD, v.Cost.AsOf)
	case len(v.Cost.Unpriced) == 0:
		return ""
	}
	why := "no price for " + strings.Join(v.Cost.Unpriced, ", ") + " (pawl prices update --file F adds it)"
	if slices.Contains(v.Cost.Unpriced, "") {
		why = "a model that was used is not known"
	}
	if v.Cost.MicroUSD > 0 {
		return fmt.Sprintf("at least %s US dollars, prices as of %s: %s", plan.Dollars(v.Cost.MicroUSD), v.Cost.AsOf, why)
	}
	return "unknown: " + why
}

func overrides(o loop.Overrides) string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"agent", o.Agent}, {"agent_command", o.AgentCommand}, {"model", o.Model}, {"sandbox", o.Sandbox}} {
		if part.value != "" {
			parts = append(parts, part.name+": "+part.value)
		}
	}
	if o.MaxIterations > 0 {
		parts = append(parts, fmt.Sprintf("max_iterations: %d", o.MaxIterations))
	}
	return strings.Join(parts, ", ")
}

// verdict is the judgement of an iteration with its reason.
func verdict(s style, it control.IterationView) string {
	text := joined(": ", string(it.Verdict), it.Reason.Sentence())
	switch it.Verdict {
	case loop.VerdictPass:
		return s.green("✓ " + text)
	case loop.VerdictFail:
		return s.red("✗ " + text)
	case loop.VerdictPending:
		return s.yellow("! " + text)
	case loop.VerdictIntended:
	}
	return "… " + text
}
