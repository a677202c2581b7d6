package loopspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func TestARubricIsTheChecksOfReviewerGates(t *testing.T) {
	gates := []loop.Gate{
		{Name: "t", Kind: loop.GateCommand, Check: "go test"},
		{Name: "a", Kind: loop.GateReviewer, Check: " It is short. "},
		{Name: "i", Kind: loop.GateInvariant, Check: "diff.files < 3"},
		{Name: "b", Kind: loop.GateReviewer, Check: "It is true."},
		{Name: "c", Kind: loop.GateReviewer, Check: " "},
	}
	r := SeedRubric(gates, "rb_0000001", noon)
	want := Rubric{ID: "rb_0000001", Criteria: []string{"It is short.", "It is true."}, UpdatedAt: noon.UnixMilli()}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.CriteriaFor(gates[1]); !slices.Equal(got, want.Criteria) {
		t.Errorf("criteria %q, want those of the rubric", got)
	}
	empty := SeedRubric(gates[:1], "rb_0000002", noon)
	if got := empty.CriteriaFor(gates[1]); !slices.Equal(got, []string{" It is short. "}) || empty.Criteria == nil {
		t.Errorf("criteria %q, want the check of the gate", got)
	}
}

func TestAFlagTakesThePlaceOfTheCriteriaThatContainIt(t *testing.T) {
	later := noon.Add(time.Hour)
	r := Rubric{ID: "rb_0000001", Criteria: []string{"Check Links to pages", "Spelling", "no dead links"}, UpdatedAt: noon.UnixMilli()}
	before := slices.Clone(r.Criteria)
	got := r.Refine("  LINKS\n", later)
	want := Rubric{ID: r.ID, Criteria: []string{"Spelling", "Human-flagged miss: LINKS"}, UpdatedAt: later.UnixMilli()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(r.Criteria, before) {
		t.Errorf("the rubric itself became %q", r.Criteria)
	}
	if again := got.Refine("links", later); !slices.Equal(again.Criteria, []string{"Spelling", "Human-flagged miss: links"}) {
		t.Errorf("flagged again it is %q", again.Criteria)
	}
	for _, flag := range []string{"", " \t\n"} {
		if got := r.Refine(flag, later); !cmp.Equal(got, r) {
			t.Errorf("an empty flag makes it %+v", got)
		}
	}
}

func TestRefiningKeepsOneCriterionForEachFlag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rubric{Criteria: rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "criteria")}
		flag := rapid.StringMatching(`[a-c ]{0,3}`).Draw(t, "flag")
		got := r.Refine(flag, noon)
		trimmed := strings.TrimSpace(flag)
		if trimmed == "" {
			if !cmp.Equal(got, r) {
				t.Fatalf("%q changed it", flag)
			}
			return
		}
		last := got.Criteria[len(got.Criteria)-1]
		with := slices.IndexFunc(got.Criteria, func(c string) bool { return strings.Contains(strings.ToLower(c), trimmed) })
		if last != "Human-flagged miss: "+trimmed || with != len(got.Criteria)-1 {
			t.Fatalf("%q: %q", flag, got.Criteria)
		}
		if twice := got.Refine(flag, noon); !slices.Equal(twice.Criteria, got.Criteria) {
			t.Fatalf("%q twice: %q, once %q", flag, twice.Criteria, got.Criteria)
		}
	})
}

func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var random [IDBytes]byte
		copy(random[:], rapid.SliceOfN(rapid.Byte(), IDBytes, IDBytes).Draw(t, "random"))
		id, rubric := NewID(random), RubricID(random)
		if len(id) != 10 || !IsID(id) || rubric != "rb_"+strings.TrimPrefix(id, "lp_") {
			t.Fatalf("ids %s and %s", id, rubric)
		}
	})
	if a, b := NewID([IDBytes]byte{7: 0}), NewID([IDBytes]byte{7: 1}); a != "lp_0000000" || b != "lp_1000000" {
		t.Errorf("ids %s and %s", a, b)
	}
	for text, want := range map[string]bool{
		"lp_0a1b2cz": true, "lp_0123456789abcdef": true, "lp_0123456789abcdeg": false, "lp_0A1B2CZ": false, "lp_0a1b2c": false, "lp_0a1b2czz": false,
		"0a1b2cz": false, "lp_": false, "": false, "lp_0a1b2c\n": false, "rb_0a1b2cz": false,
	} {
		if IsID(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

func coordinator() Spec {
	s := complete()
	s.ID, s.Role, s.Trigger, s.BoardEntry = "lp_0000001", RoleCoordinator, Trigger{TriggerSchedule, "1h"}, "b7"
	return s
}

func TestAChildInheritsEverythingButWhatMakesItAWorker(t *testing.T) {
	parent := coordinator()
	parent.ChildIDs = []string{"lp_0000009"}
	before := copied(t, parent)
	child, changed, refused := Spawn(parent, "lp_0000002", Parallel, nil, noon)
	if refused != "" {
		t.Fatal(refused)
	}
	want := copied(t, before)
	want.ID, want.ParentID, want.ChildIDs, want.Role = "lp_0000002", "lp_0000001", nil, RoleWorker
	want.Trigger, want.Concurrency = Trigger{Type: TriggerManual}, Parallel
	want.CreatedAt, want.UpdatedAt = noon.UnixMilli(), noon.UnixMilli()
	if diff := cmp.Diff(want, child); diff != "" {
		t.Errorf("the child (-want +got):\n%s", diff)
	}
	want = copied(t, before)
	want.ChildIDs, want.UpdatedAt = []string{"lp_0000009", "lp_0000002"}, noon.UnixMilli()
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("the parent (-want +got):\n%s", diff)
	}
	for _, s := range []Spec{child, changed} {
		if findings := Validate(s, Machine{}); Refused(findings) {
			t.Errorf("%s is refused: %v", s.ID, findings)
		}
	}
	child.Gates[0].Name, child.Guardrails[0], changed.ChildIDs[0] = "other", "other", "other"
	if diff := cmp.Diff(before, parent); diff != "" {
		t.Errorf("the parent itself was changed:\n%s", diff)
	}
}

func TestOnlyAMonitorOrACoordinatorMaySpawn(t *testing.T) {
	for role, want := range map[Role]bool{RoleMonitor: true, RoleCoordinator: true, RoleWorker: false, RoleStandalone: false} {
		s := coordinator()
		s.Role = role
		child, changed, refused := Spawn(s, "lp_0000002", Sequential, nil, noon)
		if (refused == "") != want || !want && (!cmp.Equal(child, Spec{}) || !cmp.Equal(changed, Spec{})) {
			t.Errorf("%s: %q, want allowed = %v", role, refused, want)
		}
	}
}

func TestAParallelSpawnIsRefusedBesideARunningSpecOfItsBoardEntry(t *testing.T) {
	for _, c := range []struct {
		board, other string
		status       Status
		how          Concurrency
		want         bool
	}{
		{"b7", "b7", StatusRunning, Parallel, false},
		{"b7", "b7", StatusRunning, Sequential, true},
		{"b7", "b8", StatusRunning, Parallel, true},
		{"b7", "b7", StatusPaused, Parallel, true},
		{"b7", "b7", StatusDraft, Parallel, true},
		{"b7", "b7", StatusWaitingHuman, Parallel, true},
		{"b7", "", StatusRunning, Parallel, true},
		{"", "", StatusRunning, Parallel, true},
	} {
		parent := coordinator()
		parent.BoardEntry = c.board
		others := []Run{{Spec: parent, Status: StatusRunning}, {Spec: Spec{ID: "lp_0000005", BoardEntry: c.other}, Status: c.status}}
		if _, _, refused := Spawn(parent, "lp_0000002", c.how, others, noon); (refused == "") != c.want {
			t.Errorf("%+v: %q", c, refused)
		}
	}
}

func TestMaxItemsBoundsTheChildren(t *testing.T) {
	for most, children := range map[int64]int{1: 1, 3: 3, 0: MaxChildren} {
		parent := coordinator()
		parent.Budget.MaxItems = most
		for i := range children {
			_, changed, refused := Spawn(parent, fmt.Sprintf("lp_%07d", i+10), Sequential, nil, noon)
			if refused != "" {
				t.Fatalf("maxItems %d: child %d is refused: %s", most, i+1, refused)
			}
			parent = changed
		}
		if _, _, refused := Spawn(parent, "lp_0000002", Sequential, nil, noon); refused == "" {
			t.Errorf("maxItems %d: child %d is allowed", most, children+1)
		}
	}
}

func TestDiscardingRemovesChildren(t *testing.T) {
	all := []Spec{
		{ID: "lp_0000001", ChildIDs: []string{"lp_0000002", "lp_0000003"}},
		{ID: "lp_0000002", ParentID: "lp_0000001", ChildIDs: []string{"lp_0000004"}},
		{ID: "lp_0000003", ParentID: "lp_0000001"},
		{ID: "lp_0000004"}, // only its parent knows
		{ID: "lp_0000005", ParentID: "lp_0000004"},
		{ID: "lp_0000006"},
	}
	for id, want := range map[string]struct{ left, gone string }{
		"lp_0000001": {"6", "1 2 3 4 5"}, "lp_0000002": {"1 3 6", "2 4 5"}, "lp_0000003": {"1 2 4 5 6", "3"}, "lp_0000006": {"1 2 3 4 5", "6"},
		"lp_0000009": {"1 2 3 4 5 6", ""}, "": {"1 2 3 4 5 6", ""},
	} {
		left, gone := Discard(all, id)
		var names []string
		for _, s := range left {
			names = append(names, strings.TrimPrefix(s.ID, "lp_000000"))
			for _, child := range s.ChildIDs {
				if slices.Contains(gone, child) {
					t.Errorf("%q: %s still names %s", id, s.ID, child)
				}
			}
		}
		slices.Sort(gone)
		if got := strings.ReplaceAll(strings.Join(gone, " "), "lp_000000", ""); strings.Join(names, " ") != want.left || got != want.gone {
			t.Errorf("%q: %q left and %q gone, want %q and %q", id, names, got, want.left, want.gone)
		}
	}
	if got := all[0].ChildIDs; !slices.Equal(got, []string{"lp_0000002", "lp_0000003"}) {
		t.Errorf("the list itself was changed: %q", got)
	}
}

func TestDiscardEndsWhereSpecsAreTheirOwnAncestors(t *testing.T) {
	all := []Spec{{ID: "lp_0000001", ParentID: "lp_0000002"}, {ID: "lp_0000002", ParentID: "lp_0000001", ChildIDs: []string{"lp_0000002"}}}
	if left, gone := Discard(all, "lp_0000001"); len(left) != 0 || len(gone) != 2 {
		t.Errorf("%v left, %v gone", left, gone)
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
