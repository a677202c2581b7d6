package loopspec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

var noon = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

func TestABudgetIsUsedUpAtExactlyItsNumber(t *testing.T) {
	base := Run{Spec: Spec{Budget: Budget{MaxIterations: 2, MaxTokens: 100, MaxWallClockMs: 60_000}}}
	for name, c := range map[string]struct {
		iterations int
		tokens     int64
		started    time.Time
		want       bool
	}{
		"nothing used":                 {0, 0, time.Time{}, false},
		"one iteration of two":         {1, 0, time.Time{}, false},
		"both iterations":              {2, 0, time.Time{}, true},
		"more iterations":              {3, 0, time.Time{}, true},
		"one token left":               {0, 99, time.Time{}, false},
		"all tokens":                   {0, 100, time.Time{}, true},
		"more tokens":                  {0, 101, time.Time{}, true},
		"a millisecond left":           {0, 0, noon.Add(-time.Minute + time.Millisecond), false},
		"the whole time":               {0, 0, noon.Add(-time.Minute), true},
		"more time":                    {0, 0, noon.Add(-time.Hour), true},
		"it begins now":                {0, 0, noon, false},
		"everything but one":           {1, 99, noon.Add(-time.Minute + time.Millisecond), false},
		"it has not started, long ago": {1, 99, time.Time{}, false},
	} {
		r := base
		r.Iterations, r.TokensUsed = make([]Iteration, c.iterations), c.tokens
		if !c.started.IsZero() {
			r.StartedAt = c.started.UnixMilli()
		}
		if got := r.BudgetExceeded(noon); got != c.want {
			t.Errorf("%s: exceeded = %v, want %v", name, got, c.want)
		}
	}
}

func TestRecordingAnIterationAddsItsTokens(t *testing.T) {
	first := Run{TokensUsed: 5}.Record(Iteration{N: 1, Tokens: 7}, noon)
	second := first.Record(Iteration{N: 2}, noon.Add(time.Second))
	other := first.Record(Iteration{N: 9, Tokens: 1}, noon)
	if first.TokensUsed != 12 || second.TokensUsed != 12 || other.TokensUsed != 13 || len(first.Iterations) != 1 {
		t.Errorf("tokens %d, %d and %d, want 12, 12 and 13", first.TokensUsed, second.TokensUsed, other.TokensUsed)
	}
	if second.Iterations[1].N != 2 || other.Iterations[1].N != 9 || second.UpdatedAt != noon.Add(time.Second).UnixMilli() {
		t.Errorf("two runs share their iterations: %+v and %+v", second, other)
	}
}

func TestGatesPassedNeedsAGateAndAPass(t *testing.T) {
	gates := []loop.Gate{{Name: "g"}}
	pass, fail := Iteration{Verdict: loop.VerdictPass}, Iteration{Verdict: loop.VerdictFail}
	for name, c := range map[string]struct {
		r    Run
		want bool
	}{
		"nothing":                 {Run{}, false},
		"a gate, no iteration":    {Run{Spec: Spec{Gates: gates}}, false},
		"a pass without a gate":   {Run{Iterations: []Iteration{pass}}, false},
		"a pass":                  {Run{Spec: Spec{Gates: gates}, Iterations: []Iteration{fail, pass}}, true},
		"one pass":                {Run{Spec: Spec{Gates: gates}, Iterations: []Iteration{pass}}, true},
		"a pass, and then a fail": {Run{Spec: Spec{Gates: gates}, Iterations: []Iteration{pass, fail}}, false},
		"pending":                 {Run{Spec: Spec{Gates: gates}, Iterations: []Iteration{{Verdict: loop.VerdictPending}}}, false},
	} {
		if got := c.r.GatesPassed(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestTokensAreAQuarterOfTheCharactersRoundedUp(t *testing.T) {
	for _, c := range []struct {
		acted, feedback string
		want            int64
	}{{"", "", 0}, {"a", "", 1}, {"ab", "cd", 1}, {"abc", "de", 2}, {"éééé", "", 1}, {strings.Repeat("x", 401), "", 101}} {
		if got := EstimateTokens(c.acted, c.feedback); got != c.want {
			t.Errorf("%q and %q: %d tokens, want %d", c.acted, c.feedback, got, c.want)
		}
	}
}

func TestTheTextOfAGateIsInBackticksOrTheWhole(t *testing.T) {
	for check, want := range map[string]string{
		"`go test ./...`": "go test ./...", "go test ./...": "go test ./...", "Tests pass: ` npm test `, always": "npm test", " x ": "x",
		"`a` and `b`": "a", "it's `open": "it's `open", "``": "", "": "",
	} {
		if got := GateText(check); got != want {
			t.Errorf("%q: %q, want %q", check, got, want)
		}
	}
}

// TestEachStatusWithEachEvent has the whole table once more, as the format tells it.
func TestEachStatusWithEachEvent(t *testing.T) {
	events := []Event{
		EventStep, EventPass, EventPending, EventFail, EventGiveUp, EventPause, EventBudget, EventError, EventHandOff, EventAbandon, EventApprove, EventAccept,
		EventReject, EventStop, EventFlag,
	}
	table := map[Status]string{ // in the order of events; - is refused
		StatusDraft:        "running       -             -             -       -       -      -       -      -             -       -    -       -       paused  draft",
		StatusRunning:      "running       waiting_human waiting_human running gave_up paused gave_up paused waiting_human gave_up -    -       -       paused  running",
		StatusPaused:       "running       -             -             -       -       -      -       -      -             -       -    -       -       paused  paused",
		StatusWaitingHuman: "-             -             -             -       -       -      -       -      -             -       done running running paused  waiting_human",
		StatusDone:         "-             -             -             -       -       -      -       -      -             -       -    -       -       done    running",
		StatusGaveUp:       "-             -             -             -       -       -      -       -      -             -       -    -       -       gave_up gave_up",
	}
	edges := 0
	for _, from := range Statuses {
		row := strings.Fields(table[from])
		if len(row) != len(events) {
			t.Fatalf("%s has %d events, want %d", from, len(row), len(events))
		}
		for i, e := range events {
			to, refused := from.Next(e)
			switch {
			case row[i] == "-" && (to != from || refused == ""):
				t.Errorf("%s with %s: %s %q, want it refused with a reason", from, e, to, refused)
			case row[i] != "-" && (string(to) != row[i] || refused != ""):
				t.Errorf("%s with %s: %s %q, want %s", from, e, to, refused, row[i])
			}
			if row[i] != "-" {
				edges++
			}
		}
	}
	if edges != len(Edges) {
		t.Errorf("the table has %d edges, want %d", len(Edges), edges)
	}
}

func TestStoppingTwiceIsStoppingOnce(t *testing.T) {
	for _, s := range Statuses {
		once, _ := s.Next(EventStop)
		if twice, refused := once.Next(EventStop); twice != once || refused != "" {
			t.Errorf("%s: stopped once it is %s, twice %s %s", s, once, twice, refused)
		}
	}
}

func TestAStepIsRefusedWithTheReason(t *testing.T) {
	for s, want := range map[Status]string{StatusWaitingHuman: "approve or reject", StatusDone: "it is done", StatusGaveUp: "it gave up"} {
		if to, refused := s.Next(EventStep); to != s || !strings.Contains(refused, want) {
			t.Errorf("%s: %s %q, want it refused with %q", s, to, refused, want)
		}
	}
}

func TestAPassNeverCompletesASpecByItself(t *testing.T) {
	for _, e := range Edges {
		if e.To == StatusDone && e.From != StatusDone && e.Event != EventApprove {
			t.Errorf("%s makes a spec done", e.Event)
		}
	}
}

func TestOnlyDraftAndRunningSpecsAreDue(t *testing.T) {
	for _, s := range Statuses {
		if got, want := s.IsDue(), s == StatusDraft || s == StatusRunning; got != want {
			t.Errorf("%s: due = %v, want %v", s, got, want)
		}
	}
}

func TestWhatFollowsAnIteration(t *testing.T) {
	for _, c := range []struct {
		v       loop.Verdict
		givesUp bool
		then    loop.Consequence
		spent   bool
		event   Event
		status  Status
	}{
		{loop.VerdictPass, false, loop.ThenEscalate, false, EventPass, StatusWaitingHuman},
		{loop.VerdictPass, true, loop.ThenEscalate, true, EventPass, StatusWaitingHuman},
		{loop.VerdictPending, false, loop.ThenEscalate, false, EventPending, StatusWaitingHuman},
		{loop.VerdictPending, true, loop.ThenStop, true, EventPending, StatusWaitingHuman},
		{loop.VerdictFail, false, loop.ThenEscalate, false, EventFail, StatusRunning},
		{loop.VerdictFail, false, loop.ThenPause, true, EventBudget, StatusGaveUp},
		{loop.VerdictFail, true, loop.ThenEscalate, false, EventGiveUp, StatusGaveUp},
		{loop.VerdictFail, true, loop.ThenStop, true, EventGiveUp, StatusGaveUp},
		{loop.VerdictFail, true, loop.ThenPause, true, EventPause, StatusPaused},
		{loop.VerdictFail, true, loop.ThenPause, false, EventPause, StatusPaused},
	} {
		e := AfterIteration(c.v, c.givesUp, c.then, c.spent)
		if to, refused := StatusRunning.Next(e); e != c.event || to != c.status || refused != "" {
			t.Errorf("%+v: %s, %s %s", c, e, to, refused)
		}
	}
}

func TestApprovalEndsAManualSpecAndNotOneThatComesAgain(t *testing.T) {
	for _, c := range []struct {
		t      TriggerType
		closes bool
		want   Status
	}{
		{TriggerManual, false, StatusDone},
		{TriggerManual, true, StatusDone},
		{TriggerSchedule, false, StatusRunning},
		{TriggerSchedule, true, StatusDone},
		{TriggerEvent, false, StatusRunning},
		{TriggerEvent, true, StatusDone},
	} {
		if got, refused := StatusWaitingHuman.Next(c.t.OnApproval(c.closes)); got != c.want || refused != "" {
			t.Errorf("%s, closes = %v: %s %s, want %s", c.t, c.closes, got, refused, c.want)
		}
	}
}

func TestARunIsWrittenInTheFormatsWords(t *testing.T) {
	r := Run{Spec: complete(), Status: StatusWaitingHuman, StartedAt: 5, Rubric: &Rubric{ID: "rb_0000001", Criteria: []string{}}}
	r = r.Record(Iteration{N: 1, Verdict: loop.VerdictPass, Gate: "tests_pass", Tokens: 3, TS: 7}, noon)
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"status":"waiting_human"`, `"tokensUsed":3`, `"startedAt":5`, `"verdict":"pass"`, `"gate":"tests_pass"`, `"rubric":{"id":"rb_0000001"`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}
