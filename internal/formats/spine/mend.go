package spine

import (
	"fmt"
	"slices"
	"strings"
)

// repairState adds the title and sections that a STATE.md lacks, and reads bytes that
// are not UTF-8 as Latin-1. It changes nothing else. It returns what it did and which
// sections were missing. The state is nil if the text cannot be a STATE.md.
func repairState(name, text string) (s *State, did []string, lacked []Section) {
	if len(text) > MaxState {
		return nil, nil, nil
	}
	mark := ""
	if rest, ok := strings.CutPrefix(text, bom); ok {
		mark, text = bom, rest
	}
	text, bytes := fromLatin1(text)
	if bytes > 0 {
		did = append(did, fmt.Sprintf("text that was not UTF-8 (bytes: %d) was read as Latin-1", bytes))
	}
	lines, eol := slices.Collect(strings.Lines(text)), usualEnd(text)
	found := findLayout(lines)
	lacked = found.missingSections()
	if len(lacked) == len(sections) {
		return nil, nil, nil
	}
	last := 0
	for _, b := range found.bodies {
		last = max(last, b.last)
	}
	lines[last] = withLineEnd(lines[last], eol)
	for _, section := range slices.Backward(lacked) {
		lines = slices.Insert(lines, last+1, eol, headings[section]+eol, "- "+placeholder+eol)
		did = append(did, fmt.Sprintf("the section %s was missing", section))
	}
	if found.title < 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf(title, oneLine(name))+eol)
		did = append(did, "the title was missing")
	}
	s, err := ParseState(mark + strings.Join(lines, ""))
	if err != nil {
		return nil, nil, nil
	}
	return s, did, lacked
}

// fromLatin1 converts bytes that are not UTF-8 from Latin-1, and counts them.
func fromLatin1(text string) (string, int) {
	var b strings.Builder
	bytes := 0
	for at, r := range text {
		if isInvalidUTF8(r, text[at:]) {
			bytes++
			r = rune(text[at])
		}
		b.WriteRune(r)
	}
	return b.String(), bytes
}
