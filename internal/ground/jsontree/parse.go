package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds are what a text may have at most.
type Bounds struct {
	Bytes  int
	Depth  int // of objects and lists in each other
	Values int // of all kinds; 0: any number

	NUL   bool // texts may contain NUL, which databases do not store
	Twice bool // a name may be in an object twice: the caller looks
	Large bool // numbers need not fit a double: the caller looks
}

// Path is how a value is reached: a name of an object is a string, an index of a list
// an int.
type Path []any

// Pointer is the path as a JSON pointer.
func (p Path) Pointer() string {
	pointer := ""
	for _, step := range p {
		pointer = Join(pointer, fmt.Sprint(step))
	}
	return pointer
}

// Problem is why a text is not JSON that every program reads the same.
type Problem struct {
	Path    Path // of the value that is meant; empty: the document
	Message string
	At      int // the byte
	Line    int // from 1
	Column  int // characters from 1
}

// String is the problem with its place.
func (p *Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Parse reads a text. A byte-order mark at its start is not counted as part of it.
// The tree is nil if there is a problem; of several, the first is returned.
func Parse(src []byte, bounds Bounds) (*Value, *Problem) {
	v, problems := parse(src, bounds, 1)
	if len(problems) > 0 {
		return nil, &problems[0]
	}
	return v, nil
}

// mostProblems bounds what one text is told.
const mostProblems = 1000

// ParseAll is Parse for readers that say everything which is wrong at once. There is a
// tree beside problems, unless the last one is the end of reading.
func ParseAll(src []byte, bounds Bounds) (*Value, []Problem) { return parse(src, bounds, mostProblems) }

func parse(src []byte, bounds Bounds, most int) (*Value, []Problem) {
	src = trimMark(src)
	p := parser{Decoder: json.NewDecoder(bytes.NewReader(src)), src: src, bounds: bounds, most: most}
	if message, at := syntaxProblem(src, bounds.Bytes); message != "" {
		p.report(at, "%s", message)
	} else {
		p.UseNumber()
		v := p.value()
		if !p.broken {
			return v, p.problems
		}
	}
	return nil, p.problems
}

func trimMark(src []byte) []byte { return bytes.TrimPrefix(src, []byte("\ufeff")) }

// syntaxProblem says why a text is not one JSON value, and where.
func syntaxProblem(src []byte, most int) (message string, at int) {
	if len(src) > most {
		return fmt.Sprintf("%d bytes are more than the %d that are read", len(src), most), 0
	}
	if !utf8.Valid(src) {
		for at < len(src) {
			r, size := utf8.DecodeRune(src[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return "not UTF-8: write the document in UTF-8", at
	}
	var raw json.RawMessage
	err := json.Unmarshal(src, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "not JSON: " + syntax.Error(), max(0, int(syntax.Offset)-1)
	}
	if err != nil {
		return "not JSON: " + err.Error(), 0
	}
	return "", 0
}

// parser makes the tree of a text that is JSON.
type parser struct {
	*json.Decoder
	src      []byte
	bounds   Bounds
	path     Path // of the value that is read
	depth    int
	values   int
	broken   bool // nothing more is read
	most     int
	problems []Problem
}

func (p *parser) report(at int, format string, args ...any) {
	if p.broken {
		return
	}
	problem := Problem{Path: slices.Clone(p.path), Message: fmt.Sprintf(format, args...), At: at}
	problem.Line, problem.Column = Place(p.src, at)
	if p.problems = append(p.problems, problem); len(p.problems) == p.most {
		p.broken = true
	}
}

// next returns the next token and where it begins.
func (p *parser) next() (json.Token, int) {
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

func (p *parser) value() *Value {
	token, at := p.next()
	v := &Value{At: at}
	if p.values++; p.values == p.bounds.Values+1 && p.bounds.Values > 0 {
		p.report(at, "has more than %d values", p.bounds.Values)
		p.broken = true
	}
	switch t := token.(type) {
	case json.Delim:
		p.nested(v, t)
	case string:
		v.Kind, v.Text = Text, t
		p.checkText(t, at)
	case json.Number:
		v.Kind, v.Text = Number, t.String()
		if _, err := t.Float64(); err != nil && !p.bounds.Large {
			p.report(at, "the number is too large for most programs")
		}
	case bool:
		v.Kind, v.Text = Bool, strconv.FormatBool(t)
	default:
		v.Kind, v.Text = Null, "null"
	}
	return v
}

// below reads a value that is reached by one more step.
func (p *parser) below(step any) *Value {
	p.path = append(p.path, step)
	v := p.value()
	p.path = p.path[:len(p.path)-1]
	return v
}

func (p *parser) nested(v *Value, open json.Delim) {
	p.depth++
	if p.depth > p.bounds.Depth {
		p.report(v.At, "nested more than %d deep", p.bounds.Depth)
		p.broken = true
		return
	}
	v.Kind = Object
	if open == '[' {
		v.Kind = List
	}
	names := map[string]bool{}
	for !p.broken && p.More() {
		if open == '[' {
			v.Items = append(v.Items, p.below(len(v.Items)))
			continue
		}
		token, at := p.next()
		name, _ := token.(string)
		p.path = append(p.path, name)
		if names[name] && !p.bounds.Twice {
			p.report(at, "the name %q is in the object twice", name)
		}
		names[name] = true
		p.checkText(name, at)
		p.path = p.path[:len(p.path)-1]
		v.Members = append(v.Members, Member{Name: name, At: at, Value: p.below(name)})
	}
	if !p.broken {
		p.next()
		p.depth--
	}
}

// checkText refuses half of a pair of surrogates, which programs replace in their own
// ways, and NUL.
func (p *parser) checkText(text string, at int) {
	written := strings.ToLower(string(p.src[at:p.InputOffset()]))
	if strings.Contains(text, "\ufffd") && !strings.Contains(written, "\ufffd") && !strings.Contains(written, `\ufffd`) {
		p.report(at, `half of a character: \ud800 to \udfff come in pairs`)
	}
	if !p.bounds.NUL && strings.Contains(text, "\x00") {
		p.report(at, `contains a NUL: remove \u0000`)
	}
}
