package cli

import (
	"bytes"
	"strings"
)

// gap is between two columns.
const gap = 2

// columns prints rows under each other. The first row is the heading. On a terminal
// that is too narrow for them, the widest columns are wrapped between words; where
// that is not enough, each row becomes a block of lines.
func (a *app) columns(rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], visible(cell))
		}
	}
	var b bytes.Buffer
	switch {
	case !a.Terminal || len(rows) == 1 || fit(widths, rows, a.Width()):
		for n, row := range rows {
			for _, line := range wrapRow(row, widths) {
				if n == 0 {
					line = a.style().dim(line)
				}
				b.WriteString(line + "\n")
			}
		}
	default:
		for n, row := range rows[1:] {
			if n > 0 {
				b.WriteString("\n")
			}
			a.block(&b, rows[0], row)
		}
	}
	_, err := b.WriteTo(a.Out)
	return err
}

// fit narrows the widest columns until the table has at most so many columns of a
// terminal, and reports whether it can without breaking a word.
func fit(widths []int, rows [][]string, most int) bool {
	least := make([]int, len(widths))
	for _, row := range rows {
		for i, cell := range row {
			for _, word := range words(cell) {
				least[i] = max(least[i], visible(word))
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

// block prints a row with a line for each column, under its heading.
func (a *app) block(b *bytes.Buffer, heading, row []string) {
	label := 0
	for _, h := range heading {
		label = max(label, visible(h))
	}
	for i, cell := range row {
		if cell == "" {
			continue
		}
		for n, line := range wrap(cell, max(1, a.Width()-label-gap)) {
			name := ""
			if n == 0 {
				name = heading[i]
			}
			b.WriteString(a.style().dim(name) + strings.Repeat(" ", label-visible(name)+gap) + line + "\n")
		}
	}
}

// wrapRow is a row as lines, with its cells at most so wide.
func wrapRow(row []string, widths []int) []string {
	var lines []string
	at := 0
	for i, cell := range row {
		for n, text := range wrap(cell, widths[i]) {
			if n == len(lines) {
				lines = append(lines, "")
			}
			if text != "" {
				lines[n] += strings.Repeat(" ", at-visible(lines[n])) + text
			}
		}
		at += widths[i] + gap
	}
	return lines
}

// wrap breaks a cell between words, so that no line is wider than most unless one
// word is.
func wrap(cell string, most int) []string {
	if visible(cell) <= most {
		return []string{cell}
	}
	var lines []string
	line := ""
	for _, word := range words(cell) {
		switch {
		case line == "":
			line = word
		case visible(line)+1+visible(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// words are the parts of a cell that stay on one line. What we decorated is one.
func words(cell string) []string {
	if strings.ContainsRune(cell, esc) {
		return []string{cell}
	}
	return strings.Fields(cell)
}
