package fakemodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
)

// out is one response on its way.
type out struct {
	w      http.ResponseWriter
	flush  func() error
	s      *Server
	e      *Entry
	gone   <-chan struct{} // closed when the client leaves
	broken bool            // something that belongs to it was not sent
	begun  bool
}

// verbatim is printed as it stands, whether it is JSON or not.
type verbatim string

const mark = "fakemodel-verbatim:"

var marked = regexp.MustCompile(`"` + mark + `((?:[^"\\]|\\.)*)"`)

// MarshalJSON marks the text, for bare to take the marks off.
func (v verbatim) MarshalJSON() ([]byte, error) { return json.Marshal(mark + string(v)) }

// bare is the JSON of v with its verbatim parts as they stand.
func bare(v any) []byte {
	return marked.ReplaceAllFunc([]byte(encode(v)), func(m []byte) []byte {
		s, err := strconv.Unquote(`"` + string(marked.FindSubmatch(m)[1]) + `"`)
		if err != nil {
			return m
		}
		return []byte(s)
	})
}

func (o *out) header(h http.Header) {
	for k, v := range h {
		o.w.Header()[http.CanonicalHeaderKey(k)] = v
	}
}

func (o *out) did(what string) { o.note(func(e *Entry) { e.Did = what }) }

// told notes what has been reported by now, if it was sent.
func (o *out) told(u Usage) {
	if !o.broken {
		o.note(func(e *Entry) { e.Usage = u })
	}
}

func (o *out) status(code int) {
	o.note(func(e *Entry) { e.Status = code })
	o.w.WriteHeader(code)
}

func (o *out) raw(code int, body []byte) {
	if o.w.Header().Get("Content-Type") == "" {
		o.w.Header().Set("Content-Type", "application/json")
	}
	o.status(code)
	_, err := o.w.Write(body)
	o.broken = o.broken || err != nil
}

func (o *out) json(code int, v any) { o.raw(code, append(bare(v), '\n')) }

// body is an answer in one piece, or the half of it.
func (o *out) body(v any, a answer) {
	b := bare(v)
	if a.half == "" {
		o.raw(http.StatusOK, b)
		return
	}
	o.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	o.raw(http.StatusOK, b[:len(b)/2])
	o.snap(a)
}

// event is one of a stream. Nameless events have no name line.
func (o *out) event(name string, v any) { o.line(name, bare(v)) }

func (o *out) line(name string, data []byte) {
	if !o.begun {
		o.begun = true
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.w.Header().Set("Cache-Control", "no-cache")
		o.status(http.StatusOK)
	}
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	_, err := o.w.Write(b.Bytes())
	if err == nil {
		err = o.flush()
	}
	o.broken = o.broken || err != nil
}

// snap ends a response that is sent half: the connection breaks, or nothing
// more comes until the client leaves.
func (o *out) snap(a answer) {
	o.broken = true
	_ = o.flush() // Either the client has the half now, or it is gone.
	if a.half == FaultStall {
		<-o.gone
		return
	}
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close() // It is to be broken, and is.
}
