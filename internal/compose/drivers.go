package compose

import (
	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/agent/acp"
	"github.com/pawl-run/pawl/internal/agent/api"
	"github.com/pawl-run/pawl/internal/agent/claude"
	"github.com/pawl-run/pawl/internal/agent/codex"
	"github.com/pawl-run/pawl/internal/agent/command"
	"github.com/pawl-run/pawl/internal/agent/gemini"
	"github.com/pawl-run/pawl/internal/agent/goose"
	"github.com/pawl-run/pawl/internal/agent/opencode"
	"github.com/pawl-run/pawl/internal/agent/qwen"
	"github.com/pawl-run/pawl/internal/turn"
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
