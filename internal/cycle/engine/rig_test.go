package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(dieEnv); what != "" {
		os.Exit(dieInMidAct(what))
	}
	if what := os.Getenv(contendEnv); what != "" {
		os.Exit(contend(what))
	}
	os.Exit(pgtest.Main(m, "fsync=off"))
}

// databases are those that a store may have, each without rows.
var databases = map[string]func(*testing.T) string{
	"sqlite":   func(t *testing.T) string { t.Helper(); return storetest.SQLite(t) },
	"postgres": func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) },
}

// onBoth runs a test on both databases. In a plain test only one in three runs on
// PostgreSQL too: that both databases do the same is what the tests of store hold.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for name, url := range databases {
		if name == "postgres" && !sampled(t.Name(), 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, url(t)))
		})
	}
}

// rig is a workspace, a store and an engine whose agent is a function.
type rig struct {
	t      *testing.T
	root   string
	home   string
	store  *store.Store
	engine *engine.Engine
	deps   engine.Deps
	repo   *git.Repo
	mu     sync.Mutex
	events []loop.Event
	log    bytes.Buffer // of those who have it written there; slog's handlers lock it
	agent  func(ctx context.Context, r agent.Request) (agent.Result, error)
	ids    int
	number int64  // of the rig in this process
	works  string // the file that the agent of a keeper changes
	remote string // bare, of the memory of a boot loop

	database string
}

func newRig(t *testing.T, database string) *rig {
	t.Helper()
	return newRigAt(t, database, nil)
}

// newRigAt makes a rig on a database that takes now for its time; nil: it has its own.
func newRigAt(t *testing.T, database string, now func() time.Time) *rig {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: clock.System{}.Now, Virtual: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	r := &rig{t: t, root: gittest.Repo(t, map[string]string{"src/a.txt": "one\n", "README.md": "hello\n"}), home: t.TempDir(), store: s, number: rigs.Add(1), database: database}
	if r.repo, err = git.Open(t.Context(), r.root); err != nil {
		t.Fatal(err)
	}
	r.deps = engine.Deps{
		Store: s, Now: s.Now, NewID: r.newID, Exec: proc.Plain{}, Drivers: map[string]turn.Driver{"command": driverFunc(r.turn)},
		Effects: func(repo *git.Repo) map[string]engine.Effect {
			return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
		},
		Self: node.Self(""), HolderState: stateOf, EndHolder: node.EndHolder, Survive: proc.KillTagged,
		Home: r.home, Environ: os.Environ(), Log: slog.New(slog.DiscardHandler), Optional: engine.Optional{Live: r.see},
	}
	r.engine = engine.New(r.deps)
	return r
}

// stateOf tells whether the process of a holder lives; every other host is dead.
func stateOf(h loop.Holder) loop.HolderState {
	if state := node.HolderState(h); state != loop.HolderElsewhere {
		return state
	}
	return loop.HolderDead
}

// deadIf takes one holder for dead and every other for running.
func deadIf(gone loop.Holder) func(loop.Holder) loop.HolderState {
	return func(h loop.Holder) loop.HolderState {
		if h == gone {
			return loop.HolderDead
		}
		return loop.HolderRunning
	}
}

type driverFunc func(ctx context.Context, r agent.Request) (agent.Result, error)

func (f driverFunc) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	return f(ctx, r)
}

// Profile lets any definition stand for the function, with or without a command.
func (driverFunc) Profile() agent.Profile { return agent.Profile{Name: "command", Program: "sh"} }

func (r *rig) turn(ctx context.Context, req agent.Request) (agent.Result, error) {
	return r.agent(ctx, req)
}

// rigs counts those of this process.
var rigs atomic.Int64

// newID is unlike those of other rigs and of other test processes: a run that is
// recovered ends every program that carries its id.
func (r *rig) newID(prefix string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return fmt.Sprintf("%s_%dx%dx%04d", prefix, os.Getpid(), r.number, r.ids)
}

func (r *rig) see(e loop.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// variable is one entry of a turn's environment.
func variable(r agent.Request, name string) string {
	for _, kv := range r.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// says writes a report and ends the turn well.
func says(t *testing.T, r agent.Request, report string) (agent.Result, error) {
	t.Helper()
	gittest.WriteFile(t, variable(r, "PAWL_REPORT"), report)
	return agent.Result{
		Ended: proc.Exited, Took: time.Millisecond, Usage: loop.Usage{Input: 100, Output: 10, Source: loop.UsageReported},
	}, nil
}

func (r *rig) target(name string, p engine.Protocol, d loop.Definition) engine.Target {
	d.Name = name
	return targetOf(r.root, r.repo, d, p)
}

func targetOf(root string, repo *git.Repo, d loop.Definition, p engine.Protocol) engine.Target {
	if d.Goal == "" {
		d.Goal = "keep things right"
	}
	if d.Protocol == "" {
		d.Protocol = loop.ProtocolSpine
	}
	if d.Sandbox == "" {
		d.Sandbox = "none"
	}
	return engine.Target{
		Workspace: loop.Workspace{ID: "ws", Root: root}, Repo: repo, Definition: d, Protocol: p,
		Loop: loop.Loop{ID: "lp_" + d.Name, WorkspaceID: "ws", Name: d.Name, Protocol: d.Protocol},
	}
}

func (r *rig) run(t engine.Target, f engine.Firing) loop.Run {
	r.t.Helper()
	if f.Trigger == "" {
		f.Trigger = "manual"
	}
	run, err := r.engine.Run(r.t.Context(), t, f)
	if err != nil {
		r.t.Fatalf("run %s: %v", t.Loop.Name, err)
	}
	return run
}

func (r *rig) view(fn func(*store.Reader) error) {
	r.t.Helper()
	if err := r.store.View(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) iterations(id string) (its []loop.Iteration) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		its, err = rd.Iterations(r.t.Context(), id)
		return err
	})
	return its
}

func (r *rig) chain(id string) (links []loop.Link) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		links, err = rd.Chain(r.t.Context(), id)
		return err
	})
	return links
}

// steal makes somebody else the holder of the loop's live run.
func (r *rig) steal(loopID string, thief loop.Holder) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		live, err := tx.Live(r.t.Context(), loopID)
		if err != nil {
			return err
		}
		_, _, err = tx.Claim(r.t.Context(), live.ID, live.Fence, thief, live.Holder)
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}

// lapse puts the lease of the loop's live run into the past.
func (r *rig) lapse(loopID string) {
	r.t.Helper()
	const past = `UPDATE runs SET lease_until_ms = 1 WHERE loop_id = $1 AND state = 'running'`
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		if pg := tx.Postgres(); pg != nil {
			_, err := pg.Exec(r.t.Context(), past, loopID)
			return err
		}
		_, err := tx.SQLite().ExecContext(r.t.Context(), past, loopID)
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}
