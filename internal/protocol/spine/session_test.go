package spine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
)

var (
	noon = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)
	nine = time.Date(2026, 9, 3, 9, 0, 0, 0, time.UTC)
)

const (
	statePath  = ".loops/ci-watch/STATE.md"
	logPath    = ".loops/ci-watch/run-log.md"
	promptPath = ".loops/ci-watch/run.md"
)

// memory is a workspace's files by path, and those that cannot be read.
type memory struct {
	files  map[string]string
	tooBig string
	broken map[string]error
}

func (m memory) Read(path string) (engine.File, error) {
	if err := m.broken[path]; err != nil {
		return engine.File{}, err
	}
	text, ok := m.files[path]
	if !ok && path == m.tooBig {
		return engine.File{Exists: true, TooBig: true}, nil
	}
	return engine.File{Exists: ok, Content: text}, nil
}

// seen is what a run of the loop sees, with these files.
func seen(files map[string]string, change func(*engine.View)) engine.View {
	v := engine.View{
		Loop:       loop.Loop{ID: "lp_1", Name: "ci-watch"},
		Definition: loop.Definition{Name: "ci-watch", Goal: "keep the build green", Escalation: "anything that needs a secret"}.WithDefaults(),
		Run:        loop.Run{ID: "run_58", LoopID: "lp_1", N: 58, Readiness: 90, Started: noon},
		Files:      memory{files: files}, Now: noon,
	}
	if change != nil {
		change(&v)
	}
	return v
}

// tester is a test or one try of a property.
type tester interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
}

func opened(t tester, v engine.View) *session {
	t.Helper()
	s, err := Protocol{}.Open(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*session)
}

// withState opens a loop whose STATE.md is text.
func withState(t tester, text string, change func(*engine.View)) *session {
	t.Helper()
	return opened(t, seen(map[string]string{statePath: text}, change))
}

// listing is a STATE.md with these lists, an item a line.
func listing(priority, watch, noise string) string {
	section := func(text string) string {
		if text == "" {
			return "- (none yet)\n"
		}
		return "- " + strings.ReplaceAll(text, "\n", "\n- ") + "\n"
	}
	return "# ci-watch — STATE\n_Updated: 2026-09-03T08:20:00Z · run #57 · readiness 95/100_\n\nMind the gap.\n\n## Priority\n" + section(priority) +
		"\n## Watch\n" + section(watch) + "\n## Noise\n" + section(noise) + "\n---\n_Source: cron_\n"
}

func titles(list []plan.Candidate) (may, mayNot []string) {
	for _, c := range list {
		if c.Drop == "" {
			may = append(may, c.Step.Title)
		} else {
			mayNot = append(mayNot, c.Step.Title)
		}
	}
	return may, mayNot
}

func TestWhatARunMayWorkOnAndInWhichOrder(t *testing.T) {
	for name, c := range map[string]struct {
		state   string
		request string
		may     []string
		mayNot  []string
	}{
		"Priority in the order of its tags": {
			listing("[P2] two\nnone\n[P1] one\nlast\n[P2] two again", "", ""), "",
			[]string{"one", "two", "two again", "none", "last"},
			nil,
		},
		"the request before all": {listing("[P1] one", "", ""), "fix the docs", []string{"fix the docs", "one"}, nil},
		"the request alone":      {listing("", "", ""), " fix\nthe docs ", []string{"fix the docs"}, nil},
		"the goal when Priority is empty": {
			listing("", "", ""), "", []string{"keep the build green"}, nil,
		},
		"Watch and Noise are listed and may not be chosen": {
			listing("one", "w1\n[P1] w2", "n1"), "", []string{"one"}, []string{"w1", "w2", "n1"},
		},
		"the goal although things are watched": {
			listing("", "w1", "n1"), "", []string{"keep the build green"}, []string{"w1", "n1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withState(t, c.state, func(v *engine.View) { v.Run.Request = c.request })
			list := s.Candidates(engine.Sensed{}, noon)
			may, mayNot := titles(list)
			if diff := cmp.Diff(c.may, may); diff != "" {
				t.Errorf("may be chosen (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.mayNot, mayNot); diff != "" {
				t.Errorf("may not (-want +got):\n%s", diff)
			}
			for _, cand := range list {
				if cand.Drop != "" && (cand.Drop != loop.ReasonNotEligible || !strings.Contains(cand.Detail, "stands in")) {
					t.Errorf("%s is dropped by %s: %q", cand.Step.Title, cand.Drop, cand.Detail)
				}
			}
			if diff := cmp.Diff(list, s.Candidates(engine.Sensed{}, noon)); diff != "" {
				t.Errorf("asked twice (-first +second):\n%s", diff)
			}
		})
	}
}

func TestAnItemGoesOnFromItsRow(t *testing.T) {
	row := loop.Step{
		ID: "st_1", Key: "one", Kind: loop.StepWork, Title: "ONE", Attempts: 2, Streak: 2, StreakGate: "verify", StreakTree: "t1",
		BlockedAt: 57, WaitsFor: "ap_1", Feedback: "verify says no",
	}
	afresh := loop.Step{ID: "st_1", Key: "one", Kind: loop.StepWork, State: loop.StepOpen}
	again := afresh
	again.Feedback = row.Feedback
	as := func(state loop.StepState) loop.Step {
		s := row
		s.State = state
		return s
	}
	for name, c := range map[string]struct{ row, want loop.Step }{
		"open":                                 {as(loop.StepOpen), as(loop.StepOpen)},
		"claimed":                              {as(loop.StepClaimed), as(loop.StepClaimed)},
		"blocked":                              {as(loop.StepBlocked), as(loop.StepBlocked)},
		"failed":                               {as(loop.StepFailed), as(loop.StepFailed)},
		"waiting":                              {as(loop.StepWaiting), as(loop.StepWaiting)},
		"escalated, and a human moved it back": {as(loop.StepEscalated), again},
		"done, and it is there again":          {as(loop.StepDone), afresh},
		"dropped, and it is there again":       {as(loop.StepDropped), afresh},
	} {
		t.Run(name, func(t *testing.T) {
			s := withState(t, listing("[P1] One", "", ""), func(v *engine.View) { v.Steps = []loop.Step{{Key: "other"}, c.row} })
			got := s.Candidates(engine.Sensed{}, noon)[0].Step
			c.want.Title = "One" // As the file has it now.
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnItemWithoutARowIsOpenWork(t *testing.T) {
	got := withState(t, listing("[P1] One", "", ""), nil).Candidates(engine.Sensed{}, noon)[0].Step
	if diff := cmp.Diff(loop.Step{Key: "one", Title: "One", Kind: loop.StepWork, State: loop.StepOpen}, got); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
}

func TestNoTextOfAnItemPassesForTheGoalOrARequest(t *testing.T) {
	rows := []loop.Step{
		{ID: "st_g", Key: goalKey, Title: "keep the build green", State: loop.StepFailed},
		{ID: "st_r", Key: requestKey + "fix it", Title: "fix it", State: loop.StepFailed},
	}
	for _, text := range []string{"goal", "GOAL", "Goal", "request: fix it", "REQUEST: fix it", "REQUEST:  fix it"} {
		s := withState(t, listing(text, "", ""), func(v *engine.View) { v.Steps, v.Run.Request = rows, "fix it" })
		list := s.Candidates(engine.Sensed{}, noon)
		if list[0].Step.ID != "st_r" || list[1].Step.ID != "" || list[1].Step.Title == "" {
			t.Errorf("item %q: candidates = %+v, want the request's row and an item without one", text, list)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := Key(rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \t]*(GOAL|REQUEST: .*|goal)`)).Draw(t, "text"))
		if key == goalKey || strings.HasPrefix(key, requestKey) {
			t.Fatalf("the key %q is reserved", key)
		}
	})
}

func TestTheSenseCommandDecidesUnlessAPersonAsks(t *testing.T) {
	for name, c := range map[string]struct {
		sense, request string
		want           []engine.Source
	}{
		"no command":              {"", "", nil},
		"no command, a request":   {"", "fix it", nil},
		"a command":               {"gh pr list", "", []engine.Source{{Name: "sense", Command: "gh pr list", Quiet: engine.QuietOnEmpty}}},
		"a command and a request": {"gh pr list", "fix it", []engine.Source{{Name: "sense", Command: "gh pr list", Quiet: engine.QuietNever}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := withState(t, golden, func(v *engine.View) { v.Definition.Sense, v.Run.Request = c.sense, c.request })
			if diff := cmp.Diff(c.want, s.Sources()); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAgentIsShownTheMemoryAndHowTheLastRunEnded(t *testing.T) {
	var log strings.Builder
	log.WriteString(LogHeader("ci-watch"))
	for n := range 30 {
		log.WriteString(LogLine(Entry{At: nine, Run: int64(n + 1), Action: "none", Outcome: "quiet"}))
	}
	failed := loop.Run{N: 57, Outcome: loop.OutcomeFailed, Detail: "verify failed", Snapshot: "refs/pawl/snapshots/ci-watch/57"}
	s := opened(t, seen(map[string]string{statePath: golden, logPath: log.String(), promptPath: "\nYou are careful.\n\n"},
		func(v *engine.View) { v.Recent = []loop.Run{failed, {N: 56, Outcome: loop.OutcomeQuiet}} }))
	changes, brief, err := s.Begin(plan.Choice{Step: loop.Step{Key: "one", Title: "One"}})
	if err != nil || changes != nil {
		t.Fatalf("Begin = %v, %v; want no change", changes, err)
	}
	if brief.Goal != "keep the build green" || brief.Role != "You are careful." || brief.Task != "One" ||
		!cmp.Equal(brief.Rules, []string{"Hand over instead of doing: anything that needs a secret"}) {
		t.Errorf("brief = %+v", brief)
	}
	if len(brief.Memory) != 3 || brief.Memory[0].Text != golden {
		t.Fatalf("memory = %+v, want STATE.md, the log and the last run", brief.Memory)
	}
	if lines := strings.Split(brief.Memory[1].Text, "\n"); len(lines) != 10 || !strings.Contains(lines[9], "run#30") {
		t.Errorf("log = %q, want its last ten lines", lines)
	}
	if want := "run #57 ended failed: verify failed; its work is kept in refs/pawl/snapshots/ci-watch/57"; brief.Memory[2].Text != want {
		t.Errorf("last run = %q, want %q", brief.Memory[2].Text, want)
	}
	s = withState(t, golden, func(v *engine.View) { v.Recent = []loop.Run{{N: 57, Outcome: loop.OutcomeQuiet}, failed} })
	if _, brief, _ = s.Begin(plan.Choice{}); len(brief.Memory) != 2 {
		t.Errorf("memory = %+v, want nothing of an older failure", brief.Memory)
	}
}

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
		Candidates: s.Candidates(engine.Sensed{}, noon), Rules: plan.RulesOf(s.v.Definition), Run: 1, RunID: "run_1", Started: noon,
	}, noon)
	if d.Choice == nil || d.Choice.Step.Title != "keep the build green" {
		t.Fatalf("decision = %+v, want the goal", d)
	}
	run := loop.Run{N: 1, Outcome: loop.OutcomeReported, Readiness: 100, Usage: loop.Usage{Input: 1, Output: 2}}
	got := s.Close(engine.Summary{Run: run, Now: noon})
	state := NewState("ci-watch", "pawl")
	state.SetHeader(noon, 1, 100)
	want := []loop.Change{
		{Kind: loop.ChangeEdit, Path: statePath, Missing: true, Content: state.String()},
		{Kind: loop.ChangeAppend, Path: logPath, Before: LogHeader("ci-watch"), Content: "2026-09-03T12:00:00Z  run#1  action=reported  -  outcome=reported  tokens=3"},
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
			if edit.Before != text || edit.Missing {
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
	rebuilt.Replace([]string{"Red build", "Flaky test", "Old dep", "In work"}, []string{"Secret", "Deploy"}, nil)
	rebuilt.SetHeader(nine, 57, 80)
	const old = "STATE.md.broken-20260903T120000Z"
	for name, c := range map[string]struct {
		files  memory
		why    string
		before string
		aside  bool
	}{
		"half a file":            {memory{files: map[string]string{statePath: golden[:strings.Index(golden, "## Noise")]}}, `no section "## Noise"`, golden[:strings.Index(golden, "## Noise")], true},
		"an empty one":           {memory{files: map[string]string{statePath: ""}}, "no title line", "", true},
		"another text":           {memory{files: map[string]string{statePath: "# Notes\nbuy milk\n"}}, "no title line", "# Notes\nbuy milk\n", true},
		"a picture":              {memory{files: map[string]string{statePath: "\x89PNG\r\n\x1a\n\x00\x00"}}, "line 3: a NUL byte", "\x89PNG\r\n\x1a\n\x00\x00", true},
		"another encoding":       {memory{files: map[string]string{statePath: golden + "\xe4\n"}}, "not UTF-8", golden + "\xe4\n", true},
		"more than is parsed":    {memory{files: map[string]string{statePath: golden + strings.Repeat("x", MaxState)}}, "more than 1048576", golden + strings.Repeat("x", MaxState), true},
		"more than is read":      {memory{tooBig: statePath}, "more than 4194304 bytes", "", true},
		"none, although it ran":  {memory{}, "it was missing", "", false},
		"a conflict of two sets": {memory{files: map[string]string{statePath: "<<<<<<< HEAD\n" + strings.Repeat("=======\n", 3)}}, "no title line", "<<<<<<< HEAD\n" + strings.Repeat("=======\n", 3), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, seen(nil, func(v *engine.View) { v.Files, v.Steps, v.Recent = c.files, rows, history }))
			repairs := s.Recovered()
			if len(repairs) != 1 || !strings.Contains(repairs[0].Note, c.why) || !strings.Contains(repairs[0].Note, "rebuilt from the store with 6 items") {
				t.Fatalf("repairs = %+v, want one that says %q and how much came back", repairs, c.why)
			}
			want := []loop.Change{{Kind: loop.ChangeEdit, Path: statePath, Missing: true, Content: rebuilt.String()}}
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
			if diff := cmp.Diff([][]string{{"Red build", "Flaky test", "Old dep", "In work"}, {"Secret", "Deploy"}}, [][]string{may, mayNot}); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			edit := s.Close(engine.Summary{Run: loop.Run{N: 58, Outcome: loop.OutcomeQuiet}, Now: noon})[0]
			if edit.Before != rebuilt.String() || edit.Missing {
				t.Errorf("the account begins from %q, want what the repair wrote", edit.Before)
			}
		})
	}
}

func TestABrokenStateOfAStoreThatKnowsNothingBecomesTheTemplate(t *testing.T) {
	s := withState(t, "what?", nil)
	repairs := s.Recovered()
	if len(repairs) != 1 || len(repairs[0].Changes) != 2 || repairs[0].Changes[1].Content != NewState("ci-watch", "pawl").String() {
		t.Errorf("repairs = %+v, want the template", repairs)
	}
}

// summary is how run 58 ended, with these iterations.
func summary(outcome loop.Outcome, its ...loop.Iteration) engine.Summary {
	for i := range its {
		its[i].RunID, its[i].N = "run_58", i+1
	}
	return engine.Summary{
		Run: loop.Run{
			ID: "run_58", N: 58, Outcome: outcome, Readiness: 70,
			Usage: loop.Usage{Input: 100, Output: 20, CacheWrite: 3, CacheRead: 1000},
		},
		Iterations: its, Now: noon,
	}
}

func iteration(step string, verdict loop.Verdict, reported string) loop.Iteration {
	return loop.Iteration{Step: step, Verdict: verdict, Report: reported, Tree: "tree of " + step, Changed: []string{"a.txt"}}
}

func TestEveryOutcomeLeavesOneLineAndANewHeader(t *testing.T) {
	for _, m := range loop.Meanings {
		t.Run(string(m.Outcome), func(t *testing.T) {
			s := withState(t, golden, nil)
			changes := s.Close(summary(m.Outcome, iteration("something else", loop.VerdictFail, "")))
			var lines []loop.Change
			for _, ch := range changes[1:] {
				if ch.Kind == loop.ChangeAppend {
					lines = append(lines, ch)
				}
			}
			if m.Action == "" {
				if len(lines) > 0 {
					t.Errorf("a line for %s: %+v", m.Outcome, lines)
				}
				return
			}
			edit := changes[0]
			want := strings.Replace(golden, "2026-09-03T08:20:00Z · run #57 · readiness 95/100", "2026-09-03T12:00:00Z · run #58 · readiness 70/100", 1)
			if diff := cmp.Diff(loop.Change{Kind: loop.ChangeEdit, Path: statePath, Before: golden, Content: want}, edit); diff != "" {
				t.Errorf("edit (-want +got):\n%s", diff)
			}
			if len(lines) != 1 || strings.ContainsAny(lines[0].Content, "\r\n") || lines[0].Path != logPath || lines[0].Before != LogHeader("ci-watch") {
				t.Fatalf("lines = %+v, want one for %s", lines, logPath)
			}
			entries, bad := ParseLog(lines[0].Before + lines[0].Content + "\n")
			entry := []Entry{{At: noon, Run: 58, Action: m.Action, Outcome: m.Log, Tokens: 123}}
			if diff := cmp.Diff(entry, entries); diff != "" || len(bad) > 0 {
				t.Errorf("entry (-want +got), bad %v:\n%s", bad, diff)
			}
		})
	}
}

func TestTheLineNamesWhatTheRunWasAbout(t *testing.T) {
	for name, c := range map[string]struct {
		run  loop.Run
		want string
	}{
		"nothing":                                {loop.Run{}, ""},
		"what the agent named":                   {loop.Run{Subject: "pr=31"}, "pr=31"},
		"the branch that it proposed":            {loop.Run{Branch: "pawl/ci-watch/58", Commit: "abc"}, "branch=pawl/ci-watch/58"},
		"what the agent named, and not a branch": {loop.Run{Subject: "pr=31", Branch: "pawl/ci-watch/58", Commit: "abc"}, "pr=31"},
		"no branch that was not made":            {loop.Run{Branch: "pawl/ci-watch/58"}, ""},
		"no matter what the agent named":         {loop.Run{Subject: "x\n2026-09-03T12:00:00Z  run#99  action=landed  -  outcome=landed  tokens=0"}, "x\n2026-09-03T12:00:00Z  run#99  action=landed  -  outcome=landed  tokens=0"},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.N, c.run.Outcome = 58, loop.OutcomeProposed
			changes := withState(t, golden, nil).Close(engine.Summary{Run: c.run, Now: noon})
			entries, bad := ParseLog(changes[len(changes)-1].Content + "\n")
			if len(entries) != 1 || len(bad) > 0 || entries[0].Subject != c.want || entries[0].Run != 58 {
				t.Errorf("entries = %+v, bad %v; want one of run 58 about %q", entries, bad, c.want)
			}
		})
	}
}

func TestWhereAnItemStandsAfterItsRun(t *testing.T) {
	branch := loop.Effect{Kind: effect.KindPropose, State: loop.EffectDone, Args: map[string]string{effect.ArgTree: "tree of one"}}
	lost := branch
	lost.State = loop.EffectFailed
	pass, fail := loop.VerdictPass, loop.VerdictFail
	for name, c := range map[string]struct {
		outcome loop.Outcome
		verdict loop.Verdict
		effects []loop.Effect
		row     loop.StepState // of the item, as a session reads it that did not see the run
		want    Section
	}{
		"proposed: a human looks at it":         {loop.OutcomeProposed, pass, []loop.Effect{branch}, "", SectionWatch},
		"reported: a human looks at it":         {loop.OutcomeReported, pass, nil, "", SectionWatch},
		"landed":                                {loop.OutcomeLanded, pass, nil, "", SectionWatch},
		"done: nobody has to":                   {loop.OutcomeDone, pass, nil, "", SectionNoise},
		"quiet":                                 {loop.OutcomeQuiet, fail, nil, loop.StepOpen, SectionPriority},
		"failed: it goes on":                    {loop.OutcomeFailed, fail, nil, loop.StepFailed, SectionPriority},
		"blocked: it waits":                     {loop.OutcomeBlocked, fail, nil, loop.StepBlocked, SectionPriority},
		"escalated: a human has it":             {loop.OutcomeEscalated, fail, nil, loop.StepEscalated, SectionWatch},
		"given up: a human has it":              {loop.OutcomeGaveUp, fail, nil, loop.StepEscalated, SectionWatch},
		"waiting for an answer":                 {loop.OutcomeWaiting, loop.VerdictPending, nil, loop.StepWaiting, SectionPriority},
		"refused":                               {loop.OutcomeRefused, fail, nil, loop.StepFailed, SectionPriority},
		"out of budget":                         {loop.OutcomeBudget, fail, nil, loop.StepFailed, SectionPriority},
		"interrupted":                           {loop.OutcomeInterrupted, loop.VerdictIntended, nil, loop.StepOpen, SectionPriority},
		"passed, but the branch was not made":   {loop.OutcomeFailed, pass, []loop.Effect{lost}, loop.StepOpen, SectionPriority},
		"proposed, and then refused":            {loop.OutcomeRefused, pass, []loop.Effect{branch}, loop.StepDone, SectionWatch},
		"proposed, and then waiting":            {loop.OutcomeWaiting, pass, []loop.Effect{branch}, loop.StepDone, SectionWatch},
		"proposed, and then interrupted":        {loop.OutcomeInterrupted, pass, []loop.Effect{branch}, loop.StepDone, SectionWatch},
		"given up in a run that had proposed":   {loop.OutcomeProposed, fail, nil, loop.StepEscalated, SectionWatch},
		"escalated in a run that was done":      {loop.OutcomeDone, fail, nil, loop.StepEscalated, SectionWatch},
		"failed in a run that had proposed":     {loop.OutcomeProposed, fail, nil, loop.StepFailed, SectionPriority},
		"interrupted after a human put it back": {loop.OutcomeInterrupted, loop.VerdictIntended, nil, loop.StepOpen, SectionPriority},
	} {
		t.Run(name, func(t *testing.T) {
			row := loop.Step{ID: "st_1", Key: "one", Title: "One", State: c.row}
			text := strings.Replace(listing("zero\n[P1] One <!-- mine -->", "w", "n"), "mine -->\n", "mine -->\n  see the wiki\n", 1)
			s := withState(t, text, func(v *engine.View) { v.Steps = []loop.Step{row} })
			sum := summary(c.outcome, iteration("One", c.verdict, ""))
			sum.Iterations[0].Tree, sum.Effects = "tree of one", c.effects
			edit := s.Close(sum)[0]
			after := parse(t, edit.Content)
			for _, section := range sections {
				held := false
				for _, it := range after.Items(section) {
					held = held || it.Key == "one"
				}
				if held != (section == c.want) {
					t.Errorf("it stands in %s: %v, want it in %s", section, held, c.want)
				}
			}
			for _, kept := range []string{"Mind the gap.\n", "- [P1] One <!-- mine -->\n  see the wiki\n", "- zero\n", "- w\n", "- n\n", "_Source: cron_\n"} {
				if !strings.Contains(edit.Content, kept) {
					t.Errorf("%q is gone:\n%s", kept, edit.Content)
				}
			}
		})
	}
}

// worked takes a session through an iteration as a run does.
func worked(s *session, title string, left loop.StepState) {
	step := loop.Step{Key: Key(title), Title: title, State: loop.StepClaimed}
	_, _, _ = s.Begin(plan.Choice{Step: step})
	if left == "" {
		return // It died before it had a verdict.
	}
	step.State = left
	s.Record(engine.Result{Settlement: plan.Settlement{Step: step}})
}

func TestAnItemIsGivenUpAlsoInARunThatProposedAnother(t *testing.T) {
	s := withState(t, listing("one\ntwo", "", ""), func(v *engine.View) {
		v.Steps = []loop.Step{{Key: "two", Title: "two", State: loop.StepFailed, Streak: 2}}
	})
	worked(s, "one", loop.StepDone)
	worked(s, "two", loop.StepEscalated)
	edit := s.Close(summary(loop.OutcomeProposed, iteration("one", loop.VerdictPass, ""), iteration("two", loop.VerdictFail, "")))[0]
	if diff := cmp.Diff([3][]string{nil, {"one", "two"}, nil}, lists(parse(t, edit.Content))); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestAnItemThatAHumanPutBackStaysWhenItsRunIsInterrupted(t *testing.T) {
	s := withState(t, listing("one", "", ""), func(v *engine.View) { v.Steps = []loop.Step{{Key: "one", State: loop.StepEscalated}} })
	worked(s, "one", "")
	edit := s.Close(summary(loop.OutcomeInterrupted, iteration("one", loop.VerdictIntended, "")))[0]
	if got := lists(parse(t, edit.Content)); len(got[0]) != 1 {
		t.Errorf("lists = %v, want it in Priority", got)
	}
}

func TestTheAgentsListsAreAdopted(t *testing.T) {
	state := listing("[P2] one <!-- mine -->\n[P1] two", "three", "four")
	for name, c := range map[string]struct {
		reports []string
		want    [3][]string
		has     string // text that is in the file afterwards
	}{
		"no report":                  {[]string{""}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, "- [P2] one <!-- mine -->\n"},
		"a report without lists":     {[]string{`{"outcome":"done"}`}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, ""},
		"a report nobody can read":   {[]string{`{"state":{"priority":[]}`}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, ""},
		"a list that is not named":   {[]string{`{"state":{"watch":["new"]}}`}, [3][]string{{"one", "two"}, {"new"}, {"four"}}, "- [P2] one <!-- mine -->\n"},
		"a list that is null":        {[]string{`{"state":{"priority":null,"watch":null,"noise":["new"]}}`}, [3][]string{{"one", "two"}, {"three"}, {"new"}}, ""},
		"a list that is empty":       {[]string{`{"state":{"priority":[]}}`}, [3][]string{nil, {"three"}, {"four"}}, "## Priority\n- (none yet)\n"},
		"all lists empty":            {[]string{`{"state":{"priority":[],"watch":[],"noise":[]}}`}, [3][]string{}, "Mind the gap.\n"},
		"an item changes its tag":    {[]string{`{"state":{"priority":["[P1] ONE","two"]}}`}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, "- [P1] one <!-- mine -->\n"},
		"an item changes its list":   {[]string{`{"state":{"priority":["two"],"watch":["three","one"]}}`}, [3][]string{{"two"}, {"three", "one"}, {"four"}}, "- [P2] one <!-- mine -->\n"},
		"findings go to Watch":       {[]string{`{"items":["five","THREE","[P1] six"]}`}, [3][]string{{"one", "two"}, {"three", "five", "six"}, {"four"}}, "- [P1] six\n"},
		"findings beside lists":      {[]string{`{"items":["five"],"state":{"noise":[]}}`}, [3][]string{{"one", "two"}, {"three"}, nil}, ""},
		"one report after the other": {[]string{`{"state":{"watch":["new"]}}`, `{"items":["newer"]}`}, [3][]string{{"one", "two"}, {"new", "newer"}, {"four"}}, ""},
		"text that plays tricks": {
			[]string{`{"state":{"watch":["a\n## Noise\n- b","<!-- c","---"]}}`}, [3][]string{{"one", "two"}, {"a ## Noise - b", "<! -- c", "---"}, {"four"}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var its []loop.Iteration
			for _, r := range c.reports {
				its = append(its, iteration("another", loop.VerdictFail, r))
			}
			edit := withState(t, state, nil).Close(summary(loop.OutcomeFailed, its...))[0]
			if diff := cmp.Diff(c.want, lists(parse(t, edit.Content))); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
			if !strings.Contains(edit.Content, c.has) {
				t.Errorf("%q is not in\n%s", c.has, edit.Content)
			}
		})
	}
}

func TestTheAgentsListsGoBeforeTheUsualMoves(t *testing.T) {
	its := []loop.Iteration{iteration("one", loop.VerdictPass, `{"outcome":"done","state":{"priority":["two"],"noise":["one"]}}`)}
	edit := withState(t, listing("one\ntwo", "", ""), nil).Close(summary(loop.OutcomeProposed, its...))[0]
	if diff := cmp.Diff([3][]string{{"two"}, nil, {"one"}}, lists(parse(t, edit.Content))); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestRowsOfItemsThatStandNowhereAreDropped(t *testing.T) {
	var known []loop.Step
	for _, state := range []loop.StepState{
		loop.StepOpen, loop.StepClaimed, loop.StepBlocked, loop.StepFailed, loop.StepWaiting, loop.StepEscalated, loop.StepDone,
	} {
		known = append(known, loop.Step{Key: "gone " + string(state), Title: "x", State: state})
	}
	known = append(known,
		loop.Step{Key: "prio", State: loop.StepFailed}, loop.Step{Key: "watched", State: loop.StepEscalated}, loop.Step{Key: "noisy", State: loop.StepDone},
		loop.Step{Key: goalKey, State: loop.StepDone}, loop.Step{Key: requestKey + "x", State: loop.StepOpen},
		loop.Step{Key: "worked on", State: loop.StepOpen},
	)
	s := withState(t, listing("Prio", "Watched", "Noisy"), func(v *engine.View) { v.Steps = known })
	dropped := map[string]bool{}
	for _, ch := range s.Close(summary(loop.OutcomeFailed, iteration("Worked on", loop.VerdictFail, ""))) {
		if ch.Kind != loop.ChangeStep {
			continue
		}
		if ch.Step.State != loop.StepDropped || ch.Path != "" {
			t.Errorf("change = %+v, want a dropped row", ch)
		}
		dropped[ch.Step.Key] = true
	}
	want := map[string]bool{}
	for _, row := range known {
		if strings.HasPrefix(row.Key, "gone ") && row.State != loop.StepClaimed {
			want[row.Key] = true
		}
	}
	if diff := cmp.Diff(want, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	for _, row := range s.v.Steps {
		if row.State == loop.StepDropped {
			t.Errorf("the view was changed: %+v", row)
		}
	}
}

// TestASessionThatSawNothingOfTheRunGivesTheSameAccount is what recovery rests
// on: another process opens the memory again and closes it.
func TestASessionThatSawNothingOfTheRunGivesTheSameAccount(t *testing.T) {
	reports := []string{
		"", `{"outcome":"done","items":["five"]}`, `{"state":{"priority":["two","[P1] six"],"watch":[]}}`, `{"state":{"noise":["one"]}}`, "no report",
	}
	ends := map[loop.Verdict][]loop.StepState{
		loop.VerdictPass: {loop.StepDone}, loop.VerdictPending: {loop.StepWaiting}, loop.VerdictIntended: {""},
		loop.VerdictFail: {loop.StepOpen, loop.StepBlocked, loop.StepFailed, loop.StepEscalated},
	}
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{statePath: rapid.SampledFrom([]string{
			golden, handEdited, listing("one\n[P1] two", "three", "four"), listing("", "two", ""), listing("two", "one", "one"),
		}).Draw(t, "state")}
		before := []loop.Step{
			{ID: "st_2", Key: "two", Title: "two", State: rapid.SampledFrom([]loop.StepState{loop.StepOpen, loop.StepEscalated, loop.StepDone}).Draw(t, "row")},
			{ID: "st_7", Key: "seven", Title: "seven", State: loop.StepFailed},
		}
		saw := opened(t, seen(files, func(v *engine.View) { v.Steps = before }))
		after := map[string]loop.Step{}
		for _, row := range before {
			after[row.Key] = row
		}
		var its []loop.Iteration
		var effects []loop.Effect
		for _, title := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"one", "two", "keep the build green"}), 0, 3, rapid.ID[string]).Draw(t, "steps") {
			verdict := rapid.SampledFrom([]loop.Verdict{loop.VerdictPass, loop.VerdictFail, loop.VerdictPending, loop.VerdictIntended}).Draw(t, "verdict")
			left := rapid.SampledFrom(ends[verdict]).Draw(t, "left")
			worked(saw, title, left)
			row := loop.Step{ID: "st_" + title, Key: Key(title), Title: title, State: left}
			if left == "" {
				row.State = loop.StepClaimed // The run holds it still.
			}
			after[row.Key] = row
			it := iteration(title, verdict, rapid.SampledFrom(reports).Draw(t, "report"))
			if verdict == loop.VerdictPass {
				effects = append(effects, loop.Effect{
					Kind: effect.KindPropose, State: loop.EffectDone, Args: map[string]string{effect.ArgTree: it.Tree},
				})
			}
			its = append(its, it)
		}
		outcomes := []loop.Outcome{}
		for _, m := range loop.Meanings {
			outcomes = append(outcomes, m.Outcome)
		}
		sum := summary(rapid.SampledFrom(outcomes).Draw(t, "outcome"), its...)
		sum.Effects = effects
		later := opened(t, seen(files, func(v *engine.View) {
			for _, key := range []string{"one", "two", "seven", "keep the build green"} {
				if row, ok := after[key]; ok {
					v.Steps = append(v.Steps, row)
				}
			}
			v.Now = noon.Add(time.Hour)
		}))
		if diff := cmp.Diff(byPath(saw.Close(sum)), byPath(later.Close(sum))); diff != "" {
			t.Fatalf("%s: changes (-saw it +did not):\n%s", sum.Run.Outcome, diff)
		}
	})
}

// byPath is the file changes of a list, and the keys of the rows that go.
func byPath(changes []loop.Change) map[string]string {
	all := map[string]string{}
	for _, ch := range changes {
		if ch.Kind == loop.ChangeStep {
			all["row "+ch.Step.Key] = string(ch.Step.State)
			continue
		}
		all[fmt.Sprintf("%s %s", ch.Kind, ch.Path)] = fmt.Sprintf("%v %s %s", ch.Missing, ch.Before, ch.Content)
	}
	return all
}
