package modeltool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

const (
	mostDepth = 500     // of objects and lists in a request
	mostParts = 1 << 20 // commas and colons in a request, about one per value
)

// checkJSON returns why a body might be read in two ways, because the vendor must
// read exactly what is judged here. Two fields with the same name are the usual
// trap: one parser takes the first, another the last. The body must be valid
// JSON.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("it is not UTF-8")
	}
	type level struct {
		names map[string]bool // nil in a list
		name  bool            // a name comes next
	}
	var open []level
	parts := 0
	for i := 0; i < len(body); i++ {
		top := len(open) - 1
		switch body[i] {
		case '{':
			open = append(open, level{names: map[string]bool{}, name: true})
		case '[':
			open = append(open, level{})
		case '}', ']':
			open = open[:top]
		case ',':
			parts++
			open[top].name = open[top].names != nil
		case ':':
			parts++
			open[top].name = false
		case '"':
			end := endOfString(body, i)
			if top >= 0 && open[top].name {
				name := node(body[i:end]).text()
				if open[top].names[name] {
					return fmt.Errorf("an object in it has two fields %.40q", name)
				}
				open[top].names[name] = true
			}
			i = end - 1
		}
		if len(open) > mostDepth || parts > mostParts {
			return fmt.Errorf("it has more than %d levels or %d parts", mostDepth, mostParts)
		}
	}
	return nil
}

// node is a value in valid JSON, as it is written. It is parsed in place, because
// a request may be many megabytes and only a few of its fields matter. The nil
// node is a missing value.
type node []byte

// endOfString returns the index after the string that begins at i.
func endOfString(b []byte, i int) int {
	for j := i + 1; ; j++ {
		j += bytes.IndexByte(b[j:], '"')
		back := j
		for b[back-1] == '\\' {
			back--
		}
		if (j-back)%2 == 0 {
			return j + 1
		}
	}
}

// endOfValue returns the index after the value that begins at i.
func endOfValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = endOfString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && strings.IndexByte(" \t\r\n", b[i]) >= 0 {
		i++
	}
	return i
}

// values returns the values between the brackets of a list or an object, in their
// order: in an object, names and values alternate.
func (n node) values() iter.Seq[node] {
	return func(yield func(node) bool) {
		for i := 1; ; i++ { // After a bracket, a comma or a colon.
			i = skipSpace(n, i)
			if i >= len(n)-1 {
				return
			}
			end := endOfValue(n, i)
			if !yield(n[i:end]) {
				return
			}
			i = skipSpace(n, end)
		}
	}
}

// items returns the values of a list, and nothing for any other value.
func (n node) items() iter.Seq[node] {
	if !n.isList() {
		return func(func(node) bool) {}
	}
	return n.values()
}

// fields returns the names and values of an object, and nothing for any other
// value.
func (n node) fields() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		if !n.isObject() {
			return
		}
		var name node
		for v := range n.values() {
			if name == nil {
				name = v
				continue
			}
			if !yield(name.text(), v) {
				return
			}
			name = nil
		}
	}
}

// field returns the value of a field whose folded name is folded.
func (n node) field(folded string) node {
	for name, v := range n.fields() {
		if foldName(name) == folded {
			return v
		}
	}
	return nil
}

func (n node) isObject() bool { return bytes.HasPrefix(n, []byte("{")) }
func (n node) isList() bool   { return bytes.HasPrefix(n, []byte("[")) }
func (n node) isNull() bool   { return len(n) == 0 || n[0] == 'n' }

// text returns a string's text; empty for any other value.
func (n node) text() string {
	if len(n) < 2 || n[0] != '"' {
		return ""
	}
	if bytes.IndexByte(n, '\\') < 0 {
		return string(n[1 : len(n)-1])
	}
	var s string
	_ = json.Unmarshal(n, &s) // It is valid.
	return s
}

// foldName returns a name without differences that some parsers ignore: case, and
// the underscores that tell Gemini's two spellings apart.
func foldName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}
