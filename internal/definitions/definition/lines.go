package definition

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// tokenKeys have values of one word. A comment directly after the value is cut off.
var tokenKeys = map[string]bool{"tier": true, "permission_mode": true, "worktree": true, "budget_tokens": true}

// readLines reads a text that is not YAML as a script would: a key is a line that starts
// with it, and its list is the lines with dashes below.
func readLines(src source) []entry {
	var entries []entry
	for i := range src.lines {
		if e := readKey(src, i); e != nil {
			entries = append(entries, rescueValue(src, i, *e))
		}
		if len(entries) > maxKeys {
			return entries
		}
	}
	return entries
}

// findAmbiguous returns an error for the place at which a text that is not YAML is
// ambiguous, so that its lines cannot be taken as written.
func findAmbiguous(src source) error {
	begun, end := 0, "" // the last key's line, and the end of its value if it continues below
	below := -1         // columns before the first line below a key without a value; -1: none yet
	for i, line := range src.lines {
		trimmed := strings.TrimLeft(line, " \t")
		_, rest, key := keyLine(line)
		_, _, inner := keyLine(trimmed)
		value, skipped := lineScalar(rest, false)
		switch {
		case key && end != "" && end != blockEnd:
			return &syntaxError{line: begun, why: "no " + end + " at the end of the value"}
		case key:
			begun, end, below = i+1, endOf(rest[skipped:]), -1
			if end == "" && value != "" {
				below = math.MaxInt
			}
		case end != "" && (end != blockEnd || !startsText(line)):
			if strings.Contains(line, end) {
				end = ""
			}
		case strings.HasPrefix(line, "]"), strings.HasPrefix(line, "}"):
			return &syntaxError{line: i + 1, why: line[:1] + " without its beginning"}
		case !startsText(line) && inner:
			indent := len(line) - len(trimmed)
			if indent < below && begun > 0 {
				return &syntaxError{line: i + 1, why: "indented, but not part of the key above"}
			}
			below = indent
		}
	}
	if end != "" && end != blockEnd {
		return &syntaxError{line: begun, why: "no " + end + " at the end of the value"}
	}
	return nil
}

// blockEnd as the end of a value means a block scalar: no text in its lines ends it.
const blockEnd = "\n"

// endOf returns the text that ends a value that continues in the lines below; empty if the
// value does not continue.
func endOf(written string) string {
	if blockHeader.MatchString(written) {
		return blockEnd
	}
	for opens, closes := range map[string]string{`"`: `"`, "'": "'", "[": "]", "{": "}"} {
		if rest, ok := strings.CutPrefix(written, opens); ok && !strings.Contains(rest, closes) {
			return closes
		}
	}
	return ""
}

// readKey reads the key that starts in a line, counted from 0; nil if missing.
func readKey(src source, i int) *entry {
	name, rest, ok := keyLine(src.lines[i])
	if !ok {
		return nil
	}
	text, skipped := lineScalar(rest, tokenKeys[name])
	e := entry{key: Key{Name: name, Line: i + 1, Column: 1}}
	column := utf8.RuneCountInString(name) + 2 + utf8.RuneCountInString(rest[:skipped])
	e.scalar = readiness.Value{Text: text, Line: i + 1, Column: column}
	if text != "" || skipped < len(rest) && strings.ContainsRune(`"'`, rune(rest[skipped])) {
		e.items = append(e.items, e.scalar)
	}
	for n := i + 1; n < len(src.lines) && !endsList(src.lines[n]); n++ {
		if item, ok := listItem(src.lines[n], n+1); ok {
			e.items = append(e.items, item)
		}
	}
	return &e
}

// rescueValue passes a value of several lines, a block scalar or a flow list, to the YAML
// parser by itself, so that a bad line elsewhere does not change its meaning.
func rescueValue(src source, from int, e entry) entry {
	written := src.restOf(e.scalar.Line, e.scalar.Column)
	flow := strings.HasPrefix(written, "[")
	if !flow && !blockHeader.MatchString(written) || len(src.text) > maxTreeBytes {
		return e
	}
	to := from + 1
	for to < len(src.lines) && (!startsText(src.lines[to]) || src.lines[to][0] == ']') {
		to++
	}
	if parsed, err := parsePart(src, from, to); err == nil && parsed.key.Name == e.key.Name {
		return parsed
	}
	if items := flowItems(e.scalar, src.lines[from+1:to]); items != nil {
		e.items = items
	}
	return e
}

// blockHeader matches the beginning of a block scalar. Other text with the same first
// character, like > 90 percent or ||, is a plain value.
var blockHeader = lazyregexp.New(`^[|>]([1-9]?[+-]?|[+-][1-9])[ \t]*([ \t]#.*)?$`)

// flowItems splits a flow list that is not YAML because a glob in it begins with a star:
// [*] is as unbounded as ["*"]. It may continue in the lines below. The result is nil if
// the value is not such a list. Commas in braces or quotes do not separate items.
func flowItems(list readiness.Value, below []string) []readiness.Value {
	parts := []string{list.Text}
	for _, line := range below {
		if text := strings.Trim(line[:commentStart(line, false)], " \t"); text != "" {
			parts = append(parts, text)
		}
	}
	inner, opens := strings.CutPrefix(strings.Join(parts, " "), "[")
	inner, closes := strings.CutSuffix(inner, "]")
	if !opens || !closes || strings.ContainsAny(inner, "[]") {
		return nil
	}
	var items []readiness.Value
	column := list.Column + 1
	for _, part := range splitFlow(inner) {
		text, skipped := lineScalar(part, false)
		item := readiness.Value{Text: text, Line: list.Line, Column: column + utf8.RuneCountInString(part[:skipped])}
		if !strings.HasSuffix(list.Text, "]") {
			item.Column = list.Column // The lines were joined: only the place of the list is known.
		}
		items = append(items, item)
		column += utf8.RuneCountInString(part) + 1
	}
	if last := len(items) - 1; last > 0 && items[last].Text == "" {
		return items[:last] // The last item may end with a comma.
	}
	return items
}

// splitFlow splits at commas outside of quotes and braces.
func splitFlow(inner string) []string {
	var parts []string
	start, level := 0, 0
	quote := byte(0)
	for i := range len(inner) {
		switch c := inner[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			level++
		case c == '}':
			level--
		case c == ',' && level <= 0:
			parts = append(parts, inner[start:i])
			start = i + 1
		}
	}
	return append(parts, inner[start:])
}

// keyLine splits a line that starts with a key and a colon.
func keyLine(line string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(line, ":")
	if !ok || name == "" || len(name) > 64 {
		return "", "", false
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		other := '0' <= c && c <= '9' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return "", "", false
		}
	}
	return name, rest, true
}

// endsList reports whether a line is the first after a key's list. Dashes at
// the start of a line still belong to it.
func endsList(line string) bool {
	return startsText(line) && line[0] != '#' && line != "-" && !strings.HasPrefix(line, "- ")
}

func startsText(line string) bool {
	return line != "" && line[0] != ' ' && line[0] != '\t'
}

func listItem(line string, number int) (readiness.Value, bool) {
	trimmed := strings.TrimLeft(line, " \t")
	rest, ok := strings.CutPrefix(trimmed, "-")
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return readiness.Value{}, false
	}
	text, skipped := lineScalar(rest, false)
	before := line[:len(line)-len(rest)+skipped]
	return readiness.Value{Text: text, Line: number, Column: utf8.RuneCountInString(before) + 1}, true
}

// lineScalar returns the value in the rest of a line, trimmed and without comment and one
// pair of quotes, and how many bytes are before it. If glued, a comment needs no white
// space before it.
func lineScalar(rest string, glued bool) (text string, skipped int) {
	value := strings.TrimLeft(rest, " \t")
	skipped = len(rest) - len(value)
	value = strings.TrimRight(value[:commentStart(value, glued)], " \t")
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return value, skipped
}

// commentStart returns the index of the # that begins a comment: outside of quotes, at the
// start or after white space or, if glued, anywhere. A quote counts only at the start of a
// word and only if it is closed, so that don't is a word.
func commentStart(value string, glued bool) int {
	word := true
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case (word || glued) && c == '#':
			return i
		case word && (c == '"' || c == '\''):
			if length := strings.IndexByte(value[i+1:], c); length >= 0 {
				i += length + 1
			}
			word = false
		default:
			word = c == ' ' || c == '\t'
		}
	}
	return len(value)
}

// cutComment cuts a comment directly after a value: L1#first.
func cutComment(text string) string {
	before, _, _ := strings.Cut(text, "#")
	return strings.TrimRight(before, " \t")
}
