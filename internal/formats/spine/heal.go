package spine

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// highestRun is the highest number of a run that a log is believed.
const highestRun = math.MaxInt32

// LastRun returns the highest number of a run in the loop's log, also of other
// programs.
func (Protocol) LastRun(files engine.Files, name string) (int64, error) {
	log := path.Join(definition.Dir(name), loop.LogFile)
	file, err := files.Read(log)
	if err != nil {
		return 0, &loop.Fault{Exit: loop.ExitUnreadable, What: "read " + log, Why: err.Error(), Err: err, Fix: "repair it, or move it away: the loop then begins a new one"}
	}
	entries, _ := runlog.Parse(file.Content)
	last := int64(0)
	for _, e := range entries {
		if e.Run <= highestRun {
			last = max(last, e.Run)
		}
	}
	return last, nil
}

// healLog adds the lines of runs that could not open the log. A log without any run
// was emptied by somebody and stays empty. A line that is missing before a later one
// was removed by somebody. Times tell which is later, because lines of other programs
// may have any number.
func (s *session) healLog(text string) {
	entries, _ := runlog.Parse(text)
	if len(entries) == 0 {
		return
	}
	last := slices.MaxFunc(entries, func(a, b runlog.Entry) int { return a.At.Compare(b.At) }).At
	has := func(run loop.Run) bool {
		return slices.ContainsFunc(entries, func(e runlog.Entry) bool {
			return e.Run == run.N && !e.At.Before(run.Started.Truncate(time.Second))
		})
	}
	var repair engine.Repair
	ended := slices.SortedStableFunc(slices.Values(s.v.Recent), func(a, b loop.Run) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.N, b.N)) })
	for _, run := range ended { // Lines stand in the order in which runs ended.
		if run.Ended.Before(last) || has(run) || run.State != loop.RunEnded || run.Outcome.Meaning().Action == "" {
			continue
		}
		if run.Node != "" && run.Node != s.v.Run.Node || run.Owed { // Its line is in another clone, or still to be written by whoever finishes it.
			continue
		}
		repair.Changes = append(repair.Changes, s.logLine(run, run.Ended))
		repair.Note += fmt.Sprintf(" #%d", run.N)
	}
	if len(repair.Changes) > 0 {
		repair.Note = loop.LogFile + " lacked the lines of runs" + repair.Note
		s.repairs = append(s.repairs, repair)
	}
}

// logLine returns the change that appends a run's line to the log.
func (s *session) logLine(run loop.Run, at time.Time) loop.Change {
	m := run.Outcome.Meaning()
	if run.Outcome == loop.OutcomeProposed && run.Reason == loop.ReasonApproved && run.Cause.PullRequest != "" {
		m.Log = runlog.PullRequest
	}
	line := runlog.Line(runlog.Entry{At: at, Run: run.N, Action: m.Action, Subject: runSubject(run), Outcome: m.Log, Tokens: run.Usage.ChargedTokens()})
	return loop.Change{
		Kind: loop.ChangeAppend, Path: s.filePath(loop.LogFile), Before: runlog.Header(s.v.Loop.Name), Content: strings.TrimSuffix(line, "\n"),
	}
}
