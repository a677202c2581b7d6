package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// problem is an error as structured content.
type problem struct {
	Code     string `json:"code"` // stable: programs match it
	Exit     int    `json:"exit"` // status of the command
	Message  string `json:"message"`
	Why      string `json:"why,omitempty"`
	Fix      string `json:"fix,omitempty"`
	Argument string `json:"argument,omitempty"`
	Value    string `json:"value,omitempty"`
	Expected string `json:"expected,omitempty"`

	Tools    []string `json:"tools,omitempty"`    // that would help
	Commands []string `json:"commands,omitempty"` // with which a person helps
}

// codes are those of errors that have no other one, by exit status.
var codes = map[int]string{
	loop.ExitUsage: "usage", loop.ExitNotFound: "not_found", loop.ExitUnreadable: "invalid", loop.ExitMissing: "missing", loop.ExitNotReady: "not_ready",
	loop.ExitNoSuccess: "no_success", loop.ExitBudget: "budget", loop.ExitWaiting: "waiting_human", loop.ExitRefused: "refused", loop.ExitPaused: "paused",
	loop.ExitHeld: "held", loop.ExitInterrupted: "interrupted",
}

// failed is the result of a call that failed, for the model to mend.
func (s *Server) failed(t verb.Tool, arguments json.RawMessage, err error) *sdk.CallToolResult {
	p := s.explain(err)
	if p.Argument == "" {
		p.Argument, p.Value = blame(t, arguments, p)
	}
	body, _ := json.Marshal(map[string]problem{"error": p}) // It has texts only.
	var text strings.Builder
	text.WriteString(p.Code + ": " + p.Message)
	for _, part := range [][2]string{{"why", p.Why}, {"fix", p.Fix}, {"expected", p.Expected}} {
		if part[1] != "" {
			text.WriteString("\n" + part[0] + ": " + part[1])
		}
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: cutEnd(text.String())}}, StructuredContent: json.RawMessage(body)}
}

// explain describes an error.
func (s *Server) explain(err error) problem {
	said := verb.ProblemOf(err)
	p := problem{Code: said.Kind, Exit: said.Exit, Message: cutEnd(readiness.Printable(said.Title)), Why: cutEnd(printable(said.Detail))}
	if p.Code == "" {
		if p.Code = codes[said.Exit]; p.Code == "" {
			p.Code = "error"
		}
	}
	if a, ok := errors.AsType[*argumentError](err); ok {
		p.Argument, p.Value, p.Expected = excerpt(a.name), a.value, a.expected
	}
	p.Fix = cutEnd(printable(loop.Advise(said.Fix, said.Actions...).Render(func(c loop.Command, _ bool) string {
		for _, t := range s.tools {
			if (t.Command == c.Verb || slices.Contains(t.Also, c.Verb)) && c.Program == "" && len(c.Flags) == 0 && !loop.NeedsPerson(err) {
				p.Tools = append(p.Tools, t.Name)
				return t.Name + " (`" + c.String() + "`)"
			}
		}
		if len(c.String()) <= mostText { // Nobody can run a part of a command.
			p.Commands = append(p.Commands, c.String())
		}
		return "`" + c.String() + "`"
	})))
	return p
}

// blame finds the argument that an error is about: the one whose value it names, or the only one
// that the tool requires.
func blame(t verb.Tool, arguments json.RawMessage, p problem) (name, value string) {
	given := map[string]json.RawMessage{}
	_ = json.Unmarshal(arguments, &given) // It was read before.
	var required []string
	for _, a := range argumentsOf(t) {
		var text string
		if a.index == nil || json.Unmarshal(given[a.name], &text) != nil {
			continue
		}
		if text != "" && (strings.Contains(p.Message, text) || strings.Contains(p.Why, text)) || strings.Contains(p.Why, a.name) {
			return a.name, excerpt(text)
		}
		if a.required {
			required = append(required, a.name)
			value = text
		}
	}
	if len(required) == 1 && p.Exit <= loop.ExitUnreadable {
		return required[0], excerpt(value)
	}
	return "", ""
}

// printable is a text of several lines, with nothing in it that is not seen.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = readiness.Printable(l)
	}
	return strings.Join(lines, "\n")
}

// cutEnd is a text of at most mostText bytes: whole lines, unless the first one is longer.
func cutEnd(text string) string {
	const left = "\n…"
	if len(text) <= mostText {
		return text
	}
	head := text[:mostText-len(left)]
	if end := strings.LastIndexByte(head, '\n'); end > 0 {
		head = head[:end]
	}
	return strings.ToValidUTF8(head, "") + left
}

// boundErrors shortens the errors of the protocol, in which the SDK repeats what a client has
// sent, such as the name of a tool.
func boundErrors(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && len(e.Message) > mostText {
			err = &jsonrpc.Error{Code: e.Code, Message: cutEnd(e.Message), Data: e.Data}
		}
		return result, err
	}
}
