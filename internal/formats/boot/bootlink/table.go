package bootlink

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Row is a row of a Markdown table.
type Row struct {
	Label string // its first cell, without emphasis and backticks
	Value string // the first text in backticks after it, else the second cell
	Cells []string
	Line  int // from 1
	Head  bool

	columns []int // of the cells, in characters from 1
	at      int   // the column of Value
	table   int   // which table of the document it is in
	isCode  bool  // Value is in backticks
}

// line is a line of a document, if it is neither code nor a comment.
type line struct {
	number int
	text   string
}

// readLines returns the lines of a document without those in fences and comments.
func readLines(src []byte) []line {
	var lines []line
	fence, comment := "", false
	number := 0
	for raw := range bytes.Lines(bytes.TrimPrefix(src, []byte("\ufeff"))) {
		number++
		text := strings.TrimRight(string(raw), "\r\n")
		trimmed := strings.TrimLeft(text, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" \t") == "" {
				fence = ""
			}
			continue
		case !comment && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
			continue
		}
		text, comment = withoutComments(text, comment)
		lines = append(lines, line{number, text})
	}
	return lines
}

// withoutComments replaces comments by spaces, so that columns stay.
func withoutComments(text string, inside bool) (string, bool) {
	var b strings.Builder
	for text != "" {
		mark := "<!--"
		if inside {
			mark = "-->"
		}
		at := strings.Index(text, mark)
		if at < 0 {
			at, mark = len(text), ""
		}
		part := text[:at]
		if inside {
			part = strings.Repeat(" ", utf8.RuneCountInString(part))
		}
		b.WriteString(part + strings.Repeat(" ", len(mark)))
		text = text[at+len(mark):]
		inside = inside != (mark != "")
	}
	return b.String(), inside
}

// readTables returns the rows of all tables of a document.
func readTables(src []byte) []Row {
	var rows []Row
	table, before := 0, 0
	for _, l := range readLines(src) {
		trimmed := strings.TrimSpace(l.text)
		if !strings.HasPrefix(trimmed, "|") || len(trimmed) < 2 {
			continue
		}
		if l.number != before+1 {
			table++
		}
		before = l.number
		if strings.Trim(trimmed, "|-: \t") == "" && strings.Contains(trimmed, "-") {
			if len(rows) > 0 && rows[len(rows)-1].Line == l.number-1 {
				rows[len(rows)-1].Head = true
			}
			continue
		}
		rows = append(rows, readRow(l, table))
	}
	return rows
}

func readRow(l line, table int) Row {
	r := Row{Line: l.number, table: table}
	for from, end := range cellBounds(l.text) {
		cell := l.text[from:end]
		start := from + len(cell) - len(strings.TrimLeft(cell, " \t"))
		r.columns = append(r.columns, utf8.RuneCountInString(l.text[:start])+1)
		r.Cells = append(r.Cells, strings.ReplaceAll(strings.TrimSpace(cell), `\|`, "|"))
	}
	if len(r.Cells) == 0 {
		return r
	}
	r.Label = strings.TrimSpace(strings.Trim(r.Cells[0], "*_`: "))
	for i, cell := range r.Cells[1:] {
		text, offset, isCode := codeSpan(cell)
		if i == 0 || isCode {
			r.Value, r.at, r.isCode = text, r.columns[i+1]+offset, isCode
		}
		if isCode {
			break
		}
	}
	return r
}

// cellBounds returns where the cells of a row begin and end. A bar that is escaped or
// in backticks is text.
func cellBounds(text string) func(yield func(from, end int) bool) {
	return func(yield func(from, end int) bool) {
		text := strings.TrimRight(text, " \t")
		from := strings.IndexByte(text, '|') + 1
		code := false
		for i := from; i < len(text); i++ {
			switch {
			case text[i] == '\\':
				i++
			case text[i] == '`' && (code || strings.Contains(text[i+1:], "`")):
				code = !code
			case text[i] == '|' && !code:
				if !yield(from, i) {
					return
				}
				from = i + 1
			}
		}
		if from < len(text) {
			yield(from, len(text))
		}
	}
}

// codeSpan returns what the first pair of backticks of a cell holds, and how many
// characters are before it. Without one it is the whole cell.
func codeSpan(cell string) (text string, offset int, isCode bool) {
	before, rest, opened := strings.Cut(cell, "`")
	inside, _, closed := strings.Cut(rest, "`")
	if !opened || !closed {
		return cell, 0, false
	}
	trimmed := strings.TrimSpace(inside)
	lead := strings.Index(inside, trimmed)
	return trimmed, utf8.RuneCountInString(before) + 1 + lead, true
}
