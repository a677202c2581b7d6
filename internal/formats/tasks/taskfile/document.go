// Package taskfile reads and edits the four files of an agent that works in cycles:
// TASKS.md, CONTEXT.md, HEARTBEAT.md and INBOX.md. People write in them too, so an
// edit changes only the lines that it is about: all other bytes stay, line ends and
// trailing blanks included.
//
// It performs no I/O and reads no clock. It never acts on what a text says, and text
// that it writes never becomes a step, an entry or a field by itself.
package taskfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 4 << 20

const (
	bom   = "\uFEFF"
	stamp = "2006-01-02T15:04:05Z"
)

// Problem is a part of a file that cannot be used. Line and Column count from 1, the
// column in characters.
type Problem struct {
	Line    int
	Column  int
	Message string
}

// String returns the place and the message.
func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// UnreadableError means that a file as a whole cannot be read and should be put aside.
type UnreadableError struct {
	Line int
	Why  string
}

func (e *UnreadableError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// Check returns an *UnreadableError for a text that is too large, has a NUL byte or is
// not UTF-8. The parsers accept such a text too, and keep its bytes.
func Check(text string) error {
	if len(text) > MaxFile {
		return &UnreadableError{Line: 1, Why: fmt.Sprintf("%d bytes, and the most that is read are %d", len(text), MaxFile)}
	}
	if at := strings.IndexByte(text, 0); at >= 0 {
		return &UnreadableError{Line: lineAt(text, at), Why: "a NUL byte"}
	}
	if utf8.ValidString(text) {
		return nil
	}
	for at, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[at:], "\uFFFD") {
			return &UnreadableError{Line: lineAt(text, at), Why: "not UTF-8"}
		}
	}
	return nil
}

func lineAt(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// document is a text as lines.
type document struct {
	bom   string
	eol   string   // the line end of most lines
	lines []string // each with its own line end
	plain []bool   // the line is not in a comment or a code block
}

func newDocument(text string) document {
	d := document{eol: "\n"}
	if rest, ok := strings.CutPrefix(text, bom); ok {
		d.bom, text = bom, rest
	}
	if crlf := strings.Count(text, "\r\n"); 2*crlf > strings.Count(text, "\n") {
		d.eol = "\r\n"
	}
	d.lines = slices.AppendSeq(make([]string, 0, strings.Count(text, "\n")+1), strings.Lines(text))
	d.plain = plainLines(text, d.lines)
	return d
}

// String returns the whole file.
func (d *document) String() string {
	var b strings.Builder
	size := len(d.bom)
	for _, line := range d.lines {
		size += len(line)
	}
	b.Grow(size)
	b.WriteString(d.bom)
	for _, line := range d.lines {
		b.WriteString(line)
	}
	return b.String()
}

// insert adds lines before the line with the index at. They have no line ends.
func (d *document) insert(at int, lines ...string) {
	fresh := make([]string, len(lines))
	for i, line := range lines {
		fresh[i] = line + d.eol
	}
	d.insertLines(at, fresh)
}

// insertLines adds lines with their line ends before the line with the index at. A file
// whose last line has none keeps it that way.
func (d *document) insertLines(at int, lines []string) {
	if last := at - 1; last >= 0 && !strings.HasSuffix(d.lines[last], "\n") {
		d.lines[last] += d.eol
		lines[len(lines)-1], _ = cutLineEnd(lines[len(lines)-1])
	}
	d.lines = slices.Insert(d.lines, at, lines...)
	d.plain = slices.Insert(d.plain, at, slices.Repeat([]bool{true}, len(lines))...)
}

// insertApart inserts lines with a blank line above them and below.
func (d *document) insertApart(at int, lines ...string) {
	if at > 0 && !d.blank(at-1) {
		lines = append([]string{""}, lines...)
	}
	if at < len(d.lines) && !d.blank(at) {
		lines = append(lines, "")
	}
	d.insert(at, lines...)
}

// appendText adds text at the end of the file. It is escaped where it would end a
// comment or a code block that is open above.
func (d *document) appendText(text string) {
	rows := foldRows(text)
	if len(rows) == 0 {
		return
	}
	if last := len(d.lines) - 1; last >= 0 && !strings.HasSuffix(d.lines[last], "\n") {
		d.lines[last] += d.eol
	}
	before, eol := d.String(), d.eol
	add := func() document {
		d.insert(len(d.lines), rows...)
		fresh := newDocument(d.String())
		fresh.eol = eol
		return fresh
	}
	plain := slices.Clone(d.plain)
	fresh := add()
	if !slices.Equal(plain, fresh.plain[:len(plain)]) {
		for i, row := range rows {
			rows[i] = escapeRow(row)
		}
		*d = newDocument(before)
		fresh = add()
	}
	*d = fresh
}

// blank reports whether a line has no text.
func (d *document) blank(i int) bool { return strings.TrimSpace(d.lines[i]) == "" }

// lastText returns the index after the last line of [from, to) that has text.
func (d *document) lastText(from, to int) int {
	for to > from && d.blank(to-1) {
		to--
	}
	return to
}

// section finds the first heading with one of the names and returns the lines below
// it, up to the next heading that is not deeper. Without such a heading there are none.
func (d *document) section(names ...string) (from, to int, found bool) {
	level := 0
	for i, line := range d.lines {
		l, title := heading(line)
		switch {
		case l == 0 || !d.plain[i]:
		case level > 0 && l <= level:
			return from, i, true
		case level == 0 && slices.Contains(names, sectionName(title)):
			level, from = l, i+1
		}
	}
	if level == 0 {
		from = len(d.lines)
	}
	return from, len(d.lines), level > 0
}

// addSection adds a heading at the end of the file and returns the index after it.
func (d *document) addSection(title string) int {
	at := d.lastText(0, len(d.lines))
	lines := []string{"## " + title}
	if at > 0 {
		lines = []string{"", "## " + title}
	}
	d.insert(at, lines...)
	return at + len(lines)
}

// plainLines reports which lines are outside of comments and code blocks. A comment or
// a block that is never closed is plain text: half of one must not hide the rest.
func plainLines(text string, lines []string) []bool {
	plain := slices.Repeat([]bool{true}, len(lines))
	if !strings.Contains(text, "-->") && !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return plain
	}
	lastComment, lastFence := -1, map[byte]int{}
	for i, line := range lines {
		if strings.Contains(line, "-->") {
			lastComment = i
		}
		if mark, _, info := fence(line); mark != 0 && info == "" {
			lastFence[mark] = i
		}
	}
	open := map[byte]int{} // nothing further below closes a fence of this size, or a longer one
	for i := 0; i < len(lines); i++ {
		end := -1
		if tail, ok := strings.CutPrefix(strings.TrimLeft(lines[i], " \t"), "<!--"); ok {
			if strings.Contains(tail, "-->") {
				end = i
			}
			for j := i + 1; end < 0 && j <= lastComment; j++ {
				if strings.Contains(lines[j], "-->") {
					end = j
				}
			}
		} else if mark, size, _ := fence(lines[i]); mark != 0 && (open[mark] == 0 || size < open[mark]) {
			for j := i + 1; end < 0 && j <= lastFence[mark]; j++ {
				if m, n, info := fence(lines[j]); m == mark && n >= size && info == "" {
					end = j
				}
			}
			if end < 0 {
				open[mark] = size
			}
		}
		for ; end >= i && i <= end; i++ {
			plain[i] = false
		}
		if end >= 0 {
			i--
		}
	}
	return plain
}

// fence returns the character and the length of a code fence, and the text after it.
func fence(line string) (mark byte, size int, info string) {
	line = strings.TrimLeft(line, " \t")
	if len(line) < 3 || line[0] != '`' && line[0] != '~' {
		return 0, 0, ""
	}
	rest := strings.TrimLeft(line, line[:1])
	if size = len(line) - len(rest); size < 3 {
		return 0, 0, ""
	}
	info = strings.TrimSpace(rest)
	if line[0] == '`' && strings.Contains(info, "`") {
		return 0, 0, ""
	}
	return line[0], size, info
}

// heading returns the level and the text of a Markdown heading, or 0.
func heading(line string) (level int, title string) {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 || trimmed == "" || trimmed[0] != '#' {
		return 0, ""
	}
	rest := strings.TrimLeft(trimmed, "#")
	level = len(trimmed) - len(rest)
	title = strings.TrimSpace(rest)
	if level > 6 || title != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	return level, title
}

// sectionName is a heading as it is compared: without case, marks and closing signs.
func sectionName(title string) string {
	return strings.ToLower(strings.Trim(title, "#*_: \t"))
}

// isRule reports whether a line is a thematic break.
func isRule(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= 3 && strings.ContainsRune("-*_", rune(line[0])) && strings.Trim(line, line[:1]) == ""
}

// cutLineEnd splits a line from its line end.
func cutLineEnd(line string) (text, end string) {
	text = strings.TrimSuffix(line, "\n")
	if text != line {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, line[len(text):]
}

// columns counts the columns before the first character of a line.
func columns(line string) int {
	n := 0
	for i := range len(line) {
		switch line[i] {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}
