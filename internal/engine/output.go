package engine

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/loop"
)

// eventText is the longest text of one output event.
const eventText = 8 << 10

// outputEvents turns what a program prints into events of whole lines. Past
// its cap it only counts. Standard output and standard error write at the same
// time.
type outputEvents struct {
	c    *cycle
	left int

	mu      sync.Mutex
	line    []byte
	dropped int64
}

func (o *outputEvents) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
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

// end emits the last line and says how much was left out.
func (o *outputEvents) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.c.emit(loop.EventOutput, string(o.line))
		o.line = nil
	}
	if o.dropped > 0 {
		o.c.emit(loop.EventNote, fmt.Sprintf("%d bytes of output were left out", o.dropped))
	}
}
