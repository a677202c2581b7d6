// Package envelope puts text from outside into prompts, so that a model can tell
// where it begins and ends. It does no I/O, and decides nothing about the text.
package envelope

import (
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/unprintable"
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
	text = unprintable.Show(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2], "") + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-most/2:], "")
	}
	// Programs may have found out the word.
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), word, "[…]")
	fmt.Fprintf(b, "\n## %s\n<<DATA %s\n%s\nDATA %s\n", label, word, text, word)
}
