package heartbeat_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/heartbeat"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(workEnv); text != "" {
		os.Exit(runWorker(text))
	}
	if text := os.Getenv(beatEnv); text != "" {
		os.Exit(runBeat(text))
	}
	os.Exit(pgtest.Main(m, "fsync=off"))
}

// databases are those that the boards may be in.
var databases = map[string]func(*testing.T) string{
	"sqlite":   func(t *testing.T) string { t.Helper(); return storetest.SQLite(t) },
	"postgres": func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) },
}

// onBoth runs a test on both databases. In a plain test only those that are about who was
// first run on PostgreSQL too: that both databases do the same is what the tests of store hold.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for name, url := range databases {
		if name == "postgres" && !sample.All() && !strings.Contains(t.Name(), "AtOnce") && !strings.Contains(t.Name(), "Lease") && !strings.Contains(t.Name(), "Dies") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, url(t)))
		})
	}
}

// rig is a workspace with boards, whose agents are a function, at a time of its own.
type rig struct {
	t      *testing.T
	root   string
	store  *store.Store
	engine *engine.Engine
	repo   *git.Repo

	database, home string

	mu    sync.Mutex
	now   time.Time
	ids   int
	turns []string // purpose and step of each turn
	notes []string
	act   func(turn worked) string // returns the report; nil: done, with a file of its own
}

// worked is one turn.
type worked struct {
	agent.Request
	handle, step string
}

// write changes a file of the tree of the turn.
func (w worked) write(t *testing.T, name, text string) {
	t.Helper()
	gittest.WriteFile(t, filepath.Join(w.Dir, name), text)
}

func newRig(t *testing.T, database string) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC), root: gittest.Repo(t, map[string]string{"src/a.txt": "one\n"})}
	if err := r.open(t.Context(), database, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddWorkspace(t.Context(), r.workspace()) }); err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens the store, and makes the engine of this process. A rig without a time of its own
// goes by that of the machine.
func (r *rig) open(ctx context.Context, database, home string) (err error) {
	r.database, r.home = database, home
	o := store.Options{Database: database, Now: clock.System{}.Now}
	if !r.now.IsZero() {
		o.Virtual = r.clock
	}
	if r.store, err = store.Open(ctx, o); err != nil {
		return err
	}
	if r.repo, err = git.Open(ctx, r.root); err != nil {
		return err
	}
	r.engine = engine.New(engine.Deps{
		Store: r.store, Now: r.store.Now, NewID: r.newID, Exec: proc.Plain{}, Drivers: map[string]turn.Driver{"command": driver{r}},
		Effects: func(repo *git.Repo) map[string]engine.Effect {
			return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
		},
		Self: node.Self(""), HolderState: node.HolderState, EndHolder: node.EndHolder, Survive: proc.KillTagged,
		Home: home, Environ: os.Environ(), Log: slog.New(slog.DiscardHandler), Optional: engine.Optional{Live: r.see},
	})
	return nil
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(time.Millisecond) // No two things happen at one time.
	return r.now
}

// wait lets time pass.
func (r *rig) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// salt makes the ids of this process unlike those of others, also of one that had its number.
var salt = strings.ToLower(rand.Text()[:10])

func (r *rig) newID(prefix string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return fmt.Sprintf("%s_%s%05d", prefix, salt, r.ids)
}

func (r *rig) see(e loop.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == loop.EventNote {
		r.notes = append(r.notes, e.Text)
	}
}

func (r *rig) workspace() loop.Workspace { return loop.Workspace{ID: "ws", Root: r.root} }

// driver lets the agents act.
type driver struct{ r *rig }

func (driver) Profile() agent.Profile { return agent.Profile{Name: "command", Program: "sh"} }

func (d driver) Turn(_ context.Context, req agent.Request) (agent.Result, error) {
	variable := func(name string) string {
		for _, kv := range req.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
	id, title, _ := strings.Cut(variable("PAWL_STEP"), " ")
	w := worked{Request: req, handle: strings.TrimPrefix(variable("PAWL_LOOP"), "@"), step: title}
	d.r.mu.Lock()
	d.r.turns = append(d.r.turns, req.Purpose+" "+w.handle+": "+title)
	act := d.r.act
	d.r.mu.Unlock()
	report := `{"outcome":"done","summary":"answered","no_change":true}`
	switch {
	case act != nil:
		report = act(w)
	case req.Purpose == loop.PurposeAct:
		w.write(d.r.t, "src/"+id+".txt", "done\n")
		report = `{"outcome":"done","summary":"made ` + id + `"}`
	}
	if err := os.WriteFile(variable("PAWL_REPORT"), []byte(report), 0o600); err != nil {
		return agent.Result{}, err
	}
	return agent.Result{Ended: proc.Exited, Took: time.Millisecond, Usage: loop.Usage{Input: 100, Output: 10, Source: loop.UsageReported}}, nil
}

// add writes rows of values that a person has made.
func (r *rig) add(values ...interface{ Row() loop.Row }) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		for _, v := range values {
			if err := tx.WriteRow(r.t.Context(), "ws", v.Row()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// team is a board that needs no documents, with some agents.
func (r *rig) team(handles ...string) {
	r.add(board.Board{ID: "bd_core", Name: "Core", Slug: "core", Waived: true})
	for _, h := range handles {
		m := board.Member{Handle: h, Role: "developer", Layer: board.Specialist, BoardIDs: []string{"bd_core"}}
		if strings.HasPrefix(h, "lead") {
			m.Layer, m.LeadBoardID = board.Lead, "bd_core"
		}
		r.add(m)
	}
}

// task is a task that anybody may begin.
func task(id string, more ...func(*board.Task)) board.Task {
	t := board.Task{ID: id, BoardID: "bd_core", Title: "do " + id, Description: "as it says", Status: board.Todo, Priority: board.Medium}
	for _, set := range more {
		set(&t)
	}
	return t
}

// beat is one heartbeat of an agent.
func (r *rig) beat(handle string) loop.Run {
	r.t.Helper()
	run, err := r.engine.Run(r.t.Context(), r.target(handle), engine.Firing{Trigger: "manual"})
	if err != nil {
		r.t.Fatalf("heartbeat of @%s: %v", handle, err)
	}
	return run
}

func (r *rig) target(handle string) engine.Target {
	d := loop.Definition{
		Name: "@" + handle, Protocol: loop.ProtocolBoard, Goal: "keep the boards empty", Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", Sandbox: "none", Group: loop.AgentsGroup,
	}
	return engine.Target{
		Workspace: r.workspace(), Repo: r.repo, Definition: d, Protocol: heartbeat.Protocol{},
		Loop: loop.Loop{ID: "lp_" + handle, WorkspaceID: "ws", Name: d.Name, Protocol: d.Protocol},
	}
}

// rows are the values of a set, the oldest first.
func rows[T any](r *rig, q loop.RowQuery) (list []T) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(rd *store.Reader) error {
		found, err := rd.Rows(r.t.Context(), "ws", q)
		if err == nil {
			list, err = board.FromRows[T](found)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func (r *rig) task(id string) board.Task {
	r.t.Helper()
	found := rows[board.Task](r, loop.RowQuery{Set: board.SetTasks, Keys: []string{id}})
	if len(found) != 1 {
		r.t.Fatalf("%d tasks %s", len(found), id)
	}
	return found[0]
}

func (r *rig) mind(handle string) board.Mind {
	r.t.Helper()
	found := rows[board.Mind](r, loop.RowQuery{Set: board.SetMinds, Keys: []string{handle}})
	if len(found) != 1 {
		r.t.Fatalf("%d minds of %s", len(found), handle)
	}
	return found[0]
}

// noted reports whether a run has said something.
func (r *rig) noted(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.notes, func(n string) bool { return strings.Contains(n, text) })
}

// lapse ends the lease of the live run of an agent.
func (r *rig) lapse(handle string) {
	r.t.Helper()
	const past = `UPDATE runs SET lease_until_ms = 1 WHERE loop_id = $1 AND state = 'running'`
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) (err error) {
		if pg := tx.Postgres(); pg != nil {
			_, err = pg.Exec(r.t.Context(), past, "lp_"+handle)
		} else {
			_, err = tx.SQLite().ExecContext(r.t.Context(), past, "lp_"+handle)
		}
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}
