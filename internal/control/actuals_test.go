package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// used ends a run of the loop that used so many tokens.
func (r *rig) used(name string, u loop.Usage, o loop.Outcome) {
	r.t.Helper()
	run := r.fire(name, r.self)
	run.Usage, run.Outcome = u, o
	err := r.Store.Update(r.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Settle(r.t.Context(), run, loop.PhaseConclude, false)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestActualsAreWhatTheNewestEndedRunsUsedOldestFirst(t *testing.T) {
	r := newRig(t)
	began := r.Now().Add(-time.Second)
	r.define("tidy", findsNone)
	r.used("tidy", loop.Usage{Input: 100, Output: 20, CacheRead: 9000, CacheWrite: 3, Source: loop.UsageMetered}, loop.OutcomeProposed)
	r.used("tidy", loop.Usage{}, loop.OutcomeQuiet)
	r.used("other", loop.Usage{Input: 7, Source: loop.UsageReported}, loop.OutcomeDone)
	r.used("tidy", loop.Usage{Output: 5, Source: loop.UsageReported}, loop.OutcomeFailed)
	r.used("tidy", loop.Usage{Input: 1, Source: loop.UsageEstimated}, loop.OutcomeGaveUp)
	r.fire("tidy", r.self)
	r.fire("tidy", loop.Holder{})
	all := []Actual{
		{N: 1, Tokens: 123, Output: 20, Source: loop.UsageMetered, Outcome: loop.OutcomeProposed},
		{N: 2, Outcome: loop.OutcomeQuiet},
		{N: 3, Tokens: 5, Output: 5, Source: loop.UsageReported, Outcome: loop.OutcomeFailed},
		{N: 4, Tokens: 1, Source: loop.UsageEstimated, Outcome: loop.OutcomeGaveUp},
	}
	for name, c := range map[string]struct {
		limit int
		want  []Actual
	}{
		"all of them":     {20, all},
		"the newest two":  {2, all[2:]},
		"exactly as many": {4, all},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := r.Actuals(t.Context(), "tidy", c.limit)
			if err != nil || a.Loop != "tidy" || a.Protocol != loop.ProtocolSpine {
				t.Fatalf("actuals = %+v, %v", a, err)
			}
			if diff := cmp.Diff(c.want, a.Runs, cmpopts.IgnoreFields(Actual{}, "Started")); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
			for _, run := range a.Runs {
				if run.Started == nil || run.Started.Before(began) || run.Started.After(r.Now()) {
					t.Errorf("run #%d started %v", run.N, run.Started)
				}
			}
			o := object(t, a)
			if keys := keysOf(o) + "; " + keysOf(first(o["runs"])); o["schema"] != "pawl.actuals/v1" ||
				keys != "loop protocol runs schema; n outcome output source started tokens" {
				t.Errorf("%v has the keys %s", o["schema"], keys)
			}
		})
	}
}

func TestActualsOfARunAreWhatTheRunSays(t *testing.T) {
	r := newRig(t)
	r.define("tidy", writesTwo)
	v := r.run(RunRequest{Loop: "tidy"})
	a, err := r.Actuals(t.Context(), "tidy", 5)
	if err != nil || len(a.Runs) != 1 {
		t.Fatalf("actuals = %+v, %v", a, err)
	}
	want := Actual{v.N, v.Started, loop.Usage(v.Tokens).Charged(), v.Tokens.Output, v.Tokens.Source, v.Outcome}
	if diff := cmp.Diff(want, a.Runs[0]); diff != "" || want.Tokens == 0 {
		t.Errorf("(-run +actual):\n%s", diff)
	}
}

func TestALoopWithoutEndedRunsHasNoActuals(t *testing.T) {
	r := newRig(t)
	r.define("fresh", findsNone)
	r.define("busy", findsNone)
	r.fire("busy", r.self)
	for name, c := range map[string]struct {
		s         *Service
		loop, fix string
		limit     int
	}{
		"it never ran":              {r.Service, "fresh", "pawl run fresh", 9},
		"there is no store":         {r.without(), "fresh", "pawl run fresh", 9},
		"its first run goes on":     {r.Service, "busy", "pawl run busy", 9},
		"none are asked for":        {r.Service, "busy", "pawl run busy", 0},
		"fewer than none":           {r.Service, "busy", "pawl run busy", -1},
		"nobody knows it":           {r.Service, "nobody", "there are: busy, fresh", 9},
		"nobody knows it, no store": {r.without(), "nobody", "there are: busy, fresh", 9},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.s.Actuals(t.Context(), c.loop, c.limit)
			wantFault(t, err, loop.ExitNotFound, c.loop, "", c.fix)
			if !errors.Is(err, loop.ErrNotFound) {
				t.Errorf("%v is not ErrNotFound", err)
			}
		})
	}
}

func TestTheStoreIsNamedAlsoWhenItIsNotThere(t *testing.T) {
	r := newRig(t)
	v, err := r.StoreInfo(t.Context())
	if err != nil || v.State != StoreReady || v.Driver != "sqlite" || !strings.HasSuffix(v.Location, "/pawl.db") || v.Version < 1 || v.Problem != "" {
		t.Errorf("store = %+v, %v", v, err)
	}
	if got := keysOf(object(t, v)); got != "driver location schema state version" {
		t.Errorf("keys = %s", got)
	}
	none := StoreInfo{Schema: "pawl.store/v1", State: "none_yet"}
	if got, err := r.without().StoreInfo(t.Context()); err != nil || got != none {
		t.Errorf("no store = %+v, %v, want %+v", got, err, none)
	}

	lost := errors.New("somebody pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	if _, err := r.StoreInfo(ctx); !errors.Is(err, lost) {
		t.Errorf("canceled = %v", err)
	}
}

func TestAStoreThatDoesNotAnswerIsAStateAndNoError(t *testing.T) {
	r := newRig(t)
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := r.StoreInfo(t.Context())
	if err != nil || v.State != StoreUnreachable || v.Location == "" || v.Version != 0 || v.Problem == "" {
		t.Errorf("store = %+v, %v", v, err)
	}
}
