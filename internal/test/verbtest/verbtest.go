// Package verbtest is the operator's verbs on a real repository with a real
// store, for tests. Agents are shell commands.
package verbtest

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // edits a store behind its back

	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

// Ann is the person who asks for changes.
var Ann = loop.Actor{Who: "Ann", Role: loop.RoleHuman, From: "test"}

// Rig is the verbs in one workspace.
type Rig struct {
	T      *testing.T
	Self   loop.Holder // this process
	Root   string      // of the repository
	Home   string      // pawl's own folder
	Store  *store.Store
	Engine *engine.Engine

	Workspace *lookup.Workspace
	Runs      *runs.Service
	Snapshots *runs.Snapshots
	Loops     *loops.Service
	Approvals *approvals.Service
	Audit     *audit.Service
	Budgets   *budgets.Service
	Memories  *memories.Service
	Setup     *setup.Service

	NewID func(prefix string) string
}

// New makes a rig on SQLite. The test runs in parallel with others.
func New(t *testing.T) *Rig {
	t.Helper()
	t.Parallel()
	return NewOn(t, storetest.SQLite(t))
}

// OnBoth runs a test on both databases.
func OnBoth(t *testing.T, test func(t *testing.T, r *Rig)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return storetest.SQLite(t) },
		"postgres": func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, NewOn(t, url(t)))
		})
	}
}

// NewOn makes a rig on a database: the path of an SQLite file, or a URL.
func NewOn(t *testing.T, database string) *Rig {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: clock.System{}.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	var ids atomic.Int64
	newID := func(prefix string) string { return fmt.Sprintf("%s_%d%d", prefix, os.Getpid(), ids.Add(1)) }
	drivers := map[string]turn.Driver{command.Name: command.Driver{}}
	home := t.TempDir()
	here, err := node.Identify(home, newID)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Deps{
		Store: s, Now: s.Now, NewID: newID,
		Exec: proc.Tree{}, Drivers: drivers,
		Effects: func(repo *git.Repo) map[string]engine.Effect {
			return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
		},
		Self: node.Self(here.ID), HolderState: node.HolderState, Survive: proc.KillTagged, Home: home, Environ: os.Environ(),
		Log: slog.New(slog.DiscardHandler), Optional: engine.Optional{WatchGap: 10 * time.Millisecond},
	})
	return joinVerbs(t, e, home, newID, lookup.Deps{
		Store: s, Node: here, Now: s.Now, HolderState: node.HolderState, Drivers: drivers,
		Formats: Formats(),
	}, NewRepo(t))
}

// Formats lists the formats of loops.
func Formats() format.List {
	return format.List{spine.Format(), spec.Format(), boot.Format(bootrepo.Cache{}), tasks.Format(time.Now)}
}

// joinVerbs makes the verbs as the composition root does.
func joinVerbs(t *testing.T, e *engine.Engine, home string, newID func(string) string, d lookup.Deps, dir string) *Rig {
	t.Helper()
	repo, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if registry := (node.Registry{Store: d.Store, Node: d.Node, Host: "here", NewID: newID}); d.Store != nil {
		if _, err := registry.Register(t.Context(), repo.Dirs, ""); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := lookup.OpenRepo(t.Context(), d, repo)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rig{T: t, Self: node.Self(d.Node.ID), Root: ws.Root, Home: home, Store: d.Store, Engine: e, NewID: newID, Workspace: ws}
	r.Budgets, r.Snapshots, r.Audit = budgets.New(ws), runs.NewSnapshots(ws, e, home), audit.New(ws, e.Held)
	r.Memories = memories.New(ws, e.Hide)
	r.Setup = setup.New(ws, e, r.Budgets.Show)
	r.Runs = runs.New(ws, runs.Deps{Engine: e, Environ: os.Environ(), Home: home, Plain: proc.Plain{}, KeepWait: time.Minute})
	r.Approvals = approvals.New(ws, e, r.Runs, newID)
	r.Loops = loops.New(ws, loops.Deps{Engine: e, Environ: os.Environ(), Budgets: r.Budgets.OfLoop, WaitHalted: r.Runs.WaitHalted})
	return r
}

// InRepo returns the verbs of the same store in another repository.
func (r *Rig) InRepo(dir string) *Rig {
	r.T.Helper()
	return joinVerbs(r.T, r.Engine, r.Home, r.NewID, r.Workspace.Deps, dir)
}

// WithoutStore returns the verbs of the same workspace before there is a store.
func (r *Rig) WithoutStore() *Rig {
	r.T.Helper()
	d := r.Workspace.Deps
	d.Store, d.Drivers = nil, nil
	return joinVerbs(r.T, nil, "", r.NewID, d, r.Root)
}

// NewRepo makes a repository with one commit and returns its folder.
func NewRepo(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	Write(t, root, "src/a.txt", "one\n")
	Write(t, root, "README.md", "hello\n")
	gittest.Run(t, root, "init", "-q", "-b", "main")
	gittest.Run(t, root, "add", "-A")
	gittest.Run(t, root, "commit", "-q", "-m", "first")
	return root
}

// Write writes a file, with the folders that it needs.
func Write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Exists reports whether a name exists, also as a link to nothing.
func (r *Rig) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.Root, name))
	return err == nil
}

// DefineLoop writes a spine loop. Keys replace those of the default, and an empty value
// leaves the key out.
func (r *Rig) DefineLoop(name, agent string, keys ...string) {
	r.T.Helper()
	lines := [][2]string{
		{"name", name},
		{"pattern", "custom"},
		{"tier", "L2"},
		{"cadence", "1h"},
		{"goal", "keep things right"},
		{"scope", `["src/**"]`},
		{"verify", "test -d src"},
		{"guard", "test -f README.md"},
		{"permission_mode", "auto"},
		{"worktree", "true"},
		{"escalation", "what is not clear"},
		{"budget_tokens", "100000"},
		{"kill_switch", ".loops/PAUSED exists"},
		{"land_via", "human"},
		{"agent", "command"},
		{"agent_command", agent},
		{"sandbox", "none"},
	}
	for i := 0; i+1 < len(keys); i += 2 {
		lines = append(lines, [2]string{keys[i], keys[i+1]})
	}
	last := map[string]string{}
	for _, kv := range lines {
		last[kv[0]] = kv[1]
	}
	var b strings.Builder
	for _, kv := range lines {
		if v := last[kv[0]]; v != "" {
			if !strings.HasPrefix(v, "[") {
				v = "'" + strings.ReplaceAll(v, "'", "''") + "'"
			}
			fmt.Fprintf(&b, "%s: %s\n", kv[0], v)
		}
		delete(last, kv[0])
	}
	Write(r.T, r.Root, filepath.Join(".loops", name, definition.ConfigFile), b.String())
}

// Agents: one that says two in src/a.txt, and one that finds nothing to do.
const (
	WritesTwo = `echo two >src/a.txt; printf '{"outcome":"done","summary":"says two"}' >"$PAWL_REPORT"`
	FindsNone = `printf '{"outcome":"quiet"}' >"$PAWL_REPORT"`
)

// RunLoop prepares and carries out one run of a loop.
func (r *Rig) RunLoop(req runs.StartRequest) runs.View {
	r.T.Helper()
	p, err := r.Runs.Prepare(r.T.Context(), req)
	if err != nil {
		r.T.Fatalf("prepare %+v: %v", req, err)
	}
	v, err := r.Runs.Start(r.T.Context(), p)
	if err != nil {
		r.T.Fatalf("run %+v: %v", req, err)
	}
	return v
}

// RecordMet records a run of the store's loop of that name that met its goal.
func (r *Rig) RecordMet(name string) loop.Run {
	r.T.Helper()
	run, err := r.Engine.Run(r.T.Context(), r.Workspace.Target(spec.Until("true", name, []string{"src/**"})), engine.Firing{Trigger: "manual"})
	if err != nil || run.Outcome != loop.OutcomeQuiet {
		r.T.Fatalf("run spec %s = %s, %v", name, run.Outcome, err)
	}
	return run
}

// StartLive defines a loop whose agent works until it is stopped, starts a run of it, and
// returns when the agent is working. The channel gets the ended run.
func (r *Rig) StartLive(name string) <-chan runs.View {
	r.T.Helper()
	mark := filepath.Join(r.T.TempDir(), "working")
	r.DefineLoop(name, "echo half >src/a.txt; touch '"+mark+"'; exec sleep 600")
	p, err := r.Runs.Prepare(r.T.Context(), runs.StartRequest{Loop: name})
	if err != nil {
		r.T.Fatal(err)
	}
	ended := make(chan runs.View, 1)
	go func() {
		v, err := r.Runs.Start(r.T.Context(), p)
		if err != nil {
			r.T.Errorf("run %s: %v", name, err)
		}
		ended <- v
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(mark); err == nil {
			return ended
		}
		if time.Now().After(end) {
			r.T.Fatal("the agent never started")
		}
	}
}

// DeadHolder returns a dead process that had the same id as this one.
func (r *Rig) DeadHolder() loop.Holder {
	h := r.Self
	h.Start--
	return h
}

// InsertRun inserts a run that by holds, or that is queued if by is zero.
func (r *Rig) InsertRun(name string, by loop.Holder) (run loop.Run) {
	r.T.Helper()
	def := loop.Definition{Name: name, Tier: loop.TierReport, Goal: "keep things right", AgentCommand: "true"}.WithDefaults()
	t := r.Workspace.Target(def)
	err := r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		ctx := r.T.Context()
		if err := tx.AddLoop(ctx, t.Workspace, t.Loop); err != nil {
			return err
		}
		l, err := tx.Number(ctx, t.Workspace.ID, t.Loop.Protocol, name)
		if err != nil {
			return err
		}
		if err := tx.SaveDefinition(ctx, l.ID, def); err != nil {
			return err
		}
		id := fmt.Sprintf("run_%s%d", name, l.LastN)
		run = loop.Run{ID: id, LoopID: l.ID, N: l.LastN, Key: id, Trigger: "manual", Definition: def.Digest()}
		if by == (loop.Holder{}) {
			run, err = tx.Fire(ctx, run)
		} else {
			run, err = tx.FireClaimed(ctx, run, by)
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return run
}

// LapseLeases sets the leases of all live runs to the past.
func (r *Rig) LapseLeases() {
	r.T.Helper()
	err := r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		_, err := tx.SQLite().ExecContext(r.T.Context(), `UPDATE runs SET lease_until_ms = 1 WHERE state IN ('running', 'settling')`)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
}

// ShowRow returns a spine loop as it is shown.
func (r *Rig) ShowRow(name string) loops.Row {
	r.T.Helper()
	row, err := r.Loops.Show(r.T.Context(), loop.ProtocolSpine+":"+name)
	if err != nil {
		r.T.Fatal(err)
	}
	return row
}

// Definition returns the definition of a spine loop.
func (r *Rig) Definition(name string) loop.Definition {
	r.T.Helper()
	e, err := r.Workspace.Loops.Lookup(r.T.Context(), loop.ProtocolSpine+":"+name)
	if err = errors.Join(err, e.Problem); err != nil {
		r.T.Fatal(err)
	}
	return e.Definition
}

// LoopRow returns the store's row of a loop.
func (r *Rig) LoopRow(protocol, name string) (l loop.Loop) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(rd *store.Reader) (err error) {
		l, err = rd.LoopNamed(r.T.Context(), r.Workspace.ID, protocol, name)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return l
}

// CountKillLinks counts the links of the kill switch in a loop's audit chain.
func (r *Rig) CountKillLinks(protocol, name string) (n int) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(rd *store.Reader) error {
		links, err := rd.Chain(r.T.Context(), catalog.LoopID(r.Workspace.ID, protocol, name))
		for _, l := range links {
			if l.Kind == "kill" {
				n++
			}
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return n
}

// WantFault checks an error's exit status, and texts that it must contain.
func WantFault(t *testing.T, err error, exit int, what, why, fix string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok {
		t.Fatalf("error = %v, want a fault", err)
	}
	if f.Exit != exit {
		t.Errorf("exit = %d, want %d (%v)", f.Exit, exit, err)
	}
	for name, pair := range map[string][2]string{"what": {f.What, what}, "why": {f.Why, why}, "fix": {f.Advice().String(), fix}} {
		if !strings.Contains(pair[0], pair[1]) {
			t.Errorf("%s = %q, want %q in it", name, pair[0], pair[1])
		}
	}
}

// EditStore changes rows of the store with SQL, as a person with the file could.
func (r *Rig) EditStore(statements ...string) {
	r.T.Helper()
	info, err := r.Store.Info(r.T.Context())
	if err != nil {
		r.T.Fatal(err)
	}
	db, err := sql.Open("sqlite", info.Location+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.T.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, q := range statements {
		if _, err := db.ExecContext(r.T.Context(), q); err != nil {
			r.T.Fatalf("%s: %v", q, err)
		}
	}
}

// RunTogether calls all functions at the same time.
func RunTogether(t *testing.T, fns ...func() error) {
	t.Helper()
	errs := make([]error, len(fns))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, fn := range fns {
		all.Go(func() {
			<-start
			errs[i] = fn()
		})
	}
	close(start)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// JSONObject returns v as a JSON object.
func JSONObject(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// KeysOf returns the sorted names of an object's members; empty for any other value.
func KeysOf(v any) string {
	o, _ := v.(map[string]any)
	return strings.Join(slices.Sorted(maps.Keys(o)), " ")
}
