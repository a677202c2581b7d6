package spec_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// base has the files of a commit.
type base struct {
	engine.History
	files map[string]string
}

func (b base) Show(_ context.Context, _, path string) ([]byte, error) {
	if text, ok := b.files[path]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

// contract is a spec as people write one.
func contract() loopspec.Spec {
	return loopspec.Spec{
		ID: "lp_1234567", AgentID: "ada", Goal: "The tests pass.", LoopType: loop.Deterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual},
		StateSource: "test output", Gates: []loop.Gate{{Name: "tests", Kind: loop.GateCommand, Check: "`make test`"}},
		Guardrails: []string{"edits limited to /src", "note: be brief"}, HumanGate: "propose a branch, do not merge",
	}.WithDefaults()
}

// openSpec opens a session of the contract, after changes to it and to what the session sees.
func openSpec(t *testing.T, change func(*loopspec.Spec), see func(*engine.View)) engine.Session {
	t.Helper()
	s := contract()
	if change != nil {
		change(&s)
	}
	d, _ := s.Definition(s.ID)
	d.Spec = string(loopspec.Encode(s))
	v := engine.View{Loop: loop.Loop{Name: s.ID}, Definition: d.WithDefaults(), Run: loop.Run{ID: "run_2", N: 2}, Files: noFiles{t}, History: base{files: map[string]string{"todo.md": "one\n"}}, Now: noon}
	if see != nil {
		see(&v)
	}
	session, err := spec.Protocol{}.Open(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestEachStateSourceIsReadWithoutAModelAndOnlyAQueueMakesARunQuiet(t *testing.T) {
	for text, want := range map[string]engine.Source{
		"`ls -l`":        {Name: "state", Command: "ls -l"},
		"test output":    {Name: "state", Command: "make test"},
		"queue: ls todo": {Name: "queue", Command: "ls todo", Quiet: engine.QuietOnEmpty},
		"diff":           {Name: "diff", Changes: true},
		"memory":         {Name: "memory", Memory: true},
		"file: todo.md":  {Name: "todo.md", Text: "one\n"},
		"file: gone.md":  {Name: "gone.md", Text: "there is no gone.md"},
	} {
		got := openSpec(t, func(s *loopspec.Spec) { s.StateSource = text }, nil).Sources()
		if diff := cmp.Diff([]engine.Source{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestTheGoalIsAssertedAgainWithItsGuardrailsInEveryIteration(t *testing.T) {
	s := openSpec(t, nil, nil)
	for range 2 {
		c := s.Candidates(engine.Sensed{}, noon)
		if len(c) != 1 || c[0].Drop != "" || c[0].Step.Title != "The tests pass." || c[0].Step.Key != spec.GoalKey {
			t.Fatalf("candidates = %+v, want the goal", c)
		}
		_, brief, err := s.Begin(plan.Choice{Step: c[0].Step})
		if err != nil || brief.Goal.Text != "The tests pass." || strings.Join(brief.Rules, "|") != "edits limited to /src|be brief" {
			t.Fatalf("brief = %+v, %v", brief, err)
		}
	}
}

func TestTheAgentIsToldWhatToProposeForTheMemory(t *testing.T) {
	for written, want := range map[string]string{
		"":                              "edits limited to /src|be brief",
		" how the tests\n are started ": `edits limited to /src|be brief|Propose for the memory, as texts of a list "memory" in your report: how the tests are started`,
	} {
		s := openSpec(t, func(s *loopspec.Spec) { s.MemoryWrites = written }, nil)
		_, brief, err := s.Begin(plan.Choice{Step: s.Candidates(engine.Sensed{}, noon)[0].Step})
		if got := strings.Join(brief.Rules, "|"); err != nil || got != want {
			t.Errorf("%q: rules = %q, %v, want %q", written, got, err, want)
		}
	}
}

func TestTheBudgetOfASpecCountsOverItsWholeLifeAndIncludesItsLimit(t *testing.T) {
	for name, c := range map[string]struct {
		step loop.Step
		used bool
	}{
		"nothing":                {loop.Step{}, false},
		"one iteration less":     {loop.Step{Attempts: 7}, false},
		"exactly the iterations": {loop.Step{Attempts: 8}, true},
		"one token less":         {loop.Step{Tokens: 399_999}, false},
		"exactly the tokens":     {loop.Step{Tokens: 400_000}, true},
		"a millisecond less":     {loop.Step{Begun: noon.Add(-45*time.Minute + time.Millisecond)}, false},
		"exactly the time":       {loop.Step{Begun: noon.Add(-45 * time.Minute)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, state := range []loop.StepState{loop.StepOpen, loop.StepFailed, loop.StepBlocked, loop.StepWaiting, loop.StepEscalated, loop.StepDone} {
				step := c.step
				step.ID, step.Key, step.Kind, step.State = "st_1", spec.GoalKey, loop.StepWork, state
				var rules plan.Rules
				s := openSpec(t, nil, func(v *engine.View) {
					v.Steps = []loop.Step{step}
					rules = plan.DefinitionRules(v.Definition.WithDefaults())
				})
				d := plan.Next(plan.Snapshot{Candidates: s.Candidates(engine.Sensed{}, noon), Rules: rules, Run: 9, RunID: "run_9", Started: noon}, noon)
				tries := state == loop.StepOpen || state == loop.StepFailed || state == loop.StepBlocked
				if want := c.used && tries; (d.Reason == loop.ReasonLifeBudget) != want || (d.Ends == loop.OutcomeGaveUp) != want || (d.Spent != nil) != want {
					t.Errorf("%s: decision = %+v, want it given up: %v", state, d, want)
				}
			}
		})
	}
}

func TestAGoalThatTheEngineHasGivenUpStaysSoWithWhatItsRunLeft(t *testing.T) {
	step := loop.Step{ID: "st_1", Key: spec.GoalKey, Kind: loop.StepWork, State: loop.StepFailed, Attempts: 8}
	s := openSpec(t, nil, func(v *engine.View) { v.Steps = []loop.Step{step} })
	run := loop.Run{Outcome: loop.OutcomeGaveUp, Reason: loop.ReasonLifeBudget, Detail: "8 of 8 iterations are used"}
	step.State, step.WaitsFor = loop.StepEscalated, "ap_1"
	s.(interface{ GaveUp(loop.Step) }).GaveUp(step)
	if changes := s.Close(engine.Summary{Run: run}); len(changes) > 0 {
		t.Errorf("changes = %+v of a run that left nothing", changes)
	}
	run.Snapshot = "refs/pawl/snapshots/lp/9"
	step.Snapshot = run.Snapshot
	if diff := cmp.Diff([]loop.Change{{Kind: loop.ChangeStep, Step: &step}}, s.Close(engine.Summary{Run: run})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestAcceptedResultsOfATriggeredSpecBeginANewRoundAndThoseOfAManualOneDoNot(t *testing.T) {
	step := loop.Step{ID: "st_1", Key: spec.GoalKey, Kind: loop.StepWork, State: loop.StepDone, Attempts: 8, Tokens: 400_000}
	for trigger, want := range map[loopspec.TriggerType]loop.StepState{
		loopspec.TriggerManual: loop.StepDone, loopspec.TriggerSchedule: loop.StepOpen, loopspec.TriggerEvent: loop.StepOpen,
	} {
		got := openSpec(t, func(s *loopspec.Spec) {
			s.Trigger.Type = trigger
			if trigger == loopspec.TriggerEvent {
				s.Trigger.On = "file:*.go"
			}
		}, func(v *engine.View) { v.Steps = []loop.Step{step} }).Candidates(engine.Sensed{}, noon)[0]
		if got.Step.State != want || got.Drop != "" || want == loop.StepOpen && got.Step.Attempts != 0 {
			t.Errorf("%s: %+v, want the step %s", trigger, got, want)
		}
	}
}

func TestOutputThatIsNotToBeCommittedIsNotProposed(t *testing.T) {
	proposal := &loop.EffectRequest{Kind: "propose", Key: "k"}
	for rail, want := range map[string]int{"no push": 1, "prepare output, do not commit": 0} {
		s := openSpec(t, func(s *loopspec.Spec) {
			s.Guardrails, s.HumanGate = append(s.Guardrails, rail), "hand the result to a human"
		}, nil)
		if _, effects := s.Record(engine.Result{Proposal: proposal}); len(effects) != want {
			t.Errorf("%s: effects = %v, want %d", rail, effects, want)
		}
	}
}

func TestTheNextRunGoesOnFromWhatWasGatedAndDidNotPass(t *testing.T) {
	for outcome, want := range map[loop.Outcome]string{
		loop.OutcomeFailed: "refs/new", loop.OutcomeGaveUp: "refs/new", loop.OutcomeBlocked: "refs/new", loop.OutcomeEscalated: "refs/new",
		loop.OutcomeRefused: "", loop.OutcomeInterrupted: "", loop.OutcomePaused: "", loop.OutcomeWaiting: "",
	} {
		step := loop.Step{ID: "st_1", Key: spec.GoalKey, Kind: loop.StepWork, State: loop.StepFailed, Snapshot: "refs/old"}
		s := openSpec(t, nil, func(v *engine.View) { v.Steps = []loop.Step{step} })
		changes := s.Close(engine.Summary{Run: loop.Run{Outcome: outcome, Snapshot: "refs/new"}})
		if got := len(changes) == 1 && changes[0].Step.Snapshot == want; got != (want != "") || want == "" && len(changes) > 0 {
			t.Errorf("%s: changes = %+v, want the snapshot %q", outcome, changes, want)
		}
	}
}
