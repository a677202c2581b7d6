//go:build unix

package boot_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// rig is a workspace that follows a boot repository, with a remote, a store of its own and
// an engine whose agent is a function.
type rig struct {
	t      *testing.T
	root   string
	remote string
	boot   string // the boot repository
	store  *store.Store
	engine *engine.Engine
	def    loop.Definition
	agent  func(ctx context.Context, r agent.Request) (agent.Result, error)
	asked  string           // the last prompt
	fixed  *boot.Protocol   // that of all runs; nil: each has a cache of its own
	live   func(loop.Event) // sees each event; may be nil

	mu  sync.Mutex
	ids int
	say []string // notes of all runs
}

var rigs atomic.Int64

const (
	statePath, todoPath, changelogPath = bootlink.DefaultState, bootlink.DefaultTasks, bootlink.DefaultChangelog

	validState = `{"version":"1.0.0","lastUpdated":"2026-01-01T00:00:00Z","activeProject":"demo","currentPhase":"idle"}`
	oneTask    = `{"version":"1.0.0","tasks":[{"id":"a","title":"First","status":"pending","priority":"high"}]}`
)

// newBoot makes a boot repository at v1.0.0.
func newBoot(t *testing.T) string {
	t.Helper()
	files := map[string]string{}
	for name, text := range bootrepo.Scaffold(time.Unix(1, 0)) {
		files[name] = string(text)
	}
	dir := gittest.Repo(t, files)
	gittest.Run(t, dir, "tag", "v1.0.0")
	return dir
}

func linkTo(repository string) string {
	return bootlink.Render(bootlink.Link{
		Repository: repository, Reference: "main", Version: bootlink.Version{Major: 1}, State: statePath, Tasks: todoPath, Changelog: changelogPath,
		Directories: bootlink.DefaultDirectories,
	})
}

// newRig makes a workspace with a valid memory and one task; files replace or add to it, and
// an empty text leaves a file out.
func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	r := &rig{t: t, boot: newBoot(t), remote: t.TempDir()}
	all := map[string]string{
		bootdef.LinkFile: linkTo(r.boot), statePath: validState, todoPath: oneTask, changelogPath: "# Changelog\n",
		"outputs/a.txt": "one\n", ".gitignore": "scratch/\n",
	}
	for name, text := range files {
		if all[name] = text; text == "" {
			delete(all, name)
		}
	}
	first := gittest.Repo(t, all)
	gittest.Run(t, r.remote, "clone", "-q", "--bare", first, ".")
	return r.clone()
}

// clone returns another workspace of the same remote, with an empty store.
func (r *rig) clone() *rig {
	r.t.Helper()
	c := &rig{t: r.t, remote: r.remote, boot: r.boot, root: filepath.Join(r.t.TempDir(), "demo")}
	gittest.Run(r.t, filepath.Dir(c.root), "clone", "-q", r.remote, "demo")
	s, err := store.Open(r.t.Context(), store.Options{Database: storetest.SQLite(r.t), Now: clock.System{}.Now})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Errorf("close store: %v", err)
		}
	})
	c.store = s
	p := c.protocol()
	number := rigs.Add(1)
	sleep := func(context.Context, time.Duration) error { return nil }
	c.engine = engine.New(engine.Deps{
		Store: s, Now: s.Now, Exec: proc.Plain{}, Drivers: map[string]turn.Driver{"command": driverFunc(c.turn)},
		NewID: func(prefix string) string {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ids++
			return fmt.Sprintf("%s_%dx%dx%04d", prefix, os.Getpid(), number, c.ids)
		},
		Effects: func(repo *git.Repo) map[string]engine.Effect {
			return map[string]engine.Effect{
				effect.KindMemoryCommit: effect.NewMemoryCommit(repo, p.MergeMemory, sleep), effect.KindMemoryPull: effect.NewMemoryPull(repo, p.MergeMemory, sleep, os.Environ()),
				effect.KindMemoryPush: effect.NewMemoryPush(repo, p.MergeMemory, sleep, os.Environ()), effect.KindBranchPush: effect.NewBranchPush(repo, sleep, os.Environ()),
			}
		},
		Self: node.Self(""), HolderState: node.HolderState, EndHolder: node.EndHolder, Survive: proc.KillTagged,
		Home: r.t.TempDir(), Environ: os.Environ(), Log: slog.New(slog.DiscardHandler), Optional: engine.Optional{Live: func(e loop.Event) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if e.Kind == loop.EventNote {
				c.say = append(c.say, e.Text)
			}
			if c.live != nil {
				c.live(e)
			}
		}},
	})
	c.def = loop.Definition{
		Name: "boot", Protocol: loop.ProtocolBoot, Tier: loop.TierAssisted, Goal: "work on one task", Sandbox: "none", AgentCommand: "x", MaxIterations: 1,
		Scope: []string{"agent/**", "outputs/**", "audits/**", "scratch/**", changelogPath},
	}
	c.works("")
	return c
}

func (r *rig) protocol() boot.Protocol {
	if r.fixed != nil {
		return *r.fixed
	}
	return boot.Protocol{Contracts: bootrepo.Cache{Dir: filepath.Join(r.t.TempDir(), "boot"), Environ: os.Environ(), Exec: proc.Plain{}, Now: clock.System{}.Now}}
}

type driverFunc func(ctx context.Context, r agent.Request) (agent.Result, error)

func (f driverFunc) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	return f(ctx, r)
}
func (driverFunc) Profile() agent.Profile { return agent.Profile{Name: "command", Program: "sh"} }

func (r *rig) turn(ctx context.Context, req agent.Request) (agent.Result, error) {
	r.asked = req.Prompt
	return r.agent(ctx, req)
}

// reports lets the agent change files and write a report.
func (r *rig) reports(report string, files map[string]string) {
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		for name, text := range files {
			gittest.WriteFile(r.t, filepath.Join(req.Dir, name), text)
		}
		for _, kv := range req.Env {
			if name, ok := strings.CutPrefix(kv, "PAWL_REPORT="); ok {
				gittest.WriteFile(r.t, name, report)
			}
		}
		return agent.Result{Ended: proc.Exited, Took: time.Millisecond, Usage: loop.Usage{Input: 100, Output: 10, Source: loop.UsageReported}}, nil
	}
}

// works lets the agent finish its task.
func (r *rig) works(handoff string) {
	r.reports(`{"outcome":"done","summary":"worked","handoff":"`+handoff+`"}`, map[string]string{"outputs/a.txt": fmt.Sprintln(time.Now().UnixNano())})
}

func (r *rig) run(f engine.Firing) loop.Run {
	r.t.Helper()
	run, err := r.tryRun(r.t.Context(), f)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *rig) tryRun(ctx context.Context, f engine.Firing) (loop.Run, error) {
	repo, err := git.Open(ctx, r.root)
	if err != nil {
		return loop.Run{}, err
	}
	if f.Trigger == "" {
		f.Trigger, f.By = "manual", loop.Actor{Who: "ann", Role: loop.RoleHuman}
	}
	return r.engine.Run(ctx, engine.Target{
		Workspace: loop.Workspace{ID: "ws", Root: r.root}, Repo: repo, Definition: r.def, Protocol: r.protocol(),
		Loop: loop.Loop{ID: "lp_boot", WorkspaceID: "ws", Name: "boot", Protocol: loop.ProtocolBoot},
	}, f)
}

func (r *rig) git(args ...string) string { return gittest.Run(r.t, r.root, args...) }

func (r *rig) write(name, text string) { gittest.WriteFile(r.t, filepath.Join(r.root, name), text) }

// commit commits all that the checkout has, by hand.
func (r *rig) commit(message string) {
	r.git("add", "-A")
	r.git("commit", "-q", "-m", message)
}

// memory is the memory in a revision; the test fails unless it is valid.
func (r *rig) memory(rev string) (bootstate.State, bootstate.Todo, string) {
	r.t.Helper()
	state, wrong := bootstate.FormatSchemas().ReadState([]byte(r.git("show", rev+":"+statePath)))
	todo, alsoWrong := bootstate.FormatSchemas().ReadTodo([]byte(r.git("show", rev+":"+todoPath)))
	if len(wrong)+len(alsoWrong) > 0 {
		r.t.Fatalf("the memory of %s is invalid: %v %v", rev, wrong, alsoWrong)
	}
	return state, todo, r.git("show", rev+":"+changelogPath)
}

// status is where a task stands in main.
func (r *rig) status(id string) bootstate.Status {
	r.t.Helper()
	_, todo, _ := r.memory("main")
	task, _ := todo.Task(id)
	return task.Status
}

// inOrder fails unless the remote has what is here, and the checkout differs by the last
// commit alone.
func (r *rig) inOrder() {
	r.t.Helper()
	if here, there := r.git("rev-parse", "main"), gittest.Run(r.t, r.remote, "rev-parse", "main"); here != there {
		r.t.Errorf("main is at %s, the remote at %s", here, there)
	}
	if got := r.git("status", "--porcelain"); got != "" && got != "M "+statePath {
		r.t.Errorf("status = %q", got)
	}
	if got := r.git("fsck", "--no-dangling"); got != "" {
		r.t.Errorf("fsck: %s", got)
	}
	text, err := os.ReadFile(filepath.Join(r.root, statePath))
	if err != nil {
		r.t.Fatal(err)
	}
	found, wrong := bootstate.FormatSchemas().ReadState(text)
	if committed, _, _ := r.memory("main"); len(wrong) > 0 || !committed.EqualButCommit(found) {
		r.t.Errorf("the state of the checkout differs by more than its last commit: %s", text)
	}
}

// said reports whether a run has noted a text.
func (r *rig) said(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.say, "\n"), text)
}
