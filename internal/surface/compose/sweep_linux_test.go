package compose_test

import (
	"cmp"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// kind is one way in which a process is disturbed at a fault point.
type kind struct {
	name   string
	action string        // of the fault plan; empty: the process stops itself
	lease  time.Duration // of the process; zero: the usual one

	// strike is what happens to a process that has stopped itself at the point,
	// before it goes on.
	strike func(*suspended)
	// check holds what the process itself came to; it is killed if v and stderr
	// are both empty.
	check func(s *fixture, v *told, stderr string)

	sample int               // points of each flow in a plain test
	rows   []string          // flows at whose points it strikes on PostgreSQL in a plain test, too
	only   bool              // in a plain test it strikes at no other flows than rows
	always []string          // points that belong to every sample
	skips  func(string) bool // points at which it shows nothing new; nil: none
	dies   bool              // recovery has to say in which phase
}

// flow is one way through the program at whose points processes are disturbed.
type flow struct {
	name, verb string
	ready      func(t *testing.T, database string) *fixture
	must       []string                                 // points that it has to pass, in order: those of a plain test
	disturb    func(s *fixture, k kind, at string) bool // false: the host is too slow for the lease
	killed     bool                                     // and not disturbed otherwise
	outcome    loop.Outcome                             // of the process, if it is left alone; empty: it does what the flow is for
}

// sweepFixture is a fixture that notes who held its runs.
func sweepFixture(t *testing.T, database string) *fixture {
	t.Helper()
	s := newFixture(t, database)
	s.noteClaims()
	return s
}

// reviewedFixture is a fixture whose agent asks a model for its work, which another model
// reviews.
func reviewedFixture(t *testing.T, database string) *fixture {
	t.Helper()
	s := sweepFixture(t, database)
	model := httptest.NewServer(fakemodel.New(fakemodel.Script{Bare: true, Turns: []fakemodel.Turn{{Say: "PASS\n1: it is met.", Usage: &fakemodel.Usage{Input: 300, Output: 20}}}}))
	t.Cleanup(model.Close)
	s.environ = keyless("ANTHROPIC_BASE_URL="+model.URL, "ANTHROPIC_API_KEY=sk-maker", "PAWL_API_KEY=sk-critic")
	config := filepath.Join(s.root, ".loops/fix/loop.config.yaml")
	gittest.WriteFile(t, config, strings.Replace(readFile(t, config), "agent_command: '", "agent_command: '. ./README.md; ", 1)+
		"provider: anthropic\nmodel: claude-haiku-4-5\nreviewer: a.txt says a number.\nreviewer_agent: api\nreviewer_model: claude-opus-4-8\n")
	ask, _, _ := strings.Cut(strings.ReplaceAll(caller, "MODEL", "claude-haiku-4-5"), " >>src/answers")
	gittest.WriteFile(t, filepath.Join(s.root, "README.md"), strings.Replace(ask, "for turn in 1 2", "for turn in 1", 1)+" >/dev/null 2>&1\ndone\n")
	s.git("commit", "-q", "-a", "-m", "it is reviewed")
	return s
}

var flows = []flow{
	{
		name: "run", verb: "run", ready: sweepFixture, disturb: disturbRun,
		must: []string{"engine.act.before:1", "engine.verify.before:1", "engine.effect.confirm.after:1", "projection.append.after:1"},
	},
	{
		name: "run, reviewed", verb: "run", ready: reviewedFixture, disturb: disturbRun, killed: true,
		must: []string{"engine.act.after:1", "engine.review.before:1", "meter.model.send.before:2", "engine.review.after:1", "engine.verify.gates.after:1"},
	},
	{
		name: "landing", verb: "approve", disturb: disturbLanding,
		ready: func(t *testing.T, database string) *fixture {
			t.Helper()
			return proposed(t, sweepFixture(t, database))
		},
		must: []string{"engine.effect.confirm.after:1", "git.advance.ref.before:1", "git.advance.ref.after:1", "git.advance.file.after:1", "engine.effect.apply.after:1"},
	},
	{
		name: "boot", verb: "run", disturb: disturbBoot,
		ready: func(t *testing.T, database string) *fixture {
			t.Helper()
			s := divergedBootFixture(t, database)
			gittest.WriteFile(t, filepath.Join(s.root, bootlink.DefaultState), brokenState)
			s.noteClaims()
			return s
		},
		must: []string{"git.advance.ref.before:1", "git.advance.ref.after:1", "engine.act.after:2", "git.advance.ref.after:2", "git.advance.index.before:2", "engine.effect.confirm.after:1", "git.push.before:2", "engine.effect.apply.after:2", "projection.rename.after:1"},
	},
	{
		name: "boot, pull", verb: "run", disturb: disturbBoot, killed: true,
		ready: func(t *testing.T, database string) *fixture {
			t.Helper()
			s := divergedBootFixture(t, database)
			s.noteClaims()
			return s
		},
		must: []string{"engine.rehydrate.open.before:1", "git.advance.ref.after:2", "git.push.after:2", "engine.effect.apply.after:4"},
	},
	{
		name: "cycle, done", verb: "run", ready: inboxFixture, disturb: disturbInbox, killed: true,
		must: []string{"projection.rename.after:1", "engine.act.after:1", "engine.verify.gates.after:1", "engine.effect.apply.after:1"},
	},
	{
		name: "cycle, blocked", verb: "run", ready: blockedFixture, disturb: disturbBlocked, killed: true, outcome: loop.OutcomeBlocked,
		must: []string{"projection.rename.after:1", "engine.act.after:1"},
	},
	{
		name: "cycle, told", verb: "run", ready: toldFixture, disturb: disturbTold, killed: true, outcome: loop.OutcomeReported,
		must: []string{"projection.rename.after:1", "engine.act.after:1"},
	},
}

// flowNamed is one of the flows.
func flowNamed(t *testing.T, name string) flow {
	t.Helper()
	for _, f := range flows {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("there is no flow %q", name)
	return flow{}
}

// isDone reports whether a process did what the flow is for.
func isDone(v *told) bool {
	return slices.Contains([]loop.Outcome{loop.OutcomeProposed, loop.OutcomeLanded, loop.OutcomeDone}, v.Run.Outcome)
}

var (
	killed = kind{
		name: "kill", action: "kill", dies: true, sample: 1, rows: []string{"run"}, always: []string{"git.advance.ref.after:2"},
		check: func(s *fixture, v *told, stderr string) {
			if v != nil || stderr != "" {
				s.t.Fatalf("it was not killed: %+v %s", v, stderr)
			}
		},
	}
	fullDisk = kind{
		name: "full disk", action: "ENOSPC", sample: 1, always: []string{"git.advance.ref.after:1", "git.advance.ref.after:2"},
		check: func(s *fixture, v *told, stderr string) {
			const full = "no space left on device"
			if v == nil && !strings.Contains(stderr, full) {
				s.t.Errorf("the child says %q, want the full disk", stderr)
			}
			if v != nil && !isDone(v) && !strings.Contains(v.Run.Detail, full) {
				s.t.Errorf("the run is %s %q, want it done or the full disk", v.Run.Outcome, v.Run.Detail)
			}
		},
	}
)

func TestKilledAtAnyPointTheNextCommandPutsItRight(t *testing.T) { sweep(t, killed) }

// A disk that is full at one write must not lose what was written before it,
// and must not be taken for success.
func TestADiskThatIsFullAtAnyWriteLosesNothing(t *testing.T) { sweep(t, fullDisk) }

// sweep disturbs each flow on each database at each of its points, or at a
// sample of them, and prints at how many. On PostgreSQL these are the points of the
// engine, which lie beside its transactions: in a plain test those of the flows that
// a kind names. Points of one kind have a database.
func sweep(t *testing.T, kinds ...kind) {
	t.Helper()
	t.Parallel()
	counts := &tally{cells: map[[3]string]*cell{}}
	t.Cleanup(func() { counts.print(t) })
	for number, f := range flows {
		for name, database := range map[string]func(t *testing.T) string{
			"sqlite":   func(*testing.T) string { return "" },
			"postgres": func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) },
		} {
			kinds := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
				return f.killed && !k.dies || (name == "postgres" || k.only) && !sample.All() && !slices.Contains(k.rows, f.name)
			})
			if len(kinds) == 0 {
				continue
			}
			t.Run(f.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				shared := database(t)
				points := f.points(t, name, shared)
				if name == "postgres" { // What happens to files does not depend on where the rows are.
					points = slices.DeleteFunc(slices.Clone(points), func(at string) bool { return !strings.HasPrefix(at, "engine.") })
				}
				for i, k := range kinds {
					if name == "postgres" { // One point, of those that belong to every sample if there is one.
						k.sample = 1
						if slices.ContainsFunc(k.always, func(at string) bool { return slices.Contains(points, at) }) {
							k.sample = 0
						}
					}
					t.Run(k.name, func(t *testing.T) {
						t.Parallel()
						shared := shared
						if i > 0 { // The kinds strike side by side.
							shared = database(t)
						}
						chosen := k.chosen(points, number+i) // Each flow early, or late, or between.
						if len(chosen) == 0 {
							t.Fatal("no point is chosen")
						}
						for _, at := range chosen {
							t.Run(at, func(t *testing.T) {
								// Here, because -run may leave points out.
								defer func() { counts.add(f.name, k.name, name, !t.Failed()) }()
								for k := k; !f.disturb(f.ready(t, shared), k, at); k.lease *= 2 {
								}
							})
						}
					})
				}
			})
		}
	}
}

// known are the points of each flow and database, found once.
var known sync.Map

// points are all hits of all fault points, in order and as name:k, of a process
// that goes through the flow undisturbed. In a plain test they are those that the
// flow has to pass: to find the others is half as much work as to strike at one, and
// a process that does not come by its point fails.
func (f flow) points(t *testing.T, name, database string) []string {
	t.Helper()
	if !sample.All() {
		return f.must
	}
	find, _ := known.LoadOrStore(f.name+name, &struct {
		sync.Mutex
		points []string
	}{})
	found := find.(*struct {
		sync.Mutex
		points []string
	})
	found.Lock()
	defer found.Unlock()
	if found.points != nil {
		return found.points
	}
	trace := filepath.Join(t.TempDir(), "trace")
	s := f.ready(t, database)
	v := s.pawl(f.verb, "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace)
	if v == nil || !isDone(v) && v.Run.Outcome != f.outcome {
		t.Fatalf("an undisturbed %s = %+v, want it done", f.name, v)
	}
	s.checkMoves()
	points := slices.DeleteFunc(readHits(t, trace), func(at string) bool { return strings.HasPrefix(at, "store.") }) // Nothing changes where rows are read.
	for _, want := range f.must {
		if !slices.Contains(points, want) {
			t.Fatalf("%s does not pass %s: %v", f.name, want, points)
		}
	}
	found.points = points
	return points
}

// chosen are the points at which the n-th kind of a sweep strikes.
func (k kind) chosen(points []string, n int) (list []string) {
	points = slices.DeleteFunc(slices.Clone(points), func(at string) bool { return k.skips != nil && k.skips(at) })
	list = spread(points, k.sample, n)
	for _, at := range k.always {
		if slices.Contains(points, at) && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

// hit starts the process of a flow, lets the kind strike at the point, and
// holds what became of the process. It is false if the process lost its lease
// before it came to the point.
func (k kind) hit(s *fixture, verb, at string) bool {
	s.t.Helper()
	var v *told
	var stderr string
	if k.strike == nil {
		trace := filepath.Join(s.t.TempDir(), "trace")
		v, stderr = s.try(verb, "PAWL_FAULTS=1", "PAWL_FAIL_AT="+at+"="+k.action, "PAWL_FAULT_TRACE="+trace)
		if hits := readHits(s.t, trace); !slices.Contains(hits, at) {
			s.t.Fatalf("it did not come by %s: %v", at, hits)
		}
	} else {
		held := s.stopWith(k.lease, verb, at)
		if held == nil {
			return false
		}
		k.strike(held)
		v, stderr = held.resume()
	}
	k.check(s, v, stderr)
	if _, err := os.Stat(filepath.Join(s.root, ".loops", cmp.Or(s.loop, "fix"), "PAUSED")); err == nil {
		s.pawl("resume")
	}
	return true
}

// disturbRun strikes at a point of a run. Whatever comes next, what the run had
// made is kept, nothing is left behind, no file of people's is touched, and the
// loop runs again.
func disturbRun(s *fixture, k kind, at string) bool {
	t := s.t
	t.Helper()
	before := s.git("rev-parse", "HEAD", "main") + s.git("stash", "list")
	index := readFile(t, filepath.Join(s.root, ".git/index"))
	if !k.hit(s, "run", at) {
		return false
	}
	// A state file is always a complete old or new version, before anything is mended.
	if _, err := spine.ParseState(readFile(t, filepath.Join(s.root, ".loops/fix/STATE.md"))); err != nil {
		t.Errorf("STATE.md: %v", err)
	}
	reported := s.pawl("recover").Recovered
	if again := s.pawl("recover"); len(again.Recovered) != 0 {
		t.Errorf("a second recovery found %v", again.Recovered)
	}
	s.checkRecovered(reported)
	s.nothingLeft()
	last := s.pawl("run")
	s.checkRuns(last.Run)
	if k.dies {
		s.checkReported(at, reported)
	}
	s.checkMoves()
	s.nothingLeft()
	if now := s.git("rev-parse", "HEAD", "main") + s.git("stash", "list"); now != before {
		t.Errorf("HEAD, main or stash moved: %s, was %s", now, before)
	}
	if readFile(t, filepath.Join(s.root, ".git/index")) != index {
		t.Error("the index was touched")
	}
	if status := s.git("status", "--porcelain", "--untracked-files=all"); strings.Contains(status, "src/") {
		t.Errorf("the checkout was touched:\n%s", status)
	}
	return true
}

// disturbLanding strikes at a point of a landing. Whatever comes next, the branch
// is where it was or at the gated tree, the row of the effect says which, the
// checkout is as a whole what the branch is, and the loop runs again.
func disturbLanding(s *fixture, k kind, at string) bool {
	t := s.t
	t.Helper()
	old, gated := s.git("rev-parse", "main"), s.git("rev-parse", "pawl/fix/1")
	if !k.hit(s, "approve", at) {
		return false
	}
	if now := s.git("rev-parse", "main"); now != old && now != gated {
		t.Fatalf("main is at %s, want %s or %s", now, old, gated)
	}
	v := s.pawl("recover")
	landed := s.git("rev-parse", "main") == gated
	if !landed && s.git("rev-parse", "main") != old {
		t.Fatalf("main is at %s after recovery, want %s or %s", s.git("rev-parse", "main"), old, gated)
	}
	if landed != (v.Landing == loop.EffectDone) {
		t.Errorf("landed = %v, and the effect is %q", landed, v.Landing)
	}
	if dirty := s.git("status", "--porcelain", "--untracked-files=no", "--", "src", "README.md"); dirty != "" {
		t.Errorf("landed = %v, and the checkout differs from the branch:\n%s", landed, dirty)
	}
	s.nothingLeft()
	s.checkRunnable()
	s.checkMoves()
	s.nothingLeft()
	return true
}

// checkRunnable runs the loop again: an agent acts, gates judge, and the run ends
// by itself. An agent that is not done is no fault of the loop.
func (s *fixture) checkRunnable() {
	s.t.Helper()
	v := s.pawl("run")
	fine := []loop.Outcome{loop.OutcomeQuiet, loop.OutcomeReported, loop.OutcomeProposed, loop.OutcomeDone}
	if !slices.Contains(fine, v.Run.Outcome) && v.Run.Reason != loop.ReasonMaxIterations {
		s.t.Errorf("the next run is %s %s %q", v.Run.Outcome, v.Run.Reason, v.Run.Detail)
	}
	if v.Run.State != "ended" {
		s.t.Errorf("the next run is %s", v.Run.State)
	}
}

// checkDurations holds that no duration of a run is what a wall clock that was
// set makes of it.
func (s *fixture) checkDurations(v *told) {
	s.t.Helper()
	const most = float64(time.Hour / time.Millisecond) // The clock is set by two.
	if v == nil {
		return
	}
	spans := map[string]float64{"total": v.Run.MS.Total, "agent": v.Run.MS.Agent, "gates": v.Run.MS.Gates}
	for _, it := range v.Run.Iterations {
		spans[fmt.Sprintf("iteration %d", it.N)] = it.MS
		for _, g := range it.Gates {
			spans[fmt.Sprintf("gate %s of %d", g.Name, it.N)] = g.MS
		}
	}
	for name, ms := range spans {
		if ms < 0 || ms > most {
			s.t.Errorf("%s took %v ms", name, ms)
		}
	}
}

// tally counts points by flow, kind and database.
type tally struct {
	sync.Mutex
	cells map[[3]string]*cell
}

type cell struct{ points, broken int }

func (c *tally) add(flow, kind, database string, ok bool) {
	c.Lock()
	defer c.Unlock()
	key := [3]string{flow, kind, database}
	if c.cells[key] == nil {
		c.cells[key] = &cell{}
	}
	if c.cells[key].points++; !ok {
		c.cells[key].broken++
	}
}

func (c *tally) print(t *testing.T) {
	t.Helper()
	c.Lock()
	defer c.Unlock()
	rows := [][]string{{"flow", "kind", "database", "points", "broken"}}
	for key, n := range c.cells {
		rows = append(rows, append(key[:], fmt.Sprint(n.points), fmt.Sprint(n.broken)))
	}
	slices.SortFunc(rows[1:], slices.Compare)
	printTable(t, rows)
}

// printTable prints a table into the log of the test and, where all points are
// struck, into the file for tables.
func printTable(t *testing.T, rows [][]string) {
	t.Helper()
	var widths []int
	for i := range rows[0] {
		widths = append(widths, len(slices.MaxFunc(rows, func(a, b []string) int { return len(a[i]) - len(b[i]) })[i]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", t.Name())
	for _, row := range rows {
		var line strings.Builder
		for i, text := range row {
			fmt.Fprintf(&line, "  %-*s", widths[i], text)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	t.Log(b.String())
	name := sample.TablesFile()
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString(b.String() + "\n"); err != nil {
		t.Error(err)
	}
}
