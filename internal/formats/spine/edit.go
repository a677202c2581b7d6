package spine

import (
	"slices"
	"strconv"
	"strings"
)

// spare bytes below MaxState stay free, so that no edit makes the file too large to
// be read.
const spare = 4 << 10

// edit collects changes of lines. applyEdit makes them all at once.
type edit struct {
	s       *State
	drop    map[int]bool         // lines to remove
	set     map[int]string       // lines to replace
	add     map[Section][]string // lines to add at the end of a list
	touched map[Section]bool
	anchors map[Section]anchor
	room    int // bytes the file may still grow
}

// anchor is the line after which new items of a section are added, and their
// indentation.
type anchor struct {
	line   int
	margin string
}

func (s *State) beginEdit() *edit {
	size := len(s.bom)
	for _, line := range s.lines {
		size += len(line)
	}
	return &edit{
		s: s, room: MaxState - spare - size, anchors: s.findAnchors(),
		drop: make(map[int]bool), set: make(map[int]string),
		add: make(map[Section][]string), touched: make(map[Section]bool),
	}
}

// Add adds a new item at the end of a section's list. The text is cleaned as Item
// says; its own tag counts if priority is not 1 to 9. Add changes nothing and returns
// false if no text is left, if any section has an item with this key, or if the file
// would become too large.
func (s *State) Add(section Section, priority int, text string) bool {
	it := newItem(section, priority, text)
	if s.hasItem(it.Key) {
		return false
	}
	e := s.beginEdit()
	return e.createItem(it) && e.applyEdit()
}

// Move moves an item, with the lines that belong to it, to the end of another
// section's list. It returns false if there is nothing to move.
func (s *State) Move(key string, to Section) bool {
	e := s.beginEdit()
	for _, p := range s.parts {
		if p.hasKey(key) && p.Section != to && to.IsKnown() {
			e.removePart(p)
			e.insertLines(to, e.carriedLines(p, to)...)
		}
	}
	return e.applyEdit()
}

// noteStart begins the line below an item that says why a human has it.
const noteStart = "- escalated in run #"

// SetNote sets the line below an item that says in which run it was handed to a
// human, and why. The line of an earlier run is removed; if run is 0, nothing is added.
// SetNote changes nothing if no item has this key, or if the file would become too
// large.
func (s *State) SetNote(key string, run int64, why string) {
	i := slices.IndexFunc(s.parts, func(p part) bool { return p.hasKey(key) })
	if i < 0 {
		return
	}
	p := s.parts[i]
	lines := slices.DeleteFunc(slices.Clone(s.lines[p.start:p.end]), func(line string) bool {
		return strings.HasPrefix(strings.TrimLeft(line, " \t"), noteStart)
	})
	if run > 0 {
		note := noteStart + strconv.FormatInt(run, 10)
		if why = oneLine(why); why != "" {
			note += ": " + why
		}
		note = lineMargin(s.lines[p.start]) + "  " + note + s.eol
		if len(note) > s.beginEdit().room {
			return
		}
		last := len(lines)
		for last > 1 && strings.TrimSpace(lines[last-1]) == "" {
			last--
		}
		lines[last-1] = withLineEnd(lines[last-1], s.eol)
		lines = slices.Insert(lines, last, note)
	}
	s.lines = slices.Concat(s.lines[:p.start], lines, s.lines[p.end:])
	s.rescan()
}

// Remove deletes an item and the lines that belong to it. It returns false if no item
// has this key.
func (s *State) Remove(key string) bool {
	e := s.beginEdit()
	for _, p := range s.parts {
		if p.hasKey(key) {
			e.removePart(p)
		}
	}
	return e.applyEdit()
}

// ReplaceLists replaces the lists by those of an agent's report, whose entries may
// have tags. Items that the report names again keep their place, wording and the lines
// below them, and get the report's tag if it has one. Items that it names in another
// section move there, and the others are removed. An entry that is named twice counts
// the first time. ReplaceLists returns how many entries it left out because the file
// would have become too large.
func (s *State) ReplaceLists(priority, watch, noise []string) (left int) {
	e := s.beginEdit()
	for _, section := range sections {
		e.touched[section] = true
	}
	wanted := wantedItems(priority, watch, noise)
	home := e.keepWanted(wanted)
	for _, it := range wanted {
		p, exists := home[it.Key]
		switch {
		case !exists:
			if !e.createItem(it) {
				left++
			}
		case p.Section == it.Section:
			e.setPriority(p, it.Priority)
		default:
			lines := e.carriedLines(p, it.Section)
			lines[0] = setTag(lines[0], it.Priority)
			e.insertLines(it.Section, lines...)
		}
	}
	e.applyEdit()
	return left
}

// wantedItems lists a report's entries, each key once.
func wantedItems(priority, watch, noise []string) []Item {
	var items []Item
	seen := map[string]bool{"": true}
	for i, texts := range [][]string{priority, watch, noise} {
		for _, text := range texts {
			if it := newItem(sections[i], 0, text); !seen[it.Key] {
				seen[it.Key] = true
				items = append(items, it)
			}
		}
	}
	return items
}

// keepWanted finds the part that each wanted item already has, in its own section if
// possible, and removes all parts that are in no wanted place.
func (e *edit) keepWanted(wanted []Item) map[string]part {
	section := make(map[string]Section, len(wanted))
	for _, it := range wanted {
		section[it.Key] = it.Section
	}
	home := make(map[string]part)
	for _, p := range e.s.parts {
		if p.empty {
			continue
		}
		first, seen := home[p.Key]
		stays := section[p.Key] == p.Section
		if !stays {
			e.removePart(p)
		}
		if section[p.Key] != "" && (!seen || stays && first.Section != p.Section) {
			home[p.Key] = p
		}
	}
	return home
}

func newItem(section Section, priority int, text string) Item {
	tag, text := cleanItem(text)
	if priority < 1 || priority > 9 {
		priority = tag
	}
	return Item{Section: section, Priority: priority, Text: text, Key: cleanKey(text)}
}

func (s *State) hasItem(key string) bool {
	return slices.ContainsFunc(s.parts, func(p part) bool { return p.hasKey(key) })
}

func (p part) hasKey(key string) bool { return !p.empty && p.Key == key }

func (e *edit) createItem(it Item) bool {
	if it.Key == "" || !it.Section.IsKnown() {
		return false
	}
	line := itemLine(e.anchors[it.Section].margin, it.Priority, it.Text) + e.s.eol
	if len(line) > e.room {
		return false
	}
	e.room -= len(line)
	e.insertLines(it.Section, line)
	return true
}

func (e *edit) insertLines(section Section, lines ...string) {
	e.add[section] = append(e.add[section], lines...)
	e.touched[section] = true
}

func (e *edit) removePart(p part) {
	for i := p.start; i < p.end; i++ {
		e.drop[i] = true
	}
	e.touched[p.Section] = true
}

// setPriority gives a part that stays in its place the report's tag.
func (e *edit) setPriority(p part, priority int) {
	line := setTag(e.s.lines[p.start], priority)
	if priority == p.Priority || len(line)-len(e.s.lines[p.start]) > e.room {
		return
	}
	e.room -= len(line) - len(e.s.lines[p.start])
	e.set[p.start] = line
}

// carriedLines returns a part's lines for another section. They change only where they
// would mean something else there.
func (e *edit) carriedLines(p part, to Section) []string {
	margin := e.anchors[to].margin
	var lines []string
	for i, line := range e.s.lines[p.start:p.end] {
		line = withLineEnd(line, e.s.eol)
		switch {
		case e.s.loose && i == 0:
			line = itemLine(margin, p.Priority, p.Text) + e.s.eol
		case e.s.loose:
			line = deepenLine(escapeMarkdown(line), p.indent, margin)
		case i == 0 && p.indent != indentColumns(margin):
			line = margin + strings.TrimLeft(line, " \t")
		default:
			line = reindentLine(line, p.indent, margin)
		}
		lines = append(lines, line)
	}
	return lines
}

// reindentLine moves a line below a bullet from one margin to another. A line that is
// deeper than the bullet stays deeper.
func reindentLine(line string, from int, margin string) string {
	if from == indentColumns(margin) || indentLevel(indentColumns(line)) <= indentLevel(from) {
		return line
	}
	return deepenLine(line, from, margin)
}

func deepenLine(line string, from int, margin string) string {
	text := strings.TrimLeft(line, " \t")
	if strings.TrimSpace(text) == "" {
		return line
	}
	return margin + strings.Repeat(" ", max(2, indentColumns(line)-from)) + text
}

// escapeMarkdown escapes what opens or closes a comment or a code fence, and headings
// that were hidden by one. In a file with a fence that is never closed, a line that
// moves could become its end.
func escapeMarkdown(line string) string {
	line = strings.ReplaceAll(line, "-->", `--\>`)
	space := lineMargin(line)
	for _, open := range []string{"<!--", "```", "~~~", "#"} {
		if text := line[len(space):]; strings.HasPrefix(text, open) {
			return space + `\` + text
		}
	}
	return line
}

// findAnchors finds where the lists end. After the last bullet, and with its
// indentation, no following line can become part of a new item. In a list without a
// bullet, the same is true after its last line.
func (s *State) findAnchors() map[Section]anchor {
	at := make(map[Section]anchor)
	list := make(map[Section]int)
	for i, b := range s.bodies {
		if _, again := list[b.section]; !again {
			list[b.section], at[b.section] = i, anchor{line: b.last}
		}
	}
	for _, p := range s.parts {
		if p.body == list[p.Section] {
			at[p.Section] = anchor{line: p.end - 1, margin: lineMargin(s.lines[p.start])}
		}
	}
	return at
}

func lineMargin(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// applyEdit makes the changes and reports whether there were any.
func (e *edit) applyEdit() bool {
	comes := make(map[int][]string)
	for _, section := range sections {
		if e.touched[section] {
			e.settlePlaceholder(section)
		}
		comes[e.anchors[section].line] = e.add[section]
	}
	var out []string
	for i, line := range e.s.lines {
		if changed, ok := e.set[i]; ok {
			line = changed
		}
		if !e.drop[i] {
			out = append(out, line)
		}
		if more := comes[i]; len(more) > 0 {
			if n := len(out); n > 0 {
				out[n-1] = withLineEnd(out[n-1], e.s.eol)
			}
			out = append(out, more...)
		}
	}
	if len(e.touched) == 0 {
		return false
	}
	e.s.lines = out
	e.s.rescan()
	return true
}

// settlePlaceholder adds the placeholder to an empty list and removes it from any other.
// A placeholder with text below it was written by a person and stays.
func (e *edit) settlePlaceholder(section Section) {
	shown, filled := false, len(e.add[section]) > 0
	for _, p := range e.s.parts {
		switch {
		case p.Section != section || e.drop[p.start]:
		case !p.empty:
			filled = true
		case len(e.add[section]) > 0 && p.end-p.start == 1:
			e.drop[p.start] = true
		default:
			shown = true
		}
	}
	if !filled && !shown {
		e.add[section] = append(e.add[section], e.anchors[section].margin+"- "+placeholder+e.s.eol)
	}
}
