package taskfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StepFields are the fields of a step that a cycle sets. A nil pointer leaves a field
// as it is.
type StepFields struct {
	Status        *string
	BlockedReason *string
	Retries       *int
	Result        *string
	From          *string
}

// written are the fields in the order in which they are written, with their names below
// a bullet and below a heading.
var written = []struct{ name, bullet, heading string }{
	{"status", "Status", "status"},
	{"priority", "Priority", "priority"},
	{"blockedreason", "Blocked reason", "blocked_reason"},
	{"retrycount", "Retry count", "retry_count"},
	{"from", "From", "from"},
	{"tags", "Tags", "tags"},
	{"dependson", "Depends on", "depends_on"},
	{"result", "Result", "result"},
}

// Set changes fields of a step. A value becomes one line of at most MaxValue
// characters. A field that has no line gets one below the others, in their indentation;
// a word that only is written in another way stays as it is. Set returns false, and
// changes nothing, unless exactly one step has this key.
func (t *Tasks) Set(key string, f StepFields) bool {
	i := t.find(key)
	if i < 0 {
		return false
	}
	s := &t.steps[i]
	if f.Status != nil && *f.Status != s.Status {
		t.setField(i, "status", *f.Status)
		s.Status = *f.Status
	}
	if f.BlockedReason != nil {
		s.BlockedReason = fold(*f.BlockedReason)
		t.setField(i, "blockedreason", s.BlockedReason)
	}
	if f.Retries != nil && *f.Retries != s.Retries {
		s.Retries = *f.Retries
		t.setField(i, "retrycount", strconv.Itoa(s.Retries))
	}
	if f.From != nil && fold(*f.From) != s.From {
		s.From = fold(*f.From)
		t.setField(i, "from", s.From)
	}
	if f.Result != nil {
		s.Result = fold(*f.Result)
		t.setField(i, "result", s.Result)
	}
	return true
}

// find returns the index of the only step with a key, or -1.
func (t *Tasks) find(key string) int {
	found := -1
	for i := range t.steps {
		switch {
		case key == "" || t.steps[i].Key != key:
		case found >= 0:
			return -1
		default:
			found = i
		}
	}
	return found
}

// fieldLine returns the line of the first field of a step with that name, or -1.
func (t *Tasks) fieldLine(s *step, name string) int {
	for _, f := range t.fields[s.fields[0]:s.fields[1]] {
		if f.name == name {
			return f.line
		}
	}
	return -1
}

// setField writes a value into the line of a field, or adds a line. An empty value
// needs none.
func (t *Tasks) setField(i int, name, text string) {
	s := &t.steps[i]
	if line := t.fieldLine(s, name); line >= 0 {
		if _, v, _ := cutField(t.lines[line]); v.text != text {
			t.lines[line] = setValue(t.lines[line], v, text)
		}
		return
	}
	if text == "" {
		return
	}
	at := s.start + 1
	for at < s.end && (!t.plain[at] || !t.isBullet(at) && !t.blank(at)) && s.fields[0] == s.fields[1] && s.indent >= 0 {
		at++ // the title goes on in these lines
	}
	lead := "- "
	if s.indent >= 0 {
		first := t.lines[s.start]
		lead = first[:len(first)-len(strings.TrimLeft(first, " \t"))] + "  " + strings.TrimLeft(first, " \t")[:1] + " "
	}
	if n := s.fields[1] - s.fields[0]; n > 0 {
		last := t.fields[s.fields[1]-1].line
		line := t.lines[t.fields[s.fields[0]].line]
		lead = line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		lead += strings.TrimLeft(line, " \t")[:1] + " "
		for at = last + 1; at < s.end; at++ { // the value goes on in these lines
			within := !t.plain[at] && !t.plain[at-1] // a comment or code block that has begun
			level, _ := heading(t.lines[at])
			if !within && (t.blank(at) || columns(t.lines[at]) <= columns(lead) || level > 0 && t.plain[at]) {
				break
			}
		}
	}
	t.insert(at, lead+fieldTitle(name, s.indent < 0)+": "+text)
	t.shift(i, at)
	s.end = max(s.end, at+1)
	t.fields = slices.Insert(t.fields, s.fields[1], taskField{name, at})
	s.fields[1]++
	for k := i + 1; k < len(t.steps); k++ {
		t.steps[k].fields[0]++
		t.steps[k].fields[1]++
	}
}

func fieldTitle(name string, heading bool) string {
	for _, w := range written {
		switch {
		case w.name != name:
		case heading:
			return w.heading
		default:
			return w.bullet
		}
	}
	return name
}

func (t *Tasks) isBullet(i int) bool {
	line := strings.TrimLeft(t.lines[i], " \t")
	return len(line) > 1 && strings.IndexByte("-*+", line[0]) >= 0 && (line[1] == ' ' || line[1] == '\t')
}

// shift moves what is at or behind a line that was inserted into step i.
func (t *Tasks) shift(i, at int) {
	for k := i; k < len(t.steps); k++ {
		s := &t.steps[k]
		if s.start >= at {
			s.start++
			s.Line++
		}
		if s.end > at {
			s.end++
		}
	}
	for k := t.steps[i].fields[0]; k < len(t.fields); k++ {
		if t.fields[k].line >= at {
			t.fields[k].line++
		}
	}
}

// NewStep is a step to add. Its values become one line each, except the text.
type NewStep struct {
	Title     string
	Priority  string // one of Priorities; empty: medium
	Tags      []string
	DependsOn []string // keys
	From      string
	Fields    []Field // others
	Text      string  // added below the fields, as a quotation
	Least     int     // the lowest number that it may get: one above all that were given before
}

// Add adds an open step at the end of "## Active Tasks", in the shape of the steps
// there, and returns its key. It gets a number above all others of the file.
func (t *Tasks) Add(n NewStep) string {
	number := max(n.Least, t.highest()+1)
	width := len("001")
	for i := range t.steps {
		if s := &t.steps[i]; s.indent < 0 {
			width = max(width, len(s.Key)-len("task-"))
		}
	}
	if shape := t.shape(); shape != nil && shape.indent < 0 {
		return t.addAs(n, fmt.Sprintf("task-%0*d", width, number))
	}
	return t.addAs(n, "step-"+strconv.Itoa(number))
}

// highest is the highest number that a step has.
func (t *Tasks) highest() int {
	n := 0
	for i := range t.steps {
		n = max(n, t.steps[i].Number)
	}
	return n
}

// shape is the step whose form new ones have: the last of the active ones, or any.
func (t *Tasks) shape() *step {
	for i := range slices.Backward(t.steps) {
		if t.steps[i].active {
			return &t.steps[i]
		}
	}
	if len(t.steps) == 0 {
		return nil
	}
	return &t.steps[0]
}

// addAs adds a step with a key that no other has.
func (t *Tasks) addAs(n NewStep, key string) string {
	heading, margin := strings.HasPrefix(key, "task-"), ""
	if shape := t.shape(); shape != nil && shape.indent > 0 && !heading {
		first := t.lines[shape.start]
		margin = first[:len(first)-len(strings.TrimLeft(first, " \t"))]
	}
	lines := newStepLines(n, key, margin, heading)
	before := t.String()
	at, apart := t.placeForStep(heading)
	t.insertStep(at, lines, apart || heading)
	if t.find(key) < 0 { // The heading is itself part of an example.
		t.document = newDocument(before)
		t.insertStep(t.addSection("Active Tasks"), lines, true)
	}
	return key
}

func (t *Tasks) insertStep(at int, lines []string, apart bool) {
	if apart {
		lines = append([]string{""}, lines...)
	}
	if at < len(t.lines) && !t.blank(at) {
		lines = append(lines, "")
	}
	t.insert(at, lines...)
	again, _ := ParseTasks(t.String())
	again.eol = t.eol
	*t = *again
}

// placeForStep returns the line before which a new step is inserted, and whether a
// blank line has to separate it from what is above.
func (t *Tasks) placeForStep(heading bool) (at int, apart bool) {
	from, to, found := t.section("active tasks", "active")
	if !found {
		return t.addSection("Active Tasks"), true
	}
	last := -1
	for i := range t.steps {
		if s := &t.steps[i]; s.start >= from && s.start < to {
			last = i
		}
	}
	if last < 0 || heading && t.steps[last].indent >= 0 { // Text below a heading would belong to it.
		return t.lastText(from, to), true
	}
	s := &t.steps[last]
	return s.end, s.start > from && t.blank(s.start-1) || s.indent < 0
}

// noTitle is the title of a step that was added without one.
const noTitle = "(no title)"

// newStepLines are the lines of a new step.
func newStepLines(n NewStep, key, margin string, heading bool) []string {
	title, priority := cmp.Or(fold(n.Title), noTitle), n.Priority
	if !slices.Contains(Priorities, priority) {
		priority = PriorityMedium
	}
	var depends []string
	for _, d := range n.DependsOn {
		if number, ok := strings.CutPrefix(d, "step-"); ok {
			d = "Step " + number
		}
		depends = append(depends, d)
	}
	values := map[string]string{
		"status": StatusOpen, "priority": priority, "from": fold(n.From), "tags": joinWords(n.Tags), "dependson": joinWords(depends),
	}
	var lines []string
	lead := margin + "  - "
	if heading {
		lead = "- "
		lines = append(lines, "### "+key, lead+"title: "+title)
	} else {
		lines = append(lines, margin+"- **Step "+strings.TrimPrefix(key, "step-")+"**: "+title)
	}
	for _, w := range written {
		if values[w.name] != "" {
			lines = append(lines, lead+fieldTitle(w.name, heading)+": "+values[w.name])
		}
	}
	for _, f := range n.Fields {
		if name, _, ok := cutField("- " + fold(f.Name) + ":"); ok && lookupField(name) == "" {
			lines = append(lines, lead+name+": "+fold(f.Value))
		}
	}
	for _, row := range foldRows(n.Text) {
		row = strings.ReplaceAll(row, "-->", arrowEscape) // It must not end a comment that is open above.
		lines = append(lines, strings.TrimSuffix(lead, "- ")+strings.TrimRight("> "+row, " "))
	}
	return lines
}

// joinWords writes a list of words on one line.
func joinWords(words []string) string {
	var list []string
	for _, word := range words {
		if word = fold(strings.NewReplacer(",", " ", ";", " ").Replace(word)); word != "" {
			list = append(list, word)
		}
	}
	return strings.Join(list, ", ")
}

// NewTasks returns the TASKS.md of an agent that has no work yet.
func NewTasks(agent string) string {
	return "# " + fold(agent) + ` — TASKS

## Active Tasks

## Task Format

- **Step N**: description
  - Status: open | in-progress | blocked | done | failed
  - Priority: critical | high | medium | low
  - Blocked reason: why it cannot go on
  - Retry count: 0
  - Depends on: Step 1, Step 2
  - Result: what came of it

## Completed Tasks
`
}
