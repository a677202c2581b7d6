package taskfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is a message in an INBOX.md.
type Entry struct {
	ID        string    // the same in every reading: Delivery, or a digest of its text
	At        time.Time // UTC; zero if the heading has none
	From      string
	Priority  string // one of Priorities; medium if the heading has none
	Kind      string
	Text      string // with the lines that are not known, as "Task-ID: 7"
	Tags      []string
	DependsOn []string
	Delivery  string // the key under which it was delivered; empty if a person wrote it
	Processed string // what is said of it: "2026-11-27T10:00:00Z → Step 7"
	Line      int    // from 1
	Malformed bool   // a Problem names it; it is not to be worked on
}

// Inbox is an INBOX.md.
type Inbox struct {
	document
	entries []entry
}

// entry is an Entry with its place.
type entry struct {
	Entry
	start, end int // lines; end is behind the last line with text
	section    inboxSection
}

type inboxSection int

const (
	noSection inboxSection = iota
	pendingSection
	processedSection
)

// ParseInbox reads an INBOX.md. Every text is one: what cannot be used is a problem,
// and the other entries go on.
//
// An entry is a heading "### [2026-11-27T10:00:00Z] From: chief | Priority: high" below
// "## Pending" or "## Processed", with all lines up to the next heading of its level.
func ParseInbox(text string) (*Inbox, []Problem) {
	b := &Inbox{document: newDocument(text)}
	var problems []Problem
	section, open := noSection, false
	for i, line := range b.lines {
		l, title := 0, ""
		if b.plain[i] {
			l, title = heading(line)
		}
		switch {
		case l == 1 || l == 2:
			section, open = noSection, false
			switch sectionName(title) {
			case "pending":
				section = pendingSection
			case "processed":
				section = processedSection
			}
		case l == 3 && section != noSection:
			e := entry{start: i, end: i + 1, section: section}
			e.Line, open = i+1, true
			if word, why := e.readHeading(title); why != "" {
				column := 1 + utf8.RuneCountInString(line[:strings.LastIndex(line, word)])
				problems = append(problems, Problem{Line: i + 1, Column: column, Message: why})
				e.Malformed = true
			}
			b.entries = append(b.entries, e)
		case open && !b.blank(i):
			b.entries[len(b.entries)-1].end = i + 1
		}
	}
	for i := range b.entries {
		b.readBody(&b.entries[i])
	}
	b.nameEntries()
	return b, problems
}

// readHeading reads "[2026-11-27T10:00:00Z] From: chief | Priority: high". The answer
// is what is wrong with it, and the word that is.
func (e *entry) readHeading(title string) (word, why string) {
	rest := title
	if inside, after, ok := strings.Cut(strings.TrimPrefix(title, "["), "]"); ok && title[0] == '[' {
		e.At, _ = parseTime(strings.TrimSpace(inside))
		rest = after
	} else if first, after, ok := strings.Cut(title, " "); ok {
		if at, timed := parseTime(first); timed {
			e.At, rest = at, after
		}
	}
	e.Priority = PriorityMedium
	for part := range strings.SplitSeq(rest, "|") {
		name, v, _ := cutField(part)
		switch lookupEntryField(name) {
		case "from":
			e.From = cmp.Or(e.From, v.text)
		case "kind":
			e.Kind = v.text
		case "priority":
			if v.text == "" {
				continue
			}
			if e.Priority = enumWord(v.text); !slices.Contains(Priorities, e.Priority) {
				e.Priority = ""
				return v.text, strconv.Quote(v.text) + " is not a priority; write " + strings.Join(Priorities[:3], ", ") + " or " + PriorityLow
			}
		}
	}
	if e.From == "" {
		return title, "an entry says who it is from, as in \"### [2026-11-27T10:00:00Z] From: chief | Priority: high\""
	}
	return "", ""
}

// entryFields are the fields of an entry.
var entryFields = map[string]string{
	"from": "from", "priority": "priority", "kind": "kind", "type": "kind", "tags": "tags", "dependson": "dependson", "delivery": "delivery", "processed": "processed",
}

// wordGaps are what names of fields are written with between their words.
var wordGaps = strings.NewReplacer(" ", "", "-", "", "_", "")

// lookupEntryField returns the name of a field of an entry, or "".
func lookupEntryField(name string) string {
	return entryFields[strings.ToLower(wordGaps.Replace(name))]
}

// cutEntryField reads a line of an entry that is a field.
func cutEntryField(line string) (name string, v value) {
	if line == "" || strings.IndexByte("-+ \t", line[0]) >= 0 || strings.HasPrefix(line, "* ") {
		return "", value{}
	}
	name, v, ok := cutField(line)
	if name = lookupEntryField(name); !ok || name == "from" || name == "priority" {
		return "", value{}
	}
	return name, v
}

// readBody reads the lines below the heading of an entry.
func (b *Inbox) readBody(e *entry) {
	var text strings.Builder
	for i := e.start + 1; i < e.end; i++ {
		name, v := "", value{}
		if b.plain[i] {
			name, v = cutEntryField(b.lines[i])
		}
		switch name {
		case "tags":
			e.Tags = append(e.Tags, cutList(v.text)...)
		case "dependson":
			e.DependsOn = append(e.DependsOn, cutDependencies(v.text)...)
		case "kind":
			e.Kind = v.text
		case "delivery":
			e.Delivery = cmp.Or(e.Delivery, v.text)
		case "processed":
			e.Processed = v.text
		default:
			line, _ := cutLineEnd(b.lines[i])
			text.WriteString(unescapeRow(strings.TrimRight(line, " \t")))
			text.WriteByte('\n')
		}
	}
	e.Text = strings.Trim(text.String(), "\n")
}

// nameEntries gives each entry its id. Those that were processed count first, so that
// moving one of two equal entries leaves the other its id.
func (b *Inbox) nameEntries() {
	seen := map[string]int{}
	taken := map[string]bool{}
	for _, section := range []inboxSection{processedSection, pendingSection} {
		for i := range b.entries {
			e := &b.entries[i]
			if e.section != section {
				continue
			}
			if e.ID = e.Delivery; e.ID == "" || taken[e.ID] {
				digest := b.digest(e)
				e.ID = digest
				if n := seen[digest]; n > 0 {
					e.ID += "-" + strconv.Itoa(n+1)
				}
				seen[digest]++
			}
			taken[e.ID] = true
		}
	}
}

// digest is a digest of the lines of an entry, without what is said of its processing
// and without escapes, which it may get when it moves.
func (b *Inbox) digest(e *entry) string {
	h := sha256.New()
	for i := e.start; i < e.end; i++ {
		line, _ := cutLineEnd(b.lines[i])
		if name, _ := cutEntryField(line); name == "processed" && b.plain[i] {
			continue
		}
		h.Write([]byte(withoutEscapes(line) + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// String returns the whole file.
func (b *Inbox) String() string { return b.document.String() }

// Pending lists the entries that wait and are not malformed, in file order.
func (b *Inbox) Pending() []Entry {
	return slices.DeleteFunc(b.list(pendingSection), func(e Entry) bool { return e.Malformed })
}

// Processed lists the entries below "## Processed", in file order.
func (b *Inbox) Processed() []Entry { return b.list(processedSection) }

func (b *Inbox) list(section inboxSection) []Entry {
	var list []Entry
	for _, e := range b.entries {
		if e.section == section {
			list = append(list, e.Entry)
		}
	}
	return list
}

// Has reports whether an entry was delivered under a key, whatever became of it.
func (b *Inbox) Has(delivery string) bool {
	return delivery != "" && slices.ContainsFunc(b.entries, func(e entry) bool { return e.Delivery == fold(delivery) })
}

// NewInbox returns the INBOX.md of an agent that has no messages.
func NewInbox(agent string) string {
	return "# " + fold(agent) + " — INBOX\n\n## Pending\n\n## Processed\n"
}

var timeLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04", time.DateOnly,
}

// parseTime reads a time in any form that people type; without a zone it is UTC.
func parseTime(text string) (time.Time, bool) {
	if len(text) < len(time.DateOnly) || text[4] != '-' {
		return time.Time{}, false
	}
	text = strings.ToUpper(strings.Replace(text, " ", "T", 1))
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
