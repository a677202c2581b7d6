package definition

import (
	"fmt"
	"strings"
)

// ConflictLines returns the numbers of the lines with git's markers of a conflict, or nil.
// In Markdown, a line of equals signs alone is a heading and not a marker.
func ConflictLines(text string, markdown bool) []int {
	var marks []int
	n, sure := 0, !markdown
	for line := range strings.Lines(text) {
		n++
		if len(line) >= 7 && strings.Contains("<=>|", line[:1]) && strings.TrimLeft(line, line[:1]) == line[7:] {
			marks = append(marks, n)
			sure = sure || line[0] == '<' || line[0] == '>'
		}
	}
	if !sure {
		return nil
	}
	return marks
}

// ConflictWords says in which lines the markers of a conflict are.
func ConflictWords(lines []int) string {
	const most = 9
	shown := strings.Trim(fmt.Sprint(lines[:min(len(lines), most)]), "[]")
	text := "merge conflict markers in line "
	if len(lines) > 1 {
		text = "merge conflict markers in lines "
	}
	text += strings.ReplaceAll(shown, " ", ", ")
	if len(lines) > most {
		text += ", …"
	}
	return text
}
