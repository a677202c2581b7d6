// Package qwen drives Qwen Code without a person at its keyboard, with its events
// as lines of JSON. It gets the prompt on standard input.
//
// The program asks nothing while it works: it may read, edit and run commands,
// and everything else that would ask is denied. The sandbox limits what it can
// reach, and the change list shows what it changed. Settings, hooks, agents,
// skills, memory files and variables in the tree are not loaded, because the tree
// is untrusted and the program runs in its safe mode.
//
// The program keeps conversations by the path of the tree, so one can only be
// continued if the tree has not moved.
//
// There is no login to lend: the program has refused its vendor's own since April
// 2026. Without an endpoint it needs a key in the request's variables.
package qwen

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
)

// Name is the driver's entry in the roster.
const Name = "qwen"

// Driver runs Qwen Code. The zero value is ready to use.
type Driver struct{}

// Profile says what the program needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "qwen", Runtime: []string{"node"}, Home: true, Providers: []string{"openai"},
		Asks:     map[string]string{"openai": "qwen3.7-max"},
		Sessions: []string{".qwen/projects"},
		Install:  "npm install -g @qwen-code/qwen-code",
	}
}

// Turn runs the program once. It blocks until the program and everything that it
// started have ended. The error is nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	text, err := settingsJSON(r)
	if err != nil {
		return agent.Result{}, fmt.Errorf("write the settings of qwen: %w", err)
	}
	if err := r.Home.Write(".qwen/settings.json", text); err != nil {
		return agent.Result{}, fmt.Errorf("write .qwen/settings.json into the home of qwen: %w", err)
	}
	return agent.RunStream(ctx, r, agent.Program{
		Argv: agent.CommandLine(r, "qwen", runArguments(r)...), Env: runEnvironment(r), Stdin: strings.NewReader(agent.EscapeAt(r.Prompt)),
	}, &decoder{keep: r.Keep, before: r.Session})
}

// allowedTools are tools that would otherwise ask. The sandbox confines what they
// do.
var allowedTools = []string{"run_shell_command", "edit", "write_file", "notebook_edit"}

// excludedTools are tools that leave the tree, outlive the turn or start agents
// of their own.
var excludedTools = []string{
	"web_fetch", "web_search", "agent", "list_agents", "send_message", "skill", "tool_search", "tool_call", "read_mcp_resource", "cron_create",
	"cron_list", "cron_delete", "loop_wakeup", "enter_worktree", "exit_worktree", "record_artifact", "report_findings", "get_goal", "update_goal",
	"monitor", "save_memory",
}

func runArguments(r agent.Request) []string {
	args := []string{
		"--output-format", "stream-json", "--safe-mode", "--approval-mode", "default", "--auth-type", "openai",
		"--max-session-turns", strconv.Itoa(turnsPerTurn),
		"--allowed-tools", strings.Join(allowedTools, ","), "--exclude-tools", strings.Join(excludedTools, ","),
	}
	if dir := reportFolder(r.Env); dir != "" {
		args = append(args, "--include-directories", dir)
	}
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.Session != nil {
		args = append(args, "--resume", r.Session.ID)
	}
	return args
}

func runEnvironment(r agent.Request) []string {
	env := []string{
		"HOME=" + r.Home.Path(),
		"QWEN_HOME=" + r.Home.Path() + "/.qwen",
		"QWEN_CODE_NO_RELAUNCH=true", // A second process would get no signals and delay the start.
		"QWEN_SANDBOX=false",
		"NO_COLOR=1",
	}
	if r.Models.URL != "" {
		env = append(env, "OPENAI_BASE_URL="+r.Models.URL+"/v1", "OPENAI_API_KEY="+r.Models.Key)
		if r.Model != "" {
			env = append(env, "OPENAI_MODEL="+r.Model)
		}
	}
	return env
}
