package acp

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// methodNotFound is JSON-RPC's code for an unsupported method.
const methodNotFound = -32601

// ruleNoOnce denies a call because the program offers no permission for a single
// call.
const ruleNoOnce = "no_allow_once"

// longDetail is how many characters of a title describe a call that has no other
// description.
const longDetail = 200

// permissionOption is an answer that the program offers.
type permissionOption struct {
	ID   text `json:"optionId"`
	Kind text `json:"kind"`
}

// answerPermission answers a request for permission. Every request gets an
// answer, since the program waits for it.
func (d *decoder) answerPermission(m incoming) []agent.Event {
	var q struct {
		Tool    json.RawMessage    `json:"toolCall"`
		Options []permissionOption `json:"options"`
	}
	var t tool
	_ = json.Unmarshal(m.Params, &q) // Unreadable parts are empty, and no policy allows an unknown call.
	_ = json.Unmarshal(q.Tool, &t)
	t = d.mergeTool(t)
	events := d.flushText()
	if t.ID != "" {
		events = append(events, d.callEvents(t)...)
	}
	call := callOf(t)
	answer := d.judge(call)
	id, ok := pickOnce(q.Options, answer.Allow)
	if answer.Allow && !ok {
		answer = policy.Answer{Rule: ruleNoOnce, Words: "Leave is given for one call only, and the program asks for more."}
		id, ok = pickOnce(q.Options, false)
	}
	outcome := map[string]any{"outcome": "cancelled"}
	if ok {
		outcome = map[string]any{"outcome": "selected", "optionId": id}
	}
	sendMessage(d.in, message{ID: m.ID, Result: map[string]any{"outcome": outcome}})
	if !answer.Allow {
		d.denied = cmp.Or(answer.Words, "It is not allowed here.")
	}
	if answer.Ask {
		why := agent.OneLine(call.Tool+" "+cmp.Or(call.Command, strings.Join(call.Argv, " "), call.Host, strings.Join(call.Paths, " "), call.Detail), longDetail)
		d.asks = append(d.asks, agent.Ask{Argv: policy.Guard{}.Argv(call), Why: why})
	}
	return append(events, agent.Event{Kind: agent.EventPermission, ID: string(t.ID), Tool: call.Tool, Wanted: call, Answer: answer})
}

// pickOnce returns the option for this one call, never one for always.
func pickOnce(options []permissionOption, allow bool) (text, bool) {
	want := text("reject_once")
	if allow {
		want = "allow_once"
	}
	i := slices.IndexFunc(options, func(o permissionOption) bool { return o.Kind == want && o.ID != "" })
	if i < 0 {
		return "", false
	}
	return options[i].ID, true
}

// input holds the inputs of tools, under the names that programs use.
type input struct {
	Command  json.RawMessage `json:"command"`
	Cmd      json.RawMessage `json:"cmd"`
	URL      text            `json:"url"`
	Query    text            `json:"query"`
	File     text            `json:"file_path"`
	Camel    text            `json:"filePath"`
	Flat     text            `json:"filepath"`
	Path     text            `json:"path"`
	Absolute text            `json:"absolute_path"`
	Notebook text            `json:"notebook_path"`
	Target   text            `json:"target_file"`
	From     text            `json:"source"`
	To       text            `json:"destination"`
	Changes  map[string]any  `json:"changes"` // by path
}

// callKinds are the protocol's kinds of tools as kinds of calls.
var callKinds = map[text]policy.CallKind{
	"read": policy.CallRead, "search": policy.CallRead, "edit": policy.CallEdit, "delete": policy.CallEdit, "move": policy.CallEdit,
	"execute": policy.CallRun, "fetch": policy.CallFetch, "think": policy.CallTalk, "switch_mode": policy.CallTalk,
}

// toolKinds are the kinds of tools for which programs report no kind or a wrong
// one.
var toolKinds = map[string]policy.CallKind{
	"shell": policy.CallRun, "bash": policy.CallRun, "exec_command": policy.CallRun, "run_shell_command": policy.CallRun,
	"write": policy.CallEdit, "edit": policy.CallEdit, "text_editor": policy.CallEdit, "apply_patch": policy.CallEdit, "external_directory": policy.CallEdit,
	"read": policy.CallRead, "tree": policy.CallRead, "analyze": policy.CallRead, "grep": policy.CallRead, "glob": policy.CallRead, "list": policy.CallRead,
	"todo": policy.CallTalk, "todo__todo_write": policy.CallTalk, "todo_write": policy.CallTalk, "todowrite": policy.CallTalk,
}

// callOf describes for the policy what a tool is about to do.
func callOf(t tool) policy.Call {
	var in input
	_ = json.Unmarshal(t.Input, &in) // It may be something other than an object.
	c := policy.Call{Tool: t.shownName(), Kind: policy.CallOther, Detail: agent.OneLine(string(t.Title), longDetail)}
	if kind, ok := callKinds[t.Kind]; ok {
		c.Kind = kind
	} else if kind, ok := toolKinds[strings.ToLower(c.Tool)]; ok {
		c.Kind = kind
	}
	switch c.Kind {
	case policy.CallRun:
		c.Command, c.Argv = commandOf(in, string(t.Title))
	case policy.CallEdit, policy.CallRead:
		c.Paths = pathsOf(t, in)
	case policy.CallFetch:
		c.Detail = agent.OneLine(string(cmp.Or(in.URL, in.Query, t.Title)), longDetail)
		if at, err := url.Parse(string(in.URL)); err == nil {
			c.Host = at.Host
		}
	case policy.CallTalk, policy.CallOther:
	}
	return c
}

// commandOf returns the command that will run. If a program does not report it
// separately, it is the title.
func commandOf(in input, title string) (line string, argv []string) {
	for _, raw := range []json.RawMessage{in.Command, in.Cmd} {
		if json.Unmarshal(raw, &line) == nil && line != "" {
			return line, nil
		}
		if json.Unmarshal(raw, &argv) == nil && len(argv) > 0 {
			return "", argv
		}
	}
	return title, nil
}

// pathsOf returns all paths that the program names anywhere.
func pathsOf(t tool, in input) []string {
	var all []string
	add := func(p text) {
		if p != "" && !slices.Contains(all, string(p)) {
			all = append(all, string(p))
		}
	}
	var places []place
	var blocks []block
	_ = json.Unmarshal(t.Locations, &places) // Either may be missing.
	_ = json.Unmarshal(t.Content, &blocks)
	for _, p := range places {
		add(p.Path)
	}
	for _, b := range blocks {
		add(b.Path)
	}
	for _, p := range []text{in.File, in.Camel, in.Flat, in.Path, in.Absolute, in.Notebook, in.Target, in.From, in.To} {
		add(p)
	}
	for p := range in.Changes {
		add(text(p))
	}
	slices.Sort(all)
	return all
}
