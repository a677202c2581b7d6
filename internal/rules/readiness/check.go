package readiness

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Config has the values of a definition for the keys of the format, as written. The
// zero Value means that the key is absent.
type Config struct {
	Name, Pattern, Tier, Cadence, Goal, Escalation, KillSwitch     Value
	BudgetTokens, PermissionMode, Verify, Guard, Worktree, LandVia Value

	Scope   []Value
	ScopeAt Value // where the list is or would be; its text is not read

	CadenceProblem string // why a filled cadence cannot fire; empty: it can

	Optional []string // keys that are absent and need not be there: their checks do not apply
}

// LeastScore is the lowest score of a ready loop, unless its operator asks for
// another.
const LeastScore = 70

// Verdict is the result of Check. The zero Verdict has a score of 0.
type Verdict struct {
	Findings []Finding // in the order of the checks
	Passed   int       // checks
	Total    int       // checks that apply to the tier
	Errors   int       // findings of each severity
	Warnings int
	Tier     string // as written, "unknown" when it is absent
}

// Check judges how complete a definition is. All checks that apply have the same
// weight. A cadence that cannot fire is an error beside them: it does not change the
// score, and the loop is not ready.
func Check(c Config) Verdict {
	v := Verdict{Tier: c.Tier.Text}
	if v.Tier == "" {
		v.Tier = "unknown"
	}
	for i := range checks {
		check := &checks[i]
		if !check.applies(loop.Tier(c.Tier.Text)) {
			continue
		}
		f := check.find(&c)
		if f.Message != "" && slices.Contains(c.Optional, f.Key) {
			continue
		}
		v.Total++
		if f.Message == "" {
			v.Passed++
		} else {
			v.addFinding(check.severity, f)
		}
		if check.number == cadenceCheck && IsFilled(c.Cadence.Text) && c.CadenceProblem != "" {
			v.addFinding(SeverityError, newFinding("cadence", c.Cadence, Printable(c.CadenceProblem)))
		}
	}
	return v
}

func (v *Verdict) addFinding(severity string, f Finding) {
	f.Severity = severity
	v.Findings = append(v.Findings, f)
	if severity == SeverityError {
		v.Errors++
	} else {
		v.Warnings++
	}
}

// Score is the share of passed checks in percent, rounded down.
func (v Verdict) Score() int {
	if v.Total == 0 {
		return 0
	}
	return 100 * v.Passed / v.Total
}

// Ready reports whether the loop may be started: no error, a score of at least
// least percent and, if strict, no warning.
func (v Verdict) Ready(least int, strict bool) bool {
	return v.Errors == 0 && v.Score() >= least && (!strict || v.Warnings == 0)
}

// PermissionModes lists the modes that a definition may have. The caller owns
// the list.
func PermissionModes() []string { return slices.Clone(permissionModes) }

var permissionModes = []string{"plan", "dontAsk", "auto", "acceptEdits", "bypassPermissions"}

// modesOf lists the permission modes that fit each tier.
var modesOf = map[loop.Tier][]string{
	loop.TierReport:     {"plan", "dontAsk"},
	loop.TierAssisted:   {"dontAsk", "auto", "acceptEdits"},
	loop.TierUnattended: {"bypassPermissions"},
}

// ScopeProblem says what is wrong with an item of a scope, and the fix; empty if
// nothing is. It knows only the shortest ways to write the whole tree.
func ScopeProblem(item string) string {
	switch {
	case HasPlaceholder(item):
		return "unfilled placeholder (" + Quote(item) + "); write a glob like src/**"
	case slices.Contains([]string{"*", "**", ".", "./", "/", ""}, item):
		return "unbounded (" + Quote(item) + "); name a directory or a kind of file, like src/** or **/*.go"
	}
	return ""
}

// declaresIsolation reports whether a definition says that the loop runs isolated.
func declaresIsolation(c *Config) bool {
	texts := []string{c.Escalation.Text}
	for _, item := range c.Scope {
		texts = append(texts, item.Text)
	}
	text := strings.ToLower(strings.Join(texts, "\n"))
	return slices.ContainsFunc([]string{"container", "isolat", "sandbox"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
