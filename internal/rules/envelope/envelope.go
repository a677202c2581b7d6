// Package envelope puts text from outside into prompts, so that a model can tell
// where it begins and ends. It does no I/O, and decides nothing about the text.
package envelope

import (
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/unprintable"
)

// Most bounds one block of data in a prompt, in bytes.
const Most = 32 << 10

// Write writes text from outside as a block of data, with nothing in it that only a
// model would see. The word is one that the text cannot know in advance. Of a text
// of more than Most bytes, the middle is left out. Blank text is not written.
func Write(b *strings.Builder, word, label, text string) { WriteUpTo(b, word, label, text, Most) }

// WriteUpTo is Write with another bound.
func WriteUpTo(b *strings.Builder, word, label, text string, most int) {
	if strings.TrimSpace(text) == "" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", label)
	writeBlock(b, "DATA", word, shown(text, most))
}

// shown is a text with nothing in it that only a model would see, and without its middle if
// it has more bytes than most.
func shown(text string, most int) string {
	text = unprintable.Show(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2], "") + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-most/2:], "")
	}
	return text
}

// writeBlock writes a text between two marks that it cannot have in it.
func writeBlock(b *strings.Builder, mark, word, text string) {
	// Programs may have found out the word.
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), word, "[…]")
	fmt.Fprintf(b, "<<%s %s\n%s\n%s %[2]s\n", mark, word, text, mark)
}
