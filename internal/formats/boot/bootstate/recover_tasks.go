package bootstate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func (r *recovery) recoverTasks() {
	file := r.Tasks
	if !file.Exists {
		r.memory.Tasks = NewTodo(r.Now)
		verb := "initialised"
		if hasAny(r.TasksHistory) {
			verb = "recovered"
		}
		r.repaired(loop.ReasonTodoTemplate, file, false, "%s %s from the template: it was missing", verb, file.Path)
		return
	}
	if file.Problem != "" {
		r.haltTasks(file, nil, "it cannot be read: "+file.Problem)
		return
	}
	tree, problem := parse(file.Content)
	switch {
	case problem != nil && isJSON(file.Content):
		r.haltTasks(file, []Finding{syntaxFinding(loop.ReasonStateManual, problem)}, "programs would read it differently")
		return
	case problem != nil:
		r.rebuildTasks(salvageTasks(file.Content))
		return
	}
	if older := olderTodo(tree); older != nil {
		r.halt(loop.ReasonTodoOlder, file, locate([]fault{*older}, file.Content), "it has the form of another version: %s", older.message)
		return
	}
	o := &takeOver{Schemas: r.Schemas, tree: tree.Clone()}
	o.reshape()
	mended := r.mendTasks(Todo{o.tree})
	if wrong := o.mend(file.Content); len(wrong) > 0 {
		r.haltTasks(file, findingsOf(loop.ReasonStateManual, wrong), "it does not fit its schema")
		return
	}
	fixed := Todo{o.tree}
	if len(o.notes) > 0 {
		note := fmt.Sprintf("recovered %s: it was taken over from another shape: %s", file.Path, someOf(o.notes))
		mended = append(mended, Repair{Reason: loop.ReasonTodoStructural, Path: file.Path, Note: oneLine(note), Aside: true})
	}
	fixed.dropCopies(r, file)
	if faults := fixed.referenceFaults(); len(faults) > 0 {
		for i := range faults {
			faults[i].pointer = o.origin(faults[i].pointer)
		}
		r.halt(faults[0].reason, file, locate(faults, file.Content), "tasks and dependencies do not fit together, and have to be mended by a person")
		return
	}
	r.memory.Tasks = fixed
	r.repairs = append(r.repairs, mended...)
}

// haltTasks leaves the tasks to a person: no task leaves the file by itself.
func (r *recovery) haltTasks(file File, findings []Finding, why string) {
	r.halt(loop.ReasonStateManual, file, findings, "%s, and its meaning is not plain; it stays as it is, and has to be mended by a person", why)
}

// isJSON reports whether a text is JSON, also if programs would read it differently. A text
// of 16 bits for each character may be.
func isJSON(src []byte) bool {
	wide := bytes.HasPrefix(src, []byte{0xff, 0xfe}) || bytes.HasPrefix(src, []byte{0xfe, 0xff})
	return wide || json.Valid(bytes.TrimPrefix(src, []byte("\ufeff")))
}

// knownStatuses are what other programs write.
var knownStatuses = map[string]Status{"wip": StatusInProgress, "complete": StatusDone}

// mendTasks adds missing priorities and replaces statuses of other programs.
func (r *recovery) mendTasks(t Todo) []Repair {
	var noPriority, renamed []string
	for i, v := range t.items() {
		if v.Kind != jsontree.Object {
			continue
		}
		name := v.GetText(fieldID)
		if name == "" {
			name = fmt.Sprintf("/tasks/%d", i)
		}
		if v.Get(fieldPriority) == nil && !isMisspelt(v, fieldPriority, taskOrder) {
			v.SetInOrder(fieldPriority, jsontree.NewText(string(PriorityMedium)), taskOrder)
			noPriority = append(noPriority, name)
		}
		if to, known := knownStatuses[v.GetText(fieldStatus)]; known {
			renamed = append(renamed, fmt.Sprintf("%s %s → %s", name, v.GetText(fieldStatus), to))
			v.Set(fieldStatus, jsontree.NewText(string(to)))
		}
	}
	path := r.Tasks.Path
	var mended []Repair
	if len(noPriority) > 0 {
		note := fmt.Sprintf("recovered %s: added the priority %s to %s", path, PriorityMedium, someOf(noPriority))
		mended = append(mended, Repair{Reason: loop.ReasonTodoPriority, Path: path, Note: oneLine(note), Aside: true})
	}
	if len(renamed) > 0 {
		note := fmt.Sprintf("recovered %s: replaced the status of %s", path, someOf(renamed))
		mended = append(mended, Repair{Reason: loop.ReasonTodoStatus, Path: path, Note: oneLine(note), Aside: true})
	}
	return mended
}

// dropCopies drops tasks that are written twice alike.
func (t Todo) dropCopies(r *recovery, file File) {
	list := t.tree.Get(fieldTasks)
	first := map[string]*jsontree.Value{}
	list.Items = slices.DeleteFunc(list.Items, func(v *jsontree.Value) bool {
		id := v.GetText(fieldID)
		before := first[id]
		if before == nil {
			first[id] = v
			return false
		}
		if jsontree.Compare(before, v) != 0 {
			return false
		}
		r.repaired(loop.ReasonTodoDuplicate, file, true, "recovered %s: dropped a copy of the task %s", file.Path, id)
		return true
	})
}

// rebuildTasks makes the smallest valid file of a text that is not JSON. It has every task
// which can still be read: those of the text, and the others of the newest commit that is
// valid. The text itself is kept in git.
func (r *recovery) rebuildTasks(readable []*jsontree.Value) {
	const why = "invalid JSON"
	file := r.Tasks
	rebuilt := emptyTodo()
	from, inCommit := "", ""
	if r.TasksHistory != nil {
		first := true
		for v := range r.TasksHistory {
			if first && v.Content != nil && bytes.Equal(v.Content, file.Content) {
				inCommit = v.Name
			}
			first = false
			if valid, wrong := r.ReadTodo(v.Content); len(wrong) == 0 {
				rebuilt, from = valid, v.Name
				break
			}
		}
	}
	list := rebuilt.tree.Get(fieldTasks)
	committed := map[string]*jsontree.Value{}
	for _, v := range list.Items {
		committed[v.GetText(fieldID)] = v
	}
	var lost []string
	taken := map[string]bool{}
	for _, v := range readable {
		v, fits := r.takeAlone(v)
		id := v.GetText(fieldID)
		fits = fits && !taken[id]
		switch old := committed[id]; {
		case fits && old != nil:
			*old = *v
		case fits:
			list.Items = append(list.Items, v)
		case old == nil:
			lost = append(lost, lostName(v))
		}
		taken[id] = taken[id] || fits
	}
	cut := rebuilt.cutOrphans(r.Now)
	source := "what can be read of it"
	if from != "" {
		source += " and " + from
	}
	note := fmt.Sprintf("recovered %s from %s: %s", file.Path, source, why)
	if len(lost) > 0 {
		note += "; not kept: " + someOf(lost)
	}
	if len(cut) > 0 {
		note += "; blocked, because a dependency is lost: " + someOf(cut)
	}
	repair := Repair{Reason: loop.ReasonTodoMinimal, Path: file.Path, Aside: true}
	if inCommit == "" {
		repair.Keep = keptFile(file, r.Now)
		note += "; the old file is " + repair.Keep.Path
	} else {
		note += "; the old file is in the commit " + inCommit
	}
	if wrong := r.Set.Validate(r.TasksFile, rebuilt.tree, nil); len(wrong) > 0 || len(rebuilt.referenceFaults()) > 0 {
		// Parts of two versions, such as a circle through both.
		r.halt(loop.ReasonTodoMinimal, file, nil, "%s, and what can be read of it does not fit together; mend it, or restore it from a commit", why)
		return
	}
	r.memory.Tasks = rebuilt
	noted := rebuilt.Clone()
	noted.setNote(shortened(printable(note), 1000))
	if repair.Keep != nil {
		noted.tree.Get(fieldMetadata).Set(fieldKept, jsontree.NewText(repair.Keep.Path))
	}
	if len(r.Set.Validate(r.TasksFile, noted.tree, nil)) == 0 {
		r.memory.Tasks = noted
	}
	repair.Note = oneLine(printable(note))
	r.repairs = append(r.repairs, repair)
}

// Kept is a file that has the text of a broken one, which is in no commit.
type Kept struct{ Path, Content string }

// keptMark is what the name of a kept file has after that of the broken one.
const keptMark = ".broken-"

// keptFile is where a broken file is kept: beside it. A text that is not UTF-8, or has a
// NUL, is kept in base64.
func keptFile(file File, now time.Time) *Kept {
	k := Kept{file.Path + keptMark + now.UTC().Format("20060102-150405"), string(file.Content)}
	if !utf8.Valid(file.Content) || bytes.IndexByte(file.Content, 0) >= 0 {
		k.Path += ".base64"
		k.Content = base64.StdEncoding.EncodeToString(file.Content) + "\n"
	}
	return &k
}

// KeptPath returns where the tasks say that a broken file is kept that they were recovered
// from; empty: nowhere. The path is that of the tasks.
func (t Todo) KeptPath(path string) string {
	kept := t.tree.Get(fieldMetadata).GetText(fieldKept)
	if rest, ok := strings.CutPrefix(kept, path+keptMark); !ok || strings.ContainsAny(rest, "/\\") {
		return ""
	}
	return kept
}

func lostName(v *jsontree.Value) string {
	switch {
	case v.GetText(fieldID) != "":
		return printable(shortened(v.GetText(fieldID), 60))
	case v.GetText(fieldTitle) != "":
		return printable(shortened(v.GetText(fieldTitle), 60))
	}
	return "a task without an id"
}

// takeAlone takes a task over in a file of its own, and reports whether it fits then.
func (r *recovery) takeAlone(v *jsontree.Value) (*jsontree.Value, bool) {
	alone := emptyTodo()
	alone.tree.Get(fieldTasks).Items = []*jsontree.Value{v.Clone()}
	o := &takeOver{Schemas: r.Schemas, tree: alone.tree}
	o.reshape()
	r.mendTasks(Todo{o.tree})
	fits := len(o.mend(nil)) == 0
	return (Todo{o.tree}).items()[0], fits
}

// cutOrphans removes dependencies on tasks that are not there. A task that has lost one
// is blocked: it could otherwise be begun too early.
func (t Todo) cutOrphans(now time.Time) (blocked []string) {
	ids := map[string]bool{}
	for _, v := range t.items() {
		ids[v.GetText(fieldID)] = true
	}
	for _, v := range t.items() {
		list := v.Get(fieldDependencies)
		if list == nil {
			continue
		}
		var gone []string
		list.Items = slices.DeleteFunc(list.Items, func(d *jsontree.Value) bool {
			if ids[d.Text] {
				return false
			}
			gone = append(gone, d.Text)
			return true
		})
		if len(gone) > 0 && v.GetText(fieldStatus) != string(StatusDone) {
			setStatus(v, StatusBlocked, "it depends on "+someOf(gone)+", which was lost", now)
			blocked = append(blocked, v.GetText(fieldID))
		}
	}
	return blocked
}

// salvageBytes bounds how much is read to find tasks in a text that is not JSON.
const salvageBytes = 64 << 20

// salvageTasks returns the objects in a text that look like tasks.
func salvageTasks(src []byte) []*jsontree.Value {
	var tasks []*jsontree.Value
	left := salvageBytes
	for i := 0; i < len(src) && left > 0; i++ {
		if src[i] != '{' {
			continue
		}
		end, ok := objectEnd(src[i:min(len(src), i+left)])
		left -= end
		if !ok {
			continue
		}
		v, problem := parse(src[i : i+end])
		if problem != nil || v.Get(fieldID) == nil || v.Get(fieldTitle) == nil {
			continue
		}
		tasks = append(tasks, v)
		i += end - 1
	}
	return tasks
}

// objectEnd returns the length of the object that a text begins with, by its braces,
// and how much was read if it has no end.
func objectEnd(src []byte) (length int, ok bool) {
	depth, inText := 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText && c == '\n': // no text of JSON goes over a line
			return i + 1, false
		case inText:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(src), false
}
