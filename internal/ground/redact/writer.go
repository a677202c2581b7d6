package redact

import (
	"fmt"
	"io"
)

// Writer passes on a stream without its secrets. It is for one stream and must
// not be used concurrently.
//
// It holds back only text that may be the beginning of a secret: at most the
// longest encoding of the longest value, or Window bytes. A line is passed on at
// once unless its end may begin a secret.
type Writer struct {
	to     io.Writer
	scan   scanner
	out    collector
	closed bool
	err    error
}

// Writer returns a Writer to w. The caller must close it at the end of the
// stream, or the text that is held back is lost. Closing it does not close w.
func (r *Redactor) Writer(w io.Writer) *Writer {
	out := &Writer{to: w}
	out.scan = scanner{r: r, sink: &out.out}
	return out
}

// Write takes the next chunk of the stream, which may be cut anywhere. Bytes that
// it holds back count as written. After an error of the underlying writer it
// writes nothing more and every call returns that error.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.closed {
		return 0, errClosed
	}
	w.scan.buf = append(w.scan.buf, p...)
	w.scan.scan(false)
	w.scan.dropDecided()
	if err := w.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on what was held back, redacted. A second Close does nothing; a
// Write after it is an error.
func (w *Writer) Close() error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	w.scan.scan(true)
	w.scan.buf = nil
	return w.flush()
}

var errClosed = fmt.Errorf("write to the redacted stream: %w", io.ErrClosedPipe)

func (w *Writer) flush() error {
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

// collector is a sink that collects redacted text.
type collector struct{ text []byte }

func (w *collector) plain(text []byte) { w.text = append(w.text, text...) }
func (w *collector) secret(s span)     { w.text = append(w.text, redactionMark(s.name)...) }
