package fakemodel

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type object = map[string]any

// request is what all shapes have in common.
type request struct {
	model    string
	stream   bool
	tools    []tool
	results  int    // of tools
	result   string // the last of them
	messages int
	dir      string // that the client says it works in
	searches int    // that the vendor itself makes: one where it may
	usage    bool   // a stream tells its usage; true for all but chat
}

// tool is one that the client offers.
type tool struct {
	name, space string
	kind        string // type; empty: the shape's usual one
	custom      bool   // it takes text
	fields      object
}

// full is the tool's name with the one of what it belongs to.
func (t tool) full() string {
	if t.space == "" {
		return t.name
	}
	return t.space + "." + t.name
}

func (q *request) returned(text string) {
	q.results++
	q.result = clip(text)
}

// choose is the turn of a script that a request asks for, with its index, and
// whether it is a side call.
func (s *Server) choose(name string, q request) (t Turn, side bool, step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	script, ok := s.named[name]
	if name == "" {
		script = s.script
	} else if !ok {
		return Turn{Fault: &Fault{Status: 404, Text: "fakemodel: there is no script " + name}}, true, 0
	}
	if script.Model != "" && q.model != script.Model || len(q.tools) == 0 && !script.Bare {
		return Turn{Say: "A side call", Usage: &Usage{Input: 120, Output: 4}}, true, 0
	}
	step = max(0, q.results-script.Skip)
	t = script.at(step)
	if t.Usage == nil {
		t.Usage = &Usage{Input: 1000 + 100*int64(step), Output: 50 + int64(step)}
	}
	return t, false, step
}

// at is the turn of an index.
func (s Script) at(step int) Turn {
	if len(s.Turns) == 0 {
		return Say("OK")
	}
	last := s.Turns[len(s.Turns)-1]
	if i := slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Repeat }); i >= 0 && step > i {
		return s.Turns[i]
	}
	switch {
	case step < len(s.Turns):
		return s.Turns[step]
	case last.Use == nil:
		return last
	}
	return Say("fakemodel: the script is over")
}

var dirs = regexp.MustCompile(`(?i)(?:working directory(?: is)?|<cwd>|workspace director(?:y|ies):|[^p] directory:)(?:[:\s*-]|\\n)*(/[A-Za-z0-9_./-]+)`)

// workingDir is the folder that a client tells its model about.
func workingDir(body []byte) string {
	if m := dirs.FindSubmatch(body); m != nil {
		return strings.TrimRight(string(m[1]), "./")
	}
	return ""
}

func text(v any) string { s, _ := v.(string); return s }

func list(v any) []any { a, _ := v.([]any); return a }

func fields(v any) object { m, _ := v.(object); return m }

// words is the text of a message: a string, or blocks of which some have text.
func words(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	for _, block := range list(v) {
		o := fields(block)
		if s := text(o["text"]); s != "" {
			fmt.Fprintln(&b, s)
		} else if c, ok := o["content"]; ok {
			b.WriteString(words(c))
		}
	}
	return b.String()
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakemodel: encode %T: %v", v, err)) // All that is encoded was made here.
	}
	return string(b)
}
