package loop

import "slices"

// Phase is where a run stands in the cycle. The runtime owns the order.
type Phase string

// The phases of every run of every protocol, in their order.
const (
	PhaseTrigger    Phase = "trigger"
	PhaseClaim      Phase = "claim"
	PhaseKillSwitch Phase = "kill switch"
	PhaseRehydrate  Phase = "rehydrate"
	PhaseSense      Phase = "sense"
	PhaseDecide     Phase = "decide"
	PhaseAct        Phase = "act"
	PhaseGather     Phase = "gather"
	PhaseVerify     Phase = "verify"
	PhaseConclude   Phase = "conclude"
	PhasePersist    Phase = "persist"
	PhaseEffect     Phase = "effect"
	PhaseSleep      Phase = "sleep"
)

// Phases lists all phases in cycle order.
var Phases = []Phase{
	PhaseTrigger, PhaseClaim, PhaseKillSwitch, PhaseRehydrate, PhaseSense, PhaseDecide, PhaseAct,
	PhaseGather, PhaseVerify, PhaseConclude, PhasePersist, PhaseEffect, PhaseSleep,
}

// Before reports whether p comes before q in the cycle.
func (p Phase) Before(q Phase) bool {
	return slices.Index(Phases, p) < slices.Index(Phases, q)
}
