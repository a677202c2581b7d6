package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestWhyNamesTheRunThatGoesFirst(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		r.DefineLoop("fix", verbtest.WritesTwo)
		r.DefineLoop("urgent", verbtest.WritesTwo, "priority", "90")
		for _, name := range []string{"fix", "urgent"} { // Both are known, and have no open question.
			r.RunLoop(runs.StartRequest{Loop: name})
		}
		ended := r.StartLive("slow")
		tick := func(name string) (id string, err error) {
			t.Helper()
			target := r.Workspace.Target(r.Definition(name))
			err = r.Store.Update(t.Context(), func(tx *store.Tx) error {
				run, err := r.Engine.Fire(t.Context(), tx, target, engine.Firing{Trigger: "cadence"})
				id = run.ID
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Engine.Execute(t.Context(), target, id)
			return id, err
		}
		why := func(ref string) runs.Why {
			t.Helper()
			w, err := r.Runs.Why(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		deferred, err := tick("fix")
		if err != nil {
			t.Fatal(err)
		}
		w := why(deferred)
		first := w.GoesFirst
		if first == nil || first.Loop != "slow" || first.N != 1 || first.Rule != loop.ReasonLockHigher || first.Scope != "src/**" || first.Until.Before(time.Now()) {
			t.Fatalf("why says %+v", first)
		}
		if first.State != loop.RunRunning || first.Holder == nil || *first.Holder != r.Self || first.Ended != nil || !strings.Contains(w.Next, "pawl run fix --wait") {
			t.Errorf("while it is at work, why says %+v and %q", first, w.Next)
		}
		if row := r.ShowRow("fix"); row.DeferredTo == nil || row.DeferredTo.Run != first.Run {
			t.Errorf("the loop deferred to %+v", row.DeferredTo)
		}
		if v, err := r.Runs.Show(t.Context(), deferred); err != nil || v.DeferredTo == nil || v.DeferredTo.Run != first.Run || v.Outcome != loop.OutcomeQuiet {
			t.Errorf("the run is %s and deferred to %+v, %v", v.Outcome, v.DeferredTo, err)
		}
		queued, err := tick("urgent")
		if err == nil {
			t.Fatal("it has not waited")
		}
		if got := why(queued).GoesFirst; got == nil || got.Run != first.Run || got.Rule != loop.ReasonLockHeld || got.Holder == nil {
			t.Errorf("of a queued run why says %+v", got)
		}
		if _, err := r.Runs.Stop(t.Context(), verbtest.Ann, "slow", "the test"); err != nil {
			t.Fatal(err)
		}
		<-ended
		if got := why(deferred).GoesFirst; got == nil || got.Ended == nil || got.Holder != nil {
			t.Errorf("when it is over, why says %+v", got)
		}
		if got := why(queued).GoesFirst; got != nil {
			t.Errorf("nothing is in its way, and why says %+v", got)
		}
	})
}
