package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newWhyCommand(a *app) *cobra.Command {
	codes := false
	cmd := &cobra.Command{
		Use: "why RUN", Short: "Say why a run chose what it chose and ended as it did", Args: exactArgs(1),
		Long: `Say for every decision of a run which candidates there were and which rule chose or dropped each,
why the run ended as it did, and what can be done next. Of a LOOP it also says whether its definition broke, so
that it does not fire.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				why, err := api.ExplainRun.Call(cmd.Context(), c, api.RunRef{Run: args[0]})
				if err != nil {
					return err
				}
				return printWhy(a.printer(), why, codes)
			})
		},
	}
	cmd.Flags().BoolVar(&codes, "codes", false, "print the code of each reason too, on which scripts can rely")
	return cmd
}

func printWhy(p *output.Printer, w runs.Why, codes bool) error {
	if p.JSON {
		return p.WriteJSON(w)
	}
	code := func(r loop.Reason) string {
		if !codes || r == "" {
			return ""
		}
		return " [" + string(r) + "]"
	}
	state := "has not ended"
	if lookup.IsLeft(w.State) {
		state = w.State
	}
	p.Line("%s · %s%s", p.Style.Bold(output.CleanLine(w.Run)), styleResult(p.Style, w.Outcome, w.Reason, state), code(w.Reason))
	printDetail(p, "because", w.Reason, w.Detail)
	printFiredBy(p, "", w.Event, w.Events)
	if f := w.GoesFirst; f != nil {
		p.Field("", "goes first", describeGoesFirst(*f)+code(f.Rule))
	}
	for _, d := range w.Decisions {
		p.Line("decision %d", d.N)
		if len(d.Considered) == 0 {
			p.Line("  there were no candidates")
		}
		for _, c := range d.Considered {
			mark := "  –"
			if c.Chosen {
				mark = "  →"
			}
			p.Line("%s %s: %s%s", mark, output.CleanLine(c.Step), c.Reason.Explain(output.CleanLine(c.Detail)), code(c.Reason))
		}
	}
	for _, t := range w.Attempts {
		feedback := quoteFeedback(t.Verdict, t.Reason, clearIfEqual(t.Feedback, t.Reason.Sentence()))
		p.Field("", fmt.Sprintf("iteration %d", t.N), joinNonEmpty(": ", string(t.Verdict)+code(t.Reason), cmp.Or(feedback, t.Reason.Sentence())))
	}
	printFamily(p, "", w.Family)
	p.Field("", "waiting", describeWaiting(w.Waiting))
	for _, l := range w.Landings {
		p.Field("", "landing", output.CleanLine(l.String())+"; at once: "+l.Land.String())
	}
	if w.Broken != "" {
		p.Field("", "broken", output.CleanLine(w.Broken)+" ("+describeLastGood(w.LastGood)+")")
	}
	if w.Late != nil {
		p.Field("", "late", describeLateTime(*w.Late, w.LateUntil))
	}
	if w.Unserved != "" {
		p.Field("", "node_labels", w.Unserved+"; "+lookup.ServeLabels.String())
	}
	for _, text := range w.Careful {
		p.Field("", "careful", text)
	}
	for _, d := range w.Denied {
		p.Field("", "denied", d)
	}
	for _, text := range w.Refused {
		p.Field("", "refused", text)
	}
	if w.Paused != "" {
		p.Field("", "paused", "all loops, by "+w.Paused+" ("+w.PausedBy.ClearedBy("").String()+")")
	}
	p.Field("", "next", w.Next)
	return p.Err()
}

// describeGoesFirst says which run goes first, for what, and when that is or was over.
func describeGoesFirst(f runs.GoesFirst) string {
	text := fmt.Sprintf("%s#%d, because %s; both may touch %s", f.Loop, f.N, f.Rule.Sentence(), f.Scope)
	switch {
	case f.Ended != nil:
		return text + "; it ended at " + formatMinute(*f.Ended)
	case f.Holder == nil:
		return text + "; it has not begun"
	case f.Until.IsZero():
		return text + "; " + f.Holder.String() + " has it"
	}
	return text + "; " + f.Holder.String() + " has it, until " + formatMinute(f.Until) + " at the latest"
}
