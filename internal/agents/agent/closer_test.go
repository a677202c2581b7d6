package agent_test

import (
	"io"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

// closing is a decoder of a program that says things, and is done when it ends.
type closing struct{ exits []int }

func (*closing) DecodeLine(line []byte) ([]agent.Event, bool) {
	return []agent.Event{{Kind: agent.EventText, Text: string(line)}}, true
}

func (c *closing) DecodeExit(exit int) []agent.Event {
	c.exits = append(c.exits, exit)
	return []agent.Event{{Kind: agent.EventEnd}}
}

func (*closing) Finish(*agent.Result, string) {}

func TestAProgramWithoutAnEndEventIsDoneWhenItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ended proc.Ended
		exits int
		class loop.FailureClass
	}{
		"it ends by itself":                         {proc.Exited, 1, ""},
		"something kills it":                        {proc.Signaled, 0, loop.FailureKilled},
		"its time is over, and that is not its end": {proc.TimedOut, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var d closing
			var last agent.Event
			// The last line has no end.
			r := agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte("one\ntwo"), Exit: 1, Ended: c.ended})
			r.Output, r.OnEvent = io.Discard, func(e agent.Event) { last = e }
			got, err := agent.RunStream(t.Context(), r, agent.Program{Argv: []string{"x"}}, &d)
			if err != nil {
				t.Fatal(err)
			}
			var class loop.FailureClass
			if got.Failure != nil {
				class = got.Failure.Class
			}
			if len(d.exits) != c.exits || class != c.class || got.Message != "two" || (last.Kind == agent.EventEnd) != (c.exits == 1) {
				t.Errorf("closed with %v, failure %q, message %q, last event %s", d.exits, class, got.Message, last.Kind)
			}
		})
	}
}
