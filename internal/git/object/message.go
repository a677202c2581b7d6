package object

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxMessage is the longest commit message in bytes.
const MaxMessage = 8 << 10

// unixSeconds is the date of a commit. Git has no dates before 1970.
func unixSeconds(t time.Time) int64 { return max(0, t.Unix()) }

// CleanMessage makes any text a commit message: valid UTF-8, no control
// character but tab and line feed, no character that reverses the reading
// direction, at most MaxMessage bytes, one line feed at the end.
func CleanMessage(s string) string {
	s = strings.ReplaceAll(s[:min(len(s), 4*MaxMessage)], "\r\n", "\n")
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c):
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.TrimSpace(s)
	if len(s) > MaxMessage-1 {
		cut := MaxMessage - 1 - len("\n…")
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "\n…"
	}
	if s == "" {
		s = "(no message)"
	}
	return s + "\n"
}
