// Package turn readies one invocation of an agent and says what it came to:
// who acts, with which credential, in which home, through which endpoint, and
// what of the numbers and failures that come back counts.
//
// It starts no program (drivers do, through an Exec that they are handed),
// decides neither whether a turn may be paid for nor whether it succeeded, and
// keeps nothing between turns but conversations that are to be gone on with.
package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/credential"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

// Driver is the code that speaks to one kind of agent program.
type Driver interface {
	Profile() agent.Profile
	Turn(ctx context.Context, r agent.Request) (agent.Result, error)
}

// Command is the driver that runs any program. A definition with an
// agent_command and no agent means it.
const Command = "command"

// Actor is who acts: an entry of the roster, with what the definition says over
// it, and its driver.
type Actor struct {
	loop.Agent
	Driver  Driver
	Profile agent.Profile
}

// Roster looks an entry up by its handle, without the @. What it does not have is
// loop.ErrNotFound.
type Roster func(ctx context.Context, handle string) (loop.Agent, error)

// Resolve finds out who acts for a definition. Drivers are entries by
// themselves. The error is a *loop.Fault that names the fix.
func Resolve(ctx context.Context, d loop.Definition, drivers map[string]Driver, roster Roster) (Actor, error) {
	name := strings.TrimPrefix(d.Agent, "@")
	entry := loop.Agent{Handle: name, Driver: name}
	switch {
	case name == "" && d.AgentCommand == "":
		return Actor{}, &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: "no agent is named",
			Fix:     "set agent to one of " + strings.Join(names(drivers), ", ") + " ({1} shows what is installed), or agent_command to a program; or pass --agent or --agent-command",
			Actions: []loop.Command{loop.PawlCommand("agent drivers")},
		}
	case name == "":
		entry = loop.Agent{Handle: Command, Driver: Command}
	case drivers[name] == nil:
		row, err := roster(ctx, name)
		switch {
		case errors.Is(err, loop.ErrNotFound) && d.AgentCommand != "":
			entry.Driver = Command // A name for a program of the definition's own.
		case err != nil:
			return Actor{}, unknown(d, name, drivers, err)
		default:
			entry = row
		}
	}
	return over(entry, d, drivers)
}

// over puts what the definition says over an entry.
func over(entry loop.Agent, d loop.Definition, drivers map[string]Driver) (Actor, error) {
	a := Actor{Agent: entry, Driver: drivers[entry.Driver]}
	if a.Driver == nil {
		return a, &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("agent %q has driver %q, which this version does not have", entry.Handle, entry.Driver),
			Fix:     "use one of " + strings.Join(names(drivers), ", ") + ": {1}",
			Actions: []loop.Command{loop.PawlCommand("agent set", "@"+entry.Handle).WithFlag("driver", "D").WithBlanks("D")},
		}
	}
	a.Profile = a.Driver.Profile()
	replace(&a.Command, d.AgentCommand)
	replace(&a.Model, d.Model)
	replace(&a.Provider, d.Provider)
	replace(&a.BaseURL, d.BaseURL)
	replace(&a.Auth, d.Auth)
	if a.Command == "" && a.Profile.Program == "" && !a.Profile.Own {
		return a, &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("no agent is named: driver %s starts a program that only you know", a.Agent.Driver),
			Fix: "set agent_command, for example agent_command: \"your-agent --acp\", or pass --agent-command",
		}
	}
	d.Agent, d.AgentCommand, d.Provider = a.Agent.Driver, a.Command, a.Provider
	if key, why, fix := definition.Lacks(a.Agent.Driver, d); key != "" {
		return a, &loop.Fault{Exit: loop.ExitNotReady, What: d.Name + " cannot run: " + key, Why: why, Fix: fix}
	}
	if a.Provider != "" && len(a.Profile.Providers) > 0 && !slices.Contains(a.Profile.Providers, credential.Shape(a.Provider, a.BaseURL)) {
		return a, &loop.Fault{
			Exit: loop.ExitNotReady, What: d.Name + " cannot run", Why: fmt.Sprintf("%s cannot ask a model in the shape of provider %s", a.Agent.Driver, a.Provider),
			Fix: "set provider to " + strings.Join(a.Profile.Providers, " or ") + ", or use agent: api",
		}
	}
	return a, nil
}

func replace[T ~string](v *T, by T) {
	if by != "" {
		*v = by
	}
}

// unknown says what to do about a name that is neither a driver nor in the
// roster.
func unknown(d loop.Definition, name string, drivers map[string]Driver, err error) error {
	if !errors.Is(err, loop.ErrNotFound) {
		return err
	}
	near := readiness.Nearest(name, names(drivers))
	if near != "" {
		near = "did you mean " + near + "? "
	}
	return &loop.Fault{
		Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("agent %q is neither a driver nor in the roster", name),
		Fix: near + "set agent to one of " + strings.Join(names(drivers), ", ") + ", or add it: {1}", Err: err,
		Actions: []loop.Command{loop.PawlCommand("agent create", "@"+name).WithFlag("driver", "D").WithBlanks("D")},
	}
}

func names(drivers map[string]Driver) []string { return slices.Sorted(maps.Keys(drivers)) }

// Asked is the model that the actor asks: the one that is named, else the one that
// its program asks the provider by itself. The provider is that of the actor's
// credential; without one it is the definition's, or the driver's usual one.
// Empty: nobody knows before it asks.
func (a Actor) Asked(provider string) string {
	switch {
	case a.Model != "":
		return a.Model
	case a.Command != "":
		return "" // Another program than the driver's own, or another version of it.
	case provider != "":
	case a.Provider != "":
		provider = credential.Shape(a.Provider, a.BaseURL)
	case len(a.Profile.Providers) > 0:
		provider = a.Profile.Providers[0]
	}
	return a.Profile.Asks[provider]
}

// Lines are the command lines that the actor's program is started by, for whoever
// finds out what has to be visible for them.
func (a Actor) Lines() []string {
	line := a.Command
	if line == "" {
		line = a.Profile.Program
	}
	if line == "" {
		return a.Profile.Runtime
	}
	return append([]string{line}, a.Profile.Runtime...)
}
