package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// DocumentSchema is that of a Document.
const DocumentSchema = "pawl.board-export/v1"

// Document is boards with all that belongs to them, as they are handed out and taken over.
type Document struct {
	Schema        string         `json:"schema"`
	Boards        []Board        `json:"boards"`
	Agents        []Agent        `json:"agents"`
	Tasks         []Task         `json:"tasks"`
	Comments      []Comment      `json:"comments"`
	Activity      []Activity     `json:"activity"`
	Subscriptions []Subscription `json:"subscriptions"`
	AgentMessages []Message      `json:"agentMessages"`
	Resources     []Resource     `json:"resources"`
	Errors        []Error        `json:"errors"`
}

// Agent is an agent in a document: what people say of it, and what its heartbeats wrote.
type Agent struct {
	Member
	Mind
}

// Problem is something in a document that cannot be taken over, or that a person should
// know.
type Problem struct {
	Path    string `json:"path"` // such as tasks[3].title
	Message string `json:"message"`
	Note    bool   `json:"note,omitempty"` // the rest of it is taken over
}

// String is the problem with its place.
func (p Problem) String() string { return p.Path + ": " + p.Message }

// Known is what a workspace has already, to which a document may refer.
type Known struct {
	Boards map[string]string // id by id and by slug
	Agents map[string]bool   // by handle
	Tasks  map[string]bool   // by id
}

// reader reads a document.
type reader struct {
	problems []Problem
	boards   map[string]string // id by everything that a document calls a board
	agents   map[string]string // handle by everything that a document calls an agent
	tasks    map[string]string // id by everything that a document calls a task
	unknown  map[string]bool   // fields that were named
}

func (r *reader) report(path, format string, args ...any) {
	r.problems = append(r.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) note(path, format string, args ...any) {
	r.problems = append(r.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), Note: true})
}

// record is one entry of a list, by the names of its fields.
type record map[string]json.RawMessage

// text returns a field that is a string; empty if it is not.
func (r record) text(field string) (s string) {
	_ = json.Unmarshal(r[field], &s) // What is not a string is named when the record is read.
	return s
}

// ReadDocument reads the JSON of a document: its own, or that of other programs with the
// same fields. What it refers to may be called by id, slug or handle, and what has no id
// gets one that is the same each time. The document can be stored if no problem but notes
// was found.
func ReadDocument(text []byte, known Known) (Document, []Problem) {
	r := &reader{boards: map[string]string{}, agents: map[string]string{Human: Human}, tasks: map[string]string{}, unknown: map[string]bool{}}
	maps.Copy(r.boards, known.Boards)
	for handle := range known.Agents {
		r.agents[handle] = handle
	}
	for id := range known.Tasks {
		r.tasks[id] = id
	}
	lists, err := splitDocument(text)
	if err != nil {
		return Document{}, []Problem{{Path: "document", Message: err.Error()}}
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		switch name {
		case "boards", "agents", "tasks", "comments", "activity", "subscriptions", "agentMessages", "resources", "errors", "schema":
		case "notificationQueue":
			r.note(name, "pawl has its own notices; it is left")
		default:
			r.note(name, "it is not a list of boards, and is left")
		}
	}
	d := Document{Schema: DocumentSchema}
	d.Boards = readList(r, lists, "boards", r.fixBoard)
	d.Agents = readAgents(r, lists)
	d.Tasks = readTasks(r, lists)
	d.Comments = readList(r, lists, "comments", r.fixComment)
	d.Activity = readList(r, lists, "activity", r.fixActivity)
	d.Subscriptions = readList(r, lists, "subscriptions", r.fixSubscription)
	d.AgentMessages = readList(r, lists, "agentMessages", r.fixMessage)
	d.Resources = readList(r, lists, "resources", r.fixResource)
	d.Errors = readList(r, lists, "errors", r.fixError)
	return d, r.problems
}

// splitDocument reads the outermost object, and nothing behind it.
func splitDocument(text []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	var lists map[string]json.RawMessage
	if err := dec.Decode(&lists); err != nil {
		if offset := new(json.SyntaxError); errors.As(err, &offset) {
			return nil, fmt.Errorf("byte %d: %w", offset.Offset, err)
		}
		return nil, fmt.Errorf("it is not an object with lists of boards, agents, tasks and so on: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows behind the object")
	}
	return lists, nil
}

// records reads a list, with the names that other programs have for ids and times.
func (r *reader) records(lists map[string]json.RawMessage, name, made string) []record {
	var list []record
	if raw := lists[name]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &list); err != nil {
			r.report(name, "it is not a list of objects: %v", err)
			return nil
		}
	}
	for i, rec := range list {
		if rec == nil {
			list[i] = record{}
			continue
		}
		for from, to := range map[string]string{"_id": "id", "_creationTime": made} {
			if v, there := rec[from]; there {
				if _, has := rec[to]; !has && to != "" {
					rec[to] = v
				}
				delete(rec, from)
			}
		}
	}
	return list
}

// decode reads a record into what it is.
func decode[T any](r *reader, path string, rec record) (v T, ok bool) {
	body, err := json.Marshal(rec)
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			r.report(joinPath(path, wrong.Field), "%s is not what belongs there", wrong.Value)
		} else {
			r.report(path, "%v", err)
		}
		return v, false
	}
	name, _, _ := strings.Cut(path, "[")
	fields := fieldsOf(reflect.TypeFor[T]())
	for _, field := range slices.Sorted(maps.Keys(rec)) {
		at := name + "." + field
		if !fields[field] && !r.unknown[at] && (name != "agents" || field != "id") {
			r.unknown[at] = true
			r.note(path+"."+field, "pawl has no such field; it is left, here and further on")
		}
	}
	return v, true
}

func joinPath(path, field string) string {
	if field == "" {
		return path
	}
	return path + "." + field
}

// fieldsOf are the names of a struct's fields in JSON.
func fieldsOf(t reflect.Type) map[string]bool {
	all := map[string]bool{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(all, fieldsOf(f.Type))
		}
		all[name] = true
	}
	return all
}

// fixed is a value that can say what is wrong with it.
type fixed interface{ Check() []Invalid }

// readList reads a list whose records are made to fit by fix.
func readList[T fixed](r *reader, lists map[string]json.RawMessage, name string, fix func(path string, v *T)) []T {
	made := map[string]string{"agentMessages": "sentAt", "subscriptions": "mentionedAt", "errors": "timestamp"}
	all := []T{}
	for i, rec := range r.records(lists, name, cmp.Or(made[name], "createdAt")) {
		path := fmt.Sprintf("%s[%d]", name, i)
		v, ok := decode[T](r, path, rec)
		if !ok {
			continue
		}
		fix(path, &v)
		r.check(path, v)
		all = append(all, v)
	}
	r.checkUnique(name, all)
	return all
}

func (r *reader) check(path string, v fixed) {
	for _, wrong := range v.Check() {
		r.report(path+"."+wrong.Field, "%s", wrong.Problem)
	}
}

// checkUnique reports ids that two records have.
func (r *reader) checkUnique(name string, all any) {
	seen := map[string]int{}
	list := reflect.ValueOf(all)
	for i := range list.Len() {
		id := list.Index(i).FieldByName("ID").String()
		if first, twice := seen[id]; twice {
			r.report(fmt.Sprintf("%s[%d].id", name, i), "%s[%d] has the id %q, too", name, first, id)
			continue
		}
		seen[id] = i
	}
}

// Sort puts everything into an order that depends on nothing but what it is.
func (d *Document) Sort() {
	byTime := func(a, b Millis, x, y string) int { return cmp.Or(cmp.Compare(a, b), cmp.Compare(x, y)) }
	slices.SortFunc(d.Boards, func(a, b Board) int { return byTime(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	slices.SortFunc(d.Agents, func(a, b Agent) int { return cmp.Compare(a.Handle, b.Handle) })
	slices.SortFunc(d.Tasks, func(a, b Task) int { return byTime(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	slices.SortFunc(d.Comments, func(a, b Comment) int { return byTime(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	slices.SortFunc(d.Activity, func(a, b Activity) int { return byTime(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	slices.SortFunc(d.Subscriptions, func(a, b Subscription) int { return byTime(a.MentionedAt, b.MentionedAt, a.ID, b.ID) })
	slices.SortFunc(d.AgentMessages, func(a, b Message) int { return byTime(a.SentAt, b.SentAt, a.ID, b.ID) })
	slices.SortFunc(d.Resources, func(a, b Resource) int { return byTime(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	slices.SortFunc(d.Errors, func(a, b Error) int { return byTime(a.Timestamp, b.Timestamp, a.ID, b.ID) })
}

// Filled returns the document in which a missing list is an empty one.
func (d Document) Filled() Document {
	d.Boards, d.Agents, d.Tasks = filled(d.Boards), filled(d.Agents), filled(d.Tasks)
	d.Comments, d.Activity, d.Subscriptions = filled(d.Comments), filled(d.Activity), filled(d.Subscriptions)
	d.AgentMessages, d.Resources, d.Errors = filled(d.AgentMessages), filled(d.Resources), filled(d.Errors)
	return d
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Only returns the part of the document that belongs to one board. Its agents work on that
// board alone.
func (d Document) Only(boardID string) (one Document) {
	handles, tasks := map[string]bool{}, map[string]bool{}
	for _, a := range d.Agents {
		handles[a.Handle] = a.On(boardID)
	}
	for _, t := range d.Tasks {
		tasks[t.ID] = t.BoardID == boardID
	}
	for _, a := range d.Agents {
		if !handles[a.Handle] {
			continue
		}
		a.BoardIDs = []string{boardID}
		if a.LeadBoardID != boardID {
			a.LeadBoardID = ""
		}
		if !handles[a.Lead] {
			a.Lead = ""
		}
		if !tasks[a.CurrentTaskID] {
			a.CurrentTaskID = ""
		}
		one.Agents = append(one.Agents, a)
	}
	speaks := func(handle string) bool { return handle == Human || handles[handle] }
	one.Boards = keep(d.Boards, func(b Board) bool { return b.ID == boardID })
	one.Tasks = keep(d.Tasks, func(t Task) bool { return tasks[t.ID] })
	for i, t := range one.Tasks {
		if !handles[t.AssigneeID] {
			one.Tasks[i].AssigneeID = ""
		}
	}
	one.Comments = keep(d.Comments, func(c Comment) bool {
		return tasks[c.TaskID] && (c.AuthorType == ByHuman || handles[c.AuthorID]) && !slices.ContainsFunc(c.Mentions, func(h string) bool { return !handles[h] })
	})
	one.Activity = keep(d.Activity, func(a Activity) bool { return a.BoardID == boardID && (a.ActorType != ByAgent || handles[a.ActorID]) })
	one.Subscriptions = keep(d.Subscriptions, func(s Subscription) bool { return tasks[s.TaskID] && handles[s.AgentID] })
	one.AgentMessages = keep(d.AgentMessages, func(m Message) bool { return tasks[m.TaskID] && speaks(m.FromAgentID) && speaks(m.ToAgentID) })
	one.Resources = keep(d.Resources, func(r Resource) bool { return r.BoardID == boardID })
	one.Errors = keep(d.Errors, func(e Error) bool { return handles[e.AgentID] && (e.TaskID == "" || tasks[e.TaskID]) })
	return one
}

func keep[T any](list []T, fits func(T) bool) (kept []T) {
	for _, v := range list {
		if fits(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
