package compose_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// loopEnv names the loop that a child runs; empty: fix.
const loopEnv = "PAWL_TEST_LOOP"

// member is a kind of loop of a fleet: what its agent does, and what a run of it
// comes to.
type member struct {
	config string
	want   loop.Outcome
}

// members are the kinds of loops of a fleet. Each agent takes a second, so that all
// runs are under way at once: their scopes do not overlap.
var members = []member{
	{"verify: grep -q right src/NAME.txt\n" + agentDoes("echo right > src/NAME.txt", "done"), loop.OutcomeProposed},
	{"verify: grep -q right src/NAME.txt\n" + agentDoes("echo wrong > src/NAME.txt", "done"), loop.OutcomeGaveUp},
	{"verify: \"true\"\n" + agentDoes("true", "quiet"), loop.OutcomeQuiet},
	{"verify: \"true\"\n" + agentDoes("true", "blocked"), loop.OutcomeBlocked},
	{"verify: \"true\"\nsense: \"sleep 1\"\nagent_command: \"false\"\n", loop.OutcomeQuiet},
	{"verify: cat src/NAME.txt\n" + agentDoes("date > src/NAME.txt", "done"), loop.OutcomeProposed},
}

// agentDoes is an agent that changes something and reports an outcome.
func agentDoes(script, outcome string) string {
	return fmt.Sprintf(`agent_command: 'sleep 1; %s; echo "{\"outcome\":\"%s\",\"reason\":\"as scripted\"}" > "$PAWL_REPORT"'`+"\n", script, outcome)
}

// fleet is many loops of one home, in one repository or several.
type fleet struct {
	fixtures []*fixture
	want     map[string]loop.Outcome // by the name of a loop, which is in one repository only
}

// newFleet makes a home that was never used, and loops in as many repositories.
func newFleet(t *testing.T, database string, repositories, loops int) fleet {
	t.Helper()
	f := fleet{want: map[string]loop.Outcome{}}
	home := t.TempDir()
	for range repositories {
		s := newFixture(t, database)
		s.home = home
		f.fixtures = append(f.fixtures, s)
	}
	tier := bare
	if confines(t) {
		tier = full
	}
	for i := range loops {
		s, kind, name := f.fixtures[i%repositories], members[i%len(members)], fmt.Sprintf("loop%02d", i)
		f.want[name] = kind.want
		path := filepath.Join(s.root, ".loops", name, "loop.config.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`name: %s
pattern: custom
tier: L2
cadence: 1h
goal: Make things right.
scope: ["src/%s.txt"]
guard: "true"
permission_mode: dontAsk
worktree: true
escalation: anything else
budget_tokens: 200000
kill_switch: .loops/%s/PAUSED exists
land_via: human
agent: command
sandbox: %s
`, name, name, name, tier) + strings.ReplaceAll(kind.config, "NAME", name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range f.fixtures {
		s.git("add", "-A")
		s.git("commit", "-q", "-m", "loops")
	}
	return f
}

// loops are the names of the loops of a repository, in order.
func (f fleet) loops(s *fixture) []string {
	var names []string
	for name := range f.want {
		if _, err := os.Stat(filepath.Join(s.root, ".loops", name)); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// run starts a process for each loop, all at once and with the least priority, and
// returns what each came to when all have ended.
func (f fleet) run(t *testing.T) map[string]loop.Outcome {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	came := map[string]loop.Outcome{}
	for _, s := range f.fixtures {
		for _, name := range f.loops(s) {
			all.Go(func() {
				plain := s.command("run", loopEnv+"="+name)
				cmd := exec.CommandContext(t.Context(), "nice", append([]string{"-n", "19"}, plain.Args...)...)
				cmd.Dir, cmd.Env = plain.Dir, plain.Env
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				var v told
				if err == nil {
					err = json.Unmarshal(out, &v)
				}
				if err != nil {
					t.Errorf("%s: %v: %s", name, err, stderr.String())
					return
				}
				if len(v.Recovered) > 0 {
					t.Errorf("%s took runs from processes that live: %v", name, v.Recovered)
				}
				if v.Run.Outcome != f.want[name] {
					t.Errorf("%s is %s by %s in phase %s: %s, want %s", name, v.Run.Outcome, v.Run.Reason, v.Run.Phase, v.Run.Detail, f.want[name])
				}
				mu.Lock()
				defer mu.Unlock()
				came[name] = v.Run.Outcome
			})
		}
	}
	all.Wait()
	return came
}

// check holds the rows against what was wanted: each loop has one run, which ended,
// and the audit chain of each is whole.
func (f fleet) check(t *testing.T) {
	t.Helper()
	for _, s := range f.fixtures {
		svc := s.reader()
		for _, name := range f.loops(s) {
			f.checkLoop(t, svc, name)
		}
		s.nothingLeft()
	}
}

func (f fleet) checkLoop(t *testing.T, svc *api.Workspace, name string) {
	t.Helper()
	runs, err := svc.Runs.List(t.Context(), name, 10)
	if err != nil {
		t.Error(name, err)
		return
	}
	if len(runs) != 1 {
		t.Errorf("%s has %d runs, want one", name, len(runs))
		return
	}
	if r := runs[0]; r.State != "ended" || r.Outcome != f.want[name] || r.Run.Fence != 1 {
		t.Errorf("the row of %s is %s %s and was claimed %d times, want ended %s, claimed once", name, r.State, r.Outcome, r.Run.Fence, f.want[name])
	}
	if err := svc.Audit.VerifyChain(t.Context(), name); err != nil {
		t.Errorf("audit of %s: %v", name, err)
	}
}

// Every loop of cron starts at the same minute: in a home that is new, on a machine
// that is busy, all runs end as they would alone.
func TestLoopsThatStartAtOnceEndAsEachWouldAlone(t *testing.T) {
	loops, rounds := sample.Size(len(members), 30), sample.Size(1, 10)
	for name, c := range map[string]struct {
		database     func(t *testing.T) string
		repositories [2]int // in turns
	}{
		"sqlite":   {func(*testing.T) string { return "" }, [2]int{1, 5}},
		"postgres": {func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) }, [2]int{5, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if rounds == 1 {
				t.Parallel()
			}
			for round := range rounds {
				repositories := c.repositories[round%2]
				t.Run(fmt.Sprintf("round %d of %d", round+1, rounds), func(t *testing.T) {
					f := newFleet(t, c.database(t), repositories, loops)
					start := time.Now()
					came := f.run(t)
					took := time.Since(start)
					f.check(t)
					t.Logf("%d loops in %d repositories on %s: %.1f s, %s", loops, repositories, name, took.Seconds(), counted(came))
				})
			}
		})
	}
}

// counted says how often there was each outcome.
func counted(came map[string]loop.Outcome) string {
	count := map[loop.Outcome]int{}
	for _, outcome := range came {
		count[outcome]++
	}
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[outcome], outcome))
	}
	return strings.Join(parts, ", ")
}
