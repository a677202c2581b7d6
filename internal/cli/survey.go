package cli

import (
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/readiness"
)

// printSurvey shows what was found, and what is wrong with it.
func (a *app) printSurvey(v control.Survey) {
	p, s := printer{w: a.Out}, a.style()
	p.line("%s", s.bold(clean(v.Root)))
	if len(v.Stacks) == 0 {
		p.line("  no manifest that pawl knows: say how to test with --verify")
	}
	for _, st := range v.Stacks {
		p.line("  %s  %s", s.bold(cleanLine(st.Name)), s.dim(cleanLine(st.Manifest)))
		for _, c := range []struct{ label, line string }{
			{"setup", st.Setup}, {"test", st.Test}, {"lint", st.Lint}, {"typecheck", st.Typecheck}, {"build", st.Build},
		} {
			p.field("    ", c.label, c.line)
		}
		for _, prog := range st.Programs {
			p.field("    ", mark(s, prog.OK), programLine(prog))
		}
		for _, need := range st.Needs {
			p.field("    ", mark(s, false), need)
		}
	}
	if len(v.Agents) == 0 {
		p.line("  no agent is installed (claude, codex, gemini, opencode, qwen, goose)")
	}
	for _, ag := range v.Agents {
		p.field("  ", mark(s, ag.Problem == ""), agentLine(ag))
	}
	for _, problem := range v.Problems {
		p.field("  ", mark(s, false), problem.File+": "+problem.Why)
	}
}

// mark tells good from bad without a colour.
func mark(s style, ok bool) string {
	if ok {
		return s.green("✓")
	}
	return s.yellow("!")
}

func programLine(prog control.ProgramView) string {
	text := joined(" ", prog.Word, prog.Version)
	if prog.Path != "" {
		text += " at " + prog.Path
	}
	if prog.Shim != "" {
		text += " (" + prog.Shim + ")"
	}
	return joined("\n", text, joined("; fix: ", prog.Problem, prog.Fix))
}

func agentLine(ag control.AgentView) string {
	login := "login: " + string(ag.Login)
	if ag.How != "" {
		login += " (" + ag.How + ")"
	}
	return joined("\n", joined(" ", ag.Name, ag.Version)+", "+login, joined("; fix: ", ag.Problem, ag.Fix))
}

// printPlan shows the loop that is proposed and what it would cost.
func (a *app) printPlan(plan initiation, o initOptions) {
	if plan.Loop == nil {
		return
	}
	p, s := printer{w: a.Out}, a.style()
	p.line("")
	p.line("%s  %s, every %s", s.bold("proposed: "+cleanLine(o.Name)), o.Tier, cleanLine(o.Cadence))
	for _, row := range []struct{ label, text string }{
		{"goal", o.Goal},
		{"scope", strings.Join(o.Scope, " ")},
		{"sense", o.Sense},
		{"verify", o.Verify},
		{"guard", o.Guard},
		{"setup", firstOf(o.Setup, o.SetupFound)},
		{"agent", joined(" · ", o.Agent, o.AgentCommand)},
		{"env", strings.Join(o.Env, " ")},
	} {
		p.field("  ", row.label, row.text)
	}
	if e := plan.Estimate; e != nil {
		text := fmt.Sprintf("at most %s a day, %s in %d days with %s; nothing while sense finds nothing", readiness.Money(e.CostPerDay),
			readiness.Money(e.CostPerHorizon), e.Days, e.Model)
		p.field("  ", "cost, USD", text)
	}
	for _, text := range plan.Survey.LeftOut() {
		p.field("  ", mark(s, false), text)
	}
	if dirs := plan.Survey.Packages(); dirs != nil && o.pkg == "" {
		p.line("  %s", s.dim("for a loop of one package: pawl init --package "+clean(strings.Join(dirs, " | "))))
	}
	for _, m := range plan.Missing {
		p.line("  %s %s", mark(s, false), clean(m))
	}
	p.line("  %s", s.dim("writes "+strings.TrimSuffix(plan.Loop.Path, "loop.config.yaml")+" with four files, and a row in pawl's store"))
	if plan.Survey.AgentsFile == "" && !o.agentsMD {
		p.line("  %s", s.dim("there is no AGENTS.md; --agents-md adds this:"))
		p.line("%s", s.dim("    "+indented(control.AgentsSection, "    ")))
	}
}
