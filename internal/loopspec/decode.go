package loopspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

// Bounds of a document.
const (
	MaxBytes = 256 << 10
	maxDepth = 16
)

// Document is a spec that was read from JSON, with the place of each field.
type Document struct {
	Spec   Spec
	source []byte
	places map[string]value // by path
}

// Decode reads the JSON of a spec. It reads what it can and returns everything that is
// wrong, in the order of the document; the spec must not be used if there is a finding.
// Whether what is written makes sense is said by Validate.
func Decode(data []byte) (Document, []Finding) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	r := &reader{doc: Document{source: data, places: map[string]value{}}}
	if problem, at := syntaxProblem(data); problem != "" {
		r.report(at, "", "%s", problem)
		return r.doc, r.findings
	}
	p := treeParser{json.NewDecoder(bytes.NewReader(data)), data, r, 0}
	p.UseNumber()
	root := p.parse("")
	if p.depth > maxDepth {
		return r.doc, r.findings
	}
	r.readSpec(root)
	return r.doc, inOrder(r.findings)
}

// reader makes the spec of a tree.
type reader struct {
	doc      Document
	findings []Finding
}

func (r *reader) report(at int, path, format string, args ...any) {
	f := Finding{Path: readiness.Printable(path), Message: messageOf(format, args...)}
	f.Line, f.Column = placeOf(r.doc.source, at)
	r.findings = append(r.findings, f)
}

// field is a field of an object: its name, and what reads its value.
type field struct {
	name string
	read func(v value, path string)
}

func (r *reader) readSpec(root value) {
	s := &r.doc.Spec
	r.readObject(root, "", []field{
		{"id", r.text(&s.ID)},
		{"agentId", r.text(&s.AgentID)},
		{"goal", r.text(&s.Goal)},
		{"loopType", r.text((*string)(&s.LoopType))},
		{"trigger", func(v value, path string) {
			r.readObject(v, path, []field{{"type", r.text((*string)(&s.Trigger.Type))}, {"on", r.text(&s.Trigger.On)}})
		}},
		{"stateSource", r.text(&s.StateSource)},
		{"gates", r.list(func(v value, path string) { s.Gates = append(s.Gates, r.readGate(v, path)) })},
		{"budget", func(v value, path string) {
			r.readObject(v, path, []field{
				{"maxIterations", r.positive(&s.Budget.MaxIterations)},
				{"maxTokens", r.positive(&s.Budget.MaxTokens)},
				{"maxWallClockMs", r.positive(&s.Budget.MaxWallClockMs)},
				{"maxItems", r.positive(&s.Budget.MaxItems)},
			})
		}},
		{"giveUp", r.text(&s.GiveUp)},
		{"errorPolicy", r.text(&s.ErrorPolicy)},
		{"guardrails", r.texts(&s.Guardrails)},
		{"humanGate", r.text(&s.HumanGate)},
		{"memoryWrites", r.text(&s.MemoryWrites)},
		{"role", r.text((*string)(&s.Role))},
		{"concurrency", r.text((*string)(&s.Concurrency))},
		{"parentId", r.text(&s.ParentID)},
		{"childIds", r.texts(&s.ChildIDs)},
		{"boardEntry", r.text(&s.BoardEntry)},
		{"createdAt", r.number(&s.CreatedAt, 0)},
		{"updatedAt", r.number(&s.UpdatedAt, 0)},
	})
}

func (r *reader) readGate(v value, path string) loop.Gate {
	var g loop.Gate
	r.readObject(v, path, []field{
		{"name", r.text(&g.Name)},
		{"kind", r.text((*string)(&g.Kind))},
		{"check", r.text(&g.Check)},
		{"reviewer", func(v value, path string) {
			r.readObject(v, path, []field{{"agent", r.text(&g.Reviewer.Agent)}, {"model", r.text(&g.Reviewer.Model)}})
		}},
	})
	return g
}

// readObject reads the fields of an object, each at most once, and reports the others.
func (r *reader) readObject(v value, path string, fields []field) {
	if !r.is(v, path, kindObject) {
		return
	}
	names := make([]string, len(fields))
	byName := map[string]field{}
	for i, f := range fields {
		names[i], byName[f.name] = f.name, f
	}
	seen := map[string]bool{}
	for _, m := range v.members {
		below := joinPath(path, m.name)
		f, known := byName[m.name]
		switch {
		case !known:
			r.report(m.at, below, "unknown field; %s", readiness.Suggest(m.name, names))
		case seen[m.name]:
			r.report(m.at, below, "written twice; remove one")
		default:
			f.read(m.value, below)
		}
		seen[m.name] = true
	}
}

// is notes the place of a value, and reports one of another kind.
func (r *reader) is(v value, path, kind string) bool {
	r.doc.places[path] = v
	if v.kind == kind {
		return true
	}
	fix := ""
	switch {
	case v.kind == kindNull && path != "":
		fix = "; remove the field if it has no value"
	case v.kind == kindNumber && kind == kindText:
		fix = "; write it in quotes"
	case v.kind == kindText && kind == kindNumber:
		fix = "; write it without quotes"
	case v.kind == kindText && kind == kindList:
		fix = "; write [" + strconv.Quote(readiness.Printable(shortened(v.text))) + "]"
	}
	r.report(v.at, path, "expected %s, found %s%s", kind, v.kind, fix)
	return false
}

func (r *reader) text(to *string) func(value, string) {
	return func(v value, path string) {
		if r.is(v, path, kindText) {
			*to = v.text
		}
	}
}

func (r *reader) list(each func(value, string)) func(value, string) {
	return func(v value, path string) {
		if !r.is(v, path, kindList) {
			return
		}
		for i, item := range v.items {
			each(item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (r *reader) texts(to *[]string) func(value, string) {
	return r.list(func(v value, path string) {
		var text string
		r.text(&text)(v, path)
		*to = append(*to, text)
	})
}

// positive reads a number of a budget.
func (r *reader) positive(to *int64) func(value, string) { return r.number(to, 1) }

func (r *reader) number(to *int64, least int64) func(value, string) {
	return func(v value, path string) {
		if !r.is(v, path, kindNumber) {
			return
		}
		n, ok := wholeNumber(v.text)
		if !ok || n < least {
			r.report(v.at, path, "%s is not a whole number of at least %d", readiness.Quote(v.text), least)
			return
		}
		*to = n
	}
}

// wholeNumber reads a JSON number that is whole. Programs that have no integers write
// 1e3 and 8.0 too.
func wholeNumber(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, n <= mostExact && n >= -mostExact
	}
	f, err := strconv.ParseFloat(text, 64)
	n := int64(f)
	return n, err == nil && f <= mostExact && f >= -mostExact && float64(n) == f
}

// mostExact is the largest number that every program reads as it is written.
const mostExact = 1<<53 - 1

func shortened(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
