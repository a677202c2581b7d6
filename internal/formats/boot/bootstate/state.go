// Package bootstate holds the memory of the boot protocol, STATE.json, TODO.json and
// CHANGELOG.md: how it is read and validated, what is done about a broken file, what is
// worked on next, and how the memories of two sessions become one.
//
// It does no I/O and reads no clock: callers pass the texts, the older versions that git
// has, and the time. It never drops what it cannot read: whatever has no place in a
// repaired file is named in a Repair, and its caller keeps the broken file.
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

// Phase is where the work stands, as people read it in a STATE.json.
type Phase string

// The phases.
const (
	PhaseIdle         Phase = "idle"
	PhasePlanning     Phase = "planning"
	PhaseImplementing Phase = "implementing"
	PhaseTesting      Phase = "testing"
	PhaseReviewing    Phase = "reviewing"
	PhaseBlocked      Phase = "blocked"
	PhaseCompleted    Phase = "completed"
)

var phases = []Phase{PhaseIdle, PhasePlanning, PhaseImplementing, PhaseTesting, PhaseReviewing, PhaseBlocked, PhaseCompleted}

// Fields of a STATE.json, in their order.
const (
	fieldVersion     = "version"
	fieldLastUpdated = "lastUpdated"
	fieldProject     = "activeProject"
	fieldPhase       = "currentPhase"
	fieldLastCommit  = "lastCommitSha"
	fieldNextIntent  = "nextIntent"
	fieldErrors      = "errors"
	fieldMetadata    = "metadata"
)

var stateOrder = []string{
	fieldVersion, fieldLastUpdated, fieldProject, fieldPhase, fieldLastCommit, fieldNextIntent, fieldErrors, fieldMetadata,
}

// formatVersion is the version that new files have.
const formatVersion = "1.0.0"

// State is a STATE.json that is valid. It is a reference: Clone makes another one. What
// a reader does not know is kept as it is.
type State struct{ tree *jsontree.Value }

// NewState returns the state that a first run begins with.
func NewState(project string, now time.Time) State {
	s := State{jsontree.NewObject()}
	s.set(fieldVersion, jsontree.NewText(formatVersion))
	s.SetLastUpdated(now)
	s.set(fieldProject, jsontree.NewText(project))
	s.SetPhase(PhaseIdle)
	s.set(fieldLastCommit, jsontree.NewNull())
	s.SetNextIntent("")
	s.set(fieldErrors, jsontree.NewList())
	s.set(fieldMetadata, jsontree.NewObject())
	return s
}

// IsZero reports whether there is no state.
func (s State) IsZero() bool { return s.tree == nil }

// Clone returns a state that shares nothing with s.
func (s State) Clone() State { return State{s.tree.Clone()} }

// Encode writes the state in its one form.
func (s State) Encode() []byte { return jsontree.Encode(s.tree) }

func (s State) set(name string, to *jsontree.Value) { s.tree.SetInOrder(name, to, stateOrder) }

// Project is what is worked on.
func (s State) Project() string { return s.tree.GetText(fieldProject) }

// Phase is where the work stands.
func (s State) Phase() Phase { return Phase(s.tree.GetText(fieldPhase)) }

// SetPhase sets where the work stands.
func (s State) SetPhase(p Phase) { s.set(fieldPhase, jsontree.NewText(string(p))) }

// NextIntent is what the last session left as the next thing to do; often empty.
func (s State) NextIntent() string { return s.tree.GetText(fieldNextIntent) }

// SetNextIntent sets what the next session does.
func (s State) SetNextIntent(text string) { s.set(fieldNextIntent, jsontree.NewText(text)) }

// LastUpdated is when the state was written.
func (s State) LastUpdated() time.Time {
	t, _ := draft07.ParseTime(s.tree.GetText(fieldLastUpdated))
	return t
}

// SetLastUpdated sets when the state was written.
func (s State) SetLastUpdated(now time.Time) { s.set(fieldLastUpdated, timeText(now)) }

// LastCommit is the commit of the last session, and empty if there was none.
func (s State) LastCommit() string { return s.tree.GetText(fieldLastCommit) }

// SetLastCommit sets the commit of the last session.
func (s State) SetLastCommit(id string) { s.set(fieldLastCommit, jsontree.NewText(id)) }

// EqualButCommit reports whether two states differ by LastCommit at most: such a
// difference is not a change of people's.
func (s State) EqualButCommit(other State) bool {
	a, b := s.Clone(), other.Clone()
	a.tree.Remove(fieldLastCommit)
	b.tree.Remove(fieldLastCommit)
	return jsontree.Compare(a.tree, b.tree) == 0
}

// LastError returns the code and the message of the error that was recorded last; both are
// empty if none is.
func (s State) LastError() (code, message string) {
	list := s.tree.Get(fieldErrors)
	if list == nil || len(list.Items) == 0 {
		return "", ""
	}
	last := list.Items[len(list.Items)-1]
	return last.GetText("code"), last.GetText("message")
}

// AddError records what went wrong. The code may be empty.
func (s State) AddError(now time.Time, message, code string, recoverable bool) {
	list := s.tree.Get(fieldErrors)
	if list == nil {
		list = jsontree.NewList()
		s.set(fieldErrors, list)
	}
	entry := jsontree.NewObject(
		jsontree.Member{Name: "timestamp", Value: timeText(now)}, jsontree.Member{Name: "message", Value: jsontree.NewText(message)},
	)
	if code != "" {
		entry.Set("code", jsontree.NewText(code))
	}
	entry.Set("recoverable", &jsontree.Value{Kind: jsontree.Bool, Text: strconv.FormatBool(recoverable)})
	list.Items = append(list.Items, entry)
}

// ErrorCount is how many errors are recorded.
func (s State) ErrorCount() int {
	if list := s.tree.Get(fieldErrors); list != nil {
		return len(list.Items)
	}
	return 0
}

// Metadata returns what is recorded under a name of the metadata; nil if nothing is.
func (s State) Metadata(name string) *jsontree.Value { return s.tree.Get(fieldMetadata).Get(name) }

// SetMetadata records something under a name of the metadata and leaves the others.
func (s State) SetMetadata(name string, to *jsontree.Value) {
	if s.tree.Get(fieldMetadata) == nil {
		s.set(fieldMetadata, jsontree.NewObject())
	}
	s.tree.Get(fieldMetadata).Set(name, to)
}

// timeText writes a time so that an order of texts is one of times.
func timeText(t time.Time) *jsontree.Value {
	return jsontree.NewText(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// oneLine is a text on one line, without what a terminal would act on.
func oneLine(text string) string { return readiness.Printable(strings.Join(strings.Fields(text), " ")) }

// shortened cuts a text to so many characters.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}

// someOf lists names for a message: all, if they are not many.
func someOf(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// matchName returns the name that equals a text apart from case, dashes and underscores, or
// an empty text.
func matchName[T ~string](text string, names []T) T {
	wanted := lettersOf(text)
	if i := slices.IndexFunc(names, func(n T) bool { return lettersOf(string(n)) == wanted }); i >= 0 {
		return names[i]
	}
	return ""
}

var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// lettersOf is a name as it is compared.
func lettersOf(name string) string { return strings.ToLower(separators.Replace(name)) }
