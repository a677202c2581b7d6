package cli

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

func (a *app) cmdLs() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the loops of the workspace", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Of thousands of loops a fifth of the time would go into collecting
			// garbage that ends with the command.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				rows, err := s.Listing(cmd.Context())
				if err != nil {
					return err
				}
				return a.printLoops(s.Root(), rows)
			})
		},
	}
}

func (a *app) printLoops(root string, rows []control.LoopRow) error {
	if a.json {
		return a.printJSON(listOf("pawl.loops/v1", rows))
	}
	if len(rows) == 0 {
		p := printer{w: a.Out}
		p.line("%s has no loops yet.", clean(root))
		p.line("  see one work:      pawl demo")
		p.line("  without any file:  pawl run --until \"go test ./...\" --scope 'src/**' --agent-command 'my-agent'")
		p.line("  find out:          pawl init")
		p.line("  from a pattern:    pawl new NAME --pattern ci-watch")
		return p.err
	}
	table := [][]string{{"NAME", "TIER", "STATE", "RUN", "OUTCOME", "WHEN", "TOKENS"}}
	now := a.Now()
	for _, row := range rows {
		table = append(table, a.loopCells(row, now))
	}
	if err := a.columns(table); err != nil {
		return err
	}
	return a.problems(rows)
}

func (a *app) loopCells(row control.LoopRow, now time.Time) []string {
	run, when, tokens := "–", "–", "–"
	if row.LastN > 0 {
		run, when, tokens = "#"+strconv.FormatInt(row.LastN, 10), ago(now, row.LastRun), number(row.Tokens)
	}
	return []string{
		cleanLine(row.Name), orDash(string(row.Tier)), a.loopState(row), run, orDash(a.style().outcome(row.Outcome)), when, tokens,
	}
}

func (a *app) loopState(row control.LoopRow) string {
	s := a.style()
	switch row.State {
	case "broken":
		return s.red("✗ broken")
	case "dead":
		return s.red("✗ dead")
	case "paused":
		return s.yellow("‖ paused")
	case "running":
		return s.green("● running")
	}
	if row.Rests != nil {
		return s.yellow("◌ rests")
	}
	return row.State
}

// problems says below the table what cannot be run, what is paused by which
// switch, what rests, what died, and what waits for a person. The switch of all
// loops is said once.
func (a *app) problems(rows []control.LoopRow) error {
	p := printer{w: a.Out}
	if i := slices.IndexFunc(rows, func(row control.LoopRow) bool { return control.StopsAll(row.Paused) }); i >= 0 {
		p.line("every loop is paused by %s (pawl resume --all)", cleanLine(rows[i].Paused))
	}
	for _, row := range rows {
		name := cleanLine(row.Name)
		if row.Problem != "" {
			p.line("%s: %s (pawl run %s says more)", name, cleanLine(row.Problem), name)
		}
		if row.Paused != "" && !control.StopsAll(row.Paused) {
			p.line("%s is paused by %s (%s)", name, cleanLine(row.Paused), cleanLine(control.ResumeCommand(row.Name, row.Paused)))
		}
		if row.Rests != nil {
			p.line("%s rests %s (pawl resume %s ends that)", name, cleanLine(restText(row.Rests)), name)
		}
		if row.State == "dead" {
			p.line("%s: the process of run #%d is gone (pawl recover concludes it and keeps its work)", name, row.LastN)
		}
		if row.Outcome == loop.OutcomeEscalated {
			p.line("%s: run #%d is handed to you (pawl why %s#%d)", name, row.LastN, name, row.LastN)
		}
		p.approvals(row)
	}
	if p.err != nil {
		return fmt.Errorf("print loops: %w", p.err)
	}
	return nil
}

// approvals says what of a loop waits for an answer.
func (p *printer) approvals(row control.LoopRow) {
	for _, id := range row.Approvals {
		p.line("%s: approval %s waits for you (pawl approvals %s shows it, pawl approve %s does it)", cleanLine(row.Name), id, id, id)
	}
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
