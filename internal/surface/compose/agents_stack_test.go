package compose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// lineAgent adds the line of its step to a file. Its gate fails if a line before it is
// missing, and each run makes another change.
const (
	lineAgent = `agent_command: 'n="${PAWL_STEP##* }"; grep -qx "$n" src/all.txt || echo "$n" >> src/all.txt; echo "$PAWL_RUN" > "src/$n.txt"; ` +
		`printf "{\"outcome\":\"done\",\"summary\":\"line $n\"}" > "$PAWL_REPORT"'`
	lineGate = `verify: 'i=0; while read -r n; do i=$((i+1)); [ "$n" = "$i" ] || { echo "line $i is $n"; exit 7; }; done < src/all.txt; [ "$i" -gt 0 ]'`
)

// stackedTeam is a team after three cycles of an agent, each of which has worked on a step that
// depends on the one before.
func stackedTeam(t *testing.T) team {
	t.Helper()
	w := openTeam(agentsFixture(t, "", map[string]string{
		"agents/boss/LOOP.md": agentLoop(lineAgent, "sandbox: none"),
		"agents/dev/LOOP.md":  agentLoop(`scope: ["src/**"]`, lineAgent, lineGate, "sandbox: none"),
		"agents/dev/TASKS.md": tasksText(taskStep(1, "Add line 1", "medium", 0), taskStep(2, "Add line 2", "high", 1), taskStep(3, "Add line 3", "critical", 2)),
	}))
	for n := range 3 {
		v := w.cycle(runs.StartRequest{})
		if v.Outcome != loop.OutcomeProposed || len(v.Iterations) != 1 || v.Iterations[0].Step != fmt.Sprintf("Add line %d", n+1) {
			t.Fatalf("cycle %d = %s %s %q with %+v, want step %d proposed", n+1, v.Outcome, v.Reason, v.Detail, v.Iterations, n+1)
		}
	}
	return w
}

// checkLanded holds that each commit on main that a run made has the tree that all gates of
// its run passed, on the commit that is its parent.
func (w team) checkLanded(lines string) {
	t := w.t
	t.Helper()
	if text := strings.Join(strings.Fields(w.git("show", "main:src/all.txt")), " "); text != lines {
		t.Errorf("main has the lines %q, want %q", text, lines)
	}
	for commit := range strings.FieldsSeq(w.git("rev-list", "--no-merges", w.main+"..main")) {
		_, run, is := strings.Cut(w.git("log", "-1", "--format=%(trailers:key=Pawl-Run,valueonly)", commit), " ")
		if !is {
			continue // A person made it.
		}
		v, err := w.svc.Runs.Show(t.Context(), strings.TrimSpace(run))
		if err != nil {
			t.Fatal(err)
		}
		if parent := w.git("rev-parse", commit+"^"); v.Base != parent || v.Commit != commit {
			t.Errorf("%s#%d made %s on %s; on main is %s on %s", v.Loop, v.N, v.Commit, v.Base, commit, parent)
		}
		tree := w.git("rev-parse", commit+"^{tree}")
		gated := slices.ContainsFunc(v.Iterations, func(it runs.Iteration) bool {
			return it.Tree == tree && it.Verdict == loop.VerdictPass && len(it.Gates) > 0 && !slices.ContainsFunc(it.Gates, func(g runs.Gate) bool { return !g.Pass })
		})
		if !gated {
			t.Errorf("no gate of %s#%d passed the tree %s of %s", v.Loop, v.N, tree, commit)
		}
	}
	if dirty := w.git("status", "--porcelain", "--untracked-files=no", "--", "src", "README.md"); dirty != "" {
		t.Errorf("the checkout differs from main:\n%s", dirty)
	}
	w.checkMoves()
}

// wantIdle holds that nothing is left to do.
func (w team) wantIdle() {
	w.t.Helper()
	if v := w.cycle(runs.StartRequest{}); v.Outcome != loop.OutcomeQuiet {
		w.t.Errorf("the next cycle is %s %s %q", v.Outcome, v.Reason, v.Detail)
	}
}

func TestThreeStepsThatBuildOnEachOtherLandInAnyOrderOfTheirApprovals(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			w := stackedTeam(t)
			top := 0
			for _, n := range order {
				ref := fmt.Sprintf("dev#%d", n)
				v, err := w.approve(ref)
				if n < top {
					// The first one above it that was approved has brought it.
					upper := order[slices.IndexFunc(order, func(m int) bool { return m > n })]
					words := fmt.Sprintf("it landed with pawl/dev/%d, which ann approved", upper)
					wantExit(t, err, loop.ExitHeld, words)
					w.wantState(ref, loop.ApprovalVoid, words)
					continue
				}
				if top = n; err != nil || v.Outcome != loop.OutcomeLanded {
					t.Fatalf("approve %s = %s %s %q, %v", ref, v.Outcome, v.Reason, v.Detail, err)
				}
				w.checkLanded(strings.Join([]string{"1", "2", "3"}[:n], " "))
			}
			w.checkLanded("1 2 3")
			w.wantIdle()
			if got := w.statusOf("dev"); got["step-1"] != "done" || got["step-2"] != "done" || got["step-3"] != "done" {
				t.Errorf("the steps are %v", got)
			}
		})
	}
}

// Each proposal is made again on what is below it, from the lowest on, with a question of
// its own.
func TestABaseThatMovedBelowStepsThatBuildOnEachOtherIsGatedAgainFromTheLowestOn(t *testing.T) {
	t.Parallel()
	w := stackedTeam(t)
	gittest.WriteFile(t, w.root+"/README.md", "by a person\n")
	w.git("commit", "-q", "-m", "by a person", "README.md")
	newest := []string{"dev#1", "dev#2", "dev#3"}
	for n := range newest {
		for upper := n + 1; upper < len(newest); upper++ {
			_, err := w.approve(newest[upper])
			wantExit(t, err, loop.ExitHeld, "has to be made again there first")
			if f, is := errors.AsType[*loop.Fault](err); is && !strings.Contains(fmt.Sprint(f.Actions), w.lowestOpen()) {
				t.Errorf("the fix of %s is %v, want that it names %s", newest[upper], f.Actions, w.lowestOpen())
			}
			w.wantState(newest[upper], loop.ApprovalOpen, "")
		}
		v, err := w.approve(newest[n])
		wantExit(t, err, loop.ExitWaiting, "nothing has landed")
		if v.Outcome != loop.OutcomeProposed || v.Answer != loop.ApprovalOpen {
			t.Fatalf("step %d made again = %s %s %q with a question that is %s", n+1, v.Outcome, v.Reason, v.Detail, v.Answer)
		}
		newest[n] = fmt.Sprintf("dev#%d", v.N)
		if v, err := w.approve(newest[n]); err != nil || v.Outcome != loop.OutcomeLanded {
			t.Fatalf("approve %s = %s %s %q, %v", newest[n], v.Outcome, v.Reason, v.Detail, err)
		}
		w.checkLanded(strings.Join([]string{"1", "2", "3"}[:n+1], " "))
	}
	w.wantIdle()
}

// lowestOpen is the id of the question of the lowest proposal that is open.
func (w team) lowestOpen() string {
	w.t.Helper()
	open, err := w.svc.Approvals.List(w.t.Context(), "dev", false)
	if err != nil || len(open) == 0 {
		w.t.Fatalf("open questions = %v, %v", open, err)
	}
	return slices.MinFunc(open, func(a, b approvals.View) int { return len(a.Action.Stack) - len(b.Action.Stack) }).ID
}

func TestStepsThatBuildOnARejectedOneAreOpenAgain(t *testing.T) {
	t.Parallel()
	w := stackedTeam(t)
	if _, err := w.svc.Approvals.Reject(t.Context(), "dev#1", loop.Answer{By: "ann", From: "test", Note: "not like this"}); err != nil {
		t.Fatal(err)
	}
	for _, upper := range []string{"dev#2", "dev#3"} {
		w.wantState(upper, loop.ApprovalVoid, "it builds on pawl/dev/1, which ann rejected")
		_, err := w.approve(upper)
		wantExit(t, err, loop.ExitHeld, "which ann rejected")
		_, err = w.svc.Approvals.Land(t.Context(), upper, approvals.LandRequest{}, "", loop.Answer{By: "ann", From: "test"})
		wantExit(t, err, loop.ExitRefused, "it builds on pawl/dev/1, which ann rejected")
	}
	w.wantIdle() // They wait for what has failed.
	if got := w.statusOf("dev"); got["step-1"] != "failed" || got["step-2"] != "open" || got["step-3"] != "open" {
		t.Errorf("the steps are %v, want the first one failed and the others open", got)
	}
	for n := 1; n <= 3; n++ {
		w.git("rev-parse", "--verify", fmt.Sprintf("refs/heads/pawl/dev/%d", n))
	}
	if now := w.git("rev-parse", "main"); now != w.main {
		t.Errorf("main moved to %s", now)
	}
	// A person wants it after all: all three are made again, each on the one below.
	path := w.root + "/agents/dev/TASKS.md"
	gittest.WriteFile(t, path, strings.Replace(readFile(t, path), "Status: failed", "Status: open", 1))
	for n := 1; n <= 3; n++ {
		if v := w.cycle(runs.StartRequest{}); v.Outcome != loop.OutcomeProposed || v.Iterations[0].Step != fmt.Sprintf("Add line %d", n) {
			t.Fatalf("it is %s %s %q, want step %d proposed again", v.Outcome, v.Reason, v.Detail, n)
		}
	}
	if v, err := w.approve("dev"); err != nil || v.Outcome != loop.OutcomeLanded {
		t.Fatalf("approve = %s %s %q, %v", v.Outcome, v.Reason, v.Detail, err)
	}
	w.checkLanded("1 2 3")
}

// A step that is changed, or worked on again, keeps what it builds on; what builds on it is
// made again.
func TestAStepThatOthersBuildOnIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step  int
		again func(w team, ref string)
		words string // of the questions above it
	}{
		"the lowest is to be changed":      {1, askForChanges, "it builds on pawl/dev/1, which ann rejected"},
		"the one between is to be changed": {2, askForChanges, "it builds on pawl/dev/2, which ann rejected"},
		"the lowest is run again":          {1, runAgain, "it builds on pawl/dev/1, which is superseded"},
		"the one between is run again":     {2, runAgain, "it builds on pawl/dev/2, which is superseded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := stackedTeam(t)
			c.again(w, fmt.Sprintf("dev#%d", c.step))
			for upper := c.step + 1; upper <= 3; upper++ {
				w.wantState(fmt.Sprintf("dev#%d", upper), loop.ApprovalVoid, c.words)
			}
			v, err := w.svc.Runs.Show(t.Context(), "dev")
			if err != nil || v.Outcome != loop.OutcomeProposed || v.Iterations[0].Step != fmt.Sprintf("Add line %d", c.step) {
				t.Fatalf("it is %+v, want step %d proposed again; %v", v, c.step, err)
			}
			if below := fmt.Sprintf("pawl/dev/%d", c.step-1); c.step > 1 && v.Base != w.git("rev-parse", below) {
				t.Errorf("it was made on %s, want %s", v.Base, below)
			}
			for n := c.step + 1; n <= 3; n++ {
				if v := w.cycle(runs.StartRequest{}); v.Outcome != loop.OutcomeProposed || v.Iterations[0].Step != fmt.Sprintf("Add line %d", n) {
					t.Fatalf("the next cycle is %s %s %q, want step %d proposed again", v.Outcome, v.Reason, v.Detail, n)
				}
			}
			if v, err := w.approve("dev"); err != nil || v.Outcome != loop.OutcomeLanded {
				t.Fatalf("approve = %s %s %q, %v", v.Outcome, v.Reason, v.Detail, err)
			}
			w.checkLanded("1 2 3")
			w.wantIdle()
			if got := w.statusOf("dev"); got["step-1"] != "done" || got["step-2"] != "done" || got["step-3"] != "done" {
				t.Errorf("the steps are %v", got)
			}
		})
	}
}

func askForChanges(w team, ref string) {
	w.t.Helper()
	if _, err := w.svc.Approvals.Reject(w.t.Context(), ref, loop.Answer{Changes: true, By: "ann", From: "test", Note: "more of it"}); err != nil {
		w.t.Fatal(err)
	}
}

func runAgain(w team, ref string) {
	w.t.Helper()
	r, err := w.svc.Runs.Again(w.t.Context(), ref, "more of it")
	if err != nil {
		w.t.Fatal(err)
	}
	w.cycle(r)
}

func TestAProposalThatIsLandedByHandTakesThoseBelowItAlong(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]bool{"fast-forward": false, "merge": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := stackedTeam(t)
			land := func(ref string) (runs.View, error) {
				return w.svc.Approvals.Land(t.Context(), ref, approvals.LandRequest{Merge: merge}, "", loop.Answer{By: "ann", From: "test"})
			}
			shown, err := w.svc.Approvals.Landing(t.Context(), "dev#2", approvals.LandRequest{Merge: merge})
			if err != nil || !strings.Contains(shown.Does, "and lands pawl/dev/1 with it") {
				t.Errorf("landing shows %q, %v", shown.Does, err)
			}
			if v, err := land("dev#2"); err != nil || v.Outcome != loop.OutcomeLanded {
				t.Fatalf("land = %s %s %q, %v", v.Outcome, v.Reason, v.Detail, err)
			}
			w.checkLanded("1 2")
			w.wantState("dev#1", loop.ApprovalVoid, "it landed with pawl/dev/2, which ann approved")
			w.wantState("dev#3", loop.ApprovalOpen, "")
			v, err := w.approve("dev#3")
			if merge { // What was gated is not on what main is now.
				wantExit(t, err, loop.ExitWaiting, "nothing has landed")
				v, err = w.approve(fmt.Sprintf("dev#%d", v.N))
			}
			if err != nil || v.Outcome != loop.OutcomeLanded {
				t.Fatalf("approve the last one = %s %s %q, %v", v.Outcome, v.Reason, v.Detail, err)
			}
			w.checkLanded("1 2 3")
			w.wantIdle()
		})
	}
}

// At L3 a patch of a lockfile may land without a human, but not together with what no human
// has said yes to.
func TestAStepThatBuildsOnAnOpenProposalDoesNotLandUnattended(t *testing.T) {
	t.Parallel()
	if !confines(t) {
		t.Skip("no sandbox, and L3 needs one")
	}
	lock := func(version, sum string) string {
		return `{"name":"x","lockfileVersion":3,"packages":{"node_modules/a":{"version":"` + version +
			`","resolved":"https://example.com/a-` + version + `.tgz","integrity":"sha512-` + strings.Repeat(sum, 86) + `=="}}}` + "\n"
	}
	const agent = `agent_command: 'case "$PAWL_STEP" in *lock) cp next.json package-lock.json ;; *) echo two > src/a.txt ;; esac; ` +
		`printf "{\"outcome\":\"done\",\"summary\":\"made\"}" > "$PAWL_REPORT"'`
	for name, after := range map[string]int{"it builds on nothing": 0, "it builds on an open proposal": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := agentsFixture(t, "", map[string]string{
				"agents/boss/LOOP.md": agentLoop(agent, "sandbox: none"), "package-lock.json": lock("1.0.0", "a"), "next.json": lock("1.0.1", "b"),
				"agents/dev/LOOP.md":  agentLoop(`scope: ["src/**", "package-lock.json"]`, "verify: 'test -d src'", "guard: 'true'", "tier: L3", "sandbox: full", "autoland: [lockfile-patch]", agent),
				"agents/dev/TASKS.md": tasksText(taskStep(1, "Change the code", "high", 0), taskStep(2, "Patch the lock", "medium", after)),
			})
			s.git("checkout", "-q", "-b", "work")
			w := openTeam(s)
			before := w.git("rev-parse", "work")
			if v := w.cycle(runs.StartRequest{}); v.Outcome != loop.OutcomeProposed {
				t.Fatalf("step 1 = %s %s %q", v.Outcome, v.Reason, v.Detail)
			}
			v := w.cycle(runs.StartRequest{})
			if after > 0 {
				if now := w.git("rev-parse", "work"); v.Outcome != loop.OutcomeProposed || now != before {
					t.Errorf("step 2 = %s %s %q, and work is at %s, was %s", v.Outcome, v.Reason, v.Detail, now, before)
				}
				w.wantState("dev#2", loop.ApprovalOpen, "")
			} else if v.Outcome != loop.OutcomeLanded {
				t.Errorf("step 2 = %s %s %q, want it landed", v.Outcome, v.Reason, v.Detail)
			}
		})
	}
}
