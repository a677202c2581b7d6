// Package api is the built-in agent, for people who have a key or a local model
// but no agent program: a loop of model calls and tools that speaks Anthropic
// Messages, OpenAI Chat Completions and Gemini generateContent.
//
// The loop runs where any other agent would, as a program of its own in the
// sandbox: pawl itself with a hidden argument, which calls Main. The Driver
// starts it and answers its requests for permission. It never has a vendor's key,
// never changes a file or runs a command without permission, never follows a link
// out of the tree to write, keeps no conversation, and never decides whether its
// work is good.
package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Name is the driver's entry in the roster.
const Name = "api"

// Argument makes pawl the agent: with it as the only argument, pawl calls Main.
const Argument = "__agent"

// Driver runs the built-in agent. The zero Driver can only run requests that have
// a command.
type Driver struct {
	Self string // path of pawl's own executable in the sandbox

	turns   int           // limit of model calls; 0 means maxTurns
	backoff time.Duration // pause before the first retry; 0 means firstBackoff
	silence time.Duration // how long a model may be silent; 0 means maxSilence
}

// Profile says what the driver needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{Name: Name, Own: true, Providers: []string{modelapi.Anthropic, modelapi.OpenAI, modelapi.Gemini}}
}

// Turn lets the agent work once. It blocks until the agent and everything that it
// started have ended. Without a model, or an endpoint to reach it, the error is a
// *loop.Fault.
func (d Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	t := task{
		Prompt: r.Prompt, Model: r.Model, Provider: cmp.Or(r.Models.Provider, modelapi.Anthropic), URL: r.Models.URL, Key: r.Models.Key, Dir: r.Dir,
		Effort: r.Effort, Turns: d.turns, Backoff: d.backoff, Silence: d.silence,
	}
	if err := t.validate(); err != nil {
		return agent.Result{}, err
	}
	argv := []string{d.Self, Argument}
	switch {
	case r.Command != "":
		argv = []string{"/bin/sh", "-c", r.Command + " " + Argument}
	case d.Self == "":
		return agent.Result{}, errors.New("start the built-in agent: pawl's own executable is not known")
	}
	in := new(agent.Input)
	if err := json.NewEncoder(in).Encode(t); err != nil {
		return agent.Result{}, fmt.Errorf("tell the agent its task: %w", err)
	}
	dec := &decoder{judge: func(c policy.Call) policy.Answer { return r.Judge(ctx, c) }, in: in}
	return agent.RunStream(ctx, r, agent.Program{Argv: argv, Stdin: in}, dec)
}

// task is the first line that the agent reads.
type task struct {
	Prompt   string        `json:"prompt"`
	Model    string        `json:"model"`
	Provider string        `json:"provider"`
	Effort   string        `json:"effort,omitempty"`
	URL      string        `json:"url"`
	Key      string        `json:"key"`
	Dir      string        `json:"dir"`
	Turns    int           `json:"turns,omitempty"`
	Backoff  time.Duration `json:"backoff,omitempty"`
	Silence  time.Duration `json:"silence,omitempty"`
}

// validate returns an error if something that every turn needs is missing.
func (t task) validate() error {
	f := &loop.Fault{Exit: loop.ExitUsage, What: "the built-in agent cannot work"}
	switch {
	case !slices.Contains([]string{modelapi.Anthropic, modelapi.OpenAI, modelapi.Gemini}, t.Provider):
		f.Why, f.Fix = fmt.Sprintf("it does not speak to %q", t.Provider), "set provider to anthropic, openai or gemini"
	case t.Model == "":
		f.Why, f.Fix = "no model is named", "set model in the loop's definition"
	case t.URL == "":
		f.Why, f.Fix = "it has no way to its model: it cannot use the login of another program", "set auth: inject, and give pawl a key"
	default:
		return nil
	}
	return f
}

// line is one line that the agent prints.
type line struct {
	Kind    agent.EventKind `json:"kind"`
	ID      string          `json:"id,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Text    string          `json:"text,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Bad     bool            `json:"bad,omitempty"`
	Model   string          `json:"model,omitempty"`
	Usage   *loop.Usage     `json:"usage,omitempty"`
	Reset   time.Time       `json:"reset,omitzero"`
	Failure *loop.Failure   `json:"failure,omitempty"`
	Call    *policy.Call    `json:"call,omitempty"` // for kindAsk
}

const (
	// kindAsk is a line that needs an answer on standard input.
	kindAsk agent.EventKind = "ask"
	// kindAlive only says that the model is not silent.
	kindAlive agent.EventKind = "alive"
)

// answer is one line that the agent reads after its task.
type answer struct {
	ID     string        `json:"id"`
	Answer policy.Answer `json:"answer"`
}

// decoder decodes what the agent prints, and answers its questions.
type decoder struct {
	judge func(c policy.Call) policy.Answer
	in    *agent.Input
	asks  []agent.Ask
}

var eventKinds = []agent.EventKind{
	agent.EventText, agent.EventReasoning, agent.EventCall, agent.EventReturn, agent.EventUsage, agent.EventLimit, agent.EventRetry,
	agent.EventError, agent.EventEnd,
}

// DecodeLine decodes a line.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if !bytes.HasPrefix(text, []byte("{")) || json.Unmarshal(text, &l) != nil {
		return nil, false
	}
	switch {
	case l.Kind == kindAlive:
		return nil, true
	case l.Kind == kindAsk && l.Call != nil:
		return []agent.Event{d.answerPermission(l)}, true
	case !slices.Contains(eventKinds, l.Kind) || l.Kind == agent.EventError && l.Failure == nil:
		return nil, false
	}
	e := agent.Event{
		Kind: l.Kind, ID: l.ID, Tool: l.Tool, Text: l.Text, Input: l.Input, Bad: l.Bad, Model: l.Model, Reset: l.Reset, Failure: l.Failure,
	}
	if l.Usage != nil {
		e.Usage = *l.Usage
	}
	return []agent.Event{e}, true
}

// answerPermission asks the judge and answers the agent.
func (d *decoder) answerPermission(l line) agent.Event {
	a := d.judge(*l.Call)
	if a.Ask {
		argv := l.Call.Argv
		if l.Call.Command != "" {
			argv = []string{"/bin/sh", "-c", l.Call.Command}
		}
		d.asks = append(d.asks, agent.Ask{Argv: argv, Why: a.Words})
	}
	_ = json.NewEncoder(d.in).Encode(answer{ID: l.ID, Answer: a}) // An agent that has ended needs no answer.
	return agent.Event{Kind: agent.EventPermission, ID: l.ID, Tool: l.Tool, Wanted: *l.Call, Answer: a}
}

// Finish adds what to ask a person.
func (d *decoder) Finish(r *agent.Result, _ string) { r.Asks = d.asks }
