package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

// Values that keys may have.
var (
	permissionModes = valuesOf("permission_mode")
	blockedPolicies = valuesOf("on_blocked")
	failurePolicies = valuesOf("on_failure")
	sandboxTiers    = valuesOf("sandbox")
	protocols       = valuesOf("protocol")
)

// Definition converts the document. dirName is the name of the directory that
// it lies in, which must be the loop's name; empty is not compared. If any
// finding is an error the definition must not be run. Absent keys leave zero
// values, for loop.Definition.WithDefaults to fill.
//
// The findings are those of readiness.Check and those that only a run minds;
// where an error stands, a warning about the same value is left out. They are in
// the order of the file, those about missing keys first.
func (d *Document) Definition(dirName string) (loop.Definition, []readiness.Finding) {
	c := d.convert(dirName)
	all := slices.Concat(c.verdict.Findings, c.more)
	findings := slices.DeleteFunc(slices.Clone(all), func(f readiness.Finding) bool {
		return f.Kind == readiness.KindCheck && f.Severity == readiness.SeverityWarning && refused(all, f)
	})
	slices.SortStableFunc(findings, byPlace)
	return c.def, findings
}

// converter collects the definition and what is wrong with it beside what
// readiness.Check finds.
type converter struct {
	doc     *Document
	config  readiness.Config
	verdict readiness.Verdict
	def     loop.Definition
	more    []readiness.Finding
}

func (d *Document) convert(dirName string) *converter {
	config := d.Config()
	c := &converter{doc: d, config: config, verdict: readiness.Check(config)}
	c.identity(dirName)
	c.task()
	c.judges()
	c.limits()
	c.notYet()
	c.unknown()
	return c
}

// refused reports whether there is an error about the value of a finding.
func refused(all []readiness.Finding, f readiness.Finding) bool {
	return slices.ContainsFunc(all, func(other readiness.Finding) bool {
		return other.Severity == readiness.SeverityError && other.Key == f.Key && byPlace(other, f) == 0
	})
}

func (c *converter) identity(dirName string) {
	c.def.Name = written(c.config.Name)
	if c.def.Name != "" && dirName != "" && c.def.Name != dirName {
		c.fail("name", "%s is not the name of the directory, %s", readiness.Quote(c.def.Name), readiness.Quote(dirName))
	}
	if c.def.Name != "" && !Kebab(c.def.Name) {
		c.warn("name", "%s is not in kebab case; write lower-case words, digits and single hyphens", readiness.Quote(c.def.Name))
	}
	c.def.Pattern = written(c.config.Pattern)
	if tier := loop.Tier(c.config.Tier.Text); tier.Known() {
		c.def.Tier = tier
	}
	c.def.Protocol = c.oneOf("protocol", protocols)
	if c.config.CadenceProblem == "" {
		c.def.Cadence = written(c.config.Cadence)
	}
}

// task reads what the loop does and where.
func (c *converter) task() {
	c.def.Goal = written(c.config.Goal)
	c.def.Escalation = written(c.config.Escalation)
	c.def.KillSwitch = written(c.config.KillSwitch)
	c.def.Scope = c.scope()
	c.def.Protect = c.patterns("protect")
	c.def.Sense = c.optional("sense")
	c.def.Instructions = c.instructions()
	c.def.Base = c.optional("base")
	c.def.Agent = c.optional("agent")
	c.def.AgentCommand = c.optional("agent_command")
	c.def.Model = c.optional("model")
	c.def.Provider = c.oneOf("provider", valuesOf("provider"))
	c.def.BaseURL = read(c, "base_url", baseURL)
	c.def.Auth = loop.Auth(c.oneOf("auth", valuesOf("auth")))
	c.def.Resume = c.oneOf("resume", valuesOf("resume")) == "true"
	c.def.Env = c.env()
	c.def.Setup = c.optional("setup")
	c.def.Network = c.hosts()
	c.def.ModelTools = c.modelTools()
	if c.def.Auth == loop.AuthLend {
		c.warn("auth", "model_tools: not enforced: with a lent login pawl does not see the requests to the model; only the agent's own switches keep it from its vendor's tools")
	}
	c.def.Effort = c.effort()
	c.def.MCP = c.servers()
}

// judges reads what stands between the agent and the branch.
func (c *converter) judges() {
	if mode := c.config.PermissionMode.Text; slices.Contains(permissionModes, mode) {
		c.def.PermissionMode = mode
	}
	if c.def.Tier == loop.TierAssisted || c.def.Tier == loop.TierUnattended {
		c.def.Verify, c.def.Guard = written(c.config.Verify), written(c.config.Guard)
		c.def.LandVia = written(c.config.LandVia)
	} else {
		c.def.Verify, c.def.Guard, c.def.LandVia = c.spare("verify"), c.spare("guard"), c.spare("land_via")
	}
	if c.def.Sense == loop.SenseGates && c.def.Verify == "" && c.def.Guard == "" {
		c.fail("sense", "gates tries verify and guard, and neither is written; write verify, or a command that looks for work")
	}
	c.def.AllowExec = c.oneOf("allow_exec", valuesOf("allow_exec")) == "true"
	c.def.AnyNames = c.oneOf("portable_names", valuesOf("portable_names")) == "false"
	c.def.Autoland = c.classes()
	c.def.Flaky = read(c, "flaky", flakyRule)
	c.def.Sandbox = c.oneOf("sandbox", sandboxTiers)
	c.driver()
	if c.oneOf("history", valuesOf("history")) == loop.HistoryNone {
		c.def.History = loop.HistoryNone
		if c.def.Sandbox == "none" || c.def.Sandbox == "external" {
			c.warn("history", "none has no effect with sandbox: %s, where programs can read the repository itself", c.def.Sandbox)
		}
	}
	if c.def.Sandbox == "none" && c.def.Tier == loop.TierUnattended {
		c.fail("sandbox", "none is never allowed at L3; write full or external")
	}
}

func (c *converter) limits() {
	c.budget()
	c.def.BudgetUSDDay = read(c, "budget_usd_day", dollars)
	c.def.BudgetTokensDay = read(c, "budget_tokens_day", func(text string) (int64, error) { return positive(text, mostTokens) })
	c.def.MaxIterations = c.count("max_iterations")
	c.def.MaxItems = c.count("max_items")
	c.def.MaxStepTimeout = c.duration("max_step_timeout")
	c.def.MaxWallClock = c.duration("max_wall_clock")
	c.def.MaxDisk = read(c, "max_disk", size)
	c.def.GiveUpAfter = c.count("give_up_after")
	c.def.RetryBlockedAfter = c.count("retry_blocked_after")
	c.def.OnBlocked = c.oneOf("on_blocked", blockedPolicies)
	c.def.OnFailure = c.oneOf("on_failure", failurePolicies)
}

// budget refuses one that was written and cannot be kept.
func (c *converter) budget() {
	text := written(c.config.BudgetTokens)
	if text == "" {
		return
	}
	n, err := positive(text, mostTokens)
	switch {
	case err == nil:
		c.def.BudgetTokens = n
	case digitsOnly(text):
		c.fail("budget_tokens", "%s: %s", readiness.Quote(text), err)
	default:
		c.fail("budget_tokens", "%s; a run refuses what it cannot count", c.checked("budget_tokens"))
	}
}

// checked is what the check says about a key, without the key.
func (c *converter) checked(key string) string {
	i := slices.IndexFunc(c.verdict.Findings, func(f readiness.Finding) bool { return f.Key == key })
	return strings.TrimPrefix(c.verdict.Findings[i].Message, key+": ")
}

func (c *converter) count(key string) int {
	return int(read(c, key, func(text string) (int64, error) { return positive(text, mostInt) }))
}

func (c *converter) duration(key string) time.Duration { return read(c, key, duration) }

// read parses an optional value; the zero value stands for absent or wrong.
func read[T any](c *converter, key string, parse func(string) (T, error)) T {
	var zero T
	text := c.optional(key)
	if text == "" {
		return zero
	}
	value, err := parse(text)
	if err != nil {
		c.fail(key, "%s: %s", readiness.Quote(text), err)
		return zero
	}
	return value
}

func (c *converter) oneOf(key string, allowed []string) string {
	text := c.optional(key)
	if text != "" && !slices.Contains(allowed, text) {
		c.fail(key, "%s is unknown; %s", readiness.Quote(text), choices(allowed))
		return ""
	}
	return text
}

// optional is the text of a key that may be absent. A value that was begun and
// says nothing is refused, because its default would be a surprise.
func (c *converter) optional(key string) string {
	v, ok := c.doc.Scalar(key)
	e := c.doc.entry(key)
	switch {
	case e != nil && e.block:
		c.fail(key, "expected one value, found a list or nested keys")
	case ok && readiness.Placeholder(v.Text):
		c.fail(key, "unfilled placeholder (%s); write a value or remove the key", readiness.Quote(v.Text))
	case ok && strings.TrimSpace(v.Text) != "":
		return v.Text
	}
	return ""
}

// spare is the text of a key that only higher tiers need: a placeholder waits
// there for the day on which the loop is promoted.
func (c *converter) spare(key string) string {
	v, _ := c.doc.Scalar(key)
	if readiness.Placeholder(v.Text) {
		c.warn(key, "unfilled placeholder (%s); not needed below L2", readiness.Quote(v.Text))
		return ""
	}
	return c.optional(key)
}

func (c *converter) fail(key, format string, args ...any) {
	c.report(readiness.SeverityError, key, fmt.Sprintf(format, args...))
}

func (c *converter) warn(key, format string, args ...any) {
	c.report(readiness.SeverityWarning, key, fmt.Sprintf(format, args...))
}

// report places a finding at the key's value, or where the file begins.
func (c *converter) report(severity, key, message string) {
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

// Kebab reports whether a name is lower-case words and digits joined by single hyphens.
func Kebab(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

func choices(allowed []string) string { return "write one of " + strings.Join(allowed, ", ") }
