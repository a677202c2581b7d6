package loopspec

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Terms are what a spec asks for that a loop.Definition has no field for: its protocol
// honours them.
type Terms struct {
	StateSource StateSource
	NoBranch    bool     // what it makes is not proposed
	Notes       []string // advice that nothing enforces
}

// Definition returns the definition of a loop that runs a spec that Validate does not
// refuse, and the terms that the definition cannot hold. Its iterations and its wall
// clock bound each run, and together with Life the whole of them.
//
// A spec that may write is of tier L2, and one that may not of tier L1; its gates are
// judged at both. What a spec of tier L2 with the guardrail NoBranch makes is not
// proposed. Sense is the command of any source that has one, and StateSource says
// whether it may make a run quiet: only a queue may.
func (s Spec) Definition(name string) (loop.Definition, Terms) {
	s = s.WithDefaults()
	rules, _ := s.Rules()
	d := loop.Definition{
		Name: name, Protocol: loop.ProtocolSpec, Pattern: "custom", Tier: loop.TierReport, Agent: s.AgentID,
		Goal: s.Goal, Scope: slices.Clone(rules.Guardrails.Scope), Sense: s.senseCommand(rules.StateSource), Cadence: rules.Trigger.Cadence,
		Gates: definitionGates(s.Gates), LoopType: s.LoopType, HumanGate: rules.HumanGate.Gate, LandVia: rules.HumanGate.LandVia,
		MaxIterations: int(s.Budget.MaxIterations), MaxItems: int(s.Budget.MaxItems),
		MaxWallClock: time.Duration(s.Budget.MaxWallClockMs) * time.Millisecond, GiveUp: giveUpRules(rules.GiveUp),
		Life:        &loop.Life{Iterations: s.Budget.MaxIterations, Tokens: s.Budget.MaxTokens, Wall: time.Duration(s.Budget.MaxWallClockMs) * time.Millisecond},
		ErrorPolicy: &rules.ErrorPolicy, Denies: rules.Guardrails.Deny, Asks: true,
	}
	if rules.Guardrails.Writes() {
		d.Tier = loop.TierAssisted
	}
	if rules.Trigger.Type == TriggerEvent {
		d.On = []string{rules.Trigger.Event.String()}
	}
	return d, Terms{StateSource: rules.StateSource, NoBranch: rules.Guardrails.NoBranch, Notes: rules.Guardrails.Notes}
}

// definitionGates are gates whose checks are commands and expressions alone.
func definitionGates(gates []loop.Gate) []loop.Gate {
	gates = slices.Clone(gates)
	for i, g := range gates {
		if g.Kind != loop.GateReviewer {
			gates[i].Check = GateText(g.Check)
		}
	}
	return gates
}

// giveUpRules are the rule of a spec and, unless it is about findings, the one about
// attempts that go back and forth between trees, which no other rule sees.
func giveUpRules(rule loop.GiveUpRule) []loop.GiveUpRule {
	if rule.Repeat == loop.RepeatFindings {
		return []loop.GiveUpRule{rule}
	}
	back := rule
	back.Repeat = loop.RepeatTree
	return []loop.GiveUpRule{rule, back}
}

// senseCommand returns the command that reads the source of a spec; empty if none does.
func (s Spec) senseCommand(source StateSource) string {
	if source.Kind != SenseTestOutput {
		return source.Command
	}
	for _, g := range s.Gates {
		if g.Kind == loop.GateCommand {
			return GateText(g.Check)
		}
	}
	return ""
}
