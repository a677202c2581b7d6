package spine

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// layout says where the parts of a STATE.md are. All numbers are indexes of lines;
// ends are exclusive.
type layout struct {
	title  int
	header int // -1 without an "_Updated_" line
	bodies []body
	parts  []part
	loose  bool // a comment or code fence is opened and never closed
}

// body is the text under one section heading.
type body struct {
	section Section
	last    int // its last line that is not blank, or the heading
}

// part is a bullet of a section with the lines that belong to it.
type part struct {
	Item
	empty      bool // the placeholder of an empty section
	body       int
	indent     int // columns before the bullet
	start, end int
}

// unit is a group of lines that is read as one: a plain line, or a whole comment or
// fenced block, in which nothing is a heading or an item.
type unit struct {
	start, end int
	opens      bool // it begins like a comment or a fence
	opaque     bool // it is a complete comment or fenced block
}

var (
	sectionLine = lazyregexp.New(`^ {0,3}(#{2,6})[^#\pL]*(\pL+)`)
	titleLine   = lazyregexp.New(`(?i)^ {0,3}#(|[^#\pL\pN_]|[^#].*[^\pL\pN_])STATE[\s*_.:]*(?:\([^)]*\))?[\s#]*$`)
	otherLine   = lazyregexp.New(`^ ?#{1,6}(?:\s|$)`)
	ruleLine    = lazyregexp.New(`^ ?(?:-{3,}|\*{3,}|_{3,})\s*$`)
)

// scanLayout finds the title, the header and the items, or says what is missing.
func scanLayout(lines []string) (layout, *BrokenError) {
	found := findLayout(lines)
	if found.title < 0 {
		return layout{}, &BrokenError{Line: max(len(lines), 1), Why: "no title line \"# <loop-name> — STATE\""}
	}
	if lacks := found.missingSections(); len(lacks) > 0 {
		return layout{}, &BrokenError{Line: max(len(lines), 1), Why: fmt.Sprintf("no section \"## %s\"", lacks[0])}
	}
	return found, nil
}

// findLayout finds the parts of a STATE.md that are there.
func findLayout(lines []string) layout {
	units, loose := divideUnits(lines)
	w := walker{layout: layout{title: -1, header: -1, loose: loose}, lines: lines, depth: sectionDepths(lines, units)}
	for _, u := range units {
		w.takeUnit(u)
	}
	return w.layout
}

// missingSections lists the sections that have no heading.
func (l layout) missingSections() []Section {
	return slices.DeleteFunc(slices.Clone(sections), func(section Section) bool {
		return slices.ContainsFunc(l.bodies, func(b body) bool { return b.section == section })
	})
}

// divideUnits joins comments and fenced blocks. One that is never closed is plain
// text: half a comment must not hide the rest of the file.
func divideUnits(lines []string) (units []unit, loose bool) {
	lastComment, lastFence := lastClosers(lines)
	for i := 0; i < len(lines); {
		line, _ := cutLineEnd(lines[i])
		end, opens := i+1, false
		if tail, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "<!--"); ok {
			opens = true
			end = findClosing(lines, i, lastComment, strings.Contains(tail, "-->"), isCommentEnd)
		} else if mark, _ := fenceMark(line); mark != 0 {
			opens = true
			end = findClosing(lines, i, lastFence[mark], false, func(l string) bool { return isFenceEnd(l, mark) })
		}
		opaque := opens && end > 0
		loose = loose || opens && !opaque
		end = max(end, i+1)
		units = append(units, unit{start: i, end: end, opens: opens, opaque: opaque})
		i = end
	}
	return units, loose
}

// findClosing returns the end of the block that line i opens, or 0. Last is the last
// closing line of the file: the search stops there.
func findClosing(lines []string, i, last int, here bool, ends func(string) bool) int {
	if here {
		return i + 1
	}
	for j := i + 1; j <= last; j++ {
		if ends(lines[j]) {
			return j + 1
		}
	}
	return 0
}

func lastClosers(lines []string) (comment int, fences map[byte]int) {
	fences = make(map[byte]int)
	for i, line := range lines {
		if isCommentEnd(line) {
			comment = i
		}
		if mark, info := fenceMark(line); mark != 0 && info == "" {
			fences[mark] = i
		}
	}
	return comment, fences
}

func isCommentEnd(line string) bool { return strings.Contains(line, "-->") }

func isFenceEnd(line string, mark byte) bool {
	m, info := fenceMark(line)
	return m == mark && info == ""
}

// fenceMark returns the character of a code fence and the text after the fence. The
// character is 0 for other lines.
func fenceMark(line string) (mark byte, info string) {
	line = strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return 0, ""
	}
	info = strings.TrimSpace(strings.TrimLeft(line, line[:1]))
	if line[0] == '`' && strings.Contains(info, "`") {
		return 0, ""
	}
	return line[0], info
}

// sectionDepths returns the depth of the heading of each section, 0 if it is missing.
// The lowest depth counts: "### Watch out" in a file with "## Watch" is not a section.
func sectionDepths(lines []string, units []unit) map[Section]int {
	depth := make(map[Section]int)
	for _, u := range units {
		if u.opaque {
			continue
		}
		section, d := sectionHeading(lines[u.start])
		if section != "" && (depth[section] == 0 || d < depth[section]) {
			depth[section] = d
		}
	}
	return depth
}

func sectionHeading(line string) (section Section, depth int) {
	if !strings.HasPrefix(strings.TrimLeft(line, " "), "##") {
		return "", 0
	}
	m := sectionLine.FindStringSubmatch(withoutComments(line))
	if m == nil {
		return "", 0
	}
	for _, section := range sections {
		if strings.EqualFold(m[2], string(section)) {
			return section, len(m[1])
		}
	}
	return "", 0
}

// titleName is the loop's name in a title line.
func titleName(line string) string {
	m := titleLine.FindStringSubmatch(withoutComments(line))
	if m == nil {
		return ""
	}
	return oneLine(strings.Trim(m[1], " \t—–-:|*_`"))
}

func isTitle(line string) bool { return titleLine.MatchString(withoutComments(line)) }

// withoutComments returns a line without comments and line end.
func withoutComments(line string) string {
	line, _ = cutLineEnd(line)
	return comments.ReplaceAllString(line, "")
}

// walker reads the units in order.
type walker struct {
	layout
	lines   []string
	depth   map[Section]int
	section Section // empty outside the three sections
	open    bool    // the last part may continue
	gap     bool    // blank lines since the last unit
}

func (w *walker) takeUnit(u unit) {
	line, _ := cutLineEnd(w.lines[u.start])
	switch {
	case !u.opaque && w.takeStructure(u.start, line):
		w.open, w.gap = false, false
	case !u.opaque && strings.TrimSpace(line) == "":
		w.gap = true
	case w.section == "":
		if !u.opaque && w.header < 0 && headerLine.MatchString(line) {
			w.header = u.start
		}
	default:
		w.takeInside(u, line)
		w.gap = false
	}
}

// takeStructure handles the lines that begin or end a section.
func (w *walker) takeStructure(i int, line string) bool {
	if trimmed := strings.TrimLeft(line, " "); trimmed == "" || !strings.ContainsRune("#-*_", rune(trimmed[0])) {
		return false
	}
	if section, depth := sectionHeading(line); section != "" && depth == w.depth[section] {
		w.section = section
		w.bodies = append(w.bodies, body{section: section, last: i})
		return true
	}
	title := w.title < 0 && isTitle(line)
	if title {
		w.title = i
	}
	if title || otherLine.MatchString(line) || ruleLine.MatchString(line) {
		w.section = ""
		return true
	}
	return false
}

// takeInside reads a unit of a section: more of the open part, a new part, or free
// text.
func (w *walker) takeInside(u unit, line string) {
	b := len(w.bodies) - 1
	w.bodies[b].last = u.end - 1
	text, bullet := "", false
	if !u.opaque {
		text, bullet = cutBullet(line)
	}
	deep := w.open && indentLevel(indentColumns(line)) > indentLevel(w.parts[len(w.parts)-1].indent)
	if deep || w.open && !bullet && !u.opens && !w.gap {
		w.parts[len(w.parts)-1].end = u.end
		return
	}
	priority, text := cleanItem(text)
	w.open = bullet && text != ""
	if w.open {
		w.parts = append(w.parts, part{
			Item:  Item{Section: w.section, Priority: priority, Text: text, Key: cleanKey(text)},
			empty: isPlaceholder(text), body: b, indent: indentColumns(line), start: u.start, end: u.end,
		})
	}
}

// cutBullet returns the text after a bullet.
func cutBullet(line string) (text string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || !strings.ContainsRune("-*+", rune(line[0])) {
		return "", false
	}
	r, _ := utf8.DecodeRuneInString(line[1:])
	return line[1:], line[1:] == "" || unicode.IsSpace(r)
}

// indentColumns counts the columns before the first character.
func indentColumns(line string) int {
	columns := 0
	for _, c := range []byte(line) {
		switch c {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns
		}
	}
	return columns
}

// indentLevel is the depth of an indent. Two columns are one level, so that a stray
// single space does not change the depth of an item.
func indentLevel(indent int) int { return indent / 2 }

func cutLineEnd(line string) (text, end string) {
	text = strings.TrimSuffix(line, "\n")
	if text != line {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, line[len(text):]
}

func withLineEnd(line, eol string) string {
	if strings.HasSuffix(line, "\n") {
		return line
	}
	return line + eol
}
