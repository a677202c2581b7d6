// Package fakemodel is a scripted model on loopback: it answers in the shapes of
// Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini
// generateContent, streaming or not, does what a Script says turn by turn, and
// knows afterwards exactly what it was asked and what it said was used.
//
// It thinks nothing, checks no key and calls nobody. It keeps no conversations:
// which turn comes next is told by the number of tool results in the request,
// so that many programs can share one Server. It is for tests only.
package fakemodel

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Server is a scripted model. It is an http.Handler, safe for concurrent use. A
// request whose path begins with /s/NAME gets the script of that name, any other
// the one that New was given.
type Server struct {
	mu      sync.Mutex
	script  Script
	named   map[string]Script
	tries   map[attempt]int
	entries []*Entry
}

// attempt is what failed attempts are counted by.
type attempt struct {
	script string
	step   int
}

// New returns a server that plays a script.
func New(s Script) *Server {
	return &Server{script: s, named: map[string]Script{}, tries: map[attempt]int{}}
}

// Set gives the path prefix /s/NAME a script of its own, in place of the one it
// may have.
func (s *Server) Set(name string, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named[name] = script
}

// ServeHTTP answers one request and keeps it for Log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The client is gone.
	}
	name, path := split(r.URL.Path)
	o := &out{w: w, flush: http.NewResponseController(w).Flush, s: s, e: s.record(r, name, body), gone: r.Context().Done()}
	defer o.end()
	shape, known := shapeOf(path)
	switch {
	case !known:
		plain(o, r.Method, path, body)
	case r.Method != http.MethodPost:
		o.json(http.StatusMethodNotAllowed, object{"error": object{"message": "fakemodel: POST it"}})
	default:
		s.answer(r, o, shape, name, path, body)
	}
}

// answer plays one turn of a script in the shape that was asked for.
func (s *Server) answer(r *http.Request, o *out, shape wire, name, path string, body []byte) {
	var m object
	if err := json.Unmarshal(body, &m); err != nil {
		o.json(http.StatusBadRequest, object{"error": object{"message": "fakemodel: read the request: " + err.Error()}})
		return
	}
	q := shape.read(m, path)
	q.dir = workingDir(body)
	asked := hosted(shape, m)
	if slices.ContainsFunc(asked, searching) {
		q.searches = 1
	}
	q.tools = slices.DeleteFunc(q.tools, func(t tool) bool { return slices.Contains(asked, t.kind) })
	t, side, step := s.choose(name, q)
	o.note(func(e *Entry) {
		e.Shape, e.Model, e.Stream, e.Side, e.Step, e.Result = shape.name, q.model, q.stream, side, step, q.result
		e.Hosted = asked
		for _, t := range q.tools {
			e.Tools = append(e.Tools, t.full())
		}
	})
	if t.Fault != nil && !side && t.Fault.Times > 0 && s.tried(name, step) > t.Fault.Times {
		t.Fault = nil
	}
	play(r.Context(), o, shape, q, t)
}

// tried counts one more attempt at a turn.
func (s *Server) tried(name string, step int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := attempt{name, step}
	s.tries[a]++
	return s.tries[a]
}

// split takes the script's name off a path.
func split(path string) (name, rest string) {
	tail, ok := strings.CutPrefix(path, "/s/")
	if !ok {
		return "", path
	}
	name, rest, _ = strings.Cut(tail, "/")
	return name, "/" + rest
}

// wire is a shape of requests and answers.
type wire struct {
	name  string
	read  func(m object, path string) request
	whole func(o *out, q request, a answer)           // in one piece
	sse   func(o *out, q request, a answer)           // event by event
	fail  func(f Fault) (int, http.Header, object)    // as the vendor words it
	early func(o *out, q request, f Fault) (did bool) // an error inside of a stream, nil: never
}

// shapeOf is the shape that a path belongs to.
func shapeOf(path string) (wire, bool) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic, true
	case strings.HasSuffix(path, "/chat/completions"):
		return chat, true
	case strings.HasSuffix(path, "/responses"):
		return responses, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini, true
	}
	return wire{}, false
}

// plain answers what is not a turn: lists of models, counts of tokens, greetings.
func plain(o *out, method, path string, body []byte) {
	count := len(body) / bytesPerToken
	switch {
	case strings.HasSuffix(path, "/messages/count_tokens"):
		o.json(http.StatusOK, object{"input_tokens": count})
	case strings.HasSuffix(path, ":countTokens"):
		o.json(http.StatusOK, object{"totalTokens": count})
	case strings.HasSuffix(path, "/models") && strings.Contains(path, "v1beta"):
		o.json(http.StatusOK, object{"models": []any{object{
			"name": "models/" + Model, "displayName": Model, "inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
			"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		}}})
	case strings.HasSuffix(path, "/models"):
		o.json(http.StatusOK, object{"object": "list", "has_more": false, "data": []any{object{
			"id": Model, "object": "model", "type": "model", "display_name": Model, "created": 1, "created_at": "2026-01-01T00:00:00Z",
			"owned_by": "fakemodel",
		}}})
	case method == http.MethodHead:
		o.status(http.StatusOK)
	default:
		o.json(http.StatusNotFound, object{"type": "error", "error": object{"type": "not_found_error", "message": "fakemodel: nothing is at " + path}})
	}
}
