package acp

import (
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

type text = agent.Text

// incoming is a request, an answer or a notification from the program.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method text            `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// option is one of several values to choose from.
type option struct {
	ID    text `json:"id"`
	Value text `json:"value"`
	Model text `json:"modelId"`
}

// setting is an option of a conversation.
type setting struct {
	ID       text     `json:"id"`
	Category text     `json:"category"`
	Current  text     `json:"currentValue"`
	Options  []option `json:"options"`
}

// conversation is what a program says about a conversation that it started or
// continues.
type conversation struct {
	ID    text `json:"sessionId"`
	Modes struct {
		Current   text     `json:"currentModeId"`
		Available []option `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Current   text     `json:"currentModelId"`
		Available []option `json:"availableModels"`
	} `json:"models"`
	Settings []setting `json:"configOptions"`
}

// findSetting returns the setting of a category.
func (c conversation) findSetting(category text) (setting, bool) {
	for _, s := range c.Settings {
		if s.Category == category || s.Category == "" && s.ID == category {
			return s, true
		}
	}
	return setting{}, false
}

// block is a part of a message or of a tool's result.
type block struct {
	Type    text   `json:"type"`
	Text    text   `json:"text"`
	Content *block `json:"content"`
	Path    text   `json:"path"`
}

// innerText returns the text of a block at any depth.
func (b *block) innerText() string {
	for range 3 {
		if b == nil || b.Text != "" {
			break
		}
		b = b.Content
	}
	if b == nil {
		return ""
	}
	return string(b.Text)
}

// place is a file that a tool works on.
type place struct {
	Path text `json:"path"`
}

// tool is a tool's call, as it is announced, updated, or subject to permission.
type tool struct {
	ID        text            `json:"toolCallId"`
	Name      text            `json:"name"`
	Title     text            `json:"title"`
	Kind      text            `json:"kind"`
	Status    text            `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Content   json.RawMessage `json:"content"`
	Locations json.RawMessage `json:"locations"`
	Meta      struct {
		Name   text `json:"toolName"`
		Claude struct {
			Name text `json:"toolName"`
		} `json:"claudeCode"`
		Goose struct {
			Call struct {
				Name text `json:"toolName"`
			} `json:"toolCall"`
		} `json:"goose"`
	} `json:"_meta"`
}

// merged returns t with the fields that a later message sets.
func (t tool) merged(later tool) tool {
	pick := func(a, b text) text {
		if b != "" {
			return b
		}
		return a
	}
	more := func(a, b json.RawMessage) json.RawMessage {
		if isEmpty(b) {
			return a
		}
		return b
	}
	t.ID, t.Status = pick(t.ID, later.ID), later.Status
	t.Name = pick(t.Name, later.Name)
	t.Kind, t.Title = pick(t.Kind, later.Kind), pick(t.Title, later.Title)
	t.Meta.Name = pick(t.Meta.Name, pick(later.Meta.Name, pick(later.Meta.Claude.Name, later.Meta.Goose.Call.Name)))
	t.Input, t.Output = more(t.Input, later.Input), more(t.Output, later.Output)
	t.Content, t.Locations = more(t.Content, later.Content), more(t.Locations, later.Locations)
	return t
}

// shownName is what the program calls the tool, as well as can be told.
func (t tool) shownName() string {
	for _, n := range []text{t.Name, t.Meta.Name} {
		if n != "" {
			return string(n)
		}
	}
	if word, _, _ := strings.Cut(string(t.Title), " "); t.Kind == "" || t.Kind == "other" {
		return word
	}
	return string(t.Kind)
}

func isEmpty(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "{}", "[]", `""`:
		return true
	}
	return false
}

// update is a notification about a turn.
type update struct {
	What      text            `json:"sessionUpdate"`
	MessageID text            `json:"messageId"`
	Content   json.RawMessage `json:"content"`
	Meta      struct {
		Usage tokens `json:"usage"`
	} `json:"_meta"`
}

// tokens are counts of tokens, with the field names of several programs.
type tokens struct {
	Input      loop.Count `json:"inputTokens"`
	Output     loop.Count `json:"outputTokens"`
	CacheRead  loop.Count `json:"cachedReadTokens"`
	CacheWrite loop.Count `json:"cachedWriteTokens"`
	Total      loop.Count `json:"totalTokens"`
	SnakeIn    loop.Count `json:"input_tokens"`
	SnakeOut   loop.Count `json:"output_tokens"`
}

// toUsage returns false if the counts are invalid or zero. If the total shows it,
// the input includes tokens that were read from a cache or written to it.
func (t tokens) toUsage() (loop.Usage, bool) {
	for _, c := range []loop.Count{t.Input, t.Output, t.CacheRead, t.CacheWrite, t.Total, t.SnakeIn, t.SnakeOut} {
		if c.Bad {
			return loop.Usage{}, false
		}
	}
	u := loop.Usage{
		Input: t.Input.N + t.SnakeIn.N, Output: t.Output.N + t.SnakeOut.N, CacheRead: t.CacheRead.N, CacheWrite: t.CacheWrite.N, Source: loop.UsageReported,
	}
	if cached := u.CacheRead + u.CacheWrite; cached > 0 && t.Total.N == u.Input+u.Output && u.Input >= cached {
		u.Input -= cached
	}
	return u, !u.Zero()
}

// ended is what a program says at the end of a turn.
type ended struct {
	Reason text   `json:"stopReason"`
	Usage  tokens `json:"usage"`
	Meta   struct {
		Quota struct {
			Tokens tokens `json:"token_count"`
			Models []struct {
				Model text `json:"model"`
			} `json:"model_usage"`
		} `json:"quota"`
	} `json:"_meta"`
}
