package readiness

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
)

// check is one row of the score. A Finding without a message passes.
type check struct {
	number   int
	severity string
	applies  func(loop.Tier) bool
	find     func(*Config) Finding
}

// cadenceCheck is the number of the check of the cadence, which may be filled and
// still cannot fire.
const cadenceCheck = 4

var checks = []check{
	{1, SeverityError, anyTier, requireFilled("name", func(c *Config) Value { return c.Name },
		"missing or placeholder; write the name of the loop's directory")},
	{2, SeverityWarning, anyTier, findPattern},
	{3, SeverityError, anyTier, findTier},
	{cadenceCheck, SeverityWarning, anyTier, requireFilled("cadence", func(c *Config) Value { return c.Cadence },
		"missing or placeholder; write how often it fires, like 1h or 0 9 * * 1-5")},
	{5, SeverityError, anyTier, requireFilled("goal", func(c *Config) Value { return c.Goal },
		"missing or placeholder; write what the loop does and what it must not do")},
	{6, SeverityError, anyTier, requireFilled("escalation", func(c *Config) Value { return c.Escalation },
		"undefined or placeholder; write what is handed to a human")},
	{7, SeverityError, anyTier, requireFilled("kill_switch", func(c *Config) Value { return c.KillSwitch },
		"undefined or placeholder; write the stop signal, like .loops/NAME/PAUSED exists")},
	{8, SeverityWarning, anyTier, findBudget},
	{9, SeverityError, anyTier, findScope},
	{10, SeverityError, anyTier, findMode},
	{11, SeverityWarning, loop.Tier.IsKnown, findModeMisfit},
	{12, SeverityError, changesFiles, requireFilled("verify", func(c *Config) Value { return c.Verify },
		"no gate command; write the command that judges the work, like go test ./...")},
	{13, SeverityError, changesFiles, requireFilled("guard", func(c *Config) Value { return c.Guard },
		"no must-always-pass command; write the full suite or the type check")},
	{14, SeverityError, changesFiles, findWorktree},
	{15, SeverityWarning, changesFiles, requireFilled("land_via", func(c *Config) Value { return c.LandVia },
		"undefined; write who lands what wins: human, pr or a name")},
	{16, SeverityWarning, isUnattended, findIsolation},
}

func anyTier(loop.Tier) bool { return true }

// changesFiles reports whether loops of a tier change files.
func changesFiles(tier loop.Tier) bool {
	return tier == loop.TierAssisted || tier == loop.TierUnattended
}

func isUnattended(tier loop.Tier) bool { return tier == loop.TierUnattended }

// newFinding returns a finding whose message begins with its key. A missing key is
// reported at the start of the file.
func newFinding(key string, at Value, problem string) Finding {
	return Finding{Key: key, Message: key + ": " + problem, Line: max(at.Line, 1), Column: max(at.Column, 1)}
}

// requireFilled returns a check that a value is filled.
func requireFilled(key string, value func(*Config) Value, problem string) func(*Config) Finding {
	return func(c *Config) Finding {
		v := value(c)
		if IsFilled(v.Text) {
			return Finding{}
		}
		return newFinding(key, v, problem)
	}
}

// findPattern accepts every name: the pattern may be in a later catalogue.
func findPattern(c *Config) Finding {
	if IsFilled(c.Pattern.Text) {
		return Finding{}
	}
	return newFinding("pattern", c.Pattern, "missing or placeholder; write a pattern of the catalogue or custom"+
		didYouMean(c.Pattern.Text, pattern.Names()))
}

func findTier(c *Config) Finding {
	if loop.Tier(c.Tier.Text).IsKnown() {
		return Finding{}
	}
	return newFinding("tier", c.Tier, "must be L1, L2 or L3"+butIs(c.Tier.Text)+didYouMean(c.Tier.Text,
		[]string{string(loop.TierReport), string(loop.TierAssisted), string(loop.TierUnattended)}))
}

func findBudget(c *Config) Finding {
	switch text := c.BudgetTokens.Text; {
	case isDigits(text):
		return Finding{}
	case !IsFilled(text):
		return newFinding("budget_tokens", c.BudgetTokens,
			"missing or non-numeric; write the most output tokens of one run, like 200000")
	default:
		return newFinding("budget_tokens", c.BudgetTokens,
			"missing or non-numeric ("+Quote(text)+"); write digits only, like 200000")
	}
}

// findScope reports the first bad item.
func findScope(c *Config) Finding {
	if len(c.Scope) == 0 {
		return newFinding("scope", c.ScopeAt, "missing; write the globs that the loop may touch, like src/**")
	}
	for _, item := range c.Scope {
		if problem := ScopeProblem(item.Text); problem != "" {
			return newFinding("scope", item, problem)
		}
	}
	return Finding{}
}

func findMode(c *Config) Finding {
	text := c.PermissionMode.Text
	fix := "; write one of " + strings.Join(permissionModes, ", ")
	switch {
	case text == "":
		return newFinding("permission_mode", c.PermissionMode, "missing"+fix)
	case !slices.Contains(permissionModes, text):
		return newFinding("permission_mode", c.PermissionMode,
			"invalid ("+Quote(text)+")"+fix+didYouMean(text, permissionModes))
	}
	return Finding{}
}

// findModeMisfit is called for known tiers only. A missing or invalid mode fits no
// tier.
func findModeMisfit(c *Config) Finding {
	fitting := modesOf[loop.Tier(c.Tier.Text)]
	if slices.Contains(fitting, c.PermissionMode.Text) {
		return Finding{}
	}
	f := newFinding("permission_mode", c.PermissionMode, "")
	f.Message = "permission_mode " + Quote(c.PermissionMode.Text) + " does not fit tier " + c.Tier.Text +
		"; write " + strings.Join(fitting, " or ")
	return f
}

func findWorktree(c *Config) Finding {
	if c.Worktree.Text == "true" {
		return Finding{}
	}
	return newFinding("worktree", c.Worktree, "must be true at "+c.Tier.Text+butIs(c.Worktree.Text))
}

func findIsolation(c *Config) Finding {
	if declaresIsolation(c) {
		return Finding{}
	}
	f := newFinding("escalation", c.Escalation, "")
	f.Message = "L3 declares no isolation; say in escalation that it runs only in a container or a sandbox"
	return f
}

func butIs(text string) string {
	if text == "" {
		return "; it is missing"
	}
	return ", and is " + Quote(text)
}
