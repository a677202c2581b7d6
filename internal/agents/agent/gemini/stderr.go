package gemini

import (
	"bytes"
	"io"
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// maxLine is how many bytes of a line are examined.
const maxLine = 4 << 10

var (
	retryPattern     = lazyregexp.New(`^Attempt \d+ failed.*[Rr]etrying`)
	errorNamePattern = lazyregexp.New(`^Error when talking to Gemini API Full report available at: \S+ _?(\w+): `)
)

// stderrReader passes on what the program prints in addition to its events,
// reports calls that it retries, and keeps the name of the last error. Both of
// the program's outputs may write to it at once.
type stderrReader struct {
	to io.Writer
	on func(agent.Event)

	mu   sync.Mutex
	line []byte
	name string
}

// Write implements io.Writer.
func (w *stderrReader) Write(p []byte) (int, error) {
	w.readLines(p)
	return w.to.Write(p)
}

func (w *stderrReader) readLines(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, part[:min(len(part), maxLine-len(w.line))]...)
		if rest = after; !whole {
			break
		}
		w.readLine()
		w.line = w.line[:0]
	}
}

// readLine examines a complete line.
func (w *stderrReader) readLine() {
	if retryPattern.Match(w.line) {
		w.on(agent.Event{Kind: agent.EventRetry, Text: string(w.line)})
	}
	if m := errorNamePattern.FindSubmatch(w.line); m != nil {
		w.name = string(m[1])
	}
}
