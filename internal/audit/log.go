package audit

import (
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

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/protocol/spine"
)

// account is what the chain says of one run.
type account struct {
	N        int64        `json:"n"`
	Outcome  loop.Outcome `json:"outcome"`
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
	seq   int64
	runID string
}

// accounts reads the entries of runs. One that cannot be read is none: the walk
// along the chain names it.
func accounts(links []loop.Link) []account {
	var list []account
	for _, l := range links {
		a := account{at: l.At, seq: l.Seq, runID: l.RunID}
		if l.Kind == loop.LinkRun && json.Unmarshal([]byte(l.Body), &a) == nil && a.N > 0 {
			list = append(list, a)
		}
	}
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
	healed := spine.LogLine(spine.Entry{At: a.at, Run: a.N, Action: m.Action, Subject: subject, Outcome: m.Log, Tokens: a.Tokens})
	return append(forms, strings.TrimSuffix(healed, "\n"))
}

func logPath(name string) string { return path.Join(spine.Dir(name), spine.LogFile) }

// compareLogOf compares the run log of a spine loop with its chain.
func (s *Service) compareLogOf(c *Chain) error {
	if c.Protocol != loop.ProtocolSpine {
		return nil
	}
	c.Log = logPath(c.Loop)
	var since time.Time
	links := c.Entries
	if len(links) > 0 {
		since = links[0].At.Truncate(time.Second)
	}
	for i, l := range c.Entries {
		if l.Kind == loop.LinkForget { // The files of a loop that was forgotten are a person's to remove.
			since, links = l.At.Truncate(time.Second).Add(time.Second), c.Entries[i:]
		}
	}
	told := s.written(c, accounts(links))
	text, err := s.readLog(c.Log)
	if errors.Is(err, fs.ErrNotExist) {
		if slices.ContainsFunc(told, func(a account) bool { return a.lines(c.Log) != nil }) {
			c.Breaks = append(c.Breaks, Break{Where: c.Log, What: "the file is missing"})
		}
		return nil
	}
	if err != nil {
		c.Breaks = append(c.Breaks, Break{Where: c.Log, What: err.Error()})
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
	last int64             // highest number of a run so far
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
		first = told[0].N
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
		entries, _ := spine.ParseLog(line)
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
func (f *logFound) foreign(e spine.Entry, since time.Time, first int64, line string) bool {
	return (e.At.Before(since) || e.At.Equal(since) && 0 < e.Run && e.Run < first) && !f.wanted(e.Run, line)
}

// wanted reports whether a line is one that the chain wants for the run, whatever
// its time says: the clock may have been set back.
func (f *logFound) wanted(run int64, line string) bool {
	return slices.Contains(f.want[run].lines(f.log), line)
}

// judge compares the line of a run with what the chain says of it.
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
	case run < f.last:
		b.What = fmt.Sprintf("run #%d stands behind run #%d", run, f.last)
	default:
		f.lines++
	}
	if b.What != "" {
		f.breaks = append(f.breaks, b)
	}
	if known && f.at[run] == 0 {
		f.at[run], f.last = n, max(f.last, run)
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
