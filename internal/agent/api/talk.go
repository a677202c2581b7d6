package api

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

const (
	// mostTurns is how many model calls a turn has.
	mostTurns = 50
	// kept is how many of the newest messages keep their tool outputs when room
	// has to be made.
	kept = 4
	// leftOut stands where an output was.
	leftOut = "(left out to make room; use the tool again if you need it)"
)

// message is a part of the conversation: words, calls of tools by the model, or
// what the tools gave back.
type message struct {
	model   bool // it is the model's
	text    string
	calls   []call
	results []result
}

// call is a tool that the model uses.
type call struct {
	id    string // the model's own
	tool  string
	input string // JSON, if the model made no mistake
	sign  string // goes back with the call as it came
}

// result is what a tool gave back.
type result struct {
	call call
	text string
	bad  bool
}

// conversation is what a model is sent.
type conversation struct {
	model    string
	effort   string // how hard the model is to think; empty: as its vendor has it
	system   string
	tools    []tool
	messages []message
}

// talk is a turn: the conversation goes on until the model has nothing more to
// do.
type talk struct {
	model *model
	place *place
	wire  *wire
	most  int
	c     conversation

	calls     int // of tools, so far
	trimmed   bool
	continued bool
	reminded  bool
}

// run takes the turn.
func (t *talk) run(ctx context.Context) *loop.Failure {
	for range t.most {
		r, f := t.model.ask(ctx, t.c)
		switch {
		case f != nil && f.Class == loop.FailureOverflow && t.trim():
			continue
		case f != nil:
			return f
		}
		t.say(r)
		done, f := t.step(ctx, r)
		if done || f != nil {
			return f
		}
	}
	return &loop.Failure{Class: loop.FailureTurns, Text: fmt.Sprintf("it used up its %d model calls", t.most), Typed: true}
}

// say tells what the model said.
func (t *talk) say(r reply) {
	if len(bytes.TrimSpace(r.thought)) > 0 {
		t.wire.tell(line{Kind: agent.EventReasoning, Text: string(r.thought)})
	}
	if len(bytes.TrimSpace(r.text)) > 0 {
		t.wire.tell(line{Kind: agent.EventText, Text: string(r.text)})
	}
}

// step goes on after an answer, or is done.
func (t *talk) step(ctx context.Context, r reply) (bool, *loop.Failure) {
	switch {
	case r.stop == stopRefusal:
		return true, &loop.Failure{Class: loop.FailureRefusal, Text: agent.OneLine(cmp.Or(string(r.text), "the model declined"), agent.LongText), Typed: true}
	case r.stop == stopMax && t.continued:
		return true, &loop.Failure{Class: loop.FailureMaxTokens, Text: "two answers were cut at their limit", Typed: true}
	case r.stop == stopMax:
		t.continued = true
		t.add(string(r.text), "Your answer was cut at its limit. Go on where it stopped, in smaller pieces.")
	case len(r.calls) > 0:
		t.use(ctx, r)
	case len(bytes.TrimSpace(r.text)) > 0:
		return true, nil
	case t.reminded:
		return true, &loop.Failure{Class: loop.FailureMalformed, Text: "the model answered with nothing"}
	default:
		t.reminded = true
		t.add("", "You said nothing. If the task is done, say in a few sentences what you did; else go on.")
	}
	return false, nil
}

// add keeps what the model said, and answers.
func (t *talk) add(said, text string) {
	if strings.TrimSpace(said) != "" {
		t.c.messages = append(t.c.messages, message{model: true, text: said})
	}
	t.c.messages = append(t.c.messages, message{text: text})
}

// use does what the model calls for, one after the other.
func (t *talk) use(ctx context.Context, r reply) {
	results := make([]result, 0, len(r.calls))
	for _, c := range r.calls {
		t.calls++
		id := strconv.Itoa(t.calls)
		t.wire.tell(line{Kind: agent.EventCall, ID: id, Tool: cmp.Or(c.tool, "?"), Input: shown(c.input)})
		text, err := t.place.use(ctx, id, c)
		if err != nil {
			text = err.Error()
		}
		t.wire.tell(line{Kind: agent.EventReturn, ID: id, Tool: c.tool, Text: text, Bad: err != nil})
		results = append(results, result{call: c, text: text, bad: err != nil})
	}
	t.c.messages = append(t.c.messages, message{model: true, text: string(r.text), calls: r.calls}, message{results: results})
}

// trim makes room once: the oldest outputs go. It is false if there is nothing
// to leave out.
func (t *talk) trim() bool {
	if t.trimmed {
		return false
	}
	t.trimmed = true
	for _, m := range t.c.messages[:max(0, len(t.c.messages)-kept)] {
		for i := range m.results {
			m.results[i].text = leftOut
		}
	}
	if len(t.c.messages) <= kept { // All that is left are the newest: the longest half of each goes.
		return t.halve()
	}
	return true
}

// halve cuts long outputs.
func (t *talk) halve() bool {
	const long = 2000
	cut := false
	for _, m := range t.c.messages {
		for i, r := range m.results {
			if len(r.text) > long {
				m.results[i].text = strings.ToValidUTF8(r.text[:long/2], "") + "\n" + leftOut
				cut = true
			}
		}
	}
	return cut
}
