package taskfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what a heartbeat keeps of what pawl wrote.
const (
	MaxRows  = 2000 // of the cycle log
	MaxWeeks = 8    // of the trends
)

// Heartbeat is a HEARTBEAT.md.
type Heartbeat struct{ document }

// ParseHeartbeat reads a HEARTBEAT.md. Every text is one.
func ParseHeartbeat(text string) *Heartbeat { return &Heartbeat{newDocument(text)} }

// String returns the whole file.
func (h *Heartbeat) String() string { return h.document.String() }

// Append adds text at the end of the file.
func (h *Heartbeat) Append(text string) { h.appendText(text) }

// Status is the block "## Current Status".
type Status struct {
	State       string
	LastCycle   time.Time // zero: never
	CyclesToday int
	Completed   int // steps, today
	Blocked     int
	Failed      int
	Uptime      string // empty: the line stays as it is
}

// statusNames are the lines of the status block, in the order in which they are
// written, and how people call them too.
var statusNames = []struct {
	name  string
	other []string
}{
	{"State", nil},
	{"Last Cycle", nil},
	{"Cycles Today", []string{"Cycles"}},
	{"Steps Completed Today", []string{"Steps Completed", "Completed Today", "Completed"}},
	{"Steps Blocked Today", []string{"Steps Blocked", "Blocked Today", "Blocked"}},
	{"Steps Failed Today", []string{"Steps Failed", "Failed Today", "Failed"}},
	{"Uptime", nil},
}

// SetStatus writes the status block. Lines that say the same already stay as they are,
// and lines that are missing are added below the others, in their form.
func (h *Heartbeat) SetStatus(s Status) {
	last := "never"
	if !s.LastCycle.IsZero() {
		last = s.LastCycle.UTC().Format(stamp)
	}
	for i, text := range []string{
		s.State, last, strconv.Itoa(s.CyclesToday), strconv.Itoa(s.Completed), strconv.Itoa(s.Blocked), strconv.Itoa(s.Failed), s.Uptime,
	} {
		if text = fold(text); text != "" {
			h.setStatus(statusNames[i].name, text)
		}
	}
}

// statusLine is a line of the status block.
type statusLine struct {
	name string // of statusNames
	line int
	value
	table bool
}

func (h *Heartbeat) statusLines() []statusLine {
	from, to, _ := h.section("current status")
	var list []statusLine
	for i := from; i < to; i++ {
		if !h.plain[i] {
			continue
		}
		found := statusLine{line: i}
		name := ""
		if cells := splitCells(h.lines[i]); len(cells) == 2 {
			name, found.value, found.table = strings.Trim(cells[0].text, "*_ "), cells[1], true
		} else if n, v, ok := cutField(h.lines[i]); ok {
			name, found.value = n, v
		}
		if found.name = statusName(name); found.name != "" && !slices.ContainsFunc(list, func(l statusLine) bool { return l.name == found.name }) {
			list = append(list, found)
		}
	}
	return list
}

func statusName(name string) string {
	for _, s := range statusNames {
		if strings.EqualFold(name, s.name) || slices.ContainsFunc(s.other, func(o string) bool { return strings.EqualFold(name, o) }) {
			return s.name
		}
	}
	return ""
}

func (h *Heartbeat) setStatus(name, text string) {
	lines := h.statusLines()
	for _, l := range lines {
		if l.name != name {
			continue
		}
		if l.table {
			text = escapeCell(text)
		}
		if l.text != text {
			h.lines[l.line] = setValue(h.lines[l.line], l.value, text)
		}
		return
	}
	line := "- **" + name + "**: " + text
	if len(lines) > 0 {
		last := lines[len(lines)-1]
		switch found := h.lines[last.line]; {
		case last.table:
			line = "| " + name + " | " + escapeCell(text) + " |"
		case !strings.Contains(found[:last.start], "**"):
			line = found[:len(found)-len(strings.TrimLeft(found, " \t-*+"))] + name + ": " + text
		}
		h.insert(last.line+1, line)
		return
	}
	from, to, found := h.section("current status")
	if !found {
		from = h.addSection("Current Status")
		to = from
	}
	at := h.lastText(from, to)
	h.insertApart(at, line)
}

// Row is a cycle in the log.
type Row struct {
	At       time.Time
	Step     string
	Outcome  string
	Duration time.Duration
	Tokens   int64
	Notes    string
	Line     int // from 1; AddRow does not need it
}

// logColumns are the columns of the cycle log, as pawl makes it, and how people call
// them too.
var logColumns = []struct {
	name  string
	other []string
}{
	{"Timestamp", []string{"Time", "Date"}},
	{"Step", nil},
	{"Outcome", []string{"Result", "Status"}},
	{"Duration", nil},
	{"Tokens", nil},
	{"Notes", []string{"Note", "Summary"}},
}

// logTable is the table of the cycle log.
type logTable struct {
	columns []string // of logColumns; empty for those of others
	from    int      // its first row
	to      int      // behind its last row
}

func (h *Heartbeat) findLog() (t logTable, found bool) {
	from, to, _ := h.section("cycle log")
	for i := from; i+1 < to; i++ {
		if !h.plain[i] || !strings.HasPrefix(strings.TrimSpace(h.lines[i]), "|") || !isDelimiterRow(h.lines[i+1]) {
			continue
		}
		t.columns = nil
		for _, cell := range splitCells(h.lines[i]) {
			name := ""
			for _, c := range logColumns {
				word := strings.Trim(cell.text, "*_ ")
				if strings.EqualFold(word, c.name) || slices.ContainsFunc(c.other, func(o string) bool { return strings.EqualFold(word, o) }) {
					name = c.name
				}
			}
			if slices.Contains(t.columns, name) {
				name = ""
			}
			t.columns = append(t.columns, name)
		}
		if !slices.Contains(t.columns, "Timestamp") {
			continue
		}
		t.from, t.to = i+2, i+2
		for t.to < to && h.plain[t.to] && strings.HasPrefix(strings.TrimSpace(h.lines[t.to]), "|") {
			t.to++
		}
		return t, true
	}
	return logTable{}, false
}

// AddRow adds a row below the others, in the columns of the table's header. A table
// without a column for tokens has them in the notes. Of the rows that pawl wrote, the
// newest MaxRows stay.
func (h *Heartbeat) AddRow(r Row) {
	t, found := h.findLog()
	if !found {
		h.addTable()
		t, _ = h.findLog()
	}
	h.insertRow(t, formatRow(t.columns, r))
	h.dropOldRows()
}

func (h *Heartbeat) addTable() {
	var header, rule []string
	for _, c := range logColumns {
		header, rule = append(header, c.name), append(rule, strings.Repeat("-", len(c.name)))
	}
	from, to, found := h.section("cycle log")
	if !found {
		from = h.addSection("Cycle Log")
		to = from
	}
	at := h.lastText(from, to)
	h.insertApart(at, "| "+strings.Join(header, " | ")+" |", "|-"+strings.Join(rule, "-|-")+"-|")
}

func (h *Heartbeat) insertRow(t logTable, row string) {
	margin := h.lines[t.from-1]
	h.insert(t.to, margin[:len(margin)-len(strings.TrimLeft(margin, " \t"))]+row)
}

// dropOldRows removes the oldest rows that pawl wrote, above MaxRows. A row that a
// person has written or changed is not in the form in which pawl writes.
func (h *Heartbeat) dropOldRows() {
	t, _ := h.findLog()
	var own []int
	for i := t.from; t.to-t.from > MaxRows && i < t.to; i++ {
		if r, ok := readRow(t.columns, h.lines[i]); ok && strings.TrimSpace(h.lines[i]) == formatRow(t.columns, r) {
			own = append(own, i)
		}
	}
	if len(own) <= MaxRows {
		return
	}
	drop := own[:len(own)-MaxRows]
	for _, i := range slices.Backward(drop) {
		h.lines = slices.Delete(h.lines, i, i+1)
		h.plain = slices.Delete(h.plain, i, i+1)
	}
}

func formatRow(columns []string, r Row) string {
	notes := fold(r.Notes)
	if r.Tokens > 0 && !slices.Contains(columns, "Tokens") && !strings.HasSuffix(notes, "tokens)") {
		notes = strings.TrimSpace(bound(notes, MaxValue-30) + fmt.Sprintf(" (%d tokens)", r.Tokens))
	}
	var cells []string
	for _, name := range columns {
		text := ""
		switch name {
		case "Timestamp":
			text = r.At.UTC().Format(stamp)
		case "Step":
			text = fold(r.Step)
		case "Outcome":
			text = fold(r.Outcome)
		case "Duration":
			text = formatDuration(r.Duration)
		case "Tokens":
			text = strconv.FormatInt(r.Tokens, 10)
		case "Notes":
			text = notes
		}
		cells = append(cells, escapeCell(text))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func formatDuration(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// readRow reads a row of the log. It reports false for one without a time, such as
// "| _awaiting first cycle_ | … |".
func readRow(columns []string, line string) (r Row, ok bool) {
	for i, cell := range splitCells(line) {
		if i < len(columns) {
			r.take(columns[i], unescapeCell(cell.text))
		}
	}
	return r, !r.At.IsZero()
}

// take reads one field of a row.
func (r *Row) take(name, text string) {
	switch name {
	case "Timestamp":
		r.At, _ = parseTime(strings.Trim(text, "`*_[]"))
	case "Step":
		r.Step = text
	case "Outcome":
		r.Outcome = text
	case "Duration":
		r.Duration, _ = time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	case "Tokens":
		r.Tokens, _ = strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	case "Notes":
		r.Notes = text
	}
}

// Rows lists the cycles of the log and the entries "### 2026-11-27T10:00:00Z Cycle
// Result", in file order.
func (h *Heartbeat) Rows() []Row {
	var rows []Row
	t, _ := h.findLog()
	for i := t.from; i < t.to; i++ {
		if r, ok := readRow(t.columns, h.lines[i]); ok {
			r.Line = i + 1
			rows = append(rows, r)
		}
	}
	open := false
	for i, line := range h.lines {
		if !h.plain[i] {
			continue
		}
		if level, title := heading(line); level > 0 {
			first, rest, _ := strings.Cut(title, " ")
			at, timed := parseTime(strings.Trim(first, "[]"))
			open = timed && level > 2 && strings.HasPrefix(strings.ToLower(strings.TrimSpace(rest)), "cycle result")
			if open {
				rows = append(rows, Row{At: at, Line: i + 1})
			}
			continue
		}
		if name, v, ok := cutField(line); ok && open {
			for _, c := range logColumns[1:] {
				if strings.EqualFold(name, c.name) || strings.EqualFold(name, "Summary") && c.name == "Notes" {
					rows[len(rows)-1].take(c.name, v.text)
				}
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Line, b.Line) })
	return rows
}

// Week is a line of "## Health Trends": what the cycles of an ISO week came to.
type Week struct {
	Year, Week                             int
	Runs, Completed, Blocked, Failed, Idle int
	Tokens                                 int64
}

const weekForm = "- %04d-W%02d: %d runs, %d completed, %d blocked, %d failed, %d idle, %d tokens"

func (w Week) line() string {
	return fmt.Sprintf(weekForm, w.Year, w.Week, w.Runs, w.Completed, w.Blocked, w.Failed, w.Idle, w.Tokens)
}

func (w Week) order() int { return w.Year*100 + w.Week }

func readWeek(line string) (w Week, ok bool) {
	text := strings.TrimRight(line, "\r\n")
	_, err := fmt.Sscanf(text, weekForm, &w.Year, &w.Week, &w.Runs, &w.Completed, &w.Blocked, &w.Failed, &w.Idle, &w.Tokens)
	return w, err == nil && w.line() == text
}

// Trends lists the weeks that pawl wrote, in file order.
func (h *Heartbeat) Trends() []Week {
	var weeks []Week
	for _, i := range h.weekLines() {
		w, _ := readWeek(h.lines[i])
		weeks = append(weeks, w)
	}
	return weeks
}

func (h *Heartbeat) weekLines() []int {
	from, to, _ := h.section("health trends")
	var lines []int
	for i := from; i < to; i++ {
		if _, ok := readWeek(h.lines[i]); ok && h.plain[i] {
			lines = append(lines, i)
		}
	}
	return lines
}

// SetTrends writes the lines of weeks, each in its place. Of the lines that pawl wrote,
// those of the newest MaxWeeks weeks stay.
func (h *Heartbeat) SetTrends(weeks ...Week) {
	for _, w := range weeks {
		h.setWeek(w)
	}
	own := h.weekLines()
	slices.SortFunc(own, func(a, b int) int {
		first, _ := readWeek(h.lines[a])
		second, _ := readWeek(h.lines[b])
		return cmp.Compare(first.order(), second.order())
	})
	drop := own[:max(0, len(own)-MaxWeeks)]
	slices.Sort(drop)
	for _, i := range slices.Backward(drop) {
		h.lines = slices.Delete(h.lines, i, i+1)
		h.plain = slices.Delete(h.plain, i, i+1)
	}
}

func (h *Heartbeat) setWeek(w Week) {
	own := h.weekLines()
	for at, i := range own {
		there, _ := readWeek(h.lines[i])
		switch {
		case there.order() == w.order():
			_, end := cutLineEnd(h.lines[i])
			h.lines[i] = w.line() + end
			return
		case there.order() > w.order():
			h.insert(i, w.line())
			return
		case at == len(own)-1:
			h.insert(i+1, w.line())
			return
		}
	}
	from, to, found := h.section("health trends")
	if !found {
		from = h.addSection("Health Trends")
		to = from
	}
	at := h.lastText(from, to)
	h.insertApart(at, w.line())
}

// NewHeartbeat returns the HEARTBEAT.md of an agent that has not run yet.
func NewHeartbeat(agent, interval, timeout string) string {
	h := ParseHeartbeat("# " + fold(agent) + " — HEARTBEAT\n\n## Current Status\n")
	h.SetStatus(Status{State: "idle", Uptime: "0s"})
	h.insert(len(h.lines), "", "## Loop Configuration", "", "- **Interval**: "+fold(interval), "- **Max Step Timeout**: "+fold(timeout), "", "## Cycle Log")
	h.addTable()
	h.insert(len(h.lines), "", "## Health Trends")
	return h.String()
}
