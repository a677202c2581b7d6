package bootstate

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/draft07"
	"github.com/pawl-run/pawl/internal/jsontree"
	"github.com/pawl-run/pawl/internal/loop"
)

// File is a file of the memory as it was found.
type File struct {
	Path    string // below the workspace, for messages
	Content []byte
	Exists  bool
	Problem string // why its bytes cannot be read, such as a missing permission; usually empty
}

// Version is what a file held at some time.
type Version struct {
	Name    string // of its commit or its stash, short
	Content []byte // nil: it was removed then
}

// Found is the memory of a workspace as it was found. Only what a broken file needs is
// taken from the sequences; nil is an empty one.
type Found struct {
	State, Tasks, Changelog File

	StateHistory iter.Seq[Version] // of its commits, newest first
	TasksHistory iter.Seq[Version]
	StateStashes iter.Seq[Version]

	Project string // of a state that begins anew
	Now     time.Time
}

// Memory is a memory that is valid.
type Memory struct {
	State     State
	Tasks     Todo
	Changelog string
}

// Repair is one change that was made to a broken or missing file. All repairs are in
// the changelog already.
type Repair struct {
	Reason loop.Reason
	Path   string
	Note   string // its line of the changelog
	Aside  bool   // what was there is not in the new file, and has to be kept
}

// Stop is why a memory cannot be used. A person has to act.
type Stop struct {
	Reason   loop.Reason
	Path     string
	Message  string // what is wrong, and what to do
	Findings []Finding
}

// String is the message with the path.
func (s *Stop) String() string { return s.Path + ": " + s.Message }

// Recover reads a memory and repairs what can be repaired. If it returns a reason to stop,
// the memory must not be used, and nothing may be written.
func (x Schemas) Recover(found Found) (Memory, []Repair, *Stop) {
	r := &recovery{Schemas: x, Found: found}
	r.recoverState()
	if r.stop == nil {
		r.recoverTasks()
	}
	if r.stop != nil {
		return Memory{}, nil, r.stop
	}
	r.recoverChangelog()
	return r.memory, r.repairs, nil
}

// recovery is one memory on its way to a valid one.
type recovery struct {
	Schemas
	Found
	memory  Memory
	repairs []Repair
	stop    *Stop
}

// repaired notes a repair; the note begins with its verb.
func (r *recovery) repaired(reason loop.Reason, file File, aside bool, format string, args ...any) {
	r.repairs = append(r.repairs, Repair{reason, file.Path, oneLine(fmt.Sprintf(format, args...)), aside})
}

func (r *recovery) halt(reason loop.Reason, file File, findings []Finding, format string, args ...any) {
	r.stop = &Stop{reason, file.Path, fmt.Sprintf(format, args...), findings}
}

func (r *recovery) recoverState() {
	file := r.State
	switch {
	case !file.Exists && !hasAny(r.StateHistory):
		r.memory.State = NewState(r.Project, r.Now)
		r.repaired(loop.ReasonStateFirstRun, file, false, "initialised %s from the template: first run", file.Path)
		return
	case !file.Exists:
		r.halt(loop.ReasonStateLost, file, nil, "it is missing, and commits had it; look with git log -- %s, and restore it", file.Path)
		return
	}
	tree, problem := parse(file.Content)
	if problem != nil || file.Problem != "" {
		r.restoreState(file.Problem)
		return
	}
	if older := olderState(tree); older != "" {
		r.halt(loop.ReasonStateOlder, file, nil, "it has the form of another version: %s; run: pawl boot migrate", older)
		return
	}
	wrong := r.Set.Validate(r.StateFile, tree, file.Content)
	fixed := tree.Clone()
	var added []string
	for _, f := range wrong {
		value := r.stateDefault(f)
		if value == nil {
			r.halt(loop.ReasonStateManual, file, findingsOf(loop.ReasonStateManual, wrong), "it does not fit its schema, and has to be mended by a person")
			return
		}
		fixed.Find(f.Pointer).SetInOrder(f.Name, value, slices.Concat(stateOrder, errorOrder))
		added = append(added, jsontree.Join(f.Pointer, f.Name))
	}
	if len(added) > 0 && len(r.Set.Validate(r.StateFile, fixed, nil)) > 0 {
		r.halt(loop.ReasonStateManual, file, findingsOf(loop.ReasonStateManual, wrong), "it does not fit its schema, and defaults do not help")
		return
	}
	r.memory.State = State{fixed}
	if len(added) > 0 {
		r.repaired(loop.ReasonStateDefault, file, true, "recovered %s: added the default of %s", file.Path, someOf(added))
	}
}

func hasAny(versions iter.Seq[Version]) bool {
	if versions != nil {
		for range versions {
			return true
		}
	}
	return false
}

var errorOrder = []string{"timestamp", "message"}

// stateDefault is the default of a field that a finding says is missing; nil if the
// finding says something else or the field has no default.
func (r *recovery) stateDefault(f draft07.Finding) *jsontree.Value {
	if f.Keyword != "required" {
		return nil
	}
	switch inErrors := strings.HasPrefix(f.Pointer, "/errors/"); {
	case inErrors && f.Name == "timestamp":
		return timeText(r.Now)
	case inErrors && f.Name == "message":
		return jsontree.NewText("not recorded")
	case f.Pointer != "":
		return nil
	}
	return NewState(r.Project, r.Now).tree.Get(f.Name)
}

// restoreState replaces a state that is not JSON by the newest one that is valid.
func (r *recovery) restoreState(problem string) {
	file, why := r.State, "invalid JSON"
	if problem != "" {
		why = problem
	}
	sources := []struct {
		reason   loop.Reason
		versions iter.Seq[Version]
	}{{loop.ReasonStateCommit, r.StateHistory}, {loop.ReasonStateStash, r.StateStashes}}
	for _, source := range sources {
		if source.versions == nil {
			continue
		}
		for v := range source.versions {
			state, wrong := r.ReadState(v.Content)
			if len(wrong) > 0 {
				continue
			}
			r.memory.State = state
			r.repaired(source.reason, file, true, "recovered %s from %s: %s", file.Path, v.Name, why)
			return
		}
	}
	r.memory.State = NewState(r.Project, r.Now)
	if day, entries := lastDay(string(r.Changelog.Content)); day != "" {
		list := jsontree.NewList()
		for _, entry := range entries {
			list.Items = append(list.Items, jsontree.NewText(entry))
		}
		r.memory.State.SetMetadata("rebuilt", jsontree.NewObject(
			jsontree.Member{Name: "from", Value: jsontree.NewText(r.Changelog.Path)},
			jsontree.Member{Name: "day", Value: jsontree.NewText(day)}, jsontree.Member{Name: "entries", Value: list},
		))
		r.repaired(loop.ReasonStateChangelog, file, true, "recovered %s from %s: %s", file.Path, r.Changelog.Path, why)
		return
	}
	r.repaired(loop.ReasonStateTemplate, file, true, "recovered %s from the template: %s", file.Path, why)
}

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
	tree, problem := parse(file.Content)
	switch {
	case file.Problem != "":
		r.rebuildTasks(loop.ReasonTodoMinimal, nil, nil, file.Problem)
		return
	case problem != nil:
		r.rebuildTasks(loop.ReasonTodoMinimal, nil, salvageTasks(file.Content), "invalid JSON")
		return
	}
	if older := olderTodo(tree); older != "" {
		r.halt(loop.ReasonTodoOlder, file, nil, "it has the form of another version: %s; run: pawl boot migrate", older)
		return
	}
	fixed := Todo{tree.Clone()}
	mended := r.mendTasks(fixed)
	if wrong := r.Set.Validate(r.TasksFile, fixed.tree, file.Content); len(wrong) > 0 {
		r.rebuildTasks(loop.ReasonTodoStructural, tree.Get(fieldMetadata), fixed.items(), "it does not fit its schema: "+describeFirst(wrong))
		return
	}
	fixed.dropCopies(r, file)
	if faults := fixed.referenceFaults(); len(faults) > 0 {
		r.halt(faults[0].reason, file, locate(faults, file.Content), "tasks and dependencies do not fit together, and have to be mended by a person")
		return
	}
	r.memory.Tasks = fixed
	r.repairs = append(r.repairs, mended...)
}

func describeFirst(wrong []draft07.Finding) string {
	text := printable(wrong[0].String())
	if len(wrong) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(wrong)-1)
	}
	return text
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
		if v.Get(fieldPriority) == nil {
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
		mended = append(mended, Repair{loop.ReasonTodoPriority, path, oneLine(note), true})
	}
	if len(renamed) > 0 {
		note := fmt.Sprintf("recovered %s: replaced the status of %s", path, someOf(renamed))
		mended = append(mended, Repair{loop.ReasonTodoStatus, path, oneLine(note), true})
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

// rebuildTasks makes the smallest valid file that has every task which can still be
// read: those of the broken file, and the others of the newest commit that is valid.
func (r *recovery) rebuildTasks(reason loop.Reason, metadata *jsontree.Value, readable []*jsontree.Value, why string) {
	file := r.Tasks
	rebuilt := emptyTodo()
	from := ""
	if r.TasksHistory != nil {
		for v := range r.TasksHistory {
			if valid, wrong := r.ReadTodo(v.Content); len(wrong) == 0 {
				rebuilt, from = valid, v.Name
				break
			}
		}
	}
	if metadata != nil && metadata.Kind == jsontree.Object {
		rebuilt.tree.Set(fieldMetadata, metadata.Clone())
	}
	list := rebuilt.tree.Get(fieldTasks)
	committed := map[string]*jsontree.Value{}
	for _, v := range list.Items {
		committed[v.GetText(fieldID)] = v
	}
	var lost []string
	taken := map[string]bool{}
	for _, v := range readable {
		id := v.GetText(fieldID)
		fits := r.fitsAlone(v) && !taken[id]
		switch old := committed[id]; {
		case fits && old != nil:
			*old = *v.Clone()
		case fits:
			list.Items = append(list.Items, v.Clone())
		case old == nil || v.Kind != jsontree.Object:
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
	if wrong := r.Set.Validate(r.TasksFile, rebuilt.tree, nil); len(wrong) > 0 || len(rebuilt.referenceFaults()) > 0 {
		// Parts of two versions, such as a circle through both.
		r.halt(reason, file, nil, "%s, and what can be read of it does not fit together; mend it, or restore it from a commit", why)
		return
	}
	r.memory.Tasks = rebuilt
	noted := rebuilt.Clone()
	noted.setNote(shortened(printable(note), 1000))
	if len(r.Set.Validate(r.TasksFile, noted.tree, nil)) == 0 {
		r.memory.Tasks = noted
	}
	r.repaired(reason, file, true, "%s", printable(note))
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

// fitsAlone reports whether a task fits the schema in a file of its own.
func (r *recovery) fitsAlone(v *jsontree.Value) bool {
	alone := emptyTodo()
	alone.tree.Get(fieldTasks).Items = []*jsontree.Value{v}
	return len(r.Set.Validate(r.TasksFile, alone.tree, nil)) == 0
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
		if problem != nil || v.GetText(fieldID) == "" || v.Get(fieldTitle) == nil || v.Get(fieldStatus) == nil {
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

func (r *recovery) recoverChangelog() {
	file := r.Changelog
	text := string(file.Content)
	switch problem := changelogProblem(file); {
	case !file.Exists:
		text = newChangelog
		r.repaired(loop.ReasonChangelogNew, file, false, "recovered %s: it was missing", file.Path)
	case problem != "":
		text = newChangelog
		r.repaired(loop.ReasonChangelogUnread, file, true, "recovered %s: %s", file.Path, problem)
	}
	var notes []string
	for _, repair := range r.repairs {
		notes = append(notes, repair.Note)
	}
	r.memory.Changelog = AddToChangelog(text, r.Now, notes)
}
