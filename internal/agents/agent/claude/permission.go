package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// longDetail is how many characters describe a call that has no other
// description.
const longDetail = 200

// answerControl answers a request of the program. Every readable request gets an
// answer, since the program waits for it.
func (d *decoder) answerControl(line []byte) []agent.Event {
	var q struct {
		ID      text `json:"request_id"`
		Request struct {
			Subtype text            `json:"subtype"`
			Tool    text            `json:"tool_name"`
			Input   json.RawMessage `json:"input"`
			UseID   text            `json:"tool_use_id"`
		} `json:"request"`
	}
	if json.Unmarshal(line, &q) != nil || q.ID == "" {
		return nil
	}
	if q.Request.Subtype != "can_use_tool" {
		d.sendAnswer(map[string]any{"subtype": "error", "request_id": q.ID, "error": "pawl does not do " + string(q.Request.Subtype)})
		return nil
	}
	call := callOf(string(q.Request.Tool), q.Request.Input)
	answer := d.judge(call)
	d.sendAnswer(map[string]any{"subtype": "success", "request_id": q.ID, "response": decisionJSON(answer, q.Request.Input)})
	if answer.Ask {
		d.asks = append(d.asks, askFor(call))
	}
	return []agent.Event{{
		Kind: agent.EventPermission, ID: string(q.Request.UseID), Tool: call.Tool, Wanted: call, Answer: answer,
	}}
}

// sendAnswer sends an answer. If the program has ended, that shows elsewhere.
func (d *decoder) sendAnswer(response any) {
	_ = sendLine(d.in, map[string]any{"type": "control_response", "response": response})
}

// decisionJSON returns the answer in the program's form.
func decisionJSON(a policy.Answer, input json.RawMessage) any {
	if !a.Allow {
		return map[string]any{"behavior": "deny", "message": cmp.Or(a.Words, "this is not allowed here")}
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return map[string]any{"behavior": "allow", "updatedInput": input}
}

// askFor returns what to ask a person. The program runs commands in bash.
func askFor(c policy.Call) agent.Ask {
	ask := agent.Ask{Why: strings.TrimSpace(c.Tool + " " + cmp.Or(c.Detail, c.Command, c.Host, strings.Join(c.Paths, " ")))}
	if c.Kind == policy.CallRun {
		ask.Argv = []string{"bash", "-c", c.Command}
	}
	return ask
}

// callOf describes for the policy what a tool is about to do.
func callOf(tool string, input json.RawMessage) policy.Call {
	var in struct {
		Command     text `json:"command"`
		Description text `json:"description"`
		File        text `json:"file_path"`
		Notebook    text `json:"notebook_path"`
		Path        text `json:"path"`
		URL         text `json:"url"`
		Query       text `json:"query"`
	}
	_ = json.Unmarshal(input, &in) // Unreadable parts are empty, and no policy allows an unknown call.
	c := policy.Call{Tool: tool, Kind: policy.CallOther, Detail: agent.OneLine(string(in.Description), longDetail)}
	switch tool {
	case "Bash":
		c.Kind, c.Command = policy.CallRun, string(in.Command)
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		c.Kind, c.Paths = policy.CallEdit, []string{string(cmp.Or(in.File, in.Notebook))}
	case "Read", "Glob", "Grep", "LS":
		c.Kind, c.Paths = policy.CallRead, []string{string(cmp.Or(in.File, in.Path, "."))}
	case "WebFetch", "WebSearch":
		c.Kind, c.Detail = policy.CallFetch, agent.OneLine(string(cmp.Or(in.URL, in.Query)), longDetail)
		if at, err := url.Parse(string(in.URL)); err == nil {
			c.Host = at.Hostname()
		}
	case "Task", "Agent", "TodoWrite":
		c.Kind = policy.CallTalk
	default:
		var flat bytes.Buffer
		if json.Compact(&flat, input) == nil {
			c.Detail = agent.OneLine(flat.String(), longDetail)
		}
	}
	return c
}
