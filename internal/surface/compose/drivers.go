package compose

import (
	"context"
	"io"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/acp"
	"github.com/pawl-run/pawl/internal/agents/agent/api"
	"github.com/pawl-run/pawl/internal/agents/agent/claude"
	"github.com/pawl-run/pawl/internal/agents/agent/codex"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/agents/agent/gemini"
	"github.com/pawl-run/pawl/internal/agents/agent/goose"
	"github.com/pawl-run/pawl/internal/agents/agent/opencode"
	"github.com/pawl-run/pawl/internal/agents/agent/qwen"
	"github.com/pawl-run/pawl/internal/agents/turn"
)

// all are the drivers that there are, in the order in which they are listed.
var all = []turn.Driver{
	claude.Driver{}, codex.Driver{}, gemini.Driver{}, opencode.Driver{}, qwen.Driver{}, goose.Driver{}, acp.Driver{}, api.Driver{}, command.Driver{},
}

// drivers are all of them, by the names that they have in the roster.
func drivers() map[string]turn.Driver {
	named := map[string]turn.Driver{}
	for _, d := range all {
		named[d.Profile().Name] = d
	}
	return named
}

// Profiles describes every driver, in the order in which they are listed.
func Profiles() []agent.Profile {
	var list []agent.Profile
	for _, d := range all {
		list = append(list, d.Profile())
	}
	return list
}

// RunBuiltInAgent carries out a turn of the built-in agent and returns its exit status,
// if pawl was started as that agent, in its sandbox. Otherwise it does nothing.
func RunBuiltInAgent(ctx context.Context, args []string, in io.Reader, out io.Writer) (status int, ran bool) {
	if len(args) != 1 || args[0] != api.Argument {
		return 0, false
	}
	return api.Main(ctx, in, out), true
}
