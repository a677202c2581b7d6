package spec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

var noon = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

// noFiles fails every read: a spec's memory is in the store alone.
type noFiles struct{ t *testing.T }

func (f noFiles) Read(path string) (projection.File, error) {
	f.t.Errorf("%s was read", path)
	return projection.File{}, errors.New("no file is read")
}

func open(t *testing.T, change func(*engine.View)) engine.Session {
	t.Helper()
	v := engine.View{
		Loop: loop.Loop{Name: "u"}, Definition: spec.Until("go test ./...", "u", []string{"src/**"}).WithDefaults(),
		Run: loop.Run{ID: "run_2", N: 2}, Files: noFiles{t}, Now: noon,
	}
	if change != nil {
		change(&v)
	}
	s, err := spec.Protocol{}.Open(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUntilRepairsWithinItsScopeAndIsJudgedByTheCommand(t *testing.T) {
	d := spec.Until("go test ./...", "u", []string{"src/**"})
	if d.Verify != "go test ./..." || d.Sense != loop.SenseGates || !strings.Contains(d.Goal, "`go test ./...`") || !slices.Equal(d.Scope, []string{"src/**"}) {
		t.Errorf("definition = %+v", d)
	}
	if d.Protocol != loop.ProtocolSpec || d.Tier != loop.TierAssisted || d.Name != "u" || d.MaxIterations <= 3 {
		t.Errorf("definition = %+v, want an L2 spec with more than the usual iterations", d)
	}
	if got := d.WithDefaults().MaxIterations; got != d.MaxIterations {
		t.Errorf("the defaults make it %d iterations, want %d", got, d.MaxIterations)
	}
}

func TestAGoalThatIsMetNeedsNoAgent(t *testing.T) {
	want := []engine.Source{{Name: "until", Gates: true, Quiet: engine.QuietOnPass}}
	if diff := cmp.Diff(want, open(t, nil).Sources()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestTheGoalIsTheOneCandidateWhateverBecameOfItBefore(t *testing.T) {
	for _, state := range []loop.StepState{
		"", loop.StepOpen, loop.StepBlocked, loop.StepFailed, loop.StepWaiting, loop.StepEscalated, loop.StepDone, loop.StepDropped,
	} {
		t.Run("it was "+string(state), func(t *testing.T) {
			s := open(t, func(v *engine.View) {
				if state != "" {
					v.Steps = []loop.Step{
						{ID: "st_0", Key: "other", State: loop.StepOpen},
						{ID: "st_1", Key: "goal", Kind: loop.StepWork, State: state, Attempts: 4, Tried: loop.Tried{Back: 2}, BlockedAt: 1},
					}
				}
			})
			got := s.Candidates(engine.Sensed{}, noon)
			if len(got) != 1 || got[0].Drop != "" {
				t.Fatalf("candidates = %+v, want the goal", got)
			}
			step := got[0].Step
			if step.State != loop.StepOpen || step.Tried.Back != 0 || step.Kind != loop.StepWork || !strings.Contains(step.Title, "`go test ./...`") {
				t.Errorf("step = %+v, want it open with no streak", step)
			}
			if state != "" && (step.ID != "st_1" || step.Attempts != 4) {
				t.Errorf("step = %+v, want the row that exists", step)
			}
			d := plan.Next(plan.Snapshot{Candidates: got, Rules: plan.DefinitionRules(spec.Until("x", "u", nil).WithDefaults()), Run: 2, RunID: "run_2", Started: noon}, noon)
			if d.Choice == nil {
				t.Errorf("decision = %+v, want the goal", d)
			}
		})
	}
}

func TestAGoalThatIsClaimedStaysSo(t *testing.T) {
	s := open(t, func(v *engine.View) {
		v.Steps = []loop.Step{{Key: "goal", State: loop.StepClaimed, RunID: "run_1", Tried: loop.Tried{Back: 2}}}
	})
	if step := s.Candidates(engine.Sensed{}, noon)[0].Step; step.State != loop.StepClaimed || step.RunID != "run_1" || step.Tried.Back != 2 {
		t.Errorf("step = %+v, want it as its run holds it", step)
	}
}

func TestCandidatesAreTheSameHoweverOftenTheyAreAskedFor(t *testing.T) {
	s := open(t, func(v *engine.View) {
		v.Run.Request = "mind the docs"
		v.Steps = []loop.Step{{Key: "goal", State: loop.StepDone}}
	})
	first := s.Candidates(engine.Sensed{}, noon)
	if diff := cmp.Diff(first, s.Candidates(engine.Sensed{}, noon)); diff != "" {
		t.Errorf("candidates (-first +second):\n%s", diff)
	}
	if title := first[0].Step.Title; !strings.HasSuffix(title, " mind the docs") {
		t.Errorf("title = %q, want the request at its end", title)
	}
}

func TestTheAgentIsToldTheGoalAndWhatToHandOver(t *testing.T) {
	s := open(t, nil)
	step := s.Candidates(engine.Sensed{}, noon)[0].Step
	changes, brief, err := s.Begin(plan.Choice{Step: step})
	if err != nil || changes != nil {
		t.Fatalf("Begin = %v, %v; want no change", changes, err)
	}
	if brief.Task.Text != step.Title || !strings.Contains(brief.Goal.Text, "`go test ./...`") || len(brief.Rules) != 1 ||
		!strings.HasPrefix(brief.Rules[0], "Hand over instead of doing: ") {
		t.Errorf("brief = %+v", brief)
	}
}

func TestAGatedTreeIsProposedAndNothingIsWritten(t *testing.T) {
	s := open(t, nil)
	req := loop.EffectRequest{Kind: "propose", Key: "run_2/pawl/u/2", Args: map[string]string{"branch": "pawl/u/2"}}
	changes, effects := s.Record(engine.Result{Proposal: &req})
	if diff := cmp.Diff([]loop.EffectRequest{req}, effects); diff != "" || changes != nil {
		t.Errorf("Record = %v (-want +got):\n%s", changes, diff)
	}
	if changes, effects = s.Record(engine.Result{}); changes != nil || effects != nil {
		t.Errorf("Record = %v, %v; want nothing without a proposal", changes, effects)
	}
	for _, m := range loop.Meanings {
		if changes := s.Close(engine.Summary{Run: loop.Run{Outcome: m.Outcome}}); changes != nil {
			t.Errorf("%s: Close = %v, want nothing", m.Outcome, changes)
		}
	}
	if r := s.Recovered(); r != nil {
		t.Errorf("Recovered = %v, want nothing", r)
	}
}
