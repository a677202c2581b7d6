package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// prompt is a text that a person picks in a client.
type prompt struct {
	name, does string
	argument   string // its only one, which is required
	about      string // what the argument is
	text       string // what the model is asked, before the argument
	read       func(ctx context.Context, c verb.Caller, value string) (any, error)
}

func prompts() []prompt {
	return []prompt{
		{
			"write_loop", "Create a loop for a goal", "goal", "the end state that is wanted",
			`Create a loop for the goal below. Ask agent_list who can work on it. Pick a template: keep-tests-green if a command decides when it is reached, research-monitor if findings are collected, none otherwise.
State the goal as an end state that can be checked, not as a task. Call loop_create with an idempotency_key, show what it returned, and say in one sentence what decides that the loop is done. Run no step before I agree.`, nil,
		},
		{
			"write_gate", "Write a gate that decides whether something holds", "condition", "what has to hold",
			`Write a gate for the condition below. Prefer a command: its exit status decides, it has to be in the repository or on PATH, to end within ten minutes and to print what is wrong. Write an invariant only for what a command cannot see of the change: an expression over diff.files, diff.added, diff.removed, diff.paths, files, json(path), yaml(path), output(gate), iteration, tokens. Write a reviewer's rubric only for what needs judgement.
Say how the gate could pass although the condition does not hold, and make that harder. Answer with the gate as JSON: name, kind, check.`, nil,
		},
		{
			"write_rubric", "Write the rubric of a reviewer", "goal", "what is to be judged",
			`Write the rubric by which another model judges work on the goal below: three to seven criteria, each a sentence that is true or false of the result, each about one thing, none of which a command could decide. Name what must not be there, too.`, nil,
		},
		{
			"explain_run", "Explain why a run failed, or why nothing happened", "run", "run id, LOOP#N, or LOOP",
			`Explain how this run ended to somebody who was not there: what was tried, which gate or rule decided, and what to do about it, the likeliest cause first. Read more with loop_trace and loop_diff if you need it.`,
			func(ctx context.Context, c verb.Caller, value string) (any, error) {
				return api.ExplainRun.Call(ctx, c, api.RunRef{Run: value})
			},
		},
		{
			"prepare_approval", "Prepare a person's answer to an approval", "approval", "id of an approval, LOOP#N, or LOOP",
			`Prepare the answer to this approval for the person who gives it: what happens on yes, what the change does, what its gates have and have not shown, what you would look at before saying yes. Read the change with loop_diff. You cannot answer it; do not recommend an answer without a reason that can be checked.`,
			func(ctx context.Context, c verb.Caller, value string) (any, error) {
				return api.ShowApproval.Call(ctx, c, api.ApprovalRef{Approval: value})
			},
		},
	}
}

// addPrompts offers the prompts.
func (s *Server) addPrompts() {
	for _, p := range prompts() {
		described := &sdk.Prompt{Name: p.name, Description: p.does, Arguments: []*sdk.PromptArgument{{Name: p.argument, Description: p.about, Required: true}}}
		if p.read != nil && !s.inside() {
			described.Arguments = append(described.Arguments, &sdk.PromptArgument{Name: argWorkspace, Description: "a folder in the repository, your own if it is left out; over HTTP it is required", Required: s.Dir == ""})
		}
		s.server.AddPrompt(described, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			value := strings.TrimSpace(r.Params.Arguments[p.argument])
			if value == "" {
				return nil, fmt.Errorf("prompt %s: the argument %s is missing: %s", p.name, p.argument, p.about)
			}
			var about any = value
			if p.read != nil {
				dir, err := s.folder(r.Params.Arguments[argWorkspace])
				if err == nil {
					about, err = p.read(ctx, s.openIn(dir), value)
				}
				if err != nil {
					return nil, s.protocolError(value, err)
				}
			}
			data, err := enclose(p.argument, about)
			if err != nil {
				return nil, err
			}
			return &sdk.GetPromptResult{Description: p.does, Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: p.text + "\n\n" + data}}}}, nil
		})
	}
}
