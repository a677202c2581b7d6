package definition

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

func TestTheConfigHasEveryKeyOfTheFormatInItsPlace(t *testing.T) {
	text, want := "", map[string]readiness.Value{}
	for i, key := range seedKeys {
		text += key + ": text of " + key + "\n"
		want[key] = readiness.Value{Text: "text of " + key, Line: i + 1, Column: len(key) + 3}
	}
	c := parse(t, text).Config()
	got := map[string]readiness.Value{
		"name": c.Name, "pattern": c.Pattern, "tier": c.Tier, "cadence": c.Cadence, "goal": c.Goal, "verify": c.Verify,
		"guard": c.Guard, "permission_mode": c.PermissionMode, "worktree": c.Worktree, "escalation": c.Escalation,
		"budget_tokens": c.BudgetTokens, "kill_switch": c.KillSwitch, "land_via": c.LandVia, "scope": c.ScopeAt,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]readiness.Value{want["scope"]}, c.Scope); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
}

func TestTheCadenceProblemIsThatOfTheSchedule(t *testing.T) {
	for cadence, want := range map[string]string{
		"10m": "", "H 9 * * 1-5": "", "": "", "<fill: cadence>": "", "' '": "",
		"0 0 31 2 *": "never fires", "sometimes": "interval", "* * * *": "write five",
	} {
		got := parse(t, "name: x\ncadence: "+cadence+"\n").Config().CadenceProblem
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("cadence %q has the problem %q, want %q", cadence, got, want)
		}
	}
}

func TestWhatLiesOutsideTheScoreSaysWhatItChanges(t *testing.T) {
	const (
		note, own, unknown = readiness.KindNote, readiness.KindOwn, readiness.KindUnknown
	)
	for name, c := range map[string]struct {
		config, key, value string
		score              int
		severity           string
		kind               readiness.Kind
		message            string
	}{
		"a bad value of an own key":            {configA, "max_items", " many", 100, "error", own, "max_items: 'many': expected a whole number"},
		"a placeholder in an own key":          {configA, "agent_command", " <your agent>", 100, "error", own, "agent_command: unfilled placeholder"},
		"an own key that this version refuses": {configA, "include_dirty", " true", 100, "error", own, "include_dirty: not supported by this version"},
		"a stop line that cannot be read":      {configA, "stop_lines", " [errors > 5]", 100, "error", own, "stop_lines: 'errors > 5' is not a stop line; write iterations"},
		"an own key without effect":            {configA, "reviewer_agent", " critic", 100, "warning", note, "reviewer_agent: has no effect without reviewer"},
		"an unknown key":                       {configA, "colour", " red", 100, "warning", unknown, "colour: unknown key"},
		"a misspelt key":                       {configA, "verfy", " true", 100, "error", own, "verfy: unknown key; did you mean verify? Keys of your own begin with x-"},
		"a misspelt key beside the right one":  {configA, "kil_switch", " x", 100, "warning", unknown, "kil_switch: unknown key; did you mean kill_switch?"},
		"a key far from each":                  {configA, "budget", " 5", 100, "warning", unknown, "budget: unknown key"},
		"a repeated key":                       {configA + "tier: L1\n", "", "", 100, "warning", note, "tier: line 3 has the same"},
		"a repeated key with another value":    {configA + "tier: L2\n", "", "", 100, "error", own, "tier: line 3 and line 12 have different values"},
		"a budget that no run can keep":        {configA, "budget_tokens", " 0", 100, "error", note, "budget_tokens: '0': expected at least 1"},
		"a budget that is not a number": {
			configA, "budget_tokens", " 200_000", 90, "error", note,
			"budget_tokens: missing or non-numeric ('200_000'); write digits only, like 200000; a run refuses",
		},
		"another way to write the whole tree": {configA, "scope", ` ["**/*"]`, 100, "error", note, "scope: '**/*' is the whole tree"},
		"a scope that leaves the tree":        {configA, "scope", " [../x]", 100, "error", note, "scope: '../x': leaves the tree"},
		"a second bad item in scope":          {configA, "scope", ` ["*", "<x>"]`, 90, "error", note, "scope: unfilled placeholder ('<x>')"},
		"a name that is not in kebab case":    {configA, "name", " Keep_Green", 100, "warning", note, "name: 'Keep_Green' is not in kebab case"},
		"a gate of L2 to be filled in":        {configA, "verify", " <fill: command>", 100, "warning", note, "verify: unfilled placeholder"},
		"a list for the gate of a later tier": {configA, "guard", "\n  - a", 100, "error", note, "guard: expected one value"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.config
			if c.key != "" {
				text = with(text, c.key, c.value)
			}
			verdict, more := parse(t, text).Check()
			if verdict.Score() != c.score || len(more) != 1 {
				t.Fatalf("score %d and %+v, want %d and one finding", verdict.Score(), more, c.score)
			}
			if f := more[0]; f.Severity != c.severity || f.Kind != c.kind || !strings.HasPrefix(f.Message, c.message) {
				t.Errorf("finding %+v, want kind %d, %s, %s", f, c.kind, c.severity, c.message)
			}
		})
	}
}

func TestEverySmallProblemIsSaidOnce(t *testing.T) {
	for text, want := range map[string][]string{
		with(configA, "budget_tokens", " 2e5"):           {"error budget_tokens"},
		with(configA, "scope", ` ["*", "**", "**/*"]`):   {"error scope", "error scope", "error scope"},
		with(configA, "permission_mode", " acceptedits"): {"error permission_mode"},
		with(configA, "permission_mode", " auto"):        {"warning permission_mode"},
		with(configA, "cadence", " 0 0 31 2 *"):          {"error cadence"},
	} {
		def, findings := parse(t, text).Definition("keep-green")
		var got []string
		for _, f := range findings {
			got = append(got, f.Severity+" "+f.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" || def.Name == "" {
			t.Errorf("%s(-want +got):\n%s", text, diff)
		}
	}
}

// drawDefinition is a text that is more or less a definition.
func drawDefinition(t *rapid.T) string {
	text := rapid.SampledFrom([]string{configA, configB, realistic, ""}).Draw(t, "base")
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		key := rapid.SampledFrom(knownKeys).Draw(t, "key")
		value := rapid.SampledFrom([]string{
			"", " x", " <fill: x>", " L3", " auto", "\n  - \"*\"\n  - a/**", " true # c", " 12", ` "é # ü"`, " [a, '<b>', /]", " |\n  a\n  b", ": x", " 0 0 31 2 *",
		}).Draw(t, "value")
		text = with(text, key, value)
	}
	return text + drawText(t)
}

func TestByteOrderMarksAndCarriageReturnsChangeNoVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawDefinition(t)
		doc, err := Parse("x.yaml", []byte(text))
		for _, other := range []string{
			"\ufeff" + text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"),
		} {
			same, otherErr := Parse("x.yaml", []byte(other))
			if (err == nil) != (otherErr == nil) {
				t.Fatalf("%q: %v, and %q: %v", text, err, other, otherErr)
			}
			if err != nil {
				continue
			}
			verdict, more := doc.Check()
			otherVerdict, otherMore := same.Check()
			if diff := cmp.Diff(verdict, otherVerdict) + cmp.Diff(more, otherMore); diff != "" {
				t.Fatalf("%q and %q:\n%s", text, other, diff)
			}
		}
	})
}

func TestARunRefusesWhatTheCheckRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, err := Parse("x.yaml", []byte(drawDefinition(t)))
		if err != nil {
			t.Skip("unreadable")
		}
		verdict, more := doc.Check()
		_, findings := doc.Definition("")
		errs := map[readiness.Finding]bool{}
		for _, f := range findings {
			errs[f] = f.Severity == readiness.SeverityError
		}
		for _, f := range append(verdict.Findings, more...) {
			if f.Severity == readiness.SeverityError && !errs[f] {
				t.Fatalf("%+v is not among %+v", f, findings)
			}
			delete(errs, f)
		}
		for f := range errs {
			t.Fatalf("%+v is found by a run only", f)
		}
	})
}

var (
	naiveKey     = regexp.MustCompile(`^([a-z_]+):(.*)$`)
	naiveQuoted  = regexp.MustCompile(`^("[^"]*"|'[^']*')([ \t]+#.*)?$`)
	naiveComment = regexp.MustCompile(`(^|[ \t]+)#.*`)
)

// naive reads the scalars of a flat text as a script of ten lines would.
func naive(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		m := naiveKey.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		value := strings.Trim(m[2], " \t")
		if q := naiveQuoted.FindStringSubmatch(value); q != nil {
			value = q[1][1 : len(q[1])-1]
		} else {
			value = strings.Trim(naiveComment.ReplaceAllString(value, ""), " \t")
			if regexp.MustCompile(`^(tier|permission_mode|worktree|budget_tokens)$`).MatchString(m[1]) {
				value, _, _ = strings.Cut(value, "#")
				value = strings.Trim(value, " \t")
			}
		}
		if _, ok := all[m[1]]; !ok {
			all[m[1]] = value
		}
	}
	return all
}

// drawFlat is a text that a script can read: one key in each line, lists,
// comments and prose between them, and values that no YAML would have.
func drawFlat(t *rapid.T) string {
	word := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("ab:-#@%`!&*.,/={}[]?|>~1\té\\ü")), 1, 10, -1),
		rapid.SampledFrom([]string{"don't", "Fix:", "*", "**", "<fill:", "null", "#7", "&a", "!x", "1e3", "L1#first", "C:\\path"}),
	)
	// A script cannot read flow lists over lines and block scalars.
	plain := rapid.SliceOfN(word, 0, 4).Filter(func(words []string) bool {
		return !opens(words)
	})
	line := rapid.Custom(func(t *rapid.T) string {
		key := rapid.SampledFrom(seedKeys).Draw(t, "key")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return "# " + strings.Join(plain.Draw(t, "comment"), " ")
		case 1:
			return rapid.SampledFrom([]string{"", "  ", "prose without a colon", "Capital: x"}).Draw(t, "stray")
		case 2:
			return key + ":\n  - " + strings.Join(plain.Draw(t, "item"), " ")
		case 3:
			return fmt.Sprintf(`%s: "%s"%s`, key, rapid.SampledFrom([]string{"", "a # b", "x: y", "é", "it's"}).Draw(t, "text"),
				rapid.SampledFrom([]string{"", " # c", "\t# c"}).Draw(t, "comment"))
		case 4:
			return fmt.Sprintf("%s: '%s' ", key, rapid.SampledFrom([]string{"", "a # b", `x\y`, `"`}).Draw(t, "text"))
		}
		space := rapid.SampledFrom([]string{" ", " ", "", "\t", "  "}).Draw(t, "space")
		return key + ":" + space + strings.Join(plain.Draw(t, "words"), " ")
	})
	return strings.Join(rapid.SliceOfN(line, 1, 12).Draw(t, "lines"), "\n")
}

// opens reports whether a value begins a form of YAML that has no script's
// reading.
func opens(words []string) bool {
	text := strings.TrimLeft(strings.Join(words, " "), " \t")
	return text != "" && strings.ContainsAny(text[:1], "[{|>")
}

func TestScalarsAreThoseOfTheSimplestScript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawFlat(t)
		want := naive(text)
		doc, err := Parse("x.yaml", []byte(text))
		if err != nil {
			if len(want) > 0 {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		for key, value := range want {
			if got, ok := doc.Scalar(key); got.Text != value || ok != (value != "") {
				t.Fatalf("%q: %s is %q, want %q (%s)", text, key, got.Text, value, doc.Notice)
			}
		}
	})
}
