package control

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// LoopRow is a loop in a listing, schema pawl.loop/v1.
type LoopRow struct {
	Schema     string       `json:"schema,omitempty"`
	Name       string       `json:"name"`
	Protocol   string       `json:"protocol"`
	Tier       loop.Tier    `json:"tier,omitempty"`
	Cadence    string       `json:"cadence,omitempty"`
	Goal       string       `json:"goal,omitempty"`
	State      string       `json:"state"` // never_run, idle, queued, running, dead, paused, broken
	Paused     string       `json:"paused,omitempty"`
	Problem    string       `json:"problem,omitempty"` // why the definition cannot be run
	LastN      int64        `json:"last_n"`
	Outcome    loop.Outcome `json:"outcome,omitempty"`
	Reason     loop.Reason  `json:"reason,omitempty"`
	Branch     string       `json:"branch,omitempty"`
	LastRun    *time.Time   `json:"last_run,omitempty"`
	Tokens     int64        `json:"tokens"` // of the last run
	Definition string       `json:"definition,omitempty"`
	Scope      []string     `json:"scope,omitempty"`
	Verify     string       `json:"verify,omitempty"`
	Guard      string       `json:"guard,omitempty"`
	Agent      string       `json:"agent,omitempty"`
	Approvals  []string     `json:"approvals,omitempty"` // ids of those that are open, newest first
	Steps      []loop.Step  `json:"steps,omitempty"`     // only in show
	Budgets    []BudgetRow  `json:"budgets,omitempty"`   // only in show
	Rests      *RestView    `json:"rests,omitempty"`     // what keeps it from acting, without anybody having paused it; in ls and show
	Drift      string       `json:"drift,omitempty"`     // how far the newest run's use left that of those before; show only
	Held       *loop.Holder `json:"held,omitempty"`
}

// loopState is a loop with its newest run and what waits for an answer.
type loopState struct {
	catalog.Entry

	last *loop.Run // nil if there is none
	open []string  // ids of approvals, newest first
}

// usable is the definition, or the zero Definition where the file cannot be run.
func (l loopState) usable() loop.Definition {
	if l.File != "" && l.Problem != nil {
		return loop.Definition{}
	}
	return l.Definition
}

// Loops lists the workspace's loops: those that its files define and those
// that have runs.
func (s *Service) Loops(ctx context.Context) ([]LoopRow, error) {
	list, err := s.allStates(ctx)
	return s.rowsOf(list), err
}

func (s *Service) allStates(ctx context.Context) ([]loopState, error) {
	entries, err := s.loops.List(ctx, catalog.Page{})
	if err != nil {
		return nil, err
	}
	return s.statesOf(ctx, entries)
}

// stateOf is the loop that a person means by a name, with its definition.
func (s *Service) stateOf(ctx context.Context, name string) (loopState, error) {
	e, err := s.loops.Lookup(ctx, name)
	if err != nil {
		return loopState{}, err
	}
	list, err := s.statesOf(ctx, []catalog.Entry{e})
	if err != nil {
		return loopState{}, err
	}
	return list[0], nil
}

// statesOf adds what the store knows.
func (s *Service) statesOf(ctx context.Context, entries []catalog.Entry) ([]loopState, error) {
	list := make([]loopState, len(entries))
	var ran []string
	for i, e := range entries {
		if list[i].Entry = e; e.Row.LastN > 0 {
			ran = append(ran, e.LoopID())
		}
	}
	if len(ran) == 0 {
		return list, nil
	}
	err := s.view(ctx, func(r *store.Reader) error {
		newest, err := r.NewestRuns(ctx, ran...)
		if err != nil {
			return err
		}
		of := make(map[string]*loop.Run, len(newest))
		for i := range newest {
			of[newest[i].LoopID] = &newest[i]
		}
		in := s.ws.ID
		if len(ran) == 1 {
			in = ran[0]
		}
		open, err := s.openByLoop(ctx, r, in)
		for i := range list {
			l := &list[i]
			id := l.LoopID()
			l.last, l.open = of[id], open[id]
		}
		return err
	})
	return list, err
}

// openByLoop lists the ids of the approvals that wait in a loop or a workspace, by
// loop.
func (s *Service) openByLoop(ctx context.Context, r *store.Reader, in string) (map[string][]string, error) {
	list, err := r.Approvals(ctx, in, loop.ApprovalOpen)
	open := map[string][]string{}
	for _, a := range list {
		if s.Now().Before(a.Expires) {
			open[a.LoopID] = append(open[a.LoopID], a.ID)
		}
	}
	return open, err
}

// openOf lists the ids of the approvals that wait in the loop of that name; none if
// there is no such loop.
func (s *Service) openOf(ctx context.Context, name string) (ids []string, err error) {
	e, err := s.loops.Resolve(ctx, name)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = s.view(ctx, func(r *store.Reader) error {
		open, err := s.openByLoop(ctx, r, e.LoopID())
		ids = open[e.LoopID()]
		return err
	})
	if absent(err) {
		return nil, nil
	}
	return ids, err
}

func (s *Service) rowsOf(list []loopState) []LoopRow {
	rows := make([]LoopRow, 0, len(list))
	for _, l := range list {
		rows = append(rows, s.rowOf(l))
	}
	return rows
}

func (s *Service) rowOf(l loopState) LoopRow {
	d := l.usable()
	row := LoopRow{
		Name: l.Name, Protocol: l.Protocol, State: "never_run", LastN: l.Row.LastN, Definition: l.Row.Definition, Approvals: l.open,
		Tier: d.Tier, Cadence: d.Cadence, Goal: d.Goal, Scope: d.Scope, Verify: d.Verify, Guard: d.Guard, Agent: d.Agent,
	}
	if l.File != "" && l.Problem != nil {
		row.State, row.Problem = "broken", firstLine(l.Problem.Error())
	}
	if l.Row.Paused {
		row.Paused = "pawl pause"
	}
	if l.last != nil {
		s.newest(&row, *l.last)
	}
	if sw := engine.Switch(s.ws.Root, l.Name, d.SwitchPaths()...); sw != "" {
		row.Paused = sw
	}
	if row.Paused != "" && (row.State == "idle" || row.State == "never_run") {
		row.State = "paused"
	}
	return row
}

func (s *Service) newest(row *LoopRow, run loop.Run) {
	row.Outcome, row.Reason, row.Branch, row.Tokens = run.Outcome, run.Reason, run.Branch, run.Usage.Charged()
	row.LastRun = timeOrNil(run.Started)
	if row.State != "broken" {
		row.State = s.liveness(run)
	}
	if run.Holder != (loop.Holder{}) {
		row.Held = &run.Holder
	}
}

// liveness tells a run that somebody carries on from one whose process died.
func (s *Service) liveness(run loop.Run) string {
	return liveness(run, s.HolderState(run.Holder))
}

func liveness(run loop.Run, holder loop.HolderState) string {
	switch {
	case run.State == loop.RunEnded:
		return "idle"
	case run.State == loop.RunQueued:
		return "queued"
	case holder == loop.HolderDead:
		return "dead"
	}
	return "running"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
