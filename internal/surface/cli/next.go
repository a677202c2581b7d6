package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newNextCommand(a *app) *cobra.Command {
	n := 5
	cmd := &cobra.Command{
		Use: "next [LOOP]", Short: "Show when loops fire", Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		Long: `Show when each loop of the workspace fires next. Of one LOOP show its next times, with what the clocks do to them, its last
ones with their verdicts (ran, coalesced if another run made up for it, or skipped, and why), and its last events.`,
		Example: "  pawl next\n  pawl next keep-tests-green -n 10",
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 || n > 1000 {
				return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("-n %d", n), Fix: "write a number from 1 to 1000"}
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				if len(args) == 1 {
					p, err := api.PlanLoop.Call(cmd.Context(), c, api.NextQuery{Loop: args[0], Count: n})
					if err != nil {
						return err
					}
					return printPlan(a, p)
				}
				plans, err := api.PlanLoops.Call(cmd.Context(), c, verb.None{})
				if err != nil {
					return err
				}
				return printNext(a, plans)
			})
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", n, "show `N` times of a LOOP")
	return cmd
}

func printNext(a *app, plans []loops.Plan) error {
	p := a.printer()
	return output.List[loops.Plan]{
		Schema: "pawl.plans/v1", Heading: []string{"NEXT", "IN", "NAME", "CADENCE", "PAUSED BY"},
		Empty: "no loop of this workspace fires by time: give one a cadence (pawl explain cadence)",
		Cells: func(plan loops.Plan) []string {
			next, in := "–", "–"
			if len(plan.Next) > 0 {
				due := plan.Next[0].Due
				next, in = formatMinute(due), untilText(due.Sub(p.Now()))
			}
			return []string{next, in, output.CleanLine(plan.Loop), output.CleanLine(plan.Cadence), orDash(output.CleanLine(plan.Paused))}
		},
		Below: func() {
			for _, plan := range plans {
				if plan.Problem != "" {
					p.Line("%s does not fire: %s", output.CleanLine(plan.Loop), output.CleanLine(plan.Problem))
				}
			}
			a.sayIfDown(p)
		},
	}.Print(p, plans)
}

// sayIfDown says that loops fire only by hand as long as pawl up is not at work.
func (a *app) sayIfDown(p *output.Printer) {
	if _, running, err := a.findDaemon(); err == nil && running == nil {
		p.Line("pawl up is not at work on this machine: until it is, loops fire only by hand")
	}
}

func untilText(d time.Duration) string {
	if d <= 0 {
		return "now"
	}
	return output.Span(d)
}

func printPlan(a *app, plan loops.Plan) error {
	p := a.printer()
	if p.JSON {
		return p.WriteJSON(plan)
	}
	switch {
	case plan.Problem != "":
		p.Line("%s does not fire: %s", output.CleanLine(plan.Loop), output.CleanLine(plan.Problem))
		return nil
	case plan.Cadence == "" && len(plan.On) == 0:
		p.Line("%s never fires by time: it has no cadence (pawl explain cadence)", output.CleanLine(plan.Loop))
		return nil
	case plan.Cadence == "":
		p.Line("%s never fires by time, only by events", output.CleanLine(plan.Loop))
	default:
		p.Line("%s fires %s, read in %s; catch_up %s", output.CleanLine(plan.Loop), output.CleanLine(plan.Cadence), output.CleanLine(plan.Timezone), plan.CatchUp)
	}
	zone, err := time.LoadLocation(plan.Timezone) // A daemon's answer has the offsets and not the names of the zone.
	if err != nil {
		return err
	}
	for _, f := range plan.Next {
		line := "  " + f.Planned.In(zone).Format("Mon 2006-01-02 15:04 MST")
		if !f.Due.Equal(f.Planned) {
			line += ", starts at " + f.Due.In(zone).Format("15:04:05")
		}
		if f.Note != "" {
			line += ": " + f.Note
		}
		p.Line("%s", output.CleanLine(line))
	}
	if len(plan.Ticks) > 0 {
		p.Line("before:")
	}
	for _, k := range plan.Ticks {
		text := "  " + formatMinute(k.First)
		if k.N > 1 {
			text += fmt.Sprintf(" and %d more until %s", k.N-1, formatMinute(k.Last))
		}
		p.Line("%s  %s", text, strings.TrimSpace(string(k.Verdict)+" "+k.Reason))
	}
	if len(plan.On) > 0 {
		p.Line("events that fire it: %s", output.CleanLine(strings.Join(plan.On, ", ")))
	}
	for _, e := range plan.Events {
		p.Line("  %s  %s  %s", formatMinute(e.Last), joinNonEmpty(" ", string(e.Verdict), describeWait(e)), output.CleanLine(describeFiringEvent(e)))
	}
	if plan.Paused != "" {
		text := "its times are skipped"
		if len(plan.On) > 0 {
			text += ", its events wait"
		}
		p.Line("it is paused by %s: %s", output.CleanLine(plan.Paused), text)
	}
	a.sayIfDown(p)
	return nil
}
