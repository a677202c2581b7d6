package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// simulatedOrg is the result of a simulated organisation as JSON.
type simulatedOrg struct {
	simulated

	Organisation orgsim.Result `json:"organisation"`
}

func simulateOrg(ctx context.Context, a *app, fleet loops.Fleet, days int, seed uint64) error {
	if len(fleet.Loops)+len(fleet.Left) == 0 {
		return orgs.NoAgents(fleet.Root)
	}
	o, err := simOptions(a, fleet, days, seed)
	if err != nil {
		return err
	}
	r, org, err := orgsim.Run(ctx, o, fleet.Root, projection.Memory{Root: fleet.Root})
	if err != nil {
		return err
	}
	return printSimOrg(a.printer(), simulatedOrg{simulated{r, fleet.Left}, org}, days)
}

func printSimOrg(p *output.Printer, r simulatedOrg, days int) error {
	if p.JSON {
		return p.WriteJSON(r)
	}
	rows := r.Organisation.Agents
	if len(rows) > 1 {
		rows = append(rows, r.Organisation.Total)
	}
	return output.List[orgsim.Tally]{
		Schema: "pawl.sim/v1", Heading: []string{"AGENT", "RUNS", "WORKED", "DONE", "BLOCKED", "FAILED", "IDLE", "ESCALATED", "MESSAGES", "TOKENS", "COST"},
		Empty: "no agent to simulate",
		Cells: func(t orgsim.Tally) []string {
			return []string{
				output.CleanLine(t.Agent), fmt.Sprint(t.Runs), fmt.Sprint(t.Worked), fmt.Sprint(t.Done), fmt.Sprint(t.Blocked), fmt.Sprint(t.Failed), fmt.Sprint(t.Idle),
				fmt.Sprint(t.Escalations), fmt.Sprint(t.Messages), fmt.Sprint(t.Tokens), simCost(t.MicroUSD, t.Unpriced, t.Assumed),
			}
		},
		Below: func() {
			printOrgTotals(p, r.Organisation)
			printSimBasis(p, r.simulated, days)
			printLeftOut(p, r.Left)
		},
	}.Print(p, rows)
}

// printOrgTotals says what the organisation came to.
func printOrgTotals(p *output.Printer, r orgsim.Result) {
	p.Line("steps: %d open, %d blocked, %d done, %d failed, %d cancelled; at the start %d open, %d blocked, %d done",
		r.After.Open, r.After.Blocked, r.After.Done, r.After.Failed, r.After.Cancelled, r.Before.Open, r.Before.Blocked, r.Before.Done)
	blocked := "blocked time: none"
	if w := r.Blocked; w.TotalMS > 0 {
		blocked = fmt.Sprintf("blocked time: %s, the longest %s (%s of %s)", output.Span(time.Duration(w.TotalMS)*time.Millisecond),
			output.Span(time.Duration(w.LongestMS)*time.Millisecond), output.CleanLine(w.LongestStep), output.CleanLine(w.LongestAgent))
	}
	p.Line("%s", blocked)
	e := r.Escalations
	p.Line("escalations: %d to superiors, %d to the agent of the key escalation, %d to the chief, %d to the owner", e.Superior, e.Escalation, e.Chief, e.Owner)
	for _, t := range r.Agents {
		if t.Halted {
			p.Line("halted by its policy: %s", output.CleanLine(t.Agent))
		}
	}
}
