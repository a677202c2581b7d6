package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

// specRows measures an iteration of a LoopSpec in turns with one of a spine loop that does the
// same work, and how long the specs of a full store take to list.
func specRows(b *testing.B) []row {
	b.Helper()
	ctx, me := b.Context(), loop.Actor{Who: "bench", Role: loop.RoleHuman, From: "bench"}
	s := newFixture(b, 20, "")
	const work = `date +%s%N > src/new.txt; echo "{\"outcome\":\"done\"}" > "$PAWL_REPORT"`
	s.loop("works", "L2", writes)
	driver, command := "command", work
	_, err := s.d.Roster().Create(ctx, "@worker", roster.Change{Driver: &driver, Command: &command})
	s.must(err)
	spec := loopspec.Spec{
		AgentID: "@worker", Goal: "Keep things right.", LoopType: loop.Deterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual}, StateSource: "diff",
		Gates: []loop.Gate{{Name: "verify", Kind: loop.GateCommand, Check: "true"}, {Name: "guard", Kind: loop.GateCommand, Check: "true"}}, Guardrails: []string{"edits limited to /src"},
		HumanGate: "propose a branch, do not merge", Budget: loopspec.Budget{MaxIterations: 100, MaxTokens: 1e9, MaxWallClockMs: 1e9},
	}.WithDefaults()
	var ours, spine []time.Duration
	made, err := s.svc.Specs.Create(ctx, me, specs.CreateRequest{Document: string(loopspec.Encode(spec)), File: "-"})
	s.must(err)
	for range 21 {
		v := s.run(ctx, made.Spec.ID, loop.OutcomeWaiting)
		ours = append(ours, toDuration(v.MS.Overhead))
		s.void(v.Approval)
		s.must(s.d.Store().Update(ctx, func(tx *store.Tx) error { return tx.ReopenRejected(ctx, v.Approval, "", "again") }))
		other, _ := s.proposes("works")
		spine = append(spine, toDuration(other.MS.Overhead))
	}
	of, bare := median(ours), median(spine)

	const many = 10_000
	body := string(loopspec.Encode(spec))
	var workspace string
	s.must(s.d.Store().View(ctx, func(r *store.Reader) error {
		ids, err := r.WorkspaceIDs(ctx)
		if err == nil && len(ids) > 0 {
			workspace = ids[0]
		}
		return err
	}))
	s.must(s.d.Store().Update(ctx, func(tx *store.Tx) error {
		for i := range many {
			name := fmt.Sprintf("lp_%07d", i)
			id := catalog.LoopID(workspace, loop.ProtocolSpec, name)
			if err := tx.AddLoop(ctx, loop.Workspace{ID: workspace, Root: s.root}, loop.Loop{ID: id, WorkspaceID: workspace, Name: name, Protocol: loop.ProtocolSpec}); err != nil {
				return err
			}
			if _, err := tx.AddSpec(ctx, store.Spec{ID: name, WorkspaceID: workspace, LoopID: id, Goal: spec.Goal, Agent: spec.AgentID, Body: body}, "bench"); err != nil {
				return err
			}
		}
		return nil
	}))
	var listed []time.Duration
	for range 7 {
		listed = append(listed, timed(func() {
			list, err := s.svc.Specs.List(ctx, specs.Query{})
			s.must(err)
			if len(list) < many {
				b.Fatalf("%d specs are listed", len(list))
			}
		}))
	}
	return []row{
		{"iteration of a LoopSpec, outside agent and gates", millis(of), "≤ a spine loop's", "spine " + millis(bare), ratio(of, bare)},
		{"10,000 LoopSpecs listed", millis(median(listed)), "< 200 ms", "", ""},
	}
}
