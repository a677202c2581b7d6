package redact

import (
	"fmt"
	"slices"
	"strings"
)

// minValue is the least number of bytes of a value. The base64 and hex of shorter
// ones would be found by chance.
const minValue = 6

// everydayWords are common in configuration. Many a local database has one of
// them as its password, but a readable log is worth more. Shorter words, and the
// words of marks, are refused as such.
var everydayWords = []string{
	"changeme", "database", "defaults", "development", "disabled", "localhost",
	"placeholder", "postgres", "postgresql", "production", "security", "undefined",
	"username", "127.0.0.1",
}

// checkValues separates the values to look for from those that are refused. It
// makes names safe to print.
func checkValues(values []Secret) ([]Secret, []Refused) {
	var known []Secret
	var refused []Refused
	seen := map[string]bool{}
	for _, v := range values {
		s := Secret{Name: printableName(v.Name), Value: strings.TrimSpace(v.Value)}
		if seen[s.Value] {
			continue
		}
		seen[s.Value] = true
		if why := whyRefused(s.Value); why != "" {
			refused = append(refused, Refused{Name: s.Name, Reason: why})
			continue
		}
		known = append(known, s)
	}
	return known, refused
}

// whyRefused returns why a value cannot be looked for, or the empty string.
func whyRefused(value string) string {
	switch {
	case len(value) < minValue:
		return fmt.Sprintf("it has %d bytes, fewer than %d are found everywhere by chance", len(value), minValue)
	case countDistinct([]byte(value)) < 4:
		return "it has fewer than 4 different bytes"
	case len(value) < 8 && (allIn(value, &digits) || allIn(value, &letters)):
		return "it is a short word or number, which ordinary text contains"
	case slices.Contains(everydayWords, strings.ToLower(value)):
		return "it is an everyday word"
	case strings.Contains(value, opening):
		return "it contains the mark of a replaced secret"
	}
	for _, m := range fixedMarks() {
		if strings.Contains(m, value) {
			return "it is part of the mark of a replaced secret"
		}
	}
	return ""
}

// printableName returns a name that cannot break the line or the mark that
// contains it.
func printableName(name string) string {
	if name == "" {
		return unnamed
	}
	fit := []byte(name[:min(len(name), 64)])
	for i, b := range fit {
		if !dottedChars.has(b) {
			fit[i] = '_'
		}
	}
	return string(fit)
}

// fixedMarks returns the marks that do not depend on the caller's names.
func fixedMarks() []string {
	marks := []string{redactionMark(unnamed), redactionMark(awsSecret)}
	for i := range shapes {
		marks = append(marks, redactionMark(shapes[i].name))
	}
	return marks
}

func allMarks(known []Secret) []string {
	marks := fixedMarks()
	for _, k := range known {
		marks = append(marks, redactionMark(k.Name))
	}
	return marks
}

// trimMarkEdges cuts from the ends of a value what could be an end of a mark.
// Otherwise a mark and the text beside it could spell the value again. If too
// little of the value would be left, all of it is kept.
func trimMarkEdges(value string, marks []string) string {
	rest := value
	for {
		before := rest
		for _, m := range marks {
			rest = rest[overlapLength(m, rest):]
			rest = rest[:len(rest)-overlapLength(rest, m)]
		}
		if rest == before {
			break
		}
	}
	if len(rest) < minValue {
		return value
	}
	return rest
}

// overlapLength returns how many bytes at the end of a are the beginning of b.
func overlapLength(a, b string) int {
	for n := min(len(a), len(b)); n > 0; n-- {
		if strings.HasSuffix(a, b[:n]) {
			return n
		}
	}
	return 0
}

// valueAndKeyLines returns a value and its long lines of base64. A listing puts a
// number or a bar before each line of a key, so that the value as a whole is not
// found.
func valueAndKeyLines(value string) []string {
	out := []string{value}
	if !strings.Contains(value, "\n") {
		return out
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= 32 && allIn(line, &base64Chars) && countDistinct([]byte(line)) >= 10 {
			out = append(out, line)
		}
	}
	return out
}

func allIn(s string, in *class) bool {
	for i := range len(s) {
		if !in.has(s[i]) {
			return false
		}
	}
	return true
}
