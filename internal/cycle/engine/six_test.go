package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// contendEnv makes this test binary one of several processes that run the same loops.
const contendEnv = "PAWL_TEST_CONTEND"

// contending says what such a process does.
type contending struct {
	Database, Root, Home string
	Marks                string // a folder with a file for each part of the tree that somebody works on
	Process, Firings     int
	Definitions          []loop.Definition
}

func contend(text string) int {
	var c contending
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// work marks the parts of the tree that its loop may change while it changes them.
func (c contending) work(_ context.Context, req agent.Request) (agent.Result, error) {
	name := variable(req, "PAWL_LOOP")
	var marks []string
	for _, d := range c.Definitions {
		if d.Name != name {
			continue
		}
		for _, glob := range d.Scope {
			mark := filepath.Join(c.Marks, strings.TrimSuffix(glob, "/**"))
			if err := os.Mkdir(mark, 0o700); errors.Is(err, fs.ErrExist) {
				return agent.Result{}, os.WriteFile(filepath.Join(c.Marks, "violated"), []byte(name+" and another loop change "+glob+" at once"), 0o600)
			} else if err != nil {
				return agent.Result{}, err
			}
			marks = append(marks, mark)
		}
	}
	<-time.After(20 * time.Millisecond) // Others have the time to begin.
	for _, mark := range marks {
		if err := os.Remove(mark); err != nil {
			return agent.Result{}, err
		}
	}
	// A step that failed is taken up again by the next run.
	err := os.WriteFile(variable(req, "PAWL_REPORT"), []byte(`{"outcome":"failed","reason":"as scripted"}`), 0o600)
	return agent.Result{Ended: proc.Exited, Took: time.Millisecond, Usage: loop.Usage{Input: 1, Output: 1, Source: loop.UsageReported}}, err
}

func (c contending) run(ctx context.Context) error {
	s, err := store.Open(ctx, store.Options{Database: c.Database, Now: time.Now})
	if err != nil {
		return err
	}
	repo, err := git.Open(ctx, c.Root)
	if err != nil {
		return err
	}
	var ids int
	var mu sync.Mutex
	e := engine.New(engine.Deps{
		Store: s, Now: time.Now, Exec: proc.Plain{}, Drivers: map[string]turn.Driver{"command": driverFunc(c.work)},
		NewID: func(prefix string) string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("%s_p%dx%04d", prefix, c.Process, ids)
		},
		Effects: func(repo *git.Repo) map[string]engine.Effect {
			return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo)}
		},
		Self: node.Self(""), HolderState: stateOf, EndHolder: node.EndHolder, Survive: proc.KillTagged,
		Home: c.Home, Environ: os.Environ(), Log: slog.New(slog.DiscardHandler),
	})
	draw := rand.New(rand.NewPCG(1, uint64(c.Process)))
	targets := map[string]engine.Target{}
	for _, d := range c.Definitions {
		targets[d.Name] = targetOf(c.Root, repo, d, pinned{})
	}
	for range c.Firings {
		t := targets[c.Definitions[draw.IntN(len(c.Definitions))].Name]
		if draw.IntN(3) == 0 {
			_, err := e.Run(ctx, t, engine.Firing{Trigger: "manual", Wait: draw.IntN(2) == 0})
			if err := unlessInTheWay(err); err != nil {
				return fmt.Errorf("run %s: %w", t.Loop.Name, err)
			}
			continue
		}
		err := s.Update(ctx, func(tx *store.Tx) error {
			_, err := e.Fire(ctx, tx, t, engine.Firing{Trigger: "cadence"})
			return err
		})
		if err != nil {
			return fmt.Errorf("fire %s: %w", t.Loop.Name, err)
		}
		if _, err := c.executeQueued(ctx, s, e, targets, draw); err != nil {
			return err
		}
	}
	for {
		left, err := c.executeQueued(ctx, s, e, targets, draw)
		if err != nil || left == 0 {
			return err
		}
	}
}

// executeQueued tries all queued runs, whoever fired them, and returns how many there were.
func (c contending) executeQueued(ctx context.Context, s *store.Store, e *engine.Engine, targets map[string]engine.Target, draw *rand.Rand) (int, error) {
	var list []loop.Contender
	err := s.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Contenders(ctx, "ws")
		return err
	})
	if err != nil {
		return 0, err
	}
	queued := 0
	for _, i := range draw.Perm(len(list)) {
		if list[i].Live {
			continue
		}
		queued++
		_, err := e.Execute(ctx, targets[list[i].Loop], list[i].Run)
		if err := unlessInTheWay(err); err != nil && !errors.Is(err, loop.ErrLeaseLost) {
			return 0, fmt.Errorf("execute %s: %w", list[i].Name(), err)
		}
	}
	return queued, nil
}

// unlessInTheWay returns the error unless another run is in the way.
func unlessInTheWay(err error) error {
	_, locked := errors.AsType[*loop.LockedError](err)
	_, held := errors.AsType[*loop.HeldError](err)
	if locked || held {
		return nil
	}
	return err
}

func TestSixProcessesNeverTouchTheSameAndNoneWaitsForEver(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		t.Helper()
		var defs []loop.Definition
		for _, l := range []struct {
			name     string
			priority int
			scope    []string
		}{{"low", 10, []string{"a/**"}}, {"mid", 20, []string{"a/**", "b/**"}}, {"high", 30, []string{"b/**"}}, {"apart", 20, []string{"c/**"}}} {
			d := until("true", l.name, l.scope)
			d.Sense, d.Priority, d.DeferBound = "false", l.priority, 3
			target := r.target(l.name, pinned{}, d)
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				return says(t, req, `{"outcome":"failed","reason":"as scripted"}`)
			}
			r.run(target, engine.Firing{})
			defs = append(defs, target.Definition)
		}
		marks := t.TempDir()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		var children sync.WaitGroup
		for i := range 6 {
			what, err := json.Marshal(contending{
				Database: r.database, Root: r.root, Home: r.home, Marks: marks, Process: i, Firings: 6, Definitions: defs,
			})
			if err != nil {
				t.Fatal(err)
			}
			child := exec.CommandContext(t.Context(), self)
			child.Env = append(os.Environ(), contendEnv+"="+string(what))
			children.Go(func() {
				if out, err := child.CombinedOutput(); err != nil {
					t.Errorf("process %d: %v\n%s", i, err, out)
				}
			})
		}
		children.Wait()
		if why := read(t, filepath.Join(marks, "violated")); why != "" {
			t.Error(why)
		}
		var deferred, went, acted int
		for _, d := range defs {
			gave, wentOn := 0, 0
			var runs []loop.Run
			r.view(func(rd *store.Reader) (err error) { runs, err = rd.Runs(t.Context(), "lp_"+d.Name, 500); return err })
			for _, run := range runs {
				switch {
				case run.State != loop.RunEnded:
					t.Errorf("run %s#%d is %s", d.Name, run.N, run.State)
				case run.DeferredTo != (loop.Deferral{}):
					gave++
				default:
					wentOn++
				}
				if run.Outcome == loop.OutcomeFailed { // As its agent says.
					acted++
				}
			}
			if gave > d.DeferBound*wentOn {
				t.Errorf("%s deferred %d times and went %d times", d.Name, gave, wentOn)
			}
			deferred, went = deferred+gave, went+wentOn
		}
		if acted < 12 {
			t.Errorf("the agents of %d runs acted; %d went, and %d deferred", acted, went, deferred)
		}
		t.Logf("%d runs went, %d of them with an agent, and %d deferred", went, acted, deferred)
	})
}
