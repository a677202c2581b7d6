package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show LOOP|RUN", Short: "Show a loop with its steps, or one run", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: "Show a loop with its steps, or one run.\n\nA RUN is a run id or LOOP#N.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				ref := args[0]
				if strings.HasPrefix(ref, "run_") || strings.Contains(ref, "#") { // No loop has such a name.
					view, err := api.ShowRun.Call(cmd.Context(), c, api.RunRef{Run: ref})
					if err != nil {
						return err
					}
					return printRun(a.printer(), view)
				}
				row, err := api.ShowLoop.Call(cmd.Context(), c, api.LoopRef{Loop: ref})
				if err != nil {
					return err
				}
				return printLoop(a.printer(), row)
			})
		},
	}
}

func printLoop(p *output.Printer, row loops.Row) error {
	if p.JSON {
		return p.WriteJSON(row)
	}
	p.Line("%s · %s · %s", p.Style.Bold(output.CleanLine(row.Name)), orDash(string(row.Tier)), loopState(p.Style, row))
	p.Field("  ", "problem", row.Problem)
	if row.Problem != "" {
		p.Field("  ", "so", describeLastGood(row.LastGood))
	}
	p.Field("  ", "paused", row.Paused)
	p.Field("  ", "goal", row.Goal)
	p.Field("  ", "protocol", row.Protocol)
	p.Field("  ", "cadence", row.Cadence)
	p.Field("  ", "on", strings.Join(row.On, ", "))
	p.Field("  ", "waiting", describeWaiting(row.Waiting))
	if row.Next != nil {
		p.Field("  ", "next", formatMinute(*row.Next))
	}
	if row.Late != nil {
		p.Field("  ", "late", describeLate(row))
	}
	p.Field("  ", "scope", strings.Join(row.Scope, ", "))
	p.Field("  ", "verify", row.Verify)
	p.Field("  ", "guard", row.Guard)
	for _, g := range row.Gates {
		p.Field("  ", string(g.Kind), g.Check)
	}
	p.Field("  ", "agent", row.Agent)
	printFamily(p, "  ", row.Family)
	if row.LastN > 0 {
		p.Field("  ", "last run", fmt.Sprintf("%s#%d %s, %s", row.Name, row.LastN, joinNonEmpty(": ", cmp.Or(string(row.Outcome), row.State), row.Reason.Sentence()),
			p.Ago(row.LastRun)))
		p.Field("  ", "branch", row.Branch)
	}
	if to := row.DeferredTo; to != nil {
		p.Field("  ", "deferred to", fmt.Sprintf("%s#%d", to.Loop, to.N))
	}
	p.Field("  ", "rests", describeRest(row.Rests))
	p.Field("  ", "drift", row.Drift)
	for _, id := range row.Approvals {
		p.Field("  ", "asks you", id+"   (pawl approve "+id+")")
	}
	for _, b := range row.Budgets {
		p.Field("  ", "budget", describeBudget(b))
	}
	if len(row.Steps) > 0 {
		p.Line("  steps")
	}
	for _, step := range row.Steps {
		p.Line("    %-13s %s%s", step.State, output.CleanLine(step.Title), describeProgress(step))
	}
	return p.Err()
}

// printFamily says where a loop comes from that an agent made, and what its own runs have made.
func printFamily(p *output.Printer, indent string, f lookup.Family) {
	if f.Parent != "" {
		p.Field(indent, "made by", fmt.Sprintf("an agent of %s, in %s; depth %d of %d", f.Parent, f.MadeBy, f.Depth, loop.MaxDepth))
	}
	p.Field(indent, "has made", strings.Join(f.Children, " "))
}

// printFiredBy says which events have fired a run.
func printFiredBy(p *output.Printer, indent, event string, list []loop.FiringEvent) {
	if len(list) == 0 {
		p.Field(indent, "fired by", event) // Those that a stopped run gave back are not its own any more.
	}
	for _, e := range list {
		p.Field(indent, "fired by", describeFiringEvent(e))
	}
}

// describeFiringEvent says what happened, how often, and the beginning of what is known of it.
func describeFiringEvent(e loop.FiringEvent) string {
	text := e.Source
	if e.Source == loop.OnRest {
		text = "the end of its rest"
	}
	if e.Source == loop.OnBudget {
		text = "a new day or month of its budget"
	}
	if e.Source == loop.OnMessage {
		text = "an urgent message"
	}
	if e.Times > 1 {
		text += fmt.Sprintf(" (%d times)", e.Times)
	}
	first, rest, cut := strings.Cut(e.Payload, "\n")
	more := ""
	if cut {
		more = " … and " + pluralize(strings.Count(rest, "\n")+1, "more line")
	}
	return joinNonEmpty(": ", text, excerpt(first, 100)+more)
}

// describeWaiting says how many events wait for a loop, and for what.
func describeWaiting(list []loop.FiringEvent) string {
	if len(list) == 0 {
		return ""
	}
	n := 0
	for _, e := range list {
		n += e.Times
	}
	return joinNonEmpty(", ", pluralize(n, "event"), describeWait(list[0]))
}

// describeWait says what an event waits for.
func describeWait(e loop.FiringEvent) string {
	switch {
	case e.Verdict != loop.FiringWaits:
		return ""
	case !e.NotBefore.IsZero():
		return "until " + formatMinute(e.NotBefore)
	case e.Reason == loop.WaitsPaused:
		return "until it is resumed"
	case e.Reason == loop.WaitsRunning:
		return "until its live run has ended"
	case e.Reason == loop.WaitsAnswer:
		return "until somebody answers what the loop asked"
	}
	return "until pawl up fires it"
}

// describeRest says why a loop does not act, and until when.
func describeRest(r *loops.Rest) string {
	switch {
	case r == nil:
		return ""
	case r.Until == nil:
		return "until somebody resumes it: " + r.Reason.Explain(r.Detail)
	}
	return "until " + formatMinute(*r.Until) + ": " + r.Reason.Explain(r.Detail)
}

// describeProgress says how often a step was tried, and what it waits for.
func describeProgress(s loop.Step) string {
	notes := []string{""}
	if s.Attempts > 0 {
		notes = append(notes, pluralize(s.Attempts, "attempt"))
	}
	for _, gate := range slices.Sorted(maps.Keys(s.Tried.Gates)) {
		notes = append(notes, fmt.Sprintf("%s failed %s on the same tree", output.CleanLine(gate), pluralize(s.Tried.Gates[gate].SameTree, "time")))
	}
	if s.WaitsFor != "" && s.State != loop.StepDone {
		notes = append(notes, "waits for "+output.CleanLine(s.WaitsFor))
	}
	return strings.Join(notes, " · ")
}

func printRun(p *output.Printer, v runs.View) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	printRunHead(p, v)
	for _, it := range v.Iterations {
		p.Line("  iteration %d · %s · %s", it.N, styleVerdict(p.Style, it), excerpt(it.Step, 80))
	}
	p.Field("  ", "next", runs.Next(v).String())
	return p.Err()
}

// printRunHead prints what pawl show and pawl trace both say of a run.
func printRunHead(p *output.Printer, v runs.View) {
	p.Line("%s · %s", p.Style.Bold(runName(v)), styleResult(p.Style, v.Outcome, v.Reason, v.State))
	printDetail(p, "why", v.Reason, v.Detail)
	p.QuotedField("  ", "it says", v.Summary)
	p.Field("  ", "request", v.Request)
	printFiredBy(p, "  ", v.Event, v.Events)
	p.Field("  ", "id", v.ID)
	printFamily(p, "  ", v.Family)
	p.Field("  ", "base", shortHash(v.Base))
	if v.Branch != "" {
		p.Field("  ", "branch", v.Branch+" ("+shortHash(v.Commit)+")")
	} else if v.Commit != "" {
		p.Field("  ", "commit", shortHash(v.Commit))
	}
	printUngated(p, v)
	p.Field("  ", "kept in", v.Snapshot)
	p.Field("  ", "approval", joinNonEmpty(" · ", v.Approval, string(v.Answer)))
	if v.Overrides != (loop.Overrides{}) {
		p.Field("  ", "overrides", describeOverrides(v.Overrides))
	}
	p.Field("  ", "when", p.Ago(v.Started))
	p.Field("  ", "agent", joinNonEmpty(", ", v.Agent, describeAuth(v.Auth)))
	p.Field("  ", "tokens", describeTokens(v.Tokens))
	p.Field("  ", "cost", describeCost(v))
	p.Field("  ", "time", describeTimes(v.MS))
	p.Field("  ", "sandbox", describeSandbox(v.Sandbox))
}

// describeAuth says how an agent got at its model, and what that means.
func describeAuth(a loop.Auth) string {
	switch a {
	case loop.AuthInject:
		return "its key stayed outside of the sandbox (inject)"
	case loop.AuthLend:
		return "its login was in the sandbox (lend), model_tools: not enforced"
	}
	return ""
}

// describeCost says what a run cost, with the date of the prices.
func describeCost(v runs.View) string {
	switch {
	case v.CostUSD != nil:
		return fmt.Sprintf("%.4f US dollars, prices as of %s", *v.CostUSD, v.Cost.AsOf) + assumedIn(v.Cost)
	case len(v.Cost.Unpriced) == 0:
		return ""
	}
	why := "no price for " + strings.Join(v.Cost.Unpriced, ", ") + " (pawl prices update --file F adds it)"
	if slices.Contains(v.Cost.Unpriced, "") {
		why = "a model that was used is not known"
	}
	if v.Cost.MicroUSD > 0 {
		bound := "at least "
		if len(v.Cost.Assumed()) > 0 {
			bound = ""
		}
		return bound + fmt.Sprintf("%s US dollars, prices as of %s: %s", loop.FormatDollars(v.Cost.MicroUSD), v.Cost.AsOf, why) + assumedIn(v.Cost)
	}
	return "unknown: " + why
}

// assumedIn says which prices of a cost are assumed; empty: none is.
func assumedIn(c loop.Cost) string {
	if models := c.Assumed(); len(models) > 0 {
		return "; assumed: the price of " + strings.Join(models, ", ") + " (pawl prices update --file F adds the true one)"
	}
	return ""
}

func describeOverrides(o loop.Overrides) string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"agent", o.Agent}, {"agent_command", o.AgentCommand}, {"model", o.Model}, {"sandbox", o.Sandbox}, {"hint", o.Hint}} {
		if part.value != "" {
			parts = append(parts, part.name+": "+part.value)
		}
	}
	if o.MaxIterations > 0 {
		parts = append(parts, fmt.Sprintf("max_iterations: %d", o.MaxIterations))
	}
	if o.Step != "" {
		parts = append([]string{"base " + shortHash(o.Base), "one step"}, parts...)
	}
	return strings.Join(parts, ", ")
}

// styleVerdict is the judgement of an iteration with its reason.
func styleVerdict(s output.Style, it runs.Iteration) string {
	text := joinNonEmpty(": ", string(it.Verdict), it.Reason.Sentence())
	switch it.Verdict {
	case loop.VerdictPass:
		return s.Green("✓ " + text)
	case loop.VerdictFail:
		return s.Red("✗ " + text)
	case loop.VerdictPending:
		return s.Yellow("! " + text)
	case loop.VerdictIntended:
	}
	return "… " + text
}
