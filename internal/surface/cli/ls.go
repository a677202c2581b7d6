package cli

import (
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newLsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the loops of the workspace", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// With thousands of loops, a fifth of the time would be spent on collecting
			// garbage that the end of the process frees anyway.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				list, err := api.ListLoops.Call(cmd.Context(), c, api.LoopQuery{})
				if err != nil {
					return err
				}
				return printLoops(a.printer(), list.Root, list.Loops)
			})
		},
	}
}

func printLoops(p *output.Printer, root string, rows []loops.Row) error {
	return output.List[loops.Row]{
		Schema: "pawl.loops/v1", Heading: []string{"NAME", "TIER", "STATE", "RUN", "OUTCOME", "WHEN", "TOKENS", "NEXT"},
		Empty: output.Clean(root) + ` has no loops yet.
  see one work:      pawl demo
  without any file:  pawl run --until "go test ./..." --scope 'src/**' --agent-command 'my-agent'
  find out:          pawl init
  from a pattern:    pawl new NAME --pattern ci-watch`,
		Cells: func(row loops.Row) []string {
			run, when, tokens, next := "–", "–", "–", "–"
			if row.LastN > 0 {
				run, when, tokens = "#"+strconv.FormatInt(row.LastN, 10), p.Ago(row.LastRun), formatNumber(row.Tokens)
			}
			if row.Next != nil {
				next = formatMinute(*row.Next)
			}
			return []string{
				output.CleanLine(row.Name), orDash(string(row.Tier)), loopState(p.Style, row), run, orDash(styleOutcome(p.Style, row.Outcome)), when, tokens, next,
			}
		},
		Below: func() { printProblems(p, rows) },
	}.Print(p, rows)
}

// describeLastGood says what a broken definition means for the loop. Digest is that of
// the last good one, if there was any.
func describeLastGood(digest string) string {
	if digest == "" {
		return "it does not fire"
	}
	return "it does not fire; " + shortHash(digest) + " is its last good definition"
}

func loopState(s output.Style, row loops.Row) string {
	switch row.State {
	case "broken":
		return s.Red("✗ broken")
	case lookup.Dead, lookup.Lost:
		return s.Red("✗ " + row.State)
	case "paused":
		return s.Yellow("‖ paused")
	case "running":
		return s.Green("● running")
	}
	switch {
	case row.Rests != nil:
		return s.Yellow("◌ rests")
	case row.Late != nil:
		return s.Red("✗ late")
	}
	switch row.Status {
	case loop.SpecGaveUp:
		return s.Red("✗ " + string(row.Status))
	case loop.SpecDraft, loop.SpecWaitingHuman, loop.SpecDone:
		return string(row.Status)
	case loop.SpecRunning, loop.SpecPaused: // It lives: what it does now says more.
	}
	return row.State
}

// printProblems says which loops cannot run, are paused by which switch, rest, died
// or wait for a person. The switch of all loops is named once.
func printProblems(p *output.Printer, rows []loops.Row) {
	if i := slices.IndexFunc(rows, func(row loops.Row) bool { return row.PausedBy.StopsAll() }); i >= 0 {
		p.Line("every loop is paused by %s (%s)", output.CleanLine(rows[i].Paused), output.CleanLine(rows[i].PausedBy.ClearedBy("").String()))
		for _, sw := range rows[i].Switches {
			if text := sw.String(); text != rows[i].Paused {
				p.Line("every loop is paused by %s (%s)", output.CleanLine(text), output.CleanLine(sw.KillSwitch().ClearedBy("").String()))
			}
		}
	}
	for _, row := range rows {
		name := output.CleanLine(row.Name)
		if row.Problem != "" {
			p.Line("%s: %s (%s; pawl run %s says more)", name, output.CleanLine(row.Problem), describeLastGood(row.LastGood), name)
		}
		if row.Paused != "" && !row.PausedBy.StopsAll() {
			p.Line("%s is paused by %s (%s)", name, output.CleanLine(row.Paused), output.CleanLine(row.PausedBy.ClearedBy(row.Name).String()))
		}
		if row.Rests != nil {
			p.Line("%s rests %s (pawl resume %s ends that)", name, output.CleanLine(describeRest(row.Rests)), name)
		}
		if row.Late != nil {
			p.Line("%s", describeLate(row))
		}
		if row.State == lookup.Lost {
			p.Line("%s: %s holds run #%d and did not extend its lease (pawl recover ends it)", name, output.CleanLine(row.Held.String()), row.LastN)
		}
		if row.State == lookup.Dead {
			p.Line("%s: the process of run #%d is gone (pawl recover concludes it and keeps its work)", name, row.LastN)
		}
		if to := row.DeferredTo; to != nil {
			p.Line("%s: run #%d gave way to %s#%d (pawl why %s#%d)", name, row.LastN, output.CleanLine(to.Loop), to.N, name, row.LastN)
		}
		if row.Ungated != "" {
			p.Line("%s: run #%d pushed to %s, no gate (pawl explain verify says how to have one)", name, row.LastN, output.CleanLine(row.Ungated))
		}
		if row.Reason == loop.ReasonLandingRests {
			p.Line("%s: what you approved did not land, and rests until you ask for it (pawl why %s#%d)", name, name, row.LastN)
		}
		if row.Outcome == loop.OutcomeEscalated {
			p.Line("%s: run #%d is handed to you (pawl why %s#%d)", name, row.LastN, name, row.LastN)
		}
		for _, id := range row.Approvals {
			p.Line("%s: approval %s waits for you (pawl approvals %s shows it, pawl approve %s does it)", name, id, id, id)
		}
	}
}

// describeLate says that a loop has stopped coming.
func describeLate(row loops.Row) string {
	name := output.CleanLine(row.Name)
	if row.State == lookup.Queued {
		return name + ": run #" + strconv.FormatInt(row.LastN, 10) + " is queued since " + formatMinute(*row.Late) + " and nobody takes it up (pawl up does)"
	}
	return name + " is late: " + describeLateTime(*row.Late, row.LateUntil)
}

// describeLateTime says when a loop should have come, or until when it waits because the
// clock was set back.
func describeLateTime(late time.Time, until *time.Time) string {
	if until != nil {
		return "the clock was set back, so it comes at " + formatMinute(*until) + " and not at " + formatMinute(late) + " (pawl run does not wait)"
	}
	return "it should have come at " + formatMinute(late) + " (pawl up makes it come)"
}
