package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
)

func (a *app) cmdWhy() *cobra.Command {
	return &cobra.Command{
		Use: "why RUN", Short: "Say why a run chose what it chose and ended as it did", Args: exactly(1),
		Long: `Say for every decision of a run which candidates there were and which rule chose or dropped each,
why the run ended as it did, and what can be done next.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *control.Service) error {
				why, err := s.Why(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printWhy(why)
			})
		},
	}
}

// unless is a text that says more than another one.
func unless(text, other string) string {
	if text == other {
		return ""
	}
	return text
}

func (a *app) printWhy(w control.Why) error {
	if a.json {
		return a.printJSON(w)
	}
	p := printer{w: a.Out}
	p.line("%s · %s", a.style().bold(cleanLine(w.Run)), a.style().result(w.Outcome, w.Reason, "has not ended"))
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
			p.line("%s %s: %s", mark, cleanLine(c.Step), joined(": ", string(c.Reason), cleanLine(c.Detail)))
		}
	}
	for _, t := range w.Attempts {
		p.field("", fmt.Sprintf("iteration %d", t.N), joined(": ", string(t.Verdict), string(t.Reason), fedBack(t.Verdict, t.Reason, unless(t.Feedback, string(t.Reason)))))
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
