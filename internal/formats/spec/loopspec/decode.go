package loopspec

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
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
	places map[string]*jsontree.Value // by path
}

// Decode reads the JSON of a spec. It reads what it can and returns everything that is
// wrong, in the order of the document; the spec must not be used if there is a finding.
// Whether what is written makes sense is said by Validate.
func Decode(data []byte) (Document, []Finding) {
	r := &reader{doc: Document{source: bytes.TrimPrefix(data, []byte("\ufeff")), places: map[string]*jsontree.Value{}}}
	if len(data) > MaxBytes {
		r.report(0, "", "%d bytes are more than the %d that a spec may have", len(data), MaxBytes)
		return r.doc, r.findings
	}
	root, problems := jsontree.ParseAll(data, jsontree.Bounds{Bytes: MaxBytes, Depth: maxDepth, Twice: true, Large: true})
	for _, p := range problems {
		r.report(p.At, pathText(p.Path), "%s", p.Message)
	}
	if root == nil {
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
	f.Line, f.Column = jsontree.Place(r.doc.source, at)
	r.findings = append(r.findings, f)
}

// field is a field of an object: its name, and what reads its value.
type field struct {
	name string
	read func(v *jsontree.Value, path string)
}

func (r *reader) readSpec(root *jsontree.Value) {
	s := &r.doc.Spec
	r.readObject(root, "", []field{
		{"id", r.text(&s.ID)},
		{"agentId", r.text(&s.AgentID)},
		{"goal", r.text(&s.Goal)},
		{"loopType", r.text((*string)(&s.LoopType))},
		{"trigger", func(v *jsontree.Value, path string) {
			r.readObject(v, path, []field{{"type", r.text((*string)(&s.Trigger.Type))}, {"on", r.text(&s.Trigger.On)}})
		}},
		{"stateSource", r.text(&s.StateSource)},
		{"gates", r.list(func(v *jsontree.Value, path string) { s.Gates = append(s.Gates, r.readGate(v, path)) })},
		{"budget", func(v *jsontree.Value, path string) {
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

func (r *reader) readGate(v *jsontree.Value, path string) loop.Gate {
	var g loop.Gate
	r.readObject(v, path, []field{
		{"name", r.text(&g.Name)},
		{"kind", r.text((*string)(&g.Kind))},
		{"check", r.text(&g.Check)},
		{"reviewer", func(v *jsontree.Value, path string) {
			r.readObject(v, path, []field{{"agent", r.text(&g.Reviewer.Agent)}, {"model", r.text(&g.Reviewer.Model)}})
		}},
	})
	return g
}

// readObject reads the fields of an object, each at most once, and reports the others.
func (r *reader) readObject(v *jsontree.Value, path string, fields []field) {
	if !r.is(v, path, jsontree.Object) {
		return
	}
	names := make([]string, len(fields))
	byName := map[string]field{}
	for i, f := range fields {
		names[i], byName[f.name] = f.name, f
	}
	seen := map[string]bool{}
	for _, m := range v.Members {
		below := joinPath(path, m.Name)
		f, known := byName[m.Name]
		switch {
		case !known:
			r.report(m.At, below, "unknown field; %s", readiness.Suggest(m.Name, names))
		case seen[m.Name]:
			r.report(m.At, below, "written twice; remove one")
		default:
			f.read(m.Value, below)
		}
		seen[m.Name] = true
	}
}

// is notes the place of a value, and reports one of another kind.
func (r *reader) is(v *jsontree.Value, path string, kind jsontree.Kind) bool {
	r.doc.places[path] = v
	if v.Kind == kind {
		return true
	}
	fix := ""
	switch {
	case v.Kind == jsontree.Null && path != "":
		fix = "; remove the field if it has no value"
	case v.Kind == jsontree.Number && kind == jsontree.Text:
		fix = "; write it in quotes"
	case v.Kind == jsontree.Text && kind == jsontree.Number:
		fix = "; write it without quotes"
	case v.Kind == jsontree.Text && kind == jsontree.List:
		fix = "; write [" + strconv.Quote(readiness.Printable(shortened(v.Text))) + "]"
	}
	r.report(v.At, path, "expected %s, found %s%s", kind, v.Kind, fix)
	return false
}

func (r *reader) text(to *string) func(*jsontree.Value, string) {
	return func(v *jsontree.Value, path string) {
		if r.is(v, path, jsontree.Text) {
			*to = v.Text
		}
	}
}

func (r *reader) list(each func(*jsontree.Value, string)) func(*jsontree.Value, string) {
	return func(v *jsontree.Value, path string) {
		if !r.is(v, path, jsontree.List) {
			return
		}
		for i, item := range v.Items {
			each(item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (r *reader) texts(to *[]string) func(*jsontree.Value, string) {
	return r.list(func(v *jsontree.Value, path string) {
		var text string
		r.text(&text)(v, path)
		*to = append(*to, text)
	})
}

// positive reads a number of a budget.
func (r *reader) positive(to *int64) func(*jsontree.Value, string) { return r.number(to, 1) }

func (r *reader) number(to *int64, least int64) func(*jsontree.Value, string) {
	return func(v *jsontree.Value, path string) {
		if !r.is(v, path, jsontree.Number) {
			return
		}
		n, ok := wholeNumber(v.Text)
		if !ok || n < least {
			r.report(v.At, path, "%s is not a whole number of at least %d", readiness.Quote(v.Text), least)
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
