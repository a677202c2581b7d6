package unprintable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FindInPatch returns the lines with hidden characters that a patch of git adds.
func FindInPatch(patch string) []Found {
	var found []Found
	path, at, left := "", 0, 0
	for l := range strings.Lines(patch) {
		switch {
		case left <= 0 && strings.HasPrefix(l, "+++ "):
			path = newFileName(l)
		case left <= 0 && strings.HasPrefix(l, "@@ "):
			at, left = parseHunk(l)
		case left > 0 && strings.HasPrefix(l, "+"):
			if runes := hiddenRunes(l[1:], at == 1); runes != nil {
				found = append(found, Found{path, at, runes})
			}
			at, left = at+1, left-1
		case left > 0 && strings.HasPrefix(l, " "):
			at, left = at+1, left-1
		}
	}
	return found
}

// ShowPatch writes the hidden characters of a patch as escapes, and counts them.
// All other bytes stay as they are, so that a patch without hidden characters can
// still be applied. Carriage returns at line ends, a byte order mark at the start
// of a file and letters in an encoding other than UTF-8 are not escaped.
func ShowPatch(patch []byte) (shown []byte, escaped int) {
	shown = make([]byte, 0, len(patch))
	before, column := rune(0), 0
	for i := 0; i < len(patch); {
		r, size := utf8.DecodeRune(patch[i:])
		whole := patch[i : i+size]
		i += size
		raw := r == utf8.RuneError && size == 1
		lineEnd := r == '\r' && i < len(patch) && patch[i] == '\n'
		mark := r == '\ufeff' && column == 1
		switch {
		case raw && whole[0] < 0xa0: // A terminal may obey it as an 8-bit control character.
			shown, escaped = append(shown, fmt.Sprintf(`\x%02x`, whole[0])...), escaped+1
		case !raw && Is(r) && !joinsPicture(before, r) && !lineEnd && !mark:
			shown, escaped, before = append(shown, escapeRune(r)...), escaped+1, 0
		default:
			shown, before = append(shown, whole...), r
		}
		if column++; r == '\n' {
			column = 0
		}
	}
	return shown, escaped
}

// newFileName returns the file name in a line that begins with three plus signs.
func newFileName(l string) string {
	name := strings.TrimRight(strings.TrimPrefix(l, "+++ "), "\t\r\n")
	if plain, err := strconv.Unquote(name); err == nil {
		name = plain
	}
	return strings.TrimPrefix(name, "b/")
}

// parseHunk returns the first new line and the number of new lines: 3 and 4 of
// "@@ -1,2 +3,4 @@".
func parseHunk(l string) (first, lines int) {
	_, rest, _ := strings.Cut(l, " +")
	span, _, _ := strings.Cut(rest, " ")
	start, count, many := strings.Cut(span, ",")
	first, _ = strconv.Atoi(start)
	if lines = 1; many {
		lines, _ = strconv.Atoi(count)
	}
	return first, lines
}
