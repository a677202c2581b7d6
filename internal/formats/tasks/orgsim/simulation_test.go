package orgsim_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/test/sample"
)

var start = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

func agent(name, interval, superior string, reports ...string) loop.Definition {
	return loop.Definition{
		Name: name, Protocol: loop.ProtocolTasks, Tier: loop.TierAssisted, Goal: "work", Scope: []string{"src/**"}, Group: loop.AgentsGroup, Cadence: interval, Model: "claude-opus-4-8",
		Tasks: &loop.TaskLoop{
			Enabled: true, Writes: []string{taskfile.TasksFile, taskfile.HeartbeatFile}, CycleLog: true, Tier: 2, ReportsTo: superior, Reports: reports, Chief: "chief",
			MaxRetries: loop.DefaultMaxRetries, MaxAgents: 20,
		},
	}
}

// organisation is a chief, three leads, and three members of each.
func organisation(past ...loop.Run) (loops []sim.Loop) {
	var leads []string
	for l := range 3 {
		var team []string
		lead := fmt.Sprintf("lead%d", l+1)
		for m := range 3 {
			team = append(team, fmt.Sprintf("member%d%d", l+1, m+1))
			loops = append(loops, sim.Loop{Definition: agent(team[m], "15m", lead), Past: past})
		}
		leads = append(leads, lead)
		loops = append(loops, sim.Loop{Definition: agent(lead, "10m", "chief", team...), Past: past})
	}
	return append(loops, sim.Loop{Definition: agent("chief", "5m", "", leads...), Past: past})
}

// write makes the files of agents with so many steps each, of all priorities, and returns the
// folder.
func write(tb testing.TB, loops []sim.Loop, steps int, priorities ...string) string {
	tb.Helper()
	root := tb.TempDir()
	for i, l := range loops {
		var text strings.Builder
		text.WriteString("# Tasks\n\n## Active Tasks\n\n")
		for n := range steps {
			fmt.Fprintf(&text, "- **Step %d**: work\n  - Status: open\n  - Priority: %s\n", n+1, priorities[(i+n)%len(priorities)])
		}
		at := filepath.Join(root, "agents", l.Definition.Name, taskfile.TasksFile)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text.String()), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

func simulate(tb testing.TB, root string, loops []sim.Loop, d time.Duration, seed uint64) (sim.Result, orgsim.Result) {
	tb.Helper()
	r, org, err := orgsim.Run(tb.Context(), sim.Options{Loops: loops, Start: start, For: d, Seed: seed, Prices: price.BuiltIn(), Now: time.Now}, root, projection.Memory{Root: root})
	if err != nil {
		tb.Fatal(err)
	}
	return r, org
}

// filesOf are all files below a folder.
func filesOf(tb testing.TB, root string) map[string]string {
	tb.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // A file of the test.
		found[name] = string(text)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func past(outcome loop.Outcome, reason loop.Reason) loop.Run {
	return loop.Run{
		Outcome: outcome, Reason: reason, Usage: loop.Usage{Input: 90, Output: 10}, Cost: loop.Cost{MicroUSD: 7}, Spent: loop.Spent{Total: time.Minute, Agent: time.Minute},
	}
}

func TestAChiefThreeLeadsAndNineMembersHaveTheirRunsAndEndEachStepOnce(t *testing.T) {
	t.Parallel()
	loops := organisation(past(loop.OutcomeProposed, loop.ReasonGatesPass))
	root := write(t, loops, 6, taskfile.Priorities...)
	r, org := simulate(t, root, loops, 8*time.Hour+3*time.Minute, 1)
	for i, a := range org.Agents {
		want := map[byte]int{'c': 96, 'l': 48, 'm': 32}[a.Agent[0]]
		if a.Runs != want || r.Loops[i].Planned != want || a.Worked != a.Done || a.Worked+a.Idle != want || a.Tokens != int64(100*a.Worked) {
			t.Errorf("want %d runs: %+v, planned %d", want, a, r.Loops[i].Planned)
		}
		if a.Agent[0] == 'm' && a.Done != 6 {
			t.Errorf("%s did %d steps, want 6", a.Agent, a.Done)
		}
	}
	if org.Before != (orgsim.Steps{Open: 6 * 13}) || org.After.Done != org.Total.Done || org.After.Done < 6*13 {
		t.Errorf("steps: %+v, before %+v, %d done", org.After, org.Before, org.Total.Done)
	}
	if org.Total.MicroUSD != int64(7*org.Total.Worked) || org.Total.MicroUSD != r.Total.MicroUSD {
		t.Errorf("cost %d, of the loops %d, want 7 for each of %d runs", org.Total.MicroUSD, r.Total.MicroUSD, org.Total.Worked)
	}
}

func TestTheSameSeedGivesTheSameHistoryAndNoFileIsChanged(t *testing.T) {
	t.Parallel()
	loops := organisation()
	root := write(t, loops, 12, taskfile.Priorities...)
	before := filesOf(t, root)
	long := time.Duration(sample.Size(8, 24)) * time.Hour
	r, org := simulate(t, root, loops, long, 3)
	again, orgAgain := simulate(t, root, loops, long, 3)
	if d := cmp.Diff(r, again) + cmp.Diff(org, orgAgain); d != "" {
		t.Errorf("the same seed gives another result:\n%s", d)
	}
	if _, other := simulate(t, root, loops, long, 4); cmp.Equal(org, other) {
		t.Error("another seed gives the same result")
	}
	if d := cmp.Diff(before, filesOf(t, root)); d != "" {
		t.Errorf("files (-before +after):\n%s", d)
	}
	total := org.Total
	if total.Worked != total.Done+total.Blocked+total.Failed || total.Blocked == 0 || total.Failed == 0 || total.Done < total.Worked/2 || total.Tokens == 0 || org.Blocked.TotalMS == 0 {
		t.Errorf("it came to %+v, blocked %+v", total, org.Blocked)
	}
	if e := org.Escalations; total.Escalations == 0 || total.Escalations != e.Superior+e.Escalation+e.Chief+e.Owner {
		t.Errorf("%d escalations: %+v", total.Escalations, e)
	}
}

// The step is blocked when each attempt ends, in the minutes 16, 61 and 106. It is tried again
// in every third cycle, in the minutes 60 and 105; the end is at 120: 44 + 44 + 14 minutes.
func TestBlockedTimeIsThatBetweenABlockAndTheNextAttempt(t *testing.T) {
	t.Parallel()
	loops := []sim.Loop{{Definition: agent("dev", "15m", "lead"), Past: []loop.Run{past(loop.OutcomeBlocked, loop.ReasonAgentBlocked)}}}
	root := write(t, loops, 1, "medium")
	_, org := simulate(t, root, loops, 2*time.Hour, 1)
	want := orgsim.Wait{TotalMS: (102 * time.Minute).Milliseconds(), LongestMS: (44 * time.Minute).Milliseconds(), LongestAgent: "dev", LongestStep: "step-1"}
	if d := cmp.Diff(want, org.Blocked); d != "" {
		t.Errorf("blocked time (-want +got):\n%s", d)
	}
	if d := cmp.Diff(orgsim.Rungs{Superior: 1, Owner: 1}, org.Escalations); d != "" {
		t.Errorf("escalations (-want +got):\n%s", d)
	}
	if a := org.Agents[0]; a.Blocked != 3 || a.Escalations != 2 || org.After != (orgsim.Steps{Blocked: 1}) {
		t.Errorf("it came to %+v, steps %+v", a, org.After)
	}
}

func TestAStepThatIsBlockedAtTheStartIsBlockedFromThen(t *testing.T) {
	t.Parallel()
	d := agent("dev", "15m", "lead")
	loops := []sim.Loop{{Definition: d, Past: []loop.Run{past(loop.OutcomeProposed, "")}}}
	root := write(t, loops, 0)
	text := "## Active Tasks\n\n- **Step 1**: work\n  - Status: blocked\n  - Blocked reason: no key\n"
	if err := os.WriteFile(filepath.Join(root, "agents/dev", taskfile.TasksFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, org := simulate(t, root, loops, 2*time.Hour, 1)
	// The first cycle sees the block, in minute 15, and the fourth tries again.
	if want := time.Hour.Milliseconds(); org.Blocked.TotalMS != want || org.After.Done != 1 {
		t.Errorf("blocked time %+v, want %d ms; steps %+v", org.Blocked, want, org.After)
	}
}

func TestACriticalMessageFiresItsRecipientAtOnce(t *testing.T) {
	t.Parallel()
	blocked := []loop.Run{past(loop.OutcomeBlocked, loop.ReasonAgentBlocked)}
	loops := []sim.Loop{{Definition: agent("dev", "15m", "lead"), Past: blocked}, {Definition: agent("chief", "12h", ""), Past: []loop.Run{past(loop.OutcomeProposed, "")}}}
	root := write(t, loops[:1], 1, taskfile.PriorityCritical)
	r, org := simulate(t, root, loops, time.Hour, 1)
	if chief := org.Agents[1]; chief.Runs != 1 || chief.Done != 1 || chief.Messages != 1 || r.Loops[1].Events != 1 || r.Loops[1].Planned != 0 {
		t.Errorf("the chief: %+v, %+v", chief, r.Loops[1])
	}
}

func TestAnAgentThatItsPolicyHaltsFiresNoMore(t *testing.T) {
	t.Parallel()
	d := agent("dev", "15m", "lead")
	d.OnBlocked = "halt"
	loops := []sim.Loop{{Definition: d, Past: []loop.Run{past(loop.OutcomeBlocked, loop.ReasonAgentBlocked)}}}
	_, org := simulate(t, write(t, loops, 3, "medium"), loops, 6*time.Hour, 1)
	if a := org.Agents[0]; a.Runs != 1 || !a.Halted {
		t.Errorf("it came to %+v", a)
	}
}

func TestWhatPastRunsCameToIsWhatAttemptsComeTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		past  loop.Run
		after orgsim.Steps
	}{
		"landed":      {past(loop.OutcomeLanded, ""), orgsim.Steps{Done: 1}},
		"blocked":     {past(loop.OutcomeEscalated, loop.ReasonAgentBlocked), orgsim.Steps{Blocked: 1}},
		"handed over": {past(loop.OutcomeEscalated, loop.ReasonAgentEscalated), orgsim.Steps{Cancelled: 1}},
		"failed":      {past(loop.OutcomeFailed, loop.ReasonAgentTimeout), orgsim.Steps{Failed: 1}},
		"no quota":    {past(loop.OutcomeBlocked, loop.FailureQuota), orgsim.Steps{Open: 1}},
	} {
		loops := []sim.Loop{{Definition: agent("dev", "15m", "lead"), Past: []loop.Run{c.past, {Outcome: loop.OutcomeQuiet, Spent: loop.Spent{Total: time.Hour}}}}}
		_, org := simulate(t, write(t, loops, 1, "medium"), loops, 20*time.Minute, 1)
		if org.After != c.after || org.Agents[0].Worked != 1 {
			t.Errorf("%s: %+v, steps %+v", name, org.Agents[0], org.After)
		}
	}
}

func TestABudgetThatIsTooSmallLeavesTheStepOpen(t *testing.T) {
	t.Parallel()
	d := agent("dev", "15m", "lead")
	d.BudgetTokensDay = 1
	loops := []sim.Loop{{Definition: d}}
	r, org := simulate(t, write(t, loops, 1, "medium"), loops, time.Hour-time.Minute, 1)
	if org.After != (orgsim.Steps{Open: 1}) || org.Total.Worked != 0 || r.Total.Unfunded == 0 || r.Total.Outcomes[loop.OutcomeBudget] != r.Total.Unfunded {
		t.Errorf("it came to %+v, steps %+v, %+v", org.Total, org.After, r.Total)
	}
}

// A file that cannot be read lets its agent fail, and the others go on.
func TestAnAgentWhoseFilesCannotBeReadFailsAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	run := past(loop.OutcomeProposed, "")
	loops := []sim.Loop{{Definition: agent("dev", "15m", "lead"), Past: []loop.Run{run}}, {Definition: agent("qa", "15m", "lead"), Past: []loop.Run{run}}}
	root := write(t, loops, 1, "medium")
	at := filepath.Join(root, "agents/dev", taskfile.TasksFile)
	if err := os.WriteFile(at, []byte("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, org := simulate(t, root, loops, time.Hour-time.Minute, 1)
	if got := maps.Clone(r.Loops[0].Outcomes); got[loop.OutcomeFailed] != 3 || len(got) != 1 {
		t.Errorf("dev came to %v", got)
	}
	if org.Agents[1].Done != 1 {
		t.Errorf("qa came to %+v", org.Agents[1])
	}
}
