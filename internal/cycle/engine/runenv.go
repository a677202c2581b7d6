package engine

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git/mirror"
)

// host is what the environments of the engine's runs share.
func (e *Engine) host() runenv.Host {
	return runenv.Host{Home: e.Home, Environ: e.Environ, Exec: e.Exec, Guard: e.Guard, Now: e.Now, Log: e.Log, Egress: e.Egress, GatesOf: e.Gates}
}

// Mirrors are the histories that programs in a sandbox may read, of all
// repositories of this home.
func (e *Engine) Mirrors() mirror.Cache { return e.host().Mirrors() }

// runEnv is where the programs of the run work.
func (h *heldRun) runEnv() runenv.Env {
	s := runenv.Env{
		Host: h.host(), ID: h.run.ID, Loop: h.target.Loop.Name, Root: h.target.Workspace.Root, Repo: h.target.Repo, Definition: h.def, Base: h.run.BaseCommit, Started: h.started,
		Agent: h.commandLines(), Tools: &h.tools, Disk: &h.disk, Say: func(text string) { h.said.Note("%s", h.said.Hide(text)) },
	}
	if s.Iteration = len(h.its); s.Iteration > 0 {
		s.Step = stepText(h.stepOf(h.current()))
	}
	return s
}

func (h *heldRun) timeWithin(limit time.Duration) time.Duration { return h.runEnv().Within(limit) }

// commandLines are the command lines that the agent's turn starts: its program's, and
// those of its MCP servers.
func (h *heldRun) commandLines() []string {
	lines := slices.Clone(h.maker.CommandLines())
	for _, s := range h.def.Servers() {
		if s.Command != "" {
			lines = append(lines, s.Command)
		}
	}
	return lines
}
