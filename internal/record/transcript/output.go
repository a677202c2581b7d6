package transcript

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	eventText = 8 << 10 // the longest text of one output event
	outputCap = 1 << 20 // how much of an output becomes events; the rest is counted
)

// Output turns what a program prints into events of whole lines, without secrets.
// Beyond a cap it only counts bytes. Its methods may be called at the same time,
// since standard output and standard error share one Output.
type Output struct {
	mu    sync.Mutex
	safe  *redact.Writer // writes to lines
	lines lineEvents
}

// Output returns a writer for what one program prints. It does not hide secrets
// that are learned later.
func (t *Transcript) Output() *Output {
	o := &Output{lines: lineEvents{t: t, left: outputCap}}
	o.safe = t.Secrets().Writer(&o.lines)
	return o
}

// Write implements io.Writer. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.safe.Write(p)
}

// End emits the last line, and a note if output was left out.
func (o *Output) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.safe.Close() // Writing to lines never fails.
	o.lines.finish()
}

// lineEvents is a writer that turns text into events.
type lineEvents struct {
	t       *Transcript
	left    int    // bytes until the cap
	line    []byte // not emitted yet
	dropped int64  // bytes beyond the cap
}

func (o *lineEvents) Write(p []byte) (int, error) {
	n := len(p)
	if keep := min(len(p), o.left); keep < len(p) {
		if o.dropped == 0 {
			defer o.t.Note("output beyond %d bytes is not kept", outputCap)
		}
		o.dropped += int64(len(p) - keep)
		p = p[:keep]
	}
	o.left -= len(p)
	o.line = append(o.line, p...)
	for {
		cut := bytes.LastIndexByte(o.line[:min(len(o.line), eventText)], '\n') + 1
		if cut == 0 && len(o.line) >= eventText {
			cut = eventText
		}
		if cut == 0 {
			return n, nil
		}
		o.t.Emit(loop.EventOutput, string(o.line[:cut]))
		o.line = o.line[cut:]
	}
}

func (o *lineEvents) finish() {
	if len(o.line) > 0 {
		o.t.Emit(loop.EventOutput, string(o.line))
		o.line = nil
	}
	if o.dropped > 0 {
		o.t.Emit(loop.EventNote, fmt.Sprintf("%d bytes of output were left out", o.dropped))
	}
}
