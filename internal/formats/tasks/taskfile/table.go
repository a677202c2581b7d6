package taskfile

import "strings"

// splitCells returns the cells of a row of a table, or nil for another line. A pipe
// behind a backslash is text.
func splitCells(line string) []value {
	text, _ := cutLineEnd(line)
	text = strings.TrimRight(text, " \t")
	at := len(text) - len(strings.TrimLeft(text, " \t"))
	if at == len(text) || text[at] != '|' {
		return nil
	}
	var cells []value
	start := at + 1
	for i := start; i <= len(text); i++ {
		if i < len(text) && (text[i] != '|' || text[i-1] == '\\') || i == len(text) && start == i {
			continue
		}
		cell := text[start:i]
		from := start + len(cell) - len(strings.TrimLeft(cell, " \t"))
		to := max(start+len(strings.TrimRight(cell, " \t")), from)
		if strings.TrimSpace(cell) == "" && len(cell) > 1 {
			from, to = start+1, start+1
		}
		cells = append(cells, value{text: text[from:to], start: from, end: to})
		start = i + 1
	}
	return cells
}

// isDelimiterRow reports whether a line is the one below the header of a table.
func isDelimiterRow(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: \t") == ""
}

func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func unescapeCell(text string) string { return strings.ReplaceAll(text, `\|`, "|") }
