// Package acp drives any program that speaks the Agent Client Protocol,
// version 1: one process for one turn, talked with in lines of JSON-RPC, so
// that it can ask before it acts.
//
// It offers such a program no files, no terminal and no server: the program
// works with its own hands, in the sandbox. It grants what is asked for once and
// never for always, and never lets a program decide for itself where there is a
// mode in which it asks. What a program reports of tokens is passed on, and for
// several it is wrong.
package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/proc"
)

// Name is the driver's entry in the roster.
const Name = "acp"

// farewell is how long a program may take to end a turn that it is told to
// cancel, before it is killed.
const farewell = time.Second

// Driver runs a program that speaks the protocol. The zero value is ready.
type Driver struct{}

// Profile says what the programs need. Which of the providers one can reach
// depends on the program.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Home: true, Providers: []string{"anthropic", "openai", "gemini"},
		Sessions: []string{
			".claude/projects", ".codex/sessions", ".gemini/tmp", ".qwen", ".local/share/opencode", ".local/share/goose",
		},
		Attaches: []string{"AGENTS.md"}, // opencode does.
		Masks: []string{
			".agents/plugins", ".claude", ".codex", ".gemini", ".mcp.json", ".opencode", ".qwen", "opencode.json", "opencode.jsonc",
		},
	}
}

// Turn takes one turn, and blocks until everything that it started is gone. A
// conversation that the program no longer has is begun anew. The error is nil
// for any program that started; a *loop.Fault says that the program cannot be
// started for this request.
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
		res.Ended, res.Failure = proc.Canceled, nil // However the program took it.
	}
	return res, err
}

// linger is how long a program may go on after its turn. Half of them do not
// end when they are told that nothing more comes.
const linger = 500 * time.Millisecond

// withFarewell returns a context that ends a farewell after ctx does, and calls
// say in between.
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

// message is anything that goes over the wire.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
}

// sendMessage queues one line for the program. It may have gone meanwhile, which its
// end shows.
func sendMessage(in *agent.Input, m message) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("acp: an invalid message: %v", err)) // They are all made here, of strings.
	}
	_, _ = in.Write(append(line, '\n'))
}
