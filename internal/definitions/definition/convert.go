package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Values that keys may have.
var (
	permissionModes = valuesOf("permission_mode")
	blockedPolicies = valuesOf("on_blocked")
	failurePolicies = valuesOf("on_failure")
	catchUps        = valuesOf("catch_up")
	sandboxTiers    = valuesOf("sandbox")
	protocols       = valuesOf("protocol")
)

// Definition converts the document. dirName is the name of its directory, which must be
// the loop's name; an empty one is not compared. If any finding is an error, the
// definition must not be run. Absent keys leave zero values, which
// loop.Definition.WithDefaults fills in.
//
// The findings are those of readiness.Check and those that only a run refuses, in the
// order of the file, those about missing keys first. A warning about a value with an error
// is left out.
func (d *Document) Definition(dirName string) (loop.Definition, []readiness.Finding) {
	c := d.convert(dirName)
	all := slices.Concat(c.verdict.Findings, c.more)
	findings := slices.DeleteFunc(slices.Clone(all), func(f readiness.Finding) bool {
		return f.Kind == readiness.KindCheck && f.Severity == readiness.SeverityWarning && hasErrorAt(all, f)
	})
	slices.SortStableFunc(findings, byPlace)
	return c.def, findings
}

// converter builds the definition, and collects the findings that readiness.Check does
// not have.
type converter struct {
	doc     *Document
	config  readiness.Config
	verdict readiness.Verdict
	def     loop.Definition
	more    []readiness.Finding
}

func (d *Document) convert(dirName string) *converter {
	config := d.Config()
	c := &converter{doc: d, config: config, verdict: readiness.Check(config), more: slices.Clone(d.reported)}
	if c.def.Tasks = d.Tasks; d.Tasks != nil {
		c.def.Group = loop.AgentsGroup
	}
	c.convertIdentity(dirName)
	c.convertTask()
	c.convertGates()
	c.convertLimits()
	c.reportUnsupported()
	c.reportUnknownKeys()
	return c
}

// hasErrorAt reports whether the value of a finding has an error.
func hasErrorAt(all []readiness.Finding, f readiness.Finding) bool {
	return slices.ContainsFunc(all, func(other readiness.Finding) bool {
		return other.Severity == readiness.SeverityError && other.Key == f.Key && byPlace(other, f) == 0
	})
}

func (c *converter) convertIdentity(dirName string) {
	c.def.Name = filledText(c.config.Name)
	if c.def.Name != "" && dirName != "" && c.def.Name != dirName {
		c.reportError("name", "%s is not the name of the directory, %s", readiness.Quote(c.def.Name), readiness.Quote(dirName))
	}
	if c.def.Name != "" && !IsKebab(c.def.Name) {
		c.reportWarning("name", "%s is not in kebab case; write lower-case words, digits and single hyphens", readiness.Quote(c.def.Name))
	}
	c.def.Pattern = filledText(c.config.Pattern)
	if tier := loop.Tier(c.config.Tier.Text); tier.IsKnown() {
		c.def.Tier = tier
	}
	c.def.Protocol = c.doc.format
	if c.doc.format == "" {
		c.def.Protocol = c.oneOf("protocol", protocols)
	}
	if c.config.CadenceProblem == "" {
		c.def.Cadence = filledText(c.config.Cadence)
	}
}

// convertTask reads the keys about what the loop does and where.
func (c *converter) convertTask() {
	c.def.Goal = filledText(c.config.Goal)
	c.def.Escalation = filledText(c.config.Escalation)
	c.def.KillSwitch = filledText(c.config.KillSwitch)
	c.def.Scope = c.readScope()
	c.def.Protect = c.readOptionalGlobs("protect")
	c.def.Sense = c.optionalText("sense")
	c.def.Instructions = c.readInstructions()
	c.def.Base = c.optionalText("base")
	c.def.Agent = c.optionalText("agent")
	c.def.AgentCommand = c.optionalText("agent_command")
	c.def.Model = c.optionalText("model")
	c.def.Provider = c.oneOf("provider", valuesOf("provider"))
	c.def.BaseURL = parseOptional(c, "base_url", baseURL)
	c.def.Auth = loop.Auth(c.oneOf("auth", valuesOf("auth")))
	c.def.Resume = c.oneOf("resume", valuesOf("resume")) == "true"
	c.def.Env = c.readEnv()
	c.def.Setup = c.optionalText("setup")
	c.def.Network = c.readNetworkHosts()
	c.def.Capabilities = c.readCommands()
	c.def.ModelTools = c.readModelTools()
	if c.def.Auth == loop.AuthLend {
		c.reportWarning("auth", "model_tools: not enforced: with a lent login pawl does not see the requests to the model; only the agent's own switches keep it from its vendor's tools")
	}
	c.def.Effort = c.readEffort()
	if tools := c.oneOf("pawl_tools", valuesOf("pawl_tools")); tools != "none" {
		c.def.PawlTools = loop.PawlTools(tools)
	}
	c.def.MCP = c.readMCPServers()
}

// convertGates reads the keys about what is between the agent and the branch.
func (c *converter) convertGates() {
	if mode := c.config.PermissionMode.Text; slices.Contains(permissionModes, mode) {
		c.def.PermissionMode = mode
	}
	if c.def.Tier == loop.TierAssisted || c.def.Tier == loop.TierUnattended {
		c.def.Verify, c.def.Guard = filledText(c.config.Verify), filledText(c.config.Guard)
		c.def.LandVia = filledText(c.config.LandVia)
	} else {
		c.def.Verify, c.def.Guard, c.def.LandVia = c.spareText("verify"), c.spareText("guard"), c.spareText("land_via")
	}
	c.def.Gates = append(c.readInvariants(), c.readReviewer()...)
	if gate := loop.HumanGate(c.oneOf("human_gate", valuesOf("human_gate"))); gate.Waits() {
		c.def.HumanGate = gate
	}
	if c.def.Sense == loop.SenseGates && c.def.Verify == "" && c.def.Guard == "" {
		c.reportError("sense", "gates tries verify and guard, and neither is written; write verify, or a command that looks for work")
	}
	c.def.AllowExec = c.oneOf("allow_exec", valuesOf("allow_exec")) == "true"
	c.def.AnyNames = c.oneOf("portable_names", valuesOf("portable_names")) == "false"
	c.def.Autoland = c.readAutoland()
	c.def.Flaky = parseOptional(c, "flaky", flakyRule)
	c.def.Sandbox = c.oneOf("sandbox", sandboxTiers)
	c.checkDriver()
	if c.oneOf("history", valuesOf("history")) == loop.HistoryNone {
		c.def.History = loop.HistoryNone
		if c.def.Sandbox == "none" || c.def.Sandbox == "external" {
			c.reportWarning("history", "none has no effect with sandbox: %s, where programs can read the repository itself", c.def.Sandbox)
		}
	}
	if c.def.Sandbox == "none" && c.def.Tier == loop.TierUnattended {
		c.reportError("sandbox", "none is never allowed at L3; write full or external")
	}
}

func (c *converter) convertLimits() {
	c.convertBudget()
	c.def.BudgetUSDDay = parseOptional(c, "budget_usd_day", parseDollars)
	c.def.BudgetTokensDay = parseOptional(c, "budget_tokens_day", func(text string) (int64, error) { return parsePositive(text, mostTokens) })
	c.def.MaxIterations = c.readCount("max_iterations")
	c.def.MaxItems = c.readCount("max_items")
	c.def.MaxStepTimeout = c.readDuration("max_step_timeout")
	c.def.MaxWallClock = c.readDuration("max_wall_clock")
	c.def.MaxDisk = parseOptional(c, "max_disk", parseSize)
	c.def.GiveUpAfter = c.readCount("give_up_after")
	c.def.RetryBlockedAfter = c.readCount("retry_blocked_after")
	c.def.StopLines = c.readStopLines()
	if c.oneOf("commit_state", valuesOf("commit_state")) == "true" && c.def.Protocol != loop.ProtocolBoot {
		c.def.CommitState = true
		if c.def.LandVia == "pr" && c.def.Base == "" {
			c.reportWarning("commit_state", "the branch that is checked out gets commits that are not pushed, and land_via: pr lands on its remote; check out another branch, and name the base")
		}
	}
	c.convertTimes()
	c.def.On = c.readEvents()
	c.def.Priority = c.readCount("priority")
	c.def.DeferBound = c.readCount("defer_bound")
	c.def.NodeLabels = c.readNodeLabels()
	c.def.OnBlocked = c.oneOf("on_blocked", blockedPolicies)
	c.def.OnFailure = c.oneOf("on_failure", failurePolicies)
}

func (c *converter) convertTimes() {
	c.def.Timezone = parseOptional(c, "timezone", func(name string) (string, error) {
		_, err := schedule.Zone(name)
		return name, err
	})
	c.def.CatchUp = loop.CatchUp(c.oneOf("catch_up", catchUps))
	c.def.StartDeadline = c.readDuration("start_deadline")
	c.def.Jitter = parseOptional(c, "jitter", func(text string) (time.Duration, error) {
		if text == "0" {
			return 0, nil
		}
		return parseDuration(text)
	})
}

// convertBudget refuses a budget that is not a valid number.
func (c *converter) convertBudget() {
	text := filledText(c.config.BudgetTokens)
	if text == "" {
		return
	}
	n, err := parsePositive(text, mostTokens)
	switch {
	case err == nil:
		c.def.BudgetTokens = n
	case digitsOnly(text):
		c.reportError("budget_tokens", "%s: %s", readiness.Quote(text), err)
	default:
		c.reportError("budget_tokens", "%s; a run refuses what it cannot count", c.checkMessage("budget_tokens"))
	}
}

// checkMessage returns the message of the check about a key, without the key.
func (c *converter) checkMessage(key string) string {
	i := slices.IndexFunc(c.verdict.Findings, func(f readiness.Finding) bool { return f.Key == key })
	return strings.TrimPrefix(c.verdict.Findings[i].Message, key+": ")
}

func (c *converter) readCount(key string) int {
	return int(parseOptional(c, key, func(text string) (int64, error) { return parsePositive(text, mostInt) }))
}

func (c *converter) readDuration(key string) time.Duration {
	return parseOptional(c, key, parseDuration)
}

// parseOptional parses an optional value. It returns the zero value if the key is
// missing or the value is wrong, which it reports.
func parseOptional[T any](c *converter, key string, parse func(string) (T, error)) T {
	var zero T
	text := c.optionalText(key)
	if text == "" {
		return zero
	}
	value, err := parse(text)
	if err != nil {
		c.reportError(key, "%s: %s", readiness.Quote(text), err)
		return zero
	}
	return value
}

func (c *converter) oneOf(key string, allowed []string) string {
	text := c.optionalText(key)
	if text != "" && !slices.Contains(allowed, text) {
		c.reportError(key, "%s is unknown; %s", readiness.Quote(text), writeOneOf(allowed))
		return ""
	}
	return text
}

// optionalText returns the text of a key that may be missing. A placeholder or a list is
// refused: using the default instead would be a surprise.
func (c *converter) optionalText(key string) string {
	v, ok := c.doc.Scalar(key)
	e := c.doc.findEntry(key)
	switch {
	case e != nil && e.block:
		c.reportError(key, "expected one value, found a list or nested keys")
	case ok && readiness.HasPlaceholder(v.Text):
		c.reportError(key, "unfilled placeholder (%s); write a value or remove the key", readiness.Quote(v.Text))
	case ok && strings.TrimSpace(v.Text) != "":
		return v.Text
	}
	return ""
}

// spareText returns the text of a key that only higher tiers need. A placeholder is
// allowed until the loop is promoted.
func (c *converter) spareText(key string) string {
	v, _ := c.doc.Scalar(key)
	if readiness.HasPlaceholder(v.Text) {
		c.reportWarning(key, "unfilled placeholder (%s); not needed below L2", readiness.Quote(v.Text))
		return ""
	}
	return c.optionalText(key)
}

func (c *converter) reportError(key, format string, args ...any) {
	c.addFinding(readiness.SeverityError, key, fmt.Sprintf(format, args...))
}

func (c *converter) reportWarning(key, format string, args ...any) {
	c.addFinding(readiness.SeverityWarning, key, fmt.Sprintf(format, args...))
}

// addFinding adds a finding at the key's value, or at the start of the file.
func (c *converter) addFinding(severity, key, message string) {
	v := readiness.Value{Line: 1, Column: 1}
	if found, _ := c.doc.Scalar(key); found.Line > 0 {
		v = found
	}
	c.reportAt(severity, key, key+": "+message, v)
}

func (c *converter) reportAt(severity, key, message string, v readiness.Value) {
	c.more = append(c.more, readiness.Finding{
		Kind: kindOf(severity, key), Severity: severity, Key: key, Message: message, Line: v.Line, Column: v.Column,
	})
}

// IsKebab reports whether a name is lower-case words and digits joined by single hyphens.
func IsKebab(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

func writeOneOf(allowed []string) string { return "write one of " + strings.Join(allowed, ", ") }
