package agent_test

import (
	"io"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

// teller is a decoder of lines "say TEXT" and "used N".
type teller struct{}

func (teller) DecodeLine(line []byte) ([]agent.Event, bool) {
	if text, ok := strings.CutPrefix(string(line), "say "); ok {
		return []agent.Event{{Kind: agent.EventText, Text: text}}, true
	}
	u := loop.Usage{Input: 10, Output: int64(len(line)), Source: loop.UsageReported}
	return []agent.Event{{Kind: agent.EventUsage, Model: "m", Usage: u}}, true
}

func (teller) Finish(*agent.Result, string) {}

func TestAStreamTellsWhatItHasUsedUntilNothingMoreMayBe(t *testing.T) {
	long := "say " + strings.Repeat("x", 4000)
	for name, c := range map[string]struct {
		lines []string
		most  int64 // output tokens
		told  []int64
		want  loop.Usage
	}{
		"words are estimated until the program says numbers": {
			[]string{long, "used", long}, 5000, []int64{1001, 4, 1004}, loop.Usage{Input: 10, Output: 4, Source: loop.UsageReported},
		},
		"what is printed beyond the cap does not count": {
			[]string{long, long, long, long}, 1500, []int64{1001, 2001}, loop.Usage{Input: 1, Output: 2001, Source: loop.UsageEstimated},
		},
		"what the program had no time to say is estimated": {
			[]string{"used", long, long, "used"}, 500, []int64{4, 1004}, loop.Usage{Input: 10, Output: 1004, Source: loop.UsageEstimated},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte(strings.Join(c.lines, "\n") + "\n"), Ended: proc.Exited})
			r.Prompt, r.Output, r.OnEvent = "", io.Discard, func(agent.Event) {}
			var told []int64
			r.OnUsage = func(u loop.Usage) bool {
				told = append(told, u.Output)
				return u.Output <= c.most
			}
			res, err := agent.RunStream(t.Context(), r, agent.Program{Argv: []string{"x"}}, teller{})
			if err != nil || res.Usage != c.want {
				t.Errorf("Stream = %+v, %v; want %+v", res.Usage, err, c.want)
			}
			if len(told) != len(c.told) {
				t.Fatalf("told %v, want %v", told, c.told)
			}
			for i := range told {
				if told[i] != c.told[i] {
					t.Fatalf("told %v, want %v", told, c.told)
				}
			}
		})
	}
}
