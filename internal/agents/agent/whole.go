package agent

import (
	"bytes"
	"io"
)

// maxPart is how many bytes of an incomplete line are held back.
const maxPart = 64 << 10

// wholeLines passes on a stream in whole lines, so that another stream to the
// same writer cannot split them: a secret in two pieces would not be found there.
type wholeLines struct {
	to   io.Writer
	part []byte
}

// Write implements io.Writer.
func (w *wholeLines) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	cut := bytes.LastIndexByte(w.part, '\n') + 1
	if len(w.part)-cut > maxPart {
		cut = len(w.part)
	}
	if cut == 0 {
		return len(p), nil
	}
	_, err := w.to.Write(w.part[:cut])
	w.part = append(w.part[:0], w.part[cut:]...)
	return len(p), err
}

// flush passes on an incomplete last line.
func (w *wholeLines) flush() {
	if len(w.part) > 0 {
		_, _ = w.to.Write(w.part) // Errors of the output never stop the agent.
		w.part = nil
	}
}
