package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/report"
)

// place is where the agent works. Its tools touch files through root alone,
// which no path and no link leaves.
type place struct {
	root   *os.Root
	dir    string
	report string   // file to write the report to; empty: none is wanted
	env    []string // of commands
	leave  func(id string, c policy.Call) policy.Answer
}

// tool is what the model can use.
type tool struct {
	name, about string
	schema      string // of its input
	do          func(ctx context.Context, p *place, id string, input json.RawMessage) (string, error)
}

// tools are those that the place has.
func (p *place) tools() []tool {
	all := []tool{
		{"read", "Read a text file, or a part of it. Each line is printed after its number and a tab, which are not part of the file.", `{
			"type":"object","properties":{
			"path":{"type":"string","description":"relative to the top of the tree"},
			"offset":{"type":"integer","description":"number of the first line, from 1"},
			"limit":{"type":"integer","description":"how many lines; 1000 if left out"}},
			"required":["path"]}`, with(read)},
		{"list", "List a folder. Folders end with a slash.", `{
			"type":"object","properties":{"path":{"type":"string","description":"relative to the top of the tree; . is the top"}},
			"required":["path"]}`, with(list)},
		{"search", "Find lines that match a regular expression (RE2) in the text files of the tree. Git's own files are left out.", `{
			"type":"object","properties":{
			"pattern":{"type":"string"},
			"path":{"type":"string","description":"only below this folder, or in this file"},
			"glob":{"type":"string","description":"only files whose path matches, such as **/*.go"}},
			"required":["pattern"]}`, with(search)},
		{"edit", "Put a new text in place of an old one in a file. The old text must be exactly as it stands there, and occur once.", `{
			"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}},
			"required":["path","old","new"]}`, with(edit)},
		{"write", "Write a whole file, with the folders above it. What was in it is gone.", `{
			"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},
			"required":["path","content"]}`, with(write)},
		{"run", "Run a command with sh at the top of the tree. You get its output, both streams together, and its exit status.", `{
			"type":"object","properties":{
			"command":{"type":"string"},
			"timeout_seconds":{"type":"integer","description":"120 if left out, 300 at most"}},
			"required":["command"]}`, with(run)},
	}
	if p.report == "" {
		return all
	}
	return append(all, tool{"report", "Write the report on your step. Use it once, when you are done.", `{
		"type":"object","properties":{
		"outcome":{"type":"string","enum":["done","blocked","failed","quiet","escalate"]},
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
		"handoff":{"type":"string"}},
		"required":["outcome","summary"]}`, sendReport})
}

// with reads the input of a tool.
func with[T any](do func(context.Context, *place, string, T) (string, error)) func(context.Context, *place, string, json.RawMessage) (string, error) {
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

// use does what a call says. The error is for the model.
func (p *place) use(ctx context.Context, id string, c call) (string, error) {
	var names []string
	for _, t := range p.tools() {
		if t.name == c.tool {
			text, err := t.do(ctx, p, id, json.RawMessage(c.input))
			return capped(text), err
		}
		names = append(names, t.name)
	}
	return "", fmt.Errorf("there is no tool %q, use one of: %s", c.tool, strings.Join(names, ", "))
}

// may is nil if the call is allowed.
func (p *place) may(id string, c policy.Call) error {
	a := p.leave(id, c)
	if a.Allow {
		return nil
	}
	return fmt.Errorf("denied (%s): %s", a.Rule, a.Words)
}

// sendReport keeps the fields that are unknown here: newer readers may want them.
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

// mostOutput is how much of a tool's output the model gets, in bytes.
const mostOutput = 30_000

// capped is a text that is not too long, and says so where it was.
func capped(text string) string {
	if len(text) <= mostOutput {
		return text
	}
	return strings.ToValidUTF8(text[:mostOutput], "") + fmt.Sprintf("\n[%d bytes left out]", len(text)-mostOutput)
}
