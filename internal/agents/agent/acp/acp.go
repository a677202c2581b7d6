// Package acp drives any program that speaks version 1 of the Agent Client
// Protocol. Each turn is one process, which exchanges lines of JSON-RPC with
// pawl, so that it can ask before it acts.
//
// It offers the program no files, no terminal and no server: the program works by
// itself, in the sandbox. It grants permissions for one call, never for always,
// and if the program has a mode in which it asks, it selects that. It passes on
// the tokens that a program reports, which are wrong for several programs.
package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Name is the driver's entry in the roster.
const Name = "acp"

// farewell is how long a program may take to end a canceled turn before it is
// killed.
const farewell = time.Second

// Driver runs a program that speaks the protocol. The zero value is ready to use.
type Driver struct{}

// Profile says what the programs need. The providers that one can reach depend on
// the program.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Home: true, Providers: []string{"anthropic", "openai", "gemini"},
		Sessions: []string{
			".claude/projects", ".codex/sessions", ".gemini/tmp", ".qwen", ".local/share/opencode", ".local/share/goose",
		},
		Attaches: []string{"AGENTS.md"}, // by opencode
		Masks: []string{
			".agents/plugins", ".claude", ".codex", ".gemini", ".mcp.json", ".opencode", ".qwen", "opencode.json", "opencode.jsonc",
		},
	}
}

// Turn takes one turn, and blocks until everything that it started has ended. If
// the program no longer has the conversation, it starts a new one. The error is
// nil for any program that started; a *loop.Fault means that the program cannot
// be started for this request.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	if r.Command == "" {
		return agent.Result{Ended: proc.NotStarted}, &loop.Fault{
			Exit: loop.ExitNotReady, What: "the agent acp has no program", Why: "any program can speak its protocol",
			Fix: "name one as agent_command, such as `opencode acp`",
		}
	}
	p, known := programOf(r.Command)
	set, err := p.writeSetup(r)
	if err != nil {
		return agent.Result{Ended: proc.NotStarted}, err
	}
	asked, done := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 {
		asked, done = context.WithTimeout(ctx, r.Timeout)
	}
	defer done()
	in := new(agent.Input)
	d := newDecoder(r, in, func(c policy.Call) policy.Answer { return r.Judge(asked, c) })
	d.program, d.trusted = p, known
	d.sendInitialize()
	running, stop := withFarewell(ctx, d.cancel)
	defer stop()
	res, err := agent.RunStream(running, r, agent.Program{
		Argv: agent.CommandLine(r, "", set.args...), Env: append([]string{"HOME=" + r.Home.Path()}, set.variables...), Stdin: in, Linger: linger,
	}, d)
	if err == nil && ctx.Err() != nil {
		res.Ended, res.Failure = proc.Canceled, nil // Whatever the program says about it.
	}
	return res, err
}

// linger is how long a program may run after its turn. Half of them do not exit
// when their input ends.
const linger = 500 * time.Millisecond

// withFarewell returns a context that ends a farewell later than ctx, and calls
// say when ctx ends.
func withFarewell(ctx context.Context, say func()) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		say()
		end := time.AfterFunc(farewell, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(later, func() { end.Stop() })
	})
	return later, func() {
		unwatch()
		cancel(nil)
	}
}

// message is any message that pawl sends.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
}

// sendMessage queues one line for the program. If the program has ended, that
// shows elsewhere.
func sendMessage(in *agent.Input, m message) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("acp: an invalid message: %v", err)) // All messages are made here, of strings.
	}
	_, _ = in.Write(append(line, '\n'))
}
