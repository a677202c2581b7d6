package spine

import (
	_ "embed" // for the page of the prompt
	"fmt"
	"strings"
)

// The texts of a new loop are made by statements and not by text/template: a program that
// has that package keeps every method of every type, which is 3 MB of this one.

// configText is the definition of a new loop, as people read it.
func (s *templateData) configText() string {
	var b strings.Builder
	line := func(lines ...string) {
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	line("# yaml-language-server: $schema=https://pawl.run/schema/config.v1.json",
		"# This file is yours: pawl reads it and never rewrites it.",
		s.writeEntry("name", s.Name),
		s.writeEntry("pattern", s.Pattern),
		"# L1 reports, L2 proposes branches, L3 acts alone in isolation. Start at L1 and never skip a rung.",
		s.writeBare("tier", s.Tier),
		"# How often it fires: an interval like 10m, 6h, 1d, or five cron fields in UTC.",
		s.writeEntry("cadence", s.Cadence),
		"# One sentence: what the loop does and what it must not do.",
		s.writeEntry("goal", s.Goal),
		"# The globs that it may touch. Leave out tests and CI configuration: they judge the work.",
		s.writeList("scope", s.Scope))
	if s.Tried {
		line("# The gate: a command that passes only if the work is right.",
			s.writeEntry("verify", s.Verify),
			"# A command that must always pass, like the full suite or the type check.",
			s.writeEntry("guard", s.Guard))
	}
	if s.Alone {
		line("# Nothing asks for permission: L3 starts only inside isolation.")
	}
	line(s.writeEntry("permission_mode", s.Mode))
	if s.Gated {
		line("# Changes are made in a copy, never in your checkout.", s.writeBare("worktree", true))
	}
	line("# What is handed to a human instead of done.",
		s.writeEntry("escalation", s.Escalation),
		"# The most output tokens of one run, sub-agents included.",
		s.writeBare("budget_tokens", s.Budget),
		"# Looked at first in every run, and watched during it.",
		s.writeEntry("kill_switch", s.KillSwitch))
	if s.Gated {
		line("# Who lands a branch that won: human (asks you), pr, or a name that is told of it.", s.writeEntry("land_via", s.LandVia))
	}
	if s.Sense != "" {
		quiet := "no output means"
		if s.Sense == "gates" {
			quiet = "gates that pass mean"
		}
		line("# Looks before the agent acts and costs no token: "+quiet+" that there is nothing to do.", s.writeEntry("sense", s.Sense))
	}
	line("# Who acts: a driver, or any program that reads its prompt from standard input.")
	if s.Agent != "" {
		line(s.writeEntry("agent", s.Agent))
	}
	if s.AgentCommand != "" {
		line(s.writeEntry("agent_command", s.AgentCommand))
	}
	if s.Agent == "" && s.AgentCommand == "" {
		line("# agent: command", "# agent_command: PROGRAM")
	}
	if len(s.Env) > 0 {
		line("# The variables of yours that agent and gates get.", s.writeList("env", s.Env))
	}
	if s.Setup != "" {
		line("# How dependencies are prepared.", s.writeEntry("setup", s.Setup))
	} else if s.SetupFound != "" {
		line("# How dependencies are prepared: detected from the lockfiles in each run, unless it is written here.", commentedEntry("setup", s.SetupFound))
	}
	if !s.Gated {
		marks := "four"
		if s.Tried {
			marks = "two"
		}
		line("", "# To graduate to L2, set tier to L2 and take away the marks before these "+marks+":")
		if !s.Tried {
			line(commentedEntry("verify", s.Verify), commentedEntry("guard", s.Guard))
		}
		line("# worktree: true", commentedEntry("land_via", s.LandVia))
	}
	return b.String()
}

// promptText is the prompt of each run of a new loop.
func (s *templateData) promptText() string {
	how, lands := "   Report only: change no file but `STATE.md` and `run-log.md`.", "Nothing lands at this tier: a human reads the report."
	switch {
	case s.Alone:
		how = "   Act on the allowlisted classes below and on nothing else, inside your isolation, in your worktree."
	case s.Gated:
		how = "   Edit in your worktree only. What passes `verify` and `guard` is proposed; a human or `land_via` lands it."
	}
	if s.Gated {
		lands = `These may land when they are allowlisted: a green PR on a feature branch, a lock-file patch bump past the guard, a
generated draft, a label or triage decision, a comment.`
	}
	return strings.NewReplacer("{name}", s.Name, "{tier}", fmt.Sprint(s.Tier), "{folder}", s.Folder, "{mode}", s.Mode, "{how}", how, "{lands}", lands).Replace(promptPage)
}

//go:embed run.md
var promptPage string
