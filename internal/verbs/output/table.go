package output

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// gap is the number of spaces between two columns.
const gap = 2

// Table prints rows under each other. The first row is the heading. If the
// terminal is too narrow, the widest columns are wrapped between words; if that
// is not enough, each row becomes a block of lines.
func (p *Printer) Table(rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	var b bytes.Buffer
	switch {
	case !p.Terminal || len(rows) == 1 || shrinkColumns(widths, rows, p.Width()):
		for n, row := range rows {
			for _, line := range wrapRow(row, widths) {
				if n == 0 {
					line = p.Style.Dim(line)
				}
				b.WriteString(line + "\n")
			}
		}
	default:
		for n, row := range rows[1:] {
			if n > 0 {
				b.WriteString("\n")
			}
			p.writeBlock(&b, rows[0], row)
		}
	}
	if p.err == nil {
		_, p.err = b.WriteTo(p.Out)
	}
	return p.err
}

// displayWidth is the width of a text that may carry decorations of Style.
func displayWidth(text string) int { return utf8.RuneCountInString(Clean(text)) }

// shrinkColumns narrows the widest columns until the table is at most so wide.
// It reports false if that would break a word.
func shrinkColumns(widths []int, rows [][]string, most int) bool {
	least := make([]int, len(widths))
	for _, row := range rows {
		for i, cell := range row {
			for _, word := range splitWords(cell) {
				least[i] = max(least[i], displayWidth(word))
			}
		}
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > most; total-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// writeBlock writes a row as one line for each column that has a value, with the
// heading of the column before it.
func (p *Printer) writeBlock(b *bytes.Buffer, heading, row []string) {
	label := 0
	for _, h := range heading {
		label = max(label, displayWidth(h))
	}
	for i, cell := range row {
		if cell == "" {
			continue
		}
		for n, line := range wrapCell(cell, max(1, p.Width()-label-gap)) {
			name := ""
			if n == 0 {
				name = heading[i]
			}
			b.WriteString(p.Style.Dim(name) + strings.Repeat(" ", label-displayWidth(name)+gap) + line + "\n")
		}
	}
}

// wrapRow returns the lines of a row whose cells are at most so wide.
func wrapRow(row []string, widths []int) []string {
	var lines []string
	at := 0
	for i, cell := range row {
		for n, text := range wrapCell(cell, widths[i]) {
			if n == len(lines) {
				lines = append(lines, "")
			}
			if text != "" {
				lines[n] += strings.Repeat(" ", at-displayWidth(lines[n])) + text
			}
		}
		at += widths[i] + gap
	}
	return lines
}

// wrapCell breaks a cell between words. Only a single word makes a line wider
// than most.
func wrapCell(cell string, most int) []string {
	if displayWidth(cell) <= most {
		return []string{cell}
	}
	var lines []string
	line := ""
	for _, word := range splitWords(cell) {
		switch {
		case line == "":
			line = word
		case displayWidth(line)+1+displayWidth(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// splitWords returns the parts of a cell between which a line may break. A
// decorated cell is one part.
func splitWords(cell string) []string {
	if strings.ContainsRune(cell, esc) {
		return []string{cell}
	}
	return strings.Fields(cell)
}
