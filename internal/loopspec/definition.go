package loopspec

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// Terms are what a spec asks for that a loop.Definition has no field for. Whoever runs
// the definition has to honour them, too.
type Terms struct {
	Rules
	LoopType  loop.LoopType
	Gates     []loop.Gate // in the order in which they are judged
	MaxTokens int64       // over the life of the spec: input, cache writes and output
	MaxItems  int64       // children; 0: MaxChildren
	Role      Role
	Board     string // the board entry that it shares with others; empty: none

	Concurrency Concurrency
}

// Definition returns the definition of a loop that runs a spec that Validate does not
// refuse, and the terms that the definition cannot hold. Its iterations and its wall
// clock are those of the spec's whole life: a caller takes off what earlier runs have
// used.
//
// A spec that may write is of tier L2, and one that may not of tier L1; its gates are
// judged at both. What a spec of tier L2 with the guardrail NoBranch makes is not
// proposed. Sense is the command of any source that has one, and StateSource says
// whether it may make a run quiet: only a queue may.
func (s Spec) Definition(name string) (loop.Definition, Terms) {
	s = s.WithDefaults()
	rules, _ := s.Rules()
	terms := Terms{
		Rules: rules, LoopType: s.LoopType, Gates: InOrder(s.Gates), MaxTokens: s.Budget.MaxTokens, MaxItems: s.Budget.MaxItems,
		Role: s.Role, Board: s.BoardEntry, Concurrency: s.Concurrency,
	}
	d := loop.Definition{
		Name: name, Protocol: loop.ProtocolSpec, Pattern: "custom", Tier: loop.TierReport, Agent: s.AgentID,
		Goal: s.Goal, Scope: slices.Clone(rules.Guardrails.Scope), Sense: s.senseCommand(rules.StateSource),
		Cadence: rules.Trigger.Cadence, LandVia: rules.HumanGate.landVia(),
		MaxIterations: int(s.Budget.MaxIterations), MaxItems: int(s.Budget.MaxItems),
		MaxWallClock: time.Duration(s.Budget.MaxWallClockMs) * time.Millisecond,
	}
	if rules.Guardrails.Writes() {
		d.Tier = loop.TierAssisted
	}
	if rules.Trigger.Type == TriggerEvent {
		d.On = []string{rules.Trigger.Event.String()}
	}
	if rules.GiveUp.Rule == GateWithoutDiff {
		d.GiveUpAfter = rules.GiveUp.N
	}
	return d, terms
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

// landVia is the key of a definition that means the same; empty if approval moves no
// branch of people's.
func (h HumanGate) landVia() string {
	switch h {
	case Land:
		return "human"
	case OpenPullRequest:
		return "pr"
	case Accept, KeepBranch:
	}
	return ""
}
