// Package transcript is what happens in one run, as events in one order, with no
// secret in what comes from programs.
//
// It writes to no store: whoever saves events takes them from it, and they are
// forgotten once they are saved. What is not secret it never leaves out, but for
// output beyond a cap, and that is counted.
package transcript

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/redact"
)

// Options are what a transcript is made of. All but Live is required.
type Options struct {
	Run     string // id
	Now     func() time.Time
	Environ []string                // of this process, in which secrets are
	Known   func() *redact.Redactor // of Environ; asked when there is something to hide
	Live    func(loop.Event)        // sees every event as it happens; may be nil
}

// Transcript is what happens in a run. It may be used by any number of goroutines.
type Transcript struct {
	Options
	learned learnedSecrets

	mu     sync.Mutex
	phase  loop.Phase
	seq    int64
	events []loop.Event // not yet saved
}

// New makes the transcript of a run that begins.
func New(o Options) *Transcript { return &Transcript{Options: o} }

// Resume goes on with the transcript of a run that another process began: in a
// phase, behind the event with a number.
func (t *Transcript) Resume(phase loop.Phase, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase, t.seq = phase, seq
}

// Phase is where the run stands.
func (t *Transcript) Phase() loop.Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase
}

// Enter begins a phase.
func (t *Transcript) Enter(phase loop.Phase) {
	t.mu.Lock()
	t.phase = phase
	t.mu.Unlock()
	t.Emit(loop.EventPhase, string(phase))
}

// Emit records an event. What a program said is to be hidden first.
func (t *Transcript) Emit(kind, text string) {
	t.mu.Lock()
	t.seq++
	ev := loop.Event{RunID: t.Run, Seq: t.seq, At: t.Now(), Phase: t.phase, Kind: kind, Text: text}
	t.events = append(t.events, ev)
	t.mu.Unlock()
	// Whoever watches may be slow or stuck; the lease and the kill switch must
	// not wait for that.
	if t.Live != nil {
		t.Live(ev)
	}
}

// Note records what a person should know.
func (t *Transcript) Note(format string, args ...any) {
	t.Emit(loop.EventNote, fmt.Sprintf(format, args...))
}

// Save has events saved: all that were not yet, which the function may change.
// They are forgotten if it returns no error. No event happens meanwhile: emitting
// one from within would wait for ever.
func (t *Transcript) Save(save func(phase loop.Phase, events []loop.Event) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := save(t.phase, t.events); err != nil {
		return err
	}
	t.events = nil
	return nil
}

// Forget drops the events that are not saved.
func (t *Transcript) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = nil
}

// learnedSecrets are the secrets that came up in a run: those of the login that its
// agent was lent, and what its program made of it.
type learnedSecrets struct {
	mu   sync.Mutex
	list []redact.Secret
	all  *redact.Redactor // nil: none came up
}

// Learn takes secrets to be hidden from now on, and reports whether any is new.
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

// Secrets finds what must not be written, as far as it is known by now.
func (t *Transcript) Secrets() *redact.Redactor {
	t.learned.mu.Lock()
	defer t.learned.mu.Unlock()
	if t.learned.all != nil {
		return t.learned.all
	}
	return t.Known()
}

// Hide takes known secrets and what is shaped like one out of a text that will
// be stored or shown.
func (t *Transcript) Hide(text string) string {
	if text == "" {
		return text
	}
	return t.Secrets().String(text)
}

// HideAll is Hide for each text of a list.
func (t *Transcript) HideAll(list []string) []string {
	shown := slices.Clone(list)
	for i, text := range shown {
		shown[i] = t.Hide(text)
	}
	return shown
}
