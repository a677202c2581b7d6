package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// place is where the agent works. Its tools access files only through root, which
// no path and no link can leave.
type place struct {
	root   *os.Root
	dir    string
	report string   // file for the report; empty if none is wanted
	env    []string // for commands
	permit func(id string, c policy.Call) policy.Answer
}

// tool is a tool that the model can call.
type tool struct {
	name, about string
	schema      string // of its input
	do          func(ctx context.Context, p *place, id string, input json.RawMessage) (string, error)
}

// availableTools returns the tools of the place.
func (p *place) availableTools() []tool {
	all := []tool{
		{"read", "Read a text file, or a part of it. Each line is printed after its number and a tab, which are not part of the file.", `{
			"type":"object","properties":{
			"path":{"type":"string","description":"relative to the top of the tree"},
			"offset":{"type":"integer","description":"number of the first line, from 1"},
			"limit":{"type":"integer","description":"how many lines; 1000 if left out"}},
			"required":["path"]}`, decodingInput(readTool)},
		{"list", "List a folder. Folders end with a slash.", `{
			"type":"object","properties":{"path":{"type":"string","description":"relative to the top of the tree; . is the top"}},
			"required":["path"]}`, decodingInput(listTool)},
		{"search", "Find lines that match a regular expression (RE2) in the text files of the tree. Git's own files are left out.", `{
			"type":"object","properties":{
			"pattern":{"type":"string"},
			"path":{"type":"string","description":"only below this folder, or in this file"},
			"glob":{"type":"string","description":"only files whose path matches, such as **/*.go"}},
			"required":["pattern"]}`, decodingInput(searchTool)},
		{"edit", "Put a new text in place of an old one in a file. The old text must be exactly as it stands there, and occur once.", `{
			"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}},
			"required":["path","old","new"]}`, decodingInput(editTool)},
		{"write", "Write a whole file, with the folders above it. What was in it is gone.", `{
			"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},
			"required":["path","content"]}`, decodingInput(writeTool)},
		{"run", "Run a command with sh at the top of the tree. You get its output, both streams together, and its exit status.", `{
			"type":"object","properties":{
			"command":{"type":"string"},
			"timeout_seconds":{"type":"integer","description":"120 if left out, 300 at most"}},
			"required":["command"]}`, decodingInput(runCommandTool)},
	}
	if p.report == "" {
		return all
	}
	return append(all, tool{"report", "Write the report on your step. Use it once, when you are done.", `{
		"type":"object","properties":{
		"outcome":{"type":"string","enum":["done","blocked","failed","quiet","escalate","continue"]},
		"commands":{"type":"array","description":"what the runtime is to run when the turn is over, without a shell; with outcome continue you get what they print in your next turn","items":{"type":"object","properties":{
			"argv":{"type":"array","items":{"type":"string"}},"why":{"type":"string"},
			"expect":{"type":"object","properties":{"exit":{"type":"integer"},"output":{"type":"string"}}}},"required":["argv"]}},
		"summary":{"type":"string"},
		"reason":{"type":"string","description":"why, if it is not done"},
		"no_change":{"type":"boolean","description":"true if it is done and nothing had to change"},
		"item":{"type":"string","description":"what the step was about"},
		"items":{"type":"array","items":{"type":"string"},"description":"findings"},
		"pitfalls":{"type":"array","items":{"type":"string"}},
		"memory":{"type":"array","items":{"type":"string"},"description":"what a later run should know"},
		"state":{"type":"object","properties":{
			"priority":{"type":"array","items":{"type":"string"}},
			"watch":{"type":"array","items":{"type":"string"}},
			"noise":{"type":"array","items":{"type":"string"}}}},
		"readiness":{"type":"integer","description":"0 to 100"},
		"messages":{"type":"array","items":{"type":"object","properties":{
			"to":{"type":"string"},"kind":{"type":"string"},"content":{"type":"string"}},"required":["to","content"]}},
		"handoff":{"type":"string","description":"what comes next"},
		"confidence":{"type":"number","description":"0 to 1"}},
		"required":["outcome","summary"]}`, sendReport})
}

// decodingInput wraps a tool so that it gets its decoded input.
func decodingInput[T any](do func(context.Context, *place, string, T) (string, error)) func(context.Context, *place, string, json.RawMessage) (string, error) {
	return func(ctx context.Context, p *place, id string, input json.RawMessage) (string, error) {
		var in T
		d := json.NewDecoder(bytes.NewReader(input))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return "", fmt.Errorf("read the tool's input: %w", err)
		}
		return do(ctx, p, id, in)
	}
}

// runTool runs the tool of a call. The error is for the model.
func (p *place) runTool(ctx context.Context, id string, c call) (string, error) {
	var names []string
	for _, t := range p.availableTools() {
		if t.name == c.tool {
			text, err := t.do(ctx, p, id, json.RawMessage(c.input))
			return capOutput(text), err
		}
		names = append(names, t.name)
	}
	return "", fmt.Errorf("there is no tool %q, use one of: %s", c.tool, strings.Join(names, ", "))
}

// askPermission returns nil if the call is allowed.
func (p *place) askPermission(id string, c policy.Call) error {
	a := p.permit(id, c)
	if a.Allow {
		return nil
	}
	return fmt.Errorf("denied (%s): %s", a.Rule, a.Words)
}

// sendReport writes the report. It keeps unknown fields, which newer readers may
// need.
func sendReport(_ context.Context, p *place, _ string, input json.RawMessage) (string, error) {
	if _, err := report.Parse(input); err != nil {
		return "", err
	}
	if len(bytes.TrimSpace(input)) == 0 {
		return "", errors.New("the report is empty")
	}
	if err := os.WriteFile(p.report, input, 0o600); err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	return "reported", nil
}

// maxOutputBytes is how much of a tool's output the model gets.
const maxOutputBytes = 30_000

// capOutput shortens a text that is too long, and says so in it.
func capOutput(text string) string {
	if len(text) <= maxOutputBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxOutputBytes], "") + fmt.Sprintf("\n[%d bytes left out]", len(text)-maxOutputBytes)
}
