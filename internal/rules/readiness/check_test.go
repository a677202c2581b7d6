package readiness

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at is a value in some place of its own.
func at(text string, line int) Value { return Value{Text: text, Line: line, Column: 7} }

// baseA is a complete L1 definition, baseB a complete L2 one.
func baseA() Config {
	return Config{
		Name: at("keep-green", 1), Pattern: at("ci-watch", 2), Tier: at("L1", 3), PermissionMode: at("dontAsk", 4),
		Cadence: at("10m", 5), Goal: at("Detect red CI; never merge", 6), Escalation: at("anything near deploy", 7),
		BudgetTokens: at("200000", 8), KillSwitch: at(".loops/keep-green/PAUSED exists", 9),
		Scope: []Value{at("src/**", 11)}, ScopeAt: at("", 10),
	}
}

func baseB() Config {
	c := baseA()
	c.Tier = at("L2", 3)
	c.Verify, c.Guard, c.Worktree, c.LandVia = at("go test ./...", 12), at("go vet ./...", 13), at("true", 14), at("human", 15)
	return c
}

func baseL3() Config {
	c := baseB()
	c.Tier, c.PermissionMode = at("L3", 3), at("bypassPermissions", 4)
	c.Escalation = at("what does not fit the Container", 7)
	return c
}

func TestTheExamplesOfTheFormatScoreAsPublished(t *testing.T) {
	for name, c := range map[string]struct {
		config                  Config
		score, errors, warnings int
		ready, strict           bool
	}{
		"A": {baseA(), 100, 0, 0, true, true},
		"A with permission_mode auto": {func() Config {
			c := baseA()
			c.PermissionMode.Text = "auto"
			return c
		}(), 90, 0, 1, true, false},
		"A with the single scope item *": {func() Config {
			c := baseA()
			c.Scope[0].Text = "*"
			return c
		}(), 90, 1, 0, false, false},
		"B": {baseB(), 100, 0, 0, true, true},
		"B without verify, guard, worktree, land_via": {func() Config {
			c := baseB()
			c.Verify, c.Guard, c.Worktree, c.LandVia = Value{}, Value{}, Value{}, Value{}
			return c
		}(), 73, 3, 1, false, false},
		"B at L3 with bypassPermissions, no word about isolation": {func() Config {
			c := baseB()
			c.Tier.Text, c.PermissionMode.Text = "L3", "bypassPermissions"
			return c
		}(), 93, 0, 1, true, false},
		"only tier L1":       {Config{Tier: at("L1", 1)}, 9, 6, 4, false, false},
		"L3 with everything": {baseL3(), 100, 0, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := Check(c.config)
			if v.Score() != c.score || v.Errors != c.errors || v.Warnings != c.warnings {
				t.Errorf("score %d, %d errors, %d warnings, want %d, %d, %d: %+v",
					v.Score(), v.Errors, v.Warnings, c.score, c.errors, c.warnings, v.Findings)
			}
			if ready, strict := v.Ready(LeastScore, false), v.Ready(LeastScore, true); ready != c.ready || strict != c.strict {
				t.Errorf("ready %v, strictly %v, want %v and %v", ready, strict, c.ready, c.strict)
			}
		})
	}
}

func TestEachCheckFailsAloneWithItsSeverityAndItsPlace(t *testing.T) {
	set := func(c Config, change func(*Config)) Config {
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		config   Config
		number   int // of the check that fails
		severity string
		message  string
		line     int // of the value, 0 for a key that is missing
	}{
		"1: a name to be filled in": {
			set(baseA(), func(c *Config) { c.Name.Text = "<fill: name>" }), 1, "error",
			"name: missing or placeholder; write the name of the loop's directory", 1,
		},
		"2: no pattern": {
			set(baseA(), func(c *Config) { c.Pattern = Value{} }), 2, "warning",
			"pattern: missing or placeholder; write a pattern of the catalogue or custom", 0,
		},
		"2: a pattern in brackets": {
			set(baseA(), func(c *Config) { c.Pattern.Text = "<ci-wach>" }), 2, "warning",
			"pattern: missing or placeholder; write a pattern of the catalogue or custom; did you mean ci-watch?", 2,
		},
		"3: a tier that is none": {
			set(baseA(), func(c *Config) { c.Tier.Text = "L9" }), 3, "error",
			"tier: must be L1, L2 or L3, and is 'L9'", 3,
		},
		"4: an empty cadence": {
			set(baseA(), func(c *Config) { c.Cadence.Text = "" }), 4, "warning",
			"cadence: missing or placeholder; write how often it fires, like 1h or 0 9 * * 1-5", 5,
		},
		"5: no goal": {
			set(baseA(), func(c *Config) { c.Goal = Value{} }), 5, "error",
			"goal: missing or placeholder; write what the loop does and what it must not do", 0,
		},
		"6: an escalation to be filled in": {
			set(baseA(), func(c *Config) { c.Escalation.Text = "‹who›" }), 6, "error",
			"escalation: undefined or placeholder; write what is handed to a human", 7,
		},
		"7: no kill switch": {
			set(baseA(), func(c *Config) { c.KillSwitch = Value{} }), 7, "error",
			"kill_switch: undefined or placeholder; write the stop signal, like .loops/NAME/PAUSED exists", 0,
		},
		"8: no budget": {
			set(baseA(), func(c *Config) { c.BudgetTokens = Value{} }), 8, "warning",
			"budget_tokens: missing or non-numeric; write the most output tokens of one run, like 200000", 0,
		},
		"8: a budget with an underscore": {
			set(baseA(), func(c *Config) { c.BudgetTokens.Text = "200_000" }), 8, "warning",
			"budget_tokens: missing or non-numeric ('200_000'); write digits only, like 200000", 8,
		},
		"9: no scope": {
			set(baseA(), func(c *Config) { c.Scope, c.ScopeAt = nil, Value{} }), 9, "error",
			"scope: missing; write the globs that the loop may touch, like src/**", 0,
		},
		"9: an empty scope": {
			set(baseA(), func(c *Config) { c.Scope = nil }), 9, "error",
			"scope: missing; write the globs that the loop may touch, like src/**", 10,
		},
		"9: a placeholder is the first bad item": {
			set(baseA(), func(c *Config) { c.Scope = []Value{at("a", 11), at("<b>", 12), at("*", 13)} }), 9, "error",
			"scope: unfilled placeholder ('<b>'); write a glob like src/**", 12,
		},
		"9: the whole tree is the first bad item": {
			set(baseA(), func(c *Config) { c.Scope = []Value{at("./", 11), at("<b>", 12)} }), 9, "error",
			"scope: unbounded ('./'); name a directory or a kind of file, like src/** or **/*.go", 11,
		},
		"11: a mode of another tier": {
			set(baseA(), func(c *Config) { c.PermissionMode.Text = "auto" }), 11, "warning",
			"permission_mode 'auto' does not fit tier L1; write plan or dontAsk", 4,
		},
		"12: no verify": {
			set(baseB(), func(c *Config) { c.Verify = Value{} }), 12, "error",
			"verify: no gate command; write the command that judges the work, like go test ./...", 0,
		},
		"13: a guard to be filled in": {
			set(baseB(), func(c *Config) { c.Guard.Text = "<fill: command>" }), 13, "error",
			"guard: no must-always-pass command; write the full suite or the type check", 13,
		},
		"14: a worktree of yes": {
			set(baseB(), func(c *Config) { c.Worktree.Text = "yes" }), 14, "error",
			"worktree: must be true at L2, and is 'yes'", 14,
		},
		"14: no worktree": {
			set(baseL3(), func(c *Config) { c.Worktree = Value{} }), 14, "error",
			"worktree: must be true at L3; it is missing", 0,
		},
		"15: nobody lands": {
			set(baseB(), func(c *Config) { c.LandVia.Text = " " }), 15, "warning",
			"land_via: undefined; write who lands what wins: human, pr or a name", 15,
		},
		"16: no isolation": {
			set(baseL3(), func(c *Config) { c.Escalation.Text = "anything" }), 16, "warning",
			"L3 declares no isolation; say in escalation that it runs only in a container or a sandbox", 7,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := Check(c.config)
			if len(v.Findings) != 1 {
				t.Fatalf("findings %+v, want one", v.Findings)
			}
			key, _, _ := strings.Cut(strings.Replace(c.message, "L3", "escalation", 1), " ")
			want := Finding{Severity: c.severity, Key: strings.Trim(key, ":"), Message: c.message, Line: c.line, Column: 7}
			if c.line == 0 {
				want.Line, want.Column = 1, 1
			}
			if diff := cmp.Diff(want, v.Findings[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if row := checks[c.number-1]; row.number != c.number || row.severity != c.severity {
				t.Errorf("row %d is check %d, %s", c.number, row.number, row.severity)
			}
			if v.Passed != v.Total-1 {
				t.Errorf("%d of %d passed, want all but one", v.Passed, v.Total)
			}
		})
	}
}

func TestTierAndModeSayWhatWasMeant(t *testing.T) {
	for name, c := range map[string]struct {
		tier, mode string
		want       []string
	}{
		"a lower-case tier": {"l2", "dontAsk", []string{"tier: must be L1, L2 or L3, and is 'l2'; did you mean L2?"}},
		"a tier that is not": {"L4", "dontAsk", []string{
			"tier: must be L1, L2 or L3, and is 'L4'",
		}},
		"no tier": {"", "dontAsk", []string{"tier: must be L1, L2 or L3; it is missing"}},
		"a lower-case mode": {"L1", "acceptedits", []string{
			"permission_mode: invalid ('acceptedits'); write one of plan, dontAsk, auto, acceptEdits, bypassPermissions; did you mean acceptEdits?",
			"permission_mode 'acceptedits' does not fit tier L1; write plan or dontAsk",
		}},
		"an interactive mode": {"L3", "default", []string{
			"permission_mode: invalid ('default'); write one of plan, dontAsk, auto, acceptEdits, bypassPermissions",
			"permission_mode 'default' does not fit tier L3; write bypassPermissions",
		}},
		"no mode": {"L2", "", []string{
			"permission_mode: missing; write one of plan, dontAsk, auto, acceptEdits, bypassPermissions",
			"permission_mode '' does not fit tier L2; write dontAsk or auto or acceptEdits",
		}},
		"neither": {"?", "?", []string{
			"tier: must be L1, L2 or L3, and is '?'",
			"permission_mode: invalid ('?'); write one of plan, dontAsk, auto, acceptEdits, bypassPermissions",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config := baseL3()
			config.Tier.Text, config.PermissionMode.Text = c.tier, c.mode
			var got []string
			for _, f := range Check(config).Findings {
				got = append(got, f.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheShortestWaysToWriteEverythingAreUnbounded(t *testing.T) {
	for _, item := range []string{"*", "**", ".", "./", "/", ""} {
		if problem := ScopeProblem(item); !strings.HasPrefix(problem, fmt.Sprintf("unbounded ('%s') ", item)) &&
			!strings.HasPrefix(problem, fmt.Sprintf("unbounded ('%s');", item)) {
			t.Errorf("ScopeProblem(%q) = %q, want unbounded", item, problem)
		}
	}
	for _, item := range []string{"**/*", "/**", "./**", "*.go", "src", " ", "p95 < 3"} {
		if problem := ScopeProblem(item); problem != "" {
			t.Errorf("ScopeProblem(%q) = %q, want nothing", item, problem)
		}
	}
}

func TestACadenceThatCannotFireIsAnErrorBesideTheScore(t *testing.T) {
	c := baseA()
	c.CadenceProblem = "never\nfires"
	v := Check(c)
	want := []Finding{{Severity: "error", Key: "cadence", Message: "cadence: never\ufffdfires", Line: 5, Column: 7}}
	if diff := cmp.Diff(want, v.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if v.Score() != 100 || v.Total != 11 || v.Errors != 1 || v.Ready(0, false) {
		t.Errorf("score %d of %d checks, %d errors, ready %v; want 100 of 11, 1, not ready", v.Score(), v.Total, v.Errors, v.Ready(0, false))
	}
	c.Cadence.Text = ""
	if v := Check(c); v.Errors != 0 || v.Warnings != 1 {
		t.Errorf("an empty cadence has %+v, want one warning", v.Findings)
	}
}

func TestTheTierIsShownAsWritten(t *testing.T) {
	for text, want := range map[string]string{"L1": "L1", "l9": "l9", "": "unknown", " ": " "} {
		if v := Check(Config{Tier: Value{Text: text}}); v.Tier != want {
			t.Errorf("tier %q is %q, want %q", text, v.Tier, want)
		}
	}
}

func TestAVerdictOfNothingIsReadyForNothing(t *testing.T) {
	var v Verdict
	if v.Score() != 0 || v.Ready(1, false) || !v.Ready(0, true) {
		t.Errorf("score %d, ready %v and %v", v.Score(), v.Ready(1, false), v.Ready(0, true))
	}
}

func TestOnlyOwnKeysAndStrictlyUnknownOnesBlock(t *testing.T) {
	for kind, want := range map[Kind][2]bool{
		KindCheck: {}, KindOwn: {true, true}, KindUnknown: {false, true}, KindNote: {},
	} {
		if got := [2]bool{kind.Blocks(false), kind.Blocks(true)}; got != want {
			t.Errorf("kind %d blocks %v, want %v", kind, got, want)
		}
	}
}

func TestNearestIsTheOneThatWasMeant(t *testing.T) {
	modes := PermissionModes()
	for text, want := range map[string]string{
		"acceptedits": "acceptEdits", "dont_ask": "dontAsk", "don't ask": "dontAsk", "bypassPermission": "bypassPermissions",
		"dnotAsk": "dontAsk", "Plan": "plan", "atuo": "auto", "plane": "plan", "default": "", "": "", "ask": "", "‹›": "",
	} {
		if got := NearestName(text, modes); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", text, got, want)
		}
	}
	if got := NearestName("word", []string{"ward", "wood"}); got != "" {
		t.Errorf("Nearest of two = %q, want nothing", got)
	}
	if got := NearestName(strings.Repeat("a", 1<<20), modes); got != "" {
		t.Errorf("Nearest of a megabyte = %q, want nothing", got)
	}
}

// starts are the beginnings that a message about each key may have.
var starts = regexp.MustCompile(`^(name: missing or placeholder|pattern: missing|tier: must be |cadence: |` +
	`goal: missing or placeholder|escalation: undefined|kill_switch: undefined|budget_tokens: missing or non-numeric|` +
	`scope: (missing|unfilled placeholder \('|unbounded \(')|permission_mode: (missing|invalid \(')|` +
	`verify: no gate command|guard: no must-always-pass command|worktree: must be true|land_via: undefined|` +
	`permission_mode '|L3 declares no isolation)`)

func TestTheChecksAreNumberedInOrder(t *testing.T) {
	for i, check := range checks {
		if check.number != i+1 || !slices.Contains([]string{SeverityError, SeverityWarning}, check.severity) {
			t.Errorf("row %d is check %d, %s", i+1, check.number, check.severity)
		}
	}
	if len(checks) != 16 {
		t.Errorf("%d checks, want 16", len(checks))
	}
}

func TestAKeyThatNeedNotBeThereIsJudgedOnlyWhereItIs(t *testing.T) {
	c := baseB()
	c.Verify, c.Guard, c.LandVia, c.Cadence = Value{}, Value{}, Value{}, Value{}
	if v := Check(c); v.Passed != v.Total-4 || v.Errors != 2 {
		t.Errorf("without them: %d of %d, %v", v.Passed, v.Total, v.Findings)
	}
	c.Optional = []string{"verify", "guard", "land_via", "cadence"}
	if v := Check(c); v.Total != Check(baseB()).Total-4 || v.Score() != 100 || len(v.Findings) > 0 {
		t.Errorf("as optional ones: %d of %d, %v", v.Passed, v.Total, v.Findings)
	}
}
