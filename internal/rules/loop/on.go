package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// OnKind is what an event is about that fires a loop.
type OnKind string

// The kinds of events that an item of the key on can name.
const (
	OnFile    OnKind = "file"
	OnRef     OnKind = "ref"
	OnWebhook OnKind = "webhook"
	OnLoop    OnKind = "loop"
	OnCommand OnKind = "cmd"
)

// OnForm is one row of the table of what the key on can name.
type OnForm struct {
	Kind  OnKind
	Form  string // as one writes it
	Fires string // when, in words
}

// OnForms is the table of what the key on can name. Nothing else fires a loop by an event.
var OnForms = []OnForm{
	{OnFile, "file:GLOB", "a matching file of the checkout was created, changed or removed"},
	{OnRef, "ref:REF", "the git ref points to another commit (ref:refs/heads/main, ref:refs/tags/*)"},
	{OnWebhook, "webhook:NAME", "a signed delivery for that name arrived"},
	{OnLoop, "loop:NAME=OUTCOME", "a run of that loop ended with that outcome (loop:ci-watch=gave_up)"},
	{OnCommand, "cmd:COMMAND", "the command exits 0, or exits 0 with another output than before"},
}

// The sources of events that no definition names: the rest of a loop has ended, a budget
// that was short has begun a new day or month, and an urgent message was sent to the loop.
const (
	OnRest    = "rest"
	OnBudget  = "budget"
	OnMessage = "message"
)

// EventSource is a parsed item of the key on.
type EventSource struct {
	Kind    OnKind
	What    string  // glob, ref, name or command
	Outcome Outcome // of OnLoop
}

// String writes the source as ParseEventSource reads it.
func (s EventSource) String() string {
	text := string(s.Kind) + ":" + s.What
	if s.Kind == OnLoop {
		text += "=" + string(s.Outcome)
	}
	return text
}

// maxSource is how many bytes an item of the key on may have.
const maxSource = 1 << 10

// ParseEventSource reads an item of the key on. The error says what is wrong with it, and
// lists the forms if it has none of them. It does not judge globs.
func ParseEventSource(text string) (EventSource, error) {
	kind, what, found := strings.Cut(text, ":")
	s := EventSource{Kind: OnKind(kind), What: strings.TrimSpace(what)}
	switch {
	case !found || !slices.ContainsFunc(OnForms, func(f OnForm) bool { return f.Kind == s.Kind }):
		return EventSource{}, fmt.Errorf("not an event; write one of %s", onFormsText())
	case len(text) > maxSource:
		return EventSource{}, fmt.Errorf("longer than %d bytes", maxSource)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return EventSource{}, fmt.Errorf("contains a control character")
	case s.What == "":
		return EventSource{}, fmt.Errorf("nothing follows the colon; write %s", formOf(s.Kind))
	}
	switch s.Kind {
	case OnRef:
		return s, checkEventRef(s.What)
	case OnWebhook:
		return s, checkEventName(s.What, "the name of a webhook")
	case OnLoop:
		name, outcome, _ := strings.Cut(s.What, "=")
		s.What, s.Outcome = strings.TrimSpace(name), Outcome(strings.TrimSpace(outcome))
		if !slices.ContainsFunc(Meanings, func(m Meaning) bool { return m.Outcome == s.Outcome }) {
			return s, fmt.Errorf("%q is not an outcome; write %s with one of %s", s.Outcome, formOf(s.Kind), outcomesText())
		}
		return s, checkEventName(s.What, "the name of a loop")
	case OnFile, OnCommand:
	}
	return s, nil
}

func onFormsText() string {
	var forms []string
	for _, f := range OnForms {
		forms = append(forms, f.Form)
	}
	return strings.Join(forms, ", ")
}

func formOf(kind OnKind) string {
	return OnForms[slices.IndexFunc(OnForms, func(f OnForm) bool { return f.Kind == kind })].Form
}

func outcomesText() string {
	var all []string
	for _, m := range Meanings {
		all = append(all, string(m.Outcome))
	}
	return strings.Join(all, ", ")
}

// checkEventName refuses what is not lower-case words and digits joined by hyphens.
func checkEventName(name, what string) error {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return fmt.Errorf("%q is not %s: lower-case words and digits, joined by single hyphens", name, what)
		}
	}
	return nil
}

// checkEventRef refuses what is not the full name of a ref, which may end with /*.
func checkEventRef(ref string) error {
	name := strings.TrimSuffix(ref, "/*")
	if !strings.HasPrefix(name, "refs/") || len(strings.Split(name, "/")) < 2 || name == "refs/" {
		return fmt.Errorf("%q is not a full name; write it like refs/heads/main, refs/remotes/origin/main or refs/tags/*", ref)
	}
	if name == "refs/pawl" || strings.HasPrefix(name, "refs/pawl/") {
		return fmt.Errorf("%q is one of pawl's own refs, which move with each run", ref)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") || strings.Contains(part, "..") || strings.ContainsAny(part, " ~^:?*[\\") {
			return fmt.Errorf("%q cannot be the name of a ref", ref)
		}
	}
	return nil
}

// FiringVerdict is what became of an event.
type FiringVerdict string

// What can become of one. An event that waits becomes one that ran or coalesced.
const (
	FiringWaits     FiringVerdict = "waits"     // it fires as soon as nothing is in the way, which Reason says
	FiringRan       FiringVerdict = "ran"       // a run was fired for it
	FiringCoalesced FiringVerdict = "coalesced" // a run that another event fired has it too
)

// Why an event waits.
const (
	WaitsPaused  = "paused"  // a kill switch is set
	WaitsRunning = "running" // a run of the loop is live
	WaitsRest    = "rest"    // its time has not come
	WaitsAnswer  = "answer"  // a person has not answered what the loop asked
)

// FiringEvent is something that happened outside of a loop and fires it: once, or several
// times in a row before a run could begin.
type FiringEvent struct {
	LoopID    string        `json:"loop_id"`
	ID        string        `json:"id"` // unique in the loop: an event that is reported twice is one
	Source    string        `json:"source"`
	Payload   string        `json:"payload,omitempty"` // what is known of it
	Times     int           `json:"times"`             // how often it happened
	First     time.Time     `json:"first"`
	Last      time.Time     `json:"last"`
	NotBefore time.Time     `json:"not_before,omitzero"`
	Verdict   FiringVerdict `json:"verdict"`
	Reason    string        `json:"reason,omitempty"` // why it waits
	RunID     string        `json:"run,omitempty"`
	Returned  int           `json:"returned,omitempty"` // runs that had it and could not act on it
}

// MaxStopped is how often an event fires again after its run was stopped.
const MaxStopped = 3

// FiringKey is the key of the run that an event fires.
func (e FiringEvent) FiringKey() string {
	key := e.LoopID + "!" + e.ID
	if e.Returned > 0 {
		key += fmt.Sprintf("!%d", e.Returned)
	}
	return key
}
