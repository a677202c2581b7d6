package loopspec

import (
	"fmt"
	"slices"
	"time"
)

// MaxChildren is how many children a spec may have whose budget does not say how many.
const MaxChildren = 100

// Spawn returns a child of a spec with an id, and the parent with its new child. If it
// may not be spawned, refused says why and both specs are the zero Spec. Others are the
// specs that could be in its way.
func Spawn(parent Spec, id string, c Concurrency, others []Run, now time.Time) (child, changed Spec, refused string) {
	most := parent.Budget.MaxItems
	if most == 0 {
		most = MaxChildren
	}
	switch {
	case !parent.Role.maySpawn():
		return Spec{}, Spec{}, fmt.Sprintf("a %s may not spawn; only a monitor or a coordinator may", parent.Role)
	case int64(len(parent.ChildIDs)) >= most:
		return Spec{}, Spec{}, fmt.Sprintf("%s has %d children, and may have %d: budget.maxItems bounds them", parent.ID, len(parent.ChildIDs), most)
	case c == Parallel:
		for _, o := range others {
			if o.Status == StatusRunning && o.Spec.ID != parent.ID && parent.BoardEntry != "" && o.Spec.BoardEntry == parent.BoardEntry {
				return Spec{}, Spec{}, fmt.Sprintf("%s is running on the board entry %s; spawn it as %s", o.Spec.ID, parent.BoardEntry, Sequential)
			}
		}
	}
	child = parent.clone()
	child.ID, child.ParentID, child.ChildIDs = id, parent.ID, nil
	child.Role, child.Trigger, child.Concurrency = RoleWorker, Trigger{Type: TriggerManual}, c
	child.CreatedAt, child.UpdatedAt = now.UnixMilli(), now.UnixMilli()
	changed = parent.clone()
	changed.ChildIDs = append(changed.ChildIDs, id)
	changed.UpdatedAt = now.UnixMilli()
	return child, changed, ""
}

// clone returns a copy that shares no list with s.
func (s Spec) clone() Spec {
	s.Gates, s.Guardrails, s.ChildIDs = slices.Clone(s.Gates), slices.Clone(s.Guardrails), slices.Clone(s.ChildIDs)
	return s
}

// Discard returns the specs that are left when one is removed with its children and
// theirs, and the ids of those that are gone. Its parent no longer names it.
func Discard(all []Spec, id string) (left []Spec, gone []string) {
	children := map[string][]string{}
	there := map[string]bool{}
	for _, s := range all {
		there[s.ID] = true
		children[s.ParentID] = append(children[s.ParentID], s.ID)
		children[s.ID] = append(children[s.ID], s.ChildIDs...)
	}
	if id == "" || !there[id] {
		return all, nil
	}
	removed := map[string]bool{id: true}
	gone = []string{id}
	for i := 0; i < len(gone); i++ {
		for _, child := range children[gone[i]] {
			if there[child] && !removed[child] {
				removed[child] = true
				gone = append(gone, child)
			}
		}
	}
	for _, s := range all {
		if removed[s.ID] {
			continue
		}
		s = s.clone()
		s.ChildIDs = slices.DeleteFunc(s.ChildIDs, func(child string) bool { return removed[child] })
		left = append(left, s)
	}
	return left, gone
}
