package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// idle is a protocol whose memory holds nothing to do: what is left is the
// cycle and the store.
type idle struct{}

func (idle) Open(context.Context, engine.View) (engine.Session, error)  { return idle{}, nil }
func (idle) Recovered() []engine.Repair                                 { return nil }
func (idle) Sources() []engine.Source                                   { return nil }
func (idle) Candidates(engine.Sensed, time.Time) []plan.Candidate       { return nil }
func (idle) Close(engine.Summary) []loop.Change                         { return nil }
func (idle) Record(engine.Result) ([]loop.Change, []loop.EffectRequest) { return nil, nil }
func (idle) Begin(plan.Choice) ([]loop.Change, engine.Brief, error)     { return nil, engine.Brief{}, nil }

// noOps returns durable runs a second and commits of each.
func noOps(b *testing.B, database string) (rate, commits float64) {
	b.Helper()
	const workers, each = 8, 300
	s := newFixture(b, 5, database)
	repo, err := git.Open(b.Context(), s.root)
	s.must(err)
	before := s.d.Store().Commits()
	var all sync.WaitGroup
	start := time.Now()
	for w := range workers {
		all.Go(func() {
			name := fmt.Sprintf("idle-%d", w)
			t := engine.Target{
				Workspace: loop.Workspace{ID: "ws" + s.root, Root: s.root}, Repo: repo, Protocol: idle{},
				Loop:       loop.Loop{ID: "lp" + s.root + name, WorkspaceID: "ws" + s.root, Name: name, Protocol: loop.ProtocolBoard},
				Definition: loop.Definition{Name: name, Protocol: loop.ProtocolBoard, Tier: loop.TierReport},
			}
			for range each {
				run, err := s.d.Engine().Run(b.Context(), t, engine.Firing{Trigger: "bench"})
				if err != nil || run.Outcome != loop.OutcomeQuiet {
					b.Errorf("run = %s, %v", run.Outcome, err)
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	return workers * each / took.Seconds(), float64(s.d.Store().Commits()-before) / (workers * each)
}

// crashEnv names the workspace in which a child runs its loop and dies.
const crashEnv = "PAWL_BENCH_CRASH"

func crashChild() int {
	ctx := context.Background()
	settings, err := config.Load(config.Settings{}, os.Environ())
	if err != nil {
		return 1
	}
	d, err := compose.New(ctx, compose.Options{Settings: settings, Environ: os.Environ(), Log: compose.Log(nil)})
	if err != nil {
		return 1
	}
	svc, err := d.Verbs(ctx, os.Getenv(crashEnv))
	if err != nil {
		return 1
	}
	p, err := svc.Runs.Prepare(ctx, runs.StartRequest{Loop: "works"})
	if err != nil {
		return 1
	}
	_, err = svc.Runs.Start(ctx, p)
	fmt.Fprintln(os.Stderr, "not killed:", err)
	return 1
}

// crashToResumed measures how long a new process needs to conclude a run whose
// process was killed while its agent worked, the start of the store included.
func crashToResumed(b *testing.B) []row {
	b.Helper()
	var took []time.Duration
	for range 7 {
		s := newFixture(b, 20, "")
		s.loop("works", "L2", writes)
		cmd := exec.CommandContext(b.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+s.root, config.EnvHome+"="+s.home, "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1")
		if err := cmd.Run(); err == nil || cmd.ProcessState.Exited() {
			b.Fatalf("the child was not killed: %v", cmd.ProcessState)
		}
		took = append(took, timed(func() {
			settings, err := config.Load(config.Settings{Home: s.home}, nil)
			s.must(err)
			d, err := compose.New(b.Context(), compose.Options{Settings: settings, Environ: os.Environ(), Log: compose.Log(nil)})
			s.must(err)
			svc, err := d.Verbs(b.Context(), s.root)
			s.must(err)
			found, err := svc.Runs.Recover(b.Context())
			s.must(err)
			if len(found) != 1 || found[0].Run.Snapshot == "" {
				b.Fatalf("recovered %+v", found)
			}
			s.must(d.Close())
		}))
	}
	return []row{{"crash to concluded, after restart", millis(median(took)), "< 1 s", "", ""}}
}
