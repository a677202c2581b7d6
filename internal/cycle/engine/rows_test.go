package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// rowBoard is a protocol whose tasks are rows that other loops claim, too.
type rowBoard struct {
	boardLike
	begun func(key string) // called before a claim is made
}

func (p rowBoard) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s := &rowSession{boardSession: boardSession{p.boardLike, v}, p: p}
	return s, s.Refresh(ctx)
}

type rowSession struct {
	boardSession
	p     rowBoard
	tasks []loop.Row
	reads int
}

func (s *rowSession) Refresh(ctx context.Context) (err error) {
	s.reads++
	s.tasks, err = s.v.Rows.List(ctx, loop.RowQuery{Set: "tasks"})
	return err
}

func (s *rowSession) Candidates(engine.Sensed, time.Time) (list []plan.Candidate) {
	for _, row := range s.tasks {
		c := plan.Candidate{Step: s.row(row.Key, loop.StepWork)}
		if row.State != "todo" && row.RunID != s.v.Run.ID {
			c.Drop, c.Detail = loop.ReasonStepClaimed, row.Owner+" has it"
		}
		list = append(list, c)
	}
	return list
}

func (s *rowSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	_, brief, err := s.boardSession.Begin(ch)
	row := s.tasks[slices.IndexFunc(s.tasks, func(r loop.Row) bool { return r.Key == ch.Step.Key })]
	row.State, row.Owner, row.Hold = "in_progress", s.v.Loop.Name, true
	if s.p.begun != nil {
		s.p.begun(row.Key)
	}
	return []loop.Change{{Kind: loop.ChangeRow, Row: &row}}, brief, err
}

func (s *rowSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	_, effects := s.boardSession.Record(r)
	row := loop.Row{Set: "tasks", Key: r.Settlement.Step.Key, State: "done", Owner: s.v.Loop.Name, Holds: true, Body: json.RawMessage(`{"by":"` + s.v.Run.ID + `"}`)}
	return []loop.Change{{Kind: loop.ChangeRow, Row: &row}}, effects
}

// addTasks makes tasks that nobody has.
func (r *rig) addTasks(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		r.writeRow(loop.Row{Set: "tasks", Key: key, State: "todo", Body: json.RawMessage(`{"title":"` + key + `"}`)})
	}
}

func (r *rig) writeRow(row loop.Row) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return tx.WriteRow(r.t.Context(), "ws", row) })
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) task(key string) (row loop.Row) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		row, err = rd.Row(r.t.Context(), "ws", "tasks", key)
		return err
	})
	return row
}

// take makes a task that of somebody else.
func (r *rig) take(key string) {
	r.t.Helper()
	row := r.task(key)
	row.State, row.Owner = "in_progress", "ada"
	r.writeRow(row)
}

// rowRig has tasks, and an agent that writes a file.
func rowRig(t *testing.T, r *rig, p rowBoard, work func(key string), keys ...string) engine.Target {
	t.Helper()
	target := r.target("b", p, loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"})
	r.run(target, engine.Firing{}) // The workspace is known after the first run, which finds nothing to do.
	r.addTasks(keys...)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		key := strings.TrimSpace(variable(req, "PAWL_STEP")[strings.Index(variable(req, "PAWL_STEP"), " "):])
		work(key)
		gittest.WriteFile(t, filepath.Join(req.Dir, "src", key+".txt"), "good\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	return target
}

func TestAStepThatSomebodyElseClaimsFirstIsDroppedAndTheNextOneIsWorkedOn(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		var worked []string
		var p rowBoard
		p.begun = func(key string) {
			if key == "t1" {
				r.take("t1")
				r.take("t2")
			}
		}
		target := rowRig(t, r, p, func(key string) { worked = append(worked, key) }, "t1", "t2", "t3")
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || !slices.Equal(worked, []string{"t3"}) {
			t.Fatalf("run = %s %s %q after %v, want t3 proposed", run.Outcome, run.Reason, run.Detail, worked)
		}
		its := r.iterations(run.ID)
		if len(its) != 1 {
			t.Fatalf("%d iterations, want one: a claim that was lost is none", len(its))
		}
		for i, want := range []loop.Reason{loop.ReasonStepClaimed, loop.ReasonStepClaimed, loop.ReasonChosen} {
			if got := its[0].Considered[i]; got.Reason != want {
				t.Errorf("%s: %s, want %s", got.Step, got.Reason, want)
			}
		}
		if row := r.task("t3"); row.State != "done" || row.RunID != "" || string(row.Body) != `{"by":"`+run.ID+`","title":"t3"}` {
			t.Errorf("t3 is %+v %s", row, row.Body)
		}
		if row := r.task("t1"); row.Owner != "ada" {
			t.Errorf("t1 is that of %s, want ada", row.Owner)
		}
	})
}

func TestARunWhoseEveryClaimIsLostEndsQuiet(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		var p rowBoard
		p.begun = func(key string) { r.take(key) }
		target := rowRig(t, r, p, func(string) { t.Error("an agent was woken") }, "t1", "t2")
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonStepClaimed && run.Reason != loop.ReasonAllDropped || len(r.iterations(run.ID)) != 0 {
			t.Errorf("run = %s %s %q, want quiet", run.Outcome, run.Reason, run.Detail)
		}
	})
}

func TestWhatAPersonTakesWhileARunWorksOnItStaysTheirs(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := rowRig(t, r, rowBoard{}, func(key string) {
			if row := r.task(key); row.RunID == "" || row.Owner != "b" {
				t.Errorf("while it is worked on the task is %+v", row)
			}
			r.take(key)
		}, "t1")
		run := r.run(target, engine.Firing{})
		if row := r.task("t1"); row.Owner != "ada" || row.State != "in_progress" || string(row.Body) != `{"title": "t1"}` && string(row.Body) != `{"title":"t1"}` {
			t.Errorf("the task is %+v %s, want as the person left it", row, row.Body)
		}
		if run.Outcome != loop.OutcomeProposed {
			t.Errorf("run = %s %q: the work is there, and a person decides", run.Outcome, run.Detail)
		}
	})
}
