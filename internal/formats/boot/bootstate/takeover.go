package bootstate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// takeOver brings tasks of another shape into the form of the format, where their meaning is
// plain. It never drops a task: what it does not understand is left as it is, and has
// findings.
type takeOver struct {
	Schemas
	migration
	tree    *jsontree.Value
	origins []string // of each task: its pointer in the text
	ids     map[string]bool
}

// reshape makes an object with a list of tasks of a list alone, and of tasks by their ids.
func (o *takeOver) reshape() {
	if o.tree.Kind == jsontree.List {
		o.note("took the list for the tasks")
		list := o.tree
		o.tree = emptyTodo().tree
		o.tree.Set(fieldTasks, list)
		for i := range list.Items {
			o.origins = append(o.origins, jsontree.Join("", strconv.Itoa(i)))
		}
		return
	}
	tasks := o.tree.Get(fieldTasks)
	known := !slices.ContainsFunc(o.tree.Members, func(m jsontree.Member) bool { return !slices.Contains(todoOrder, m.Name) })
	switch {
	case o.tree.Kind != jsontree.Object:
	case tasks == nil && known, tasks != nil && tasks.Kind == jsontree.Null:
		o.tree.SetInOrder(fieldTasks, jsontree.NewList(), todoOrder)
		o.note("added an empty list of tasks")
	case tasks != nil && tasks.Kind == jsontree.Object:
		o.listByID(tasks)
	}
	for i := len(o.origins); i < len((Todo{o.tree}).items()); i++ {
		o.origins = append(o.origins, fmt.Sprintf("/tasks/%d", i))
	}
}

// listByID makes a list of an object that has tasks by their ids, unless a task says that
// it has another id.
func (o *takeOver) listByID(tasks *jsontree.Value) {
	list := jsontree.NewList()
	var origins []string
	for _, m := range tasks.Members {
		id := m.Value.Get(fieldID)
		switch {
		case m.Value.Kind != jsontree.Object, id != nil && id.Text != m.Name:
			return
		case id == nil:
			m.Value.SetInOrder(fieldID, jsontree.NewText(m.Name), taskOrder)
		}
		list.Items = append(list.Items, m.Value)
		origins = append(origins, jsontree.Join("/tasks", m.Name))
	}
	list.At = tasks.At
	o.tree.Set(fieldTasks, list)
	o.origins = origins
	o.note("made a list of the tasks, which were written by their ids")
}

// mend changes what does not fit the schema and has a plain meaning, and returns what is
// left. The source is that of the tree.
func (o *takeOver) mend(src []byte) []draft07.Finding {
	if len(o.Set.Validate(o.TasksFile, o.tree, nil)) > 0 {
		o.mendPasses()
		tasks := (Todo{o.tree}).items()
		o.ids = map[string]bool{}
		for _, v := range tasks {
			if id := v.Get(fieldID); id != nil {
				o.ids[id.Text] = true
			}
		}
		// Each in a file of its own: a file with many faults is told of some only.
		for i, v := range tasks {
			alone := emptyTodo()
			alone.tree.Get(fieldTasks).Items = []*jsontree.Value{v}
			one := &takeOver{Schemas: o.Schemas, tree: alone.tree, origins: o.origins[i : i+1], ids: o.ids}
			one.mendPasses()
			o.notes = append(o.notes, one.notes...)
		}
	}
	left := o.Set.Validate(o.TasksFile, o.tree, src)
	for i, f := range left {
		if near := o.nearField(f); near != "" {
			left[i].Message += "; did you mean " + near + "?"
		}
		left[i].Pointer = o.origin(f.Pointer)
	}
	return left
}

// mendPasses changes what has a plain meaning. One change may lead to another: a priority
// that is null goes, and then one is missing.
func (o *takeOver) mendPasses() {
	const most = 5
	for range most {
		changed := false
		for _, f := range o.Set.Validate(o.TasksFile, o.tree, nil) {
			changed = o.mendOne(f) || changed
		}
		if !changed {
			return
		}
	}
}

// taskAt returns the task that a pointer leads into, and the path below it.
func (o *takeOver) taskAt(pointer string) (task *jsontree.Value, at string, below []string) {
	steps := strings.Split(pointer, "/")
	if len(steps) < 3 || steps[1] != fieldTasks {
		return nil, "", nil
	}
	at = strings.Join(steps[:3], "/")
	return o.tree.Find(at), at, steps[3:]
}

// origin is a pointer as it is in the text.
func (o *takeOver) origin(pointer string) string {
	_, at, _ := o.taskAt(pointer)
	i, err := strconv.Atoi(strings.TrimPrefix(at, "/tasks/"))
	if err != nil || i >= len(o.origins) {
		return pointer
	}
	return o.origins[i] + strings.TrimPrefix(pointer, at)
}

// mendOne changes what one finding is about. It reports false if the meaning is not plain.
func (o *takeOver) mendOne(f draft07.Finding) bool {
	task, at, below := o.taskAt(f.Pointer)
	switch {
	case f.Keyword == "required" && f.Pointer == "" && f.Name == fieldVersion && !isMisspelt(o.tree, fieldVersion, todoOrder):
		o.version(o.tree, todoOrder)
		return true
	case f.Keyword == "additionalProperties" && f.Name != "" && f.Pointer == jsontree.Join("", f.Name):
		return o.nearField(f) == "" && (o.takeCompleted(f.Name) || o.moveAside(o.tree, "", f.Name, todoOrder))
	case task == nil || task.Kind != jsontree.Object:
		return false
	}
	at = o.origin(at)
	switch {
	case f.Keyword == "required" && len(below) == 0:
		return o.addDefault(task, at, f.Name)
	case f.Keyword == "additionalProperties" && len(below) == 1:
		return o.nearField(f) == "" && o.moveAside(task, at, f.Name, taskOrder)
	case len(below) == 2 && below[0] == fieldDependencies:
		v := task.Find("/" + strings.Join(below, "/"))
		return o.makeText(v, at+"/"+strings.Join(below, "/"))
	case len(below) == 1 && slices.Contains(taskOrder, below[0]):
		return o.mendField(task, at, below[0], f.Keyword)
	}
	return false
}

// addDefault adds a required field that a task does not have.
func (o *takeOver) addDefault(task *jsontree.Value, at, name string) bool {
	var value string
	switch {
	case isMisspelt(task, name, taskOrder):
		return false
	case name == fieldPriority:
		value = string(PriorityMedium)
	case name == fieldStatus && task.Get(fieldCompletedAt) == nil && task.Get(fieldBlocked) == nil:
		value = string(StatusPending)
	default:
		return false
	}
	task.SetInOrder(name, jsontree.NewText(value), taskOrder)
	o.note("set %s/%s to %s", at, name, value)
	return true
}

// mendField changes the value of a field of a task.
func (o *takeOver) mendField(task *jsontree.Value, at, name, keyword string) bool {
	v := task.Get(name)
	if v == nil {
		return false
	}
	if v.Kind == jsontree.Null && name != fieldID && name != fieldTitle {
		task.Remove(name)
		o.note("removed %s/%s, which was null", at, name)
		return true
	}
	had := len(o.notes)
	switch name {
	case fieldID:
		return o.makeText(v, at+"/"+name)
	case fieldStatus:
		word(&o.migration, task, at, name, statuses, otherStatuses)
	case fieldPriority:
		word(&o.migration, task, at, name, priorities, otherPriorities)
	case fieldTitle:
		return keyword == "maxLength" && o.shortenTitle(task, at)
	case fieldDependencies:
		one := v.Clone()
		if v.Kind == jsontree.Number {
			o.makeText(one, at+"/"+name)
		}
		if one.Kind == jsontree.Text && o.ids[one.Text] {
			task.Set(name, jsontree.NewList(one))
			o.note("made a list of %s/%s", at, name)
		}
	case fieldCreatedAt, fieldUpdatedAt, fieldCompletedAt:
		return o.mendTime(task, at, name)
	}
	return len(o.notes) > had
}

// makeText makes a text of a whole number, such as an id.
func (o *takeOver) makeText(v *jsontree.Value, at string) bool {
	if v == nil || v.Kind != jsontree.Number || strings.Trim(v.Text, "0123456789") != "" {
		return false
	}
	v.Kind = jsontree.Text
	o.note("made a text of the number %s", at)
	return true
}

// mostTitle is how many characters a title has at most by the format.
const mostTitle = 200

// shortenTitle shortens a title. All of it is in the description, which an agent reads too.
func (o *takeOver) shortenTitle(task *jsontree.Value, at string) bool {
	title, description := task.GetText(fieldTitle), task.Get(fieldDescription)
	if len([]rune(title)) <= mostTitle || description != nil && description.Kind != jsontree.Text {
		return false
	}
	whole := title
	if description != nil && description.Text != "" {
		whole += "\n\n" + description.Text
	}
	task.Set(fieldTitle, jsontree.NewText(shortened(title, mostTitle)))
	task.SetInOrder(fieldDescription, jsontree.NewText(whole), taskOrder)
	o.note("shortened %s/%s, which is whole in the description", at, fieldTitle)
	return true
}

// mendTime completes a day or a time without its zone, which is taken for UTC.
func (o *takeOver) mendTime(task *jsontree.Value, at, name string) bool {
	text := task.GetText(name)
	if text == "" && task.Get(name).Kind == jsontree.Text {
		task.Remove(name)
		o.note("removed %s/%s, which was empty", at, name)
		return true
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if when, err := time.Parse(layout, text); err == nil {
			task.Set(name, timeText(when))
			o.note("completed %s/%s %s, as UTC", at, name, text)
			return true
		}
	}
	return false
}

// moveAside moves a field that the schema does not know into the metadata.
func (o *takeOver) moveAside(v *jsontree.Value, at, name string, order []string) bool {
	metadata := v.Get(fieldMetadata)
	value := v.Get(name)
	if value == nil || slices.Contains(order, name) || metadata != nil && (metadata.Kind != jsontree.Object || metadata.Get(name) != nil) {
		return false
	}
	if metadata == nil {
		metadata = jsontree.NewObject()
		v.SetInOrder(fieldMetadata, metadata, order)
	}
	metadata.Set(name, value)
	v.Remove(name)
	o.note("moved %s to metadata", jsontree.Join(at, name))
	return true
}

// nearField returns the field that a name of a finding was probably meant to be: one that
// is not there.
func (o *takeOver) nearField(f draft07.Finding) string {
	if f.Keyword != "additionalProperties" {
		return ""
	}
	in, order := o.tree, todoOrder
	if task, _, below := o.taskAt(f.Pointer); task != nil && len(below) == 1 {
		in, order = task, taskOrder
	}
	missing := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return in.Get(name) != nil })
	return readiness.NearestName(f.Name, missing)
}

// isMisspelt reports whether an object has a name that was probably meant to be a field
// which it does not have. Then no default says what was meant.
func isMisspelt(v *jsontree.Value, field string, order []string) bool {
	return slices.ContainsFunc(v.Members, func(m jsontree.Member) bool {
		return !slices.Contains(order, m.Name) && readiness.NearestName(m.Name, []string{field}) != ""
	})
}

// takeCompleted adds the tasks of a second list, called completed or done, which has tasks
// that are done.
func (o *takeOver) takeCompleted(name string) bool {
	list, tasks := o.tree.Get(name), o.tree.Get(fieldTasks)
	if name != "completed" && name != string(StatusDone) || list == nil || list.Kind != jsontree.List || tasks == nil || tasks.Kind != jsontree.List {
		return false
	}
	for _, v := range list.Items {
		status := v.Get(fieldStatus)
		isDone := status == nil || status.Text == string(StatusDone) || otherStatuses[strings.ToLower(status.Text)] == StatusDone
		if v.Kind != jsontree.Object || v.Get(fieldID) == nil || v.Get(fieldTitle) == nil || !isDone {
			return false
		}
	}
	for i, v := range list.Items {
		if v.Get(fieldStatus) == nil {
			v.SetInOrder(fieldStatus, jsontree.NewText(string(StatusDone)), taskOrder)
		}
		tasks.Items = append(tasks.Items, v)
		o.origins = append(o.origins, jsontree.Join(jsontree.Join("", name), strconv.Itoa(i)))
	}
	o.tree.Remove(name)
	o.note("took the %d tasks of /%s for tasks that are done", len(list.Items), name)
	return true
}
