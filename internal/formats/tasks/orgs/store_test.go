package orgs_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/orgtree"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

func TestEachAgentShowsWhatBecameOfItsLastCycle(t *testing.T) {
	r := verbtest.New(t)
	gittest.Write(t, r.Root, orgtree.Files())
	s := orgs.New(r.Workspace)
	for _, id := range []string{"forge", "pixel", "trace"} {
		def := loop.Definition{Name: id, Protocol: loop.ProtocolTasks, Tier: loop.TierReport, Goal: "work"}.WithDefaults()
		target := r.Workspace.Target(def)
		err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
			ctx := t.Context()
			if err := tx.AddLoop(ctx, target.Workspace, target.Loop); err != nil {
				return err
			}
			l, err := tx.Number(ctx, target.Workspace.ID, loop.ProtocolTasks, id)
			if err != nil {
				return err
			}
			if err := tx.SaveDefinition(ctx, l.ID, def); err != nil {
				return err
			}
			_, err = tx.FireClaimed(ctx, loop.Run{ID: "run_" + id, LoopID: l.ID, N: l.LastN, Key: id, Trigger: "manual", Definition: def.Digest()}, r.Self)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.EditStore(
		"UPDATE runs SET state = 'ended', outcome = 'escalated', reason = 'gave_up', holder = '', lease_until_ms = 0 WHERE id = 'run_forge'",
		"UPDATE runs SET state = 'ended', outcome = 'quiet', holder = '', lease_until_ms = 0 WHERE id = 'run_pixel'",
	)
	verbtest.Write(t, r.Root, "agents/pixel/PAUSED", "")
	v, err := s.Show(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range v.Agents {
		type standing struct {
			state   string
			n       int64
			outcome loop.Outcome
			halted  string
		}
		want, ran := map[string]standing{
			"forge": {"idle", 1, loop.OutcomeEscalated, ""}, "pixel": {"halted", 1, loop.OutcomeQuiet, "agents/pixel/PAUSED"}, "trace": {"running", 1, "", ""},
		}[a.ID]
		if !ran {
			want = standing{state: "never_run"}
		}
		if got := (standing{a.State, a.LastN, a.Outcome, a.Halted}); got != want || (a.LastRun != nil) != ran {
			t.Errorf("%s: %+v, %v, want %+v", a.ID, got, a.LastRun, want)
		}
	}
}
