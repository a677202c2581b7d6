package taskfile

import (
	"slices"
	"strings"
	"time"
)

// NewEntry is a message to add.
type NewEntry struct {
	At        time.Time
	From      string
	Priority  string // one of Priorities; empty: medium
	Kind      string
	Text      string
	Tags      []string
	DependsOn []string // keys of steps
	Delivery  string   // the key of the delivery: it is added once only
}

// AddPending adds an entry at the end of "## Pending" and returns its id. If an entry
// was delivered under that key, nothing changes. Text cannot become a heading or a
// field.
func (b *Inbox) AddPending(n NewEntry) string {
	delivery := fold(n.Delivery)
	for _, e := range b.entries {
		if delivery != "" && e.Delivery == delivery {
			return e.ID
		}
	}
	priority := n.Priority
	if !slices.Contains(Priorities, priority) {
		priority = PriorityMedium
	}
	from := strings.ReplaceAll(fold(n.From), "|", "/")
	if from == "" {
		from = "unknown"
	}
	lines := []string{"### [" + n.At.UTC().Format(stamp) + "] From: " + from + " | Priority: " + priority}
	for _, row := range foldRows(n.Text) {
		lines = append(lines, escapeRow(row))
	}
	for _, f := range []struct{ name, text string }{
		{"Kind", fold(n.Kind)}, {"Tags", joinWords(n.Tags)}, {"Depends-on", joinWords(n.DependsOn)}, {"Delivery", delivery},
	} {
		if f.text != "" {
			lines = append(lines, f.name+": "+f.text)
		}
	}
	for i, line := range lines {
		lines[i] = line + b.eol
	}
	had := map[string]bool{}
	for _, e := range b.entries {
		had[e.ID] = true
	}
	if !b.place(pendingSection, lines) {
		return ""
	}
	for _, e := range b.entries {
		if !had[e.ID] {
			return e.ID
		}
	}
	return ""
}

// Process moves a pending entry, with all of its lines, to the end of "## Processed"
// and adds what became of it. It returns false if no pending entry has this id.
func (b *Inbox) Process(id string, at time.Time, note string) bool {
	i := slices.IndexFunc(b.entries, func(e entry) bool { return e.ID == id && e.section == pendingSection })
	if i < 0 {
		return false
	}
	said := "Processed: " + at.UTC().Format(stamp)
	if note = fold(note); note != "" {
		said += " → " + note
	}
	return b.move(b.entries[i], said)
}

// move moves an entry to the end of "## Processed", with one more line.
func (b *Inbox) move(e entry, said string) bool {
	lines := append(slices.Clone(b.lines[e.start:e.end]), said+b.eol)
	if last := len(lines) - 2; !strings.HasSuffix(lines[last], "\n") {
		lines[last] += b.eol
	}
	before, end := b.document.String(), e.end
	if end < len(b.lines) && b.blank(end) && b.blank(e.start-1) {
		end++
	}
	b.lines = slices.Delete(b.lines, e.start, end)
	b.reread(b.document.String())
	if !b.place(processedSection, lines) {
		b.reread(before)
		return false
	}
	return true
}

// place adds the lines of one entry at the end of a section. Where it would open or
// close a comment or a code block for other lines, or be hidden by one, the section is
// made again at the end, and at last the lines are escaped. It reports whether the entry
// is there.
func (b *Inbox) place(section inboxSection, lines []string) bool {
	before := b.document.String()
	names := map[inboxSection]string{pendingSection: "Pending", processedSection: "Processed"}
	count, had := len(b.entries), len(b.list(section))
	escaped := slices.Clone(lines)
	for i, line := range escaped {
		escaped[i] = strings.ReplaceAll(line, "-->", arrowEscape)
		if name, _ := cutEntryField(line); name == "" && i > 0 {
			text, end := cutLineEnd(line)
			escaped[i] = escapeRow(text) + end
		}
	}
	for _, try := range []struct {
		lines []string
		fresh bool
	}{{lines, false}, {lines, true}, {escaped, false}, {escaped, true}} {
		from, to, found := b.section(strings.ToLower(names[section]))
		at := b.lastText(from, to)
		if !found || try.fresh {
			at = b.addSection(names[section])
		}
		block := append([]string{b.eol}, try.lines...)
		if at < len(b.lines) && !b.blank(at) {
			block = append(block, b.eol)
		}
		b.insertLines(at, block)
		others := slices.Delete(slices.Clone(b.plain), at, at+len(block))
		b.reread(b.document.String())
		hides := !b.plain[at+len(try.lines)] || !slices.Equal(others, slices.Delete(slices.Clone(b.plain), at, at+len(block)))
		if !hides && len(b.entries) == count+1 && len(b.list(section)) == had+1 {
			return true
		}
		b.reread(before)
	}
	return false
}

func (b *Inbox) reread(text string) {
	eol := b.eol
	again, _ := ParseInbox(text)
	*b = *again
	b.eol = eol
}

// escapeRow keeps a line of text from being a heading, the end of a code block or a
// comment, or a field.
func escapeRow(row string) string {
	row = strings.ReplaceAll(row, "-->", arrowEscape)
	text := strings.TrimLeft(row, " \t")
	margin := row[:len(row)-len(text)]
	name, _ := cutEntryField(row)
	for _, mark := range []string{"#", "```", "~~~", "<!--", `\`} {
		if strings.HasPrefix(text, mark) || name != "" {
			return margin + `\` + text
		}
	}
	return row
}

// unescapeRow undoes escapeRow.
func unescapeRow(row string) string {
	text := strings.TrimLeft(row, " \t")
	if plain, ok := strings.CutPrefix(text, `\`); ok && escapeRow(row[:len(row)-len(text)]+plain) == row {
		row = row[:len(row)-len(text)] + plain
	}
	return strings.ReplaceAll(row, arrowEscape, "-->")
}

// withoutEscapes is a line as it is compared with one that may have been escaped.
func withoutEscapes(row string) string {
	for plain := unescapeRow(row); plain != row; plain = unescapeRow(row) {
		row = plain
	}
	return row
}
