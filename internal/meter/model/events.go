package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// mostEvent bounds one event of a stream. The last of a Responses stream holds
// the whole answer once more.
const mostEvent = 16 << 20

var errHugeEvent = errors.New("an event of the stream is too large")

// events takes a stream of server-sent events apart, without losing a byte.
type events struct {
	in        *bufio.Reader
	raw, data []byte
}

func newEvents(r io.Reader) *events { return &events{in: bufio.NewReaderSize(r, 32<<10)} }

// next returns the bytes of the next event and its data, both until the next
// call. The end of the stream may come with an event, which then may be cut.
func (e *events) next() (raw, data []byte, err error) {
	e.raw, e.data = e.raw[:0], e.data[:0]
	for {
		start := len(e.raw)
		err = e.line()
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
			return e.raw, e.data, errHugeEvent
		}
	}
}

// line appends a line with its end.
func (e *events) line() error {
	for {
		piece, err := e.in.ReadSlice('\n')
		e.raw = append(e.raw, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(e.raw) > mostEvent {
			return nil // An event that is too large, which next finds.
		}
	}
}

// last tells whether the stream holds nothing more that can be read at once.
func (e *events) last() bool { return e.in.Buffered() == 0 }
