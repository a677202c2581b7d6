package modelapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// mostEvent is the size in bytes of the largest event. The last event of a
// Responses stream repeats the whole answer.
const mostEvent = 16 << 20

// ErrHugeEvent means that an event has more than 16 MiB.
var ErrHugeEvent = errors.New("an event of the stream is too large")

// EventReader splits a stream of server-sent events, without losing a byte.
type EventReader struct {
	in        *bufio.Reader
	raw, data []byte
}

// NewEventReader reads the events of r, with a buffer.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{in: bufio.NewReaderSize(r, 32<<10)}
}

// Next returns the bytes of the next event and its data, both valid until the
// next call. At the end of the stream it returns io.EOF, possibly together with
// an event, which may be incomplete. An event of more than 16 MiB is
// ErrHugeEvent.
func (e *EventReader) Next() (raw, data []byte, err error) {
	e.raw, e.data = e.raw[:0], e.data[:0]
	for {
		start := len(e.raw)
		err = e.readLine()
		text := bytes.TrimRight(e.raw[start:], "\r\n")
		if value, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			if len(e.data) > 0 {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		if err != nil || len(text) == 0 {
			return e.raw, e.data, err
		}
		if len(e.raw) > mostEvent {
			return e.raw, e.data, ErrHugeEvent
		}
	}
}

// readLine appends a line and its line end.
func (e *EventReader) readLine() error {
	for {
		piece, err := e.in.ReadSlice('\n')
		e.raw = append(e.raw, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(e.raw) > mostEvent {
			return nil // Next returns the error.
		}
	}
}

// Drained reports whether nothing more can be read without waiting.
func (e *EventReader) Drained() bool { return e.in.Buffered() == 0 }
