package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/boards/boardsim"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// simulatedBoard is the result of a simulated board as JSON.
type simulatedBoard struct {
	simulated

	Board boardsim.Result `json:"board"`
}

func simulateBoard(ctx context.Context, a *app, s *api.Workspace, ref string, days int, seed uint64) error {
	from, err := s.Boards.Simulate(ctx, ref)
	if err != nil {
		return err
	}
	fleet, err := s.Loops.Fleet(ctx, loop.ProtocolBoard)
	if err != nil {
		return err
	}
	works := func(name string) bool { return slices.Contains(from.Loops, name) }
	fleet.Loops = slices.DeleteFunc(fleet.Loops, func(l sim.Loop) bool { return !works(l.Definition.Name) })
	fleet.Left = slices.DeleteFunc(fleet.Left, func(l loops.LeftOut) bool { return !works(l.Loop) })
	o, err := simOptions(a, fleet, days, seed)
	if err != nil {
		return err
	}
	r, result, err := boardsim.Run(ctx, o, from.Start)
	if err != nil {
		return err
	}
	return printSimBoard(a.printer(), simulatedBoard{simulated{r, fleet.Left}, result}, days)
}

func printSimBoard(p *output.Printer, r simulatedBoard, days int) error {
	if p.JSON {
		return p.WriteJSON(r)
	}
	rows := r.Board.Agents
	if len(rows) > 1 {
		rows = append(rows, r.Board.Total)
	}
	return output.List[boardsim.Tally]{
		Schema: "pawl.sim/v1", Heading: []string{"AGENT", "HEARTBEATS", "QUIET", "ANSWERED", "DONE", "BLOCKED", "FAILED", "LOST", "TOKENS", "COST"},
		Empty: "no agent of the board to simulate",
		Cells: func(t boardsim.Tally) []string {
			return []string{
				output.CleanLine(t.Agent), fmt.Sprint(t.Heartbeats), fmt.Sprintf("%.0f%%", 100*t.QuietRatio), fmt.Sprint(t.Answered), fmt.Sprint(t.Done), fmt.Sprint(t.Blocked),
				fmt.Sprint(t.Failed), fmt.Sprint(t.Lost), fmt.Sprint(t.Tokens), simCost(t.MicroUSD, t.Unpriced, t.Assumed),
			}
		},
		Below: func() {
			p.Line("tasks: %s; at the start %s", r.Board.After, r.Board.Before)
			waited := "none"
			if r.Board.LongestMS > 0 {
				waited = output.Span(time.Duration(r.Board.LongestMS) * time.Millisecond)
			}
			p.Line("questions without an answer: %d; told to people: %d; the longest wait for an approval: %s", r.Board.Open, r.Board.Told, waited)
			printSimBasis(p, r.simulated, days)
			printLeftOut(p, r.Left)
		},
	}.Print(p, rows)
}
