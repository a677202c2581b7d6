package output

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/unprintable"
)

// Clean removes from a text whatever a terminal would act on: escape sequences,
// control characters, and marks that reverse the direction of writing. Line
// feeds and tabs stay; a carriage return becomes a line feed; invalid UTF-8
// becomes the replacement character. Other invisible characters are written as
// escapes.
func Clean(text string) string {
	if isPlain(text) {
		return text
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	for i := 0; i < len(text); {
		if skip := escapeLength(text[i:]); skip > 0 {
			i += skip
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == '\r':
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || !controlsTerminal(r):
			b.WriteRune(r)
		}
	}
	return unprintable.Show(b.String())
}

// CleanLine is Clean for a text that has to stay on one line: line feeds and
// tabs become single spaces.
func CleanLine(text string) string {
	return strings.Join(strings.FieldsFunc(Clean(text), func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// controlsTerminal reports whether a terminal acts on r instead of showing it.
func controlsTerminal(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

const (
	esc = 0x1b
	bel = 0x07
)

// escapeLength returns the length of the escape sequence at the beginning of s,
// or 0.
func escapeLength(s string) int {
	var kind byte
	at := 2
	switch {
	case len(s) >= 2 && s[0] == esc:
		kind = s[1]
	case strings.HasPrefix(s, "\u009b"):
		kind = '['
	case strings.HasPrefix(s, "\u0090"), strings.HasPrefix(s, "\u009d"):
		kind = ']'
	default:
		return 0
	}
	switch kind {
	case '[':
		for at < len(s) && s[at] >= 0x20 && s[at] < 0x40 {
			at++
		}
		if at < len(s) && s[at] >= 0x40 && s[at] < 0x7f {
			at++
		}
		return at
	case ']', 'P', 'X', '^', '_':
		return controlStringEnd(s, at)
	case '(', ')', '*', '+', '#', ' ', '%':
		return min(3, len(s))
	}
	if kind < 0x20 || kind > 0x7e {
		return 1
	}
	return 2
}

// controlStringEnd finds the end of a control string. A string without an end is
// cut at the end of its line, so that it cannot hide what follows.
func controlStringEnd(s string, at int) int {
	for ; at < len(s); at++ {
		switch {
		case s[at] == bel:
			return at + 1
		case s[at] == esc && at+1 < len(s) && s[at+1] == '\\':
			return at + 2
		case strings.HasPrefix(s[at:], "\u009c"):
			return at + len("\u009c")
		case s[at] == '\n':
			return at
		}
	}
	return at
}
