package acp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// settingChoice is a request that sets something for the conversation.
type settingChoice struct {
	method string
	params map[string]any
	fail   string // why it cannot be set; empty if it can
}

// sendChoices sends one request after the other, and then the prompt.
func (d *decoder) sendChoices(rest []settingChoice) []agent.Event {
	if len(rest) == 0 {
		return d.sendPrompt()
	}
	c := rest[0]
	if c.fail != "" {
		return d.endTurn(&loop.Failure{Class: loop.FailureRequest, Text: c.fail})
	}
	c.params["sessionId"] = d.session
	d.sendQuestion(c.method, c.params, func(json.RawMessage) []agent.Event { return d.sendChoices(rest[1:]) })
	return nil
}

// askingModes are modes in which programs ask before they act, the strictest
// first.
var askingModes = []text{"read-only", "approve", "default", "ask", "manual", "untrusted", "always-ask"}

// chooseMode returns nothing if the program is in a mode in which it asks, or has
// no modes.
func (d *decoder) chooseMode(c conversation) []settingChoice {
	for _, want := range askingModes {
		if slices.ContainsFunc(c.Modes.Available, func(o option) bool { return o.ID == want }) {
			if c.Modes.Current == want {
				return nil
			}
			return []settingChoice{{method: "session/set_mode", params: map[string]any{"modeId": want}}}
		}
	}
	s, ok := c.findSetting("mode")
	if !ok || len(c.Modes.Available) > 0 {
		return nil
	}
	for _, want := range askingModes {
		if s.Current != want && slices.ContainsFunc(s.Options, func(o option) bool { return o.Value == want }) {
			return []settingChoice{{method: "session/set_config_option", params: map[string]any{"configId": s.ID, "value": want}}}
		}
	}
	return nil
}

// chooseModel selects the request's model, unless the program was started with
// it.
func (d *decoder) chooseModel(c conversation) []settingChoice {
	want := text(d.r.Model)
	if want == "" || d.trusted {
		return nil
	}
	s, ok := c.findSetting("model")
	switch {
	case c.Models.Current == want || s.Current == want:
		return nil
	case slices.ContainsFunc(c.Models.Available, func(o option) bool { return o.Model == want }):
		return []settingChoice{{method: "session/set_model", params: map[string]any{"modelId": want}}}
	case ok && slices.ContainsFunc(s.Options, func(o option) bool { return o.Value == want }):
		return []settingChoice{{method: "session/set_config_option", params: map[string]any{"configId": s.ID, "value": want}}}
	}
	return []settingChoice{{fail: fmt.Sprintf("it offers no model %q; leave `model` out, or name it in agent_command", want)}}
}
