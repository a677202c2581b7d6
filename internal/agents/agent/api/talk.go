package api

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// maxTurns is how many model calls a turn has.
	maxTurns = 50
	// keptMessages is how many of the newest messages keep the output of
	// their tools when the conversation is too long.
	keptMessages = 4
	// leftOutText replaces an output that was removed.
	leftOutText = "(left out to make room; use the tool again if you need it)"
)

// message is a part of the conversation: text, calls of tools by the model, or
// their results.
type message struct {
	model   bool // written by the model
	text    string
	calls   []call
	results []result
}

// call is a model's call of a tool.
type call struct {
	id    string // chosen by the model
	tool  string
	input string // JSON, if the model made no mistake
	sign  string // sent back unchanged with the call
}

// result is the result of a tool.
type result struct {
	call call
	text string
	bad  bool
}

// conversation is what a model is sent.
type conversation struct {
	model    string
	effort   string // how much the model should think; empty means the vendor's default
	system   string
	tools    []tool
	messages []message
}

// talk is a turn: the conversation continues until the model has nothing more to
// do.
type talk struct {
	model    *model
	place    *place
	wire     *wire
	maxCalls int
	c        conversation

	calls     int // of tools, so far
	trimmed   bool
	continued bool
	reminded  bool
}

// runTurn takes the turn.
func (t *talk) runTurn(ctx context.Context) *loop.Failure {
	for range t.maxCalls {
		r, f := t.model.askRetrying(ctx, t.c)
		switch {
		case f != nil && f.Class == loop.FailureOverflow && t.trimOutputs():
			continue
		case f != nil:
			return f
		}
		if len(bytes.TrimSpace(r.thought)) > 0 {
			t.wire.printLine(line{Kind: agent.EventReasoning, Text: string(r.thought)})
		}
		if len(bytes.TrimSpace(r.text)) > 0 {
			t.wire.printLine(line{Kind: agent.EventText, Text: string(r.text)})
		}
		done, f := t.takeReply(ctx, r)
		if done || f != nil {
			return f
		}
	}
	return &loop.Failure{Class: loop.FailureTurns, Text: fmt.Sprintf("it used up its %d model calls", t.maxCalls), Typed: true}
}

// takeReply acts on an answer. It returns true if the turn is over.
func (t *talk) takeReply(ctx context.Context, r reply) (bool, *loop.Failure) {
	switch {
	case r.stop == stopRefusal:
		return true, &loop.Failure{Class: loop.FailureRefusal, Text: agent.OneLine(cmp.Or(string(r.text), "the model declined"), agent.LongText), Typed: true}
	case r.stop == stopMax && t.continued:
		return true, &loop.Failure{Class: loop.FailureMaxTokens, Text: "two answers were cut at their limit", Typed: true}
	case r.stop == stopMax:
		t.continued = true
		t.addMessages(string(r.text), "Your answer was cut at its limit. Go on where it stopped, in smaller pieces.")
	case len(r.calls) > 0:
		t.runCalls(ctx, r)
	case len(bytes.TrimSpace(r.text)) > 0:
		return true, nil
	case t.reminded:
		return true, &loop.Failure{Class: loop.FailureMalformed, Text: "the model answered with nothing"}
	default:
		t.reminded = true
		t.addMessages("", "You said nothing. If the task is done, say in a few sentences what you did; else go on.")
	}
	return false, nil
}

// addMessages adds the model's text and an answer to it.
func (t *talk) addMessages(said, text string) {
	if strings.TrimSpace(said) != "" {
		t.c.messages = append(t.c.messages, message{model: true, text: said})
	}
	t.c.messages = append(t.c.messages, message{text: text})
}

// runCalls runs the tools that the model calls, one after the other.
func (t *talk) runCalls(ctx context.Context, r reply) {
	results := make([]result, 0, len(r.calls))
	for _, c := range r.calls {
		t.calls++
		id := strconv.Itoa(t.calls)
		t.wire.printLine(line{Kind: agent.EventCall, ID: id, Tool: cmp.Or(c.tool, "?"), Input: inputJSON(c.input)})
		text, err := t.place.runTool(ctx, id, c)
		if err != nil {
			text = err.Error()
		}
		t.wire.printLine(line{Kind: agent.EventReturn, ID: id, Tool: c.tool, Text: text, Bad: err != nil})
		results = append(results, result{call: c, text: text, bad: err != nil})
	}
	t.c.messages = append(t.c.messages, message{model: true, text: string(r.text), calls: r.calls}, message{results: results})
}

// trimOutputs shortens the conversation once, by removing the oldest outputs. It
// returns false if there is nothing to remove.
func (t *talk) trimOutputs() bool {
	if t.trimmed {
		return false
	}
	t.trimmed = true
	for _, m := range t.c.messages[:max(0, len(t.c.messages)-keptMessages)] {
		for i := range m.results {
			m.results[i].text = leftOutText
		}
	}
	if len(t.c.messages) <= keptMessages { // Only the newest are left: half of each long one is removed.
		return t.halveOutputs()
	}
	return true
}

// halveOutputs cuts long outputs.
func (t *talk) halveOutputs() bool {
	const long = 2000
	cut := false
	for _, m := range t.c.messages {
		for i, r := range m.results {
			if len(r.text) > long {
				m.results[i].text = strings.ToValidUTF8(r.text[:long/2], "") + "\n" + leftOutText
				cut = true
			}
		}
	}
	return cut
}
