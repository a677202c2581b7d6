package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// longest is the largest event that is read, in bytes.
const longest = 16 << 20

var errLong = fmt.Errorf("an event of more than %d bytes", longest)

// events reads a stream of server-sent events and hands over the data of each,
// until the stream ends or each has an error. A last event without an empty
// line after it counts.
func events(r io.Reader, each func(data []byte) error) error {
	in := bufio.NewReader(r)
	var data []byte
	flush := func() error {
		if len(data) == 0 {
			return nil
		}
		d := bytes.TrimSpace(data)
		data = nil
		return each(d)
	}
	for {
		text, err := readLine(in)
		if errors.Is(err, errLong) || len(data)+len(text) > longest {
			return errLong
		}
		value, ok := bytes.CutPrefix(text, []byte("data:"))
		switch {
		case ok && len(data) > 0:
			data = append(append(data, '\n'), value...)
		case ok:
			data = append(data, value...)
		case len(text) == 0 || err != nil:
			if e := flush(); e != nil {
				return e
			}
		}
		if err == nil {
			continue
		}
		if e := flush(); e != nil || errors.Is(err, io.EOF) {
			return e
		}
		return err
	}
}

// readLine reads a line without its end. The error is io.EOF after the last one.
func readLine(in *bufio.Reader) ([]byte, error) {
	var all []byte
	for {
		part, err := in.ReadSlice('\n')
		all = append(all, part...)
		if len(all) > longest {
			return nil, errLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(all, "\r\n"), err
	}
}
