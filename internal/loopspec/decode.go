package loopspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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

// syntaxProblem says why a text is not one JSON value, and where; empty if it is one.
func syntaxProblem(data []byte) (problem string, at int) {
	if len(data) > MaxBytes {
		return fmt.Sprintf("%d bytes are more than the %d that a spec may have", len(data), MaxBytes), 0
	}
	if !utf8.Valid(data) {
		for at < len(data) {
			r, size := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return "not UTF-8: write the document in UTF-8", at
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "not JSON: " + syntax.Error(), max(0, int(syntax.Offset)-1)
	}
	if err != nil {
		return "not JSON: " + err.Error(), 0
	}
	return "", 0
}

// value is a JSON value and the byte at which it begins.
type value struct {
	kind    string // object, list, text, number, true or false, null
	text    string // of a text or a number
	at      int
	members []member
	items   []value
}

type member struct {
	name string
	at   int
	value
}

// treeParser makes the tree of a text that is JSON.
type treeParser struct {
	*json.Decoder
	src   []byte
	r     *reader
	depth int // of the value that is read, and more than maxDepth once one is too deep
}

// next returns the next token and where it begins.
func (p *treeParser) next() (json.Token, int) {
	at := int(p.InputOffset())
	for at < len(p.src) && strings.IndexByte(" \t\r\n,:", p.src[at]) >= 0 {
		at++
	}
	token, err := p.Token()
	if err != nil { // The whole text was read as JSON before.
		return nil, at
	}
	return token, at
}

func (p *treeParser) parse(path string) value {
	token, at := p.next()
	v := value{at: at}
	switch t := token.(type) {
	case json.Delim:
		return p.parseNested(t, v, path)
	case string:
		v.kind, v.text = kindText, t
		written := strings.ToLower(string(p.src[at:p.InputOffset()]))
		if strings.Contains(t, "\ufffd") && !strings.Contains(written, "\ufffd") && !strings.Contains(written, `\ufffd`) {
			p.r.report(at, path, `half of a character: \ud800 to \udfff come in pairs`)
		}
		if strings.Contains(t, "\x00") {
			p.r.report(at, path, "contains a NUL: remove \\u0000")
		}
	case json.Number:
		v.kind, v.text = kindNumber, t.String()
	case bool:
		v.kind = kindBool
	default:
		v.kind = kindNull
	}
	return v
}

func (p *treeParser) parseNested(open json.Delim, v value, path string) value {
	p.depth++
	if p.depth > maxDepth {
		p.r.report(v.at, path, "nested more than %d deep", maxDepth)
		return v
	}
	v.kind = kindObject
	if open == '[' {
		v.kind = kindList
	}
	for p.More() && p.depth <= maxDepth {
		if open == '[' {
			v.items = append(v.items, p.parse(fmt.Sprintf("%s[%d]", path, len(v.items))))
			continue
		}
		name, at := p.next()
		m := member{name: name.(string), at: at}
		m.value = p.parse(joinPath(path, m.name))
		v.members = append(v.members, m)
	}
	if p.depth <= maxDepth {
		p.next()
		p.depth--
	}
	return v
}

// What a value is, in the words of a finding.
const (
	kindObject = "an object"
	kindList   = "a list"
	kindText   = "text"
	kindNumber = "a number"
	kindBool   = "true or false"
	kindNull   = "null"
)

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// reader makes the spec of a tree.
type reader struct {
	doc      Document
	findings []Finding
}

func (r *reader) report(at int, path, format string, args ...any) {
	f := Finding{Path: path, Message: fmt.Sprintf(format, args...)}
	f.Line, f.Column = placeOf(r.doc.source, at)
	r.findings = append(r.findings, f)
}

// placeOf returns the line and the column of a byte of a text.
func placeOf(src []byte, at int) (line, column int) {
	before := src[:min(at, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
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
			below = joinPath(path, readiness.Printable(m.name))
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

// Locate sets the line and the column of findings about the document's spec, and sorts
// them by it. A field that is missing is reported where what it belongs to begins.
func (d Document) Locate(findings []Finding) []Finding {
	for i, f := range findings {
		path := f.Path
		v, found := d.places[path]
		for !found && path != "" {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
			v, found = d.places[path]
		}
		at := v.at
		if path == f.Path && v.kind == kindText {
			at = sourceOffset(d.source, v.at, f.Offset)
		}
		findings[i].Line, findings[i].Column = placeOf(d.source, at)
	}
	return inOrder(findings)
}

// sourceOffset returns the byte of a document that is byte offset of the text whose
// opening quote is at the byte at.
func sourceOffset(src []byte, at, offset int) int {
	at++
	for n := 0; n < offset && at < len(src) && src[at] != '"'; {
		if src[at] != '\\' {
			_, size := utf8.DecodeRune(src[at:])
			n += size
			at += size
			continue
		}
		length := 2
		if src[at+1] == 'u' {
			length = 6
			if at+12 <= len(src) && isSurrogate(src[at:at+6]) {
				length = 12
			}
		}
		var text string
		if json.Unmarshal([]byte(`"`+string(src[at:at+length])+`"`), &text) != nil {
			return at
		}
		n += len(text)
		at += length
	}
	return at
}

// isSurrogate reports whether an escape is the first half of a character.
func isSurrogate(escape []byte) bool {
	n, err := strconv.ParseUint(string(escape[2:]), 16, 32)
	return err == nil && n >= 0xd800 && n < 0xdc00
}

// Encode writes a spec in its one form: all fields in the order of the format, with two
// spaces for each level, and a newline at the end. Decode reads it as the same spec.
func Encode(s Spec) []byte {
	if s.Gates == nil {
		s.Gates = []loop.Gate{}
	}
	if s.Guardrails == nil {
		s.Guardrails = []string{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		// A Spec holds texts, numbers and lists of them only.
		panic("loopspec: a spec does not marshal: " + err.Error())
	}
	return b.Bytes()
}

func shortened(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
