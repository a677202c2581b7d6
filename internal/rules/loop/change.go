package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// ChangeKind says what a protocol asks the engine to do with its memory.
type ChangeKind string

// Kinds of changes. A protocol never writes itself.
const (
	ChangeEdit   ChangeKind = "edit"   // replace a file's content, three-way against Before
	ChangeAppend ChangeKind = "append" // add one physical line at the end of a file
	ChangeAside  ChangeKind = "aside"  // rename an unreadable file to the name in Content, or to that path from the top if it has a slash
	ChangeStep   ChangeKind = "step"   // create or update a step row

	ChangeDeliver ChangeKind = "deliver" // send a message to another loop, or to a person
	ChangeReceive ChangeKind = "receive" // a message that was delivered is in the memory now

	ChangeRow ChangeKind = "row" // write a row of the protocol's own

	// These are only data so far: the engine does not apply them, and CheckChanges
	// refuses them.
	ChangeCommit ChangeKind = "commit" // commit files of the memory to a branch
	ChangePush   ChangeKind = "push"   // push a branch
)

// Change is one change of a protocol's memory. File changes are rows first and
// files second: a crash between the two is healed from the row.
//
// Fields that its kind does not use are empty.
type Change struct {
	Kind    ChangeKind `json:"kind"`
	Path    string     `json:"path,omitempty"`    // relative to the workspace, slash separated
	Before  string     `json:"before,omitempty"`  // edit: the content that Content was made from, empty if there was no file
	Content string     `json:"content,omitempty"` // edit: new content; append: the line; aside: the new name, or its path
	Merge   string     `json:"merge,omitempty"`   // edit: how it is united with what a person has written meanwhile, by the name that its protocol gives that; empty: line by line
	Step    *Step      `json:"step,omitempty"`

	Row      *Row      `json:"row,omitempty"`
	Delivery *Delivery `json:"delivery,omitempty"`
	Commit   *Commit   `json:"commit,omitempty"`
	Push     *Push     `json:"push,omitempty"`
}

// Row is one row of a protocol's own, which the loops of a workspace share. Set and Key
// name it; Scope, State and Owner are what it is found by.
//
// A change of a run is written only if the stored row has the expected Version, or if the
// run Holds it. One that finds the row changed is not written. If the run was to Hold the
// row before its agent acts, somebody else has it, and the run decides once more; else the
// run goes on. A row that is written has the next version.
type Row struct {
	Set   string `json:"set"`             // rows of one sort, such as tasks
	Key   string `json:"key"`             // unique in its set and workspace
	Scope string `json:"scope,omitempty"` // what it belongs to, such as a board
	State string `json:"state,omitempty"`
	Owner string `json:"owner,omitempty"` // who has it

	Version int64           `json:"version,omitempty"` // expected, or as read; 0: there is no such row
	Body    json.RawMessage `json:"body,omitempty"`    // an object; empty: the row is deleted

	Hold  bool `json:"hold,omitempty"`  // the run holds it from now on, until it has ended, it writes the row without Hold, or a person does
	Holds bool `json:"holds,omitempty"` // the run holds it already: Version does not matter, and the fields of Body are added to those that are stored, of which null removes one

	RunID string    `json:"run_id,omitempty"` // as read: the live run that holds it; empty: none
	Made  time.Time `json:"made,omitzero"`    // as read
	Moved time.Time `json:"moved,omitzero"`   // as read: when it was written last
}

// RowQuery selects rows of a set. Fields that are empty select nothing.
type RowQuery struct {
	Set    string
	Keys   []string // only these
	Scope  string
	States []string // any of them
	Owner  string
	Newest bool // the newest first; else the oldest
	Limit  int  // 0: 1,000
}

// Delivery is a message. Another loop takes it into its memory with its next run; a person
// is told of it by a notice.
type Delivery struct {
	To        string    `json:"to"`               // name of the loop, or of a person
	Person    bool      `json:"person,omitempty"` // To is a person
	Key       string    `json:"key"`              // the same key is delivered to the same recipient once
	From      string    `json:"from,omitempty"`   // name of the loop that sent it
	Kind      string    `json:"kind,omitempty"`
	Topic     string    `json:"topic,omitempty"` // the matter that it is about, to find who knows of it
	Priority  string    `json:"priority,omitempty"`
	Tags      []string  `json:"tags,omitempty"`
	DependsOn string    `json:"depends_on,omitempty"`
	Text      string    `json:"text"`
	Answers   string    `json:"answers,omitempty"`  // key of the message to the sender's side that it answers
	Response  string    `json:"response,omitempty"` // what its recipient answered; empty: nothing yet
	Sent      time.Time `json:"sent,omitzero"`
}

// Urgent is the priority of a message that fires its recipient at once.
const Urgent = "critical"

// Commit puts files of the memory on a branch as one commit.
type Commit struct {
	Branch  string   `json:"branch"`
	Onto    string   `json:"onto"` // commit that Branch must point to
	Paths   []string `json:"paths"`
	Message string   `json:"message"`
}

// Push pushes a branch to a remote, without force.
type Push struct {
	Remote string `json:"remote"`
	Branch string `json:"branch"`
	Commit string `json:"commit"` // that Branch must point to
}

// CheckChanges returns an error for the first change that cannot be applied, because
// its data is incomplete or because the engine does not support its kind. The latter
// is an errors.ErrUnsupported.
func CheckChanges(changes []Change) error {
	for _, ch := range changes {
		var complete, applied bool
		switch ch.Kind {
		case ChangeEdit, ChangeAppend:
			complete, applied = fs.ValidPath(ch.Path), true
		case ChangeAside:
			complete, applied = fs.ValidPath(ch.Path) && fs.ValidPath(ch.Content), true
		case ChangeStep:
			complete, applied = ch.Step != nil && ch.Step.Key != "", true
		case ChangeRow:
			complete, applied = ch.Row != nil && ch.Row.complete(), true
		case ChangeDeliver:
			complete, applied = ch.Delivery != nil && ch.Delivery.To != "" && ch.Delivery.Key != "" && ch.Delivery.Text != "", true
		case ChangeReceive:
			complete, applied = ch.Delivery != nil && ch.Delivery.To != "" && ch.Delivery.Key != "", true
		case ChangeCommit:
			complete = ch.Commit != nil && ch.Commit.Branch != "" && ch.Commit.Onto != "" && ch.Commit.Message != "" && validPaths(ch.Commit.Paths)
		case ChangePush:
			complete = ch.Push != nil && ch.Push.Remote != "" && ch.Push.Branch != "" && ch.Push.Commit != ""
		default:
			return fmt.Errorf("unknown kind of change %q: %w", ch.Kind, errors.ErrUnsupported)
		}
		switch {
		case !complete:
			return fmt.Errorf("invalid change %q: its data is missing or incomplete", ch.Kind)
		case !applied:
			return fmt.Errorf("change %q: this version of pawl cannot apply it: %w", ch.Kind, errors.ErrUnsupported)
		}
	}
	return nil
}

// MergeFields returns an object with the fields of another one, of which null removes one.
func MergeFields(object, added json.RawMessage) (json.RawMessage, error) {
	var all, more map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(object, &all), json.Unmarshal(added, &more)); err != nil {
		return nil, err
	}
	maps.Copy(all, more)
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return json.Marshal(all)
}

// complete reports whether a row can be written.
func (r *Row) complete() bool {
	var object map[string]json.RawMessage
	return r.Set != "" && r.Key != "" && r.Version >= 0 && (len(r.Body) == 0 || json.Unmarshal(r.Body, &object) == nil && object != nil)
}

func validPaths(paths []string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !fs.ValidPath(p) })
}

// PendingChange is a file change that is recorded and perhaps not yet applied.
type PendingChange struct {
	RunID string
	Seq   int
	Change
}

// EffectRequest asks for something that leaves the workspace or moves a
// branch. Key makes it happen once, however often it is asked for.
type EffectRequest struct {
	Kind string            `json:"kind"`
	Key  string            `json:"key"`
	Args map[string]string `json:"args,omitempty"`
}

// ArgAccount is the argument, of any value, of an effect that only writes down how a run
// ended: it happens although a switch is set.
const ArgAccount = "account"

// Effect is the stored row of an effect, written before it is applied and after.
type Effect struct {
	RunID  string            `json:"run_id"`
	Seq    int               `json:"seq"`
	Kind   string            `json:"kind"`
	Key    string            `json:"key"`
	Args   map[string]string `json:"args,omitempty"`
	State  EffectState       `json:"state"`
	Result map[string]string `json:"result,omitempty"`
	Error  string            `json:"error,omitempty"`
}
