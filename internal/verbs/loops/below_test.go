package loops_test

import (
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// TestLoopsBelowOneArePausedAndResumedWithIt has a loop of a file, one that its agent has made, and one that
// the agent of that has made.
func TestLoopsBelowOneArePausedAndResumedWithIt(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("top", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "top"})
	top := r.LoopRow(loop.ProtocolSpine, "top")
	idOf := func(name string) string { return catalog.LoopID(top.WorkspaceID, loop.ProtocolSpec, name) }
	for i, name := range []string{"lp_aaaaaaa", "lp_bbbbbbb"} {
		parent := top.ID
		if i == 1 {
			parent = idOf("lp_aaaaaaa")
		}
		l := loop.Loop{ID: idOf(name), WorkspaceID: top.WorkspaceID, Name: name, Protocol: loop.ProtocolSpec, Parent: parent, Depth: i + 1}
		err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
			if err := tx.AddLoop(t.Context(), r.Workspace.Workspace, l); err != nil {
				return err
			}
			if err := tx.AdoptLoop(t.Context(), l); err != nil {
				return err
			}
			_, err := tx.Number(t.Context(), l.WorkspaceID, l.Protocol, l.Name) // As one that has run.
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	agent := loop.Actor{Who: "agent", Role: loop.RoleAgent, From: "mcp"}
	paused := func(name string) bool { return r.LoopRow(loop.ProtocolSpec, name).Paused }

	sw, err := r.Loops.Pause(t.Context(), verbtest.Ann, "top", "a look")
	if err != nil || !slices.Equal(sw.Below, []string{"lp_aaaaaaa", "lp_bbbbbbb"}) || !paused("lp_aaaaaaa") || !paused("lp_bbbbbbb") {
		t.Fatalf("paused with it: %q, %v", sw.Below, err)
	}
	if sw, err = r.Loops.Resume(t.Context(), verbtest.Ann, "top"); err != nil || len(sw.Below) != 2 || paused("lp_aaaaaaa") || paused("lp_bbbbbbb") {
		t.Errorf("resumed with it: %q, %v", sw.Below, err)
	}
	// What was paused by itself stays so, and if a person pauses the loop above, only a person resumes it.
	if _, err := r.Loops.Pause(t.Context(), agent, "lp_bbbbbbb", ""); err != nil {
		t.Fatal(err)
	}
	if sw, err = r.Loops.Pause(t.Context(), verbtest.Ann, "top", ""); err != nil || !slices.Equal(sw.Below, []string{"lp_aaaaaaa"}) {
		t.Errorf("paused with it: %q, %v", sw.Below, err)
	}
	if _, err = r.Loops.Resume(t.Context(), agent, "lp_bbbbbbb"); err == nil {
		t.Error("an agent resumed what a person has paused since")
	}
	if sw, err = r.Loops.Resume(t.Context(), verbtest.Ann, "top"); err != nil || !slices.Equal(sw.Below, []string{"lp_aaaaaaa"}) || !paused("lp_bbbbbbb") {
		t.Errorf("resumed with it: %q, %v; the other one is paused: %t", sw.Below, err, paused("lp_bbbbbbb"))
	}
}
