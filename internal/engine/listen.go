package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/site"
	"github.com/pawl-run/pawl/internal/transcript"
)

// shown makes what happens in a turn readable for people: what the agent says,
// as output; which tools it uses, as events of their own.
type shown struct {
	c   *cycle
	out *transcript.Output
}

// callText is the longest text of one use of a tool.
const callText = 400

func (s *shown) event(e agent.Event) {
	switch e.Kind {
	case agent.EventText:
		_, _ = fmt.Fprintln(s.out, strings.TrimRight(e.Text, "\n")) // It only becomes events, which never fail.
	case agent.EventCall:
		s.tell(loop.EventTool, e.Tool+" "+callInput(e.Input))
	case agent.EventReturn:
		if e.Bad {
			s.tell(loop.EventTool, e.Tool+" failed: "+headline(e.Text))
		}
	case agent.EventPermission:
		if !e.Answer.Allow {
			s.tell(loop.EventNote, fmt.Sprintf("%s is denied (%s): %s", e.Tool, e.Answer.Rule, e.Answer.Words))
		}
	case agent.EventLimit:
		s.tell(loop.EventNote, "limit: "+limitWords(e))
	case agent.EventRetry:
		s.tell(loop.EventNote, "the agent asks its model again: "+headline(e.Text))
	case agent.EventError:
		s.tell(loop.EventNote, fmt.Sprintf("the agent reports %s: %s", e.Failure.Class, failureText(*e.Failure)))
	case agent.EventReasoning, agent.EventUsage, agent.EventEnd:
	}
}

func (s *shown) tell(kind, text string) {
	text = s.c.said.Hide(strings.Join(printables([]string{text}), ""))
	s.c.said.Emit(kind, text)
}

func limitWords(e agent.Event) string {
	if e.Reset.IsZero() {
		return headline(e.Text)
	}
	return fmt.Sprintf("%s, until %s", headline(e.Text), e.Reset.UTC().Format("2006-01-02 15:04 MST"))
}

// callInput is what a tool is given, on one line: the value that says most, if it
// is clear which, and else all of it.
func callInput(input json.RawMessage) string {
	var fields map[string]any
	text := string(input)
	if json.Unmarshal(input, &fields) == nil {
		for _, key := range []string{"command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description"} {
			if v, ok := fields[key].(string); ok && v != "" {
				text = v
				break
			}
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > callText {
		text = strings.ToValidUTF8(text[:callText], "") + "…"
	}
	return text
}

// asked judges what an agent asks leave for and keeps what only a human may
// allow. It may be used by several goroutines.
type asked struct {
	guard policy.Guard
	mu    sync.Mutex
	asks  []agent.Ask
}

func (a *asked) judge(_ context.Context, call policy.Call) policy.Answer {
	answer := a.guard.Judge(call)
	if answer.Ask {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.asks) == 0 { // A turn asks once: the answer fires a run of its own.
			a.asks = append(a.asks, agent.Ask{Argv: a.guard.Argv(call), Why: answer.Words})
		}
	}
	return answer
}

func (a *asked) list() []agent.Ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asks
}

// guard is what the definition lets an agent do, for drivers that ask first. What
// it does all the same is held by the sandbox and by the list of changes.
func (c *cycle) guard(at site.Place, turnDir string) (policy.Guard, error) {
	scope, err := c.site().Scope()
	if err != nil {
		return policy.Guard{}, err
	}
	return policy.Guard{
		Scope: scope, Root: at.Dir, ReportOnly: c.def.Tier == loop.TierReport, Hosts: c.def.Network,
		Beside: []string{os.TempDir(), c.site().SeenTurn(turnDir)},
	}, nil
}
