package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

// printSurvey shows what was found, and what is wrong with it.
func printSurvey(p *output.Printer, v setup.Survey) {
	s := p.Style
	p.Line("%s", s.Bold(output.Clean(v.Root)))
	if len(v.Stacks) == 0 {
		p.Line("  no manifest that pawl knows: say how to test with --verify")
	}
	for _, st := range v.Stacks {
		p.Line("  %s  %s", s.Bold(output.CleanLine(st.Name)), s.Dim(output.CleanLine(st.Manifest)))
		for _, c := range []struct{ label, line string }{
			{"setup", st.Setup}, {"test", st.Test}, {"lint", st.Lint}, {"typecheck", st.Typecheck}, {"build", st.Build},
		} {
			p.Field("    ", c.label, c.line)
		}
		for _, prog := range st.Programs {
			text := joinNonEmpty(" ", prog.Word, prog.Version)
			if prog.Path != "" {
				text += " at " + prog.Path
			}
			if prog.Shim != "" {
				text += " (" + prog.Shim + ")"
			}
			p.Field("    ", mark(s, prog.OK), joinNonEmpty("\n", text, joinNonEmpty("; fix: ", prog.Problem, prog.Fix)))
		}
		for _, need := range st.Needs {
			p.Field("    ", mark(s, false), need)
		}
	}
	if len(v.Agents) == 0 {
		p.Line("  no agent is installed (claude, codex, gemini, opencode, qwen, goose)")
	}
	for _, ag := range v.Agents {
		text := joinNonEmpty(" ", ag.Name, ag.Version) + ", login: " + string(ag.Login)
		if ag.How != "" {
			text += " (" + ag.How + ")"
		}
		p.Field("  ", mark(s, ag.Problem == ""), joinNonEmpty("\n", text, joinNonEmpty("; fix: ", ag.Problem, ag.Fix)))
	}
	for _, problem := range v.Problems {
		p.Field("  ", mark(s, false), problem.File+": "+problem.Why)
	}
}

// printInitPlan shows the loop that is proposed and what it would cost.
func printInitPlan(p *output.Printer, plan setup.Initiation, o initOptions) {
	if plan.Loop == nil {
		return
	}
	s := p.Style
	p.Line("")
	p.Line("%s  %s, every %s", s.Bold("proposed: "+output.CleanLine(o.Name)), o.Tier, output.CleanLine(o.Cadence))
	for _, row := range []struct{ label, text string }{
		{"goal", o.Goal},
		{"scope", strings.Join(o.Scope, " ")},
		{"sense", o.Sense},
		{"verify", o.Verify},
		{"guard", o.Guard},
		{"setup", cmp.Or(o.Setup, o.SetupFound)},
		{"agent", joinNonEmpty(" · ", o.Agent, o.AgentCommand)},
		{"env", strings.Join(o.Env, " ")},
	} {
		p.Field("  ", row.label, row.text)
	}
	if e := plan.Estimate; e != nil {
		bound, with := "at most", e.Model
		if e.Assumed != "" {
			bound, with = "about", e.Model+" (assumed price)"
		}
		text := fmt.Sprintf("%s %s a day, %s in %d days with %s; nothing while sense finds nothing", bound, formatMoney(e.CostPerDay),
			formatMoney(e.CostPerHorizon), e.Days, with)
		p.Field("  ", "cost, USD", text)
	}
	for _, text := range plan.Survey.LeftOut() {
		p.Field("  ", mark(s, false), text)
	}
	if dirs := plan.Survey.Packages(); dirs != nil && o.pkg == "" {
		p.Line("  %s", s.Dim("for a loop of one package: pawl init --package "+output.Clean(strings.Join(dirs, " | "))))
	}
	for _, m := range plan.Missing {
		p.Line("  %s %s", mark(s, false), output.Clean(m))
	}
	p.Line("  %s", s.Dim("writes "+strings.TrimSuffix(plan.Loop.Path, "loop.config.yaml")+" with four files, and a row in pawl's store"))
	if plan.Survey.AgentsFile == "" && !o.agentsMD {
		p.Line("  %s", s.Dim("there is no AGENTS.md; --agents-md adds this:"))
		p.Line("%s", s.Dim("    "+output.Indent(setup.AgentsSection, "    ")))
	}
}
