package cli

import (
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/unprintable"
)

// clean takes out of a text whatever a terminal would obey: escape sequences,
// control characters, and the marks that turn the direction of writing around.
// Line feeds and tabs stay; a carriage return ends a line; what is no UTF-8
// becomes a replacement character. What else nobody would see is written as an
// escape.
func clean(text string) string {
	if plain(text) {
		return text
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	for i := 0; i < len(text); {
		if skip := escape(text[i:]); skip > 0 {
			i += skip
			continue
		}
		r, size := firstRune(text[i:])
		i += size
		switch {
		case r == '\r':
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || !obeyed(r):
			b.WriteRune(r)
		}
	}
	return unprintable.Show(b.String())
}

// cleanLine is clean for what has to stay on one line.
func cleanLine(text string) string {
	return strings.Join(strings.FieldsFunc(clean(text), func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

func firstRune(s string) (r rune, size int) {
	for i, c := range s {
		if i > 0 {
			return r, i
		}
		r = c
	}
	return r, len(s)
}

// obeyed reports whether a terminal acts on r and does not show it.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

const (
	esc = 0x1b
	bel = 0x07
)

// escape is the length of the escape sequence that s begins with, or 0.
func escape(s string) int {
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
		return str(s, at)
	case '(', ')', '*', '+', '#', ' ', '%':
		return min(3, len(s))
	}
	if kind < 0x20 || kind > 0x7e {
		return 1
	}
	return 2
}

// str finds the end of a control string. One that is never ended is cut at its
// line, so that it cannot swallow what follows.
func str(s string, at int) int {
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
