package taskfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// taskParser reads lines in order.
type taskParser struct {
	*Tasks
	problems     []Problem
	exampleLevel int // of the heading "Task Format" that is open
	doneLevel    int // of the heading "Completed Tasks" that is open
	activeLevel  int
	open         bool // the last step may go on
	gap          bool // blank lines since the last line
	deep         bool // below a heading inside of the step: no more fields
	text         bool // the step has lines that are not fields
}

func (p *taskParser) report(line int, at int, format string, args ...any) {
	column := 1 + utf8.RuneCountInString(p.lines[line][:at])
	p.problems = append(p.problems, Problem{Line: line + 1, Column: column, Message: fmt.Sprintf(format, args...)})
}

func (p *taskParser) takeLine(i int, line string) {
	at := 0
	for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
		at++
	}
	switch {
	case !p.plain[i] && i > 0 && !p.plain[i-1]:
		if p.open { // It is part of what the line above is part of.
			p.steps[len(p.steps)-1].end = i + 1
		}
	case strings.TrimSpace(line[at:]) == "":
		p.gap = true
		return
	case !p.plain[i]:
		p.takeText(i, line)
	case line[at] == '#':
		p.takeHeading(i, line)
	case line[at] == '-' || line[at] == '*' || line[at] == '+':
		p.takeBullet(i, line, at)
	case line[at] == '_' && isRule(line):
		p.closeStep()
	default:
		p.takeText(i, line)
	}
	p.gap = false
}

func (p *taskParser) takeHeading(i int, line string) {
	level, title := heading(line)
	if level == 0 {
		p.takeText(i, line)
		return
	}
	if level > 2 && len(title) >= 5 && strings.EqualFold(title[:5], "task-") {
		p.closeStep()
		if p.exampleLevel == 0 {
			p.beginTask(i, title)
		}
		return
	}
	if p.open && p.steps[len(p.steps)-1].indent < 0 && level > 3 {
		p.deep = true
		p.takeText(i, line)
		return
	}
	p.closeStep()
	for _, open := range []*int{&p.exampleLevel, &p.doneLevel, &p.activeLevel} {
		if *open > 0 && level <= max(*open, 2) {
			*open = 0
		}
	}
	switch sectionName(title) {
	case "task format":
		p.exampleLevel = level
	case "completed tasks", "completed":
		p.doneLevel = level
	case "active tasks", "active":
		p.activeLevel = level
	}
}

func (p *taskParser) beginTask(i int, title string) {
	digits := len(title[5:]) - len(strings.TrimLeft(title[5:], "0123456789"))
	id, rest := title[:5+digits], title[5+digits:]
	s := step{start: i, indent: -1}
	s.Title = cleanTitle(strings.TrimLeft(strings.TrimRight(rest, "#"), " \t:—–-"))
	number, err := strconv.Atoi(id[5:])
	if err != nil || digits > 9 || rest != "" && !strings.ContainsRune(" \t:", rune(rest[0])) {
		s.Malformed = true
		p.report(i, strings.Index(p.lines[i], title)+5, "a task needs a number, as in \"### task-001\"")
	} else {
		s.Key, s.Number = strings.ToLower(id), number
	}
	p.beginStep(s)
}

func (p *taskParser) beginStep(s step) {
	s.Line, s.end, s.fieldIndent = s.start+1, s.start+1, -1
	s.fields = [2]int{len(p.fields), len(p.fields)}
	s.Completed, s.active = p.doneLevel > 0, p.activeLevel > 0
	p.steps = append(p.steps, s)
	p.open, p.deep, p.text = true, false, false
}

func (p *taskParser) takeBullet(i int, line string, at int) {
	if len(line) > at+1 && line[at+1] != ' ' && line[at+1] != '\t' {
		if isRule(line) {
			p.closeStep()
			return
		}
		p.takeText(i, line)
		return
	}
	if word, after, ok := cutStep(line, at+1); ok {
		p.closeStep()
		if p.exampleLevel == 0 {
			p.beginBullet(i, line, word, after)
		}
		return
	}
	if isRule(line) {
		p.closeStep()
		return
	}
	if !p.open {
		return
	}
	s := &p.steps[len(p.steps)-1]
	indent := columns(line)
	name, v, ok := cutField(line)
	known := ""
	if ok {
		known = lookupField(name)
	}
	switch {
	case indent <= s.indent && (known == "" || p.gap):
		p.closeStep()
		return
	case !ok || p.deep || s.fieldIndent >= 0 && indent > s.fieldIndent+1:
		p.takeText(i, line)
		return
	}
	if s.fieldIndent < 0 {
		s.fieldIndent = indent
	}
	s.end = i + 1
	p.fields = append(p.fields, taskField{known, i})
	p.takeField(s, i, name, known, v)
	s.fields[1] = len(p.fields)
}

// lookupField returns the name of a known field, or "".
func lookupField(name string) string {
	var b [40]byte
	n := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == ' ' || c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			b[n] = c + 'a' - 'A'
			n++
		default:
			b[n] = c
			n++
		}
	}
	return knownFields[string(b[:n])]
}

// cutStep reads "**Step 3**: title" behind a bullet. Word begins at the byte after
// "Step"; title is what follows the number.
func cutStep(line string, at int) (word int, mark string, ok bool) {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
		at++
	}
	if rest := line[at:]; len(rest) > 4 && rest[0] == '[' && rest[2] == ']' && rest[3] == ' ' {
		at += 4
	}
	rest := line[at:]
	if len(rest) < 6 || rest[:2] != "**" && rest[:2] != "__" || !strings.EqualFold(rest[2:6], "step") {
		return 0, "", false
	}
	if len(rest) > 6 && strings.IndexByte(" \t0123456789:#*_-", rest[6]) < 0 {
		return 0, "", false
	}
	return at + 6, rest[:2], true
}

func (p *taskParser) beginBullet(i int, line string, at int, mark string) {
	s := step{start: i, indent: columns(line)}
	text, _ := cutLineEnd(line)
	for at < len(text) && strings.IndexByte(" \t#-", text[at]) >= 0 {
		at++
	}
	rest := strings.TrimLeft(text[at:], "0123456789")
	digits := text[at : len(text)-len(rest)]
	number, err := strconv.Atoi(digits)
	if err != nil || len(digits) > 9 || rest != "" && strings.IndexByte(" \t:*_.)(", rest[0]) < 0 || len(rest) > 1 && rest[0] == '.' && '0' <= rest[1] && rest[1] <= '9' {
		s.Malformed = true
		p.report(i, at, "a step needs a number, as in \"- **Step 3**: title\"")
		p.beginStep(s)
		return
	}
	s.Key, s.Number = "step-"+strconv.Itoa(number), number
	before, after, closed := strings.Cut(rest, mark)
	if !closed {
		before, after = rest, ""
	}
	before = strings.TrimLeft(strings.TrimSpace(before), ".):")
	after = strings.TrimPrefix(strings.TrimSpace(after), ":")
	if strings.TrimSpace(before) == "" {
		s.Title = cleanTitle(after)
	} else {
		s.Title = cleanTitle(before + " " + after)
	}
	if box := strings.TrimLeft(line, " \t-*+"); strings.HasPrefix(box, "[x]") || strings.HasPrefix(box, "[X]") {
		s.Status = StatusDone
	}
	p.beginStep(s)
}

func cleanTitle(text string) string {
	if c := strings.Index(text, "<!--"); c >= 0 {
		text = text[:c]
	}
	return strings.TrimSpace(text)
}

func (p *taskParser) takeText(i int, line string) {
	if !p.open {
		return
	}
	s := &p.steps[len(p.steps)-1]
	if s.indent >= 0 && p.gap && columns(line) <= s.indent {
		p.closeStep()
		return
	}
	s.end, p.text = i+1, true
}

func (p *taskParser) takeField(s *step, i int, name, known string, v value) {
	before := p.fields[s.fields[0] : len(p.fields)-1]
	first := slices.IndexFunc(before, func(f taskField) bool { return f.name == known })
	switch {
	case known == "":
		s.Fields = append(s.Fields, Field{name, v.text})
		return
	case first >= 0 && (known == "status" || known == "priority" || known == "retrycount"):
		s.Malformed = true
		p.report(i, v.start, "the step has a second %s; the first is in line %d", strings.ToLower(fieldTitle(known, false)), before[first].line+1)
		return
	case first >= 0 && known != "tags" && known != "dependson":
		return // The first one counts, as it does for Set.
	}
	switch known {
	case "status":
		s.Status = p.readWord(s, i, v, "status", Statuses)
	case "priority":
		s.Priority = p.readWord(s, i, v, "priority", Priorities)
	case "blockedreason":
		s.BlockedReason = v.text
	case "result":
		s.Result = v.text
	case "title":
		s.Title = cmp.Or(s.Title, v.text)
	case "from":
		s.From = v.text
	case "tags":
		s.Tags = append(s.Tags, cutList(v.text)...)
	case "dependson":
		s.DependsOn = append(s.DependsOn, cutDependencies(v.text)...)
	case "retrycount":
		n, err := strconv.Atoi(v.text)
		switch {
		case slices.Contains([]string{"", "-", "none"}, strings.ToLower(v.text)):
		case err != nil || n < 0:
			s.Malformed = true
			p.report(i, v.start, "%q is not a retry count; write 0 or more", v.text)
		default:
			s.Retries = n
		}
	}
}

// badWord is the status or the priority of a step that is malformed by it, until the
// step ends.
const badWord = "\x00"

// readWord reads a word of an enum.
func (p *taskParser) readWord(s *step, i int, v value, what string, words []string) string {
	word := v.text
	if word == "" || slices.Contains(words, word) {
		return word
	}
	if word = enumWord(word); slices.Contains(words, word) {
		return word
	}
	s.Malformed = true
	p.report(i, v.start, "%q is not a %s; write %s or %s", v.text, what, strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
	return badWord
}

func (p *taskParser) closeStep() {
	if !p.open {
		return
	}
	p.open = false
	s := &p.steps[len(p.steps)-1]
	switch {
	case s.Status == badWord:
		s.Status = ""
	case s.Status == "" && s.Completed:
		s.Status = StatusDone
	case s.Status == "":
		s.Status = StatusOpen
	}
	switch s.Priority {
	case badWord:
		s.Priority = ""
	case "":
		s.Priority = PriorityMedium
	}
	if s.Title == "" && !s.Malformed {
		s.Malformed = true
		p.report(s.start, 0, "%s has no title", s.Key)
	}
	if p.text {
		s.Text = p.stepText(s)
	}
}

// stepText joins the lines of a step that are not fields.
func (p *taskParser) stepText(s *step) string {
	var b strings.Builder
	fields := p.fields[s.fields[0]:s.fields[1]]
	for i := s.start + 1; i < s.end; i++ {
		if len(fields) > 0 && fields[0].line == i {
			fields = fields[1:]
			continue
		}
		line := strings.TrimSpace(p.lines[i])
		if quoted, ok := strings.CutPrefix(line, ">"); ok {
			line = strings.ReplaceAll(strings.TrimPrefix(quoted, " "), arrowEscape, "-->")
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.Trim(b.String(), "\n")
}

// checkNumbers reports numbers that two steps have, and gives dependencies the keys of
// the steps that they mean.
func (p *taskParser) checkNumbers() {
	first := make(map[int]int, len(p.steps)) // headings have the numbers below zero
	for i := range p.steps {
		s := &p.steps[i]
		if s.Key == "" {
			continue
		}
		id := s.Number
		if s.indent < 0 {
			id = -1 - id
		}
		j, twice := first[id]
		if !twice {
			first[id] = i
			continue
		}
		s.Malformed, p.steps[j].Malformed = true, true
		p.report(s.start, 0, "%s is in line %d and in line %d; give one of them another number", s.Key, p.steps[j].Line, s.Line)
	}
	for i := range p.steps {
		for k, word := range p.steps[i].DependsOn {
			number, ok := strings.CutPrefix(word, "task-")
			if n, err := strconv.Atoi(number); ok && err == nil {
				if j, found := first[-1-n]; found {
					p.steps[i].DependsOn[k] = p.steps[j].Key
				}
			}
		}
	}
}

// cutDependencies reads "Step 1, step-2 and task-001".
func cutDependencies(text string) []string {
	if strings.Contains(text, " and ") || strings.Contains(text, "&") {
		text = strings.NewReplacer(" and ", ",", "&", ",").Replace(text)
	}
	words := cutList(text)
	for i, word := range words {
		name := word
		if p := strings.IndexByte(name, '('); p > 0 {
			name = strings.TrimSpace(name[:p])
		}
		kind, number, ok := strings.Cut(enumWord(name), "-")
		if !ok {
			kind, number = "step", strings.TrimPrefix(kind, "#")
		}
		switch n, err := strconv.Atoi(number); {
		case err != nil || n < 0:
		case kind == "step" || kind == "steps":
			words[i] = "step-" + strconv.Itoa(n)
		case kind == "task":
			words[i] = "task-" + number
		}
	}
	return words
}
