// Package spec keeps a loop's memory in the store: a pinned goal that is
// worked on again in every iteration until the gates say that it is met.
//
// So far it serves `pawl run --until`, whose definition comes from the command
// line. It never touches a file of the workspace.
package spec

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
)

// Until returns the definition of a loop that repairs until the command
// passes, changing only what the scope allows.
func Until(command, name string, scope []string) loop.Definition {
	return loop.Definition{
		Name: name, Protocol: loop.ProtocolSpec, Pattern: "custom", Tier: loop.TierAssisted,
		Goal:  fmt.Sprintf("Make `%s` pass. Repair the cause; do not weaken what the command checks.", command),
		Scope: scope, Sense: loop.SenseGates, Verify: command, Escalation: "anything that cannot be repaired within the scope",
		MaxIterations: untilIterations,
	}
}

// untilIterations is more than the usual 3, because nobody has written down
// what the job is.
const untilIterations = 5

// Protocol opens the memory of specs.
type Protocol struct{}

// Open implements engine.Protocol. There is nothing to read but rows.
func (Protocol) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &session{v}, nil
}

type session struct{ v engine.View }

const goalKey = "goal"

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair { return nil }

// Sources implements engine.Session. A goal that is met already needs no agent.
func (s *session) Sources() []engine.Source {
	return []engine.Source{{Name: "until", Gates: true, Quiet: engine.QuietOnPass}}
}

// Candidates implements engine.Session: the goal, in every iteration again.
func (s *session) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	step := loop.Step{Key: goalKey, Kind: loop.StepWork, State: loop.StepOpen}
	for _, row := range s.v.Steps {
		if row.Key == goalKey {
			step = row
		}
	}
	// Whoever starts a run of a pinned goal wants it worked on, whatever
	// became of it before.
	if step.State != loop.StepClaimed {
		step.State, step.Tried = loop.StepOpen, loop.Tried{}
	}
	step.Title = s.v.Definition.Goal
	if s.v.Run.Request != "" {
		step.Title += " " + s.v.Run.Request
	}
	return []plan.Candidate{{Step: step, Detail: "the pinned goal is not met", Memory: s.v.Run.Request}}
}

// Begin implements engine.Session.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	d := s.v.Definition
	return nil, engine.Brief{Goal: d.Goal, Rules: []string{"Hand over instead of doing: " + d.Escalation}, Task: ch.Step.Title}, nil
}

// Record implements engine.Session.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	if r.Proposal == nil {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

// Close implements engine.Session. The rows say it all.
func (s *session) Close(engine.Summary) []loop.Change { return nil }
