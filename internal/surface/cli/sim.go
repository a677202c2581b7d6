package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// mostDays is how many days one simulation may have.
const mostDays = 3660

// orgDays is how many days an organisation is simulated without --days: its files grow with
// each cycle, and so does the time that reading them takes.
const orgDays = 7

func newSimCommand(a *app) *cobra.Command {
	days, folder, onBoard := 30, "", ""
	var seed uint64
	org := false
	cmd := &cobra.Command{
		Use: "sim", Short: "Simulate the loops of the workspace for some days, without acting", Args: exactArgs(0),
		Long: `Simulate the loops of the workspace on a clock of its own: when they fire, which are in each other's way, what they find to do
and what they cost. Time, scopes, priorities and budgets are decided as pawl up decides them. Nothing acts: no process is
started, and nothing is written.

What a run comes to is drawn from the newest runs of its loop. Of a loop that has none, half of the runs find nothing to
do, and the others use what its pattern usually needs. The same seed gives the same history. Events from outside (files,
refs, webhooks, commands) are not simulated; the ends of other loops are.

With --board, the agents of a board are simulated, and no other loops: each run is a heartbeat on copies of the board's rows, in
memory. Mentions and messages are answered, an agent that is blocked asks its lead, and a person lets what is proposed land
between 9 and 17 o'clock UTC.

With --org, the agents of agents/ are simulated, and no other loops: each run is a cycle on copies of the agent's files, in
memory. Of an agent without past work, 8 of 10 attempts at a step end done, one blocked and one failed. Messages and
escalations arrive, and a critical one fires its recipient at once; no person answers.`,
		Example: "  pawl sim --days 30\n  pawl sim --days 7 --loops drafts --seed 2 --json\n  pawl sim --org --days 7\n  pawl sim --board core --days 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (org || onBoard != "") && !cmd.Flags().Changed("days") {
				days = orgDays
			}
			if days < 1 || days > mostDays {
				return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("--days %d", days), Fix: fmt.Sprintf("write a number from 1 to %d", mostDays)}
			}
			switch {
			case org && folder != "", onBoard != "" && (org || folder != ""):
				return &loop.Fault{Exit: loop.ExitUsage, What: "--org, --board and --loops exclude each other", Fix: "leave all but one of them out"}
			case onBoard != "":
				return a.withReadOnlyVerbs(cmd.Context(), func(s *api.Workspace) error { return simulateBoard(cmd.Context(), a, s, onBoard, days, seed) })
			case org:
				return a.withReadOnlyVerbs(cmd.Context(), func(s *api.Workspace) error {
					fleet, err := s.Loops.Fleet(cmd.Context(), loop.ProtocolTasks)
					if err != nil {
						return err
					}
					return simulateOrg(cmd.Context(), a, fleet, days, seed)
				})
			case folder != "":
				fleet, err := loops.FleetIn(a.formats(), a.absPath(folder))
				if err != nil {
					return err
				}
				return simulate(cmd.Context(), a, fleet, days, seed)
			}
			return a.withReadOnlyVerbs(cmd.Context(), func(s *api.Workspace) error {
				fleet, err := s.Loops.Fleet(cmd.Context(), "")
				if err != nil {
					return err
				}
				return simulate(cmd.Context(), a, fleet, days, seed)
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", days, "simulate `N` days from now; with --org and --board 7, unless you say it")
	cmd.Flags().StringVar(&folder, "loops", "", "simulate the loops that files below `DIR` define, instead of those of the workspace")
	cmd.Flags().BoolVar(&org, "org", false, "simulate the cycles of the organisation in agents/")
	cmd.Flags().StringVar(&onBoard, "board", "", "simulate the heartbeats of the agents of a board `B`")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "draw other outcomes with another `S`")
	return cmd
}

// simulated is the result as JSON.
type simulated struct {
	sim.Result

	Left []loops.LeftOut `json:"left_out,omitempty"`
}

func simulate(ctx context.Context, a *app, fleet loops.Fleet, days int, seed uint64) error {
	o, err := simOptions(a, fleet, days, seed)
	if err != nil {
		return err
	}
	r, err := sim.Run(ctx, o)
	if err != nil {
		return err
	}
	return printSim(a.printer(), simulated{r, fleet.Left}, days, fleet)
}

func simOptions(a *app, fleet loops.Fleet, days int, seed uint64) (sim.Options, error) {
	pricing, err := a.pricing("")
	if err != nil {
		return sim.Options{}, err
	}
	table, err := pricing.Load()
	now := clock.System{}.Now
	return sim.Options{
		Loops: fleet.Loops, Workspace: fleet.Workspace, Budgets: fleet.Budgets, Start: now().UTC().Truncate(time.Minute),
		For: time.Duration(days) * 24 * time.Hour, Seed: seed, Prices: table, Now: now,
	}, err
}

func printSim(p *output.Printer, r simulated, days int, fleet loops.Fleet) error {
	if p.JSON {
		return p.WriteJSON(r)
	}
	rows := r.Loops
	if len(rows) > 1 {
		total := r.Total
		total.Loop = "total"
		rows = append(rows, total)
	}
	err := output.List[sim.Tally]{
		Schema: "pawl.sim/v1", Heading: []string{"LOOP", "PLANNED", "COALESCED", "EVENTS", "RUNS", "QUIET", "COLLIDED", "DEFERRED", "WAITED", "UNPAID", "TOKENS", "COST"},
		Empty: "no loop to simulate",
		Cells: func(t sim.Tally) []string {
			waited := "–"
			if t.LongestMS > 0 {
				waited = output.Span(time.Duration(t.LongestMS) * time.Millisecond)
			}
			return []string{
				output.CleanLine(t.Loop), fmt.Sprint(t.Planned), fmt.Sprint(t.Coalesced), fmt.Sprint(t.Events), fmt.Sprint(t.Runs), fmt.Sprintf("%.0f%%", 100*t.QuietRatio),
				fmt.Sprint(t.Collisions), fmt.Sprint(t.Deferred), waited, fmt.Sprint(t.Unfunded), fmt.Sprint(t.Tokens), simCost(t.MicroUSD, t.Unpriced, t.Assumed),
			}
		},
		Below: func() { printSimNotes(p, r, days, fleet) },
	}.Print(p, rows)
	return err
}

// simCost is what runs cost, as far as their models have a price.
func simCost(microUSD int64, unpriced, assumed int) string {
	cost := "$" + loop.FormatDollars(microUSD)
	if assumed > 0 {
		cost += " assumed"
	}
	if unpriced > 0 {
		cost += " +?"
	}
	return cost
}

// printSimNotes says what the numbers rest on, and what is not in them.
func printSimNotes(p *output.Printer, r simulated, days int, fleet loops.Fleet) {
	printSimBasis(p, r, days)
	var outside []string
	for _, l := range fleet.Loops {
		for _, on := range l.Definition.On {
			if !strings.HasPrefix(on, string(loop.OnLoop)+":") {
				outside = append(outside, l.Definition.Name)
				break
			}
		}
	}
	if len(outside) > 0 {
		p.Line("not simulated are the events from outside that fire %s", output.CleanLine(strings.Join(outside, ", ")))
	}
	printLeftOut(p, r.Left)
}

// printSimBasis says what the numbers rest on.
func printSimBasis(p *output.Printer, r simulated, days int) {
	p.Line("%s from %s, seed %d", pluralize(days, "day"), formatMinute(r.From), r.Seed)
	past := 0
	for _, t := range r.Loops {
		if t.Drawn == "past_runs" {
			past++
		}
	}
	if rest := len(r.Loops) - past; rest > 0 {
		p.Line("drawn from past runs: %s; from what the pattern usually needs: %s", pluralize(past, "loop"), pluralize(rest, "loop"))
	}
	if r.Total.Unpriced > 0 {
		p.Line("+?: the model of %s has no price (pawl prices)", pluralize(r.Total.Unpriced, "run"))
	}
}

func printLeftOut(p *output.Printer, left []loops.LeftOut) {
	for _, l := range left {
		p.Line("left out: %s, because %s", output.CleanLine(l.Loop), output.CleanLine(l.Why))
	}
}
