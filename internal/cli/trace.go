package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
)

func (a *app) cmdTrace() *cobra.Command {
	return &cobra.Command{
		Use: "trace RUN", Short: "Show what each iteration sensed, decided, did, was told and was judged", Args: exactly(1),
		Long: `Show each iteration of a run in its five steps, with the gates and what they printed.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *control.Service) error {
				view, err := s.Run(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printTrace(view)
			})
		},
	}
}

func (a *app) printTrace(v control.RunView) error {
	if a.json {
		return a.printJSON(v)
	}
	p := printer{w: a.Out}
	a.runHead(&p, v)
	if len(v.Iterations) == 0 {
		p.line("")
		p.line("no iterations: nothing was worked on (pawl why %s says why)", runName(v))
	}
	for i, f := range v.Instructions {
		if i == 0 {
			p.line("")
			p.line("%s", a.style().bold("instructions of the repository, at the base"))
		}
		p.line("  %s", instructionLine(f))
	}
	for _, it := range v.Iterations {
		a.printIteration(&p, it)
	}
	return p.err
}

func (a *app) printIteration(p *printer, it control.IterationView) {
	s := a.style()
	p.line("")
	p.line("%s · %s · %s", s.bold(fmt.Sprintf("iteration %d", it.N)), cleanLine(it.Step), millis(it.MS))
	p.field("  ", "sensed", quotedBelow(it.Sensed))
	p.field("  ", "decided", quotedBelow(it.Decided))
	p.field("  ", "acted", quotedBelow(it.Acted))
	for _, g := range it.Gates {
		p.line("  %s", a.gateLine(g))
		if g.Evidence != "" {
			p.line("      %s", indented(quoted(g.Evidence), "      "))
		}
	}
	p.field("  ", "feedback", feedback(it))
	p.field("  ", "verdict", verdict(s, it))
}

func (a *app) gateLine(g control.GateView) string {
	text := fmt.Sprintf("%s (%s) exit %d, %s", cleanLine(g.Name), g.Kind, g.Exit, millis(g.MS))
	text = joined("; ", text, testsText(g), triesText(g), cleanLine(g.Note))
	if g.Pass {
		return a.style().green("✓ " + text)
	}
	return a.style().red("✗ " + text)
}

// feedback is what the next attempt was told, without the evidence that stands
// above it.
func feedback(it control.IterationView) string {
	for _, g := range it.Gates {
		if head, repeats := strings.CutSuffix(it.Feedback, ":\n"+g.Evidence); repeats && g.Evidence != "" {
			return head + ", with what it printed"
		}
	}
	return fedBack(it.Verdict, it.Reason, unless(it.Feedback, it.Reason.Sentence()))
}
