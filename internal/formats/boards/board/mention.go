package board

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LongestHandle is how many characters a handle may have.
const LongestHandle = 32

// IsHandle reports whether a text can be a handle: a to z, 0 to 9 and single dashes,
// beginning with a letter.
func IsHandle(text string) bool {
	if text == "" || len(text) > LongestHandle || text[0] < 'a' || text[0] > 'z' {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		case c == '-' && i+1 < len(text) && text[i+1] != '-':
		default:
			return false
		}
	}
	return true
}

// Mentions returns the handles that a text mentions as @handle, each once, in the order in
// which they come first. E-mail addresses, names of packages, and code are no mentions.
func Mentions(text string) []string {
	var found []string
	fence := ""
	for line := range strings.Lines(text) {
		marker := fenceOf(line)
		switch {
		case fence == "" && marker != "":
			fence = marker
		case fence != "" && strings.HasPrefix(marker, fence) && strings.TrimSpace(line) == marker:
			fence = ""
		case fence == "":
			for _, handle := range mentionsIn(withoutCode(line)) {
				if !slices.Contains(found, handle) {
					found = append(found, handle)
				}
			}
		}
	}
	return found
}

// fenceOf returns the marks that begin or end a block of code; empty if none do.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	for _, mark := range []string{"`", "~"} {
		n := len(text) - len(strings.TrimLeft(text, mark))
		if n >= 3 && len(line)-len(text) < 4 && (mark == "~" || !strings.Contains(text[n:], "`")) {
			return text[:n]
		}
	}
	return ""
}

// withoutCode replaces code between equal numbers of backticks.
func withoutCode(line string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(line, '`')
		if start < 0 {
			break
		}
		n := len(line[start:]) - len(strings.TrimLeft(line[start:], "`"))
		end := closing(line[start+n:], n)
		b.WriteString(line[:start])
		if end < 0 {
			b.WriteString(line[start : start+n])
			line = line[start+n:]
			continue
		}
		b.WriteString("`")
		line = line[start+n+end+n:]
	}
	b.WriteString(line)
	return b.String()
}

// closing returns where exactly n backticks come next; negative if they do not.
func closing(text string, n int) int {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '`')
		if i < 0 {
			return -1
		}
		at += i
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if run == n {
			return at
		}
		at += run
	}
}

func mentionsIn(line string) (found []string) {
	for i := 0; i < len(line); i++ {
		if line[i] != '@' {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(line[:i])
		end := i + 1
		for end < len(line) && isHandleByte(line[end]) {
			end++
		}
		handle := strings.ToLower(strings.TrimRight(line[i+1:end], "-_"))
		after, _ := utf8.DecodeRuneInString(line[end:])
		isWord := i > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) || strings.ContainsRune("@/._+-\\=:#`", before))
		goesOn := end < len(line) && (after == '@' || after == '/' || unicode.IsLetter(after) || isDomain(line[end:]))
		if !isWord && !goesOn && IsHandle(handle) {
			found = append(found, handle)
		}
		i = end - 1
	}
	return found
}

// isDomain reports whether a text goes on like an address: a dot and a letter behind it.
func isDomain(rest string) bool {
	if !strings.HasPrefix(rest, ".") {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest[1:])
	return unicode.IsLetter(next) || unicode.IsDigit(next)
}

func isHandleByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
