package loopspec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// rulesOf parses one changed text of a spec that is otherwise complete.
func rulesOf(change func(*Spec)) (Rules, []Finding) {
	s := complete()
	change(&s)
	return s.Rules()
}

func TestEachRuleOfGiveUpWithEachConsequence(t *testing.T) {
	rules := map[string]loop.GiveUpRule{
		"same gate fails 3× with no diff":        {Repeat: loop.RepeatGateAndTree, Times: 3},
		"same gate fails with no diff":           {Repeat: loop.RepeatGateAndTree, Times: 3},
		"same gate fails 5 times with no diff":   {Repeat: loop.RepeatGateAndTree, Times: 5},
		"same gate 3×":                           {Repeat: loop.RepeatGate, Times: 3},
		"same gate fails 3×":                     {Repeat: loop.RepeatGate, Times: 3},
		"same gate fails twice":                  {Repeat: loop.RepeatGate, Times: 2},
		"same test 3×":                           {Repeat: loop.RepeatTest, Times: 3},
		"same test fails 4x":                     {Repeat: loop.RepeatTest, Times: 4},
		"3 iterations without new findings":      {Repeat: loop.RepeatFindings, Times: 3},
		"7 iterations   without\tnew findings":   {Repeat: loop.RepeatFindings, Times: 7},
		"Same GATE fails 3 × w/ no diff":         {Repeat: loop.RepeatGateAndTree, Times: 3},
		"same gate fails 1000 times":             {Repeat: loop.RepeatGate, Times: 1000},
		"same gate fails 9×":                     {Repeat: loop.RepeatGate, Times: 9},
		"same gate fails once":                   {Repeat: loop.RepeatGate, Times: 1},
		"same gate fails 3x with no diff":        {Repeat: loop.RepeatGateAndTree, Times: 3},
		"1 iterations without new findings":      {Repeat: loop.RepeatFindings, Times: 1},
		"same test fails":                        {Repeat: loop.RepeatTest, Times: 3},
		"same gate":                              {Repeat: loop.RepeatGate, Times: 3},
		"same gate, fails 3×, with no diff":      {Repeat: loop.RepeatGateAndTree, Times: 3},
		"\n same gate fails 3times with no diff": {Repeat: loop.RepeatGateAndTree, Times: 3},
	}
	consequences := map[string]struct {
		then   loop.Consequence
		report bool
	}{
		"":                   {loop.ThenEscalate, false},
		".":                  {loop.ThenEscalate, false},
		" → escalate":        {loop.ThenEscalate, false},
		"->ESCALATE.":        {loop.ThenEscalate, false},
		" → stop":            {loop.ThenStop, false},
		" -> pause":          {loop.ThenPause, false},
		"→pause and report":  {loop.ThenPause, true},
		" → pause + report.": {loop.ThenPause, true},
	}
	for rule, want := range rules {
		for after, then := range consequences {
			r, findings := rulesOf(func(s *Spec) { s.GiveUp = rule + after })
			want.Then, want.Report = then.then, then.report
			if len(findings) > 0 || r.GiveUp != want {
				t.Errorf("%q = %+v %v, want %+v", rule+after, r.GiveUp, findings, want)
			}
		}
	}
}

func TestEachPhraseOfErrorPolicy(t *testing.T) {
	const wait = 1500 * time.Millisecond
	ends := map[string]loop.ErrorEnd{
		"pause + log": loop.PauseAndLog, "pause and log": loop.PauseAndLog, "pause+log.": loop.PauseAndLog, "escalate": loop.HandOver, "stop": loop.GiveUpAtOnce, "Stop.": loop.GiveUpAtOnce,
	}
	for head, want := range map[string]loop.ErrorPolicy{
		"retry once w/ backoff":       {Retries: 1, Wait: wait},
		"retry once with backoff":     {Retries: 1, Wait: wait},
		"retry twice with backoff":    {Retries: 2, Wait: wait, Doubling: true},
		"retry 3 times with backoff":  {Retries: 3, Wait: wait, Doubling: true},
		"retry 3× w/ backoff":         {Retries: 3, Wait: wait, Doubling: true},
		"Retry 10x w/backoff":         {Retries: 10, Wait: wait, Doubling: true},
		"retry once":                  {Retries: 1},
		"retry twice":                 {Retries: 2},
		"retry 3×":                    {Retries: 3},
		" retry  3 times  w/ backoff": {Retries: 3, Wait: wait, Doubling: true},
	} {
		for end, then := range ends {
			for _, joiner := range []string{", then ", " then ", ",THEN  "} {
				text := head + joiner + end
				want.Then = then
				r, findings := rulesOf(func(s *Spec) { s.ErrorPolicy = text })
				if len(findings) > 0 || r.ErrorPolicy != want {
					t.Errorf("%q = %+v %v, want %+v", text, r.ErrorPolicy, findings, want)
				}
			}
		}
	}
	for _, text := range []string{"pause + log", "Pause and log.", "pause+log"} {
		r, findings := rulesOf(func(s *Spec) { s.ErrorPolicy = text })
		if want := (loop.ErrorPolicy{Then: loop.PauseAndLog}); len(findings) > 0 || r.ErrorPolicy != want {
			t.Errorf("%q = %+v %v, want %+v", text, r.ErrorPolicy, findings, want)
		}
	}
}

func TestARetryWaitsAndEachLaterOneTwiceAsLong(t *testing.T) {
	p := loop.ErrorPolicy{Retries: 3, Wait: backoff, Doubling: true}
	for n, want := range map[int]time.Duration{1: 1500 * time.Millisecond, 2: 3 * time.Second, 3: 6 * time.Second, 10: 768 * time.Second} {
		if got := p.WaitBefore(n); got != want {
			t.Errorf("retry %d waits %v, want %v", n, got, want)
		}
	}
	if got := (loop.ErrorPolicy{Retries: 2}).WaitBefore(2); got != 0 {
		t.Errorf("without backoff the second retry waits %v, want none", got)
	}
	for n := range 200 {
		if p.WaitBefore(n+1) < p.WaitBefore(n) {
			t.Fatalf("retry %d waits %v, less than the one before it", n+1, p.WaitBefore(n+1))
		}
	}
}

func TestEachPhraseOfHumanGate(t *testing.T) {
	accept, keep := HumanGate{Gate: loop.HumanGateAccept}, HumanGate{Gate: loop.HumanGateKeep}
	for text, want := range map[string]HumanGate{
		"hand the result to a human": accept, "Hand a digest to a human.": accept, "": accept, "  ": accept,
		"propose a branch, do not merge": keep, "propose, do not commit": keep, "propose a branch, don't merge": keep,
		"propose, don’t commit": keep, "open a PR, do not merge": openPull, "open a pull request": openPull, "Open a PR.": openPull,
		"open a pr, DON'T merge": openPull, "land after approval": landOnBase, "merge after approval": landOnBase,
	} {
		r, findings := rulesOf(func(s *Spec) { s.HumanGate = text })
		if len(findings) > 0 || r.HumanGate != want {
			t.Errorf("%q = %+v %v, want %+v", text, r.HumanGate, findings, want)
		}
	}
}

func TestEachPhraseOfGuardrails(t *testing.T) {
	for text, want := range map[string]Guardrails{
		"edits limited to /src and /tests":             {Scope: []string{"src/**", "tests/**"}},
		"Edits limited to /src, /tests and /docs.":     {Scope: []string{"src/**", "tests/**", "docs/**"}},
		"edits limited to /src, and /tests":            {Scope: []string{"src/**", "tests/**"}},
		"edits limited to ./src and ./a.b/":            {Scope: []string{"src/**", "a.b/**"}},
		"edits limited to /src/":                       {Scope: []string{"src/**"}},
		"edits limited to src":                         {Scope: []string{"src/**"}},
		"edits limited to /README.md and /.github":     {Scope: []string{"README.md", ".github/**"}},
		"edits limited to **/*.go, /go.mod":            {Scope: []string{"**/*.go", "go.mod"}},
		"edits limited to `/src` and `/src/Android`":   {Scope: []string{"src/**", "src/Android/**"}},
		"edits limited to /src and /band and /sandy":   {Scope: []string{"src/**", "band/**", "sandy/**"}},
		"edits limited to **/*.{ts,tsx}, /{a,b} and c": {Scope: []string{"**/*.{ts,tsx}", "{a,b}", "c/**"}},
		"edits limited to /Src AND /b":                 {Scope: []string{"Src/**", "b/**"}},
		"no destructive actions":                       {Deny: []loop.Denial{loop.DenyDestructive}},
		"prepare output, do not commit":                {NoBranch: true},
		"Prepare output, don't commit.":                {NoBranch: true},
		"digest only, no outside notification":         {ReportOnly: true},
		"no force-push":                                {Deny: []loop.Denial{loop.DenyForcePush}},
		"no push":                                      {Deny: []loop.Denial{loop.DenyPush}},
		"no merge":                                     {Deny: []loop.Denial{loop.DenyMerge}},
		"No deploy.":                                   {Deny: []loop.Denial{loop.DenyDeploy}},
		"no network":                                   {Deny: []loop.Denial{loop.DenyNetwork}},
		"note: Be kind, and → keep `it` 3x shorter. ":  {Notes: []string{"Be kind, and → keep `it` 3x shorter."}},
		"NOTE:x": {Notes: []string{"x"}},
	} {
		r, findings := rulesOf(func(s *Spec) { s.Guardrails = []string{text} })
		if len(want.Deny) == 0 {
			want.Deny = []loop.Denial{}
		}
		if diff := cmp.Diff(want, r.Guardrails); diff != "" || len(findings) > 0 {
			t.Errorf("%q %v (-want +got):\n%s", text, findings, diff)
		}
	}
}

func TestGuardrailsAddUp(t *testing.T) {
	r, findings := rulesOf(func(s *Spec) {
		s.Guardrails = []string{"no deploy", "edits limited to /a", "no force-push", "note: one", "edits limited to /b.go", "no deploy", "note: two"}
	})
	want := Guardrails{Scope: []string{"a/**", "b.go"}, Deny: []loop.Denial{loop.DenyForcePush, loop.DenyDeploy}, Notes: []string{"one", "two"}}
	if diff := cmp.Diff(want, r.Guardrails); diff != "" || len(findings) > 0 {
		t.Errorf("%v (-want +got):\n%s", findings, diff)
	}
	if !r.Guardrails.Denies(loop.DenyDeploy) || r.Guardrails.Denies(loop.DenyMerge) || !r.Guardrails.Writes() {
		t.Errorf("%+v: want deploy denied, merge not, and writing allowed", r.Guardrails)
	}
}

func TestWithoutEditsNothingIsWritten(t *testing.T) {
	for entry, want := range map[string]bool{"no push": false, "note: edits limited to /src": false, "edits limited to /src": true} {
		r, _ := rulesOf(func(s *Spec) { s.Guardrails, s.HumanGate = []string{entry}, "" })
		if got := r.Guardrails.Writes(); got != want {
			t.Errorf("%q: writes = %v, want %v", entry, got, want)
		}
	}
}

func TestEachRowOfStateSource(t *testing.T) {
	for text, want := range map[string]StateSource{
		"`go test ./...`":             {Kind: SenseCommand, Command: "go test ./..."},
		" `go  test ./...`. ":         {Kind: SenseCommand, Command: "go  test ./..."},
		"`Make CHECK, then → 3x`":     {Kind: SenseCommand, Command: "Make CHECK, then → 3x"},
		"test output":                 {Kind: SenseTestOutput},
		"Test  Output.":               {Kind: SenseTestOutput},
		"diff":                        {Kind: SenseDiff},
		"memory":                      {Kind: SenseMemory},
		"queue: go list ./...":        {Kind: SenseQueue, Command: "go list ./..."},
		"Queue:`gh issue list`":       {Kind: SenseQueue, Command: "gh issue list"},
		"queue: grep -c 'a, b' F.txt": {Kind: SenseQueue, Command: "grep -c 'a, b' F.txt"},
		"file: notes/TODO.md":         {Kind: SenseFile, Path: "notes/TODO.md"},
		"FILE:/NOTES.md.":             {Kind: SenseFile, Path: "NOTES.md"},
		"file: `a b.md`":              {Kind: SenseFile, Path: "a b.md"},
	} {
		r, findings := rulesOf(func(s *Spec) { s.StateSource = text })
		if len(findings) > 0 || r.StateSource != want {
			t.Errorf("%q = %+v %v, want %+v", text, r.StateSource, findings, want)
		}
	}
}

func TestEachTrigger(t *testing.T) {
	for _, c := range []struct {
		trigger Trigger
		want    Schedule
		notes   int
	}{
		{Trigger{Type: TriggerManual}, Schedule{Type: TriggerManual}, 0},
		{Trigger{Type: TriggerSchedule}, Schedule{Type: TriggerSchedule, Cadence: "5m"}, 0},
		{Trigger{TriggerSchedule, "300000"}, Schedule{Type: TriggerSchedule, Cadence: "5m"}, 0},
		{Trigger{TriggerSchedule, " 3600000 "}, Schedule{Type: TriggerSchedule, Cadence: "60m"}, 0},
		{Trigger{TriggerSchedule, "86400000"}, Schedule{Type: TriggerSchedule, Cadence: "1d"}, 0},
		{Trigger{TriggerSchedule, "1036740000"}, Schedule{Type: TriggerSchedule, Cadence: "11d1439m"}, 0},
		{Trigger{TriggerSchedule, "90060000"}, Schedule{Type: TriggerSchedule, Cadence: "1d61m"}, 0},
		{Trigger{TriggerSchedule, "90000"}, Schedule{Type: TriggerSchedule, Cadence: "2m"}, 1},
		{Trigger{TriggerSchedule, "1"}, Schedule{Type: TriggerSchedule, Cadence: "1m"}, 1},
		{Trigger{TriggerSchedule, "1d12h"}, Schedule{Type: TriggerSchedule, Cadence: "1d12h"}, 0},
		{Trigger{TriggerSchedule, "0 9 * * 1-5"}, Schedule{Type: TriggerSchedule, Cadence: "0 9 * * 1-5"}, 0},
		{Trigger{TriggerEvent, "file:src/**/*.go"}, Schedule{Type: TriggerEvent, Event: loop.EventSource{Kind: loop.OnFile, What: "src/**/*.go"}}, 0},
		{Trigger{TriggerEvent, "ref:refs/tags/*"}, Schedule{Type: TriggerEvent, Event: loop.EventSource{Kind: loop.OnRef, What: "refs/tags/*"}}, 0},
		{Trigger{TriggerEvent, "webhook:deploys"}, Schedule{Type: TriggerEvent, Event: loop.EventSource{Kind: loop.OnWebhook, What: "deploys"}}, 0},
		{
			Trigger{TriggerEvent, "loop:ci-watch=gave_up"},
			Schedule{Type: TriggerEvent, Event: loop.EventSource{Kind: loop.OnLoop, What: "ci-watch", Outcome: loop.OutcomeGaveUp}},
			0,
		},
		{Trigger{TriggerEvent, "cmd:test -f x"}, Schedule{Type: TriggerEvent, Event: loop.EventSource{Kind: loop.OnCommand, What: "test -f x"}}, 0},
	} {
		r, findings := rulesOf(func(s *Spec) { s.Trigger = c.trigger })
		if r.Trigger != c.want || Refused(findings) || len(findings) != c.notes {
			t.Errorf("%+v = %+v %v, want %+v and %d notes", c.trigger, r.Trigger, findings, c.want, c.notes)
		}
	}
}

func TestWhatFitsNoPhraseIsRefusedAtItsWord(t *testing.T) {
	set := map[string]func(*Spec, string){
		"giveUp": func(s *Spec, text string) { s.GiveUp = text }, "errorPolicy": func(s *Spec, text string) { s.ErrorPolicy = text },
		"humanGate": func(s *Spec, text string) { s.HumanGate = text }, "guardrails[0]": func(s *Spec, text string) { s.Guardrails = []string{text} },
		"stateSource": func(s *Spec, text string) { s.StateSource = text },
		"trigger.on":  func(s *Spec, text string) { s.Trigger = Trigger{TriggerSchedule, text} },
	}
	for _, c := range []struct{ path, before, from, rows string }{ // from is what begins with the word that is meant
		{"giveUp", "same ", "gates fail 3×", "same gate fails 3× with no diff"},
		{"giveUp", "", "when bored", "3 iterations without new findings"},
		{"giveUp", "same gate fails 3× with no ", "diffs", "same test 3×"},
		{"giveUp", "same gate fails 3× with no diff → ", "explode", "pause and report"},
		{"giveUp", "same gate fails 3× with no diff → pause and ", "rest", "pause and report"},
		{"giveUp", "same gate fails 3× with no diff → escalate ", "now", "escalate"},
		{"giveUp", "same gate fails 3× with no diff →", "", "escalate"},
		{"giveUp", "same gate fails 3× with", "", "same gate"},
		{"giveUp", "3 iterations ", "3 without new findings", "without new findings"},
		{"giveUp", "same gate ", "three times", "same gate"},
		{"errorPolicy", "retry ", "thrice, then stop", "retry 3×"},
		{"errorPolicy", "retry once with backoff, then ", "panic", "escalate"},
		{"errorPolicy", "retry once with backoff", "", "then pause + log"},
		{"errorPolicy", "pause + log, ", "then stop", "retry 3×"},
		{"errorPolicy", "retry ", "with backoff, then stop", "retry 3×"},
		{"errorPolicy", "retry, ", "then stop", "retry 3×"},
		{"errorPolicy", "pause and log, ", "then escalate", "after a retry then pause + log | then escalate"},
		{"giveUp", "", "bored", "; and after it, if you like, → escalate | → stop"},
		{"guardrails[0]", "edits limited to /a and", "", "a path is missing"},
		{"guardrails[0]", "edits limited to ", "/a\x01b", "control character"},
		{"guardrails[0]", "edits limited to ", "/a\x7f", "control character"},
		{"guardrails[0]", "edits limited to ", "/src/..", "without .."},
		{"humanGate", "open a ", "window", "open a PR"},
		{"humanGate", "open a PR, do not ", "push", "open a PR, do not merge"},
		{"humanGate", "land ", "at once", "land after approval"},
		{"guardrails[0]", "no ", "fun", "no force-push"},
		{"guardrails[0]", "no push, ", "no merge", "no merge"},
		{"guardrails[0]", "edits limited to", "", "edits limited to /src and /tests"},
		{"guardrails[0]", "note:", "", "note: be brief"},
		{"guardrails[0]", "", "", "no push"},
		{"guardrails[0]", "edits limited to /src and ", "/..", "without .."},
		{"guardrails[0]", "edits limited to ", "/", "name a directory"},
		{"guardrails[0]", "edits limited to /a, ", "**/*", "name a directory"},
		{"guardrails[0]", "edits limited to /src and ", "/te sts", "by a comma or by and"},
		{"guardrails[0]", "edits limited to ", "[", "glob"},
		{"guardrails[0]", "edits limited to /b, ", "/{a and /b", "glob"},
		{"guardrails[0]", "edits limited to ", "!src", "name what may"},
		{"guardrails[0]", "edits limited to /a,", ", /b", "a path is missing"},
		{"guardrails[0]", "edits limited to /a and ", "C:/x", "leaves the workspace"},
		{"guardrails[0]", "edits limited to ", `a\..\b`, "leaves the workspace"},
		{"guardrails[0]", "edits limited to ", "./", "name a directory"},
		{"guardrails[0]", "edits limited to /x, ", "/./**", "name a directory"},
		{"guardrails[0]", "edits limited to ", "/" + strings.Repeat("{a,b}", 7), "more than 64 paths"},
		{"guardrails[0]", "edits limited to ", "/" + strings.Repeat("x", 1024), "longer than 1024 bytes"},
		{"stateSource", "", "the weather", "queue: gh issue list"},
		{"stateSource", "", "", "test output"},
		{"stateSource", "", "`", "`go test ./...`"},
		{"stateSource", "", "``", "`go test ./...`"},
		{"stateSource", "", "`go test", "`go test ./...`"},
		{"stateSource", "queue:", "", "queue: gh issue list"},
		{"stateSource", "file: ", "../x", "below its top"},
		{"giveUp", "same gate fails ", "0×", "from 1 to 1000"},
		{"giveUp", "", "99999999999999999999 iterations without new findings", "from 1 to 1000"},
		{"errorPolicy", "retry ", "11 times, then stop", "from 1 to 10"},
		{"trigger.on", "", "0", "milliseconds"},
		{"trigger.on", "", "\x1b", "interval"},
		{"trigger.on", "", "a\tb\x1b[2J", "interval"},
		{"trigger.on", "", "30s", "shortest is 1m"},
		{"trigger.on", "", "0 0 31 2 *", "never"},
		{"trigger.on", "", "99999999999999999999", "milliseconds"},
	} {
		text := c.before + c.from
		_, findings := rulesOf(func(s *Spec) { set[c.path](s, text) })
		if c.path != "guardrails[0]" && c.path != "stateSource" && text == "" {
			t.Fatalf("%s: an empty text has a default", c.path)
		}
		if len(findings) != 1 || findings[0].Note || findings[0].Path != c.path || findings[0].Offset != len(c.before) || !strings.Contains(findings[0].Message, c.rows) {
			t.Errorf("%s %q: %+v, want one finding at %d with %q", c.path, text, findings, len(c.before), c.rows)
		}
		for _, f := range findings {
			if strings.ContainsAny(f.Message, "\n\t\x1b") {
				t.Errorf("%s %q: %q, want one line", c.path, text, f.Message)
			}
		}
	}
}

func TestAnEventThatIsNotInTheTableIsRefusedWithIt(t *testing.T) {
	for on, want := range map[string]string{"": "not an event", "full moon": "not an event", "mail:x": "ref:REF", "loop:x=sad": "gave_up", "file:[": "glob"} {
		_, findings := rulesOf(func(s *Spec) { s.Trigger = Trigger{TriggerEvent, on} })
		if len(findings) != 1 || findings[0].Path != "trigger.on" || !strings.Contains(findings[0].Message, want) {
			t.Errorf("%q: %v, want a finding with %q", on, findings, want)
		}
	}
	_, findings := rulesOf(func(s *Spec) { s.Trigger = Trigger{TriggerManual, "file:x"} })
	if len(findings) != 1 || findings[0].Path != "trigger.on" {
		t.Errorf("manual with on: %v, want a finding", findings)
	}
}

// TestEachRowIsReadAsItself makes a text of each row of the table and parses it.
func TestEachRowIsReadAsItself(t *testing.T) {
	for _, p := range Phrases {
		text := p.Example()
		m, ok := matchPhrase(p.Field, text, wordsOf(text), 0)
		if !ok || m.row.Text != p.Text || m.next != len(wordsOf(text)) {
			t.Errorf("%s: %q is read as %+v", p.Field, text, m)
		}
		if p.Meaning == "" || strings.HasSuffix(p.Meaning, ".") {
			t.Errorf("%s %q has the meaning %q", p.Field, p.Text, p.Meaning)
		}
	}
}

func TestEachFieldHasAtMostOneDefault(t *testing.T) {
	defaults := map[Field]int{}
	for _, p := range Phrases {
		if p.Default {
			defaults[p.Field]++
		}
	}
	want := map[Field]int{FieldGiveUp: 1, FieldConsequence: 1, FieldErrorEnd: 1, FieldHumanGate: 1}
	if diff := cmp.Diff(want, defaults); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestAnEmptyTextMeansTheDefault(t *testing.T) {
	s := complete()
	s.GiveUp, s.ErrorPolicy, s.HumanGate = "", " \n", ""
	r, findings := s.Rules()
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if want := (loop.GiveUpRule{Repeat: loop.RepeatGateAndTree, Times: 3, Then: loop.ThenEscalate}); r.GiveUp != want {
		t.Errorf("giveUp %+v, want %+v", r.GiveUp, want)
	}
	if want := (loop.ErrorPolicy{Retries: 1, Wait: backoff, Then: loop.PauseAndLog}); r.ErrorPolicy != want {
		t.Errorf("errorPolicy %+v, want %+v", r.ErrorPolicy, want)
	}
	if r.HumanGate.Gate != loop.HumanGateAccept {
		t.Errorf("humanGate %+v, want %s", r.HumanGate, loop.HumanGateAccept)
	}
	s = s.WithDefaults()
	want := []string{"same gate fails 3× with no diff → escalate", "retry once w/ backoff, then pause + log", "hand the result to a human"}
	if got := []string{s.GiveUp, s.ErrorPolicy, s.HumanGate}; !slices.Equal(got, want) {
		t.Errorf("the texts are %q, want %q", got, want)
	}
}

// complete is a spec that nothing is wrong with.
func complete() Spec {
	return Spec{
		AgentID: "fixer", Goal: "The tests pass.", LoopType: loop.Deterministic, Trigger: Trigger{Type: TriggerManual}, StateSource: "diff",
		Gates:      []loop.Gate{{Name: "tests_pass", Kind: loop.GateCommand, Check: "`go test ./...`"}},
		Guardrails: []string{"edits limited to /src and /tests"}, HumanGate: "open a PR, do not merge",
	}.WithDefaults()
}

func ExampleFinding_Render() {
	source := []byte("{\n  \"giveUp\": \"same gate fails 3× when bored\"\n}\n")
	doc, _ := Decode(source)
	_, findings := doc.Spec.Rules()
	for _, f := range doc.Locate(findings)[1:] {
		text, _, _ := strings.Cut(f.Render("spec.json", source), "; write one of")
		fmt.Println(text)
	}
	// Output:
	// spec.json:2:33: giveUp: 'when' in 'same gate fails 3× when bored' fits no phrase
}
