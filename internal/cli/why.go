package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

func (a *app) cmdWhy() *cobra.Command {
	codes := false
	cmd := &cobra.Command{
		Use: "why RUN", Short: "Say why a run chose what it chose and ended as it did", Args: exactly(1),
		Long: `Say for every decision of a run which candidates there were and which rule chose or dropped each,
why the run ended as it did, and what can be done next.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				why, err := s.Why(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printWhy(why, codes)
			})
		},
	}
	cmd.Flags().BoolVar(&codes, "codes", false, "print the code of each reason too, on which scripts can rely")
	return cmd
}

// unless is a text that says more than another one.
func unless(text, other string) string {
	if text == other {
		return ""
	}
	return text
}

func (a *app) printWhy(w control.Why, codes bool) error {
	if a.json {
		return a.printJSON(w)
	}
	p := printer{w: a.Out}
	code := func(r loop.Reason) string {
		if !codes || r == "" {
			return ""
		}
		return " [" + string(r) + "]"
	}
	p.line("%s · %s%s", a.style().bold(cleanLine(w.Run)), a.style().result(w.Outcome, w.Reason, "has not ended"), code(w.Reason))
	p.detailed("because", w.Reason, w.Detail)
	for _, d := range w.Decisions {
		p.line("decision %d", d.N)
		if len(d.Considered) == 0 {
			p.line("  there were no candidates")
		}
		for _, c := range d.Considered {
			mark := "  –"
			if c.Chosen {
				mark = "  →"
			}
			p.line("%s %s: %s%s", mark, cleanLine(c.Step), c.Reason.Because(cleanLine(c.Detail)), code(c.Reason))
		}
	}
	for _, t := range w.Attempts {
		p.field("", fmt.Sprintf("iteration %d", t.N), joined(": ", string(t.Verdict)+code(t.Reason), firstOf(fedBack(t.Verdict, t.Reason, unless(t.Feedback, t.Reason.Sentence())), t.Reason.Sentence())))
	}
	for _, text := range w.Careful {
		p.field("", "careful", text)
	}
	for _, d := range w.Denied {
		p.field("", "denied", d)
	}
	for _, text := range w.Refused {
		p.field("", "refused", text)
	}
	p.field("", "next", w.Next)
	return p.err
}
