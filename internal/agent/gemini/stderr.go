package gemini

import (
	"bytes"
	"io"
	"sync"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/lazyregexp"
)

// longest is how much of a line is looked at.
const longest = 4 << 10

var (
	again = lazyregexp.New(`^Attempt \d+ failed.*[Rr]etrying`)
	named = lazyregexp.New(`^Error when talking to Gemini API Full report available at: \S+ _?(\w+): `)
)

// words passes on what the program prints beside its events, tells of calls that
// it tries again, and keeps the name of the last error. Both of the program's
// outputs may write to it at once.
type words struct {
	to io.Writer
	on func(agent.Event)

	mu   sync.Mutex
	line []byte
	name string
}

// Write passes on.
func (w *words) Write(p []byte) (int, error) {
	w.look(p)
	return w.to.Write(p)
}

func (w *words) look(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, part[:min(len(part), longest-len(w.line))]...)
		if rest = after; !whole {
			break
		}
		w.read()
		w.line = w.line[:0]
	}
}

// read looks at a whole line.
func (w *words) read() {
	if again.Match(w.line) {
		w.on(agent.Event{Kind: agent.EventRetry, Text: string(w.line)})
	}
	if m := named.FindSubmatch(w.line); m != nil {
		w.name = string(m[1])
	}
}
