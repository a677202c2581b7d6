package bootstate

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
	"github.com/pawl-run/pawl/internal/rules/loop"
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
	Keep   *Kept  // a file that has to be committed beside it; nil: none
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
	r.repairs = append(r.repairs, Repair{Reason: reason, Path: file.Path, Note: oneLine(fmt.Sprintf(format, args...)), Aside: aside})
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
	if older := olderState(tree); older != nil {
		r.halt(loop.ReasonStateOlder, file, locate([]fault{*older}, file.Content), "it has the form of another version: %s", older.message)
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
