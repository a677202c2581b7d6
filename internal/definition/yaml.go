package definition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of what is given to the YAML parser, whose time grows with the square
// of nesting and of empty lines in a row. They lie far above what people write.
const (
	maxTreeBytes = 64 << 10
	maxOpeners   = 1000 // [ and { in the whole file
	maxDashes    = 64   // list markers at the start of one line
	maxBlank     = 100  // empty lines in a row
)

var errTooDeep = errors.New("nested too deeply")

// bomb reports whether the text may nest so deeply that parsing it costs too
// much. Counting what opens, and not what closes, cannot be deceived by quotes.
func (s source) bomb() bool {
	if strings.Count(s.text, "[")+strings.Count(s.text, "{") > maxOpeners {
		return true
	}
	for _, line := range s.lines {
		if dashes(line) > maxDashes {
			return true
		}
	}
	return false
}

func dashes(line string) int {
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

// heavy says why the text should not be parsed as YAML, or nothing.
func (s source) heavy() string {
	if len(s.text) > maxTreeBytes {
		return fmt.Sprintf("larger than %d bytes", maxTreeBytes)
	}
	if show(s.text) != s.text {
		return "with characters that are none"
	}
	if !strings.Contains(s.text, "\n\n\n") {
		return ""
	}
	blank := 0
	for _, line := range s.lines {
		if blank++; strings.TrimSpace(line) != "" {
			blank = 0
		}
		if blank > maxBlank {
			return fmt.Sprintf("more than %d empty lines in a row", maxBlank)
		}
	}
	return ""
}

// parseYAML is the parser with its panics and multi-line messages turned into
// one-line errors.
func parseYAML(src source) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, errors.New("not valid YAML")
		}
	}()
	file, err = parser.ParseBytes([]byte(hide(src)), 0, parser.AllowDuplicateMapKey())
	var syntax interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		at := syntax.GetToken().Position
		return nil, fmt.Errorf("not valid YAML (line %d, column %d: %s)", at.Line, at.Column, syntax.GetMessage())
	}
	if err != nil {
		return nil, errors.New("not valid YAML")
	}
	return file, nil
}

// firstDocument is the source up to the marker that ends the first document.
func firstDocument(src source) source {
	begun, end := false, 0
	for i, line := range src.lines {
		starts, ends := marker(line, "---"), marker(line, "...")
		if begun && (starts || ends) {
			return source{text: src.text[:end], lines: src.lines[:i]}
		}
		trimmed := strings.TrimSpace(line)
		begun = begun || starts || trimmed != "" && trimmed[0] != '#' && line[0] != '%' && !ends
		end += len(line) + 1
	}
	return src
}

func marker(line, mark string) bool {
	rest, ok := strings.CutPrefix(line, mark)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// Characters that stand for others while a text is parsed. They are
// noncharacters of Unicode, which nobody writes.
const (
	hiddenTab   = "\ufdd0"
	hiddenTag   = "\ufdd1"
	hiddenMark  = "\ufdd2"
	hiddenAlias = "\ufdd3"
	hiddenBytes = "\xef\xb7" // what all of them begin with
)

var shown = strings.NewReplacer(hiddenTab, "\t", hiddenTag, "!", hiddenMark, "&", hiddenAlias, "*")

// hide makes the text of tags, anchors and aliases plain text for the parser,
// which is what a definition takes them for, and keeps the tabs between words,
// which the parser would drop. One character stands for one, so places stay.
func hide(src source) string {
	if !strings.ContainsAny(src.text, "\t!&*") {
		return src.text
	}
	var b strings.Builder
	b.Grow(len(src.text) + 64)
	for i, line := range src.lines {
		next := ""
		if i+1 < len(src.lines) {
			next = src.lines[i+1]
		}
		hideInLine(&b, line, next)
		b.WriteByte('\n')
	}
	return b.String()
}

func hideInLine(b *strings.Builder, line, next string) {
	written := 0
	for i := 0; i < len(line); i++ {
		hidden := ""
		switch c := line[i]; {
		case c == '\t' && betweenWords(line[:i], line[i+1:]):
			hidden = hiddenTab
		case c != '!' && c != '&' && c != '*' || !beginsWord(line[:i]):
		case c == '*' && i+1 < len(line) && wordByte(line[i+1]):
			hidden = hiddenAlias
		case c == '!' && !decorates(line[:i], line[i:], next):
			hidden = hiddenTag
		case c == '&' && !decorates(line[:i], line[i:], next):
			hidden = hiddenMark
		}
		if hidden != "" {
			b.WriteString(line[written:i])
			b.WriteString(hidden)
			written = i + 1
		}
	}
	b.WriteString(line[written:])
}

// betweenWords reports whether a tab belongs to a text. Otherwise it separates
// a value from its key, its dash, its neighbour or its comment.
func betweenWords(before, after string) bool {
	before, after = strings.TrimRight(before, " \t"), strings.TrimLeft(after, " \t")
	if strings.Trim(before, " \t-?") == "" || after == "" {
		return false
	}
	return !strings.ContainsAny(before[len(before)-1:], ":,[{") && !strings.ContainsAny(after[:1], "#:,]}")
}

func beginsWord(before string) bool {
	return before == "" || strings.ContainsAny(before[len(before)-1:], " \t,[{")
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// decorates reports whether a tag or an anchor stands alone between a key and
// the block below it. The parser must then see it for what it is.
func decorates(before, word, next string) bool {
	if !strings.HasSuffix(strings.TrimRight(before, " \t"), ":") {
		return false
	}
	_, rest, _ := strings.Cut(word, " ")
	rest = strings.TrimLeft(rest, " \t")
	if rest != "" && !strings.ContainsAny(rest[:1], "#|>") {
		return false
	}
	return !startsText(next) || strings.HasPrefix(next, "-")
}

// show is the inverse of hide for any part of the text.
func show(text string) string {
	if !strings.Contains(text, hiddenBytes) {
		return text
	}
	return shown.Replace(text)
}
