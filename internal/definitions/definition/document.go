// Package definition reads loop.config.yaml, the file in which a person says
// what a loop is, into a loop.Definition, and says what is wrong with it, with
// the line, the column and the fix.
//
// It never writes, never runs anything and never expands anything: anchors,
// aliases, tags and merge keys are the text that they are. A file that is not
// valid YAML is read line by line, if each line still says only one thing.
// Apart from Load, it touches no file.
package definition

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Limits of a file. A file over them is refused.
const (
	MaxBytes = 1 << 20 // size of a file
	maxKeys  = 1000    // top-level keys
	maxDepth = 64      // collections inside one another
)

// Document is a definition as written: for each top-level key its text or its items, and
// their places. It has not been judged. The zero Document has no key.
type Document struct {
	// Notice says in one line why the file was not read as YAML; empty if it was.
	Notice string

	entries []entry
	first   map[string]int // index in entries of each key's first occurrence

	format    string              // by which the loop is kept; empty: the key protocol says it
	optional  []string            // keys of the format that this loop need not have
	suggested []string            // more keys that may have been meant by an unknown one
	taken     []string            // keys that were in the file
	reported  []readiness.Finding // by whoever completed the document

	// Tasks is set for an agent of protocol tasks, and becomes that of the definition.
	Tasks *loop.TaskLoop
}

// entry is one occurrence of a top-level key.
type entry struct {
	key    Key
	scalar readiness.Value   // with the place of the value, even if it has no text
	items  []readiness.Value // the value as a list
	block  bool              // a block collection, which has no text
}

// Key is one occurrence of a top-level key. Lines and columns count from 1, and
// columns count characters.
type Key struct {
	Name    string
	Line    int
	Column  int
	Repeats int  // line of the key's first occurrence, which counts; 0: this is the first
	Differs bool // from the value of that one
}

// Parse reads a definition; name is used in errors. The error is a *loop.Fault with exit
// status 4: the file is too large, nested too deeply, has no key, has conflict markers, or
// is not YAML and ambiguous. Definition reports anything else that is wrong.
func Parse(name string, data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, unreadableFault(name, fmt.Sprintf("larger than %d bytes", MaxBytes),
			"a definition is a page of keys; move long texts into files that it names")
	}
	src := newSource(data)
	if src.isBomb() {
		return nil, tooDeep(name)
	}
	if markers := ConflictLines(src.text, false); markers != nil {
		return nil, unreadableFault(name, ConflictWords(markers), "resolve the conflict, and remove the markers")
	}
	entries, notYAML := readEntries(src)
	if errors.Is(notYAML, errTooDeep) {
		return nil, tooDeep(name)
	}
	if notYAML != nil && len(entries) > 0 {
		if err := findAmbiguous(src); err != nil {
			return nil, unreadableFault(name, err.Error(), "correct that line; put a text with special characters into quotes")
		}
	}
	doc := &Document{entries: entries}
	if err := doc.indexKeys(name); err != nil {
		return nil, err
	}
	if notYAML != nil {
		doc.Notice = fmt.Sprintf("%s: %s; read line by line", name, notYAML)
	}
	return doc, nil
}

// indexKeys finds the first occurrence of each key, which is the one that counts.
func (d *Document) indexKeys(name string) error {
	if len(d.entries) > maxKeys {
		return unreadableFault(name, fmt.Sprintf("more than %d keys", maxKeys), "keep the keys that the loop needs")
	}
	d.first = make(map[string]int, len(d.entries))
	found := false
	for i := range d.entries {
		key := &d.entries[i].key
		if at, ok := d.first[key.Name]; ok {
			key.Repeats = d.entries[at].key.Line
			key.Differs = !d.entries[i].sameValue(d.entries[at])
			continue
		}
		d.first[key.Name] = i
		found = found || plainKey(key.Name)
	}
	if !found {
		return unreadableFault(name, "no key found", "write keys at the start of a line, like name: my-loop")
	}
	return nil
}

// sameValue reports whether two occurrences of a key have the same value. Nested keys are
// not compared.
func (e entry) sameValue(other entry) bool {
	nested := e.block && len(e.items) == 0
	return !nested && e.block == other.block && e.scalar.Text == other.scalar.Text &&
		slices.EqualFunc(e.items, other.items, func(a, b readiness.Value) bool { return a.Text == b.Text })
}

// plainKey reports whether a name looks like a key of a definition: lower-case
// letters and underscores.
func plainKey(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// Scalar returns the text of a key's first occurrence. It reports false if the key is
// absent, or its value is empty or a block collection. The Value then has the place of the
// value, or is zero without the key.
func (d *Document) Scalar(key string) (readiness.Value, bool) {
	e := d.findEntry(key)
	if e == nil {
		return readiness.Value{}, false
	}
	return e.scalar, e.scalar.Text != ""
}

// List returns the items of a key's first occurrence. A single value is a list of one. An
// item may be empty. The list is nil if there are no items.
func (d *Document) List(key string) []readiness.Value {
	e := d.findEntry(key)
	if e == nil {
		return nil
	}
	return e.items
}

// Keys returns all top-level keys in the order of the file, also unknown and repeated
// ones.
func (d *Document) Keys() []Key {
	keys := make([]Key, len(d.entries))
	for i, e := range d.entries {
		keys[i] = e.key
	}
	return keys
}

// Default gives a key that the document does not have a value, which has no place.
func (d *Document) Default(key, text string) {
	if d.findEntry(key) == nil {
		d.add(entry{key: Key{Name: key}, scalar: readiness.Value{Text: text}, items: []readiness.Value{{Text: text}}})
	}
}

// OfFormat makes the loop one of a format, which the key protocol need not name.
func (d *Document) OfFormat(name string) {
	d.format = name
	d.Default("protocol", name)
}

// Include puts items before those of a list, which need not be there.
func (d *Document) Include(key string, items ...string) {
	if d.findEntry(key) == nil {
		d.add(entry{key: Key{Name: key}, block: true})
	}
	e := d.findEntry(key)
	values := make([]readiness.Value, len(items))
	for i, text := range items {
		values[i] = readiness.Value{Text: text, Line: e.scalar.Line, Column: e.scalar.Column}
	}
	e.items = append(values, e.items...)
}

// MakeOptional lets keys of the format be absent: a loop of this kind does not need them.
func (d *Document) MakeOptional(keys ...string) { d.optional = append(d.optional, keys...) }

func (d *Document) add(e entry) {
	if d.first == nil {
		d.first = map[string]int{}
	}
	d.first[e.key.Name] = len(d.entries)
	d.entries = append(d.entries, e)
}

func (d *Document) findEntry(key string) *entry {
	if i, ok := d.first[key]; ok {
		return &d.entries[i]
	}
	return nil
}

// source is a file's text, normalised, and its lines.
type source struct {
	text  string
	lines []string
	ascii bool // columns are bytes
}

// newSource drops a byte-order mark and every carriage return, so that files from other
// systems read the same.
func newSource(data []byte) source {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	text := string(data)
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\r", "")
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return source{text: text, lines: strings.Split(text, "\n"), ascii: utf8.RuneCountInString(text) == len(text)}
}

// restOf returns the rest of a line from a column. Both count from 1, and columns are
// characters.
func (s source) restOf(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	rest := s.lines[line-1]
	if s.ascii {
		return rest[min(max(column-1, 0), len(rest)):]
	}
	for ; column > 1 && rest != ""; column-- {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return rest
}

func tooDeep(name string) error {
	return unreadableFault(name, fmt.Sprintf("nested deeper than %d levels", maxDepth), "a definition is flat: keys with values or lists")
}

func unreadableFault(name, why, fix string) error {
	return &loop.Fault{Exit: 4, What: "the definition " + name + " cannot be read", Why: why, Fix: fix}
}
