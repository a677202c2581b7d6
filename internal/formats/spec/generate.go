package spec

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// GenerateLoop is the name of the loop in whose runs agents write the documents of specs.
const GenerateLoop = "spec-generate"

// Generation returns the definition of that loop for an agent and perhaps a model. It is the
// same for every task, so that its runs are budgeted by those before them.
func Generation(by loop.Reviewer) loop.Definition {
	return loop.Definition{
		Name: GenerateLoop, Protocol: loop.ProtocolSpec, Pattern: "custom", Tier: loop.TierReport, Agent: by.Agent, Model: by.Model,
		Goal: "The document of a LoopSpec is written for a task.", Setup: toolset.None, History: loop.HistoryNone, MaxIterations: 1,
	}
}

// Generator is the protocol of one run that asks an agent for the document of a spec. After
// the run, Reply is what the agent said, without secrets; nil if it took no turn that ended
// well.
type Generator struct {
	Prompt string
	Reply  *string
}

// Open implements engine.Protocol.
func (g *Generator) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &generating{v, g}, nil
}

// generating is one run of a Generator, or one that a person started by the name of the loop,
// which has none.
type generating struct {
	v engine.View
	g *Generator
}

// Recovered implements engine.Session.
func (s *generating) Recovered() []engine.Repair { return nil }

// Sources implements engine.Session: all that is known is in the prompt.
func (s *generating) Sources() []engine.Source { return nil }

// Candidates implements engine.Session.
func (s *generating) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	c := plan.Candidate{Step: goalOf(s.v), Detail: "a spec is wanted for it", Memory: s.v.Run.ID}
	if c.Step.State != loop.StepClaimed {
		c.Step = c.Step.AsNew()
	}
	c.Step.Title = s.v.Run.Request
	if c.Step = c.Step.WrittenBy(s.v.Run.Requester()); s.g == nil {
		c.Drop, c.Detail = loop.ReasonNotEligible, errNoTask.Error()
	}
	return []plan.Candidate{c}
}

var errNoTask = errors.New("it writes a spec for a task, and this run has none: generate the spec again")

// Begin implements engine.Session.
func (s *generating) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	if s.g == nil {
		return nil, engine.Brief{}, errNoTask
	}
	brief := briefOf(s.v.Definition, ch.Step)
	brief.Prompt = s.g.Prompt
	return nil, brief, nil
}

// Record implements engine.Session.
func (s *generating) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	if s.g != nil && r.Iteration.Verdict == loop.VerdictPass {
		s.g.Reply = &r.Iteration.Words
	}
	return nil, nil
}

// Close implements engine.Session. The rows say it all.
func (s *generating) Close(engine.Summary) []loop.Change { return nil }
