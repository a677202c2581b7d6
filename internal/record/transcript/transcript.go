// Package transcript records what happens in one run, as a sequence of events, and
// hides secrets in what programs print.
//
// It never writes to a store: its caller saves the events, which are then dropped.
// It leaves nothing else out, except output beyond a cap, which it counts.
package transcript

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Options configure a transcript. All fields except Live are required.
type Options struct {
	Run     string // ID
	Now     func() time.Time
	Environ []string                // the environment of this process, which contains secrets
	Known   func() *redact.Redactor // for the secrets in Environ; called when there is text to hide
	Live    func(loop.Event)        // called with every event as it happens; may be nil
}

// Transcript records what happens in a run. It is safe for concurrent use.
type Transcript struct {
	Options
	learned learnedSecrets

	mu     sync.Mutex
	phase  loop.Phase
	seq    int64
	events []loop.Event // not yet saved
}

// New returns the transcript of a new run.
func New(o Options) *Transcript { return &Transcript{Options: o} }

// Resume continues the transcript of a run that another process began. The next
// event is in phase and has the number seq+1.
func (t *Transcript) Resume(phase loop.Phase, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase, t.seq = phase, seq
}

// Phase returns the current phase of the run.
func (t *Transcript) Phase() loop.Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase
}

// Enter begins a phase and records that.
func (t *Transcript) Enter(phase loop.Phase) {
	t.mu.Lock()
	t.phase = phase
	t.mu.Unlock()
	t.Emit(loop.EventPhase, string(phase))
}

// Emit records an event. It hides nothing: the caller passes text of programs
// through Hide first.
func (t *Transcript) Emit(kind, text string) {
	t.mu.Lock()
	t.seq++
	ev := loop.Event{RunID: t.Run, Seq: t.seq, At: t.Now(), Phase: t.phase, Kind: kind, Text: text}
	t.events = append(t.events, ev)
	t.mu.Unlock()
	// Live may be slow or block; the lease and the kill switch must not wait for
	// it, so the lock is not held.
	if t.Live != nil {
		t.Live(ev)
	}
}

// Note records a message for people.
func (t *Transcript) Note(format string, args ...any) {
	t.Emit(loop.EventNote, fmt.Sprintf(format, args...))
}

// Save calls save with all unsaved events, which save may change, and drops them
// if it returns no error. Events cannot be recorded meanwhile: save must not emit
// one, or it deadlocks.
func (t *Transcript) Save(save func(phase loop.Phase, events []loop.Event) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := save(t.phase, t.events); err != nil {
		return err
	}
	t.events = nil
	return nil
}

// Forget drops the unsaved events.
func (t *Transcript) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = nil
}

// learnedSecrets are the secrets that became known during a run: those of the login
// that its agent was lent, also as the agent's program renewed them.
type learnedSecrets struct {
	mu   sync.Mutex
	list []redact.Secret
	all  *redact.Redactor // nil if list is empty
}

// Learn adds secrets to hide from now on, and reports whether any of them is new.
func (t *Transcript) Learn(secrets []redact.Secret) bool {
	l := &t.learned
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.list)
	for _, s := range secrets {
		if !slices.ContainsFunc(l.list, func(old redact.Secret) bool { return old.Value == s.Value }) {
			l.list = append(l.list, s)
		}
	}
	if len(l.list) == before {
		return false
	}
	l.all = redact.New(append(redact.FromEnviron(t.Environ), l.list...)...)
	return true
}

// Secrets returns the redactor for all secrets that are known so far.
func (t *Transcript) Secrets() *redact.Redactor {
	t.learned.mu.Lock()
	defer t.learned.mu.Unlock()
	if t.learned.all != nil {
		return t.learned.all
	}
	return t.Known()
}

// Hide removes known secrets, and text that looks like a secret, from a text that
// will be stored or shown.
func (t *Transcript) Hide(text string) string {
	if text == "" {
		return text
	}
	return t.Secrets().String(text)
}

// HideAll returns a copy of list with Hide applied to each text.
func (t *Transcript) HideAll(list []string) []string {
	shown := slices.Clone(list)
	for i, text := range shown {
		shown[i] = t.Hide(text)
	}
	return shown
}
