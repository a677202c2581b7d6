package definition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Limits of a text for the YAML parser, whose time grows with the square of nesting and of
// empty lines in a row. They are far above what people write.
const (
	maxTreeBytes = 32 << 10
	maxOpeners   = 1000 // [ and { in the whole file
	maxDashes    = 64   // list markers at the start of one line
	maxBlank     = 100  // empty lines in a row
	maxLine      = 8 << 10
	maxItems     = 2000 // list items in the whole file
)

var errTooDeep = errors.New("nested too deeply")

// isBomb reports whether the text may be nested so deeply that parsing it costs too much. It
// counts only opening brackets, so that quotes cannot deceive it.
func (s source) isBomb() bool {
	if strings.Count(s.text, "[")+strings.Count(s.text, "{") > maxOpeners {
		return true
	}
	for _, line := range s.lines {
		if countDashes(line) > maxDashes {
			return true
		}
	}
	return false
}

func countDashes(line string) int {
	n := 0
	for {
		line = strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(line, "- ") {
			return n
		}
		line = line[2:]
		n++
	}
}

// tooHeavy says why the text must not be passed to the YAML parser; empty if it may be.
func (s source) tooHeavy() string { return s.heavierThan(maxTreeBytes) }

// heavierThan is tooHeavy for another size.
func (s source) heavierThan(most int) string {
	if len(s.text) > most {
		return fmt.Sprintf("larger than %d bytes", most)
	}
	if showMarks(s.text) != s.text {
		return "with invalid characters"
	}
	blank := 0
	for _, line := range s.lines {
		if blank++; strings.TrimSpace(line) != "" {
			blank = 0
		}
		switch {
		case blank > maxBlank:
			return fmt.Sprintf("more than %d empty lines in a row", maxBlank)
		case len(line) > maxLine:
			return fmt.Sprintf("a line longer than %d bytes", maxLine)
		}
	}
	return ""
}

// syntaxError says where a text is not YAML. Line and column count from 1; zero means
// unknown.
type syntaxError struct {
	line, column int
	why          string
}

func (e *syntaxError) Error() string {
	switch {
	case e.line == 0:
		return "not valid YAML"
	case e.column == 0:
		return fmt.Sprintf("not valid YAML (line %d: %s)", e.line, e.why)
	}
	return fmt.Sprintf("not valid YAML (line %d, column %d: %s)", e.line, e.column, e.why)
}

// parseYAML calls the parser, and turns its panics and messages of several lines into errors
// of one line.
func parseYAML(src source) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, &syntaxError{}
		}
	}()
	file, err = parser.ParseBytes([]byte(hideMarks(src)), 0, parser.AllowDuplicateMapKey())
	var syntax interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		at := syntax.GetToken().Position
		return nil, &syntaxError{at.Line, at.Column, syntax.GetMessage()}
	}
	if err != nil {
		return nil, &syntaxError{}
	}
	return file, nil
}

// firstDocument returns the source up to the marker that ends the first document.
func firstDocument(src source) source {
	begun, end := false, 0
	for i, line := range src.lines {
		starts, ends := isMarker(line, "---"), isMarker(line, "...")
		if begun && (starts || ends) {
			return source{text: src.text[:end], lines: src.lines[:i], ascii: src.ascii}
		}
		trimmed := strings.TrimSpace(line)
		begun = begun || starts || trimmed != "" && trimmed[0] != '#' && line[0] != '%' && !ends
		end += len(line) + 1
	}
	return src
}

func isMarker(line, mark string) bool {
	rest, ok := strings.CutPrefix(line, mark)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// Characters that replace others while a text is parsed. They are
// noncharacters of Unicode, which nobody writes.
const (
	hiddenTab   = "\ufdd0"
	hiddenTag   = "\ufdd1"
	hiddenMark  = "\ufdd2"
	hiddenAlias = "\ufdd3"
)

var shown = strings.NewReplacer(hiddenTab, "\t", hiddenTag, "!", hiddenMark, "&", hiddenAlias, "*")

// hideMarks turns tags, anchors and aliases into plain text for the parser, because they are
// plain text in a definition, and keeps the tabs between words, which the parser would
// drop. Each character is replaced by one other, so that positions stay.
func hideMarks(src source) string {
	if !strings.ContainsAny(src.text, "\t!&*") {
		return src.text
	}
	var b strings.Builder
	b.Grow(len(src.text) + 64)
	for i, line := range src.lines {
		next := i + 1
		for next < len(src.lines) && isBlank(strings.TrimLeft(src.lines[next], "\t ")) {
			next++
		}
		below := next < len(src.lines) && (!startsText(src.lines[next]) || src.lines[next][0] == '-')
		hideInLine(&b, line, below)
		b.WriteByte('\n')
	}
	return b.String()
}

func hideInLine(b *strings.Builder, line string, below bool) {
	if !strings.ContainsAny(line, "\t!&*") {
		b.WriteString(line)
		return
	}
	body := bodyStart(line)
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			end := i + len(line[i:]) - len(strings.TrimLeft(line[i:], " \t"))
			if i > body && betweenWords(line[i-1:i], line[end:]) {
				b.WriteString(strings.ReplaceAll(line[i:end], "\t", hiddenTab))
			} else {
				b.WriteString(line[i:end])
			}
			i = end
			continue
		}
		b.WriteString(hiddenMarks(line, i, below))
		i++
	}
}

// hiddenMarks returns the byte of a line at i, or the character that hides it. Below says
// whether the value of the line may be in the lines below.
func hiddenMarks(line string, i int, below bool) string {
	switch c := line[i]; {
	case c != '!' && c != '&' && c != '*' || !beginsWord(line[:i]):
	case c == '*' && i+1 < len(line) && isWordByte(line[i+1]):
		return hiddenAlias
	case c == '!' && (!below || !isDecoration(line[:i], line[i:])):
		return hiddenTag
	case c == '&' && (!below || !isDecoration(line[:i], line[i:])):
		return hiddenMark
	}
	return line[i : i+1]
}

// bodyStart returns where a line's text begins after indentation and list markers.
func bodyStart(line string) int {
	at := 0
	for at < len(line) {
		switch marker := line[at]; {
		case marker == ' ' || marker == '\t':
			at++
		case (marker == '-' || marker == '?') && (at+1 == len(line) || line[at+1] == ' ' || line[at+1] == '\t'):
			at++
		default:
			return at
		}
	}
	return at
}

// betweenWords reports whether tabs between a byte and the text after it belong to a value.
// Otherwise they separate a value from its key, its neighbour or its comment. Next to a
// comma they may be either, and hiding them harms neither.
func betweenWords(last, after string) bool {
	if after == "" {
		return false
	}
	first := after[:1]
	switch {
	case last == ":" || first == "#":
		return false
	case first == ":" && (len(after) == 1 || strings.ContainsAny(after[1:2], " \t")):
		return false
	case strings.Contains(",[{", last):
		return !strings.Contains(`"'[{`, first)
	case strings.Contains(",]}", first):
		return !strings.Contains(`"'[]{}`, last)
	}
	return true
}

func beginsWord(before string) bool {
	return before == "" || strings.ContainsAny(before[len(before)-1:], " \t,[{")
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// isDecoration reports whether a tag or an anchor is alone after a top-level key. If there
// is a block below, the parser must see the tag or anchor.
func isDecoration(before, word string) bool {
	if !strings.HasSuffix(strings.TrimRight(before, " \t"), ":") || !startsText(before) || before[0] == '-' {
		return false
	}
	_, rest, _ := strings.Cut(word, " ")
	rest = strings.TrimLeft(rest, " \t")
	return rest == "" || strings.ContainsAny(rest[:1], "#|>")
}

// showMarks is the inverse of hideMarks, for any part of the text.
func showMarks(text string) string { return shown.Replace(text) }

// lostTabLine returns the line of a plain value from which the parser dropped a tab that
// hideMarks did not keep, or 0.
func (s source) lostTabLine(e entry) int {
	if !strings.Contains(s.text, "\t") {
		return 0
	}
	for _, v := range append([]readiness.Value{e.scalar}, e.items...) {
		written := s.restOf(v.Line, v.Column)
		if written == "" || strings.ContainsAny(written[:1], "\"'|>[{") || strings.HasPrefix(written, v.Text) {
			continue
		}
		// The text of several lines begins with the first.
		if !strings.HasPrefix(v.Text, strings.TrimRight(written, " \t")) {
			return v.Line
		}
	}
	return 0
}
