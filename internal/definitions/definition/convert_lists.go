package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

// readScope reads the globs that the loop may touch. None of them may be the whole tree,
// however it is written. The finding of the check about the first bad item is not
// repeated.
func (c *converter) readScope() []string {
	checked := false
	return c.readGlobs("scope", c.config.Scope, func(item readiness.Value) bool {
		problem := readiness.ScopeProblem(item.Text)
		switch {
		case problem != "" && !checked:
			checked = true
		case problem != "":
			c.reportErrorAt("scope", item, problem)
		case isWholeTree(item.Text):
			c.reportErrorAt("scope", item, wholeTreeProblem(item.Text))
		default:
			return true
		}
		return false
	})
}

func isWholeTree(glob string) bool { return len(glob) <= maxPatternBytes && isUnbounded(glob) }

func wholeTreeProblem(glob string) string {
	return readiness.Quote(glob) + " is the whole tree; name a directory or a kind of file, like src/** or **/*.go"
}

// ScopeProblem says why a glob cannot be in a scope; empty if it can.
func ScopeProblem(glob string) string {
	if problem := readiness.ScopeProblem(glob); problem != "" {
		return problem
	}
	if isWholeTree(glob) {
		return wholeTreeProblem(glob)
	}
	if problem := patternProblem(glob); problem != "" {
		return readiness.Quote(glob) + ": " + problem
	}
	return ""
}

// readOptionalGlobs reads an optional list of globs, which may be the whole tree.
func (c *converter) readOptionalGlobs(key string) []string {
	return c.readGlobs(key, c.readList(key), func(item readiness.Value) bool {
		switch {
		case readiness.HasPlaceholder(item.Text):
			c.reportErrorAt(key, item, "unfilled placeholder ("+readiness.Quote(item.Text)+"); write a glob or remove the item")
		case item.Text == "":
			c.reportErrorAt(key, item, "an empty item; write a glob or remove it")
		default:
			return true
		}
		return false
	})
}

// readInstructions reads which files an agent is given: globs, or only the word none.
func (c *converter) readInstructions() []string {
	all := c.readOptionalGlobs("instructions")
	if len(all) > 1 && slices.Contains(all, "none") {
		c.reportError("instructions", "none stands beside other entries; write none alone, or the files alone")
		return nil
	}
	return all
}

// readGlobs returns the items that are allowed and are globs.
func (c *converter) readGlobs(key string, items []readiness.Value, allowed func(readiness.Value) bool) []string {
	if len(items) > maxPatterns {
		c.reportError(key, "%d patterns, at most %d; write wider ones", len(items), maxPatterns)
		return nil
	}
	var good []string
	for _, item := range items {
		if !allowed(item) {
			continue
		}
		if p := patternProblem(item.Text); p != "" {
			c.reportErrorAt(key, item, readiness.Quote(item.Text)+": "+p)
			continue
		}
		good = append(good, item.Text)
	}
	return good
}

func (c *converter) reportErrorAt(key string, item readiness.Value, problem string) {
	c.reportAt(readiness.SeverityError, key, key+": "+problem, item)
}

// readEnv reads names of environment variables. Their values are never in the file.
func (c *converter) readEnv() []string {
	var names []string
	for _, item := range c.readList("env") {
		if !variableName(item.Text) {
			c.reportErrorAt("env", item, readiness.Quote(item.Text)+" is not the name of a variable; write names only, like CI")
			continue
		}
		names = append(names, item.Text)
	}
	return names
}

// readStopLines reads conditions at which a run halts; the word none is an empty list.
func (c *converter) readStopLines() []string {
	var conditions []string
	for _, item := range c.readList("stop_lines") {
		if item.Text == "none" {
			continue
		}
		if c.def.Protocol == loop.ProtocolBoot {
			c.reportErrorAt("stop_lines", item, "the boot protocol takes its stop lines from the boot repository; change them there, and remove the key")
			return nil
		}
		if _, err := stopline.ParseConditions(append(conditions, item.Text)); err != nil {
			c.reportErrorAt("stop_lines", item, err.Error())
			continue
		}
		conditions = append(conditions, item.Text)
	}
	return conditions
}

// readNodeLabels reads labels of nodes; the word none is an empty list.
func (c *converter) readNodeLabels() []string {
	var labels []string
	for _, item := range c.readList("node_labels") {
		switch {
		case item.Text == "none":
		case !loop.IsNodeName(item.Text):
			c.reportErrorAt("node_labels", item, readiness.Quote(item.Text)+" cannot be a label of a node; "+loop.NodeNameForm)
		case !slices.Contains(labels, item.Text):
			labels = append(labels, item.Text)
		}
	}
	slices.Sort(labels)
	return labels
}

// readNetworkHosts reads which hosts may be reached; the word none is an empty list. It
// does not look names up.
func (c *converter) readNetworkHosts() []string {
	var hosts []string
	for _, item := range c.readList("network") {
		switch {
		case item.Text == "none":
		case strings.ContainsAny(item.Text, "/@ \t"):
			c.reportErrorAt("network", item, readiness.Quote(item.Text)+" is no host; write HOST, HOST:PORT or *.HOST, without a scheme or a path")
		default:
			hosts = append(hosts, item.Text)
		}
	}
	return hosts
}

// readCommands reads the first words of commands that pawl runs for the agent; the word
// none is an empty list.
func (c *converter) readCommands() [][]string {
	var prefixes [][]string
	for _, item := range c.readList("commands") {
		words := strings.Fields(item.Text)
		switch {
		case item.Text == "none" || len(words) == 0:
		case strings.ContainsAny(item.Text, "'\"`$;&|<>()*?[]{}\\"):
			c.reportErrorAt("commands", item, readiness.Quote(item.Text)+" has a character of the shell in it; write the first words of a command, like go test")
		case policy.RunsOther(words):
			c.reportErrorAt("commands", item, readiness.Quote(item.Text)+" runs another command, which is judged by itself; write that one")
		default:
			prefixes = append(prefixes, words)
		}
	}
	return prefixes
}

// readModelTools reads which tools of the model's vendor are allowed; the word none is an
// empty list.
func (c *converter) readModelTools() []loop.ModelTool {
	known := valuesOf("model_tools")
	var tools []loop.ModelTool
	for _, item := range c.readList("model_tools") {
		switch tool := loop.ModelTool(item.Text); {
		case item.Text == "none":
		case !tool.IsKnown():
			problem := readiness.Quote(item.Text) + " is unknown; "
			if near := readiness.NearestName(item.Text, known); near != "" {
				problem += "did you mean " + near + "? "
			}
			c.reportErrorAt("model_tools", item, problem+writeOneOf(known)+", or type:WORD with the vendor's own word for a tool")
		case !slices.Contains(tools, tool):
			tools = append(tools, tool)
		}
	}
	return tools
}

// readAutoland reads the classes that may land without a human; the word none is an empty
// list.
func (c *converter) readAutoland() []string {
	known := valuesOf("autoland")
	var classes []string
	for _, item := range c.readList("autoland") {
		switch {
		case item.Text == "none":
		case !slices.Contains(known, item.Text):
			c.reportAt(readiness.SeverityError, "autoland", "autoland: "+readiness.Quote(item.Text)+" is unknown; "+writeOneOf(known), item)
		default:
			classes = append(classes, item.Text)
		}
	}
	return classes
}

// mostEvents is how many events one loop can wait for.
const mostEvents = 20

// readEvents reads which events fire the loop; the word none is an empty list.
func (c *converter) readEvents() []string {
	items := c.readList("on")
	if len(items) > mostEvents {
		c.reportErrorAt("on", items[mostEvents], fmt.Sprintf("%d events, at most %d; write wider ones, or a second loop", len(items), mostEvents))
		return nil
	}
	var events []string
	for _, item := range items {
		if item.Text == "none" {
			continue
		}
		s, err := loop.ParseEventSource(item.Text)
		problem := ""
		switch {
		case err != nil:
			problem = err.Error()
		case s.Kind == loop.OnFile:
			problem = patternProblem(s.What)
		case s.Kind == loop.OnLoop && s.What == c.def.Name:
			problem = "a loop cannot be fired by its own end: it would never stop"
		}
		switch {
		case problem != "":
			c.reportErrorAt("on", item, readiness.Quote(item.Text)+": "+problem)
		case !slices.Contains(events, s.String()):
			events = append(events, s.String())
		}
	}
	return events
}

// mostInvariants is how many invariants a loop can have.
const mostInvariants = 50

// readInvariants reads the invariants as gates; the word none is an empty list.
func (c *converter) readInvariants() []loop.Gate {
	items := c.readList("invariants")
	if len(items) > mostInvariants {
		c.reportErrorAt("invariants", items[mostInvariants], fmt.Sprintf("%d invariants, at most %d; join some with and", len(items), mostInvariants))
		return nil
	}
	var gates []loop.Gate
	for _, item := range items {
		if item.Text == "none" {
			continue
		}
		if _, err := invariant.Compile(item.Text); err != nil {
			c.reportErrorAt("invariants", item, readiness.Quote(item.Text)+": "+err.Error())
			continue
		}
		gates = append(gates, loop.Gate{Name: fmt.Sprintf("invariant-%d", len(gates)+1), Kind: loop.GateInvariant, Check: item.Text})
	}
	return gates
}

// readReviewer reads the criteria of a reviewer and who it is as a gate; the word none is
// no gate. The model that does the work may not judge it: what the meter sees decides
// about that in a run, and what is written can be refused before.
func (c *converter) readReviewer() []loop.Gate {
	criteria, by := c.optionalText("reviewer"), loop.Reviewer{Agent: c.optionalText("reviewer_agent"), Model: c.optionalText("reviewer_model")}
	if criteria == "" || criteria == "none" {
		for key, value := range map[string]string{"reviewer_agent": by.Agent, "reviewer_model": by.Model} {
			if value != "" {
				c.reportWarning(key, "has no effect without reviewer; write there what the reviewer has to find")
			}
		}
		return nil
	}
	switch maker, theirs := strings.TrimPrefix(c.def.Agent, "@"), strings.TrimPrefix(by.Agent, "@"); {
	case by.Model != "" && strings.EqualFold(by.Model, c.def.Model):
		c.reportError("reviewer_model", "%s is the model that does the work; write another one", readiness.Quote(by.Model))
	case by.Model == "" && theirs != "" && theirs == maker:
		c.reportError("reviewer_agent", "%s does the work, and may not review it; write another agent, or another model as reviewer_model", readiness.Quote(by.Agent))
	}
	return []loop.Gate{{Name: "reviewer", Kind: loop.GateReviewer, Check: criteria, Reviewer: by}}
}

func variableName(text string) bool {
	if text == "" || digitsOnly(text[:1]) {
		return false
	}
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// readList returns the items of an optional list; nested keys are refused.
func (c *converter) readList(key string) []readiness.Value {
	items := c.doc.List(key)
	if e := c.doc.findEntry(key); e != nil && e.block && len(items) == 0 {
		c.reportError(key, "expected a list, found nested keys; write - item lines or [a, b]")
	}
	return items
}

// reportUnsupported reports keys that are defined but not supported yet.
func (c *converter) reportUnsupported() {
	for _, key := range NotYet {
		e := c.doc.findEntry(key)
		if e == nil || e.scalar.Text == "" && !e.block && len(e.items) == 0 {
			continue
		}
		switch byDefault, ok := notYetDefaults[key]; {
		case ok && e.scalar.Text == byDefault, strings.TrimSpace(e.scalar.Text) == "[]":
		default:
			c.reportError(key, "not supported by this version yet; remove it to run")
		}
	}
}

// reportUnknownKeys reports unknown keys, with the key that was probably meant, and
// repeated keys. One that is a misspelling of a key that the file lacks is an error: what it
// says would have no effect, and a cap or a cadence would be missing.
func (c *converter) reportUnknownKeys() {
	known := slices.Concat(knownKeys, c.doc.suggested)
	lacking := slices.DeleteFunc(slices.Clone(known), func(key string) bool {
		return c.doc.findEntry(key) != nil || slices.Contains(c.doc.taken, key)
	})
	for _, key := range c.doc.Keys() {
		name := strings.Trim(readiness.Quote(key.Name), "'")
		at := readiness.Value{Line: key.Line, Column: key.Column}
		problem := "unknown key"
		switch {
		case key.Differs:
			c.more = append(c.more, readiness.Finding{
				Kind: readiness.KindOwn, Severity: readiness.SeverityError, Key: key.Name, Line: key.Line, Column: key.Column,
				Message: fmt.Sprintf("%s: line %d and line %d have different values; remove one of them", name, key.Repeats, key.Line),
			})
			continue
		case key.Repeats > 0:
			problem = fmt.Sprintf("line %d has the same key and value already", key.Repeats)
		case slices.Contains(knownKeys, key.Name), readiness.IsFreeKey(key.Name):
			continue
		default:
			if meant := readiness.Misspelt(key.Name, lacking); meant != "" {
				c.more = append(c.more, readiness.Finding{
					Kind: readiness.KindOwn, Severity: readiness.SeverityError, Key: key.Name, Meant: meant, Line: key.Line, Column: key.Column,
					Message: fmt.Sprintf("%s: unknown key; did you mean %s? Keys of your own begin with x-", name, meant),
				})
				continue
			}
			if similar := readiness.NearestName(key.Name, known); similar != "" {
				problem += "; did you mean " + similar + "?"
			}
		}
		c.reportAt(readiness.SeverityWarning, key.Name, name+": "+problem, at)
	}
}
