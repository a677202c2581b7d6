package hidden

import (
	"strconv"
	"strings"
)

// InPatch are the lines with hidden characters that a patch adds, as git writes
// patches.
func InPatch(patch string) []Found {
	var found []Found
	path, at, left := "", 0, 0
	for l := range strings.Lines(patch) {
		switch {
		case left <= 0 && strings.HasPrefix(l, "+++ "):
			path = patched(l)
		case left <= 0 && strings.HasPrefix(l, "@@ "):
			at, left = hunk(l)
		case left > 0 && strings.HasPrefix(l, "+"):
			if runes := line(l[1:], at == 1); runes != nil {
				found = append(found, Found{path, at, runes})
			}
			at, left = at+1, left-1
		case left > 0 && strings.HasPrefix(l, " "):
			at, left = at+1, left-1
		}
	}
	return found
}

// patched is the new name in a line that begins with three plus signs.
func patched(l string) string {
	name := strings.TrimRight(strings.TrimPrefix(l, "+++ "), "\t\r\n")
	if plain, err := strconv.Unquote(name); err == nil {
		name = plain
	}
	return strings.TrimPrefix(name, "b/")
}

// hunk is the first new line and the number of new lines in "@@ -1,2 +3,4 @@".
func hunk(l string) (first, lines int) {
	_, rest, _ := strings.Cut(l, " +")
	span, _, _ := strings.Cut(rest, " ")
	start, count, many := strings.Cut(span, ",")
	first, _ = strconv.Atoi(start)
	if lines = 1; many {
		lines, _ = strconv.Atoi(count)
	}
	return first, lines
}
