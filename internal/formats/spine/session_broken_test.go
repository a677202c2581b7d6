package spine

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func TestAFileThatCannotBeReadParksTheRun(t *testing.T) {
	lost := errors.New("input/output error")
	for _, path := range []string{statePath, logPath, promptPath} {
		v := seen(nil, nil)
		v.Files = memory{files: map[string]string{statePath: golden}, broken: map[string]error{path: &fs.PathError{Op: "read", Path: path, Err: lost}}}
		if s, err := (Protocol{}).Open(t.Context(), v); !errors.Is(err, lost) || s != nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: Open = %v, %v; want its error", path, s, err)
		}
	}
}

func TestAFreshLoopHasTheTemplateForMemory(t *testing.T) {
	s := opened(t, seen(nil, nil))
	if r := s.Recovered(); r != nil {
		t.Errorf("recovered = %+v, want nothing: it never ran", r)
	}
	d := plan.Next(plan.Snapshot{
		Candidates: s.Candidates(engine.Sensed{}, noon), Rules: plan.DefinitionRules(s.v.Definition), Run: 1, RunID: "run_1", Started: noon,
	}, noon)
	if d.Choice == nil || d.Choice.Step.Title != "keep the build green" {
		t.Fatalf("decision = %+v, want the goal", d)
	}
	run := loop.Run{N: 1, Outcome: loop.OutcomeReported, Readiness: 100, Usage: loop.Usage{Input: 1, Output: 2}}
	got := s.Close(engine.Summary{Run: run, Now: noon})
	state := NewState("ci-watch", "pawl")
	state.SetHeader(noon, 1, 100)
	want := []loop.Change{
		{Kind: loop.ChangeEdit, Path: statePath, Content: state.String()},
		{Kind: loop.ChangeAppend, Path: logPath, Before: runlog.Header("ci-watch"), Content: "2026-09-03T12:00:00Z  run#1  action=reported  -  outcome=reported  tokens=3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestFilesThatOnlyLookOddAreNotBroken(t *testing.T) {
	for name, text := range map[string]string{
		"as written":               golden,
		"as published":             collapsed,
		"Windows lines":            strings.ReplaceAll(golden, "\n", "\r\n"),
		"a byte order mark":        bom + golden,
		"both":                     bom + strings.ReplaceAll(golden, "\n", "\r\n"),
		"by hand":                  handEdited,
		"without a last line feed": strings.TrimRight(golden, "\n"),
		"without a header":         strings.Replace(golden, "_Updated: 2026-09-03T08:20:00Z · run #57 · readiness 95/100_\n", "", 1),
		"without a footer":         golden[:strings.Index(golden, "---")],
	} {
		t.Run(name, func(t *testing.T) {
			s := withState(t, text, func(v *engine.View) { v.Recent = []loop.Run{{N: 57}} })
			if r := s.Recovered(); r != nil {
				t.Fatalf("recovered = %+v", r)
			}
			edit := s.Close(engine.Summary{Run: loop.Run{N: 58, Outcome: loop.OutcomeQuiet, Readiness: 95}, Now: noon})[0]
			if edit.Before != text {
				t.Errorf("the edit begins from %q, want what was read", edit.Before)
			}
			after := parse(t, edit.Content)
			if strings.HasPrefix(text, bom) != strings.HasPrefix(edit.Content, bom) || strings.Contains(text, "\r\n") != strings.Contains(edit.Content, "\r\n") {
				t.Errorf("mark or line ends changed: %q", edit.Content)
			}
			if diff := cmp.Diff(lists(parse(t, text)), lists(after)); diff != "" || after.RunN != 58 {
				t.Errorf("run %d, lists (-before +after):\n%s", after.RunN, diff)
			}
		})
	}
}

// rows are all that a store may know of a loop.
var rows = []loop.Step{
	{Key: "red build", Title: "Red build", State: loop.StepOpen},
	{Key: "flaky test", Title: "Flaky test", State: loop.StepBlocked},
	{Key: "old dep", Title: "Old dep", State: loop.StepFailed},
	{Key: "in work", Title: "In work", State: loop.StepClaimed},
	{Key: "secret", Title: "Secret", State: loop.StepEscalated},
	{Key: "deploy", Title: "Deploy", State: loop.StepWaiting},
	{Key: "fixed", Title: "Fixed", State: loop.StepDone},
	{Key: goalKey, Title: "keep the build green", State: loop.StepOpen},
	{Key: requestKey + "fix the docs", Title: "fix the docs", State: loop.StepFailed},
}

func TestABrokenStateIsPutAsideAndRebuiltFromTheRows(t *testing.T) {
	history := []loop.Run{{N: 57, Ended: nine, Readiness: 80, Outcome: loop.OutcomeQuiet}, {N: 56}}
	rebuilt := NewState("ci-watch", "pawl")
	rebuilt.ReplaceLists([]string{"Red build", "Flaky test", "Old dep", "In work"}, []string{"Secret", "Deploy"}, nil)
	rebuilt.SetHeader(nine, 57, 80)
	const old = "STATE.md.broken-20260903T120000Z"
	for name, c := range map[string]struct {
		files  memory
		why    string
		before string
		aside  bool
	}{
		"an empty one":          {memory{files: map[string]string{statePath: ""}}, "no title line", "", true},
		"another text":          {memory{files: map[string]string{statePath: "# Notes\nbuy milk\n"}}, "no title line", "# Notes\nbuy milk\n", true},
		"a picture":             {memory{files: map[string]string{statePath: "\x89PNG\r\n\x1a\n\x00\x00"}}, "line 3: a NUL byte", "\x89PNG\r\n\x1a\n\x00\x00", true},
		"more than is parsed":   {memory{files: map[string]string{statePath: golden + strings.Repeat("x", MaxState)}}, "more than 1048576", golden + strings.Repeat("x", MaxState), true},
		"more than is read":     {memory{tooBig: statePath}, "more than 4194304 bytes", "", true},
		"none, although it ran": {memory{}, "it was missing", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, seen(nil, func(v *engine.View) { v.Files, v.Steps, v.Recent = c.files, rows, history }))
			repairs := s.Recovered()
			if len(repairs) != 1 || !strings.Contains(repairs[0].Note, c.why) || !strings.Contains(repairs[0].Note, "rebuilt from the store with 6 items") {
				t.Fatalf("repairs = %+v, want one that says %q and how much came back", repairs, c.why)
			}
			rebuilt, watch := parse(t, rebuilt.String()), []string{"Secret", "Deploy"}
			if c.aside {
				watch = append(watch, repairs[0].Escalate)
				rebuilt.Add(SectionWatch, 0, repairs[0].Escalate)
			}
			if strings.Contains(repairs[0].Escalate, ".loops/ci-watch/"+old) != c.aside {
				t.Errorf("escalated with %q, want where the old file is: %v", repairs[0].Escalate, c.aside)
			}
			want := []loop.Change{{Kind: loop.ChangeEdit, Path: statePath, Content: rebuilt.String()}}
			if c.aside {
				want = append([]loop.Change{{Kind: loop.ChangeAside, Path: statePath, Before: c.before, Content: old}}, want...)
			}
			if diff := cmp.Diff(want, repairs[0].Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if c.aside && !strings.Contains(repairs[0].Note, old) {
				t.Errorf("note = %q, want where the old file is", repairs[0].Note)
			}
			may, mayNot := titles(s.Candidates(engine.Sensed{}, noon))
			if diff := cmp.Diff([][]string{{"Red build", "Flaky test", "Old dep", "In work"}, watch}, [][]string{may, mayNot}); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			edit := s.Close(engine.Summary{Run: loop.Run{N: 58, Outcome: loop.OutcomeQuiet}, Now: noon})[0]
			if edit.Before != rebuilt.String() {
				t.Errorf("the account begins from %q, want what the repair wrote", edit.Before)
			}
		})
	}
}

func TestABrokenStateOfAStoreThatKnowsNothingBecomesTheTemplate(t *testing.T) {
	s := withState(t, "what?", nil)
	repairs := s.Recovered()
	want := NewState("ci-watch", "pawl")
	want.Add(SectionWatch, 0, repairs[0].Escalate)
	if len(repairs) != 1 || len(repairs[0].Changes) != 2 || repairs[0].Escalate == "" || repairs[0].Changes[1].Content != want.String() {
		t.Errorf("repairs = %+v, want the template, with what a person has to do", repairs)
	}
}

func TestAStateThatLacksAPartIsMendedAndKeepsTheRest(t *testing.T) {
	half := golden[:strings.Index(golden, "## Noise")]
	for name, c := range map[string]struct{ before, after, note string }{
		"no title": {
			strings.Replace(golden, "# ci-watch — STATE\n", "", 1), golden, "the title was missing",
		},
		"no Noise, at the end": {half, half + "## Noise      (seen + dismissed this run)\n- (none yet)\n\n", "the section Noise was missing"},
		"no Noise, before the footer": {
			strings.Replace(golden, "## Noise      (seen + dismissed this run)\n- PR #33 is a draft\n\n", "", 1),
			strings.Replace(golden, "- PR #33 is a draft", "- (none yet)", 1), "the section Noise was missing",
		},
		"a byte of Latin-1": {
			strings.Replace(golden, "author told", "caf\xe9 \uFFFD", 1), strings.Replace(golden, "author told", "café \uFFFD", 1), "(bytes: 1) was read as Latin-1",
		},
		"Windows, and all of it": {
			bom + "## Priority\r\n- caf\xe9",
			bom + "# ci-watch — STATE\r\n## Priority\r\n- café\r\n\r\n## Watch      (not yet actionable)\r\n- Secret\r\n- Deploy\r\n" +
				"\r\n## Noise      (seen + dismissed this run)\r\n- (none yet)\r\n", "the section Watch was missing; the title was missing; 2 items of them were found in the store",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withState(t, c.before, func(v *engine.View) { v.Steps = rows })
			repairs := s.Recovered()
			want := []loop.Change{{Kind: loop.ChangeEdit, Path: statePath, Before: c.before, Content: c.after}}
			if len(repairs) != 1 || repairs[0].Escalate != "" || !strings.Contains(repairs[0].Note, c.note) {
				t.Fatalf("repairs = %+v, want one that says %q and lets the run go on", repairs, c.note)
			}
			if diff := cmp.Diff(want, repairs[0].Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if edit := s.Close(engine.Summary{Run: loop.Run{N: 58, Outcome: loop.OutcomeQuiet}, Now: noon})[0]; edit.Before != c.after {
				t.Errorf("the account begins from %q, want what the repair wrote", edit.Before)
			}
		})
	}
}

// A line of equals signs alone underlines a heading of Markdown.
func TestAMemoryInTheMiddleOfAMergeIsNotOpened(t *testing.T) {
	const markers = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> theirs\n"
	for name, files := range map[string]map[string]string{
		"STATE.md": {statePath: strings.Replace(listing("one", "", ""), "- one\n", markers, 1)},
		"the log":  {statePath: listing("one", "", ""), logPath: runlog.Header("ci-watch") + markers},
	} {
		_, err := Protocol{}.Open(t.Context(), seen(files, nil))
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok || f.Exit != loop.ExitUnreadable || !strings.Contains(f.Why, "merge conflict markers in line") || f.Fix == "" {
			t.Errorf("%s: Open = %+v, want a fault with exit status 4 that names the lines", name, err)
		}
	}
	withState(t, strings.Replace(listing("one", "", ""), "Mind the gap.\n", "Mind the gap.\n=======\n", 1), nil)
}

// Lines that another program wrote have numbers of their own: they neither stand
// for a run of this loop nor keep a missing one from being added.
func TestALogWithForeignLinesIsHealedByTime(t *testing.T) {
	line := func(n int64, at time.Time) string {
		return runlog.Line(runlog.Entry{At: at, Run: n, Action: "none", Outcome: "quiet"})
	}
	run := func(n int64, ended time.Time) loop.Run {
		return loop.Run{N: n, State: loop.RunEnded, Outcome: loop.OutcomeQuiet, Started: ended.Add(-time.Second), Ended: ended}
	}
	recent := []loop.Run{run(3, nine.Add(2*time.Hour)), run(2, nine.Add(time.Hour)), run(1, nine)}
	foreign := line(142, nine.Add(-time.Hour)) + line(2, nine.Add(-2*time.Hour))
	for name, c := range map[string]struct{ log, note string }{
		"none is missing":       {foreign + line(1, nine) + line(2, nine.Add(time.Hour)) + line(3, nine.Add(2*time.Hour)), ""},
		"the last two":          {foreign + line(1, nine), "run-log.md lacked the lines of runs #2 #3"},
		"all of this loop":      {foreign, "run-log.md lacked the lines of runs #1 #2 #3"},
		"one that was cut out":  {foreign + line(1, nine) + line(3, nine.Add(2*time.Hour)), ""},
		"the loop's own format": {line(1, nine) + line(2, nine.Add(time.Hour)), "run-log.md lacked the lines of runs #3"},
	} {
		s := opened(t, seen(map[string]string{statePath: golden, logPath: c.log}, func(v *engine.View) { v.Recent = recent }))
		var notes []string
		for _, r := range s.Recovered() {
			notes = append(notes, r.Note)
		}
		if got := strings.Join(notes, "; "); got != c.note {
			t.Errorf("%s: recovered %q, want %q", name, got, c.note)
		}
	}
	overtaken := []loop.Run{run(3, nine.Add(time.Hour)), run(2, nine.Add(2*time.Hour)), run(1, nine)} // #2 was in the queue while #3 ran.
	s := opened(t, seen(map[string]string{statePath: golden, logPath: line(1, nine)}, func(v *engine.View) { v.Recent = overtaken }))
	if r := s.Recovered(); len(r) != 1 || r[0].Note != "run-log.md lacked the lines of runs #3 #2" {
		t.Errorf("recovered %+v, want the lines in the order in which the runs ended", r)
	}
	last, err := Protocol{}.LastRun(memory{files: map[string]string{logPath: foreign + line(99999999999, nine) + "run#900 is text\n"}}, "ci-watch")
	if err != nil || last != 142 {
		t.Errorf("LastRun = %d, %v, want the highest number that a loop can have reached, 142", last, err)
	}
}
