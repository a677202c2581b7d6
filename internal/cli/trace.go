package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
)

// traceLines is how many lines a trace has, unless all of it is wanted.
const traceLines = 40

func (a *app) cmdTrace() *cobra.Command {
	full := false
	cmd := &cobra.Command{
		Use: "trace RUN", Short: "Show what each iteration sensed, decided, did, was told and was judged", Args: exactly(1),
		Long: fmt.Sprintf(`Show each iteration of a run in its five steps, with the gates and what they printed.

A trace has at most %d lines; of long texts it shows the end. --full shows everything.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`, traceLines),
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				view, err := s.Run(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printTrace(view, full)
			})
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "show everything, however long it is")
	return cmd
}

func (a *app) printTrace(v control.RunView, full bool) error {
	if a.json {
		return a.printJSON(v)
	}
	text := a.traceText(v, math.MaxInt)
	for _, most := range []int{12, 6, 3, 1} {
		if full || strings.Count(text, "\n") <= traceLines {
			break
		}
		text = a.traceText(v, most)
	}
	if lines := strings.SplitAfter(text, "\n"); !full && len(lines) > traceLines+1 {
		const head = traceLines / 2
		tail := len(lines) - (traceLines - head)
		text = strings.Join(lines[:head], "") + fmt.Sprintf("… %d more lines: pawl trace %s --full\n", tail-head, runName(v)) + strings.Join(lines[tail:], "")
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

// traceText is the trace with the last lines of each longer text.
func (a *app) traceText(v control.RunView, most int) string {
	var b strings.Builder
	p := printer{w: &b}
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
	printed := map[string]int{} // the iteration that shows an output
	for _, it := range v.Iterations {
		a.printIteration(&p, it, most, printed)
	}
	return b.String()
}

func (a *app) printIteration(p *printer, it control.IterationView, most int, printed map[string]int) {
	s := a.style()
	p.line("")
	p.line("%s · %s · %s", s.bold(fmt.Sprintf("iteration %d", it.N)), cleanLine(it.Step), millis(it.MS))
	p.field("  ", "sensed", quotedBelow(ending(it.Sensed, most)))
	p.field("  ", "decided", quotedBelow(ending(it.Decided, most)))
	p.field("  ", "acted", quotedBelow(ending(it.Acted, most)))
	for _, g := range it.Gates {
		p.line("  %s", a.gateLine(g))
		switch before := printed[g.Evidence]; {
		case g.Evidence == "":
		case before != 0:
			p.line("      printed the same as in iteration %d", before)
		default:
			printed[g.Evidence] = it.N
			p.line("      %s", indented(quoted(ending(g.Evidence, most)), "      "))
		}
	}
	p.field("  ", "feedback", ending(feedback(it), most))
	p.field("  ", "verdict", verdict(s, it))
}

// ending is the end of a text that has more lines.
func ending(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= most {
		return text
	}
	return fmt.Sprintf("… %s before\n", count(len(lines)-most, "line")) + strings.Join(lines[len(lines)-most:], "\n")
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
