package redact

import (
	"fmt"
	"slices"
	"strings"
)

// shortest is the least number of bytes of a value. Below it, base64 and hex
// of the value would be found by chance.
const shortest = 6

// everyday are values that configuration is full of. Many a local database has
// one of them as its password; the log is worth more.
var everyday = []string{
	"changeme", "database", "default", "defaults", "development", "disabled",
	"enabled", "example", "localhost", "password", "placeholder", "postgres",
	"postgresql", "production", "redacted", "security", "staging", "testing",
	"undefined", "username", "127.0.0.1",
}

// vet separates the values that are looked for from those that are not. Names
// are made fit to be printed.
func vet(values []Secret) ([]Secret, []Refused) {
	var known []Secret
	var refused []Refused
	seen := map[string]bool{}
	for _, v := range values {
		s := Secret{Name: printable(v.Name), Value: strings.TrimSpace(v.Value)}
		if seen[s.Value] {
			continue
		}
		seen[s.Value] = true
		if why := objection(s.Value); why != "" {
			refused = append(refused, Refused{Name: s.Name, Reason: why})
			continue
		}
		known = append(known, s)
	}
	return known, refused
}

// objection is why a value cannot be looked for, or nothing.
func objection(value string) string {
	switch {
	case len(value) < shortest:
		return fmt.Sprintf("it has %d bytes, fewer than %d are found everywhere by chance", len(value), shortest)
	case distinct([]byte(value)) < 4:
		return "it has fewer than 4 different bytes"
	case len(value) < 8 && (all(value, &digits) || all(value, &letters)):
		return "it is a short word or number, which ordinary text contains"
	case slices.Contains(everyday, strings.ToLower(value)):
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

// printable makes a name that cannot break the line or the mark it stands in.
func printable(name string) string {
	if name == "" {
		return unnamed
	}
	fit := []byte(name[:min(len(name), 64)])
	for i, b := range fit {
		if !dotted.has(b) {
			fit[i] = '_'
		}
	}
	return string(fit)
}

// fixedMarks are the marks that do not depend on the caller's names.
func fixedMarks() []string {
	marks := []string{mark(unnamed), mark(awsSecret)}
	for i := range shapes {
		marks = append(marks, mark(shapes[i].name))
	}
	return marks
}

func allMarks(known []Secret) []string {
	marks := fixedMarks()
	for _, k := range known {
		marks = append(marks, mark(k.Name))
	}
	return marks
}

// apart cuts from a value what could be the edge of a mark. Otherwise a mark
// and the text beside it could spell the value again. A value of which too
// little would be left stays whole.
func apart(value string, marks []string) string {
	rest := value
	for {
		before := rest
		for _, m := range marks {
			rest = rest[overlap(m, rest):]
			rest = rest[:len(rest)-overlap(rest, m)]
		}
		if rest == before {
			break
		}
	}
	if len(rest) < shortest {
		return value
	}
	return rest
}

// overlap is how many bytes at the end of a are the beginning of b.
func overlap(a, b string) int {
	for n := min(len(a), len(b)); n > 0; n-- {
		if strings.HasSuffix(a, b[:n]) {
			return n
		}
	}
	return 0
}

// parts are a value and its long lines of base64. A listing puts a number or a
// bar before each line of a key, and then the whole is not found.
func parts(value string) []string {
	out := []string{value}
	if !strings.Contains(value, "\n") {
		return out
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= 32 && all(line, &base64Chars) && distinct([]byte(line)) >= 10 {
			out = append(out, line)
		}
	}
	return out
}

func all(s string, in *class) bool {
	for i := range len(s) {
		if !in.has(s[i]) {
			return false
		}
	}
	return true
}
