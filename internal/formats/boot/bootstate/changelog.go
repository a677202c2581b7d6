package bootstate

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const newChangelog = "# Changelog\n"

// changelogProblem says why a changelog cannot be used; empty if it can.
func changelogProblem(file File) string {
	switch {
	case file.Problem != "":
		return file.Problem
	case len(file.Content) > MaxBytes:
		return "it is too large"
	case !utf8.Valid(file.Content):
		return "not UTF-8"
	case bytes.IndexByte(file.Content, 0) >= 0:
		return "it contains a NUL"
	}
	return ""
}

// dayOf returns the day of a header like "## 2026-01-31"; empty for any other line.
func dayOf(text string) string {
	day, is := strings.CutPrefix(strings.TrimRight(text, " \t\r\n"), "## ")
	if _, err := time.Parse(time.DateOnly, day); !is || err != nil {
		return ""
	}
	return day
}

// AddToChangelog adds entries under the header of the day, in UTC. Days are in the order
// that the file has; a file with fewer than two grows at its end, as the protocol says.
// An entry is put on one line. Without entries the text is as it was.
func AddToChangelog(text string, now time.Time, entries []string) string {
	today := now.UTC().Format(time.DateOnly)
	newline := "\n"
	if strings.Contains(text, "\r\n") {
		newline = "\r\n"
	}
	var bullets []string
	for _, entry := range entries {
		if entry = bareEntry(entry); entry != "" {
			bullets = append(bullets, "- "+entry+newline)
		}
	}
	if len(bullets) == 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	} else {
		lines[len(lines)-1] += newline
	}
	days := dayHeaders(lines)
	for i, d := range days {
		if d.day != today {
			continue
		}
		end := len(lines)
		if i+1 < len(days) {
			end = days[i+1].line
		}
		// Another section may follow that is not a day.
		for n := d.line + 1; n < end; n++ {
			if strings.HasPrefix(lines[n], "# ") || strings.HasPrefix(lines[n], "## ") {
				end = n
			}
		}
		for end > d.line+1 && strings.TrimSpace(lines[end-1]) == "" {
			end--
		}
		if end == d.line+1 {
			bullets = slices.Insert(bullets, 0, newline)
		}
		return strings.Join(slices.Insert(lines, end, bullets...), "")
	}
	section := append([]string{"## " + today + newline, newline}, bullets...)
	if len(days) > 1 && days[0].day > days[len(days)-1].day {
		section = append(section, newline)
		return strings.Join(slices.Insert(lines, days[0].line, section...), "")
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) > 0 {
		section = slices.Insert(section, 0, newline)
	}
	return strings.Join(append(lines, section...), "")
}

type dayHeader struct {
	day  string
	line int // index
}

func dayHeaders(lines []string) []dayHeader {
	var days []dayHeader
	for i, l := range lines {
		if day := dayOf(l); day != "" {
			days = append(days, dayHeader{day, i})
		}
	}
	return days
}

// bareEntry is an entry on one line, without its bullets.
func bareEntry(text string) string {
	text = oneLine(text) + " "
	for strings.HasPrefix(text, "- ") {
		text = text[len("- "):]
	}
	return strings.TrimSpace(text)
}

// entriesOf returns the entries of each day of a changelog, each on one line with what is
// indented below it, and the days in their order.
func entriesOf(text string) (days []string, entries map[string][]string) {
	entries = map[string][]string{}
	day, inEntry := "", false
	for l := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "## "):
			inEntry = false
			if day = dayOf(l); day != "" && !slices.Contains(days, day) {
				days = append(days, day)
			}
		case day == "":
		case strings.HasPrefix(l, "- "):
			entry := bareEntry(l)
			if inEntry = entry != ""; inEntry {
				entries[day] = append(entries[day], entry)
			}
		case inEntry && strings.TrimLeft(l, " \t") != l && strings.TrimSpace(l) != "":
			last := len(entries[day]) - 1
			entries[day][last] = bareEntry(entries[day][last] + " " + l)
		default:
			inEntry = false
		}
	}
	return days, entries
}

// lastDay returns the newest day of a changelog that has entries, and the last ten.
func lastDay(text string) (day string, entries []string) {
	days, all := entriesOf(text)
	for _, d := range days {
		if d > day && len(all[d]) > 0 {
			day = d
		}
	}
	entries = all[day]
	return day, entries[max(0, len(entries)-10):]
}

// MergeChangelogs returns the first text with what only the second one has under its
// days. Its prose is that of the first.
func MergeChangelogs(first, second string) string {
	_, has := entriesOf(first)
	days, others := entriesOf(second)
	merged := first
	for _, day := range days {
		missing := slices.Clone(others[day])
		for _, entry := range has[day] {
			if i := slices.Index(missing, entry); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			}
		}
		when, _ := time.Parse(time.DateOnly, day)
		merged = AddToChangelog(merged, when, missing)
	}
	return merged
}
