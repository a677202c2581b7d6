package spine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
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

func (m memory) Read(path string) (projection.File, error) {
	if err := m.broken[path]; err != nil {
		return projection.File{}, err
	}
	text, ok := m.files[path]
	if !ok && path == m.tooBig {
		return projection.File{Exists: true, TooBig: true}, nil
	}
	return projection.File{Exists: ok, Content: text}, nil
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
				if cand.Drop != "" && (cand.Drop != loop.ReasonNotEligible || !strings.Contains(cand.Detail, "it is in ")) {
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
		ID: "st_1", Key: "one", Kind: loop.StepWork, Title: "ONE", Attempts: 2, Tried: loop.Tried{Gates: map[string]loop.Streak{"verify": {Failed: 2, Tree: "t1", SameTree: 2}}},
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

func TestAGoalThatWasHandedOverRestsUntilSomebodyTakesItOutOfTheLists(t *testing.T) {
	row := loop.Step{ID: "st_g", Key: goalKey, Kind: loop.StepWork, Inputs: "same", Feedback: "no key"}
	for name, c := range map[string]struct {
		state, handed, answered loop.StepState
	}{
		"escalated":             {loop.StepEscalated, loop.StepEscalated, loop.StepOpen},
		"failed":                {loop.StepFailed, loop.StepEscalated, loop.StepFailed},
		"blocked":               {loop.StepBlocked, loop.StepEscalated, loop.StepBlocked},
		"needed no change":      {loop.StepDone, loop.StepDone, loop.StepDone},
		"has a question":        {loop.StepWaiting, loop.StepWaiting, loop.StepWaiting},
		"the run was cut short": {loop.StepOpen, loop.StepOpen, loop.StepOpen},
	} {
		row.State = c.state
		for watch, want := range map[string]loop.StepState{goalItem + "\n  - escalated in run #57: no key": c.handed, "other": c.answered} {
			s := withState(t, listing("", watch, ""), func(v *engine.View) { v.Steps = []loop.Step{row} })
			if got := s.Candidates(engine.Sensed{}, noon)[0].Step; got.State != want || got.Title != "keep the build green" || got.Feedback == "" && want != loop.StepDone {
				t.Errorf("%s, with %q in Watch: %+v, want %s", name, watch, got, want)
			}
		}
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
		key := ItemKey(rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \t]*(GOAL|REQUEST: .*|goal)`)).Draw(t, "text"))
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
	log.WriteString(runlog.Header("ci-watch"))
	for n := range 30 {
		log.WriteString(runlog.Line(runlog.Entry{At: nine, Run: int64(n + 1), Action: "none", Outcome: "quiet"}))
	}
	failed := loop.Run{N: 57, Outcome: loop.OutcomeFailed, Detail: "verify failed", Snapshot: "refs/pawl/snapshots/ci-watch/57"}
	s := opened(t, seen(map[string]string{statePath: golden, logPath: log.String(), promptPath: "\nYou are careful.\n\n"},
		func(v *engine.View) { v.Recent = []loop.Run{failed, {N: 56, Outcome: loop.OutcomeQuiet}} }))
	changes, brief, err := s.Begin(plan.Choice{Step: loop.Step{Key: "one", Title: "One"}})
	if err != nil || changes != nil {
		t.Fatalf("Begin = %v, %v; want no change", changes, err)
	}
	if brief.Goal.Text != "keep the build green" || brief.Role != "You are careful." || brief.Task.Text != "One" ||
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

func TestNothingIsWorkedOnWhenAStopLineWasCrossed(t *testing.T) {
	s := withState(t, listing("one\ntwo", "three", ""), func(v *engine.View) { v.Definition.StopLines = []string{"minutes >= 30", "errors >= 5"} })
	for after, dropped := range map[time.Duration]int{0: 1, 29*time.Minute + 59*time.Second: 1, 30 * time.Minute: 3, time.Hour: 3} {
		n := 0
		for _, c := range s.Candidates(engine.Sensed{}, noon.Add(after)) {
			if c.Drop == "" {
				continue
			}
			if n++; (c.Drop == loop.ReasonStopLine) != (c.Ends == loop.OutcomeGaveUp) || c.Drop == loop.ReasonStopLine && !strings.HasSuffix(c.Detail, ", critical at 30") {
				t.Errorf("after %v: candidate %+v", after, c)
			}
		}
		if n != dropped {
			t.Errorf("after %v: %d steps are dropped, want %d", after, n, dropped)
		}
	}
	for crosses, reports := range map[bool][]string{true: {`{"confidence":0.8}`, `{"confidence":0.4}`}, false: {`{"confidence":0.4}`, `{"confidence":0.5}`, ""}} {
		s := withState(t, listing("one\ntwo", "three", ""), func(v *engine.View) { v.Definition.StopLines = []string{"errors >= 9", "confidence < 0.5"} })
		for _, report := range reports {
			s.Record(engine.Result{Iteration: iteration("one", loop.VerdictFail, report)})
		}
		c := s.Candidates(engine.Sensed{}, noon)[0]
		if (c.Detail == "confidence 0.4, critical below 0.5") != crosses || (c.Ends == loop.OutcomeGaveUp) != crosses {
			t.Errorf("%q: candidate %+v", reports, c)
		}
	}
	broken := seen(nil, func(v *engine.View) { v.Definition.StopLines = []string{"errors > 5"} })
	if _, err := (Protocol{}).Open(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "'errors > 5' is not a stop line") {
		t.Errorf("Open = %v, want that it cannot be read", err)
	}
}
