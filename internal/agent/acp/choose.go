package acp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// choice is a question by which something is set.
type choice struct {
	method string
	params map[string]any
	fail   string // what cannot be done; empty: nothing
}

// choose puts one question after the other, and then the prompt.
func (d *decoder) choose(rest []choice) []agent.Event {
	if len(rest) == 0 {
		return d.prompt()
	}
	c := rest[0]
	if c.fail != "" {
		return d.fail(&loop.Failure{Class: loop.FailureRequest, Text: c.fail})
	}
	c.params["sessionId"] = d.session
	d.ask(c.method, c.params, func(json.RawMessage) []agent.Event { return d.choose(rest[1:]) })
	return nil
}

// asking are modes in which programs ask before they act, the strictest first.
var asking = []text{"read-only", "approve", "default", "ask", "manual", "untrusted", "always-ask"}

// chooseMode is nothing if the program is in a mode in which it asks, or has
// none.
func (d *decoder) chooseMode(c conversation) []choice {
	for _, want := range asking {
		if slices.ContainsFunc(c.Modes.Available, func(o option) bool { return o.ID == want }) {
			if c.Modes.Current == want {
				return nil
			}
			return []choice{{method: "session/set_mode", params: map[string]any{"modeId": want}}}
		}
	}
	s, ok := c.setting("mode")
	if !ok || len(c.Modes.Available) > 0 {
		return nil
	}
	for _, want := range asking {
		if s.Current != want && slices.ContainsFunc(s.Options, func(o option) bool { return o.Value == want }) {
			return []choice{{method: "session/set_config_option", params: map[string]any{"configId": s.ID, "value": want}}}
		}
	}
	return nil
}

// chooseModel sets the model of the request, if the program was not told
// before.
func (d *decoder) chooseModel(c conversation) []choice {
	want := text(d.r.Model)
	if want == "" || d.trusted {
		return nil
	}
	s, ok := c.setting("model")
	switch {
	case c.Models.Current == want || s.Current == want:
		return nil
	case slices.ContainsFunc(c.Models.Available, func(o option) bool { return o.Model == want }):
		return []choice{{method: "session/set_model", params: map[string]any{"modelId": want}}}
	case ok && slices.ContainsFunc(s.Options, func(o option) bool { return o.Value == want }):
		return []choice{{method: "session/set_config_option", params: map[string]any{"configId": s.ID, "value": want}}}
	}
	return []choice{{fail: fmt.Sprintf("it offers no model %q; leave `model` out, or name it in agent_command", want)}}
}
