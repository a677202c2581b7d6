package agent

import (
	"encoding/json"
	"strings"
)

// LongText is how many characters of an error's words are kept.
const LongText = 500

// OneLine is a text of a program or a vendor as one line of at most so many
// characters.
func OneLine(text string, most int) string {
	words := strings.Join(strings.Fields(text), " ")
	if runes := []rune(words); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return words
}

// LastLine is the last line of a text that says anything.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// PlainAt writes every @ of a prompt as \@, for programs that replace the path
// behind an @ by the file that is there.
func PlainAt(prompt string) string { return strings.ReplaceAll(prompt, "@", `\@`) }

// Text is a string in the JSON of a program. Any other value is empty, and no
// error.
type Text string

// UnmarshalJSON reads any value.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	_ = json.Unmarshal(data, &s) // Any other value leaves it empty.
	*t = Text(s)
	return nil
}
