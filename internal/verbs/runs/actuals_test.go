package runs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// used ends a run of the loop that used so many tokens.
func used(r *verbtest.Rig, name string, u loop.Usage, o loop.Outcome) {
	r.T.Helper()
	run := r.InsertRun(name, r.Self)
	run.Usage, run.Outcome = u, o
	err := r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		_, err := tx.Settle(r.T.Context(), run, loop.PhaseConclude, false)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
}

func TestActualsAreWhatTheNewestEndedRunsUsedOldestFirst(t *testing.T) {
	r := verbtest.New(t)
	began := r.Workspace.Now().Add(-time.Second)
	r.DefineLoop("tidy", verbtest.FindsNone)
	used(r, "tidy", loop.Usage{Input: 100, Output: 20, CacheRead: 9000, CacheWrite: 3, Source: loop.UsageMetered}, loop.OutcomeProposed)
	used(r, "tidy", loop.Usage{}, loop.OutcomeQuiet)
	used(r, "other", loop.Usage{Input: 7, Source: loop.UsageReported}, loop.OutcomeDone)
	used(r, "tidy", loop.Usage{Output: 5, Source: loop.UsageReported}, loop.OutcomeFailed)
	used(r, "tidy", loop.Usage{Input: 1, Source: loop.UsageEstimated}, loop.OutcomeGaveUp)
	r.InsertRun("tidy", r.Self)
	r.InsertRun("tidy", loop.Holder{})
	all := []runs.Actual{
		{N: 1, Tokens: 123, Output: 20, Source: loop.UsageMetered, Outcome: loop.OutcomeProposed},
		{N: 2, Outcome: loop.OutcomeQuiet},
		{N: 3, Tokens: 5, Output: 5, Source: loop.UsageReported, Outcome: loop.OutcomeFailed},
		{N: 4, Tokens: 1, Source: loop.UsageEstimated, Outcome: loop.OutcomeGaveUp},
	}
	for name, c := range map[string]struct {
		limit int
		want  []runs.Actual
	}{
		"all of them":     {20, all},
		"the newest two":  {2, all[2:]},
		"exactly as many": {4, all},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := r.Runs.Actuals(t.Context(), "tidy", c.limit)
			if err != nil || a.Loop != "tidy" || a.Protocol != loop.ProtocolSpine {
				t.Fatalf("actuals = %+v, %v", a, err)
			}
			if diff := cmp.Diff(c.want, a.Runs, cmpopts.IgnoreFields(runs.Actual{}, "Started")); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
			for _, run := range a.Runs {
				if run.Started == nil || run.Started.Before(began) || run.Started.After(r.Workspace.Now()) {
					t.Errorf("run #%d started %v", run.N, run.Started)
				}
			}
			o := verbtest.JSONObject(t, a)
			if keys := verbtest.KeysOf(o) + "; " + verbtest.KeysOf(first(o["runs"])); o["schema"] != "pawl.actuals/v1" ||
				keys != "loop protocol runs schema; n outcome output source started tokens" {
				t.Errorf("%v has the keys %s", o["schema"], keys)
			}
		})
	}
}

func TestActualsOfARunAreWhatTheRunSays(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo)
	v := r.RunLoop(runs.StartRequest{Loop: "tidy"})
	a, err := r.Runs.Actuals(t.Context(), "tidy", 5)
	if err != nil || len(a.Runs) != 1 {
		t.Fatalf("actuals = %+v, %v", a, err)
	}
	want := runs.Actual{v.N, v.Started, loop.Usage(v.Tokens).ChargedTokens(), v.Tokens.Output, v.Tokens.Source, v.Outcome}
	if diff := cmp.Diff(want, a.Runs[0]); diff != "" || want.Tokens == 0 {
		t.Errorf("(-run +actual):\n%s", diff)
	}
}

func TestALoopWithoutEndedRunsHasNoActuals(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("fresh", verbtest.FindsNone)
	r.DefineLoop("busy", verbtest.FindsNone)
	r.InsertRun("busy", r.Self)
	for name, c := range map[string]struct {
		s         *runs.Service
		loop, fix string
		limit     int
	}{
		"it never ran":              {r.Runs, "fresh", "pawl run fresh", 9},
		"there is no store":         {r.WithoutStore().Runs, "fresh", "pawl run fresh", 9},
		"its first run goes on":     {r.Runs, "busy", "pawl run busy", 9},
		"none are asked for":        {r.Runs, "busy", "pawl run busy", 0},
		"fewer than none":           {r.Runs, "busy", "pawl run busy", -1},
		"nobody knows it":           {r.Runs, "nobody", "there are: busy, fresh", 9},
		"nobody knows it, no store": {r.WithoutStore().Runs, "nobody", "there are: busy, fresh", 9},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.s.Actuals(t.Context(), c.loop, c.limit)
			verbtest.WantFault(t, err, loop.ExitNotFound, c.loop, "", c.fix)
			if !errors.Is(err, loop.ErrNotFound) {
				t.Errorf("%v is not ErrNotFound", err)
			}
		})
	}
}
