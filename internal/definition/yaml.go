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
func parseYAML(text string) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, errors.New("not valid YAML")
		}
	}()
	file, err = parser.ParseBytes([]byte(hideTabs(text)), 0, parser.AllowDuplicateMapKey())
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

// hiddenTab stands for a tab within a text while it is parsed. It is no
// character, so nobody writes it.
const hiddenTab = "\ufdd0"

// hideTabs replaces the tabs between words, which the parser would drop from
// unquoted text. Those that separate a value from its key, its dash or its
// comment stay.
func hideTabs(text string) string {
	if !strings.Contains(text, "\t") || strings.Contains(text, hiddenTab) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		hideInLine(&b, line)
	}
	return b.String()
}

func hideInLine(b *strings.Builder, line string) {
	written := 0
	for i := 0; i < len(line); i++ {
		if line[i] != '\t' {
			continue
		}
		before, after := strings.TrimRight(line[:i], " \t"), strings.TrimLeft(line[i+1:], " \t\n")
		separates := strings.Trim(before, " \t-?") == "" || strings.HasSuffix(before, ":") ||
			after == "" || after[0] == '#' || after[0] == ':'
		if !separates && !strings.ContainsAny(before[len(before)-1:], ",[{") && !strings.ContainsAny(after[:1], ",]}") {
			b.WriteString(line[written:i])
			b.WriteString(hiddenTab)
			written = i + 1
		}
	}
	b.WriteString(line[written:])
}

// showTabs is the inverse of hideTabs for any part of the text.
func showTabs(text string) string {
	if !strings.Contains(text, hiddenTab) {
		return text
	}
	return strings.ReplaceAll(text, hiddenTab, "\t")
}
