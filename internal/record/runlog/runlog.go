// Package runlog writes and reads run-log.md: one line for each run of a loop, for people and
// for other programs. It is pure; who writes the file appends its lines.
package runlog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Entry is one line of a run-log.md. Decoded text of a file may contain anything, also
// control characters.
type Entry struct {
	At      time.Time // written in UTC, cut to seconds; years 0 to 9999
	Run     int64     // negative numbers are written as 0
	Action  string    // reported, proposed, none
	Subject string    // "key=value"; empty if the run has none
	Outcome string
	Tokens  int64 // input, cache writes and output; negative numbers are written as 0
}

// PullRequest is the outcome in the log of a run that opened a pull request after an
// approval.
const PullRequest = "pr-opened"

// TimeLayout is how a time is written in it.
const TimeLayout = "2006-01-02T15:04:05Z"

const bom = "\uFEFF"

// Header returns the two comment lines that begin the run-log.md of a loop, each
// with its line end.
func Header(name string) string {
	return "# " + readiness.Printable(strings.Join(strings.Fields(name), " ")) + " — run log (append-only; one line per run)\n" +
		"# format: <ISO-Z>  run#N  action=<reported|proposed|none>  <key=val…>  outcome=<…>  tokens=<N>\n"
}

// Line returns the line of a run with its line end. Two spaces separate fields.
//
// Whatever the values are, it is one line with six fields, and Parse returns the
// same values: the bytes of white space, control and other invisible characters, of
// invalid UTF-8 and of the signs % = # and | in a value are written as %XX. So is the
// first byte of a subject that would read as another field ("outcome=…") or as no
// subject ("-", "pr=-").
func Line(e Entry) string {
	return fmt.Sprintf("%s  run#%d  action=%s  %s  outcome=%s  tokens=%d\n",
		e.At.UTC().Format(TimeLayout), max(e.Run, 0), encodeValue(e.Action), encodeSubject(e.Subject), encodeValue(e.Outcome), max(e.Tokens, 0))
}

// maxBad is the most bad lines that are listed: a damaged file may have millions.
const maxBad = 1000

// fields lists the keys that have a meaning of their own in a line.
var fields = []string{"action", "outcome", "tokens"}

func encodeSubject(subject string) string {
	if subject == "" {
		return "-"
	}
	name, value, pair := strings.Cut(subject, "=")
	if !pair {
		return encodeDash(subject)
	}
	if slices.Contains(fields, name) {
		return hexEscape(name[0]) + name[1:] + "=" + encodeDash(value)
	}
	return encodeValue(name) + "=" + encodeDash(value)
}

// encodeDash keeps a value that is a dash from reading as "nothing".
func encodeDash(value string) string {
	if value == "-" {
		return hexEscape('-')
	}
	return encodeValue(value)
}

func encodeValue(value string) string {
	var b strings.Builder
	for at, r := range value {
		size := utf8.RuneLen(r)
		invalid := r == utf8.RuneError && !strings.HasPrefix(value[at:], "\uFFFD")
		if invalid {
			size = 1
		}
		if !invalid && isPlain(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(value[at : at+size]) {
			b.WriteString(hexEscape(c))
		}
	}
	return b.String()
}

// isPlain reports whether r is written as it is. The signs separate key and value,
// begin a comment or a run number, or separate columns.
func isPlain(r rune) bool {
	return unicode.IsPrint(r) && !unicode.IsSpace(r) && !strings.ContainsRune("%=#|", r)
}

func hexEscape(c byte) string { return fmt.Sprintf("%%%02X", c) }

// decodeValue undoes encodeValue. A percent sign without two hexadecimal digits, which
// only other programs write, is itself.
func decodeValue(value string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			if c, err := strconv.ParseUint(value[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// Parse reads a run-log.md, also of another program, with lines in any order and
// any white space between the fields. Entries are sorted by run number and time.
// Comments, blank lines and unknown fields are skipped. Bad has the 1-based numbers of
// the first 1000 lines without a time, run number, action, outcome or token count,
// such as a last line that was cut off.
func Parse(text string) (entries []Entry, bad []int) {
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, bom)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if e, ok := parseLine(line); ok {
			entries = append(entries, e)
		} else if len(bad) < maxBad {
			bad = append(bad, n)
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), a.At.Compare(b.At))
	})
	return entries, bad
}

// parseLine decides by the first two fields, with the cheap tests first, whether a
// line is an entry, before it reads the rest.
func parseLine(line string) (e Entry, ok bool) {
	if len(line) < len(time.DateOnly) || line[4] != '-' || line[7] != '-' {
		return Entry{}, false
	}
	at, rest := cutField(line)
	run, rest := cutField(rest)
	digits, numbered := strings.CutPrefix(run, "run#")
	if !numbered {
		return Entry{}, false
	}
	var timed, counted bool
	e.Run, counted = parseCount(digits)
	e.At, timed = ParseTime(at)
	if !timed || !counted {
		return Entry{}, false
	}
	return e, e.readFields(rest)
}

func cutField(line string) (field, rest string) {
	end := strings.IndexFunc(line, unicode.IsSpace)
	if end < 0 {
		return line, ""
	}
	return line[:end], strings.TrimLeftFunc(line[end:], unicode.IsSpace)
}

// readFields reads the fields after the run number. If a field is repeated, the first
// counts. The subject is the first unknown field before the outcome.
func (e *Entry) readFields(rest string) bool {
	seen := make(map[string]bool)
	valid := true
	for field := range strings.FieldsSeq(rest) {
		name, value, pair := strings.Cut(field, "=")
		if !pair || !slices.Contains(fields, name) {
			if !seen["subject"] && !seen["outcome"] {
				seen["subject"] = true
				e.Subject = decodeSubject(field)
			}
			continue
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		switch name {
		case "action":
			e.Action = decodeValue(value)
		case "outcome":
			e.Outcome = decodeValue(value)
		case "tokens":
			e.Tokens, valid = parseCount(value)
		}
	}
	return valid && seen["action"] && seen["outcome"] && seen["tokens"]
}

// decodeSubject reads "-" and "pr=-" as no subject.
func decodeSubject(field string) string {
	name, value, pair := strings.Cut(field, "=")
	switch {
	case field == "-" || pair && value == "-":
		return ""
	case !pair:
		return decodeValue(field)
	}
	return decodeValue(name) + "=" + decodeValue(value)
}

// parseCount reads a number that is not negative.
func parseCount(digits string) (int64, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n >= 0
}

var timeLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04", time.DateOnly,
}

// ParseTime reads a time in any form that people type; without a zone it is UTC.
func ParseTime(text string) (time.Time, bool) {
	text = strings.ToUpper(strings.Replace(text, " ", "T", 1))
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
