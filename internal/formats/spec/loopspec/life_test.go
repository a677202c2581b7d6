package loopspec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

var noon = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

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
			to, refused := After(from, e)
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
		once, _ := After(s, EventStop)
		if twice, refused := After(once, EventStop); twice != once || refused != "" {
			t.Errorf("%s: stopped once it is %s, twice %s %s", s, once, twice, refused)
		}
	}
}

func TestAStepIsRefusedWithTheReason(t *testing.T) {
	for s, want := range map[Status]string{StatusWaitingHuman: "approve or reject", StatusDone: "it is done", StatusGaveUp: "it gave up"} {
		if to, refused := After(s, EventStep); to != s || !strings.Contains(refused, want) {
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

func TestARunIsWrittenInTheFormatsWords(t *testing.T) {
	r := Run{
		Spec: complete(), Status: StatusWaitingHuman, StartedAt: 5, TokensUsed: 3, Rubric: &Rubric{ID: "rb_0000001", Criteria: []string{}},
		Iterations: []Iteration{{N: 1, Verdict: loop.VerdictPass, Gate: "tests_pass", Tokens: 3, TS: 7}},
	}
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
