package control

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/protocol/spine"
	"github.com/pawl-run/pawl/internal/readiness"
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
	last       *loop.Run    // newest run, nil if there is none
	def        loop.Definition
}

// Loops lists the workspace's loops: those that its files define and those
// that have runs.
func (s *Service) Loops(ctx context.Context) ([]LoopRow, error) {
	rows := map[string]*LoopRow{}
	names, err := definedIn(s.ws.Root)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		row := &LoopRow{Name: name, Protocol: loop.ProtocolSpine, State: "never_run"}
		if def, _, err := s.load(name); err != nil {
			row.State, row.Problem = "broken", firstLine(err.Error())
		} else {
			row.describe(def)
		}
		rows[loop.ProtocolSpine+":"+name] = row
	}
	err = s.view(ctx, func(r *store.Reader) error { return s.stored(ctx, r, rows) })
	if err != nil && !absent(err) {
		return nil, err
	}
	list := make([]LoopRow, 0, len(rows))
	for _, row := range rows {
		s.switches(row)
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b LoopRow) int {
		return strings.Compare(a.Name+"\x00"+a.Protocol, b.Name+"\x00"+b.Protocol)
	})
	return list, nil
}

func (row *LoopRow) describe(d loop.Definition) {
	row.def = d
	row.Tier, row.Cadence, row.Goal, row.Scope, row.Verify, row.Guard = d.Tier, d.Cadence, d.Goal, d.Scope, d.Verify, d.Guard
	row.Agent = d.Agent
}

// stored adds what the store knows.
func (s *Service) stored(ctx context.Context, r *store.Reader, rows map[string]*LoopRow) error {
	loops, err := r.Loops(ctx, s.ws.ID)
	if err != nil {
		return err
	}
	open, err := s.openByLoop(ctx, r)
	if err != nil {
		return err
	}
	for _, l := range loops {
		row, ok := rows[l.Protocol+":"+l.Name]
		if !ok && l.Forgotten {
			continue
		}
		if !ok {
			row = &LoopRow{Name: l.Name, Protocol: l.Protocol, State: "never_run"}
			if d, err := r.Definition(ctx, l.Definition); err == nil {
				row.describe(d)
			}
			rows[l.Protocol+":"+l.Name] = row
		}
		row.LastN, row.Definition, row.Approvals = l.LastN, l.Definition, open[l.ID]
		if l.Paused {
			row.Paused = "pawl pause"
		}
		runs, err := r.Runs(ctx, l.ID, 1)
		if err != nil {
			return err
		}
		if len(runs) == 1 {
			s.newest(row, runs[0])
		}
	}
	return nil
}

// openByLoop lists the ids of the approvals that wait, by loop.
func (s *Service) openByLoop(ctx context.Context, r *store.Reader) (map[string][]string, error) {
	list, err := r.Approvals(ctx, s.ws.ID, loop.ApprovalOpen)
	open := map[string][]string{}
	for _, a := range list {
		if s.Now().Before(a.Expires) {
			open[a.LoopID] = append(open[a.LoopID], a.ID)
		}
	}
	return open, err
}

func (s *Service) newest(row *LoopRow, run loop.Run) {
	row.last = &run
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

// switches looks at the kill switch files.
func (s *Service) switches(row *LoopRow) {
	if sw := engine.Switch(s.ws.Root, row.Name, row.def.SwitchPaths()...); sw != "" {
		row.Paused = sw
	}
	if row.Paused != "" && (row.State == "idle" || row.State == "never_run") {
		row.State = "paused"
	}
}

// load reads a spine loop's definition. Findings that do not keep it from
// running come back beside it.
func (s *Service) load(name string) (loop.Definition, []string, error) {
	rel := filepath.Join(filepath.FromSlash(spine.Dir(name)), spine.ConfigFile)
	doc, source, err := definition.Load(filepath.Join(s.ws.Root, rel))
	if absent(err) {
		names, _ := definedIn(s.ws.Root)
		return loop.Definition{}, nil, s.noLoop(name, names)
	}
	if err != nil {
		return loop.Definition{}, nil, err
	}
	def, findings := doc.Definition(name)
	var warnings, problems []string
	if doc.Notice != "" {
		warnings = append(warnings, doc.Notice)
	}
	for _, f := range findings {
		text := f.Render(rel, source)
		if f.Severity == readiness.SeverityError {
			problems = append(problems, text)
			continue
		}
		warnings = append(warnings, text)
	}
	if len(problems) > 0 {
		return def, warnings, &loop.Fault{
			Exit: loop.ExitNotReady, What: name + " is not ready to run", Why: strings.Join(problems, "\n"),
			Fix: "correct " + rel,
		}
	}
	return def, warnings, nil
}

// amongThem is the fix for a name that is not one of those that there are.
func amongThem(name string, there []string) string {
	fix := "there are: " + strings.Join(there, ", ")
	if near := readiness.Nearest(name, there); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return fix
}

// noLoop is the error for a name that nothing answers to, with the names that
// there are.
func (s *Service) noLoop(name string, there []string) error {
	f := &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no loop %q in %s", name, s.ws.Root), Err: loop.ErrNotFound,
		Fix: "make it: pawl new " + name + "; or try `pawl run --until \"CMD\"`, which needs no file",
	}
	if len(there) > 0 {
		f.Fix = amongThem(name, there)
	}
	return f
}

// find resolves a LOOP: a name, or protocol:name where two protocols know the
// name.
func (s *Service) find(ctx context.Context, name string) (LoopRow, error) {
	rows, err := s.Loops(ctx)
	if err != nil {
		return LoopRow{}, err
	}
	var hits []LoopRow
	for _, row := range rows {
		if row.Name == name || row.Protocol+":"+row.Name == name {
			hits = append(hits, row)
		}
	}
	switch len(hits) {
	case 0:
		return LoopRow{}, s.noLoop(name, named(rows))
	case 1:
		return hits[0], nil
	}
	var choice []string
	for _, h := range hits {
		choice = append(choice, h.Protocol+":"+h.Name)
	}
	return LoopRow{}, &loop.Fault{
		Exit: loop.ExitUsage, What: fmt.Sprintf("%q names several loops", name), Fix: "say which: " + strings.Join(choice, " or "),
	}
}

func named(rows []LoopRow) []string {
	var names []string
	for _, row := range rows {
		names = append(names, row.Name)
	}
	return names
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
