package readiness

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Values of every kind that a key may have.
var (
	commonTexts = []string{"", " ", "<fill: it>", "‹one sentence …›", "p95 < 3 ms and hits > 90 percent", "text", "null", "a\nb", "é '\t"}
	scopeTexts  = []string{"", "*", "**", ".", "./", "/", "**/*", "/**", "src/**", "<glob>", "a < b", "in a SANDBOX/**", " "}
	tierTexts   = []string{"L1", "L2", "L3", "L1", "L2", "L3", "L4", "l2", "", "<tier>", " L1"}
	modeTexts   = []string{"plan", "dontAsk", "auto", "acceptEdits", "bypassPermissions", "default", "Plan", "", "<mode>", "AUTO"}
	budgetTexts = []string{"200000", "0", "", "200_000", "2e5", "-1", "<n>", "٣", "99999999999999999999999", "1 "}
	flagTexts   = []string{"true", "true", "yes", "True", "on", "", "<true>", "true "}
	riskTexts   = []string{"outside of its Container", "isolation", "a devcontainer", "sand box", "<container>", "", "deploys"}
)

func drawConfig(t *rapid.T) Config {
	line := 0
	value := func(key string, own ...string) Value {
		line++
		text := rapid.OneOf(rapid.SampledFrom(append(own, "filled")), rapid.SampledFrom(commonTexts)).Draw(t, key)
		if text == "" && rapid.Bool().Draw(t, key+" is absent") {
			return Value{}
		}
		return Value{Text: text, Line: line, Column: 3}
	}
	c := Config{
		Name: value("name"), Pattern: value("pattern", "ci-watch", "ci-wach", "custom"), Tier: value("tier", tierTexts...),
		Cadence: value("cadence", "1h"), Goal: value("goal"), Escalation: value("escalation", riskTexts...),
		KillSwitch: value("kill_switch"), BudgetTokens: value("budget_tokens", budgetTexts...),
		PermissionMode: value("permission_mode", modeTexts...), Verify: value("verify", "go test ./..."),
		Guard: value("guard"), Worktree: value("worktree", flagTexts...), LandVia: value("land_via", "human"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		c.Scope = append(c.Scope, value("item", scopeTexts...))
	}
	c.CadenceProblem = rapid.SampledFrom([]string{"", "", "never fires"}).Draw(t, "cadence problem")
	return c
}

var (
	placeholderText = regexp.MustCompile(`(?s)[<‹]\pL.*[>›]`)
	unboundedText   = regexp.MustCompile(`^(\*{1,2}|\.?/?)$`)
	isolationText   = regexp.MustCompile(`(?i)container|isolat|sandbox|devcontainer`)
	allDigits       = regexp.MustCompile(`^[0-9]+$`)
	fittingMode     = regexp.MustCompile(`^(L1 (plan|dontAsk)|L2 (dontAsk|auto|acceptEdits)|L3 bypassPermissions)$`)
	validMode       = regexp.MustCompile(`^(plan|dontAsk|auto|acceptEdits|bypassPermissions)$`)
)

// count is the score of the format's prose, written without the table.
func count(c Config) (passed, total, errors, warnings int) {
	isFilled := func(v Value) bool { return strings.TrimSpace(v.Text) != "" && !placeholderText.MatchString(v.Text) }
	must := func(ok bool) {
		total++
		if ok {
			passed++
		} else {
			errors++
		}
	}
	should := func(ok bool) {
		total++
		if ok {
			passed++
		} else {
			warnings++
		}
	}
	for _, v := range []Value{c.Name, c.Goal, c.Escalation, c.KillSwitch} {
		must(isFilled(v))
	}
	should(isFilled(c.Pattern))
	should(isFilled(c.Cadence))
	should(allDigits.MatchString(c.BudgetTokens.Text))
	must(validMode.MatchString(c.PermissionMode.Text))
	bounded := len(c.Scope) > 0
	isolating := isolationText.MatchString(c.Escalation.Text)
	for _, item := range c.Scope {
		bounded = bounded && !placeholderText.MatchString(item.Text) && !unboundedText.MatchString(item.Text)
		isolating = isolating || isolationText.MatchString(item.Text)
	}
	must(bounded)
	tier := c.Tier.Text
	must(tier == "L1" || tier == "L2" || tier == "L3")
	if tier == "L1" || tier == "L2" || tier == "L3" {
		should(fittingMode.MatchString(tier + " " + c.PermissionMode.Text))
	}
	if tier == "L2" || tier == "L3" {
		must(isFilled(c.Verify))
		must(isFilled(c.Guard))
		must(c.Worktree.Text == "true")
		should(isFilled(c.LandVia))
	}
	if tier == "L3" {
		should(isolating)
	}
	if isFilled(c.Cadence) && c.CadenceProblem != "" {
		errors++
	}
	return passed, total, errors, warnings
}

func TestTheScoreIsThatOfTheFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		v := Check(c)
		passed, total, errors, warnings := count(c)
		if v.Passed != passed || v.Total != total || v.Errors != errors || v.Warnings != warnings {
			t.Fatalf("%d/%d, %d errors, %d warnings, want %d/%d, %d, %d: %+v",
				v.Passed, v.Total, v.Errors, v.Warnings, passed, total, errors, warnings, v.Findings)
		}
		wantTotal := map[string]int{"L1": 11, "L2": 15, "L3": 16}[c.Tier.Text]
		if wantTotal == 0 {
			wantTotal = 10
		}
		if v.Total != wantTotal {
			t.Fatalf("%d checks at %q, want %d", v.Total, c.Tier.Text, wantTotal)
		}
		if s := v.Score(); s*total > 100*passed || (s+1)*total <= 100*passed {
			t.Fatalf("score %d is not %d/%d rounded down", s, passed, total)
		}
		checkReady(t, v, rapid.IntRange(0, 101).Draw(t, "least"))
		checkFindings(t, v)
	})
}

func checkReady(t *rapid.T, v Verdict, least int) {
	enough := v.Errors == 0 && 100*v.Passed >= least*v.Total
	if got := v.Ready(least, false); got != enough {
		t.Fatalf("ready at %d: %v, want %v", least, got, enough)
	}
	if got := v.Ready(least, true); got != (enough && v.Warnings == 0) {
		t.Fatalf("strictly ready at %d: %v with %d warnings", least, got, v.Warnings)
	}
}

func checkFindings(t *rapid.T, v Verdict) {
	if len(v.Findings) != v.Errors+v.Warnings {
		t.Fatalf("%d findings, %d errors and %d warnings", len(v.Findings), v.Errors, v.Warnings)
	}
	for _, f := range v.Findings {
		if !starts.MatchString(f.Message) || strings.ContainsAny(f.Message, "\n\r") || f.Key == "" || f.Line < 1 || f.Column < 1 {
			t.Fatalf("finding %+v", f)
		}
	}
}

func TestDoctorsRowsAreTheOfflineOnesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		known := rapid.Bool().Draw(t, "known")
		var want []string
		row := func(check, state string) { want = append(want, check+" "+state) }
		state := map[bool]string{true: "ok", false: "bad"}
		row("permission_mode", state[c.PermissionMode.Text != "" && c.PermissionMode.Text != "default"])
		if c.Tier.Text == "L3" && c.PermissionMode.Text == "bypassPermissions" {
			row("isolation", state[!strings.Contains(messages(Check(c)), "L3 declares")])
		}
		if budget := c.BudgetTokens.Text; known && allDigits.MatchString(budget) {
			row("budget", state[len(budget) > 6 || budget >= "200000"])
		}
		var got []string
		for _, r := range DoctorRows(c, 200000, known) {
			got = append(got, r.Check+" "+r.State)
			if (r.Fix == "") != (r.State == StateOK) || r.Detail == "" || strings.ContainsAny(r.Detail+r.Fix, "\t\n\r") {
				t.Fatalf("row %+v: want a fix where it is not ok, and no tab", r)
			}
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Fatalf("rows %v, want %v", got, want)
		}
	})
}

func messages(v Verdict) string {
	var all []string
	for _, f := range v.Findings {
		all = append(all, f.Message)
	}
	return strings.Join(all, "\n")
}
