package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/trigger"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

// rig is a store whose time is set by the test, with triggers of two nodes on which its
// one workspace lies.
type rig struct {
	t     testing.TB
	store *store.Store
	nodes [2]*trigger.Trigger
	loops map[string]loop.Loop // by id, as they were registered
	defs  map[string]loop.Definition

	millis atomic.Int64
	sw     atomic.Pointer[string] // kill switch of all loops, by its file
	broken sync.Map               // ids of loops whose target cannot be made
	rested sync.Map               // ids of loops that could not be fired
	ids    atomic.Int64
}

var start = time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)

func (r *rig) now() time.Time         { return time.UnixMilli(r.millis.Load()).UTC() }
func (r *rig) moves(by time.Duration) { r.millis.Add(by.Milliseconds()) }

func newRig(tb testing.TB, database string) *rig {
	tb.Helper()
	r := &rig{t: tb, loops: map[string]loop.Loop{}, defs: map[string]loop.Definition{}}
	r.millis.Store(start.UnixMilli())
	s, err := store.Open(context.Background(), store.Options{Database: database, Now: time.Now, Virtual: r.now})
	if err != nil {
		tb.Fatal(err)
	}
	r.store = s
	tb.Cleanup(func() { r.closes() })
	eng := engine.New(engine.Deps{Store: s, Now: r.now, NewID: func(prefix string) string { return fmt.Sprintf("%s_%06d", prefix, r.ids.Add(1)) }})
	r.update(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddWorkspace(ctx, loop.Workspace{ID: "ws", Root: "/repo"}); err != nil {
			return err
		}
		for i := range r.nodes {
			id := fmt.Sprint("node_", i)
			err := errors.Join(tx.SaveNode(ctx, loop.Node{ID: id, Name: id}), tx.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: id, Path: "/repo"}))
			if err != nil {
				return err
			}
		}
		return nil
	})
	for i := range r.nodes {
		r.nodes[i] = &trigger.Trigger{
			Store: s, Node: fmt.Sprint("node_", i), Engine: eng, Tell: func(l loop.Loop, _ error) { r.rested.Store(l.ID, true) },
			Target: func(_ context.Context, l loop.Loop, d loop.Definition) (t engine.Target, sw string, err error) {
				if _, broken := r.broken.Load(l.ID); broken {
					return t, "", errors.New("its repository is gone")
				}
				if p := r.sw.Load(); p != nil {
					sw = *p
				}
				return engine.Target{Workspace: loop.Workspace{ID: "ws", Root: "/repo"}, Loop: l, Definition: d}, sw, nil
			},
		}
	}
	return r
}

// closes closes the store, which is used no more.
func (r *rig) closes() {
	if r.store == nil {
		return
	}
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
	r.store = nil
}

func onBoth(t *testing.T, test func(t *testing.T, database func(testing.TB) string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, storetest.SQLite) })
	t.Run("postgres", func(t *testing.T) { test(t, storetest.PostgreSQL) })
}

func (r *rig) update(fn func(context.Context, *store.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(context.Background(), func(tx *store.Tx) error { return fn(context.Background(), tx) }); err != nil {
		r.t.Fatal(err)
	}
}

// registers makes a loop known, as the catalog does.
func (r *rig) registers(d loop.Definition) string {
	r.t.Helper()
	l := loop.Loop{ID: "lp_" + d.Name, WorkspaceID: "ws", Name: d.Name, Protocol: loop.ProtocolSpine}
	d.Tier = loop.TierReport
	d = d.WithDefaults()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, l); err != nil {
			return err
		}
		row, err := tx.Loop(ctx, l.ID)
		if err != nil {
			return err
		}
		next, err := schedule.Next(d, row.Created, tx.Now())
		if err != nil {
			return err
		}
		return errors.Join(tx.AddDefinition(ctx, l.ID, d), tx.SaveRegistration(ctx, l.ID, loop.Registration{
			Source: "s", Good: d.Digest(), Planned: next.Planned, Due: next.Due,
		}))
	})
	r.loops[l.ID], r.defs[l.ID] = r.row(l.ID), d
	return l.ID
}

func (r *rig) row(id string) (l loop.Loop) {
	r.t.Helper()
	r.view(func(ctx context.Context, rd *store.Reader) (err error) {
		l, err = rd.Loop(ctx, id)
		return err
	})
	return l
}

func (r *rig) view(fn func(context.Context, *store.Reader) error) {
	r.t.Helper()
	if err := r.store.View(context.Background(), func(rd *store.Reader) error { return fn(context.Background(), rd) }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tick(node int) (fired []loop.Run, next time.Time) {
	r.t.Helper()
	fired, next, err := r.nodes[node].Tick(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return fired, next
}

// ends carries out the queued runs of a loop, at most so many.
func (r *rig) ends(id string, most int) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		runs, err := tx.PlannedRuns(ctx, id)
		for _, run := range runs[:min(most, len(runs))] {
			if run, _, err = tx.Claim(ctx, run.ID, run.Fence, loop.Holder{Host: "h", PID: 1}, loop.Holder{}); err != nil {
				return err
			}
			run.Outcome = loop.OutcomeQuiet
			if _, err = tx.Settle(ctx, run, loop.PhaseConclude, false); err != nil {
				return err
			}
		}
		return err
	})
}

// ledger returns what became of the planned times of a loop, oldest first, as text.
func (r *rig) ledger(id string) string {
	r.t.Helper()
	var lines []string
	r.view(func(ctx context.Context, rd *store.Reader) error {
		ticks, err := rd.Ticks(ctx, id, time.Time{}, 1000)
		for _, k := range ticks {
			line := k.First.UTC().Format("15:04")
			if k.N > 1 {
				line += fmt.Sprintf("+%d", k.N-1)
			}
			line += " " + string(k.Verdict)
			if k.Reason != "" {
				line += " " + k.Reason
			}
			if k.RunID != "" {
				run, err := rd.Run(ctx, k.RunID)
				if err != nil {
					return err
				}
				line += fmt.Sprintf(" #%d", run.N)
			}
			lines = append([]string{line}, lines...)
		}
		return err
	})
	return strings.Join(lines, ", ")
}

func TestALoopFiresAtItsTimesAndTheLedgerSaysWhatBecameOfEach(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l", Cadence: "1h"})
		if fired, next := r.tick(0); len(fired) > 0 || !next.Equal(start.Add(time.Hour)) {
			t.Fatalf("before its time %v fired, the next is due at %s", fired, next)
		}
		r.moves(time.Hour)
		fired, next := r.tick(0)
		if len(fired) != 1 || !next.Equal(start.Add(2*time.Hour)) {
			t.Fatalf("in time %v fired, the next is due at %s", fired, next)
		}
		run := fired[0]
		if run.Trigger != "schedule" || !run.Planned.Equal(start.Add(time.Hour)) || run.By.Role != loop.RoleTrigger || run.State != loop.RunQueued {
			t.Errorf("the run is %+v", run)
		}
		if fired, _ := r.tick(1); len(fired) > 0 {
			t.Errorf("the other node fired %v once more", fired)
		}
		r.moves(time.Hour) // Nobody has taken up the run: it serves for this time too.
		r.tick(1)
		r.ends(id, 1)
		r.moves(3 * time.Hour) // Nobody was there.
		r.tick(0)
		r.moves(-2 * time.Hour) // The clock was set back.
		r.tick(0)
		r.ends(id, 1)
		r.moves(3 * time.Hour)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SetSwitch(ctx, loop.Actor{Who: "ann"}, "", "drill")
			return err
		})
		r.tick(0)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ClearSwitch(ctx, "")
			return err
		})
		r.moves(time.Hour)
		sw := ".loops/PAUSED"
		r.sw.Store(&sw)
		r.tick(1)
		r.sw.Store(nil)
		r.moves(time.Hour)
		r.tick(0)
		want := "13:00 ran #1, 14:00 coalesced #1, 15:00+1 coalesced #2, 17:00 ran #2, 18:00 skipped paused, 19:00 skipped paused, 20:00 ran #3"
		if got := r.ledger(id); got != want {
			t.Errorf("the ledger is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestALoopIsPlannedAnewAfterTheClockWasSetBackUnlessItsTimesAreDecided(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		old := r.registers(loop.Definition{Name: "old", Cadence: "1h"})
		anew := func(want ...string) {
			t.Helper()
			loops, err := r.nodes[1].PlanAnew(t.Context())
			var got []string
			for _, l := range loops {
				got = append(got, l.ID+" at "+l.Registered.Planned.UTC().Format("2 15:04"))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("planned anew are %q, %v, want %q", got, err, want)
			}
		}
		r.moves(90 * time.Minute)
		r.tick(0)
		fresh := r.registers(loop.Definition{Name: "fresh", Cadence: "1h"})
		anew()
		r.moves(-7 * 24 * time.Hour)
		anew(fresh + " at 28 14:30")
		anew()
		r.moves(time.Hour)
		r.tick(0)
		r.moves(7*24*time.Hour + 30*time.Minute)
		r.tick(0)
		want := "13:00 ran #1, 14:00 coalesced #1, 15:00 coalesced #1; 14:30 ran #1, 15:30+166 coalesced #1, 14:30 coalesced #1"
		if got := r.ledger(old) + "; " + r.ledger(fresh); got != want {
			t.Errorf("the ledgers are %s, want %s", got, want)
		}
	})
}

func TestALoopThatCannotBeFiredKeepsNoOtherFromIt(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		bad := r.registers(loop.Definition{Name: "bad", Cadence: "1h"})
		good := r.registers(loop.Definition{Name: "good", Cadence: "1h"})
		r.broken.Store(bad, true)
		r.moves(time.Hour)
		if _, next := r.tick(0); next.After(r.now().Add(time.Minute)) || !next.After(r.now()) {
			t.Errorf("it is tried again at %s, now is %s", next, r.now())
		}
		if _, told := r.rested.Load(bad); !told {
			t.Error("nobody was told that it cannot be fired")
		}
		r.broken.Delete(bad)
		r.moves(-time.Hour) // The clock is set back and right again.
		r.tick(0)
		r.moves(time.Hour)
		r.tick(0)
		if got := r.ledger(bad) + ", " + r.ledger(good); got != "13:00 ran #1, 13:00 ran #1" {
			t.Errorf("the ledgers are %s", got)
		}
	})
}

// Two nodes, loops that run or wait, switches, and a clock that jumps both ways: the
// ledger has each planned time once, as a calendar of its own says, and a run for
// each time that ran.
func TestNoPlannedTimeIsLostOrFiresTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		sample.Checks(t, 12)
		rapid.Check(t, func(rt *rapid.T) {
			r := newRig(t, database(t))
			defer r.closes()
			cadences := []string{"10m", "1h", "7h", "*/30 * * * *", "30 2 * * *", "0 * * * *"}
			for i, cadence := range rapid.SliceOfN(rapid.SampledFrom(cadences), 1, 5).Draw(rt, "cadences") {
				r.registers(loop.Definition{
					Name: fmt.Sprint("l", i), Cadence: cadence, Timezone: rapid.SampledFrom([]string{"", "America/New_York"}).Draw(rt, "zone"),
					CatchUp: rapid.SampledFrom([]loop.CatchUp{loop.CatchUpOne, loop.CatchUpSkip, loop.CatchUpAll}).Draw(rt, "catch up"),
					Jitter:  rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(rt, "jitter"),
				})
			}
			latest := r.now()
			for range rapid.IntRange(3, 12).Draw(rt, "steps") {
				r.moves(time.Duration(rapid.IntRange(-60, 400).Draw(rt, "minutes")) * time.Minute)
				r.moves(rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 0, -7 * 24 * time.Hour, 7 * 24 * time.Hour}).Draw(rt, "jump"))
				if r.now().After(latest) {
					latest = r.now()
				}
				if rapid.IntRange(0, 4).Draw(rt, "paused") == 0 {
					sw := "PAUSED"
					r.sw.Store(&sw)
				} else {
					r.sw.Store(nil)
				}
				var both sync.WaitGroup
				for i := range r.nodes {
					both.Go(func() {
						if _, _, err := r.nodes[i].Tick(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				both.Wait()
				for id := range r.loops {
					if rapid.IntRange(0, 3).Draw(rt, "event") == 0 {
						r.happens(id, loop.FiringEvent{Source: "file:a"}, nil)
					}
					r.ends(id, rapid.IntRange(0, 3).Draw(rt, "runs"))
				}
			}
			r.sw.Store(nil)
			r.millis.Store(latest.UnixMilli())
			for range 2 { // What was put off by a jitter comes then.
				r.moves(5 * time.Minute)
				r.tick(0)
			}
			r.rested.Range(func(id, _ any) bool {
				rt.Fatalf("%v could not be fired", id)
				return false
			})
			for id, l := range r.loops {
				r.checks(rt, l, r.defs[id], latest)
			}
		})
	})
}

func (r *rig) checks(rt *rapid.T, l loop.Loop, d loop.Definition, latest time.Time) {
	rt.Helper()
	var ticks []loop.Tick
	var runs []loop.Run
	r.view(func(ctx context.Context, rd *store.Reader) (err error) {
		if ticks, err = rd.Ticks(ctx, l.ID, time.Time{}, 10000); err != nil {
			return err
		}
		runs, err = rd.Runs(ctx, l.ID, 10000)
		return err
	})
	cadence, err := schedule.ParseFor(d.Cadence, d.Name)
	if err != nil {
		rt.Fatal(err)
	}
	zone, err := schedule.Zone(d.Timezone)
	if err != nil {
		rt.Fatal(err)
	}
	cadence = cadence.Anchored(l.Created)
	planned := cadence.Next(l.Created, zone)
	ran := map[string]time.Time{}
	for _, k := range slices.Backward(ticks) {
		for n := range k.N {
			if n == 0 && !k.First.Equal(planned) || n == k.N-1 && !k.Last.Equal(planned) {
				rt.Fatalf("%s: the next entry of the ledger is %+v, the next time of the calendar %s", l.Name, k, planned)
			}
			planned = cadence.Next(planned, zone)
		}
		if (k.RunID == "") != (k.Verdict == loop.TickSkipped) {
			rt.Fatalf("%s: %+v", l.Name, k)
		}
		if k.Verdict == loop.TickRan {
			ran[k.RunID] = k.First
		}
	}
	if last := latest.Add(-d.Jitter); !planned.After(last) {
		rt.Fatalf("%s: what was planned for %s is lost", l.Name, planned)
	}
	runs = slices.DeleteFunc(runs, func(run loop.Run) bool { return run.Event != "" })
	if len(runs) != len(ran) {
		rt.Fatalf("%s: %d runs were fired, the ledger has %d", l.Name, len(runs), len(ran))
	}
	for _, run := range runs {
		if at, ok := ran[run.ID]; !ok || !at.Equal(run.Planned) {
			rt.Fatalf("%s: run %d was planned for %s, the ledger says %s", l.Name, run.N, run.Planned, at)
		}
	}
}
