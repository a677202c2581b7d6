package taskfile

import (
	"fmt"
	"slices"
	"strings"
)

// MergeHeartbeat is MergeTasks for a HEARTBEAT.md: by line of the status block, by row
// and by week. What ours has at its end beyond base is added at the end.
func MergeHeartbeat(base, ours, theirs string) (merged string, left []string) {
	if settled, ok := mergeWhole(base, ours, theirs); ok {
		return settled, nil
	}
	b, o, t := ParseHeartbeat(base), ParseHeartbeat(ours), ParseHeartbeat(theirs)
	tail, clean := addedTail(b.otherLines(), o.otherLines())
	left = t.mergeStatus(b, o)
	t.mergeRows(b, o)
	left = append(left, t.mergeWeeks(b, o)...)
	if !clean {
		left = append(left, otherLinesStay)
	}
	t.appendOnce(tail, b.otherLines())
	return t.String(), left
}

const otherLinesStay = "other lines stay as a person wrote them; the cycle had changed some"

func (h *Heartbeat) mergeStatus(b, o *Heartbeat) (left []string) {
	values := func(h *Heartbeat) map[string]string {
		all := map[string]string{}
		for _, l := range h.statusLines() {
			all[l.name] = l.text
			if l.table {
				all[l.name] = unescapeCell(l.text)
			}
		}
		return all
	}
	was, is, now := values(b), values(o), values(h)
	for _, s := range statusNames {
		there, found := now[s.name]
		_, had := was[s.name]
		_, kept := is[s.name]
		switch {
		case !kept || is[s.name] == was[s.name] || found && there == is[s.name]:
		case found && had && there == was[s.name] || !found && !had:
			h.setStatus(s.name, is[s.name])
		default:
			left = append(left, fmt.Sprintf("status: %s stays %s, as a person wrote it; the cycle had %s", s.name, shown(there), shown(is[s.name])))
		}
	}
	return left
}

// mergeRows adds the rows of ours that neither base nor the log has.
func (h *Heartbeat) mergeRows(b, o *Heartbeat) {
	t, found := h.findLog()
	if !found {
		for _, c := range logColumns {
			t.columns = append(t.columns, c.name)
		}
	}
	count := func(h *Heartbeat) map[string]int {
		rows := map[string]int{}
		for _, r := range h.tableRows() {
			rows[formatRow(t.columns, r)]++
		}
		return rows
	}
	before, now := count(b), count(h)
	for _, r := range o.tableRows() {
		row := formatRow(t.columns, r)
		switch {
		case before[row] > 0:
			if before[row]--; now[row] > 0 {
				now[row]--
			}
		case now[row] > 0:
			now[row]--
		default:
			h.AddRow(r)
		}
	}
}

func (h *Heartbeat) tableRows() []Row {
	var rows []Row
	t, _ := h.findLog()
	for i := t.from; i < t.to; i++ {
		if r, ok := readRow(t.columns, h.lines[i]); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

func (h *Heartbeat) mergeWeeks(b, o *Heartbeat) (left []string) {
	weeks := func(h *Heartbeat) map[int]Week {
		all := map[int]Week{}
		for _, w := range h.Trends() {
			all[w.order()] = w
		}
		return all
	}
	was, now := weeks(b), weeks(h)
	for _, w := range o.Trends() {
		before, had := was[w.order()]
		there, found := now[w.order()]
		switch {
		case had && before == w || found && there == w:
		case had == found && there == before:
			h.SetTrends(w)
		default:
			left = append(left, fmt.Sprintf("trends: %04d-W%02d stays as a person wrote it", w.Year, w.Week))
		}
	}
	return left
}

// otherLines are the lines with text that are not of the status block, of the log or of
// the trends.
func (h *Heartbeat) otherLines() []string {
	own := map[int]bool{}
	for _, l := range h.statusLines() {
		own[l.line] = true
	}
	for _, i := range h.weekLines() {
		own[i] = true
	}
	if t, found := h.findLog(); found {
		for i := t.from - 2; i < t.to; i++ {
			own[i] = true
		}
	}
	return h.others(own, "current status", "cycle log", "health trends")
}

// MergeContext is MergeTasks for a CONTEXT.md: by pitfall. What ours has at its end
// beyond base is added at the end.
func MergeContext(base, ours, theirs string) (merged string, left []string) {
	if settled, ok := mergeWhole(base, ours, theirs); ok {
		return settled, nil
	}
	b, o, t := ParseContext(base), ParseContext(ours), ParseContext(theirs)
	tail, clean := addedTail(b.otherLines(), o.otherLines())
	byCause := func(c *Context) map[string]Pitfall {
		all := map[string]Pitfall{}
		for _, p := range c.Pitfalls() {
			if _, twice := all[sameCause(p.Cause)]; !twice {
				all[sameCause(p.Cause)] = p
			}
		}
		return all
	}
	was, now := byCause(b), byCause(t)
	done := map[string]bool{}
	for _, p := range o.Pitfalls() {
		cause := sameCause(p.Cause)
		before, had := was[cause]
		there, found := now[cause]
		switch {
		case done[cause], had && before == p, found && there == p:
		case !had && !found:
			t.AddPitfall(p)
		case !had:
			// It is there from another cycle, or from this merge.
		case found && there == before:
			t.setPitfall(p)
		case found:
			left = append(left, fmt.Sprintf("pitfall %q stays as a person wrote it; the cycle had counted it up", bound(p.Cause, 60)))
		default:
			left = append(left, fmt.Sprintf("pitfall %q was deleted and stays so; the cycle had counted it up", bound(p.Cause, 60)))
		}
		done[cause] = true
	}
	if !clean {
		left = append(left, otherLinesStay)
	}
	t.appendOnce(tail, b.otherLines())
	return t.String(), left
}

// setPitfall replaces the line of the pitfall with the same cause.
func (c *Context) setPitfall(p Pitfall) {
	for _, i := range c.pitfallLines() {
		if there, _ := readPitfall(c.lines[i]); sameCause(there.Cause) == sameCause(p.Cause) {
			_, end := cutLineEnd(c.lines[i])
			c.lines[i] = p.line() + end
			return
		}
	}
}

func (c *Context) otherLines() []string {
	own := map[int]bool{}
	for _, i := range c.pitfallLines() {
		own[i] = true
	}
	return c.others(own, "known pitfalls", "pitfalls")
}

// others are the lines with text, without own ones and headings with these names.
func (d *document) others(own map[int]bool, names ...string) []string {
	var lines []string
	for i, line := range d.lines {
		level, title := heading(line)
		ours := level > 0 && d.plain[i] && slices.Contains(names, sectionName(title))
		if !own[i] && !ours {
			lines = append(lines, line)
		}
	}
	return textLines(lines)
}

// addedTail returns the lines that ours has after those of base. It reports false if
// ours changed others.
func addedTail(base, ours []string) (tail []string, clean bool) {
	if len(ours) < len(base) || !slices.Equal(base, ours[:len(base)]) {
		return nil, false
	}
	return ours[len(base):], true
}

// appendOnce adds lines at the end unless the file has them more often than base, as a
// whole or at its end.
func (d *document) appendOnce(tail, base []string) {
	plain := func(lines []string) (all []string) {
		for _, line := range lines {
			all = append(all, withoutEscapes(line))
		}
		return all
	}
	now, was, run := plain(textLines(d.lines)), plain(base), plain(tail)
	if len(run) == 0 || countRuns(now, run) > countRuns(was, run) || countEndRuns(now, run) > countEndRuns(was, run) {
		return
	}
	d.appendText(strings.Join(tail, "\n"))
}

// countRuns says how often lines have others in a row.
func countRuns(lines, run []string) (n int) {
	for i := range lines {
		if i+len(run) <= len(lines) && slices.Equal(lines[i:i+len(run)], run) {
			n++
		}
	}
	return n
}

// countEndRuns says how often lines have others in a row at their end.
func countEndRuns(lines, run []string) (n int) {
	for len(lines) >= len(run) && slices.Equal(lines[len(lines)-len(run):], run) {
		lines = lines[:len(lines)-len(run)]
		n++
	}
	return n
}
