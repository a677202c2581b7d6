package compose_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// The tiers that attacks are run in. What none shows is the layer behind the
// sandbox, which has to hold by itself.
const (
	bare = "none"
	full = "full"
)

// inTiers runs an attack in each tier, alone and then behind the sandbox.
func inTiers(t *testing.T, attack func(t *testing.T, tier string)) {
	t.Helper()
	for _, tier := range []string{bare, full} {
		t.Run("in "+tier, func(t *testing.T) {
			t.Parallel()
			if tier == full && !confines(t) {
				t.Skip("this system gives programs no root of their own")
			}
			attack(t, tier)
		})
	}
}

// inFull runs what is about the sandbox itself.
func inFull(t *testing.T, attack func(t *testing.T)) {
	t.Helper()
	t.Run("in full", func(t *testing.T) {
		t.Parallel()
		if !confines(t) {
			t.Skip("this system gives programs no root of their own")
		}
		attack(t)
	})
}

// confines reports whether this system gives programs a root of their own. Linux
// does, and a host that cannot fails what is about the sandbox.
func confines(t *testing.T) bool {
	t.Helper()
	if runtime.GOOS != "linux" {
		return false
	}
	box := sandbox.Box{Tier: sandbox.Full, Tree: "/srv/tree", Dir: t.TempDir(), Home: "/srv/home"}
	res, err := box.Run(t.Context(), proc.Spec{Argv: []string{"/bin/sh", "-c", "true"}, Dir: box.Tree})
	if err != nil || res.Exit != 0 {
		t.Fatalf("the full sandbox: exit status %d, %v; pawl doctor --sandbox says what this host lacks", res.Exit, err)
	}
	return true
}

// wantKeptOut holds that a change of protected files reached nothing: the mount
// let nobody make it, which the agent was told, or the run was refused for it.
func (v *victim) wantKeptOut(run runs.View, words ...string) {
	v.t.Helper()
	if v.tier == bare || run.Outcome == loop.OutcomeRefused {
		v.wantRefused(run, loop.ReasonScope, words...)
		return
	}
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonNoChanges {
		v.t.Fatalf("run = %s %s %q, want failed by no_changes", run.Outcome, run.Reason, run.Detail)
	}
	v.readOnly(run)
	v.accounted(run, "outcome=failed")
	v.nothingLanded(run)
}

// readOnly holds that the agent of a run met a file that it could not write.
func (v *victim) readOnly(run runs.View) {
	v.t.Helper()
	events, _, err := v.svc.Runs.Events(v.t.Context(), run.ID, 0, 1000)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, e := range events {
		if strings.Contains(e.Text, "Read-only file system") {
			return
		}
	}
	v.t.Errorf("none of %d events says that a file is read-only", len(events))
}
