package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/pawl-run/pawl/internal/store"
)

// account is what the chain says of one run.
type account struct {
	N        int64        `json:"n"`
	Outcome  loop.Outcome `json:"outcome"`
	Branch   string       `json:"branch"`
	Commit   string       `json:"commit"`
	Subject  string       `json:"subject"`
	Tokens   int64        `json:"tokens"`
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

// auditLog compares the run log of a spine loop with its chain.
func (s *Service) auditLog(c *AuditChain) error {
	if c.Protocol != loop.ProtocolSpine {
		return nil
	}
	c.Log = logPath(c.Loop)
	told := accounts(c.links)
	text, err := s.readLog(c.Log)
	if errors.Is(err, fs.ErrNotExist) {
		if slices.ContainsFunc(told, func(a account) bool { return a.lines(c.Log) != nil }) {
			c.Breaks = append(c.Breaks, Break{Where: c.Log, What: "the file is missing"})
		}
		return nil
	}
	if err != nil {
		c.Breaks = append(c.Breaks, Break{Where: c.Log, What: err.Error()})
		return nil
	}
	var since time.Time
	if len(c.links) > 0 {
		since = c.links[0].At.Truncate(time.Second)
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

type logFound struct {
	breaks  []Break
	lines   int      // that are as they were written
	earlier []string // of runs before the chain began
}

// compareLog accounts for every line of a log. Lines of programs or stores from
// before the chain may stand above its first line, if their time says so.
func compareLog(text, log string, since time.Time, told []account) (f logFound) {
	want := map[int64]account{}
	for _, a := range told {
		if a.lines(log) != nil {
			want[a.N] = a
		}
	}
	at := map[int64]int{} // line at which a run stands
	var last int64
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if trimmed := strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		entries, _ := spine.ParseLog(line)
		if len(entries) == 1 && len(at) == 0 && entries[0].At.Before(since) {
			f.earlier = append(f.earlier, line)
			continue
		}
		b := Break{Where: log, Line: n, Found: line}
		if len(entries) != 1 {
			b.What = "this is no line of a run"
			f.breaks = append(f.breaks, b)
			continue
		}
		run := entries[0].Run
		a, known := want[run]
		b.Run = run
		switch {
		case !known:
			b.What = fmt.Sprintf("run #%d has no line in the chain", run)
		case at[run] > 0:
			b.What = fmt.Sprintf("run #%d stands in line %d already", run, at[run])
		case !slices.Contains(a.lines(log), line):
			b.What, b.Want = fmt.Sprintf("the line of run #%d was changed", run), a.lines(log)[0]
		case run < last:
			b.What = fmt.Sprintf("run #%d stands behind run #%d", run, last)
		default:
			f.lines++
		}
		if b.What != "" {
			f.breaks = append(f.breaks, b)
		}
		if known && at[run] == 0 {
			at[run], last = n, max(last, run)
		}
	}
	f.missing(told, log, at, n)
	return f
}

// missing names the runs that have no line, with the line at which each should
// stand.
func (f *logFound) missing(told []account, log string, at map[int64]int, last int) {
	next := last + 1
	var gone []Break
	for _, a := range slices.Backward(told) {
		lines := a.lines(log)
		if lines == nil {
			continue
		}
		if at[a.N] > 0 {
			next = at[a.N]
			continue
		}
		gone = append(gone, Break{Where: log, Line: next, Run: a.N, What: fmt.Sprintf("the line of run #%d is missing", a.N), Want: lines[0]})
	}
	slices.Reverse(gone)
	f.breaks = append(f.breaks, gone...)
}

// RunLog is a run log as the chain has it, schema pawl.audit-log/v1.
type RunLog struct {
	Schema  string `json:"schema"`
	Loop    string `json:"loop"`
	Path    string `json:"path"`
	Lines   int    `json:"lines"`
	Earlier int    `json:"earlier"` // lines from before the chain, taken over as they are
	Text    string `json:"text"`
	Changed bool   `json:"changed"`        // the file says something else
	Kept    string `json:"kept,omitempty"` // what the file became when it was written anew

	chain string
	was   string
}

// RunLog makes the run log of a spine loop from its audit chain, in exactly the
// bytes that its runs would have written. It is refused for a chain that is
// broken.
func (s *Service) RunLog(ctx context.Context, name string) (RunLog, error) {
	if name == All {
		return RunLog{}, fmt.Errorf("make a run log of no loop: %w", loop.ErrNotFound)
	}
	chains, err := s.chains(ctx, name)
	if err != nil {
		return RunLog{}, err
	}
	if len(chains) == 0 || len(chains[0].links) == 0 {
		return RunLog{}, &loop.Fault{Exit: loop.ExitNotFound, What: name + " has no audit chain yet", Fix: "its first run begins one: pawl run " + name, Err: loop.ErrNotFound}
	}
	c := chains[0]
	switch {
	case c.Protocol != loop.ProtocolSpine:
		return RunLog{}, &loop.Fault{Exit: loop.ExitUsage, What: "make the run log of " + name, Why: "a loop of protocol " + c.Protocol + " keeps none", Fix: "name a loop of protocol spine"}
	case len(c.Breaks) > 0:
		return RunLog{}, &loop.Fault{
			Exit: loop.ExitError, What: "make the run log of " + name, Why: c.Breaks[0].String() + ": a log that is made from it would prove nothing",
			Fix: "restore the store from a backup; `pawl audit verify " + name + "` says more",
		}
	}
	l := RunLog{Schema: "pawl.audit-log/v1", Loop: c.Loop, Path: logPath(c.Loop), chain: c.Chain}
	if l.was, err = s.readLog(l.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("read %s: %w", l.Path, err)
	}
	told := accounts(c.links)
	earlier := compareLog(l.was, l.Path, c.links[0].At.Truncate(time.Second), told).earlier
	var b strings.Builder
	b.WriteString(spine.LogHeader(c.Loop))
	for _, line := range earlier {
		b.WriteString(line + "\n")
	}
	for _, a := range told {
		if forms := a.lines(l.Path); forms != nil {
			b.WriteString(forms[0] + "\n")
			l.Lines++
		}
	}
	l.Earlier, l.Text = len(earlier), b.String()
	l.Changed = l.Text != l.was
	return l, nil
}

// RewriteLog writes the run log of a loop anew from its audit chain. The file
// that was there is kept beside it; that it is done is an entry of the chain
// before it is. A loop with a live run is a *loop.HeldError.
func (s *Service) RewriteLog(ctx context.Context, name string) (RunLog, error) {
	var first RunLog
	// A run that ends meanwhile has its line in the chain, not in what was read.
	for {
		l, err := s.RunLog(ctx, name)
		if err != nil || !l.Changed {
			l.Changed, l.Kept = first.Changed, first.Kept
			return l, err
		}
		if err := s.notLive(ctx, l); err != nil {
			return l, err
		}
		if l.was != "" {
			l.Kept = l.Path + ".before-" + s.Now().UTC().Format("20060102T150405.000Z")
		}
		if first.Path == "" {
			first = l
		}
		err = s.Store.Update(ctx, func(tx *store.Tx) error {
			return tx.Link(ctx, l.chain, loop.LinkLog, "", map[string]string{
				"verb": "rewrite", "path": l.Path, "kept": l.Kept, "before": digest(l.was), "after": digest(l.Text),
			})
		})
		if err == nil {
			err = s.writeLog(l)
		}
		if err != nil {
			return l, fmt.Errorf("write %s anew: %w", l.Path, err)
		}
	}
}

func (s *Service) notLive(ctx context.Context, l RunLog) error {
	var run loop.Run
	err := s.view(ctx, func(r *store.Reader) (err error) {
		run, err = r.Live(ctx, l.chain)
		return err
	})
	if absent(err) {
		return nil
	}
	if err == nil {
		err = &loop.HeldError{What: fmt.Sprintf("run %s#%d", l.Loop, run.N), Holder: run.Holder}
	}
	return err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// writeLog keeps the old file and puts the new one in its place, so that the
// name always means a complete file.
func (s *Service) writeLog(l RunLog) error {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(l.Path)), 0o755); err != nil {
		return err
	}
	if l.Kept != "" {
		if err := writeNew(root, l.Kept, l.was); err != nil {
			return err
		}
	}
	fresh := l.Path + ".new-" + digest(l.Text)[:12]
	if err := root.Remove(filepath.FromSlash(fresh)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeNew(root, fresh, l.Text); err != nil {
		return err
	}
	return root.Rename(filepath.FromSlash(fresh), filepath.FromSlash(l.Path))
}

// writeNew writes and syncs a file that must not exist, so that nothing is
// written through a link.
func writeNew(root *os.Root, name, text string) error {
	file, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}
