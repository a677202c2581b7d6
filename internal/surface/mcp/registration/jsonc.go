package registration

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// A document is JSON as people write it: with comments, and commas after the last
// value.
type document struct {
	src    []byte
	plain  []byte // src with spaces in place of those; the same places
	commas []int  // where commas after a last value are
	root   *jsontree.Value
}

// bounds are far above what people write, and below what takes long to read.
var bounds = jsontree.Bounds{Bytes: 64 << 20, Depth: 500, NUL: true, Large: true}

func parseJSON(src []byte) (*document, error) {
	d := &document{src: src}
	d.plain, d.commas = blank(src)
	root, problem := jsontree.Parse(d.plain, bounds)
	if problem != nil {
		return nil, errors.New(problem.String())
	}
	d.root = root
	return d, nil
}

// blank puts spaces in place of a byte-order mark, of comments and of commas after
// a last value.
func blank(src []byte) (plain []byte, commas []int) {
	plain = bytes.Clone(src)
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		copy(plain, "   ")
	}
	comma := -1 // the last one, if only blanks came after it
	for i := 0; i < len(src); {
		switch end := skipComment(src, i); {
		case end > i:
			for j := i; j < end; j++ {
				if plain[j] != '\n' && plain[j] != '\r' {
					plain[j] = ' '
				}
			}
			i = end
			continue
		case src[i] == '"':
			comma, i = -1, skipString(src, i)
			continue
		case src[i] == ',':
			comma = i
		case src[i] == '}' || src[i] == ']':
			if comma >= 0 {
				plain[comma] = ' '
				commas = append(commas, comma)
			}
			comma = -1
		case !isBlank(src[i]):
			comma = -1
		}
		i++
	}
	return plain, commas
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// skipComment returns the end of the comment that begins at i, and i if none does.
func skipComment(src []byte, i int) int {
	rest := src[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexAny(rest, "\r\n"); n >= 0 {
			return i + n
		}
		return len(src)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
	}
	return i
}

// skipString returns the end of the string that begins at i.
func skipString(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}

// end returns the end of the value that begins at i.
func (d *document) end(i int) int {
	depth := 0
	for i < len(d.plain) {
		switch d.plain[i] {
		case '"':
			if i = skipString(d.plain, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if depth == 0 && (i+1 == len(d.plain) || strings.IndexByte(",]} \t\r\n", d.plain[i+1]) >= 0) {
			return i + 1
		}
		i++
	}
	return i
}

// enterJSON returns a document in which the object at a path has the members of
// an entry, and those that it had beside them; a timeout that it had stays. It
// reports whether it was there.
func enterJSON(src []byte, path []string, entry []jsontree.Member) (changed []byte, had bool, err error) {
	if len(bytes.TrimSpace(src)) == 0 {
		src = []byte("{}\n")
	}
	d, err := parseJSON(src)
	if err != nil {
		return nil, false, err
	}
	object := d.root
	for i, name := range path {
		if object.Kind != jsontree.Object {
			return nil, false, fmt.Errorf("%s is %s, not an object", cmp.Or(strings.Join(path[:i], "."), "it"), object.Kind)
		}
		child := object.Get(name)
		if child == nil {
			value := jsontree.NewObject(entry...)
			for _, outer := range slices.Backward(path[i+1:]) {
				value = jsontree.NewObject(jsontree.Member{Name: outer, Value: value})
			}
			return d.add(object, jsontree.Member{Name: name, Value: value}), false, nil
		}
		object = child
	}
	if object.Get("command") == nil {
		return nil, true, errTaken // it is of another kind, such as an address
	}
	for _, m := range entry {
		switch is := object.Get(m.Name); {
		case is == nil:
			src = d.add(object, m)
		case m.Name == timeoutMember:
			continue
		case !sameValue(is, m.Value):
			src = slices.Concat(d.src[:is.At], []byte(d.render(m.Value, "", "")), d.src[d.end(is.At):])
		default:
			continue
		}
		// Places have moved.
		if d, err = parseJSON(src); err != nil {
			return nil, true, err
		}
		object = d.root
		for _, name := range path {
			object = object.Get(name)
		}
	}
	return src, true, nil
}

func sameValue(a, b *jsontree.Value) bool {
	return a.Kind == b.Kind && a.Text == b.Text && slices.EqualFunc(a.Items, b.Items, sameValue)
}

// add returns the document with a member at the end of an object, in the manner
// in which the object is written.
func (d *document) add(object *jsontree.Value, m jsontree.Member) []byte {
	closing := d.end(object.At) - 1
	// Comments at the end of the object stay before the member.
	at := len(bytes.TrimRight(d.src[:closing], " \t\r\n"))
	newline, unit := newlineOf(d.src), d.unit()
	base := d.indentation(object.At)

	if len(object.Members) == 0 {
		indent := base + unit
		return slices.Concat(d.src[:at], []byte(newline+indent+d.member(m, indent, unit)+newline+base), d.src[closing:])
	}
	first, last := object.Members[0], object.Members[len(object.Members)-1]
	after := d.end(last.Value.At)
	trailing := slices.ContainsFunc(d.commas, func(c int) bool { return c >= after && c < closing })
	var text string
	if bytes.ContainsAny(d.src[object.At:first.At], "\r\n") || bytes.ContainsAny(d.src[after:closing], "\r\n") {
		indent := base + unit
		if own := d.indentation(first.At); strings.TrimLeft(string(d.src[object.At+1:first.At]), " \t\r\n") == "" && len(own) > len(base) {
			indent = own
		}
		text = newline + indent + d.member(m, indent, unit)
	} else {
		text = " " + d.member(m, "", "")
	}
	if trailing {
		return slices.Concat(d.src[:at], []byte(text+","), d.src[at:])
	}
	return slices.Concat(d.src[:after], []byte(","), d.src[after:at], []byte(text), d.src[at:])
}

// indentation is that of the line of a place.
func (d *document) indentation(at int) string {
	line := d.src[bytes.LastIndexByte(d.src[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is by how much the document indents.
func (d *document) unit() string {
	if len(d.root.Members) > 0 {
		if own := d.indentation(d.root.Members[0].At); own != "" {
			return own
		}
	}
	return "  "
}

func (d *document) member(m jsontree.Member, indent, unit string) string {
	return d.render(jsontree.NewText(m.Name), "", "") + ": " + d.render(m.Value, indent, unit)
}

// render writes objects over lines if there is a unit to indent by, and lists on
// one line.
func (d *document) render(v *jsontree.Value, indent, unit string) string {
	var parts []string
	if v.Kind == jsontree.List {
		for _, item := range v.Items {
			parts = append(parts, d.render(item, "", ""))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if v.Kind == jsontree.Object {
		for _, m := range v.Members {
			parts = append(parts, d.member(m, indent+unit, unit))
		}
		if unit == "" {
			return "{" + strings.Join(parts, ", ") + "}"
		}
		newline := newlineOf(d.src)
		return "{" + newline + indent + unit + strings.Join(parts, ","+newline+indent+unit) + newline + indent + "}"
	}
	return strings.TrimSuffix(string(jsontree.Encode(v)), "\n")
}
