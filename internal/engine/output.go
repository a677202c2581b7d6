package engine

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/redact"
)

// eventText is the longest text of one output event.
const eventText = 8 << 10

// outputEvents turns what a program prints into events of whole lines, with no
// secret in them. Past its cap it only counts. Standard output and standard
// error write at the same time.
type outputEvents struct {
	mu   sync.Mutex
	safe *redact.Writer // before lines
	lines
}

func (c *cycle) output() *outputEvents {
	o := &outputEvents{lines: lines{c: c, left: outputCap}}
	o.safe = c.secrets().Writer(&o.lines)
	return o
}

func (o *outputEvents) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.safe.Write(p)
}

// end emits the last line and says how much was left out.
func (o *outputEvents) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.safe.Close() // Lines never fail.
	o.finish()
}

// lines turns text into events.
type lines struct {
	c       *cycle
	left    int
	line    []byte
	dropped int64
}

func (o *lines) Write(p []byte) (int, error) {
	n := len(p)
	if keep := min(len(p), o.left); keep < len(p) {
		if o.dropped == 0 {
			defer o.c.note("output beyond %d bytes is not kept", outputCap)
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
		o.c.emit(loop.EventOutput, string(o.line[:cut]))
		o.line = o.line[cut:]
	}
}

func (o *lines) finish() {
	if len(o.line) > 0 {
		o.c.emit(loop.EventOutput, string(o.line))
		o.line = nil
	}
	if o.dropped > 0 {
		o.c.emit(loop.EventNote, fmt.Sprintf("%d bytes of output were left out", o.dropped))
	}
}
