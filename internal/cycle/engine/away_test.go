package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// worksOnce is an agent that does its task.
func worksOnce(t *testing.T, before func()) func(context.Context, agent.Request) (agent.Result, error) {
	t.Helper()
	return func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		before()
		return says(t, req, `{"outcome":"done"}`)
	}
}

// proposedOnce checks that a run is what it would have been without an outage.
func (r *rig) proposedOnce(run loop.Run) {
	r.t.Helper()
	if run.Outcome != loop.OutcomeProposed || run.State != loop.RunEnded || run.Usage.ChargedTokens() != 110 {
		r.t.Fatalf("run = %s %s %q with %d tokens", run.State, run.Outcome, run.Detail, run.Usage.ChargedTokens())
	}
	if got := gittest.Run(r.t, r.root, "show", run.Branch+":src/a.txt"); got != "two" {
		r.t.Errorf("proposed a.txt = %q", got)
	}
	var kinds []string
	for _, l := range r.chain("lp_w") {
		kinds = append(kinds, l.Kind)
	}
	if got := strings.Join(kinds, " "); got != "definition effect approval run" {
		r.t.Errorf("links of the audit chain: %s, want each once", got)
	}
	if its := r.iterations(run.ID); len(its) != 1 || its[0].Verdict != loop.VerdictPass {
		r.t.Errorf("iterations = %+v", its)
	}
}

func TestADatabaseThatIsAwayForSecondsCostsARunNothing(t *testing.T) {
	for name, point := range map[string]string{
		"at the end of the turn":          "engine.act.after",
		"while the candidate is recorded": "engine.gather.commit.before",
		"in verify":                       "engine.verify.gates.after",
		"in conclude":                     "engine.conclude.commit.before",
		"before the effect":               "engine.effect.apply.before",
		"after the effect":                "engine.effect.apply.after",
		"at the very end":                 "engine.sleep.commit.before",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := pgtest.NewLine(t, storetest.PostgreSQL(t))
			r := newRig(t, line.URL)
			r.agent = worksOnce(t, func() {})
			plan := (&fault.Plan{}).Do(point, 1, func(context.Context) error {
				line.CutFor(1500 * time.Millisecond)
				return nil
			})
			run, err := r.engine.Run(fault.With(t.Context(), plan), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
			if err != nil {
				t.Fatal(err)
			}
			r.proposedOnce(run)
		})
	}
}

func TestACommitOfARunThatNobodyAcknowledgedHappensOnce(t *testing.T) {
	// A run makes six commits, and its claim is not cut. One that never arrived is made
	// again, one that was carried out is not. While the line is cut, a lease that is
	// extended may add to them.
	for name, c := range map[string]struct {
		cut   pgtest.Cut
		least int64
	}{"it never arrived": {pgtest.Before, 10}, "its acknowledgment was lost": {pgtest.After, 5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := pgtest.NewLine(t, storetest.PostgreSQL(t))
			r := newRig(t, line.URL)
			r.agent = worksOnce(t, func() {})
			target := r.worker(loop.TierAssisted, nil)
			var live atomic.Bool // The claim is not of a live run yet.
			var commits atomic.Int64
			line.Watch(func(query string) pgtest.Cut {
				if query != "commit" || !live.Load() || commits.Add(1)%2 == 0 {
					return pgtest.Nowhere
				}
				time.AfterFunc(500*time.Millisecond, line.Mend)
				return c.cut
			})
			plan := (&fault.Plan{}).Do("engine.claim.commit.after", 1, func(context.Context) error { live.Store(true); return nil })
			run, err := r.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"})
			if err != nil {
				t.Fatal(err)
			}
			line.Watch(nil)
			if n := commits.Load(); n < c.least {
				t.Errorf("%d commits were seen, want at least %d", n, c.least)
			}
			r.proposedOnce(run)
		})
	}
}

func TestAServerThatStopsAtTheEndOfATurnForEightSecondsCostsNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t, "fsync=off")
	r := newRig(t, server.URL())
	started := make(chan struct{})
	r.agent = worksOnce(t, func() {
		server.Stop()
		time.AfterFunc(8*time.Second, func() { server.Start(); close(started) })
	})
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	<-started
	r.proposedOnce(run)
}

func TestARunWhoseStoreIsGoneEndsKeepsItsWorkAndLandsNothing(t *testing.T) {
	remove := func(t *testing.T, place string) {
		t.Helper()
		if err := os.Remove(place); err != nil {
			t.Error(err)
		}
	}
	replace := func(t *testing.T, place string) {
		t.Helper()
		gittest.WriteFile(t, place+".new", "")
		if err := os.Rename(place+".new", place); err != nil {
			t.Error(err)
		}
	}
	server := pgtest.NewServer(t, "fsync=off")
	for name, c := range map[string]struct {
		point string // where it goes; empty: while the agent works
		gone  func(t *testing.T, place string)
	}{
		"deleted while the agent works":  {"", remove},
		"replaced while the agent works": {"", replace},
		"deleted in gather":              {"engine.gather.before", remove},
		"deleted in verify":              {"engine.verify.before", remove},
		"deleted in conclude":            {"engine.conclude.commit.before", remove},
		"deleted before the effect":      {"engine.effect.apply.before", remove},
		"dropped while the agent works":  {"", nil},
		"dropped before the effect":      {"engine.effect.apply.before", nil},
	} {
		t.Run(name, func(t *testing.T) {
			place := storetest.SQLite(t)
			want := place
			if c.gone == nil {
				place, want = server.URL(), "postgres://"
				c.gone = func(_ *testing.T, place string) { server.Drop(place) }
			}
			r := newRig(t, place)
			goes := func() { c.gone(t, place) }
			r.agent = worksOnce(t, func() {})
			plan := &fault.Plan{}
			if c.point != "" {
				plan.Do(c.point, 1, func(context.Context) error { goes(); return nil })
			} else {
				r.agent = untilStopped(t, goes)
			}
			before := gittest.Run(t, r.root, "rev-parse", "main")
			_, err := r.engine.Run(fault.With(t.Context(), plan), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
			f, ok := errors.AsType[*loop.Fault](err)
			if !errors.Is(err, loop.ErrStoreGone) || !ok || f.Fix == "" || f.Exit != loop.ExitError || !strings.Contains(err.Error(), want) {
				t.Fatalf("Run = %v, want an error that names %s", err, want)
			}
			if refs := gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl"); refs != "" || gittest.Run(t, r.root, "rev-parse", "main") != before {
				t.Errorf("something has landed: %s", refs)
			}
			if !strings.Contains(err.Error(), "refs/pawl/snapshots/w/1") {
				t.Errorf("Run = %v, want where the work is", err)
			}
			if got := gittest.Run(t, r.root, "show", "refs/pawl/snapshots/w/1:src/a.txt"); got == "one" {
				t.Errorf("kept a.txt = %q", got)
			}
		})
	}
}

// A turn that ended well is in no row before gather is over. Then the disk goes, or
// the store: neither the run's end nor a snapshot can be written.
func TestWhatAnAgentUsedIsNotLostWithWhatFailedAfterIt(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.writes.Store(1000)
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: 1_000_000})
		p.agent = p.spends(3, 1000)
		plan, err := fault.Parse("engine.gather.candidate.after=ENOSPC,engine.conclude.commit.before=ENOSPC")
		if err != nil {
			t.Fatal(err)
		}
		target := p.calls("w", nil)
		if _, err := p.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"}); err == nil {
			t.Fatal("the run came to its end")
		}
		rec, err := p.engine.Recover(t.Context(), target)
		if err != nil || rec == nil {
			t.Fatalf("recover = %+v, %v", rec, err)
		}
		p.wantUsed(rec.Run, 3*1010)
		if left, _ := filepath.Glob(filepath.Join(p.home, "runs", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// wantUsed checks that all who say what a run has used say the same.
func (p *meteredRig) wantUsed(run loop.Run, want int64) {
	p.t.Helper()
	var turns int64
	rows := p.turnRows(run.ID)
	for _, row := range rows {
		turns += row.Usage.ChargedTokens()
	}
	if run.Usage.ChargedTokens() != want || turns != want || run.Usage.Source != loop.UsageMetered || run.Cost.MicroUSD == 0 {
		p.t.Errorf("the run used %+v (%d micro USD), its turns %d, want %d metered", run.Usage, run.Cost.MicroUSD, turns, want)
	}
	if st := p.standing(all); st.Used.Tokens != want || !st.Reserved.Zero() {
		p.t.Errorf("the budget says %+v, want %d", st, want)
	}
	links := p.chain(run.LoopID)
	if last := links[len(links)-1]; last.Kind != "run" || !strings.Contains(last.Body, fmt.Sprintf(`"tokens":%d`, want)) {
		p.t.Errorf("the audit chain says %+v, want %d tokens", last, want)
	}
}

func TestWhatAnAgentUsedIsNotLostWithAnErrorOfItsTurn(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), fakemodel.Script{})
	p.writes.Store(1000)
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		if status, text := ask(ctx, t, r, 1000); status != http.StatusOK {
			t.Errorf("status %d: %s", status, text)
		}
		return agent.Result{}, errors.New("the sandbox broke")
	}
	run := p.run(p.calls("w", nil), engine.Firing{})
	if rows := p.turnRows(run.ID); run.Outcome != loop.OutcomeFailed || run.Usage.ChargedTokens() != 1010 || len(rows) != 1 {
		t.Errorf("run = %s %q used %d tokens in %d turns, want 1010", run.Outcome, run.Detail, run.Usage.ChargedTokens(), len(rows))
	}
}
