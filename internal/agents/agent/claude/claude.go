// Package claude drives Claude Code: each turn is one process that exchanges
// lines of JSON with pawl, so that it asks before every edit and every command.
//
// It reads none of the user's own settings, hooks or servers, and never disables
// the program's questions. The tokens that it reports are the difference of
// counters that the program keeps for a whole conversation.
package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Name is the driver's entry in the roster.
const Name = "claude"

// askSettings make the program ask for what it would otherwise do without a
// question.
const askSettings = `{"permissions":{"ask":["Bash","WebFetch"]}}`

// offeredTools are the tools that work without a person and within one turn. A
// version ignores names that it does not know. WebFetch runs in the program, and
// so in the sandbox.
const offeredTools = "Bash,Edit,MultiEdit,Write,NotebookEdit,Read,Glob,Grep,LS,Task,TodoWrite,WebFetch"

// searchTool is the tool that runs at the vendor. The definition either allows it
// or not, so the program does not ask for each call.
const searchTool = "WebSearch"

// homeVariables keep the program from contacting anything but its model. They
// also disable mentions of files in a prompt, which would be read without a
// question, background tasks, which would outlive the turn, and the program's own
// memory, which would bypass the protocol's.
var homeVariables = []string{
	"CLAUDE_CODE_MAX_RETRIES=2", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_FILE_MENTIONS=1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
	"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1", "CLAUDE_CODE_DISABLE_CLAUDE_MDS=1",
}

// Driver runs Claude Code. The zero value is ready to use.
type Driver struct{}

// Profile says what the program needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "claude", Home: true, Providers: []string{"anthropic"}, Asks: map[string]string{"anthropic": "claude-opus-5-5"},
		Login: agent.Login{
			Files:  []string{".claude/.credentials.json"},
			Hosts:  []string{"api.anthropic.com", "platform.claude.com", "console.anthropic.com"},
			Renews: []string{"platform.claude.com", "console.anthropic.com"},
		},
		Sessions: []string{".claude/projects"}, Install: "npm install -g @anthropic-ai/claude-code",
	}
}

// Turn takes one turn, and blocks until everything that it started has ended. If
// the program no longer has the conversation, it starts a new one. The error is
// nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	return agent.TurnOrRestart(ctx, r, runTurn)
}

// runTurn takes one turn. It reports whether the conversation to continue was
// lost.
func runTurn(ctx context.Context, r agent.Request, judge func(policy.Call) policy.Answer) (agent.Result, bool, error) {
	in := new(agent.Input)
	if err := sendLine(in, promptLine(r.Prompt)); err != nil {
		return agent.Result{}, false, err
	}
	d := newDecoder(r.Session, r.Keep, in, judge)
	res, err := agent.RunStream(ctx, r, agent.Program{Argv: commandLine(r), Env: environment(r), Stdin: in}, d)
	return res, d.lost, err
}

func commandLine(r agent.Request) []string {
	asked, offered := askSettings, offeredTools
	if r.Allows(loop.ToolWebSearch) {
		offered += "," + searchTool
		asked = `{"permissions":{"allow":["` + searchTool + `"],"ask":["Bash","WebFetch"]}}`
	}
	args := []string{
		"-p", "--output-format=stream-json", "--input-format=stream-json", "--verbose", "--include-partial-messages",
		"--permission-prompt-tool=stdio", "--permission-mode=default", "--setting-sources=", "--settings=" + asked,
		"--strict-mcp-config", "--disable-slash-commands", "--tools=" + offered,
	}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if r.Effort != "" {
		args = append(args, "--effort="+r.Effort)
	}
	args = append(args, serverArguments(r.Servers)...)
	if r.Session != nil {
		args = append(args, "--resume="+r.Session.ID)
	}
	if !r.Keep {
		args = append(args, "--no-session-persistence")
	}
	return agent.CommandLine(r, "claude", args...)
}

func environment(r agent.Request) []string {
	env := append([]string{"HOME=" + r.Home.Path()}, homeVariables...)
	if r.Models.URL != "" {
		env = append(env, "ANTHROPIC_BASE_URL="+r.Models.URL, "ANTHROPIC_API_KEY="+r.Models.Key)
	}
	return env
}

// promptLine returns the line with the prompt. It avoids a slash at the
// beginning, which the program takes for a command.
func promptLine(text string) any {
	if strings.HasPrefix(text, "/") {
		text = "\n" + text
	}
	return map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}}
}

// sendLine queues one line for the program.
func sendLine(in *agent.Input, what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("write a line for claude: %w", err)
	}
	_, err = in.Write(append(line, '\n'))
	return err
}
