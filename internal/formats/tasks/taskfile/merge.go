package taskfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MergeTasks makes the changes of a cycle, from base to ours, again on the file that a
// person has changed meanwhile. All bytes of theirs stay, except values that the cycle
// changed and the person did not. Left says in one line each what of ours is not there.
//
// A step that the cycle added keeps its number unless theirs has one with it. Making
// the same changes again on the result changes nothing.
func MergeTasks(base, ours, theirs string) (merged string, left []string) {
	if settled, ok := mergeWhole(base, ours, theirs); ok {
		return settled, nil
	}
	b, _ := ParseTasks(base)
	o, _ := ParseTasks(ours)
	t, _ := ParseTasks(theirs)
	m := taskMerge{base: b, ours: o, theirs: t, places: t.places()}
	inBase, inOurs := b.places(), o.places()
	for i := range o.steps {
		s := &o.steps[i]
		was, known := inBase[s.Key]
		switch {
		case !known:
		case was == severalSteps || inOurs[s.Key] == severalSteps:
			m.leave("%s is there more than once and stays as it is", s.Key)
		default:
			m.mergeStep(s, &b.steps[was])
		}
	}
	for i := range b.steps {
		s := &b.steps[i]
		_, kept := inOurs[s.Key]
		if _, there := m.places[s.Key]; there && !kept {
			m.leave("%s stays; the cycle had removed it", s.Key)
		}
	}
	m.addSteps(inBase)
	if !slices.Equal(b.otherLines(), o.otherLines()) {
		m.leave("lines outside of the steps stay as a person wrote them; the cycle had changed some")
	}
	return t.String(), m.left
}

// mergeWhole settles the cases in which one side has changed nothing.
func mergeWhole(base, ours, theirs string) (merged string, ok bool) {
	switch {
	case ours == base || ours == theirs:
		return theirs, true
	case theirs == base:
		return ours, true
	}
	return "", false
}

type taskMerge struct {
	base, ours, theirs *Tasks
	places             map[string]int // of the steps of theirs
	left               []string
}

func (m *taskMerge) leave(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(m.left, line) {
		m.left = append(m.left, line)
	}
}

// severalSteps is the place of a key that more than one step has.
const severalSteps = -1

// places are the indexes of the steps, by key.
func (t *Tasks) places() map[string]int {
	at := make(map[string]int, len(t.steps))
	for i := range t.steps {
		key := t.steps[i].Key
		switch _, twice := at[key]; {
		case key == "":
		case twice:
			at[key] = severalSteps
		default:
			at[key] = i
		}
	}
	return at
}

// fieldText is the value of a field in the form in which two of them are compared.
func (t *Tasks) fieldText(s *step, name string) string {
	line := t.fieldLine(s, name)
	switch {
	case name == "status" && s.Status != "":
		return s.Status
	case name == "priority" && s.Priority != "":
		return s.Priority
	case name == "retrycount":
		return strconv.Itoa(s.Retries)
	case line < 0:
		return ""
	}
	_, v, _ := cutField(t.lines[line])
	return v.text
}

// restText is a step without the values of its known fields.
func (t *Tasks) restText(s *step) string {
	return strings.Join([]string{s.Title, s.Text, fmt.Sprint(s.Fields)}, "\n")
}

func (m *taskMerge) mergeStep(ours, base *step) {
	title := strings.Replace(ours.Key, "-", " ", 1)
	at, there := m.places[ours.Key]
	changed := m.ours.restText(ours) != m.base.restText(base)
	for _, w := range written {
		was, is := m.base.fieldText(base, w.name), m.ours.fieldText(ours, w.name)
		if was == is {
			continue
		}
		if !there || at == severalSteps {
			changed = true
			continue
		}
		switch now := m.theirs.fieldText(&m.theirs.steps[at], w.name); now {
		case is:
		case was:
			m.theirs.setField(at, w.name, is)
		default:
			m.leave("%s: %s stays %s, as a person wrote it; the cycle had %s", title, w.bullet, shown(now), shown(is))
		}
	}
	switch {
	case !changed:
	case there && at == severalSteps:
		m.leave("%s is there more than once and stays as it is", ours.Key)
	case !there:
		m.leave("%s: it was deleted and stays so; the cycle had changed it (status %s)", title, shown(ours.Status))
	case m.ours.restText(ours) != m.theirs.restText(&m.theirs.steps[at]):
		m.leave("%s: its text stays as a person wrote it; the cycle had changed it", title)
	}
}

func shown(text string) string {
	if text == "" {
		return "empty"
	}
	return text
}

// identity is how a step is known again whose number may be another one.
func (s *step) identity() string { return cmp.Or(fold(s.Title), noTitle) + "\x00" + fold(s.From) }

// addSteps adds the steps that the cycle added, unless theirs has them.
func (m *taskMerge) addSteps(inBase map[string]int) {
	there := map[string]int{}
	for i := range m.theirs.steps {
		s := &m.theirs.steps[i]
		if _, known := inBase[s.Key]; !known {
			there[s.identity()]++
		}
	}
	least := m.ours.highest() + 1
	renamed := map[string]string{}
	for i := range m.ours.steps {
		s := &m.ours.steps[i]
		if _, known := inBase[s.Key]; known || s.Key == "" {
			continue
		}
		if there[s.identity()] > 0 {
			there[s.identity()]--
			continue
		}
		n := NewStep{Title: s.Title, Priority: s.Priority, Tags: s.Tags, From: s.From, Fields: s.Fields, Text: s.Text, Least: least}
		for _, d := range s.DependsOn {
			if to, ok := renamed[d]; ok {
				d = to
			}
			n.DependsOn = append(n.DependsOn, d)
		}
		key := s.Key
		if _, taken := m.theirs.places()[key]; taken {
			key = m.theirs.Add(n)
			renamed[s.Key] = key
			m.leave("%s is now %s: a person has added another %s", s.Key, key, s.Key)
		} else {
			m.theirs.addAs(n, key)
		}
		least = max(least, m.theirs.highest()+1)
		fields := StepFields{Status: &s.Status, BlockedReason: &s.BlockedReason, Retries: &s.Retries, Result: &s.Result}
		if s.Status == "" {
			fields.Status = nil
		}
		m.theirs.Set(key, fields)
	}
}

// otherLines are the lines with text that belong to no step.
func (t *Tasks) otherLines() []string {
	var lines []string
	from := 0
	for i := range t.steps {
		s := &t.steps[i]
		lines = append(lines, textLines(t.lines[from:s.start])...)
		from = s.end
	}
	return append(lines, textLines(t.lines[from:])...)
}

// textLines are the lines that are not blank, without line ends and trailing blanks.
func textLines(lines []string) []string {
	var list []string
	for _, line := range lines {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// MergeInbox is MergeTasks for an INBOX.md. An entry that the cycle has moved or that
// was delivered is never lost and never there twice, whatever a person did.
func MergeInbox(base, ours, theirs string) (merged string, left []string) {
	if settled, ok := mergeWhole(base, ours, theirs); ok {
		return settled, nil
	}
	b, _ := ParseInbox(base)
	o, _ := ParseInbox(ours)
	t, _ := ParseInbox(theirs)
	used := map[string]bool{}
	inBase := make(map[string]int, len(b.entries))
	for i, e := range b.entries {
		inBase[e.ID] = i
	}
	for _, e := range o.entries {
		was, known := inBase[e.ID]
		known = known && b.entries[was].From == e.From
		if known && (b.entries[was].section == e.section || e.section == pendingSection) {
			continue // The cycle left it where it was.
		}
		// With another sender it is an entry into which a person has put the key.
		at := slices.IndexFunc(t.entries, func(x entry) bool {
			return x.From == e.From && (x.ID == e.ID || e.Delivery != "" && x.Delivery == e.Delivery)
		})
		if at < 0 && known { // A person has changed its text, perhaps.
			at = slices.IndexFunc(t.entries, func(x entry) bool {
				has := func(list []entry) bool { return slices.ContainsFunc(list, func(y entry) bool { return y.ID == x.ID }) }
				return !used[x.ID] && t.headingText(x) == b.headingText(b.entries[was]) && !has(b.entries) && !has(o.entries)
			})
		}
		switch {
		case at >= 0 && t.entries[at].section == e.section, at >= 0 && e.section == pendingSection:
			used[t.entries[at].ID] = true
		case at >= 0:
			used[t.entries[at].ID] = true
			t.move(t.entries[at], "Processed: "+e.Processed)
		default:
			if known {
				left = append(left, fmt.Sprintf("the entry from %s was deleted; the cycle had worked on it, and it is below Processed", e.From))
			}
			lines := slices.Clone(o.lines[e.start:e.end])
			if last := len(lines) - 1; !strings.HasSuffix(lines[last], "\n") {
				lines[last] += t.eol
			}
			t.place(e.section, lines)
		}
	}
	return t.String(), left
}

func (b *Inbox) headingText(e entry) string { return strings.TrimSpace(b.lines[e.start]) }
