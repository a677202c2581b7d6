package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

const (
	defaultRunTime = 2 * time.Minute
	maxRunTime     = 5 * time.Minute
	// killGrace is the time between TERM and KILL.
	killGrace = 2 * time.Second
)

type runInput struct {
	Command string `json:"command"`
	Seconds int    `json:"timeout_seconds"`
}

func runCommandTool(ctx context.Context, p *place, id string, in runInput) (string, error) {
	if strings.TrimSpace(in.Command) == "" {
		return "", fmt.Errorf("run: the command is empty")
	}
	if err := p.askPermission(id, policy.Call{Kind: policy.CallRun, Tool: "run", Command: in.Command}); err != nil {
		return "", err
	}
	limit := defaultRunTime
	if in.Seconds > 0 {
		limit = min(time.Duration(min(in.Seconds, 1<<20))*time.Second, maxRunTime)
	}
	out := proc.NewRing(maxOutputBytes/3, maxOutputBytes/2)
	// The sandbox around this program ends processes that a command leaves behind.
	res, err := proc.Plain{}.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", in.Command}, Dir: p.dir, Env: p.env, Stdout: out, Stderr: out, Timeout: limit, Grace: killGrace,
	})
	if err != nil {
		return "", fmt.Errorf("run: %w", err)
	}
	text := strings.TrimRight(out.String(), "\n")
	if text != "" {
		text += "\n"
	}
	switch {
	case res.Ended == proc.TimedOut:
		return "", fmt.Errorf("%s[it was ended after %s]", text, limit)
	case res.Exit != 0:
		return "", fmt.Errorf("%s[exit status %d]", text, res.Exit)
	}
	return text + "[exit status 0]", nil
}
