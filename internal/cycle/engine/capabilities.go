package engine

import (
	"context"

	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Optional interfaces of a Protocol or a Session. A format asserts those that it implements
// (var _ X = ...); otherwise a misspelt method would compile and never be called.

// RunNumbers is a Protocol whose memory numbers the runs: the first run of a loop of this name
// that the store knows goes on from the highest number.
type RunNumbers interface {
	LastRun(files Files, name string) (int64, error)
}

// FileMergers is a Protocol whose edits are not merged line by line with what people write
// meanwhile, by the names that the edits have for that.
type FileMergers interface {
	Mergers() map[string]projection.Merger
}

// UnopenedAccount is a Protocol that has something to write of a run whose memory cannot be
// opened.
type UnopenedAccount interface {
	CloseUnopened(v View, sum Summary) []loop.Change
}

// BranchMemory is a Session whose memory is on a branch. End is called when a run ends,
// whatever its outcome, before its effects are applied, and like Close on a session that saw
// nothing of the run. The outcome is only that of an effect that fails after it.
type BranchMemory interface {
	End(sum Summary) ([]loop.Change, []loop.EffectRequest)
}

// OwedEffects is a Session that owes effects from earlier runs. They are applied before
// anything is sensed, and the memory is opened once more; one that fails is noted, and the run
// goes on.
type OwedEffects interface {
	Owed() []loop.EffectRequest
}

// FirstQuestion is a Session that may have to ask a person before anything is worked on; nil:
// it asks nothing.
type FirstQuestion interface {
	Question() *Question
}

// MemoryNotes is a Session that tells people of its memory, beside repairs.
type MemoryNotes interface {
	Notes() []string
}

// StepRemarks is a Session that tells people of each later step: what is new since the last
// call.
type StepRemarks interface {
	Remarks() []string
}

// DiscardedFiles is a Session that lists files, and folders that end with a slash, to which the
// agent's changes are dropped: the runtime writes them, or they never leave the copy.
type DiscardedFiles interface {
	Discards() []string
}

// SharedSteps is a Session whose steps others may claim, which is a row of Begin that they have
// changed. Refresh is called when that has happened, before Candidates is called once more.
type SharedSteps interface {
	Refresh(ctx context.Context) error
}

// CommandLog is a Session that writes what the runtime runs for an agent into a memory of its
// own. Planned is called when the plan is known; its changes are durable before the first
// command runs. Ran is called once when the plan is over, with a result for each of its
// commands; its changes join the next transaction. It is not called if the run ends meanwhile.
type CommandLog interface {
	Planned(plan []loop.PlannedCommand) []loop.Change
	Ran(results []loop.CommandResult) []loop.Change
}

// GivenUpStep is a Session that is told of a step which the engine has given up.
type GivenUpStep interface {
	GaveUp(step loop.Step)
}
