package control

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agent/command"
	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/clock"
	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/protocol/spec"
	"github.com/pawl-run/pawl/internal/protocol/spine"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/turn"
)

// ann is who asks for changes.
var ann = loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "test"}

// rig is a service on a real repository with a real store, whose agents are
// shell commands.
type rig struct {
	*Service
	t    *testing.T
	self loop.Holder
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	return newRigOn(t, filepath.Join(t.TempDir(), "pawl.db"))
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "pawl.db") },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRigOn(t, url(t)))
		})
	}
}

func newRigOn(t *testing.T, database string) *rig {
	t.Helper()
	var sys clock.System
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: sys.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	state := func(h loop.Holder) loop.HolderState {
		switch id := proc.Identity(h); {
		case !proc.SameHost(id):
			return loop.HolderElsewhere
		case !proc.Alive(id):
			return loop.HolderDead
		}
		return loop.HolderRunning
	}
	var ids atomic.Int64
	r := &rig{t: t, self: loop.Holder(proc.Self())}
	newID := func(prefix string) string { return fmt.Sprintf("%s_%d%d", prefix, os.Getpid(), ids.Add(1)) }
	drivers := map[string]turn.Driver{command.Name: command.Driver{}}
	home := t.TempDir()
	d := Deps{
		Drivers: drivers, Home: home,
		Store: s, Now: sys.Now, NewID: newID, Environ: os.Environ(), HolderState: state, Plain: proc.Plain{},
		Protocols: map[string]engine.Protocol{loop.ProtocolSpine: spine.Protocol{}, loop.ProtocolSpec: spec.Protocol{}},
		Engine: engine.New(engine.Deps{
			Store: s, Now: sys.Now, NewID: newID,
			Exec: proc.Tree{}, Drivers: drivers,
			Effects: func(repo *git.Repo) map[string]engine.Effect {
				return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
			},
			Self: r.self, HolderState: state, Survive: proc.KillTagged, Home: home, Environ: os.Environ(),
			Log: slog.New(slog.DiscardHandler), WatchGap: 10 * time.Millisecond,
		}),
	}
	if r.Service, err = New(t.Context(), d, newRepo(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

// without is the same service as it is before there is a store.
func (r *rig) without() *Service {
	r.t.Helper()
	s, err := New(r.t.Context(), Deps{Now: r.Now, Environ: r.Environ, HolderState: r.HolderState, Plain: r.Plain, Protocols: r.Protocols}, r.Root())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func newRepo(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "src/a.txt", "one\n")
	write(t, root, "README.md", "hello\n")
	gittest.Run(t, root, "init", "-q", "-b", "main")
	gittest.Run(t, root, "add", "-A")
	gittest.Run(t, root, "commit", "-q", "-m", "first")
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// exists also sees links that lead nowhere.
func (r *rig) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.Root(), name))
	return err == nil
}

// define writes a spine loop; keys replace those of the default, and an empty
// value leaves the key out.
func (r *rig) define(name, agent string, keys ...string) {
	r.t.Helper()
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
	write(r.t, r.Root(), filepath.Join(".loops", name, spine.ConfigFile), b.String())
}

const (
	writesTwo = `echo two >src/a.txt; printf '{"outcome":"done","summary":"says two"}' >"$PAWL_REPORT"`
	findsNone = `printf '{"outcome":"quiet"}' >"$PAWL_REPORT"`
)

// run prepares and carries out one run of a loop.
func (r *rig) run(req RunRequest) RunView {
	r.t.Helper()
	p, err := r.Prepare(r.t.Context(), req)
	if err != nil {
		r.t.Fatalf("prepare %+v: %v", req, err)
	}
	v, err := r.Start(r.t.Context(), p)
	if err != nil {
		r.t.Fatalf("run %+v: %v", req, err)
	}
	return v
}

// met records a run of the store's loop of that name, whose goal is met.
func (r *rig) met(name string) loop.Run {
	r.t.Helper()
	run, err := r.Engine.Run(r.t.Context(), r.target(spec.Until("true", name, []string{"src/**"})), engine.Firing{Trigger: "manual"})
	if err != nil || run.Outcome != loop.OutcomeQuiet {
		r.t.Fatalf("run spec %s = %s, %v", name, run.Outcome, err)
	}
	return run
}

// live defines a loop whose agent works until it is stopped, starts a run of
// it, and returns when the agent is at work. The channel gets how it ended.
func (r *rig) live(name string) <-chan RunView {
	r.t.Helper()
	mark := filepath.Join(r.t.TempDir(), "working")
	r.define(name, "echo half >src/a.txt; touch '"+mark+"'; exec sleep 600")
	p, err := r.Prepare(r.t.Context(), RunRequest{Loop: name})
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan RunView, 1)
	go func() {
		v, err := r.Start(r.t.Context(), p)
		if err != nil {
			r.t.Errorf("run %s: %v", name, err)
		}
		ended <- v
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(mark); err == nil {
			return ended
		}
		if time.Now().After(end) {
			r.t.Fatal("the agent never started")
		}
	}
}

// dead is a process that was this one's predecessor under the same id.
func (r *rig) dead() loop.Holder {
	h := r.self
	h.Start--
	return h
}

// fire inserts a run that somebody holds, or that waits for one if by is zero.
func (r *rig) fire(name string, by loop.Holder) (run loop.Run) {
	r.t.Helper()
	def := loop.Definition{Name: name, Tier: loop.TierReport, Goal: "keep things right", AgentCommand: "true"}.WithDefaults()
	t := r.target(def)
	err := r.Store.Update(r.t.Context(), func(tx *store.Tx) error {
		ctx := r.t.Context()
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
		r.t.Fatal(err)
	}
	return run
}

// lapse puts the leases of all live runs into the past.
func (r *rig) lapse() {
	r.t.Helper()
	err := r.Store.Update(r.t.Context(), func(tx *store.Tx) error {
		_, err := tx.SQLite().ExecContext(r.t.Context(), `UPDATE runs SET lease_until_ms = 1 WHERE state IN ('running', 'settling')`)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// row is the listing's row of a loop of the spine.
func (r *rig) row(name string) LoopRow {
	r.t.Helper()
	l, err := r.stateOf(r.t.Context(), loop.ProtocolSpine+":"+name)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.rowOf(l)
}

// definition is that of a loop of the spine.
func (r *rig) definition(name string) loop.Definition {
	r.t.Helper()
	e, err := r.loops.Lookup(r.t.Context(), loop.ProtocolSpine+":"+name)
	if err = errors.Join(err, e.Problem); err != nil {
		r.t.Fatal(err)
	}
	return e.Definition
}

// loopRow is the store's row of a loop.
func (r *rig) loopRow(protocol, name string) (l loop.Loop) {
	r.t.Helper()
	err := r.Store.View(r.t.Context(), func(rd *store.Reader) (err error) {
		l, err = rd.LoopNamed(r.t.Context(), r.ws.ID, protocol, name)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// kills counts the links of the kill switch in a loop's audit chain.
func (r *rig) kills(protocol, name string) (n int) {
	r.t.Helper()
	err := r.Store.View(r.t.Context(), func(rd *store.Reader) error {
		links, err := rd.Chain(r.t.Context(), catalog.LoopID(r.ws.ID, protocol, name))
		for _, l := range links {
			if l.Kind == "kill" {
				n++
			}
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// wantFault checks an error's exit status and what its sentences hold.
func wantFault(t *testing.T, err error, exit int, what, why, fix string) {
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
