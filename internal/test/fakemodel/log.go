package fakemodel

import (
	"net/http"
	"slices"
	"strings"
)

// Entry is one request, and what came of it.
type Entry struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with the query
	Script string            `json:"script,omitempty"`
	Shape  string            `json:"shape,omitempty"` // anthropic chat responses gemini; empty: no turn was asked for
	Model  string            `json:"model,omitempty"`
	Auth   map[string]string `json:"auth,omitempty"` // headers, in small letters, that carry a key
	Agent  string            `json:"agent,omitempty"`
	Stream bool              `json:"stream,omitempty"`
	Tools  []string          `json:"tools,omitempty"`
	Hosted []string          `json:"hosted,omitempty"` // what the vendor itself is asked to do: types of its tools, fields that stand for some
	Side   bool              `json:"side,omitempty"`   // it did not take part in the script
	Step   int               `json:"step"`             // of the script, from 0
	Did    string            `json:"did,omitempty"`    // what was said or used, or the fault
	Result string            `json:"result,omitempty"`
	Status int               `json:"status"`
	Usage  Usage             `json:"usage"` // as it was reported, the part that was sent; a lie counts nothing
	Whole  bool              `json:"whole"` // everything was sent that belongs to the answer
	Body   []byte            `json:"-"`     // of the request
}

// keys are the headers that are kept.
var keys = []string{"authorization", "x-api-key", "x-goog-api-key"}

// Log is every request so far, in order of arrival.
func (s *Server) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Entry, 0, len(s.entries))
	for _, e := range s.entries {
		all = append(all, *e)
	}
	return all
}

// Turns is those requests of the log that took part in a script.
func (s *Server) Turns() []Entry {
	return slices.DeleteFunc(s.Log(), func(e Entry) bool { return e.Side || e.Shape == "" })
}

// Total is the sum of all usages that were reported, of side calls too.
func (s *Server) Total() Usage {
	var sum Usage
	for _, e := range s.Log() {
		sum = sum.Add(e.Usage)
	}
	return sum
}

// Reset forgets the log and the failed attempts.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = nil
	clear(s.tries)
}

func (s *Server) record(r *http.Request, name string, body []byte) *Entry {
	e := &Entry{Method: r.Method, Path: r.URL.RequestURI(), Script: name, Agent: r.UserAgent(), Auth: map[string]string{}, Body: body}
	for _, k := range keys {
		if v := r.Header.Get(k); v != "" {
			e.Auth[k] = v
		}
	}
	if v := r.URL.Query().Get("key"); v != "" {
		e.Auth["key"] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
	return e
}

// note changes the entry of an answer.
func (o *out) note(change func(e *Entry)) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	change(o.e)
}

// end notes whether everything was sent.
func (o *out) end() {
	o.note(func(e *Entry) { e.Whole = !o.broken })
}

// clip keeps a log readable.
func clip(text string) string {
	const most = 400
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
