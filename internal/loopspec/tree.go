package loopspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

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
