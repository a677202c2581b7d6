package agent

import (
	"bytes"
	"io"
)

// longestPart is how much of a line waits for its end, in bytes.
const longestPart = 64 << 10

// wholeLines passes on whole lines of a stream, so that another stream that goes
// to the same writer parts none of them: who looks for secrets there would not
// know one in two pieces.
type wholeLines struct {
	to   io.Writer
	part []byte
}

// Write implements io.Writer.
func (w *wholeLines) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	cut := bytes.LastIndexByte(w.part, '\n') + 1
	if len(w.part)-cut > longestPart {
		cut = len(w.part)
	}
	if cut == 0 {
		return len(p), nil
	}
	_, err := w.to.Write(w.part[:cut])
	w.part = append(w.part[:0], w.part[cut:]...)
	return len(p), err
}

// end passes on a line that has no end.
func (w *wholeLines) end() {
	if len(w.part) > 0 {
		_, _ = w.to.Write(w.part) // What an agent prints is shown, and never stops it.
		w.part = nil
	}
}
