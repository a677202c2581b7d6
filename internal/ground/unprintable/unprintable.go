// Package unprintable finds the characters of a text that nobody sees, and makes
// them visible: control characters, marks that change the direction of writing,
// characters without a width, tags.
//
// It never changes visible characters, never removes text and never judges it.
package unprintable

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The characters that join several emoji into one picture.
const (
	joiner  = '\u200d'
	asText  = '\ufe0e'
	asEmoji = '\ufe0f'
)

// Is reports whether r is invisible or changes how other characters are drawn.
// Line feeds, tabs and spaces do not count.
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

// TurnsDirection reports whether r changes the direction of writing, so that a
// text is not stored in the order in which it is read.
func TurnsDirection(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// Show writes every hidden character as an escape, such as \u202e. Characters that
// join several emoji into one stay. A carriage return before a line feed is
// dropped. Bytes that are not UTF-8 become replacement characters.
func Show(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return Is(r) || r == unicode.ReplacementChar }) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	before := rune(0)
	for _, r := range s {
		if Is(r) && !joinsPicture(before, r) {
			b.WriteString(escapeRune(r))
			before = 0
			continue
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// escapeRune returns r as an escape like \u202e, \U000e0041 or \a.
func escapeRune(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") }

// joinsPicture reports whether r is part of the emoji before it.
func joinsPicture(before, r rune) bool {
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

// TurnsDirection reports whether one of them changes the direction of writing.
func (f Found) TurnsDirection() bool {
	return slices.ContainsFunc(f.Runes, TurnsDirection)
}

// String describes the line and its hidden characters for a person.
func (f Found) String() string {
	names := make([]string, len(f.Runes))
	for i, r := range f.Runes {
		names[i] = strings.ToUpper(strconv.FormatInt(int64(r), 16))
		names[i] = "U+" + strings.Repeat("0", max(0, 4-len(names[i]))) + names[i]
	}
	what := "holds characters that nobody sees"
	if f.TurnsDirection() {
		what = "turns the direction of writing around"
	}
	const shown = 5
	if len(names) > shown {
		names = append(names[:shown], "…")
	}
	return Show(f.Path) + " line " + strconv.Itoa(f.Line) + " " + what + " (" + strings.Join(names, ", ") + ")"
}

// hiddenRunes returns the hidden characters of a line, each once. A carriage return
// at its end does not count, nor does a byte order mark in the first line.
func hiddenRunes(text string, first bool) []rune {
	text = strings.TrimRight(text, "\r\n")
	if first {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	var found []rune
	before := rune(0)
	for _, r := range text {
		if !Is(r) || joinsPicture(before, r) {
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

// FindAdded returns the lines of text that have hidden characters and are not in
// before. A text with NULs counts as binary and has none.
func FindAdded(path, before, text string) []Found {
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
		if runes := hiddenRunes(l, n == 1); runes != nil {
			found = append(found, Found{path, n, runes})
		}
	}
	return found
}
