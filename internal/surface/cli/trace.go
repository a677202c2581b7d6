package cli

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// traceLines is the most lines of a trace without --full.
const traceLines = 40

func newTraceCommand(a *app) *cobra.Command {
	full := false
	cmd := &cobra.Command{
		Use: "trace RUN", Short: "Show what each iteration sensed, decided, did, was told and was judged", Args: exactArgs(1),
		Long: fmt.Sprintf(`Show each iteration of a run in its five steps, with the gates and what they printed.

A trace has at most %d lines; of long texts it shows the end. --full shows everything.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`, traceLines),
		ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				view, err := api.ShowRun.Call(cmd.Context(), c, api.RunRef{Run: args[0]})
				if err != nil {
					return err
				}
				return printTrace(a.printer(), view, full)
			})
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "show everything, however long it is")
	return cmd
}

func printTrace(p *output.Printer, v runs.View, full bool) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	text := traceText(p, v, math.MaxInt)
	for _, most := range []int{12, 6, 3, 1} {
		if full || strings.Count(text, "\n") <= traceLines {
			break
		}
		text = traceText(p, v, most)
	}
	if lines := strings.SplitAfter(text, "\n"); !full && len(lines) > traceLines+1 {
		const head = traceLines / 2
		tail := len(lines) - (traceLines - head)
		text = strings.Join(lines[:head], "") + fmt.Sprintf("… %d more lines: pawl trace %s --full\n", tail-head, runName(v)) + strings.Join(lines[tail:], "")
	}
	p.Text(text)
	return p.Err()
}

// traceText is the trace with only the last lines of longer texts.
func traceText(to *output.Printer, v runs.View, most int) string {
	var b strings.Builder
	p := &output.Printer{Out: &b, Now: to.Now, Style: to.Style}
	printRunHead(p, v)
	if len(v.Iterations) == 0 {
		p.Line("")
		p.Line("no iterations: nothing was worked on (pawl why %s says why)", runName(v))
	}
	for i, f := range v.Instructions {
		if i == 0 {
			p.Line("")
			p.Line("%s", p.Style.Bold("instructions of the repository, at the base"))
		}
		p.Line("  %s", describeInstruction(f))
	}
	for i, call := range v.Calls {
		if i == 0 {
			p.Line("")
			p.Line("%s", p.Style.Bold("calls of pawl's own tools by the agent"))
		}
		p.Line("  %s", output.CleanLine(call))
	}
	printed := map[string]int{}
	for _, it := range v.Iterations {
		printIteration(p, it, reviewsIn(v, it.N), most, printed)
	}
	return b.String()
}

// reviewsIn are the turns in which other agents reviewed an iteration, in words.
func reviewsIn(v runs.View, iteration int) (reviews []string) {
	for _, t := range v.Turns {
		if t.Iteration != iteration || t.Purpose != loop.PurposeReview {
			continue
		}
		var models []string
		for _, m := range t.Models {
			models = append(models, m.Model)
		}
		model := cmp.Or(strings.Join(models, " and "), t.Model)
		reviews = append(reviews, joinNonEmpty(", ", "@"+t.Agent, model, formatNumber(loop.Usage(t.Tokens).ChargedTokens())+" tokens", formatMillis(t.MS)))
	}
	return reviews
}

// printIteration prints an iteration with its reviews. Printed says which iteration has
// shown an output already.
func printIteration(p *output.Printer, it runs.Iteration, reviews []string, most int, printed map[string]int) {
	p.Line("")
	p.Line("%s · %s · %s", p.Style.Bold(fmt.Sprintf("iteration %d", it.N)), output.CleanLine(it.Step), formatMillis(it.MS))
	p.Field("  ", "sensed", output.QuoteBelow(lastLines(it.Sensed, most)))
	p.Field("  ", "decided", output.QuoteBelow(lastLines(it.Decided, most)))
	p.Field("  ", "acted", output.QuoteBelow(lastLines(it.Acted, most)))
	p.Field("  ", "reviewed", output.CleanLine(strings.Join(reviews, "; ")))
	// What the next attempt was told, without the output that a gate shows above it.
	feedback := quoteFeedback(it.Verdict, it.Reason, clearIfEqual(it.Feedback, it.Reason.Sentence()))
	for _, g := range it.Gates {
		p.Line("  %s", describeGateRun(p.Style, g))
		switch before := printed[g.Evidence]; {
		case g.Evidence == "":
		case before != 0:
			p.Line("      printed the same as in iteration %d", before)
		default:
			printed[g.Evidence] = it.N
			p.Line("      %s", output.Indent(output.Quote(lastLines(g.Evidence, most)), "      "))
		}
		if told, repeats := strings.CutSuffix(it.Feedback, ":\n"+g.Evidence); repeats && g.Evidence != "" {
			feedback = told + ", with what it printed"
		}
	}
	p.Field("  ", "feedback", lastLines(feedback, most))
	p.Field("  ", "verdict", styleVerdict(p.Style, it))
}

// lastLines is the end of a text that has more lines.
func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= most {
		return text
	}
	return fmt.Sprintf("… %s before\n", pluralize(len(lines)-most, "line")) + strings.Join(lines[len(lines)-most:], "\n")
}

// describeGateRun is what one run of a gate said, with its exit status and time.
func describeGateRun(s output.Style, g runs.Gate) string {
	text := fmt.Sprintf("%s (%s)", output.CleanLine(g.Name), g.Kind)
	if g.Kind == string(loop.GateCommand) {
		text += fmt.Sprintf(" exit %d, %s", g.Exit, formatMillis(g.MS))
	}
	text = joinNonEmpty("; ", text, countTests(g), countTries(g), output.CleanLine(g.Note))
	switch {
	case g.Pass:
		return s.Green("✓ " + text)
	case g.Pending:
		return s.Yellow("! " + text)
	}
	return s.Red("✗ " + text)
}
