package bootstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// otherNames are what other versions and programs call a field, beside other spellings
// of its own name.
var otherNames = map[string]string{
	"phase": fieldPhase, "project": fieldProject, "updatedat": fieldLastUpdated, "lastupdate": fieldLastUpdated,
	"lastcommit": fieldLastCommit, "commitsha": fieldLastCommit, "nextaction": fieldNextIntent, "intent": fieldNextIntent,
}

var otherTodoNames = map[string]string{"todos": fieldTasks, "items": fieldTasks}

var otherTaskNames = map[string]string{
	"name": fieldTitle, "summary": fieldTitle, "state": fieldStatus, "deps": fieldDependencies, "dependson": fieldDependencies,
	"created": fieldCreatedAt, "updated": fieldUpdatedAt, "completed": fieldCompletedAt, "details": fieldDescription,
}

var otherStatuses = map[string]Status{
	"wip": StatusInProgress, "doing": StatusInProgress, "started": StatusInProgress, "active": StatusInProgress,
	"complete": StatusDone, "completed": StatusDone, "finished": StatusDone, "closed": StatusDone,
	"todo": StatusPending, "open": StatusPending, "new": StatusPending, "waiting": StatusBlocked,
}

var otherPriorities = map[string]Priority{
	"urgent": PriorityCritical, "p0": PriorityCritical, "p1": PriorityHigh, "normal": PriorityMedium, "p2": PriorityMedium, "p3": PriorityLow,
}

// fieldOf returns the field that a name means; empty if it means none.
func fieldOf(name string, order []string, others map[string]string) string {
	if slices.Contains(order, name) {
		return name
	}
	return cmp.Or(matchName(name, order), others[lettersOf(name)])
}

// olderState says in what way a state has the form of another version; nil if it has
// not. A name that stands for a field counts only if the field is missing.
func olderState(tree *jsontree.Value) *fault {
	if older := olderVersion(tree, loop.ReasonStateOlder); older != nil {
		return older
	}
	return olderName(tree, loop.ReasonStateOlder, "", stateOrder, otherNames)
}

// migrateFix says in a finding what to do about the form of another version.
const migrateFix = "; run: pawl boot migrate"

func olderVersion(tree *jsontree.Value, reason loop.Reason) *fault {
	version := tree.Get(fieldVersion)
	if version == nil || !strings.HasPrefix(version.Text, "0.") {
		return nil
	}
	return &fault{reason, jsontree.Join("", fieldVersion), "version " + printable(version.Text) + migrateFix, version.At}
}

func olderName(v *jsontree.Value, reason loop.Reason, at string, order []string, others map[string]string) *fault {
	for _, m := range v.Members {
		field := fieldOf(m.Name, order, others)
		if field != "" && field != m.Name && v.Get(field) == nil {
			return &fault{reason, printable(jsontree.Join(at, m.Name)), fmt.Sprintf("%s is called %s now", printable(m.Name), field) + migrateFix, m.At}
		}
	}
	return nil
}

func olderTodo(tree *jsontree.Value) *fault {
	if older := olderVersion(tree, loop.ReasonTodoOlder); older != nil {
		return older
	}
	if older := olderName(tree, loop.ReasonTodoOlder, "", todoOrder, otherTodoNames); older != nil {
		return older
	}
	for i, v := range (Todo{tree}).items() {
		if older := olderName(v, loop.ReasonTodoOlder, fmt.Sprintf("/tasks/%d", i), taskOrder, otherTaskNames); older != nil {
			return older
		}
	}
	return nil
}

// migration renames and moves fields, and says so.
type migration struct{ notes []string }

func (m *migration) note(format string, args ...any) {
	m.notes = append(m.notes, oneLine(fmt.Sprintf(format, args...)))
}

// rename gives the fields of an object their names, moves those that have none into its
// metadata, and removes comments.
func (m *migration) rename(v *jsontree.Value, at string, order []string, others map[string]string) {
	members := v.Members
	v.Members = nil
	var rest []jsontree.Member
	has := func(name string) bool {
		return slices.ContainsFunc(members, func(x jsontree.Member) bool { return x.Name == name })
	}
	for _, x := range members {
		field := fieldOf(x.Name, order, others)
		switch {
		case slices.Contains(order, x.Name):
			v.Set(x.Name, x.Value)
		case strings.HasPrefix(x.Name, "_"):
			m.note("removed %s", jsontree.Join(at, x.Name))
		case field != "" && !has(field) && v.Get(field) == nil:
			m.note("renamed %s to %s", jsontree.Join(at, x.Name), field)
			v.Set(field, x.Value)
		default:
			rest = append(rest, x)
		}
	}
	for _, x := range rest {
		metadata := v.Get(fieldMetadata)
		if metadata == nil {
			metadata = jsontree.NewObject()
			v.Set(fieldMetadata, metadata)
		}
		if metadata.Kind != jsontree.Object || metadata.Get(x.Name) != nil {
			v.Set(x.Name, x.Value) // for a person
			continue
		}
		m.note("moved %s to metadata", jsontree.Join(at, x.Name))
		metadata.Set(x.Name, x.Value)
	}
}

func (m *migration) version(v *jsontree.Value, order []string) {
	if old := v.Get(fieldVersion); old == nil || strings.HasPrefix(old.Text, "0.") {
		v.SetInOrder(fieldVersion, jsontree.NewText(formatVersion), order)
		m.note("set version to %s", formatVersion)
	}
}

// word replaces a value by the one of the format that it means.
func word[T ~string](m *migration, v *jsontree.Value, at, name string, words []T, others map[string]T) {
	old := v.Get(name)
	if old == nil || old.Kind != jsontree.Text || slices.Contains(words, T(old.Text)) {
		return
	}
	if to := cmp.Or(matchName(old.Text, words), others[strings.ToLower(old.Text)]); to != "" {
		m.note("replaced %s %s by %s", jsontree.Join(at, name), old.Text, to)
		v.Set(name, jsontree.NewText(string(to)))
	}
}

// MigrateState returns a STATE.json of another version in the form of this one, what was
// changed, and what is still wrong. Nothing is dropped but comments and what nobody has
// filled in; what has no field is in the metadata. A file that needs no change is
// returned as it is.
func (x Schemas) MigrateState(src []byte, project string, now time.Time) (migrated []byte, notes []string, findings []Finding) {
	if _, wrong := x.ReadState(src); len(wrong) == 0 {
		return src, nil, nil
	}
	tree, problem := parse(src)
	if problem != nil || tree.Kind != jsontree.Object {
		_, wrong := x.ReadState(src)
		return src, nil, wrong
	}
	m := &migration{}
	m.rename(tree, "", stateOrder, otherNames)
	m.version(tree, stateOrder)
	fresh := NewState(project, now).tree
	for _, name := range []string{fieldLastUpdated, fieldProject, fieldPhase, fieldErrors} {
		old := tree.Get(name)
		if old == nil || old.Kind == jsontree.Text && strings.Contains(old.Text, "{{") {
			tree.SetInOrder(name, fresh.Get(name), stateOrder)
			m.note("set %s to its default", name)
		}
	}
	for _, name := range []string{fieldNextIntent, fieldLastCommit} {
		if strings.Contains(tree.GetText(name), "{{") {
			tree.Set(name, fresh.Get(name))
			m.note("set %s to its default", name)
		}
	}
	word(m, tree, "", fieldPhase, phases, nil)
	migrated = jsontree.Encode(tree)
	_, findings = x.ReadState(migrated)
	return migrated, m.notes, findings
}

// MigrateTodo is MigrateState for a TODO.json.
func (x Schemas) MigrateTodo(src []byte, now time.Time) (migrated []byte, notes []string, findings []Finding) {
	if _, wrong := x.ReadTodo(src); len(wrong) == 0 {
		return src, nil, nil
	}
	tree, problem := parse(src)
	if problem != nil || tree.Kind != jsontree.Object {
		_, wrong := x.ReadTodo(src)
		return src, nil, wrong
	}
	m := &migration{}
	m.rename(tree, "", todoOrder, otherTodoNames)
	m.version(tree, todoOrder)
	for i, v := range (Todo{tree}).items() {
		if v.Kind != jsontree.Object {
			continue
		}
		at := fmt.Sprintf("/tasks/%d", i)
		m.rename(v, at, taskOrder, otherTaskNames)
		word(m, v, at, fieldStatus, statuses, otherStatuses)
		word(m, v, at, fieldPriority, priorities, otherPriorities)
		if v.Get(fieldPriority) == nil {
			v.SetInOrder(fieldPriority, jsontree.NewText(string(PriorityMedium)), taskOrder)
			m.note("set %s/priority to %s", at, PriorityMedium)
		}
		for _, name := range []string{fieldCreatedAt, fieldUpdatedAt, fieldCompletedAt} {
			old := v.GetText(name)
			if _, ok := draft07.ParseTime(old); strings.Contains(old, "{{") && !ok {
				v.Set(name, timeText(now))
				m.note("set %s/%s to now", at, name)
			}
		}
	}
	migrated = jsontree.Encode(tree)
	_, findings = x.ReadTodo(migrated)
	return migrated, m.notes, findings
}
