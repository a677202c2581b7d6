package loopspec

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// copied is a spec with lists of its own.
func copied(t *testing.T, s Spec) Spec {
	t.Helper()
	doc, findings := Decode(Encode(s))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return doc.Spec
}

// programs is a machine with a few of them, whose invariants may say only true.
func programs(names ...string) Machine {
	return Machine{
		Executable: func(word string) bool { return slices.Contains(names, word) },
		Compile: func(check string) (string, int) {
			text := GateText(check)
			if at := strings.Index(text, "?"); at >= 0 {
				return "? is unknown", at
			}
			return "", 0
		},
		IsCommand: func(check string) bool { return strings.Contains(check, "`tsc ") },
		Model: func(agent string) string {
			return map[string]string{"fixer": "maker-1", "twin": "Maker-1", "critic": "other"}[agent]
		},
	}
}

func TestACompleteSpecIsNotRefused(t *testing.T) {
	if findings := Validate(complete(), programs("go")); len(findings) > 0 {
		t.Errorf("%v, want no finding", findings)
	}
}

func TestASpecIsRefused(t *testing.T) {
	reviewer := loop.Gate{Name: "ui", Kind: loop.GateReviewer, Check: "It reads well."}
	reviewedBy := func(agent, model string) func(*Spec) {
		return func(s *Spec) {
			g := reviewer
			g.Reviewer = loop.Reviewer{Agent: agent, Model: model}
			s.Gates = append(s.Gates, g)
		}
	}
	check := func(kind loop.GateKind, text string) func(*Spec) {
		return func(s *Spec) { s.Gates[0].Kind, s.Gates[0].Check = kind, text }
	}
	for name, c := range map[string]struct {
		change func(*Spec)
		path   string
		words  string
	}{
		"no agent":                         {func(s *Spec) { s.AgentID = " " }, "agentId", "required"},
		"an agent of two words":            {func(s *Spec) { s.AgentID = "a b" }, "agentId", "white space"},
		"no goal":                          {func(s *Spec) { s.Goal = "\n" }, "goal", "required"},
		"no type":                          {func(s *Spec) { s.LoopType = "" }, "loopType", "required; there are: deterministic, nondeterministic"},
		"another type":                     {func(s *Spec) { s.LoopType = "non-deterministic" }, "loopType", "did you mean nondeterministic?"},
		"no trigger":                       {func(s *Spec) { s.Trigger = Trigger{} }, "trigger.type", "required; there are: manual, schedule, event"},
		"another trigger":                  {func(s *Spec) { s.Trigger.Type = "scheduled" }, "trigger.type", "did you mean schedule?"},
		"no source":                        {func(s *Spec) { s.StateSource = "" }, "stateSource", "empty; write one of: `go test ./...` | test output"},
		"another id":                       {func(s *Spec) { s.ID = "x" }, "id", "remove it"},
		"no iterations":                    {func(s *Spec) { s.Budget.MaxIterations = 0 }, "budget.maxIterations", "from 1 to 1000000"},
		"less than no tokens":              {func(s *Spec) { s.Budget.MaxTokens = -1 }, "budget.maxTokens", "from 1 to"},
		"no time":                          {func(s *Spec) { s.Budget.MaxWallClockMs = 0 }, "budget.maxWallClockMs", "from 1 to"},
		"a hundred years":                  {func(s *Spec) { s.Budget.MaxWallClockMs = 100 * 366 * 24 * 3600 * 1000 }, "budget.maxWallClockMs", "from 1 to"},
		"less than no items":               {func(s *Spec) { s.Budget.MaxItems = -1 }, "budget.maxItems", "from 1 to"},
		"a gate without a name":            {func(s *Spec) { s.Gates[0].Name = "" }, "gates[0].name", "not the name of a gate"},
		"a gate with an odd name":          {func(s *Spec) { s.Gates[0].Name = "tests pass" }, "gates[0].name", "not the name of a gate"},
		"a gate with a number first":       {func(s *Spec) { s.Gates[0].Name = "2nd" }, "gates[0].name", "a letter first"},
		"a gate with a long name":          {func(s *Spec) { s.Gates[0].Name = strings.Repeat("x", 65) }, "gates[0].name", "64 at most"},
		"a gate named as the agent is":     {func(s *Spec) { s.Gates[0].Name = "agent" }, "gates[0].name", "a check of its own"},
		"two gates of one name":            {func(s *Spec) { s.Gates = append(s.Gates, s.Gates[0]) }, "gates[1].name", "the name of another gate"},
		"no kind":                          {func(s *Spec) { s.Gates[0].Kind = "" }, "gates[0].kind", "required; there are: command, invariant, reviewer"},
		"another kind":                     {func(s *Spec) { s.Gates[0].Kind = "comand" }, "gates[0].kind", "did you mean command?"},
		"no check":                         {check(loop.GateCommand, ""), "gates[0].check", "required: a command"},
		"an empty command":                 {check(loop.GateCommand, "run ` `"), "gates[0].check", "required: a command"},
		"a sentence":                       {check(loop.GateCommand, "All tests must pass"), "gates[0].check", "'All' is not a program that can be run here; write a command in backticks"},
		"a sentence with an apostrophe":    {check(loop.GateCommand, "the user's tests pass"), "gates[0].check", "cannot be read by the shell"},
		"a sentence with if":               {check(loop.GateCommand, "if the tests pass"), "gates[0].check", "cannot be read by the shell"},
		"a program that is not there":      {check(loop.GateCommand, "Run `CI=1 npm test`"), "gates[0].check", "'npm' is not a program"},
		"a broken expression":              {check(loop.GateInvariant, "few: `diff.files ? 3`"), "gates[0].check", "? is unknown"},
		"no expression":                    {check(loop.GateInvariant, " "), "gates[0].check", "required: an expression"},
		"a reviewer without criteria":      {check(loop.GateReviewer, ""), "gates[0].check", "what the reviewer has to find"},
		"a reviewer of a command":          {func(s *Spec) { s.Gates[0].Reviewer.Agent = "critic" }, "gates[0].reviewer", "only a gate of the kind reviewer"},
		"the maker's model":                {reviewedBy("critic", "maker-1"), "gates[1].reviewer.model", "the model that does the work"},
		"the maker's model in other words": {reviewedBy("", " MAKER-1"), "gates[1].reviewer.model", "the model that does the work"},
		"an agent of the maker's model":    {reviewedBy("twin", ""), "gates[1].reviewer.agent", "'Maker-1' is the model that does the work"},
		"the maker":                        {reviewedBy("fixer", ""), "gates[1].reviewer.agent", "may not review it"},
		"test output without a command": {
			func(s *Spec) { s.StateSource = "test output"; s.Gates = []loop.Gate{reviewer} }, "stateSource", "first command gate",
		},
		"landing without merging": {
			func(s *Spec) { s.HumanGate = "land after approval"; s.Guardrails = append(s.Guardrails, "no merge") }, "humanGate", "'land after approval' contradicts the guardrail 'no merge'",
		},
		"merging without merging": {
			func(s *Spec) { s.HumanGate = "merge after approval"; s.Guardrails = append(s.Guardrails, "no merge") }, "humanGate", "contradicts",
		},
		"a pull request without a push": {func(s *Spec) { s.Guardrails = append(s.Guardrails, "no push") }, "humanGate", "contradicts the guardrail 'no push'"},
		"a pull request of nothing":     {func(s *Spec) { s.Guardrails = []string{"no deploy"} }, "humanGate", "nothing may be written"},
		"a branch without a branch": {
			func(s *Spec) {
				s.HumanGate = "propose a branch, do not merge"
				s.Guardrails = append(s.Guardrails, "prepare output, do not commit")
			}, "humanGate", "contradicts the guardrail 'prepare output, do not commit'",
		},
		"edits of a digest": {
			func(s *Spec) {
				s.HumanGate = ""
				s.Guardrails = append(s.Guardrails, "digest only, no outside notification")
			}, "guardrails", "contradicts",
		},
		"no role":                  {func(s *Spec) { s.Role = "" }, "role", "required"},
		"another role":             {func(s *Spec) { s.Role = "boss" }, "role", "there are: monitor, worker, coordinator, standalone"},
		"another concurrency":      {func(s *Spec) { s.Concurrency = "parallell" }, "concurrency", "did you mean parallel?"},
		"a parent that is no spec": {func(s *Spec) { s.ParentID, s.Role = "boss", RoleWorker }, "parentId", "not the id"},
		"its own parent":           {func(s *Spec) { s.ID, s.ParentID, s.Role = "lp_0000001", "lp_0000001", RoleWorker }, "parentId", "its own parent"},
		"a monitor with a parent":  {func(s *Spec) { s.ParentID, s.Role = "lp_0000001", RoleMonitor }, "role", "a spec with a parent is a worker"},
		"a schedule with a parent": {
			func(s *Spec) {
				s.ParentID, s.Role, s.Trigger = "lp_0000001", RoleWorker, Trigger{Type: TriggerSchedule}
			}, "trigger.type", "started by it",
		},
		"a worker with children":   {func(s *Spec) { s.Role, s.ChildIDs = RoleWorker, []string{"lp_0000001"} }, "childIds", "has no children"},
		"a child that is no spec":  {func(s *Spec) { s.Role, s.ChildIDs = RoleMonitor, []string{"lp_0000001", "x"} }, "childIds[1]", "not the id"},
		"a child twice":            {func(s *Spec) { s.Role, s.ChildIDs = RoleMonitor, []string{"lp_0000001", "lp_0000001"} }, "childIds[1]", "named twice"},
		"its own child":            {func(s *Spec) { s.Role, s.ID, s.ChildIDs = RoleMonitor, "lp_0000001", []string{"lp_0000001"} }, "childIds[0]", "its own child"},
		"made before 1970":         {func(s *Spec) { s.CreatedAt = -1 }, "createdAt", "before 1970"},
		"changed before it was":    {func(s *Spec) { s.CreatedAt, s.UpdatedAt = 5, 4 }, "updatedAt", "before createdAt"},
		"a NUL in the goal":        {func(s *Spec) { s.Goal = "a\x00" }, "goal", "NUL"},
		"a NUL in a check":         {func(s *Spec) { s.Gates[0].Check = "`go test \x00`" }, "gates[0].check", "NUL"},
		"a guardrail of bad UTF-8": {func(s *Spec) { s.Guardrails = append(s.Guardrails, "note: \xff") }, "guardrails[1]", "not UTF-8"},
		"too large":                {func(s *Spec) { s.MemoryWrites = strings.Repeat("x", MaxBytes) }, "", "more than the 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			s := complete()
			c.change(&s)
			var refused []Finding
			for _, f := range Validate(s, programs("go")) {
				if !f.Note {
					refused = append(refused, f)
				}
			}
			if len(refused) != 1 || refused[0].Path != c.path || !strings.Contains(refused[0].Message, c.words) {
				t.Errorf("%v, want one finding at %s with %q", refused, c.path, c.words)
			}
		})
	}
}

func TestWhatGatesMayBegin(t *testing.T) {
	for check, want := range map[string]bool{
		"`go test ./...`": true, "go test ./...": true, "The tests pass: `go test ./...`": true, "`CI=1 go test`": true,
		"`cd web && npm test`": true, "`test -z \"$(gofmt -l .)\"`": true, "`! grep -r TODO src`": true, "`(cd x; go vet)`": true, "`for d in a b; do go test ./$d; done`": true,
		"`$RUNNER test`": true, "`./check.sh`": true, "`if [ -f x ]; then go test; fi`": true, "`A=1`": true, "[ -f go.mod ]": true,
		"`./other.sh`": false, "Everything works": false, "`npm test`": false, "Please run `npm test` and `go test`": false, "`go test": false, "tests": false,
	} {
		s := complete()
		s.Gates[0].Check = check
		findings := Validate(s, programs("go", "./check.sh", "grep"))
		if got := !Refused(findings); got != want {
			t.Errorf("%s: %v, want allowed = %v", check, findings, want)
		}
		if Refused(Validate(s, Machine{})) && want {
			t.Errorf("%s: refused without a machine", check)
		}
	}
}

func TestAFindingInACheckPointsIntoIt(t *testing.T) {
	s := complete()
	s.Gates[0] = loop.Gate{Name: "few", Kind: loop.GateInvariant, Check: "few changes: `diff.files ? 3`"}
	findings := Validate(s, programs("go"))
	if len(findings) != 1 || s.Gates[0].Check[findings[0].Offset:] != "? 3`" {
		t.Errorf("%+v, want it at the question mark", findings)
	}
	s = complete()
	s.Gates[0].Check = "run: `npm test`"
	if findings = Validate(s, programs("go")); len(findings) != 1 || s.Gates[0].Check[findings[0].Offset:] != "npm test`" {
		t.Errorf("%+v, want it at the command", findings)
	}
}

func TestWhereAVerdictCanOnlyBePendingIsNoted(t *testing.T) {
	gates := map[string]loop.Gate{
		"command": {Name: "c", Kind: loop.GateCommand, Check: "true"}, "invariant": {Name: "i", Kind: loop.GateInvariant, Check: "true"},
		"reviewer": {Name: "r", Kind: loop.GateReviewer, Check: "good"},
	}
	for _, c := range []struct {
		loopType loop.Determinism
		gates    string
		noted    bool
	}{
		{loop.Deterministic, "", true},
		{loop.Deterministic, "reviewer", true},
		{loop.Deterministic, "command", false},
		{loop.Deterministic, "invariant", false},
		{loop.Deterministic, "reviewer invariant", false},
		{loop.Nondeterministic, "", true},
		{loop.Nondeterministic, "command invariant", true},
		{loop.Nondeterministic, "reviewer", false},
		{loop.Nondeterministic, "command reviewer", false},
	} {
		s := complete()
		s.LoopType, s.Gates = c.loopType, nil
		for name := range strings.FieldsSeq(c.gates) {
			s.Gates = append(s.Gates, gates[name])
		}
		findings := Validate(s, Machine{})
		if Refused(findings) || (len(findings) == 1 && findings[0].Path == "gates") != c.noted {
			t.Errorf("%s with %q: %v, want noted = %v and nothing refused", c.loopType, c.gates, findings, c.noted)
		}
	}
}

func TestANoteIsShownAsNotEnforced(t *testing.T) {
	s := complete()
	s.Guardrails = append(s.Guardrails, "note: be brief")
	want := []Finding{{Path: "guardrails[1]", Note: true, Message: "not enforced: the agent and the reviewer read it"}}
	if diff := cmp.Diff(want, Validate(s, programs("go"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if AsFault(want) != nil {
		t.Error("a note is a fault")
	}
}

func TestAReviewerOfAnotherModelIsAllowed(t *testing.T) {
	for _, r := range []loop.Reviewer{{}, {Agent: "critic"}, {Model: "other"}, {Agent: "fixer", Model: "other"}} {
		s := complete()
		s.Gates = append(s.Gates, loop.Gate{Name: "ui", Kind: loop.GateReviewer, Check: "good", Reviewer: r})
		if findings := Validate(s, programs("go")); len(findings) > 0 {
			t.Errorf("%+v: %v", r, findings)
		}
	}
}

func TestTheConfiguredCriticMayNotAskTheMakersModel(t *testing.T) {
	for critic, want := range map[string]bool{"maker-1": false, " MAKER-1 ": false, "other": true, "": true} {
		s := complete()
		s.Gates = append(s.Gates, loop.Gate{Name: "ui", Kind: loop.GateReviewer, Check: "good"})
		findings := Validate(s, Machine{Model: func(agent string) string {
			if agent == "" {
				return critic
			}
			return "maker-1"
		}})
		if Refused(findings) == want || !want && findings[0].Path != "gates[1].reviewer" {
			t.Errorf("critic %q: %v, want allowed = %v", critic, findings, want)
		}
	}
}

func TestADigestDoesNotLeaveAsAPullRequest(t *testing.T) {
	s := complete()
	s.Guardrails = []string{"digest only, no outside notification"}
	var all []string
	for _, f := range Validate(s, Machine{}) {
		all = append(all, f.String())
	}
	want := "humanGate: 'open a PR, do not merge' contradicts the guardrail 'digest only, no outside notification'; remove one of them"
	if len(all) != 2 || all[0] != want || !strings.Contains(all[1], "nothing may be written") {
		t.Errorf("%q, want %q and that nothing may be written", all, want)
	}
}

func TestTheLongestNameOfAGate(t *testing.T) {
	s := complete()
	s.Gates[0].Name = "A" + strings.Repeat("-_9z", 15) + "xyz"
	if findings := Validate(s, Machine{}); len(s.Gates[0].Name) != 64 || len(findings) > 0 {
		t.Errorf("a name of %d: %v", len(s.Gates[0].Name), findings)
	}
}

func TestListsAreNeverAbsent(t *testing.T) {
	if s := (Spec{}).WithDefaults(); s.Gates == nil || s.Guardrails == nil {
		t.Errorf("gates %v and guardrails %v, want empty lists", s.Gates, s.Guardrails)
	}
}

func TestTheDefaultBudget(t *testing.T) {
	if got, want := (Spec{}).WithDefaults().Budget, (Budget{MaxIterations: 8, MaxTokens: 400_000, MaxWallClockMs: 2_700_000}); got != want {
		t.Errorf("it is %+v, want %+v", got, want)
	}
	own := Budget{1, 2, 3, 4}
	if got := (Spec{Budget: own}).WithDefaults().Budget; got != own {
		t.Errorf("%+v became %+v", own, got)
	}
}

func TestDefaultsAreFilledInOnce(t *testing.T) {
	once := complete()
	if diff := cmp.Diff(once, once.WithDefaults()); diff != "" {
		t.Errorf("(-once +twice):\n%s", diff)
	}
}

func TestASpecOfAnotherProgramIsAdopted(t *testing.T) {
	s := complete()
	s.Gates = append(
		s.Gates, loop.Gate{Name: "typecheck", Kind: loop.GateInvariant, Check: "types hold: `tsc --noEmit`"},
		loop.Gate{Name: "few", Kind: loop.GateInvariant, Check: "diff.files <= 3"},
	)
	s.Guardrails = []string{"edits limited to /src", "be careful with money", " ", "no push", "edits limited to everything and /.."}
	s.HumanGate = ""
	before := copied(t, s)
	got, notes := Adopt(s, programs("go", "tsc"))
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("the spec itself was changed:\n%s", diff)
	}
	if got.Gates[1].Kind != loop.GateCommand || got.Gates[2].Kind != loop.GateInvariant {
		t.Errorf("gates %+v, want the command adopted as one", got.Gates)
	}
	want := []string{"edits limited to /src", "note: be careful with money", "no push", "note: edits limited to everything and /.."}
	if !slices.Equal(got.Guardrails, want) {
		t.Errorf("guardrails %q, want %q", got.Guardrails, want)
	}
	var paths []string
	for _, n := range notes {
		if !n.Note {
			t.Errorf("%+v refuses", n)
		}
		paths = append(paths, n.Path)
	}
	if want := []string{"gates[1].kind", "guardrails[1]", "guardrails[4]"}; !slices.Equal(paths, want) {
		t.Errorf("notes at %q, want %q", paths, want)
	}
	if findings := Validate(got, programs("go", "tsc")); Refused(findings) {
		t.Errorf("what was adopted is refused: %v", findings)
	}
	if again, notes := Adopt(got, programs("go", "tsc")); len(notes) > 0 || !cmp.Equal(again, got) {
		t.Errorf("adopting twice changes it: %v", notes)
	}
}

func TestEachTextIsSearchedForWhatADatabaseCannotKeep(t *testing.T) {
	s := coordinator()
	s.ParentID, s.ChildIDs = "", nil
	s.Gates = append(s.Gates, loop.Gate{Name: "ui", Kind: loop.GateReviewer, Check: "good", Reviewer: loop.Reviewer{Agent: "critic", Model: "other"}})
	for path, text := range map[string]*string{
		"id": &s.ID, "agentId": &s.AgentID, "goal": &s.Goal, "trigger.on": &s.Trigger.On, "stateSource": &s.StateSource, "giveUp": &s.GiveUp,
		"errorPolicy": &s.ErrorPolicy, "humanGate": &s.HumanGate, "memoryWrites": &s.MemoryWrites, "parentId": &s.ParentID, "boardEntry": &s.BoardEntry,
		"guardrails[0]": &s.Guardrails[0], "gates[0].check": &s.Gates[0].Check, "gates[1].reviewer.agent": &s.Gates[1].Reviewer.Agent,
		"gates[1].reviewer.model": &s.Gates[1].Reviewer.Model,
	} {
		before := *text
		*text += "\x00"
		said := false
		for _, f := range Validate(s, Machine{}) {
			said = said || f.Path == path && !f.Note && strings.Contains(f.Message, "NUL")
		}
		if !said {
			t.Errorf("a NUL in %s is not refused", path)
		}
		*text = before
	}
	if findings := Validate(s, Machine{}); Refused(findings) {
		t.Errorf("without one: %v", findings)
	}
}

func TestTheBoundsOfABudget(t *testing.T) {
	const tenYears = 315_360_000_000
	for _, c := range []struct {
		b    Budget
		want string
	}{
		{Budget{1, 1, 1, 0}, ""},
		{Budget{1_000_000, mostExact, tenYears, 1_000_000}, ""},
		{Budget{0, 1, 1, 1}, "budget.maxIterations"},
		{Budget{1_000_001, 1, 1, 1}, "budget.maxIterations"},
		{Budget{1, 0, 1, 1}, "budget.maxTokens"},
		{Budget{1, mostExact + 1, 1, 1}, "budget.maxTokens"},
		{Budget{1, 1, 0, 1}, "budget.maxWallClockMs"},
		{Budget{1, 1, tenYears + 1, 1}, "budget.maxWallClockMs"},
		{Budget{1, 1, 1, -1}, "budget.maxItems"},
		{Budget{1, 1, 1, 1_000_001}, "budget.maxItems"},
	} {
		s := complete()
		s.Budget = c.b
		var paths []string
		for _, f := range Validate(s, Machine{}) {
			paths = append(paths, f.Path)
		}
		if got := strings.Join(paths, " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.b, got, c.want)
		}
	}
}

func TestRulesThatDoNotContradictEachOtherAreAllowed(t *testing.T) {
	const edits = "edits limited to /src"
	for _, texts := range [][]string{
		{"land after approval", edits},
		{"land after approval", edits, "no push", "no force-push", "no deploy", "no network"},
		{"open a PR, do not merge", edits, "no merge", "no force-push", "no network"},
		{"propose a branch, do not merge", edits, "no merge", "no push"},
		{"hand the result to a human", edits, "prepare output, do not commit", "no merge", "no push"},
		{"hand a digest to a human", "digest only, no outside notification"},
		{"hand the result to a human"},
	} {
		s := complete()
		s.HumanGate, s.Guardrails = texts[0], texts[1:]
		if findings := Validate(s, Machine{}); len(findings) > 0 {
			t.Errorf("%q: %v", texts, findings)
		}
	}
}

func TestASpecMayBeAsLargeAsADocument(t *testing.T) {
	s := complete()
	s.MemoryWrites = strings.Repeat("x", MaxBytes-len(Encode(s)))
	if findings := Validate(s, Machine{}); len(findings) > 0 {
		t.Errorf("%d bytes: %v", len(Encode(s)), findings)
	}
	if _, findings := Decode(Encode(s)); len(findings) > 0 {
		t.Errorf("%d bytes are not read: %v", len(Encode(s)), findings)
	}
}
