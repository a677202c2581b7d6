package definition

import (
	"strings"

	"github.com/pawl-run/pawl/internal/readiness"
)

// flatReader reads the part of YAML to which nearly every definition keeps: a
// key, its value or its list in each line. It takes only what it reads exactly
// as the tree reader does, and gives up at the first thing of which that is not
// certain. It never judges: what it gives up may be as valid as any other.
type flatReader struct {
	ascii   bool
	entries []entry
	values  []readiness.Value // all items, of which entries hold parts
	from    int               // where the items of the last entry begin
	indent  int               // spaces before the dashes of the last entry's list
	items   int               // list items in the whole file
	blank   int               // empty lines in a row
}

// readFlat reads a text without the YAML parser, which takes most of the time.
// It reports false if the text is not flat for certain; the tree reader has the
// say then. The text is one in which bomb has found nothing.
func readFlat(src source) ([]entry, bool) {
	if len(src.text) > maxTreeBytes || !flatBytes(src.text) {
		return nil, false
	}
	r := flatReader{
		ascii:   src.ascii,
		entries: make([]entry, 0, len(src.lines)),
		values:  make([]readiness.Value, 0, len(src.lines)),
	}
	for i, line := range src.lines {
		if len(line) > maxLine || !r.line(line, i+1) {
			return nil, false
		}
	}
	return r.entries, len(r.entries) > 0 && !r.open()
}

// line reads one line, which is a key, an item, a comment or empty.
func (r *flatReader) line(line string, number int) bool {
	body := strings.TrimLeft(line, " ")
	if body == "" {
		r.blank++
		return r.blank <= maxBlank
	}
	r.blank = 0
	switch body[0] {
	case '#':
		return true
	case '-':
		return r.item(body[1:], len(line)-len(body), number)
	}
	return !r.open() && r.key(line, number)
}

// open reports whether the last key still has neither a value nor an item.
func (r *flatReader) open() bool {
	n := len(r.entries)
	return n > 0 && r.entries[n-1].block && len(r.entries[n-1].items) == 0
}

// key reads a line that begins with a key, at its first byte.
func (r *flatReader) key(line string, number int) bool {
	name := line[:flatName(line)]
	if name == "" || len(name) == len(line) || line[len(name)] != ':' {
		return false
	}
	r.entries = append(r.entries, entry{key: Key{Name: name, Line: number, Column: 1}})
	r.from, r.indent = len(r.values), -1
	e, rest := &r.entries[len(r.entries)-1], line[len(name)+1:]
	if flatEnd(rest) {
		e.block = true
		return true
	}
	value := strings.TrimLeft(rest, " ")
	if len(value) == len(rest) {
		return false
	}
	e.scalar = readiness.Value{Line: number, Column: len(line) - len(value) + 1}
	if value[0] == '[' {
		return r.flow(e, value)
	}
	text, end := flatScalar(value, flatPlain)
	if end == 0 || !flatEnd(value[end:]) || tokenKeys[name] && strings.Contains(text, "#") {
		return false
	}
	e.scalar.Text = text
	r.add(e, e.scalar)
	return true
}

// item reads what stands behind the dash of a list item.
func (r *flatReader) item(rest string, indent, number int) bool {
	n := len(r.entries)
	if n == 0 || !r.entries[n-1].block || r.indent >= 0 && r.indent != indent {
		return false
	}
	value := strings.TrimLeft(rest, " ")
	if len(value) == len(rest) || value == "" {
		return false
	}
	text, end := flatScalar(value, flatPlain)
	if end == 0 || !flatEnd(value[end:]) {
		return false
	}
	e := &r.entries[n-1]
	if r.indent < 0 {
		r.indent, e.scalar = indent, readiness.Value{Line: number, Column: indent + 1}
	}
	r.items++
	r.add(e, readiness.Value{Text: text, Line: number, Column: indent + 2 + len(rest) - len(value)})
	return r.items <= maxItems
}

// flow reads a list in brackets. Its columns are bytes, so it has to be ASCII.
func (r *flatReader) flow(e *entry, list string) bool {
	for at := 1; r.ascii; at++ {
		at += flatSpaces(list[at:])
		text, length := flatScalar(list[at:], flatWord)
		if length == 0 {
			return false
		}
		r.items++
		r.add(e, readiness.Value{Text: text, Line: e.scalar.Line, Column: e.scalar.Column + at})
		at += length
		at += flatSpaces(list[at:])
		if at == len(list) || r.items > maxItems {
			return false
		}
		switch list[at] {
		case ',':
		case ']':
			e.scalar.Text = list[:at+1]
			return flatEnd(list[at+1:])
		default:
			return false
		}
	}
	return false
}

// add gives an entry one more item. All items share one array, so that there is
// one allocation for most files.
func (r *flatReader) add(e *entry, v readiness.Value) {
	r.values = append(r.values, v)
	e.items = r.values[r.from:len(r.values):len(r.values)]
}

// flatScalar is the text of the scalar at the start of a line's rest, and how
// many bytes it takes there, quotes included. Zero means that it is empty or
// not simple. Where a plain scalar ends, plain says.
func flatScalar(value string, plain func(string) int) (text string, length int) {
	if value == "" {
		return "", 0
	}
	if quote := value[0]; quote == '"' || quote == '\'' {
		end := strings.IndexByte(value[1:], quote)
		if end <= 0 || strings.Contains(value[1:end+1], `\`) {
			return "", 0
		}
		return value[1 : end+1], end + 2
	}
	end := plain(value)
	return value[:end], end
}

// flatPlain is the length of a plain scalar, or zero if it has what YAML may
// take for something else.
func flatPlain(value string) int {
	if !flatFirst(value[0]) {
		return 0
	}
	end := 0
	for i := range len(value) {
		switch value[i] {
		case ' ':
			continue
		case ':':
			if i+1 == len(value) || value[i+1] == ' ' {
				return 0
			}
		case '#':
			if value[i-1] == ' ' {
				return end
			}
		}
		end = i + 1
	}
	return end
}

// flatWord is the length of a plain scalar in brackets: one word without
// anything that means something there.
func flatWord(value string) int {
	if !flatFirst(value[0]) {
		return 0
	}
	for i := range len(value) {
		if c := value[i]; !flatFirst(c) && c != '*' && c != '-' {
			return i
		}
	}
	return len(value)
}

// flatFirst reports whether a plain scalar may begin with a byte.
func flatFirst(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '/' || c == '$'
}

// flatName is the length of the key at the start of a line.
func flatName(line string) int {
	for i := range len(line) {
		if c := line[i]; ('a' > c || c > 'z') && c != '_' {
			return i
		}
	}
	return len(line)
}

// flatEnd reports whether nothing follows in a line but spaces and a comment.
func flatEnd(rest string) bool {
	at := flatSpaces(rest)
	return at == len(rest) || at > 0 && rest[at] == '#'
}

func flatSpaces(text string) int {
	return len(text) - len(strings.TrimLeft(text, " "))
}

// flatBytes reports whether a text has only characters that every reader counts
// and shows alike: no tab, no control, and none from the range of byte-order
// marks and of those that stand for others while a text is parsed.
func flatBytes(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' || c == 0x7f || c == 0xef {
			return false
		}
	}
	return true
}
