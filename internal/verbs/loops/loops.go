package loops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Row is a loop in a listing, schema pawl.loop/v1.
type Row struct {
	Schema     string          `json:"schema,omitempty"`
	Name       string          `json:"name"`
	Protocol   string          `json:"protocol"`
	Tier       loop.Tier       `json:"tier,omitempty"`
	Cadence    string          `json:"cadence,omitempty"`
	On         []string        `json:"on,omitempty"` // events that fire it
	Goal       string          `json:"goal,omitempty"`
	State      string          `json:"state"`            // never_run, idle, queued, running, dead, lost, paused, disabled, broken
	Status     loop.SpecStatus `json:"status,omitempty"` // of a LoopSpec: draft, running, paused, waiting_human, done, gave_up; it holds until somebody answers, whatever the last run was
	Paused     string          `json:"paused,omitempty"`
	PausedBy   loop.KillSwitch `json:"paused_by,omitzero"` // the switch that Paused names
	Switches   []loop.Switch   `json:"switches,omitempty"` // in the store, of all loops: who set them, when and why
	Problem    string          `json:"problem,omitempty"`  // why the definition cannot be run
	LastN      int64           `json:"last_n"`
	Outcome    loop.Outcome    `json:"outcome,omitempty"`
	Reason     loop.Reason     `json:"reason,omitempty"`
	Branch     string          `json:"branch,omitempty"`
	LastRun    *time.Time      `json:"last_run,omitempty"`
	Tokens     int64           `json:"tokens"`              // of the last run
	Next       *time.Time      `json:"next,omitempty"`      // when the next run is planned for, as it was registered; null: never by time, or it does not fire
	LastGood   string          `json:"last_good,omitempty"` // digest of the newest definition that could run; only if the file cannot
	Definition string          `json:"definition,omitempty"`
	Scope      []string        `json:"scope,omitempty"`
	Verify     string          `json:"verify,omitempty"`
	Guard      string          `json:"guard,omitempty"`
	Gates      []loop.Gate     `json:"gates,omitempty"` // beside verify and guard
	Agent      string          `json:"agent,omitempty"`
	Approvals  []string        `json:"approvals,omitempty"` // ids of open approvals, newest first
	Steps      []loop.Step     `json:"steps,omitempty"`     // only in show
	Budgets    []budgets.Row   `json:"budgets,omitempty"`   // only in show
	Rests      *Rest           `json:"rests,omitempty"`     // why it does not act although nobody paused it; in ls and show
	Drift      string          `json:"drift,omitempty"`     // how much more the newest run used than those before; only in show
	Held       *loop.Holder    `json:"held,omitempty"`
	Late       *time.Time      `json:"late,omitempty"`       // when it should have come, if it has stopped coming; with LateUntil: when it would come
	LateUntil  *time.Time      `json:"late_until,omitempty"` // when it comes: it waits because the clock was set back

	DeferredTo *loop.Deferral `json:"deferred_to,omitempty"` // the run that the newest one gave way to
	Ungated    string         `json:"ungated,omitempty"`     // where the newest run has pushed work that no gate has judged, as in origin/main

	Waiting []loop.FiringEvent `json:"waiting,omitempty"` // events that wait for it, and why; only in show

	lookup.Family // only in show
}

// List returns the loops of the workspace: those that its files define, and those with
// runs.
func (s *Service) List(ctx context.Context) ([]Row, error) { return s.ListPage(ctx, catalog.Page{}) }

// ListPage returns a part of them. It reads the definitions and the runs of that part only.
func (s *Service) ListPage(ctx context.Context, p catalog.Page) ([]Row, error) {
	if p.Limit < 0 {
		return nil, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid limit %d", p.Limit), Why: "it is less than 0", Fix: "write how many loops are wanted, or 0 for all"}
	}
	entries, err := s.ws.Loops.List(ctx, p)
	if err != nil {
		return nil, err
	}
	list, err := s.ws.WithRuns(ctx, entries)
	if err != nil {
		return nil, err
	}
	return s.rowsOf(ctx, list)
}

// Show returns one loop with its steps and its budgets.
func (s *Service) Show(ctx context.Context, name string) (Row, error) {
	l, err := s.ws.Loop(ctx, name)
	if err != nil {
		return Row{}, err
	}
	rows, err := s.rowsOf(ctx, []lookup.Loop{l})
	if err != nil {
		return Row{}, err
	}
	row := rows[0]
	row.Schema = "pawl.loop/v1"
	err = s.ws.View(ctx, func(r *store.Reader) error {
		if row.Steps, err = r.Steps(ctx, l.LoopID()); err != nil {
			return err
		}
		if row.Family, err = lookup.FamilyOf(ctx, r, l.LoopID()); err != nil {
			return err
		}
		if row.Waiting, err = r.WaitingOf(ctx, l.LoopID()); err != nil {
			return err
		}
		history, err := r.History(ctx, l.LoopID(), plan.MaxHistory+1)
		if err == nil && len(history) > 0 {
			_, row.Drift = plan.DetectDrift(history[1:], history[0])
		}
		return err
	})
	if err != nil && !lookup.Absent(err) {
		return row, err
	}
	row.Budgets, err = s.Budgets(ctx, l)
	return row, err
}

// rowsOf describes loops, where specs are in their lives, and why those that rest do not act.
func (s *Service) rowsOf(ctx context.Context, list []lookup.Loop) ([]Row, error) {
	var statuses map[string]loop.SpecStatus
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		statuses, err = lookup.SpecStatuses(ctx, r, list)
		return err
	})
	if err != nil && !lookup.Absent(err) {
		return nil, err
	}
	rows := make([]Row, len(list))
	for i, l := range list {
		rows[i] = s.rowOf(l)
		rows[i].Status = statuses[l.LoopID()]
	}
	return rows, s.addRests(ctx, list, rows)
}

func (s *Service) rowOf(l lookup.Loop) Row {
	d, paused := l.Usable(), s.ws.PausedBy(l)
	row := Row{
		Name: l.Name, Protocol: l.Protocol, State: "never_run", LastN: l.Row.LastN, Definition: l.Row.Definition, Approvals: l.Open,
		Tier: d.Tier, Cadence: d.Cadence, On: d.On, Goal: d.Goal, Scope: d.Scope, Verify: d.Verify, Guard: d.Guard, Gates: d.Gates, Agent: d.Agent, Paused: paused.String(), PausedBy: paused, Switches: l.Switches,
	}
	if run := l.Last; run != nil {
		row.State, row.LastRun = s.ws.Liveness(*run), shape.Time(run.Started)
		row.Outcome, row.Reason, row.Branch, row.Tokens = run.Outcome, run.Reason, run.Branch, run.Usage.ChargedTokens()
		row.Ungated = run.Cause.Ungated
		if run.DeferredTo != (loop.Deferral{}) {
			row.DeferredTo = &run.DeferredTo
		}
		if run.Holder != (loop.Holder{}) {
			row.Held = &run.Holder
		}
	}
	switch {
	case l.File != "" && l.Problem != nil:
		row.State, row.LastGood = "broken", l.Row.Registered.Good
		row.Problem, _, _ = strings.Cut(l.Problem.Error(), "\n")
	case row.Paused != "" && (row.State == "idle" || row.State == "never_run"):
		row.State = "paused"
	case d.NeverFires() && (row.State == "idle" || row.State == "never_run"):
		row.State = "disabled"
	}
	if l.File != "" && l.Problem == nil && l.Row.Registered.Broken == "" {
		row.Next = shape.Time(l.Row.Registered.Due)
	}
	row.Late, row.LateUntil = s.ws.LateSince(l)
	return row
}
