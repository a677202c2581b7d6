package redact

import (
	"fmt"
	"io"
)

// Writer passes a stream on without its secrets. It belongs to one stream and
// one goroutine.
//
// It holds back only text that may be the beginning of a secret: at most the
// longest spelling of the longest value, or Window bytes. A line that ends like
// no secret begins is passed on at once.
type Writer struct {
	to     io.Writer
	scan   scanner
	out    written
	closed bool
	err    error
}

// Writer returns a Writer to w. The caller closes it at the end of the stream,
// or loses what is held back; w stays open.
func (r *Redactor) Writer(w io.Writer) *Writer {
	out := &Writer{to: w}
	out.scan = scanner{r: r, sink: &out.out}
	return out
}

// Write takes the next chunk of the stream; it may be cut anywhere. It counts
// bytes as written that it holds back. After an error of the writer below,
// which every later call returns, nothing more is passed on.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.closed {
		return 0, errClosed
	}
	w.scan.buf = append(w.scan.buf, p...)
	w.scan.scan(false)
	w.scan.forget()
	if err := w.pass(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on what was held back, redacted as far as the stream went. A
// second Close does nothing; a Write after it is an error.
func (w *Writer) Close() error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	w.scan.scan(true)
	w.scan.buf = nil
	return w.pass()
}

var errClosed = fmt.Errorf("write to the redacted stream: %w", io.ErrClosedPipe)

func (w *Writer) pass() error {
	if len(w.out.text) == 0 {
		return nil
	}
	n, err := w.to.Write(w.out.text)
	if err == nil && n < len(w.out.text) {
		err = io.ErrShortWrite
	}
	w.out.text = w.out.text[:0]
	w.err = err
	return err
}

// written collects redacted text.
type written struct{ text []byte }

func (w *written) plain(text []byte) { w.text = append(w.text, text...) }
func (w *written) secret(s span)     { w.text = append(w.text, mark(s.name)...) }
