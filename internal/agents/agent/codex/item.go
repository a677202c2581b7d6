package codex

import (
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
)

// item is one thing in a turn: a text, a command, a change of files.
type item struct {
	ID      text            `json:"id"`
	Type    text            `json:"type"`
	Text    text            `json:"text"`
	Summary json.RawMessage `json:"summary"`
	Status  text            `json:"status"`
	Command text            `json:"command"`
	Cwd     text            `json:"cwd"`
	Output  text            `json:"aggregatedOutput"`
	Exit    int             `json:"exitCode"`
	Server  text            `json:"server"`
	Tool    text            `json:"tool"`
	Args    json.RawMessage `json:"arguments"`
	Result  json.RawMessage `json:"result"`
	Query   text            `json:"query"`
	Changes []change        `json:"changes"`
}

// change is what a patch does to one file.
type change struct {
	Path text `json:"path"`
	Kind struct {
		Type text `json:"type"`
		To   text `json:"move_path"`
	} `json:"kind"`
}

// silentItems are items that are neither an action nor a text of the agent.
var silentItems = map[text]bool{
	"userMessage": true, "hookPrompt": true, "enteredReviewMode": true, "exitedReviewMode": true, "contextCompaction": true, "": true,
}

// items follows the items of a turn.
type items struct {
	open  map[string]item // tools in progress
	seen  map[string]bool // tools whose call was reported
	count int             // texts and actions so far
}

// startEvents reports a tool's call.
func (s *items) startEvents(it item) []agent.Event {
	if silentItems[it.Type] || it.Type == "agentMessage" || it.Type == "reasoning" || it.Type == "plan" || s.seen[string(it.ID)] {
		return nil
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[string(it.ID)], s.open[string(it.ID)] = true, it
	return []agent.Event{{Kind: agent.EventCall, ID: string(it.ID), Tool: it.toolName(), Input: it.inputJSON()}}
}

// endEvents reports texts, and results of tools. The text of another agent, which
// this one started, is not its own text.
func (s *items) endEvents(it item, own bool) []agent.Event {
	if silentItems[it.Type] {
		return nil
	}
	s.count++
	switch it.Type {
	case "agentMessage":
		if own {
			return []agent.Event{{Kind: agent.EventText, Text: string(it.Text)}}
		}
		return []agent.Event{{Kind: agent.EventReasoning, Text: string(it.Text)}}
	case "reasoning", "plan":
		var parts []text
		_ = json.Unmarshal(it.Summary, &parts) // Reasoning may be hidden.
		var said strings.Builder
		for _, p := range append([]text{it.Text}, parts...) {
			said.WriteString(string(p))
		}
		if said.Len() == 0 {
			return nil
		}
		return []agent.Event{{Kind: agent.EventReasoning, Text: said.String()}}
	}
	events := s.startEvents(it)
	if _, open := s.open[string(it.ID)]; !open {
		return nil // It was reported already.
	}
	delete(s.open, string(it.ID))
	return append(events, agent.Event{
		Kind: agent.EventReturn, ID: string(it.ID), Tool: it.toolName(), Text: it.outputText(), Bad: it.Exit != 0 || it.Status != "completed" && it.Status != "",
	})
}

func (it item) toolName() string {
	if it.Tool != "" {
		return strings.TrimPrefix(string(it.Server+"/"+it.Tool), "/")
	}
	return string(it.Type)
}

func (it item) inputJSON() json.RawMessage {
	in := map[string]any{}
	switch {
	case it.Command != "":
		in["command"], in["cwd"] = it.Command, it.Cwd
	case it.Changes != nil:
		in["changes"] = it.changedPaths()
	case it.Query != "":
		in["query"] = it.Query
	case it.Args != nil:
		return it.Args
	}
	raw, _ := json.Marshal(in) // Encoding strings never fails.
	return raw
}

// changedPaths returns the files that a patch writes, moves or removes.
func (it item) changedPaths() []string {
	var all []string
	for _, c := range it.Changes {
		all = append(all, string(c.Path))
		if c.Kind.To != "" {
			all = append(all, string(c.Kind.To))
		}
	}
	return all
}

func (it item) outputText() string {
	if it.Status == "declined" {
		return "declined"
	}
	if it.Output == "" && it.Result != nil {
		return string(it.Result)
	}
	return string(it.Output)
}
