package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
	"github.com/pawl-run/pawl/internal/schedule"
)

// Values that keys may have.
var (
	permissionModes = []string{"plan", "dontAsk", "auto", "acceptEdits", "bypassPermissions"}
	blockedPolicies = []string{"log_and_skip", "escalate", "retry_next_cycle", "halt"}
	failurePolicies = []string{"log_skip_continue", "escalate_and_skip", "retry_once", "halt"}
	sandboxTiers    = []string{"full", "landlock", "seatbelt", "external", "none"}
	protocols       = []string{
		loop.ProtocolSpine, loop.ProtocolSpec, loop.ProtocolBoot, loop.ProtocolTasks, loop.ProtocolBoard,
	}
)

// Definition converts the document. dirName is the name of the directory that
// it lies in, which must be the loop's name; empty is not compared. If any
// finding is an error the definition must not be run. Absent keys leave zero
// values, for loop.Definition.WithDefaults to fill.
//
// The findings are in the order of the file, those about missing keys first.
func (d *Document) Definition(dirName string) (loop.Definition, []readiness.Finding) {
	c := &converter{doc: d}
	c.identity(dirName)
	c.task()
	c.judges()
	c.limits()
	c.notYet()
	c.unknown()
	slices.SortStableFunc(c.findings, func(a, b readiness.Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return c.def, c.findings
}

// converter collects the definition and what is wrong with it.
type converter struct {
	doc      *Document
	def      loop.Definition
	findings []readiness.Finding
}

func (c *converter) identity(dirName string) {
	c.def.Name = c.required("name", "missing or placeholder; write the name of the loop's directory")
	if c.def.Name != "" && dirName != "" && c.def.Name != dirName {
		c.fail("name", "%s is not the name of the directory, %s", readiness.Quote(c.def.Name), readiness.Quote(dirName))
	}
	if c.def.Name != "" && !kebab(c.def.Name) {
		c.warn("name", "%s is not in kebab case; write lower-case words, digits and single hyphens", readiness.Quote(c.def.Name))
	}
	c.def.Pattern = c.advised("pattern", "missing or placeholder; write a pattern of the catalogue or custom")
	if tier, _ := c.doc.Scalar("tier"); loop.Tier(tier.Text).Known() {
		c.def.Tier = loop.Tier(tier.Text)
	} else {
		c.fail("tier", "must be L1, L2 or L3%s", butIs(tier.Text))
	}
	c.def.Protocol = c.oneOf("protocol", protocols)
	c.cadence()
}

func (c *converter) cadence() {
	text := c.advised("cadence", "missing or placeholder; write how often it fires, like 1h or 0 9 * * 1-5")
	if text == "" {
		return
	}
	if _, err := schedule.ParseFor(text, c.def.Name); err != nil {
		c.fail("cadence", "%s", readiness.Printable(err.Error()))
		return
	}
	c.def.Cadence = text
}

// task reads what the loop does and where.
func (c *converter) task() {
	c.def.Goal = c.required("goal", "missing or placeholder; write what the loop does and what it must not do")
	c.def.Escalation = c.required("escalation", "undefined or placeholder; write what is handed to a human")
	c.def.KillSwitch = c.required("kill_switch",
		"undefined or placeholder; write the stop signal, like .loops/NAME/PAUSED exists")
	c.def.Scope = c.scope()
	c.def.Protect = c.patterns("protect")
	c.def.Sense = c.optional("sense")
	c.def.Base = c.optional("base")
	c.def.Agent = c.optional("agent")
	c.def.AgentCommand = c.optional("agent_command")
	c.def.Model = c.optional("model")
	c.def.Env = c.env()
}

// judges reads what stands between the agent and the branch. From L2 on, work
// that nothing judges is refused.
func (c *converter) judges() {
	mode, _ := c.doc.Scalar("permission_mode")
	switch {
	case mode.Text == "":
		c.fail("permission_mode", "missing; %s", choices(permissionModes))
	case !slices.Contains(permissionModes, mode.Text):
		c.fail("permission_mode", "invalid (%s); %s", readiness.Quote(mode.Text), choices(permissionModes))
	default:
		c.def.PermissionMode = mode.Text
	}
	if c.def.Tier == loop.TierAssisted || c.def.Tier == loop.TierUnattended {
		c.def.Verify = c.required("verify", "no gate command; write the command that judges the work, like go test ./...")
		c.def.Guard = c.required("guard", "no must-always-pass command; write the full suite or the type check")
		c.def.LandVia = c.advised("land_via", "undefined; write who lands what wins: human, pr or a name")
		if worktree, _ := c.doc.Scalar("worktree"); worktree.Text != "true" {
			c.fail("worktree", "must be true at %s%s", c.def.Tier, butIs(worktree.Text))
		}
	} else {
		c.def.Verify, c.def.Guard, c.def.LandVia = c.spare("verify"), c.spare("guard"), c.spare("land_via")
	}
	c.def.Sandbox = c.oneOf("sandbox", sandboxTiers)
	if c.def.Sandbox == "none" && c.def.Tier == loop.TierUnattended {
		c.fail("sandbox", "none is never allowed at L3; write full or external")
	}
}

func (c *converter) limits() {
	c.budget()
	c.def.MaxIterations = c.count("max_iterations")
	c.def.MaxItems = c.count("max_items")
	c.def.MaxStepTimeout = c.duration("max_step_timeout")
	c.def.MaxWallClock = c.duration("max_wall_clock")
	c.def.GiveUpAfter = c.count("give_up_after")
	c.def.RetryBlockedAfter = c.count("retry_blocked_after")
	c.def.OnBlocked = c.oneOf("on_blocked", blockedPolicies)
	c.def.OnFailure = c.oneOf("on_failure", failurePolicies)
}

// budget warns of a budget that was never written and refuses one that was
// written and cannot be kept.
func (c *converter) budget() {
	text := c.advised("budget_tokens", "missing; write the most output tokens of one run, like 200000")
	if text == "" {
		return
	}
	n, err := positive(text, 1<<50)
	if err != nil {
		c.fail("budget_tokens", "missing or non-numeric (%s): %s", readiness.Quote(text), err)
	}
	c.def.BudgetTokens = n
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

// required is the text of a key without which nothing runs.
func (c *converter) required(key, problem string) string {
	if v, _ := c.doc.Scalar(key); readiness.Filled(v.Text) {
		return v.Text
	}
	c.fail(key, "%s", problem)
	return ""
}

// advised is the text of a key that should be there.
func (c *converter) advised(key, problem string) string {
	if v, _ := c.doc.Scalar(key); readiness.Filled(v.Text) {
		return v.Text
	}
	c.warn(key, "%s", problem)
	return ""
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
	c.findings = append(c.findings, readiness.Finding{
		Severity: severity, Key: key, Message: message, Line: v.Line, Column: v.Column,
	})
}

func kebab(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

func choices(allowed []string) string { return "write one of " + strings.Join(allowed, ", ") }

func butIs(text string) string {
	if text == "" {
		return "; it is missing"
	}
	return ", and is " + readiness.Quote(text)
}
