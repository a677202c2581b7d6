package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// OfRun returns what a run learned, nothing twice: of each gate that is a command what it
// said last, if it said anything, and then what the reports of its iterations propose, the first
// MostProposals. Hide takes secrets out of a text.
func OfRun(l loop.Loop, r loop.Run, d loop.Definition, its []loop.Iteration, hide func(string) string) []Lesson {
	by := loop.MemorySource{RunID: r.ID, LoopID: l.ID, Run: fmt.Sprintf("%s#%d", l.Name, r.N), Agent: r.Agent, Commit: r.BaseCommit}
	var lessons []Lesson
	add := func(lesson Lesson) bool {
		digest := lesson.entry("").Digest()
		if lesson.Text == "" || slices.ContainsFunc(lessons, func(other Lesson) bool { return other.entry("").Digest() == digest }) {
			return false
		}
		lessons = append(lessons, lesson)
		return true
	}
	for _, g := range d.AllGates() {
		it, res := lastOf(g.Name, its)
		if g.Kind != loop.GateCommand || it == nil || hide(g.Check) != g.Check { // Without its secret it is another command.
			continue
		}
		from := by
		from.Gate, from.Commit = g.Name, cmp.Or(it.Candidate, r.BaseCommit)
		add(Lesson{Kind: loop.MemoryCommand, Text: Clean(loop.MemoryCommand, g.Check), Passed: res.Pass, Known: res.Known, By: from})
	}
	proposals := 0
	propose := func(kind loop.MemoryKind, texts []string) {
		for _, text := range texts {
			if proposals < MostProposals && add(Lesson{Kind: kind, Text: Clean(kind, hide(text)), By: by}) {
				proposals++
			}
		}
	}
	for _, it := range its {
		said, err := report.Parse([]byte(it.Report))
		if err != nil {
			continue // What cannot be read as a report proposes nothing.
		}
		propose(loop.MemoryFact, said.Memory)
		propose(loop.MemoryPitfall, said.Pitfalls)
	}
	return lessons
}

// lastOf is the last iteration in which a gate decided, with what it said; nil if there is
// none.
func lastOf(gate string, its []loop.Iteration) (*loop.Iteration, loop.GateResult) {
	for _, it := range slices.Backward(its) {
		for _, res := range it.Gates {
			if res.Name == gate && !res.Pending {
				return &it, res
			}
		}
	}
	return nil, loop.GateResult{}
}

// Save writes what was learned at a time into the memory of a workspace.
func Save(ctx context.Context, tx *store.Tx, workspace string, lessons []Lesson, at time.Time) error {
	if len(lessons) == 0 {
		return nil
	}
	lessons = slices.Clone(lessons)
	var digests []string
	room := 0
	for i := range lessons {
		lessons[i].By.At = at
		digests = append(digests, lessons[i].digests()...)
	}
	if last := lessons[len(lessons)-1]; last.Kind != loop.MemoryCommand { // Proposals come last.
		open, err := tx.ProposedMemories(ctx, workspace, last.By.LoopID)
		if err != nil {
			return err
		}
		room = MostOpen - open
	}
	_, err := tx.ChangeMemories(ctx, workspace, digests, func(known []loop.Memory) []loop.Memory { return Learn(known, lessons, room) })
	return err
}
