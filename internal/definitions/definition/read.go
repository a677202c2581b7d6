package definition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// readEntries reads the entries of a text. The error says why the text is not YAML; the
// entries are then read line by line, as a script would. With errTooDeep there are none.
func readEntries(src source) ([]entry, error) {
	entries, err := readYAML(src)
	if err != nil && !errors.Is(err, errTooDeep) {
		entries = readLines(src)
	}
	return entries, err
}

// readYAML reads the first YAML document. A key whose lines have only one meaning in YAML is
// read from its lines. Other keys are passed to the YAML parser, which is slow, and so is
// the whole text if there is anything between its keys.
func readYAML(src source) ([]entry, error) {
	if why := src.tooHeavy(); why != "" {
		return nil, errors.New(why)
	}
	src = firstDocument(src)
	starts, ok := keyStarts(src)
	if !ok {
		return parseTree(src)
	}
	entries := make([]entry, 0, len(starts)-1)
	items := 0
	for i, from := range starts[:len(starts)-1] {
		to := starts[i+1]
		e, ok := readSimple(src, from, to)
		if !ok {
			var err error
			if e, err = parsePart(src, from, to); err != nil {
				return nil, err
			}
		}
		if len(e.items) != 1 || e.items[0] != e.scalar {
			items += len(e.items)
		}
		if items > maxItems {
			return nil, fmt.Errorf("more than %d list items", maxItems)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// keyStarts returns the lines, counted from 0, at which keys begin, and then the number of
// lines. It reports false if there is no key, or if the text has anything but keys, values,
// comments and the marker of a document's start.
func keyStarts(src source) ([]int, bool) {
	starts := make([]int, 0, len(src.lines)+1)
	for i, line := range src.lines {
		name, rest, key := keyLine(line)
		switch {
		case key && plainKey(name) && (rest == "" || rest[0] == ' '):
			starts = append(starts, i)
		case len(starts) > 0 && (!endsList(line) || strings.ContainsRune("]}", rune(line[0])) && isEnd(line[1:])):
		case isBlank(line), line == "---":
		default:
			return nil, false
		}
	}
	return append(starts, len(src.lines)), len(starts) > 0
}

// parsePart parses the lines of one key, counted from 0. Places in the result and in the
// error are those in the whole text.
func parsePart(src source, from, to int) (entry, error) {
	part := source{text: strings.Join(src.lines[from:to], "\n"), lines: src.lines[from:to], ascii: src.ascii}
	if why := part.tooHeavy(); why != "" {
		return entry{}, errors.New(why)
	}
	entries, err := parseTree(part)
	if syntax, ok := errors.AsType[*syntaxError](err); ok && syntax.line > 0 {
		syntax.line += from
	}
	if err != nil {
		return entry{}, err
	}
	if len(entries) != 1 {
		return entry{}, &syntaxError{line: from + 1, why: "a key inside another value"}
	}
	e := entries[0]
	e.key.Line += from
	e.scalar.Line += from
	for i := range e.items {
		e.items[i].Line += from
	}
	return e, nil
}

// readSimple reads a key whose value is on its line, or is a list with an item on each line
// below. It reports false if a YAML parser may read the lines in another way than readKey;
// they may still be valid.
func readSimple(src source, from, to int) (entry, bool) {
	name, rest, _ := keyLine(src.lines[from])
	value := strings.TrimLeft(rest, " ")
	flow, list := strings.HasPrefix(value, "["), isEnd(rest)
	switch {
	case !simpleBytes(src.lines[from]):
		return entry{}, false
	case list:
	case flow && !simpleFlow(value), !flow && !simpleScalar(value, tokenKeys[name]):
		return entry{}, false
	}
	dash := 0 // column of the dashes
	for _, line := range src.lines[from+1 : to] {
		if !simpleBytes(line) {
			return entry{}, false
		}
		if isBlank(line) {
			continue
		}
		body := strings.TrimLeft(line, " ")
		column := len(line) - len(body) + 1
		item, ok := strings.CutPrefix(body, "- ")
		if !list || !ok || dash > 0 && dash != column || !simpleScalar(strings.TrimLeft(item, " "), false) {
			return entry{}, false
		}
		dash = column
	}
	if list && dash == 0 {
		return entry{}, false
	}
	e := readKey(src, from)
	switch {
	case list:
		e.block, e.scalar = true, readiness.Value{Line: e.items[0].Line, Column: dash}
	case flow:
		e.items = flowItems(e.scalar, nil)
	}
	return *e, !flow || e.items != nil
}

// simpleBytes reports whether every reader counts and shows the characters of a line in the
// same way: it has no tab, no control, and no character of the range of byte-order marks
// and of the characters that replace others while a text is parsed.
func simpleBytes(line string) bool {
	for i := range len(line) {
		if c := line[i]; c < ' ' || c == 0x7f || c == 0xef {
			return false
		}
	}
	return true
}

// simpleScalar reports whether lineScalar and YAML agree on a value and on the
// comment after it.
func simpleScalar(value string, token bool) bool {
	if end := quotedEnd(value); end > 0 {
		return isEnd(value[end:])
	}
	if value == "" || !simpleFirst(value[0]) {
		return false
	}
	text, _, comment := strings.Cut(value, " #")
	switch {
	case strings.Contains(text, ": "), strings.HasSuffix(text, ":"), comment && strings.ContainsAny(text, `"'`):
		return false
	}
	return !token || !strings.Contains(text, "#")
}

// simpleFlow reports whether flowItems and YAML agree on a list in brackets: one
// word or one text in quotes between two commas.
func simpleFlow(list string) bool {
	for at := 1; ; at++ {
		at += leadingSpaces(list[at:])
		length := quotedEnd(list[at:])
		if strings.Contains(list[at:at+length], "#") {
			return false
		}
		if length == 0 {
			for length < len(list)-at && (simpleFirst(list[at+length]) || length > 0 && strings.ContainsRune("*-", rune(list[at+length]))) {
				length++
			}
		}
		at += length
		at += leadingSpaces(list[at:])
		switch {
		case length == 0 || at == len(list):
			return false
		case list[at] == ']':
			return isEnd(list[at+1:]) && (!strings.Contains(list[at:], "#") || !strings.ContainsAny(list[:at], `"'`))
		case list[at] != ',':
			return false
		}
	}
}

// quotedEnd returns the length of the text in quotes at the start of a value, with its
// quotes; zero if there is none, or if it has escapes.
func quotedEnd(value string) int {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return 0
	}
	end := strings.IndexByte(value[1:], value[0])
	if end <= 0 || strings.Contains(value[1:end+1], `\`) {
		return 0
	}
	return end + 2
}

// simpleFirst reports whether a plain scalar may begin with a byte.
func simpleFirst(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '/' || c == '$'
}

// isEnd reports whether the rest of a line after a value has only spaces and a comment.
func isEnd(rest string) bool {
	return rest == "" || rest[0] == ' ' && isBlank(rest)
}

// isBlank reports whether a line has only spaces and a comment.
func isBlank(line string) bool {
	line = strings.TrimLeft(line, " ")
	return line == "" || line[0] == '#'
}

func leadingSpaces(text string) int {
	return len(text) - len(strings.TrimLeft(text, " "))
}
