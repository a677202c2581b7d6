package engine_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

func TestARunKeepsWhatItWasPlannedForAndWhatTriggeredIt(t *testing.T) {
	r := newRig(t, filepath.Join(t.TempDir(), "pawl.db"))
	planned := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	target := r.target("u", pinned{}, until("test -f README.md", "u", []string{"src/**"}))
	id := r.run(target, engine.Firing{Trigger: "cadence", Planned: planned, Event: "push main"}).ID
	var run loop.Run
	r.view(func(rd *store.Reader) (err error) {
		run, err = rd.Run(t.Context(), id)
		return err
	})
	if run.Trigger != "cadence" || !run.Planned.Equal(planned) || run.Event != "push main" {
		t.Errorf("run was fired by %q %q, planned for %v", run.Trigger, run.Event, run.Planned)
	}
}
