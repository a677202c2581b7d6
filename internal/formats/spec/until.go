package spec

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
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

// isUntil reports whether a definition is one of Until.
func isUntil(d loop.Definition) bool { return d.Verify != "" && d.Spec == "" }

// Review returns the definition of a loop that runs a command once, and shows a gate what it
// left.
func Review(name, goal, command string, g loop.Gate) loop.Definition {
	s := loopspec.Spec{
		AgentID: "command", Goal: goal, LoopType: loop.Nondeterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual}, StateSource: "diff",
		Gates: []loop.Gate{g}, Budget: loopspec.Budget{MaxIterations: 1}, ErrorPolicy: "pause + log",
	}.WithDefaults()
	d, _ := s.Definition(name)
	d.Spec, d.AgentCommand = string(loopspec.Encode(s)), command
	return d
}

// untilIterations is more than the usual 3, because nobody has written down
// what the job is.
const untilIterations = 5

// untilSession is one run of `pawl run --until`.
type untilSession struct{ v engine.View }

// Recovered implements engine.Session.
func (s *untilSession) Recovered() []engine.Repair { return nil }

// Sources implements engine.Session. A goal that is met already needs no agent.
func (s *untilSession) Sources() []engine.Source {
	return []engine.Source{{Name: "until", Gates: true, Quiet: engine.QuietOnPass}}
}

// Candidates implements engine.Session: the goal, in every iteration again.
func (s *untilSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	step := goalOf(s.v)
	// Whoever starts a run of a pinned goal wants it worked on, whatever
	// became of it before.
	if step.State != loop.StepClaimed {
		step.State, step.Tried = loop.StepOpen, loop.Tried{}
	}
	return []plan.Candidate{{Step: named(step, s.v), Detail: "the pinned goal is not met", Memory: s.v.Run.Request}}
}

// Begin implements engine.Session.
func (s *untilSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	d := s.v.Definition
	brief := briefOf(d, ch.Step)
	brief.Rules = []string{"Hand over instead of doing: " + d.Escalation}
	return nil, brief, nil
}

// Record implements engine.Session.
func (s *untilSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	if r.Proposal == nil {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

// Close implements engine.Session. The rows say it all.
func (s *untilSession) Close(engine.Summary) []loop.Change { return nil }
