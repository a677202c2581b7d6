package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// callText is the most bytes that one use of a tool is described with.
const callText = 400

// DescribeEvent returns the kind and the text of the run's event for an event of
// an agent. The kind is empty for what an agent writes itself, which is output,
// and for events that only count usage.
func DescribeEvent(e agent.Event) (kind, text string) {
	switch e.Kind {
	case agent.EventCall:
		return loop.EventTool, e.Tool + " " + callInput(e.Input)
	case agent.EventReturn:
		if e.Bad {
			return loop.EventTool, e.Tool + " failed: " + headline(e.Text)
		}
	case agent.EventPermission:
		if !e.Answer.Allow {
			return loop.EventNote, fmt.Sprintf("%s is denied (%s): %s", e.Tool, e.Answer.Rule, e.Answer.Words)
		}
	case agent.EventLimit:
		return loop.EventNote, "limit: " + limitWords(e)
	case agent.EventRetry:
		return loop.EventNote, "the agent asks its model again: " + headline(e.Text)
	case agent.EventError:
		return loop.EventNote, fmt.Sprintf("the agent reports %s: %s", e.Failure.Class, FailureText(*e.Failure))
	case agent.EventText, agent.EventReasoning, agent.EventUsage, agent.EventEnd:
	}
	return "", ""
}

func limitWords(e agent.Event) string {
	if e.Reset.IsZero() {
		return headline(e.Text)
	}
	return fmt.Sprintf("%s, until %s", headline(e.Text), e.Reset.UTC().Format("2006-01-02 15:04 MST"))
}

// callInput describes the input of a tool on one line: by its most telling value
// if it has a known name, or else all of it.
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

// headline returns the first line of a longer text.
func headline(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		line = strings.TrimSuffix(line, ":")
	}
	return line
}

// FailureText returns a failure's text with its status and its reset time.
func FailureText(f loop.Failure) string {
	var notes []string
	if f.Status != 0 {
		notes = append(notes, fmt.Sprintf("status %d", f.Status))
	}
	if !f.Reset.IsZero() {
		notes = append(notes, "until "+f.Reset.UTC().Format(time.RFC3339))
	}
	text := f.Text
	if text == "" {
		text = "it gave no reason"
	}
	if notes != nil {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}
