package specs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

// rig is the verbs, with those for specs.
type rig struct {
	*verbtest.Rig
	*specs.Service
}

func newRig(r *verbtest.Rig) rig {
	r.T.Helper()
	made := rig{r, specs.New(r.Workspace, specs.Deps{Environ: os.Environ(), Engine: r.Engine})}
	made.saveAgent("doer", "true")
	return made
}

// saveAgent adds an agent to the roster that is a line for the shell.
func (r rig) saveAgent(handle, command string) {
	r.T.Helper()
	err := r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		return tx.SaveAgent(r.T.Context(), loop.Agent{ID: "ag_" + handle, Handle: handle, Driver: "command", Command: command})
	})
	if err != nil {
		r.T.Fatal(err)
	}
}

// contract is a spec whose gate wants two in src/a.txt.
func contract(change func(*loopspec.Spec)) string {
	s := loopspec.Spec{
		AgentID: "@doer", Goal: "It says two.", LoopType: loop.Deterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual}, StateSource: "diff",
		Gates:      []loop.Gate{{Name: "two", Kind: loop.GateCommand, Check: "`grep -q two src/a.txt`"}},
		Guardrails: []string{"edits limited to /src"}, GiveUp: "same gate 9×", HumanGate: "propose a branch, do not merge",
	}.WithDefaults()
	if change != nil {
		change(&s)
	}
	return string(loopspec.Encode(s))
}

// create creates the contract, changed.
func (r rig) create(change func(*loopspec.Spec)) specs.View {
	r.T.Helper()
	v, err := r.Create(r.T.Context(), verbtest.Ann, specs.CreateRequest{Document: contract(change), File: "spec.json"})
	if err != nil {
		r.T.Fatal(err)
	}
	return v
}

// step makes one iteration by an agent that is a line for the shell.
func (r rig) step(id, agent string) runs.View {
	r.T.Helper()
	if status, err := r.CheckStep(r.T.Context(), id); err != nil {
		r.T.Fatalf("step %s spec: %v", status, err)
	} else if status == loopspec.StatusPaused {
		if _, err := r.Loops.Resume(r.T.Context(), verbtest.Ann, id); err != nil {
			r.T.Fatal(err)
		}
	}
	return r.RunLoop(runs.StartRequest{Loop: id, Overrides: loop.Overrides{MaxIterations: 1, AgentCommand: agent, Sandbox: "none"}})
}

func (r rig) get(id string) specs.View {
	r.T.Helper()
	v, err := r.Get(r.T.Context(), id)
	if err != nil {
		r.T.Fatal(err)
	}
	return v
}

// must fails the test at an error.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

const (
	says    = verbtest.WritesTwo
	fails   = `date +%s%N >src/b.txt; printf '{"outcome":"done"}' >"$PAWL_REPORT"` // another tree each time
	broken  = "exit 3"
	handsUp = `printf '{"outcome":"escalate","reason":"not mine"}' >"$PAWL_REPORT"`
)

// TestEachEdgeOfTheStatusesIsTaken walks the table with real runs: what leads to the
// status, what happens in it, and where the rows say that it is then.
func TestEachEdgeOfTheStatusesIsTaken(t *testing.T) {
	bring := map[loopspec.Status]func(r rig, id string){
		loopspec.StatusDraft:   func(rig, string) {},
		loopspec.StatusRunning: func(r rig, id string) { r.step(id, fails) },
		loopspec.StatusPaused: func(r rig, id string) {
			r.step(id, fails)
			must[loops.Switched](r.T)(r.Loops.Pause(r.T.Context(), verbtest.Ann, id, ""))
		},
		loopspec.StatusWaitingHuman: func(r rig, id string) { r.step(id, says) },
		loopspec.StatusDone: func(r rig, id string) {
			r.step(id, says)
			must[runs.View](r.T)(r.Approvals.Approve(r.T.Context(), id, loop.Answer{By: "Ann"}))
		},
		loopspec.StatusGaveUp: func(r rig, id string) { r.step(id, fails); r.step(id, fails); r.step(id, fails) },
	}
	happen := map[loopspec.Event]func(r rig, id string){
		loopspec.EventStep:    func(r rig, id string) { r.step(id, fails) },
		loopspec.EventPass:    func(r rig, id string) { r.step(id, says) },
		loopspec.EventPending: func(r rig, id string) { r.step(id, says) },
		loopspec.EventFail:    func(r rig, id string) { r.step(id, fails) },
		loopspec.EventGiveUp:  func(r rig, id string) { r.step(id, fails); r.step(id, fails) },
		loopspec.EventPause:   func(r rig, id string) { r.step(id, fails); r.step(id, fails) },
		loopspec.EventBudget:  func(r rig, id string) { r.step(id, fails); r.step(id, fails) },
		loopspec.EventError:   func(r rig, id string) { r.step(id, broken) },
		loopspec.EventHandOff: func(r rig, id string) { r.step(id, broken) },
		loopspec.EventAbandon: func(r rig, id string) { r.step(id, broken) },
		loopspec.EventApprove: func(r rig, id string) {
			must[runs.View](r.T)(r.Approvals.Approve(r.T.Context(), id, loop.Answer{By: "Ann"}))
		},
		loopspec.EventAccept: func(r rig, id string) {
			must[runs.View](r.T)(r.Approvals.Approve(r.T.Context(), id, loop.Answer{By: "Ann"}))
		},
		loopspec.EventReject: func(r rig, id string) {
			must[approvals.View](r.T)(r.Approvals.Reject(r.T.Context(), id, loop.Answer{By: "Ann", Note: "not yet"}))
		},
		loopspec.EventStop: func(r rig, id string) {
			if to, _ := loopspec.After(r.get(id).Status, loopspec.EventStop); to == loopspec.StatusPaused {
				must[loops.Switched](r.T)(r.Loops.Pause(r.T.Context(), verbtest.Ann, id, ""))
			}
		},
		loopspec.EventFlag: func(r rig, id string) { must[specs.View](r.T)(r.Flag(r.T.Context(), verbtest.Ann, id, "missed")) },
	}
	change := map[loopspec.Event]func(*loopspec.Spec){
		loopspec.EventPending: func(s *loopspec.Spec) { s.LoopType = loop.Nondeterministic },
		loopspec.EventGiveUp:  func(s *loopspec.Spec) { s.GiveUp = "same gate 3× → stop" },
		loopspec.EventPause:   func(s *loopspec.Spec) { s.GiveUp = "same gate 3× → pause" },
		loopspec.EventBudget:  func(s *loopspec.Spec) { s.Budget.MaxIterations = 3 },
		loopspec.EventError:   func(s *loopspec.Spec) { s.ErrorPolicy = "pause + log" },
		loopspec.EventHandOff: func(s *loopspec.Spec) { s.ErrorPolicy = "retry 1×, then escalate" },
		loopspec.EventAbandon: func(s *loopspec.Spec) { s.ErrorPolicy = "retry 1×, then stop" },
		loopspec.EventAccept: func(s *loopspec.Spec) {
			s.Trigger = loopspec.Trigger{Type: loopspec.TriggerSchedule, On: "1h"}
		},
	}
	for _, edge := range loopspec.Edges {
		t.Run(fmt.Sprintf("%s %s", edge.From, edge.Event), func(t *testing.T) {
			r := newRig(verbtest.New(t))
			id := r.create(func(s *loopspec.Spec) {
				s.Gates = append(s.Gates, loop.Gate{Name: "critic", Kind: loop.GateReviewer, Check: "It is short."})
				if edge.Event != loopspec.EventPending {
					s.Gates = s.Gates[:1]
				}
				if edge.From == loopspec.StatusGaveUp {
					s.Budget.MaxIterations = 3
				}
				if do := change[edge.Event]; do != nil {
					do(s)
				}
			}).Spec.ID
			bring[edge.From](r, id)
			if got := r.get(id).Status; got != edge.From {
				t.Fatalf("before: %s, want %s", got, edge.From)
			}
			happen[edge.Event](r, id)
			if v := r.get(id); v.Status != edge.To {
				t.Errorf("after: %s, want %s (%+v)", v.Status, edge.To, v.Iterations)
			}
		})
	}
}

func TestAStatusRefusesWhatItsTableDoesNotHave(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	r.step(id, says)
	_, err := r.CheckStep(t.Context(), id)
	verbtest.WantFault(t, err, loop.ExitWaiting, "step "+id, "approve or reject", "pawl approve ap_")
	must[runs.View](t)(r.Approvals.Approve(t.Context(), id, loop.Answer{By: "Ann"}))
	_, err = r.CheckStep(t.Context(), id)
	verbtest.WantFault(t, err, loop.ExitRefused, "step "+id, "it is done", "pawl spec get")
	handed := r.create(nil).Spec.ID
	r.step(handed, handsUp)
	if got := r.get(handed).Status; got != loopspec.StatusWaitingHuman {
		t.Errorf("an agent that hands it over leaves it %s", got)
	}
}

func TestWhatAgentsSaidAndGatesFoundIsTheTraceOverAllRuns(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	r.step(id, fails)
	r.step(id, says)
	v := r.get(id)
	if len(v.Iterations) != 2 || v.Iterations[0].N != 1 || v.Iterations[0].Verdict != loop.VerdictFail || v.Iterations[0].Gate != "two" || v.Iterations[1].N != 2 || v.Iterations[1].Verdict != loop.VerdictPass {
		t.Fatalf("iterations = %+v", v.Iterations)
	}
	var sum int64
	for _, it := range v.Iterations {
		sum += it.Tokens
		for name, text := range map[string]string{"sensed": it.Sensed, "decided": it.Decided, "acted": it.Acted, "feedback": it.Feedback} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("iteration %d has no %s", it.N, name)
			}
		}
	}
	if v.TokensUsed != sum || sum == 0 || v.StartedAt == 0 || v.Iterations[1].TS < v.Iterations[0].TS {
		t.Errorf("tokens %d of iterations with %d, started %d", v.TokensUsed, sum, v.StartedAt)
	}
	if !strings.Contains(v.Iterations[1].Sensed, "src/b.txt") {
		t.Errorf("the second iteration sensed %q, want what the first one changed", v.Iterations[1].Sensed)
	}
}

func TestNothingIsCreatedByARefusedDocument(t *testing.T) {
	r := newRig(verbtest.New(t))
	for name, c := range map[string]struct {
		change func(*loopspec.Spec)
		why    string
	}{
		"a phrase":  {func(s *loopspec.Spec) { s.ErrorPolicy = "try hard" }, "errorPolicy"},
		"a command": {func(s *loopspec.Spec) { s.Gates[0].Check = "The tests pass." }, "gates[0].check"},
		"an invariant": {func(s *loopspec.Spec) {
			s.Gates[0] = loop.Gate{Name: "x", Kind: loop.GateInvariant, Check: "diff.files <"}
		}, "gates[0].check"},
		"an agent": {func(s *loopspec.Spec) { s.AgentID = "@nobody" }, "agentId"},
		"a goal":   {func(s *loopspec.Spec) { s.Goal = " " }, "goal"},
	} {
		_, err := r.Create(t.Context(), verbtest.Ann, specs.CreateRequest{Document: contract(c.change), File: "spec.json"})
		verbtest.WantFault(t, err, loop.ExitUnreadable, "spec.json is refused", c.why, "nothing was created")
		if list := must[[]specs.Row](t)(r.List(t.Context(), specs.Query{})); len(list) != 0 {
			t.Fatalf("%s: specs = %+v, want none", name, list)
		}
	}
}

func TestExportImportExportIsIdenticalAndAnIDThatIsTakenIsAnother(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(func(s *loopspec.Spec) { s.Guardrails = append(s.Guardrails, "note: <&> “quoted”") }).Spec.ID
	first := must[string](t)(r.Export(t.Context(), id))
	imported := specs.CreateRequest{Document: first, File: "-", Foreign: true}
	other := must[specs.View](t)(r.Create(t.Context(), verbtest.Ann, imported))
	if other.Spec.ID == id || !loopspec.IsID(other.Spec.ID) {
		t.Errorf("id = %s, want another than %s", other.Spec.ID, id)
	}
	must[specs.Deleted](t)(r.Delete(t.Context(), verbtest.Ann, id))
	same := must[specs.View](t)(r.Create(t.Context(), verbtest.Ann, imported))
	if second := must[string](t)(r.Export(t.Context(), same.Spec.ID)); second != first || same.Spec.ID != id {
		t.Errorf("exported as %s (-first +second):\n%s", same.Spec.ID, cmp.Diff(first, second))
	}
}

func TestAHundredWorkersAtOnceDoNotSpendTheirParentsBudgetTwice(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, rr *verbtest.Rig) {
		r := newRig(rr)
		parent := r.create(func(s *loopspec.Spec) {
			s.Role, s.Budget = loopspec.RoleCoordinator, loopspec.Budget{MaxIterations: 21, MaxTokens: 10_000, MaxWallClockMs: 60_000}
		}).Spec.ID
		var wg sync.WaitGroup
		var mu sync.Mutex
		var made []string
		for range 100 {
			wg.Go(func() {
				v, err := r.Spawn(t.Context(), verbtest.Ann, specs.SpawnRequest{Parent: parent, Budget: loopspec.Budget{MaxIterations: 2, MaxTokens: 300}})
				if err != nil {
					if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitRefused || !strings.Contains(f.Why, "left") {
						t.Errorf("spawn: %v", err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				made = append(made, v.Spec.ID)
			})
		}
		wg.Wait()
		v := r.get(parent)
		if len(made) != 10 || len(v.Spec.ChildIDs) != 10 || v.Spec.Budget.MaxIterations != 1 || v.Spec.Budget.MaxTokens != 7000 {
			t.Errorf("%d workers, parent %+v with %d children; want 10 that have 20 of 21 iterations", len(made), v.Spec.Budget, len(v.Spec.ChildIDs))
		}
		child := r.get(made[0])
		if child.Spec.Role != loopspec.RoleWorker || child.Spec.ParentID != parent || child.Spec.Budget.MaxIterations != 2 || child.Spec.Budget.MaxTokens != 300 {
			t.Errorf("worker = %+v", child.Spec)
		}
		r.step(child.Spec.ID, fails)
		used := r.get(child.Spec.ID).TokensUsed
		must[specs.Deleted](t)(r.Delete(t.Context(), verbtest.Ann, child.Spec.ID))
		if b := r.get(parent).Spec.Budget; b.MaxIterations != 2 || b.MaxTokens != 7000+max(0, 300-used) {
			t.Errorf("after a worker that used 1 iteration and %d tokens was deleted the parent has %+v", used, b)
		}
		gone := must[specs.Deleted](t)(r.Delete(t.Context(), verbtest.Ann, parent))
		if len(gone.IDs) != 10 {
			t.Errorf("deleted %v, want the parent and its 9 workers", gone.IDs)
		}
		if left := must[[]specs.Row](t)(r.List(t.Context(), specs.Query{})); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

func TestASpecThatGaveUpGoesOnAfterAnEditWithALargerBudget(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(func(s *loopspec.Spec) { s.Budget.MaxIterations = 1 }).Spec.ID
	r.step(id, fails)
	edit := specs.EditRequest{Spec: id, File: "spec.json", Document: contract(func(s *loopspec.Spec) { s.Budget.MaxIterations = 3 })}
	v := must[specs.View](t)(r.Edit(t.Context(), verbtest.Ann, edit))
	if v.Status != loopspec.StatusRunning || v.Revision != 2 || v.Spec.ID != id || len(v.Iterations) != 1 {
		t.Fatalf("edited: %s, revision %d, %s, %d iterations", v.Status, v.Revision, v.Spec.ID, len(v.Iterations))
	}
	r.step(id, fails)
	r.step(id, fails)
	if v := r.get(id); v.Status != loopspec.StatusGaveUp || len(v.Iterations) != 3 {
		t.Errorf("%s after %d iterations, want it given up after the third of its life", v.Status, len(v.Iterations))
	}
}

// TestATemplateThatIsFilledHasARealGate runs each template that has one: what makes nothing
// better does not pass, and what does passes.
func TestATemplateThatIsFilledHasARealGate(t *testing.T) {
	report := func(do string) string { return do + `; printf '{"outcome":"done"}' >"$PAWL_REPORT"` }
	for template, c := range map[string]struct {
		files        map[string]string
		fill         specs.Fill
		worse, right string
	}{
		"keep-tests-green": {map[string]string{"src/a.txt": "one\n"}, specs.Fill{Test: "grep -q two src/a.txt"}, "echo three >src/a.txt", "echo two >src/a.txt"},
		"coverage-ratchet": {
			map[string]string{"src/cov.txt": "total\n50.5\n"},
			specs.Fill{Test: "test -f src/cov.txt", Coverage: "cat src/cov.txt"},
			"printf 'total\\n50.5\\n#' >src/x.txt", "printf 'total\\n50.6\\n' >src/cov.txt",
		},
		"lint-debt": {
			map[string]string{"src/found.txt": "a\nb\nc\n"},
			specs.Fill{Test: "test -d src", Lint: "cat src/found.txt"},
			"printf 'x\\ny\\nz\\n' >src/found.txt", "printf 'x\\ny\\n' >src/found.txt",
		},
		"type-check-debt": {
			map[string]string{"src/found.txt": "a\nb\n"},
			specs.Fill{Test: "test -d src", TypeCheck: "cat src/found.txt"},
			"printf 'a\\nb\\nc\\n' >src/found.txt", "printf 'a\\n' >src/found.txt",
		},
	} {
		t.Run(template, func(t *testing.T) {
			r := newRig(verbtest.New(t))
			for name, text := range c.files {
				verbtest.Write(t, r.Root, name, text)
			}
			gittest.Run(t, r.Root, "add", "-A")
			gittest.Run(t, r.Root, "commit", "-q", "--allow-empty", "-m", "files")
			c.fill.Agent, c.fill.Paths = "@doer", []string{"/src"}
			v := must[specs.View](t)(r.Create(t.Context(), verbtest.Ann, specs.CreateRequest{Template: template, Fill: c.fill}))
			if run := r.step(v.Spec.ID, report(c.worse)); run.Outcome != loop.OutcomeFailed {
				t.Errorf("what is no better ended %s: %s", run.Outcome, run.Reason)
			}
			if run := r.step(v.Spec.ID, report(c.right)); run.Outcome != loop.OutcomeWaiting {
				t.Errorf("what is better ended %s %s: %+v", run.Outcome, run.Reason, r.get(v.Spec.ID).Iterations)
			}
		})
	}
}

func TestASpecIsOnlyDueWhileItIsDraftOrRunning(t *testing.T) {
	r := newRig(verbtest.New(t))
	v := r.create(func(s *loopspec.Spec) { s.Trigger = loopspec.Trigger{Type: loopspec.TriggerSchedule, On: "3600000"} })
	l := r.LoopRow(loop.ProtocolSpec, v.Spec.ID)
	if l.Registered.Due.IsZero() || l.Registered.Due.After(time.Now().Add(time.Second)) {
		t.Errorf("due %v: one that never ran is due at once", l.Registered.Due)
	}
	event := r.create(func(s *loopspec.Spec) { s.Trigger = loopspec.Trigger{Type: loopspec.TriggerEvent, On: "file:src/**"} })
	if l := r.LoopRow(loop.ProtocolSpec, event.Spec.ID); l.Registered.Listens != "file:src/**" || !l.Registered.Due.IsZero() {
		t.Errorf("registered as %+v", l.Registered)
	}
	must[specs.Deleted](t)(r.Delete(t.Context(), verbtest.Ann, v.Spec.ID))
	if l := r.LoopRow(loop.ProtocolSpec, v.Spec.ID); !l.Registered.Due.IsZero() || !l.Forgotten {
		t.Errorf("deleted, it is %+v", l)
	}
}

// noChange is an agent that says that it is done, and changes nothing.
const noChange = `printf '{"outcome":"done","no_change":true}' >"$PAWL_REPORT"`

func TestNoChangeGivesUpAtExactlyTheThirdSameFailureAndAsksWithAnAccount(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(func(s *loopspec.Spec) { s.GiveUp = "same gate fails 3× with no diff → escalate" }).Spec.ID
	for n := 1; n <= 3; n++ {
		if got := r.get(id).Status; n > 1 && got != loopspec.StatusRunning {
			t.Fatalf("before iteration %d it is %s", n, got)
		}
		r.step(id, noChange)
	}
	v := r.get(id)
	if v.Status != loopspec.StatusGaveUp || len(v.Iterations) != 3 || v.Approval == "" {
		t.Fatalf("%s after %d iterations, approval %q; want it given up after the third, with a question", v.Status, len(v.Iterations), v.Approval)
	}
	asked := must[approvals.View](t)(r.Approvals.Find(t.Context(), id))
	if asked.Action.Kind != loop.ActionQuestion || strings.Count(asked.Action.Why, "\n- fail: two failed") != 3 {
		t.Errorf("asked: %+v, want an account of three iterations", asked.Action)
	}
	must[runs.View](t)(r.Approvals.Approve(t.Context(), id, loop.Answer{By: "Ann", Note: "look at b"}))
	v = r.get(id)
	if v.Status != loopspec.StatusRunning || len(v.Iterations) != 4 || !strings.Contains(v.Iterations[3].Sensed, "look at b") {
		t.Errorf("after a yes it is %s with iterations %+v, want a fourth that sensed the note", v.Status, v.Iterations)
	}
}

func TestAnotherChangeEachTimeIsNotGivenUpForTheSameTree(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(func(s *loopspec.Spec) { s.GiveUp = "same gate fails 3× with no diff → escalate" }).Spec.ID
	for range 5 {
		r.step(id, fails)
	}
	if v := r.get(id); v.Status != loopspec.StatusRunning || len(v.Iterations) != 5 {
		t.Errorf("%s after %d iterations", v.Status, len(v.Iterations))
	}
}

func TestTwoTreesInTurnAreGivenUpBeforeTheBudgetIsUsed(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(func(s *loopspec.Spec) {
		s.GiveUp, s.Budget.MaxIterations = "same gate fails 3× with no diff → stop", 40
	}).Spec.ID
	turns := `if grep -q left src/b.txt 2>/dev/null; then echo right >src/b.txt; else echo left >src/b.txt; fi; printf '{"outcome":"done"}' >"$PAWL_REPORT"`
	n := 0
	for ; r.get(id).Status != loopspec.StatusGaveUp && n < 10; n++ {
		r.step(id, turns)
	}
	v := r.get(id)
	if v.Status != loopspec.StatusGaveUp || n > 5 || v.Approval != "" {
		t.Errorf("%s after %d iterations, approval %q; want it given up by the fifth, and nobody asked: it says stop", v.Status, n, v.Approval)
	}
}

func TestAnAnswerOfNoLeavesItAndAHandOverIsAQuestion(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	r.step(id, handsUp)
	v := r.get(id)
	if v.Status != loopspec.StatusWaitingHuman || v.Approval == "" {
		t.Fatalf("%s, approval %q, want it to wait for an answer", v.Status, v.Approval)
	}
	asked := must[approvals.View](t)(r.Approvals.Find(t.Context(), id))
	if !strings.Contains(asked.Action.Why, "not mine") || !strings.Contains(asked.Does, "the note as the answer") {
		t.Errorf("asked: %q, which %s", asked.Action.Why, asked.Does)
	}
	_, err := r.Approvals.Reject(t.Context(), id, loop.Answer{By: "Ann", Changes: true, Note: "x"})
	verbtest.WantFault(t, err, loop.ExitUsage, "", "it is a question", "approve it with --note")
	must[approvals.View](t)(r.Approvals.Reject(t.Context(), id, loop.Answer{By: "Ann"}))
	if v := r.get(id); v.Status != loopspec.StatusGaveUp || v.Approval != "" {
		t.Errorf("after a no it is %s, approval %q", v.Status, v.Approval)
	}
}

func TestAnEditMakesWhatWasAskedVoidAndGoesOn(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	r.step(id, says)
	asked := r.get(id).Approval
	edit := specs.EditRequest{Spec: id, File: "spec.json", Document: contract(func(s *loopspec.Spec) { s.Goal = "It says two, always." })}
	if v := must[specs.View](t)(r.Edit(t.Context(), verbtest.Ann, edit)); v.Status != loopspec.StatusRunning {
		t.Errorf("after an edit it is %s", v.Status)
	}
	_, err := r.Approvals.Approve(t.Context(), asked, loop.Answer{By: "Ann"})
	verbtest.WantFault(t, err, loop.ExitHeld, "is not open", "the spec has revision 2", "")
}

func TestADraftThatWasStoppedGoesOnWithAStep(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	must[loops.Switched](t)(r.Loops.Pause(t.Context(), verbtest.Ann, id, ""))
	r.step(id, fails)
	if v := r.get(id); v.Status != loopspec.StatusRunning || len(v.Iterations) != 1 {
		t.Errorf("%s after %d iterations", v.Status, len(v.Iterations))
	}
}

func TestAFlagDoesNotTakeTheQuestionAwayThatWaits(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(func(s *loopspec.Spec) {
		s.Gates = append(s.Gates, loop.Gate{Name: "critic", Kind: loop.GateReviewer, Check: "It is short."})
	}).Spec.ID
	r.step(id, says)
	v := must[specs.View](t)(r.Flag(t.Context(), verbtest.Ann, id, "it is long"))
	if v.Status != loopspec.StatusWaitingHuman || len(v.Rubric.Criteria) != 2 {
		t.Fatalf("flagged, it is %s with %+v", v.Status, v.Rubric)
	}
	must[runs.View](t)(r.Approvals.Approve(t.Context(), id, loop.Answer{By: "Ann"}))
	if v := r.get(id); v.Status != loopspec.StatusDone {
		t.Errorf("approved, it is %s", v.Status)
	}
}
