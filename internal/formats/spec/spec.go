// Package spec keeps a loop's memory in the store: a pinned goal that is worked on again
// in every iteration until the gates say that it is met, or until the budget of its whole
// life is used up.
//
// The goal is that of a LoopSpec, or that of `pawl run --until`, whose definition comes
// from the command line. The package never touches a file of the workspace.
package spec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// Protocol opens the memory of specs.
type Protocol struct{}

// GoalKey is the key of the one step of a spec.
const GoalKey = "goal"

// Open implements engine.Protocol. There is nothing to read but rows, and the file that a
// spec may name as what it senses.
func (Protocol) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	if v.Definition.Name == GenerateLoop && v.Definition.Verify == "" {
		return &generating{v: v}, nil
	}
	if v.Definition.Spec == "" {
		return &untilSession{v}, nil
	}
	doc, findings := loopspec.Decode([]byte(v.Definition.Spec))
	if err := loopspec.AsFault(findings); err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	s := &session{v: v, spec: doc.Spec.WithDefaults(), step: goalOf(v)}
	_, s.terms = s.spec.Definition(v.Definition.Name)
	if source := s.terms.StateSource; source.Kind == loopspec.SenseFile {
		text, err := v.History.Show(ctx, "", source.Path)
		switch {
		case errors.Is(err, loop.ErrNotFound), errors.Is(err, fs.ErrNotExist):
			s.file = "there is no " + source.Path
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", source.Path, err)
		default:
			s.file = string(text[:min(len(text), mostFile)])
		}
	}
	return s, nil
}

// mostFile is how many bytes of a file are sensed.
const mostFile = 32 << 10

// goalOf is the row of the goal, or a new one.
func goalOf(v engine.View) loop.Step {
	for _, row := range v.Steps {
		if row.Key == GoalKey {
			return row
		}
	}
	return loop.Step{Key: GoalKey, Kind: loop.StepWork, State: loop.StepOpen}
}

// named returns the step with its title: the goal, and what is asked for in the run. It is a
// person's only if both are.
func named(step loop.Step, v engine.View) loop.Step {
	title := envelope.Join(" ", envelope.Field{Text: v.Definition.Goal, By: v.Definition.GoalAuthor()}, envelope.Field{Text: v.Run.Request, By: v.Run.Requester()})
	step.Title = title.Text
	return step.WrittenBy(title.By)
}

// briefOf is what an agent is told about a step that named has named.
func briefOf(d loop.Definition, step loop.Step) engine.Brief {
	return engine.Brief{Goal: envelope.Field{Text: d.Goal, By: d.GoalAuthor()}, Task: envelope.Field{Text: step.Title, By: step.Author()}}
}

// session is one run of a LoopSpec.
type session struct {
	v     engine.View
	spec  loopspec.Spec
	terms loopspec.Terms
	step  loop.Step // the goal, as this run knows it
	file  string    // what is sensed, where it is a file
}

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair { return nil }

// Sources implements engine.Session. Only a queue can make a run quiet: the goal is
// pinned, whatever is sensed.
func (s *session) Sources() []engine.Source {
	source := s.terms.StateSource
	switch source.Kind {
	case loopspec.SenseQueue:
		return []engine.Source{{Name: "queue", Command: source.Command, Quiet: engine.QuietOnEmpty}}
	case loopspec.SenseCommand, loopspec.SenseTestOutput:
		return []engine.Source{{Name: "state", Command: s.v.Definition.Sense}}
	case loopspec.SenseFile:
		return []engine.Source{{Name: source.Path, Text: s.file}}
	case loopspec.SenseDiff:
		return []engine.Source{{Name: "diff", Changes: true}}
	case loopspec.SenseMemory:
		return []engine.Source{{Name: "memory", Memory: true}}
	}
	return nil
}

// Candidates implements engine.Session: the goal, in every iteration again.
func (s *session) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	step := s.step
	if s.spec.Trigger.Type != loopspec.TriggerManual && step.State == loop.StepDone {
		step = step.AsNew() // Its last result was accepted, and it comes again.
	}
	step = named(step, s.v)
	// What a person said of a result that was rejected makes another one possible.
	return []plan.Candidate{{Step: step, Detail: "the pinned goal is not met", Memory: s.v.Run.Request + "\x00" + step.Feedback}}
}

// Begin implements engine.Session.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	s.step = ch.Step
	brief := briefOf(s.v.Definition, ch.Step)
	for _, rail := range s.spec.Guardrails {
		brief.Rules = append(brief.Rules, strings.TrimSpace(strings.TrimPrefix(rail, "note:")))
	}
	if what := strings.Join(strings.Fields(s.spec.MemoryWrites), " "); what != "" {
		brief.Rules = append(brief.Rules, `Propose for the memory, as texts of a list "memory" in your report: `+what)
	}
	return nil, brief, nil
}

// Record implements engine.Session.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	s.step = r.Settlement.Step
	if r.Proposal == nil || s.terms.NoBranch {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

// GaveUp is the optional method of engine.Session that is told of a step which the engine has
// given up.
func (s *session) GaveUp(step loop.Step) { s.step = step }

// Close implements engine.Session. What was gated and did not pass is what the next run goes
// on from.
func (s *session) Close(sum engine.Summary) []loop.Change {
	step := s.step
	if step.ID == "" || sum.Run.Snapshot == "" || !goesOn(sum.Run.Outcome) || step.State == loop.StepDone || step.State == loop.StepWaiting {
		return nil
	}
	step.Snapshot = sum.Run.Snapshot
	return []loop.Change{{Kind: loop.ChangeStep, Step: &step}}
}

// goesOn reports whether what a run left is good enough to go on from: it kept to the scope,
// and was not cut in the midst of a change.
func goesOn(o loop.Outcome) bool {
	return o == loop.OutcomeFailed || o == loop.OutcomeGaveUp || o == loop.OutcomeBlocked || o == loop.OutcomeEscalated
}
