package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestALoopThatCannotBeAddedStartsNoRun(t *testing.T) {
	r := one(t)
	err := r.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.SQLite().ExecContext(t.Context(), `CREATE TRIGGER none BEFORE INSERT ON loops BEGIN SELECT RAISE(ABORT, 'no loop'); END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.engine.Run(t.Context(), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
	if err == nil || !strings.Contains(err.Error(), "no loop") {
		t.Errorf("run = %+v, %v, want the error of the store", run, err)
	}
}

// A run that could not be concluded is in the way of the next one. It is held by
// this process, and saying so would help nobody.
func TestARunThatCannotBeConcludedIsNotSaidToBeHeldByAnotherProcess(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	failing := func(at string) context.Context {
		plan, err := fault.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		return fault.With(t.Context(), plan)
	}
	target := r.worker(loop.TierAssisted, nil)
	stuck, err := r.engine.Run(failing("engine.effect.apply.before=EIO"), target, engine.Firing{Trigger: "manual"})
	if err == nil {
		t.Fatal("the effect did not fail")
	}
	other, err := flock.Try(filepath.Join(r.root, ".git", "pawl-effects-"+stuck.ID))
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := r.engine.Recover(t.Context(), target); rec != nil || err != nil {
		t.Errorf("recovered %+v, %v while another process applies its effects", rec, err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.engine.Recover(failing("engine.effect.apply.before=EIO"), target); err == nil {
		t.Fatalf("recovered %+v on a disk that fails", rec)
	}
	_, err = r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	f, ok := errors.AsType[*loop.Fault](err)
	if _, held := errors.AsType[*loop.HeldError](err); held || !ok || f.Fix == "" || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("run = %v, want why the run before could not be concluded", err)
	}
	if rec, err := r.engine.Recover(t.Context(), target); err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeProposed {
		t.Fatalf("recover = %+v, %v", rec, err)
	}
	if run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); err != nil || run.State != loop.RunEnded {
		t.Errorf("run = %+v, %v", run, err)
	}
}
