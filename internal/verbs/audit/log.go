package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// account is what the chain says of one run.
type account struct {
	N        int64        `json:"n"`
	Outcome  loop.Outcome `json:"outcome"`
	Reason   loop.Reason  `json:"reason"`
	Branch   string       `json:"branch"`
	Commit   string       `json:"commit"`
	Subject  string       `json:"subject"`
	Tokens   int64        `json:"tokens"`
	Node     string       `json:"node"`
	Appended []struct {
		Path string `json:"path"`
		Line string `json:"line"`
	} `json:"appended"`

	at    time.Time
	seq   int64 // of the entry that says how the run ended
	lined int64 // of the entry that has its line: lines stand in the log in this order
	runID string
}

// accounts reads the entries of runs, in the order of their lines. One that cannot be
// read is none: the walk along the chain names it.
func accounts(links []loop.Link) []account {
	var list []account
	at := map[string]int{}
	for _, l := range links {
		a := account{at: l.At, seq: l.Seq, lined: l.Seq, runID: l.RunID}
		if l.Kind != loop.LinkRun && l.Kind != loop.LinkOwed || json.Unmarshal([]byte(l.Body), &a) != nil || a.N <= 0 {
			continue
		}
		if i, ended := at[l.RunID]; ended && l.Kind == loop.LinkOwed {
			list[i].Appended, list[i].lined = a.Appended, l.Seq
		} else if l.Kind == loop.LinkRun {
			at[l.RunID] = len(list)
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b account) int { return cmp.Compare(a.lined, b.lined) })
	return list
}

// written leaves those out whose line is not in the log of this checkout: runs of
// another node, and those whose files this one still owes.
func (s *Service) written(c *Chain, told []account) []account {
	return slices.DeleteFunc(told, func(a account) bool {
		return a.Node != "" && a.Node != s.ws.Node.ID || slices.Contains(c.Owed, a.N)
	})
}

// lines are the forms in which the run may stand in the log: as it was appended
// with the run, and as the next run heals a log that could not be opened then.
// The first is how it is written anew. A run that was paused has none.
func (a account) lines(log string) []string {
	m := a.Outcome.Meaning()
	if m.Action == "" {
		return nil
	}
	var forms []string
	for _, l := range a.Appended {
		if l.Path == log {
			forms = append(forms, l.Line)
		}
	}
	subject := a.Subject
	if subject == "" && a.Commit != "" {
		subject = "branch=" + a.Branch
	}
	healed := runlog.Entry{At: a.at, Run: a.N, Action: m.Action, Subject: subject, Outcome: m.Log, Tokens: a.Tokens}
	forms = append(forms, strings.TrimSuffix(runlog.Line(healed), "\n"))
	if a.Outcome == loop.OutcomeProposed && a.Reason == loop.ReasonApproved { // A yes that only proposes opens a pull request.
		healed.Outcome = runlog.PullRequest
		forms = append(forms, strings.TrimSuffix(runlog.Line(healed), "\n"))
	}
	return forms
}

func logPath(name string) string { return path.Join(definition.Dir(name), loop.LogFile) }

// compareLogOf compares the run log of a spine loop with its chain.
func (s *Service) compareLogOf(c *Chain) error {
	if !s.ws.Formats.Of(c.Protocol).KeepsLog {
		return nil
	}
	c.Log = logPath(c.Loop)
	var since time.Time
	if len(c.Entries) > 0 {
		since = c.Entries[0].At.Truncate(time.Second)
	}
	forgotten := int64(0)
	for _, l := range c.Entries {
		if l.Kind == loop.LinkForget { // The files of a loop that was forgotten are a person's to remove.
			since, forgotten = l.At.Truncate(time.Second).Add(time.Second), l.Seq
		}
	}
	told := slices.DeleteFunc(s.written(c, accounts(c.Entries)), func(a account) bool { return a.lined < forgotten })
	text, err := s.readLog(c.Log)
	if errors.Is(err, fs.ErrNotExist) {
		if slices.ContainsFunc(told, func(a account) bool { return a.lines(c.Log) != nil }) {
			c.Breaks = append(c.Breaks, Break{Where: c.Log, What: "the file is missing"})
		}
		return nil
	}
	if err != nil {
		c.Breaks = append(c.Breaks, Break{Where: c.Log, What: err.Error(), Unread: true})
		return nil //nolint:nilerr // A log that cannot be read is a finding.
	}
	found := compareLog(text, c.Log, since, told)
	c.Lines, c.Earlier = found.lines, len(found.earlier)
	c.Breaks = append(c.Breaks, found.breaks...)
	return nil
}

// maxLog is the largest run log in bytes that is compared: a million lines.
const maxLog = 256 << 20

func (s *Service) readLog(rel string) (string, error) {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(filepath.FromSlash(rel))
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	case info.Size() > maxLog:
		return "", fmt.Errorf("it has more than %d bytes", maxLog)
	}
	file, err := root.Open(filepath.FromSlash(rel))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxLog))
	return string(text), err
}

// logFound is what the lines of a log turned out to be.
type logFound struct {
	breaks  []Break
	lines   int      // that are as they were written
	earlier []string // of runs before the chain began

	log  string
	want map[int64]account // by number of the run
	at   map[int64]int     // line at which a run stands
	last account           // whose line stands last in the order of the chain, of those so far
}

// compareLog accounts for every line of a log. Lines of programs or stores from
// before the chain may stand above its first line, if their time says so, and what
// is no line of a run between them.
func compareLog(text, log string, since time.Time, told []account) *logFound {
	f := &logFound{log: log, want: map[int64]account{}, at: map[int64]int{}}
	for _, a := range told {
		if a.lines(log) != nil {
			f.want[a.N] = a
		}
	}
	n, first := 0, int64(0)
	if len(told) > 0 {
		first = slices.MinFunc(told, func(a, b account) int { return cmp.Compare(a.N, b.N) }).N
	}
	var odd []Break // lines of no run above the first line of the chain
	adopt := func() {
		for _, b := range odd {
			f.earlier = append(f.earlier, b.Found)
		}
		odd = nil
	}
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if trimmed := strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		entries, _ := runlog.Parse(line)
		switch {
		case len(entries) != 1:
			b := Break{Where: log, Line: n, What: "this is not a line of a run", Found: line}
			if len(f.at) == 0 {
				odd = append(odd, b)
			} else {
				f.breaks = append(f.breaks, b)
			}
		case len(f.at) == 0 && f.foreign(entries[0], since, first, line):
			adopt()
			f.earlier = append(f.earlier, line)
		default:
			f.judge(line, n, entries[0].Run)
		}
	}
	if len(f.earlier) > 0 {
		adopt()
	}
	f.breaks = append(odd, f.breaks...)
	f.missing(told, n)
	return f
}

// foreign reports whether a line is from before the chain. The last of those may
// have been written in the second in which the chain begins, with a lower number.
func (f *logFound) foreign(e runlog.Entry, since time.Time, first int64, line string) bool {
	return (e.At.Before(since) || e.At.Equal(since) && 0 < e.Run && e.Run < first) && !f.wanted(e.Run, line)
}

// wanted reports whether a line is one that the chain wants for the run, whatever
// its time says: the clock may have been set back.
func (f *logFound) wanted(run int64, line string) bool {
	return slices.Contains(f.want[run].lines(f.log), line)
}

// judge compares the line of a run with what the chain says of it. Where it has to stand
// is said by the chain alone: runs are numbered when they are fired, and end in any order.
func (f *logFound) judge(line string, n int, run int64) {
	b := Break{Where: f.log, Line: n, Run: run, Found: line}
	a, known := f.want[run]
	switch {
	case !known:
		b.What = fmt.Sprintf("run #%d has no line in the chain", run)
	case f.at[run] > 0:
		b.What = fmt.Sprintf("run #%d is in line %d already", run, f.at[run])
	case !f.wanted(run, line):
		b.What, b.Want = fmt.Sprintf("the line of run #%d was changed", run), a.lines(f.log)[0]
	case a.lined < f.last.lined:
		b.What = fmt.Sprintf("run #%d stands behind run #%d, whose line was written later", run, f.last.N)
	default:
		f.lines++
	}
	if b.What != "" {
		f.breaks = append(f.breaks, b)
	}
	if known && f.at[run] == 0 {
		if f.at[run] = n; a.lined >= f.last.lined {
			f.last = a
		}
	}
}

// missing names the runs that have no line, with the line at which each should
// stand, in a log of so many lines.
func (f *logFound) missing(told []account, lines int) {
	next := lines + 1
	var gone []Break
	for _, a := range slices.Backward(told) {
		if f.at[a.N] > 0 {
			next = f.at[a.N]
			continue
		}
		if forms := a.lines(f.log); forms != nil {
			gone = append(gone, Break{Where: f.log, Line: next, Run: a.N, What: fmt.Sprintf("the line of run #%d is missing", a.N), Want: forms[0]})
		}
	}
	slices.Reverse(gone)
	f.breaks = append(f.breaks, gone...)
}
