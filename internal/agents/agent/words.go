package agent

import (
	"encoding/json"
	"strings"
)

// LongText is how many characters of an error's text are kept.
const LongText = 500

// OneLine returns a text as one line of at most most characters.
func OneLine(text string, most int) string {
	words := strings.Join(strings.Fields(text), " ")
	if runes := []rune(words); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return words
}

// LastLine returns the last non-empty line of a text.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// EscapeAt writes every @ of a prompt as \@, for programs that replace @PATH by
// the contents of the file.
func EscapeAt(prompt string) string { return strings.ReplaceAll(prompt, "@", `\@`) }

// Text is a string in the JSON of a program. Any other value becomes empty,
// without an error.
type Text string

// UnmarshalJSON accepts any value.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	_ = json.Unmarshal(data, &s) // Any other value leaves it empty.
	*t = Text(s)
	return nil
}
