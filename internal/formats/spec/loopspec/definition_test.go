package loopspec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

func TestASpecIsADefinitionAndTheTermsThatItCannotHold(t *testing.T) {
	s := complete()
	s.StateSource = "test output"
	s.Gates = append([]loop.Gate{{Name: "ui", Kind: loop.GateReviewer, Check: "good"}}, s.Gates...)
	s.Budget.MaxItems, s.Role, s.BoardEntry = 4, RoleCoordinator, "b7"
	s.Guardrails = append(s.Guardrails, "no destructive actions", "no deploy", "note: be brief")
	d, terms := s.Definition("fix-tests")
	want := loop.Definition{
		Name: "fix-tests", Protocol: loop.ProtocolSpec, Pattern: "custom", Tier: loop.TierAssisted, Agent: "fixer", Goal: "The tests pass.",
		Scope: []string{"src/**", "tests/**"}, Sense: "go test ./...", HumanGate: loop.HumanGateDecide, LandVia: "pr",
		Gates:    []loop.Gate{s.Gates[0], {Name: "tests_pass", Kind: loop.GateCommand, Check: "go test ./..."}},
		LoopType: loop.Deterministic, MaxIterations: 8, MaxItems: 4, MaxWallClock: 45 * time.Minute,
		GiveUp: []loop.GiveUpRule{
			{Repeat: loop.RepeatGateAndTree, Times: 3, Then: loop.ThenEscalate}, {Repeat: loop.RepeatTree, Times: 3, Then: loop.ThenEscalate},
		},
		ErrorPolicy: &loop.ErrorPolicy{Retries: 1, Wait: 1500 * time.Millisecond, Then: loop.PauseAndLog},
		Life:        &loop.Life{Iterations: 8, Tokens: 400_000, Wall: 45 * time.Minute}, Denies: []loop.Denial{loop.DenyDeploy, loop.DenyDestructive}, Asks: true,
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	rest := Terms{StateSource: StateSource{Kind: SenseTestOutput}, Notes: []string{"be brief"}}
	if diff := cmp.Diff(rest, terms); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
}

func TestTheDefinitionOfEachText(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		holds  func(loop.Definition) bool
	}{
		"edits make it L2":         {func(*Spec) {}, func(d loop.Definition) bool { return d.Tier == loop.TierAssisted }},
		"without edits it reports": {func(s *Spec) { s.Guardrails = []string{"no push"} }, func(d loop.Definition) bool { return d.Tier == loop.TierReport && d.Scope == nil }},
		"a digest reports":         {func(s *Spec) { s.Guardrails = []string{"digest only, no outside notification"} }, func(d loop.Definition) bool { return d.Tier == loop.TierReport }},
		"a digest reports, always": {func(s *Spec) { s.Guardrails = append(s.Guardrails, "digest only, no outside notification") }, func(d loop.Definition) bool { return d.Tier == loop.TierReport }},
		"output may be written":    {func(s *Spec) { s.Guardrails = append(s.Guardrails, "prepare output, do not commit") }, func(d loop.Definition) bool { return d.Tier == loop.TierAssisted }},
		"accepting lands nothing":  {func(s *Spec) { s.HumanGate = "" }, func(d loop.Definition) bool { return d.LandVia == "" && d.HumanGate == loop.HumanGateAccept }},
		"a branch lands nothing":   {func(s *Spec) { s.HumanGate = "propose, do not commit" }, func(d loop.Definition) bool { return d.LandVia == "" && d.HumanGate == loop.HumanGateKeep }},
		"a pull request":           {func(*Spec) {}, func(d loop.Definition) bool { return d.LandVia == "pr" }},
		"landing":                  {func(s *Spec) { s.HumanGate = "land after approval" }, func(d loop.Definition) bool { return d.LandVia == "human" && d.HumanGate == loop.HumanGateDecide }},
		"a diff needs no command":  {func(*Spec) {}, func(d loop.Definition) bool { return d.Sense == "" }},
		"a command":                {func(s *Spec) { s.StateSource = "`ls -l`" }, func(d loop.Definition) bool { return d.Sense == "ls -l" }},
		"a queue":                  {func(s *Spec) { s.StateSource = "queue: ls todo" }, func(d loop.Definition) bool { return d.Sense == "ls todo" }},
		"test output":              {func(s *Spec) { s.StateSource = "test output" }, func(d loop.Definition) bool { return d.Sense == "go test ./..." }},
		"a schedule":               {func(s *Spec) { s.Trigger = Trigger{TriggerSchedule, "3600000"} }, func(d loop.Definition) bool { return d.Cadence == "60m" && d.On == nil }},
		"an event":                 {func(s *Spec) { s.Trigger = Trigger{TriggerEvent, "loop:x=done"} }, func(d loop.Definition) bool { return d.Cadence == "" && strings.Join(d.On, " ") == "loop:x=done" }},
		"the same gate and no diff": {func(s *Spec) { s.GiveUp = "same gate fails 5× with no diff" }, func(d loop.Definition) bool {
			return d.GiveUp[0].Repeat == loop.RepeatGateAndTree && d.GiveUp[1].Repeat == loop.RepeatTree && d.GiveUp[1].Times == 5
		}},
		"the same test": {func(s *Spec) { s.GiveUp = "same test 5× → stop" }, func(d loop.Definition) bool {
			return d.GiveUp[0].Repeat == loop.RepeatTest && d.GiveUp[1].Repeat == loop.RepeatTree && d.GiveUp[1].Then == loop.ThenStop
		}},
		"findings have no trees": {func(s *Spec) { s.GiveUp = "2 iterations without new findings → pause + report" }, func(d loop.Definition) bool {
			return len(d.GiveUp) == 1 && d.GiveUp[0].Report && d.GiveUp[0].Times == 2
		}},
		"gates are bare commands": {func(s *Spec) { s.Gates[0].Check = "Green: `make check`" }, func(d loop.Definition) bool {
			return d.Gates[0].Check == "make check" && d.LoopType == loop.Deterministic
		}},
		"the budget": {func(s *Spec) { s.Budget = Budget{2, 3, 4000, 5} }, func(d loop.Definition) bool {
			return d.MaxIterations == 2 && d.MaxWallClock == 4*time.Second && d.MaxItems == 5
		}},
		"tokens of all kinds differ": {func(s *Spec) { s.Budget.MaxTokens = 7 }, func(d loop.Definition) bool { return d.BudgetTokens == 0 }},
	} {
		s := complete()
		c.change(&s)
		if d, _ := s.Definition("x"); !c.holds(d) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestMakingADefinitionLeavesItsSpecAsItWas(t *testing.T) {
	s := complete()
	before := copied(t, s)
	d, _ := s.Definition("x")
	d.Gates[0].Name, d.Scope[0] = "other", "other"
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestADefinitionHasTheDefaultsOfItsSpec(t *testing.T) {
	s := complete()
	s.Budget, s.GiveUp, s.HumanGate, s.Role = Budget{}, "", "", ""
	d, _ := s.Definition("x")
	if d.MaxIterations != 8 || d.MaxWallClock != 45*time.Minute || d.GiveUp[0].Times != 3 || d.Life.Tokens != 400_000 {
		t.Errorf("%+v", d)
	}
}

func TestWhatAGuardrailNamesIsWhatThePolicyAllows(t *testing.T) {
	s := complete()
	s.Guardrails = []string{"edits limited to /src, /docs/README.md and **/*.css"}
	d, _ := s.Definition("x")
	scope, err := policy.NewScope(d.Scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"src/a.go": true, "src/b/c.go": true, "docs/README.md": true, "web/site/a.css": true, "docs/other.md": false, "other/a.go": false, "srcs/a.go": false,
	} {
		if got := scope.Judge(path); got.Allowed != want {
			t.Errorf("%s: %+v, want allowed = %v", path, got, want)
		}
	}
}

func TestEveryScheduleIsACadence(t *testing.T) {
	for _, on := range []string{"", "1", "60000", "300000", "86400000", "90061000", "1h", "@daily", "H * * * *"} {
		s := complete()
		s.Trigger = Trigger{TriggerSchedule, on}
		d, _ := s.Definition("x")
		if c, err := schedule.Parse(d.Cadence); err != nil || c.Next(noon, time.UTC).IsZero() {
			t.Errorf("%q is the cadence %q: %v", on, d.Cadence, err)
		}
	}
}
