package bootstate

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// Merge unites the memories of two sessions that began from the same one. The state is
// the one that was updated last, tasks are united by id, each as it was updated last, and
// the changelog has the entries of both. Which memory is given first does not matter.
//
// The result has findings if it is not valid, such as a circle of dependencies that
// neither of the two has; then it must not be used.
func (x Schemas) Merge(a, b Memory) (Memory, []Finding) {
	if comesFirst(b, a) {
		a, b = b, a
	}
	m := Memory{State: a.State.Clone(), Tasks: mergeTodo(a.Tasks, b.Tasks), Changelog: MergeChangelogs(a.Changelog, b.Changelog)}
	_, wrong := x.ReadState(m.State.Encode())
	_, alsoWrong := x.ReadTodo(m.Tasks.Encode())
	return m, append(wrong, alsoWrong...)
}

// MergeFrom is Merge of two memories that are known to begin from base: what only one of
// them has changed is as it is there, whatever the clocks of their machines said.
func (x Schemas) MergeFrom(base, a, b Memory) (Memory, []Finding) {
	if !base.Tasks.IsZero() {
		a.Tasks, b.Tasks = a.Tasks.Clone(), b.Tasks.Clone()
		for _, before := range base.Tasks.items() {
			ours, theirs := a.Tasks.item(before.GetText(fieldID)), b.Tasks.item(before.GetText(fieldID))
			switch {
			case ours == nil || theirs == nil:
			case jsontree.Compare(theirs, before) == 0:
				*theirs = *ours.Clone()
			case jsontree.Compare(ours, before) == 0:
				*ours = *theirs.Clone()
			}
		}
	}
	switch {
	case base.State.IsZero():
	case b.State.EqualButCommit(base.State):
		b.State = a.State
	case a.State.EqualButCommit(base.State):
		a.State = b.State
	}
	return x.Merge(a, b)
}

// comesFirst reports whether a memory wins where two differ. Memories of the same time
// are ordered by their content, so that both sides choose the same.
func comesFirst(a, b Memory) bool {
	if order := a.State.LastUpdated().Compare(b.State.LastUpdated()); order != 0 {
		return order > 0
	}
	for _, texts := range [][2]string{
		{string(a.State.Encode()), string(b.State.Encode())}, {string(a.Tasks.Encode()), string(b.Tasks.Encode())}, {a.Changelog, b.Changelog},
	} {
		if order := strings.Compare(texts[0], texts[1]); order != 0 {
			return order > 0
		}
	}
	return false
}

// mergeTodo returns the first tasks with the newer form of each, and with those that only
// the second one has: each comes after the one that it follows there.
func mergeTodo(first, second Todo) Todo {
	merged := first.Clone()
	list := merged.tree.Get(fieldTasks)
	index := map[string]int{}
	for i, v := range list.Items {
		index[v.GetText(fieldID)] = i
	}
	after, added := -1, map[int][]*jsontree.Value{} // by the index that they follow
	for _, other := range second.items() {
		i, there := index[other.GetText(fieldID)]
		switch {
		case !there:
			added[after] = append(added[after], other.Clone())
			continue
		case isNewer(other, list.Items[i]):
			list.Items[i] = other.Clone()
		}
		after = i
	}
	items := added[-1]
	for i, v := range list.Items {
		items = append(append(items, v), added[i]...)
	}
	list.Items = items
	if theirs := second.tree.Get(fieldMetadata); theirs != nil {
		if merged.tree.Get(fieldMetadata) == nil {
			merged.tree.SetInOrder(fieldMetadata, jsontree.NewObject(), todoOrder)
		}
		ours := merged.tree.Get(fieldMetadata)
		for _, m := range theirs.Members {
			if ours.Get(m.Name) == nil {
				ours.Set(m.Name, m.Value.Clone())
			}
		}
	}
	return merged
}

// isNewer reports whether a task was updated after another form of it. Where the times
// are equal or missing, a task that is further on wins.
func isNewer(a, b *jsontree.Value) bool {
	x, y := readTask(a), readTask(b)
	if order := x.UpdatedAt.Compare(y.UpdatedAt); order != 0 {
		return order > 0
	}
	progress := []Status{StatusPending, StatusInProgress, StatusBlocked, StatusDone}
	if order := slices.Index(progress, x.Status) - slices.Index(progress, y.Status); order != 0 {
		return order > 0
	}
	return jsontree.Compare(a, b) > 0
}
