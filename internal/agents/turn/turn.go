// Package turn prepares one invocation of an agent and evaluates its result: who
// acts, with which credential, in which home, through which endpoint, and which
// of the numbers and failures that come back count.
//
// It starts no program: drivers do, through an Exec that they are given. It never
// decides whether a turn may be paid for or whether it succeeded, and it keeps
// nothing between turns except conversations that will be continued.
package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/credential"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Driver runs one kind of agent program.
type Driver interface {
	Profile() agent.Profile
	Turn(ctx context.Context, r agent.Request) (agent.Result, error)
}

// Command names the driver that runs any program. It is the driver of a
// definition that has an agent_command and no agent.
const Command = "command"

// Actor is who acts: an entry of the roster, overridden by the definition, and
// its driver.
type Actor struct {
	loop.Agent
	Driver  Driver
	Profile agent.Profile
}

// Roster looks up an entry by its handle, without the @. If there is none, the
// error is loop.ErrNotFound.
type Roster func(ctx context.Context, handle string) (loop.Agent, error)

// ResolveActor finds out who acts for a definition. Each driver is also an entry
// of its own name. The error is a *loop.Fault with the fix.
func ResolveActor(ctx context.Context, d loop.Definition, drivers map[string]Driver, roster Roster) (Actor, error) {
	name := strings.TrimPrefix(d.Agent, "@")
	entry := loop.Agent{Handle: name, Driver: name}
	switch {
	case name == "" && d.AgentCommand == "":
		return Actor{}, &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: "no agent is named",
			Fix:     "set agent to one of " + strings.Join(driverNames(drivers), ", ") + " ({1} shows what is installed), or agent_command to a program; or pass --agent or --agent-command",
			Actions: []loop.Command{loop.PawlCommand("agent drivers")},
		}
	case name == "":
		entry = loop.Agent{Handle: Command, Driver: Command}
	case drivers[name] == nil:
		row, err := roster(ctx, name)
		switch {
		case errors.Is(err, loop.ErrNotFound) && d.AgentCommand != "":
			entry.Driver = Command // A name for the definition's own program.
		case err != nil:
			return Actor{}, unknownAgentError(d, name, drivers, err)
		default:
			entry = row
		}
	}
	return withDefinition(entry, d, drivers)
}

// withDefinition overrides an entry with what the definition says.
func withDefinition(entry loop.Agent, d loop.Definition, drivers map[string]Driver) (Actor, error) {
	a := Actor{Agent: entry, Driver: drivers[entry.Driver]}
	if a.Driver == nil {
		return a, &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("agent %q has driver %q, which this version does not have", entry.Handle, entry.Driver),
			Fix:     "use one of " + strings.Join(driverNames(drivers), ", ") + ": {1}",
			Actions: []loop.Command{loop.PawlCommand("agent set", "@"+entry.Handle).WithFlag("driver", "D").WithBlanks("D")},
		}
	}
	a.Profile = a.Driver.Profile()
	override(&a.Command, d.AgentCommand)
	override(&a.Model, d.Model)
	override(&a.Provider, d.Provider)
	override(&a.BaseURL, d.BaseURL)
	override(&a.Auth, d.Auth)
	if a.Command == "" && a.Profile.Program == "" && !a.Profile.Own {
		return a, &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("no agent is named: driver %s starts a program that only you know", a.Agent.Driver),
			Fix: "set agent_command, for example agent_command: \"your-agent --acp\", or pass --agent-command",
		}
	}
	d.Agent, d.AgentCommand, d.Provider = a.Agent.Driver, a.Command, a.Provider
	if key, why, fix := definition.UnsupportedKey(a.Agent.Driver, d); key != "" {
		return a, &loop.Fault{Exit: loop.ExitNotReady, What: d.Name + " cannot run: " + key, Why: why, Fix: fix}
	}
	if a.Provider != "" && len(a.Profile.Providers) > 0 && !slices.Contains(a.Profile.Providers, credential.RequestShape(a.Provider, a.BaseURL)) {
		return a, &loop.Fault{
			Exit: loop.ExitNotReady, What: d.Name + " cannot run", Why: fmt.Sprintf("%s cannot ask a model in the shape of provider %s", a.Agent.Driver, a.Provider),
			Fix: "set provider to " + strings.Join(a.Profile.Providers, " or ") + ", or use agent: api",
		}
	}
	return a, nil
}

func override[T ~string](v *T, by T) {
	if by != "" {
		*v = by
	}
}

// unknownAgentError says what to do about a name that is neither a driver nor in
// the roster.
func unknownAgentError(d loop.Definition, name string, drivers map[string]Driver, err error) error {
	if !errors.Is(err, loop.ErrNotFound) {
		return err
	}
	near := readiness.NearestName(name, driverNames(drivers))
	if near != "" {
		near = "did you mean " + near + "? "
	}
	return &loop.Fault{
		Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("agent %q is neither a driver nor in the roster", name),
		Fix: near + "set agent to one of " + strings.Join(driverNames(drivers), ", ") + ", or add it: {1}", Err: err,
		Actions: []loop.Command{loop.PawlCommand("agent create", "@"+name).WithFlag("driver", "D").WithBlanks("D")},
	}
}

func driverNames(drivers map[string]Driver) []string { return slices.Sorted(maps.Keys(drivers)) }

// UsedModel returns the model that the actor calls: the one that is named, or
// else the default of its program for the provider. The provider is that of the
// actor's credential; if empty, it is the definition's or the driver's first one.
// The result is empty if the model is not known before the first call.
func (a Actor) UsedModel(provider string) string {
	switch {
	case a.Model != "":
		return a.Model
	case a.Command != "":
		return "" // It may be another program, or another version of the driver's.
	case provider != "":
	case a.Provider != "":
		provider = credential.RequestShape(a.Provider, a.BaseURL)
	case len(a.Profile.Providers) > 0:
		provider = a.Profile.Providers[0]
	}
	return a.Profile.Asks[provider]
}

// CommandLines returns the command lines that start the actor's program. Callers
// use them to find out which files must be visible.
func (a Actor) CommandLines() []string {
	line := a.Command
	if line == "" {
		line = a.Profile.Program
	}
	if line == "" {
		return a.Profile.Runtime
	}
	return append([]string{line}, a.Profile.Runtime...)
}
