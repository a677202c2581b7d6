// Package command drives any program as an agent: it gets the prompt on standard
// input and in the file that PAWL_PROMPT names, and writes its report into the
// file that PAWL_REPORT names.
//
// Such a program reports no usage. If it reaches its model through an endpoint,
// the endpoint counts. Otherwise its tokens are estimated, marked as an estimate,
// and never zero. They are booked for the model that the definition names.
package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Name is the driver's entry in the roster.
const Name = "command"

// grace is the time between TERM and KILL when a program's time is over.
const grace = 2 * time.Second

// Driver runs the definition's agent_command. The zero value is ready to use.
type Driver struct{}

// Profile describes an unknown program, which may use a model of any provider.
func (Driver) Profile() agent.Profile { return agent.Profile{Name: Name, AnyProvider: true} }

// Turn runs the command once. It blocks until the program and everything that it
// started have ended. The error is nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	printed := &counter{r: r}
	out := io.MultiWriter(printed, r.Output) // One writer, so that both streams stay in order.
	res, err := r.Exec.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", r.Command}, Dir: r.Dir, Env: r.Env, Stdin: strings.NewReader(r.Prompt), Stdout: out, Stderr: out,
		Timeout: r.Timeout, Grace: grace, Tag: r.Tag,
	})
	if err != nil {
		return agent.Result{Ended: res.Ended}, fmt.Errorf("start the agent's shell: %w", err)
	}
	result := agent.Result{Exit: res.Exit, Ended: res.Ended, Limit: res.Limit, Took: res.Took}
	if r.Models.URL != "" {
		return result, nil
	}
	used := printed.usage()
	result.Usage = used
	if r.Model != "" { // So that it has a price.
		result.Models = []loop.ModelUsage{{Model: r.Model, Usage: used}}
	}
	return result, nil
}

// usage returns an estimate of what was used so far.
func (c *counter) usage() loop.Usage {
	return loop.Usage{Input: agent.EstimateTokens(int64(len(c.r.Prompt))), Output: agent.EstimateTokens(c.bytes), Source: loop.UsageEstimated}
}
