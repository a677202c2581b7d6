// Package waiting lets a command say what it waits for, once it has waited longer
// than people expect. Whoever may wait says so with For; where a line is printed
// is decided by whoever made the context, with With.
//
// It never ends a wait, makes none longer, and says nothing where nobody listens.
package waiting

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Patience is how long a wait is left unsaid.
const Patience = 2 * time.Second

// young is the age up to which a wait that began within another one does not
// keep that one from being told: it may be one of many short ones.
const young = time.Second

type key struct{}

// teller knows the waits of one command that have not ended.
type teller struct {
	tell func(line string)

	mu   sync.Mutex
	open []*wait // in the order in which they began
}

type wait struct {
	what   string
	holder func() string
	old    bool // it lasts longer than young
	timers [2]*time.Timer
}

// With returns a context whose waits are told, one line each, by several
// goroutines and never two lines at once.
func With(ctx context.Context, tell func(line string)) context.Context {
	return context.WithValue(ctx, key{}, &teller{tell: tell})
}

// For begins a wait for what, which stands after the words "waiting for", and
// returns the function that ends it. If it lasts longer than Patience, it is told
// once, with what holder says then; nil, or an empty answer: nobody knows. Of
// waits within each other the innermost is told, because it says most.
func For(ctx context.Context, what string, holder func() string) (done func()) {
	t, ok := ctx.Value(key{}).(*teller)
	if !ok {
		return func() {}
	}
	w := &wait{what: what, holder: holder}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = append(t.open, w)
	w.timers[0] = time.AfterFunc(young, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		w.old = true
	})
	w.timers[1] = time.AfterFunc(Patience, func() { t.say(w) })
	return func() { t.end(w) }
}

func (t *teller) end(w *wait) {
	for _, timer := range w.timers {
		timer.Stop()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, o := range t.open {
		if o == w {
			t.open = append(t.open[:i], t.open[i+1:]...)
			return
		}
	}
}

// say tells a wait, unless one that began after it will be told soon, or it has
// ended.
func (t *teller) say(w *wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := -1
	for i, o := range t.open {
		if o == w {
			at = i
		}
	}
	if at < 0 {
		return
	}
	for _, inner := range t.open[at+1:] {
		if inner.old {
			return
		}
	}
	line := fmt.Sprintf("waiting for %s (since %d s", w.what, int(Patience.Seconds()))
	if w.holder != nil {
		if by := w.holder(); by != "" {
			line += "; held by " + by
		}
	}
	t.tell(line + ")")
}
