package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds are what a text may have at most.
type Bounds struct {
	Bytes int
	Depth int // of objects and lists in each other

	NUL bool // texts may contain NUL, which databases do not store
}

// Problem is why a text is not JSON that every program reads the same.
type Problem struct {
	Pointer string // of the value that is meant; empty: the document
	Message string
	Line    int // from 1
	Column  int // characters from 1
}

// Error is the problem with its place.
func (p *Problem) Error() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Parse reads a text. A byte-order mark at its start is not counted as part of it.
// The tree is nil if there is a problem.
func Parse(src []byte, bounds Bounds) (*Value, *Problem) {
	src = trimMark(src)
	message, at := syntaxProblem(src, bounds.Bytes)
	pointer := ""
	if message == "" {
		p := parser{Decoder: json.NewDecoder(bytes.NewReader(src)), src: src, bounds: bounds}
		p.UseNumber()
		v := p.value("")
		if p.message == "" {
			return v, nil
		}
		message, at, pointer = p.message, p.at, p.pointer
	}
	line, column := NewLines(src).Place(at)
	return nil, &Problem{Pointer: pointer, Message: message, Line: line, Column: column}
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
		return "not UTF-8", at
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

// parser makes the tree of a text that is JSON, until the first problem.
type parser struct {
	*json.Decoder
	src    []byte
	bounds Bounds
	depth  int

	message, pointer string
	at               int
}

func (p *parser) fail(at int, pointer, format string, args ...any) {
	if p.message == "" {
		p.message, p.at, p.pointer = fmt.Sprintf(format, args...), at, pointer
	}
}

// next returns the next token and where it begins.
func (p *parser) next() (json.Token, int) {
	at := int(p.InputOffset())
	for at < len(p.src) && strings.IndexByte(" \t\r\n,:", p.src[at]) >= 0 {
		at++
	}
	token, err := p.Token()
	if err != nil {
		p.fail(at, "", "not JSON: %s", err.Error())
	}
	return token, at
}

func (p *parser) value(pointer string) *Value {
	token, at := p.next()
	v := &Value{At: at}
	switch t := token.(type) {
	case json.Delim:
		p.nested(v, t, pointer)
	case string:
		v.Kind, v.Text = Text, t
		p.checkText(t, at, pointer)
	case json.Number:
		v.Kind, v.Text = Number, t.String()
		if _, err := t.Float64(); err != nil {
			p.fail(at, pointer, "the number is too large for most programs")
		}
	case bool:
		v.Kind, v.Text = Bool, strconv.FormatBool(t)
	default:
		v.Kind, v.Text = Null, "null"
	}
	return v
}

func (p *parser) nested(v *Value, open json.Delim, pointer string) {
	p.depth++
	if p.depth > p.bounds.Depth {
		p.fail(v.At, pointer, "nested more than %d deep", p.bounds.Depth)
		return
	}
	v.Kind = Object
	if open == '[' {
		v.Kind = List
	}
	names := map[string]bool{}
	for p.message == "" && p.More() {
		if open == '[' {
			v.Items = append(v.Items, p.value(pointer+"/"+strconv.Itoa(len(v.Items))))
			continue
		}
		token, at := p.next()
		name, _ := token.(string)
		below := Join(pointer, name)
		if names[name] {
			p.fail(at, below, "the name %q is in the object twice", name)
		}
		names[name] = true
		p.checkText(name, at, below)
		v.Members = append(v.Members, Member{Name: name, At: at, Value: p.value(below)})
	}
	if p.message == "" {
		p.next()
		p.depth--
	}
}

// checkText refuses half of a pair of surrogates, which programs replace in their own
// ways, and NUL.
func (p *parser) checkText(text string, at int, pointer string) {
	written := strings.ToLower(string(p.src[at:p.InputOffset()]))
	if strings.Contains(text, "\ufffd") && !strings.Contains(written, "\ufffd") && !strings.Contains(written, `\ufffd`) {
		p.fail(at, pointer, `half of a character: \ud800 to \udfff come in pairs`)
	}
	if !p.bounds.NUL && strings.Contains(text, "\x00") {
		p.fail(at, pointer, `contains a NUL: remove \u0000`)
	}
}
