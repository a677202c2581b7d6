package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/runenv"
)

// host is what the environments of the engine's runs share.
func (e *Engine) host() runenv.Host {
	return runenv.Host{Home: e.Home, Environ: e.Environ, Exec: e.Exec, Now: e.Now, Log: e.Log, Egress: e.Egress, GatesOf: e.Gates}
}

// Mirrors are the histories that programs in a sandbox may read, of all
// repositories of this home.
func (e *Engine) Mirrors() mirror.Cache { return e.host().Mirrors() }

// runEnv is where the programs of the run work.
func (c *cycle) runEnv() runenv.Env {
	s := runenv.Env{
		Host: c.host(), ID: c.run.ID, Loop: c.t.Loop.Name, Root: c.t.Workspace.Root, Repo: c.t.Repo, Definition: c.def, Base: c.run.BaseCommit, Started: c.started,
		Agent: c.lines(), Tools: &c.tools, Disk: &c.disk, Say: func(text string) { c.said.Note("%s", c.said.Hide(text)) },
	}
	if c.AskModel != nil {
		s.Ask = func(ctx context.Context, q gate.Question) (gate.Answer, error) { return c.AskModel(ctx, c.run, q) }
	}
	if s.Iteration = len(c.its); s.Iteration > 0 {
		s.Step = stepText(c.stepOf(c.current()))
	}
	return s
}

func (c *cycle) within(limit time.Duration) time.Duration { return c.runEnv().Within(limit) }

// lines are the command lines that the agent's turn starts: its program's, and
// those of its MCP servers.
func (c *cycle) lines() []string {
	lines := slices.Clone(c.actor.Lines())
	for _, s := range c.def.Servers() {
		if s.Command != "" {
			lines = append(lines, s.Command)
		}
	}
	return lines
}
