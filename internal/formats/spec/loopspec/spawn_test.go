package loopspec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func coordinator() Spec {
	s := complete()
	s.ID, s.Role, s.Trigger, s.BoardEntry = "lp_0000001", RoleCoordinator, Trigger{TriggerSchedule, "1h"}, "b7"
	return s
}

func TestAChildInheritsEverythingButWhatMakesItAWorker(t *testing.T) {
	parent := coordinator()
	parent.ChildIDs = []string{"lp_0000009"}
	before := copied(t, parent)
	child, changed, refused := Spawn(parent, "lp_0000002", Parallel, nil, noon)
	if refused != "" {
		t.Fatal(refused)
	}
	want := copied(t, before)
	want.ID, want.ParentID, want.ChildIDs, want.Role = "lp_0000002", "lp_0000001", nil, RoleWorker
	want.Trigger, want.Concurrency = Trigger{Type: TriggerManual}, Parallel
	want.CreatedAt, want.UpdatedAt = noon.UnixMilli(), noon.UnixMilli()
	if diff := cmp.Diff(want, child); diff != "" {
		t.Errorf("the child (-want +got):\n%s", diff)
	}
	want = copied(t, before)
	want.ChildIDs, want.UpdatedAt = []string{"lp_0000009", "lp_0000002"}, noon.UnixMilli()
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("the parent (-want +got):\n%s", diff)
	}
	for _, s := range []Spec{child, changed} {
		if findings := Validate(s, Machine{}); Refused(findings) {
			t.Errorf("%s is refused: %v", s.ID, findings)
		}
	}
	child.Gates[0].Name, child.Guardrails[0], changed.ChildIDs[0] = "other", "other", "other"
	if diff := cmp.Diff(before, parent); diff != "" {
		t.Errorf("the parent itself was changed:\n%s", diff)
	}
}

func TestOnlyAMonitorOrACoordinatorMaySpawn(t *testing.T) {
	for role, want := range map[Role]bool{RoleMonitor: true, RoleCoordinator: true, RoleWorker: false, RoleStandalone: false} {
		s := coordinator()
		s.Role = role
		child, changed, refused := Spawn(s, "lp_0000002", Sequential, nil, noon)
		if (refused == "") != want || !want && (!cmp.Equal(child, Spec{}) || !cmp.Equal(changed, Spec{})) {
			t.Errorf("%s: %q, want allowed = %v", role, refused, want)
		}
	}
}

func TestAParallelSpawnIsRefusedBesideARunningSpecOfItsBoardEntry(t *testing.T) {
	for _, c := range []struct {
		board, other string
		status       Status
		how          Concurrency
		want         bool
	}{
		{"b7", "b7", StatusRunning, Parallel, false},
		{"b7", "b7", StatusRunning, Sequential, true},
		{"b7", "b8", StatusRunning, Parallel, true},
		{"b7", "b7", StatusPaused, Parallel, true},
		{"b7", "b7", StatusDraft, Parallel, true},
		{"b7", "b7", StatusWaitingHuman, Parallel, true},
		{"b7", "", StatusRunning, Parallel, true},
		{"", "", StatusRunning, Parallel, true},
	} {
		parent := coordinator()
		parent.BoardEntry = c.board
		others := []Run{{Spec: parent, Status: StatusRunning}, {Spec: Spec{ID: "lp_0000005", BoardEntry: c.other}, Status: c.status}}
		if _, _, refused := Spawn(parent, "lp_0000002", c.how, others, noon); (refused == "") != c.want {
			t.Errorf("%+v: %q", c, refused)
		}
	}
}

func TestMaxItemsBoundsTheChildren(t *testing.T) {
	for most, children := range map[int64]int{1: 1, 3: 3, 0: MaxChildren} {
		parent := coordinator()
		parent.Budget.MaxItems = most
		for i := range children {
			_, changed, refused := Spawn(parent, fmt.Sprintf("lp_%07d", i+10), Sequential, nil, noon)
			if refused != "" {
				t.Fatalf("maxItems %d: child %d is refused: %s", most, i+1, refused)
			}
			parent = changed
		}
		if _, _, refused := Spawn(parent, "lp_0000002", Sequential, nil, noon); refused == "" {
			t.Errorf("maxItems %d: child %d is allowed", most, children+1)
		}
	}
}

func TestDiscardingRemovesChildren(t *testing.T) {
	all := []Spec{
		{ID: "lp_0000001", ChildIDs: []string{"lp_0000002", "lp_0000003"}},
		{ID: "lp_0000002", ParentID: "lp_0000001", ChildIDs: []string{"lp_0000004"}},
		{ID: "lp_0000003", ParentID: "lp_0000001"},
		{ID: "lp_0000004"}, // only its parent knows
		{ID: "lp_0000005", ParentID: "lp_0000004"},
		{ID: "lp_0000006"},
	}
	for id, want := range map[string]struct{ left, gone string }{
		"lp_0000001": {"6", "1 2 3 4 5"}, "lp_0000002": {"1 3 6", "2 4 5"}, "lp_0000003": {"1 2 4 5 6", "3"}, "lp_0000006": {"1 2 3 4 5", "6"},
		"lp_0000009": {"1 2 3 4 5 6", ""}, "": {"1 2 3 4 5 6", ""},
	} {
		left, gone := Discard(all, id)
		var names []string
		for _, s := range left {
			names = append(names, strings.TrimPrefix(s.ID, "lp_000000"))
			for _, child := range s.ChildIDs {
				if slices.Contains(gone, child) {
					t.Errorf("%q: %s still names %s", id, s.ID, child)
				}
			}
		}
		slices.Sort(gone)
		if got := strings.ReplaceAll(strings.Join(gone, " "), "lp_000000", ""); strings.Join(names, " ") != want.left || got != want.gone {
			t.Errorf("%q: %q left and %q gone, want %q and %q", id, names, got, want.left, want.gone)
		}
	}
	if got := all[0].ChildIDs; !slices.Equal(got, []string{"lp_0000002", "lp_0000003"}) {
		t.Errorf("the list itself was changed: %q", got)
	}
}

func TestDiscardEndsWhereSpecsAreTheirOwnAncestors(t *testing.T) {
	all := []Spec{{ID: "lp_0000001", ParentID: "lp_0000002"}, {ID: "lp_0000002", ParentID: "lp_0000001", ChildIDs: []string{"lp_0000002"}}}
	if left, gone := Discard(all, "lp_0000001"); len(left) != 0 || len(gone) != 2 {
		t.Errorf("%v left, %v gone", left, gone)
	}
}
