package compose_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/queue"
	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/cycle/trigger"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// scripted is a loop whose agent works for the same time in each run, and then is blocked.
type scripted struct {
	loop.Definition

	took       time.Duration
	registered time.Duration // before the start
}

func scriptedLoops() []scripted {
	src := []string{"src/**"}
	list := []scripted{
		{loop.Definition{Name: "a", Cadence: "10m", Tier: loop.TierAssisted, Scope: src, Priority: 50}, 4*time.Minute + 10*time.Second, 0},
		{loop.Definition{Name: "b", Cadence: "10m", Tier: loop.TierAssisted, Scope: src, Priority: 10, DeferBound: 2}, 3*time.Minute + 20*time.Second, 0},
		{loop.Definition{Name: "c", Cadence: "7m", Tier: loop.TierAssisted, Scope: []string{"docs/**"}, Priority: 25}, 16*time.Minute + 5*time.Second, 3 * time.Minute},
		{loop.Definition{Name: "d", Cadence: "*/15 * * * *", Tier: loop.TierReport}, 30 * time.Second, 0},
		{loop.Definition{Name: "e", Cadence: "20m", Tier: loop.TierAssisted, Scope: []string{"src/x/**"}, Priority: 80, Jitter: 2 * time.Minute}, 70 * time.Second, 5 * time.Minute},
		{loop.Definition{Name: "f", Cadence: "9m", Tier: loop.TierAssisted, Scope: []string{"docs/a.md"}, Priority: 25, CatchUp: loop.CatchUpAll}, 100 * time.Second, 4 * time.Minute},
	}
	for i := range list {
		list[i].Goal, list[i].AgentCommand, list[i].Sandbox, list[i].Protocol = "work", "x", "none", loop.ProtocolBoard
		list[i].Definition = list[i].WithDefaults()
	}
	return list
}

func loopID(name string) string { return "lp_" + name }

// history is what became of runs and of planned times, in words.
type history struct{ Runs, Times []string }

// hourStart is when the loops begin to be watched.
var hourStart = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// describeRun says what became of a run. By which rule it deferred is left out: it depends
// on whether the run in its way had begun a moment before, or was still queued.
func describeRun(name string, r loop.Run) string {
	text := fmt.Sprintf("%s#%d %s planned %s fired %s began %s ended %s %s", name, r.N, r.Trigger, clockTime(r.Planned), clockTime(r.Created), clockTime(r.Started), clockTime(r.Ended), r.Outcome)
	if r.DeferredTo != (loop.Deferral{}) {
		text += fmt.Sprintf(" deferred to %s#%d", r.DeferredTo.Loop, r.DeferredTo.N)
	}
	return text
}

func describeTick(name string, k loop.Tick, numbers map[string]int64) string {
	return fmt.Sprintf("%s %s-%s (%d) decided %s: %s %s #%d", name, clockTime(k.First), clockTime(k.Last), k.N, clockTime(k.At), k.Verdict, k.Reason, numbers[k.RunID])
}

// Times, deferrals and the order of runs are those of real runs, with the real trigger,
// queue, locks and store: a simulation leaves out only what a run does.
func TestAVirtualHourIsLikeARealOne(t *testing.T) {
	t.Parallel()
	long := time.Duration(sample.Size(1, 8)) * time.Hour
	simulated := simulateScripted(t, long)
	databases := map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.PostgreSQL}
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real := newRealHour(t, database(t)).run(hourStart.Add(long))
			deferred := slices.DeleteFunc(slices.Clone(real.Runs), func(r string) bool { return !strings.Contains(r, "deferred to") })
			coalesced := slices.DeleteFunc(slices.Clone(real.Times), func(k string) bool { return !strings.Contains(k, string(loop.TickCoalesced)) })
			if len(real.Runs) < 20 || len(deferred) < 3 || len(coalesced) < 1 {
				t.Errorf("the script shows too little: %d runs, %d deferred, %d times coalesced", len(real.Runs), len(deferred), len(coalesced))
			}
			if d := cmp.Diff(real, simulated); d != "" {
				t.Errorf("(-real +simulated):\n%s", d)
			}
		})
	}
}

func simulateScripted(t *testing.T, long time.Duration) (h history) {
	t.Helper()
	numbers := map[string]int64{}
	o := sim.Options{
		Workspace: "ws", Start: hourStart, For: long, Prices: price.BuiltIn(), Now: time.Now,
		Fired: func(_ string, run loop.Run) { numbers[run.ID] = run.N },
		Ended: func(name string, run loop.Run) { h.Runs = append(h.Runs, describeRun(name, run)) },
		Times: func(name string, list []loop.Tick) {
			for _, k := range list {
				h.Times = append(h.Times, describeTick(name, k, numbers))
			}
		},
	}
	for _, l := range scriptedLoops() {
		o.Loops = append(o.Loops, sim.Loop{
			ID: loopID(l.Name), Definition: l.Definition, Registered: hourStart.Add(-l.registered),
			Past: []loop.Run{{Outcome: loop.OutcomeBlocked, Spent: loop.Spent{Total: l.took}}},
		})
	}
	if _, err := sim.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	slices.Sort(h.Runs)
	slices.Sort(h.Times)
	return h
}

// realHour executes runs as a daemon does. Its clock stands still until all that can
// happen at a time has happened.
type realHour struct {
	t      *testing.T
	store  *store.Store
	engine *engine.Engine
	queue  *queue.Local
	loops  map[string]scripted // by id of the loop
	repo   *git.Repo
	root   string

	begin sync.Mutex // held by a worker from taking a run until its agent works: those that fired at one time begin in the order of the queue

	mu       sync.Mutex
	begun    func() // to be called when the agent works of the run that begins
	now      time.Time
	ids      int
	at       int            // runs that are executed
	asleep   []sleeper      // agents that work
	ended    int            // runs that were executed to their end
	tried    map[string]int // how many had ended when a run was last found to have to wait
	problems []error        // of runs that could not be executed
}

type sleeper struct {
	until time.Time
	wake  chan struct{}
}

func newRealHour(t *testing.T, database string) *realHour {
	t.Helper()
	h := &realHour{t: t, now: hourStart, loops: map[string]scripted{}, tried: map[string]int{}, root: gittest.Repo(t, map[string]string{"src/a.txt": "one\n"})}
	var err error
	if h.repo, err = git.Open(t.Context(), h.root); err != nil {
		t.Fatal(err)
	}
	const longLease = 1000 * 24 * time.Hour // The clock leaps.
	if h.store, err = store.Open(t.Context(), store.Options{Database: database, Now: clock.System{}.Now, Virtual: h.time, Lease: longLease}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
	})
	h.queue = queue.NewLocal(h.store, "node_1", h.time)
	h.engine = engine.New(engine.Deps{
		Store: h.store, Now: h.time, NewID: h.newID, Exec: proc.Plain{}, Drivers: map[string]turn.Driver{"command": worker{h}},
		Self: node.Self("node_1"), HolderState: node.HolderState, EndHolder: node.EndHolder, Survive: proc.KillTagged,
		Home: t.TempDir(), Environ: os.Environ(), Log: slog.New(slog.DiscardHandler),
	})
	ws := loop.Workspace{ID: "ws", Root: h.root, Repository: "ws"}
	for i, l := range scriptedLoops() {
		h.loops[loopID(l.Name)] = l
		h.now = hourStart.Add(-l.registered)
		h.update(func(ctx context.Context, tx *store.Tx) error {
			if i == 0 {
				err := errors.Join(tx.AddWorkspace(ctx, ws), tx.SaveNode(ctx, loop.Node{ID: "node_1", Name: "one"}), tx.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: "node_1", Path: h.root}))
				if err != nil {
					return err
				}
			}
			if err := tx.AddLoop(ctx, ws, loop.Loop{ID: loopID(l.Name), WorkspaceID: "ws", Name: l.Name, Protocol: l.Protocol}); err != nil {
				return err
			}
			row, err := tx.Loop(ctx, loopID(l.Name))
			if err != nil {
				return err
			}
			next, err := schedule.Next(l.Definition, row.Created, hourStart)
			if err != nil {
				return err
			}
			return errors.Join(tx.AddDefinition(ctx, row.ID, l.Definition), tx.SaveRegistration(ctx, row.ID, loop.Registration{
				Source: "s", Good: l.Digest(), Planned: next.Planned, Due: next.Due,
			}))
		})
	}
	h.now = hourStart
	return h
}

func (h *realHour) time() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *realHour) newID(prefix string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids++
	return fmt.Sprintf("%s_%dx%06d", prefix, os.Getpid(), h.ids)
}

func (h *realHour) update(fn func(context.Context, *store.Tx) error) {
	h.t.Helper()
	if err := h.store.Update(h.t.Context(), func(tx *store.Tx) error { return fn(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

func (h *realHour) target(l loop.Loop, d loop.Definition) engine.Target {
	return engine.Target{Workspace: loop.Workspace{ID: "ws", Root: h.root, Repository: "ws"}, Repo: h.repo, Loop: l, Definition: d, Protocol: oneTask{}}
}

// run lets the loops fire and their runs work until a time.
func (h *realHour) run(end time.Time) history {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() { h.work(ctx) })
	}
	defer workers.Wait()
	defer cancel()
	var failed error
	t := trigger.Trigger{
		Store: h.store, Node: "node_1", Engine: h.engine,
		Target: func(_ context.Context, l loop.Loop, d loop.Definition) (engine.Target, string, error) {
			return h.target(l, d), "", nil
		},
		Tell: func(l loop.Loop, why error) { failed = errors.Join(failed, fmt.Errorf("%s: %w", l.Name, why)) },
	}
	for {
		_, next, err := t.Tick(ctx)
		if err = errors.Join(err, failed); err != nil {
			h.t.Fatal(err)
		}
		h.queue.Wake()
		h.settle()
		h.mu.Lock()
		for _, s := range h.asleep {
			if next.IsZero() || s.until.Before(next) {
				next = s.until
			}
		}
		if next.IsZero() || next.After(end) {
			h.now = end
			h.mu.Unlock()
			return h.read()
		}
		h.now = next
		h.mu.Unlock()
		h.wakeDue()
	}
}

// settle waits until every run that has begun works, and every other one that is queued
// was found to have to wait since the last one has ended.
func (h *realHour) settle() {
	h.t.Helper()
	for {
		var queued []loop.Run
		err := h.store.View(h.t.Context(), func(r *store.Reader) (err error) {
			queued, err = r.QueuedRuns(h.t.Context(), "node_1", 1000)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
		h.mu.Lock()
		settled := h.at == len(h.asleep) && !slices.ContainsFunc(queued, func(r loop.Run) bool {
			ended, tried := h.tried[r.ID]
			return !tried || ended != h.ended
		})
		err = errors.Join(h.problems...)
		h.mu.Unlock()
		if err != nil {
			h.t.Fatal(err)
		}
		if settled {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// wakeDue lets the agents go whose time is over, one after the other.
func (h *realHour) wakeDue() {
	for {
		h.mu.Lock()
		i := slices.IndexFunc(h.asleep, func(s sleeper) bool { return !s.until.After(h.now) })
		if i < 0 {
			h.mu.Unlock()
			return
		}
		close(h.asleep[i].wake)
		h.asleep = slices.Delete(h.asleep, i, i+1)
		h.mu.Unlock()
		h.settle()
	}
}

// work executes queued runs, as the daemon does.
func (h *realHour) work(ctx context.Context) {
	for {
		h.begin.Lock()
		begun := sync.OnceFunc(h.begin.Unlock)
		run, err := h.queue.Take(ctx)
		if err != nil {
			begun()
			return
		}
		h.mu.Lock()
		h.begun = begun
		h.at++
		ended := h.ended
		h.mu.Unlock()
		var l loop.Loop
		err = h.store.View(ctx, func(r *store.Reader) (err error) { l, err = r.Loop(ctx, run.LoopID); return err })
		if err == nil {
			_, err = h.engine.Execute(ctx, h.target(l, h.loops[l.ID].Definition), run.ID)
		}
		begun()
		_, held := errors.AsType[*loop.HeldError](err)
		_, locked := errors.AsType[*loop.LockedError](err)
		again := time.Duration(0)
		h.mu.Lock()
		h.at--
		switch {
		case held || locked:
			h.tried[run.ID], again = ended, time.Minute
		case err != nil && ctx.Err() == nil:
			h.problems = append(h.problems, fmt.Errorf("%s#%d: %w", l.Name, run.N, err))
		default:
			h.ended++
		}
		h.mu.Unlock()
		h.queue.Finish(run, "ws", again)
	}
}

// read returns what became of runs and planned times.
func (h *realHour) read() (got history) {
	h.t.Helper()
	err := h.store.View(h.t.Context(), func(r *store.Reader) error {
		for id, l := range h.loops {
			numbers := map[string]int64{}
			runs, err := r.Runs(h.t.Context(), id, 1000)
			if err != nil {
				return err
			}
			for _, run := range runs {
				if numbers[run.ID] = run.N; run.State == loop.RunEnded {
					got.Runs = append(got.Runs, describeRun(l.Name, run))
				}
			}
			ticks, err := r.Ticks(h.t.Context(), id, time.Time{}, 1000)
			if err != nil {
				return err
			}
			for _, k := range ticks {
				got.Times = append(got.Times, describeTick(l.Name, k, numbers))
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Sort(got.Runs)
	slices.Sort(got.Times)
	return got
}

// worker is an agent that works until its time is over.
type worker struct{ h *realHour }

func (worker) Profile() agent.Profile { return agent.Profile{Name: "command", Program: "sh"} }

func (w worker) Turn(ctx context.Context, req agent.Request) (agent.Result, error) {
	variable := func(name string) string {
		for _, kv := range req.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
	step := variable("PAWL_STEP")
	took := w.h.loops[loopID(step[strings.LastIndex(step, " ")+1:])].took
	w.h.mu.Lock()
	s := sleeper{w.h.now.Add(took), make(chan struct{})}
	w.h.asleep = append(w.h.asleep, s)
	begun := w.h.begun
	w.h.mu.Unlock()
	begun()
	select {
	case <-s.wake:
	case <-ctx.Done():
		return agent.Result{}, context.Cause(ctx)
	}
	err := os.WriteFile(variable("PAWL_REPORT"), []byte(`{"outcome":"blocked","reason":"so it is written"}`), 0o600)
	return agent.Result{Ended: proc.Exited, Took: took, Usage: loop.Usage{Source: loop.UsageReported}}, err
}

// oneTask is a protocol with another task for each run.
type oneTask struct{}

func (oneTask) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return oneTaskSession{v}, nil
}

type oneTaskSession struct{ v engine.View }

func (oneTaskSession) Recovered() []engine.Repair { return nil }
func (oneTaskSession) Sources() []engine.Source   { return nil }

func (s oneTaskSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	key := fmt.Sprint("task-", s.v.Run.N)
	return []plan.Candidate{{Step: loop.Step{Key: key, Title: key + " of " + s.v.Loop.Name, Kind: loop.StepWork, State: loop.StepOpen}}}
}

func (s oneTaskSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	return nil, engine.Brief{Goal: envelope.Plain(s.v.Definition.Goal), Task: envelope.Plain(ch.Step.Title)}, nil
}

func (oneTaskSession) Record(engine.Result) ([]loop.Change, []loop.EffectRequest) { return nil, nil }
func (oneTaskSession) Close(engine.Summary) []loop.Change                         { return nil }
