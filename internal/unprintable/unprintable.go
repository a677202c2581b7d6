// Package unprintable finds the characters of a text that nobody sees, and writes
// them so that everybody does: controls, marks that turn the direction of
// writing around, characters without a width, tags.
//
// It changes nothing that can be seen, judges no text, and takes none away.
package unprintable

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The characters by which a sequence of pictures becomes one picture.
const (
	joiner  = '\u200d'
	asText  = '\ufe0e'
	asEmoji = '\ufe0f'
)

// Is reports whether r is drawn as nothing, or changes how others are drawn.
// Line feeds, tabs and spaces are not hidden.
func Is(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r <= '~':
		return false
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	}
	const blankBraille = '\u2800'
	return r == blankBraille || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Turns reports whether r changes the direction in which others are written, so
// that a text is not in the order in which it is read.
func Turns(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// Show writes every hidden character as an escape, such as \u202e. What makes one
// picture of several stays where it does that. Lines that end with a carriage
// return and a line feed end with a line feed. What is not UTF-8 becomes
// replacement characters.
func Show(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return Is(r) || r == unicode.ReplacementChar }) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	before := rune(0)
	for _, r := range s {
		if Is(r) && !pictures(before, r) {
			b.WriteString(escape(r))
			before = 0
			continue
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// escape is a character as an escape of four or eight hexadecimal digits, or as
// one of the short ones.
func escape(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") }

// pictures reports whether r belongs to the picture before it.
func pictures(before, r rune) bool {
	drawn := unicode.Is(unicode.So, before) || unicode.Is(unicode.Sk, before)
	switch r {
	case asText, asEmoji:
		return drawn || unicode.Is(unicode.Sm, before) || unicode.Is(unicode.Po, before) || unicode.IsDigit(before)
	case joiner:
		return drawn || before == asEmoji
	}
	return false
}

// Found is a line with hidden characters.
type Found struct {
	Path  string
	Line  int    // from 1
	Runes []rune // each once, in the order in which they come first
}

// Turns reports whether one of them changes the direction of writing.
func (f Found) Turns() bool {
	return slices.ContainsFunc(f.Runes, Turns)
}

// String is what a person is told of it.
func (f Found) String() string {
	names := make([]string, len(f.Runes))
	for i, r := range f.Runes {
		names[i] = strings.ToUpper(strconv.FormatInt(int64(r), 16))
		names[i] = "U+" + strings.Repeat("0", max(0, 4-len(names[i]))) + names[i]
	}
	what := "holds characters that nobody sees"
	if f.Turns() {
		what = "turns the direction of writing around"
	}
	const shown = 5
	if len(names) > shown {
		names = append(names[:shown], "…")
	}
	return Show(f.Path) + " line " + strconv.Itoa(f.Line) + " " + what + " (" + strings.Join(names, ", ") + ")"
}

// line returns the hidden characters of a line; a return at its end is none, nor
// is the mark that a file may begin with.
func line(text string, first bool) []rune {
	text = strings.TrimRight(text, "\r\n")
	if first {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	var found []rune
	before := rune(0)
	for _, r := range text {
		if !Is(r) || pictures(before, r) {
			before = r
			continue
		}
		before = 0
		if !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	return found
}

// Added are the lines of a text with hidden characters which the text before it
// did not have. Texts with NULs are no texts, and have none.
func Added(path, before, text string) []Found {
	if strings.Contains(text, "\x00") {
		return nil
	}
	had := map[string]bool{}
	for l := range strings.Lines(before) {
		had[l] = true
	}
	var found []Found
	n := 0
	for l := range strings.Lines(text) {
		if n++; had[l] {
			continue
		}
		if runes := line(l, n == 1); runes != nil {
			found = append(found, Found{path, n, runes})
		}
	}
	return found
}
