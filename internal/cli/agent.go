package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/api"
	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/roster"
	"github.com/pawl-run/pawl/internal/setup"
)

func newAgentCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "agent", Short: "Say who acts: drivers, and the roster", Args: exactArgs(0),
		Long: `An agent is who acts in a loop: a driver, which speaks to one kind of program, with a model and a role.
Every driver is an agent by itself, so agent: claude in a definition needs nothing else. The roster holds
those that people made; a definition names them by their handle. It belongs to no repository.`,
		Example: "  pawl agent drivers\n  pawl agent create @reviewer --driver claude --model claude-opus-4-5 --role reviewer\n  pawl agent list",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAgentCreateCommand(a), newAgentSetCommand(a), newAgentListCommand(a), newAgentShowCommand(a), newAgentDriversCommand(a), newAgentLoginCommand(a))
	return cmd
}

func newAgentCreateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create @HANDLE", Short: "Add an agent to the roster, and print its id", Args: exactArgs(1),
		Example: `  pawl agent create @dev --driver claude
  pawl agent create @local --driver qwen --provider ollama --base-url http://127.0.0.1:11434/v1 --model qwen3-coder
  pawl agent create @script --agent-command 'sh agents/fix.sh'`,
	}
	change := addChangeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withCaller(cmd.Context(), nil, func(c api.Caller) error {
			entry, err := api.CreateAgent.Call(cmd.Context(), c, api.AgentChange{Agent: args[0], Change: change()})
			if err != nil {
				return err
			}
			p := a.printer()
			if p.JSON {
				return p.WriteJSON(entry)
			}
			p.Line("%s", entry.ID)
			return p.Err()
		})
	}
	return cmd
}

func newAgentSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set @HANDLE", Short: "Change an agent of the roster", Args: exactArgs(1), ValidArgsFunction: completeAgents(a),
		Long:    "Change what is named by a flag; an empty value takes it away. Loops see it with their next run.",
		Example: "  pawl agent set @dev --model claude-sonnet-4-5 --auth ''",
	}
	change := addChangeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(agentFlags, cmd.Flags().Changed) {
			return usageError(cmd, "nothing is to be changed")
		}
		return a.withCaller(cmd.Context(), nil, func(c api.Caller) error {
			entry, err := api.SetAgent.Call(cmd.Context(), c, api.AgentChange{Agent: args[0], Change: change()})
			if err != nil {
				return err
			}
			return printAgent(a.printer(), entry)
		})
	}
	return cmd
}

// agentFlags are those that set something of an agent.
var agentFlags = []string{"driver", "agent-command", "model", "provider", "base-url", "auth", "role", "board", "skill", "max-runs", "account-max-runs"}

// addChangeFlags adds the flags of what an agent has. The returned function says
// which of them were given.
func addChangeFlags(cmd *cobra.Command) func() roster.Change {
	f := cmd.Flags()
	given := func(name, use string) func() *string {
		value := f.String(name, "", use)
		return func() *string {
			if !f.Changed(name) {
				return nil
			}
			return value
		}
	}
	driver, command := given("driver", "which `driver` speaks to it"), given("agent-command", "`command` line of the program, run by the shell")
	model, provider := given("model", "`model` that it uses"), given("provider", "who serves the model: anthropic, openai, gemini, or another `name` with --base-url")
	base, auth := given("base-url", "`address` of the model's API"), given("auth", "inject (a key, metered) or lend (a login); empty: whichever there is")
	role, board := given("role", "what it is there for"), given("board", "`board` that it takes tasks from")
	skills := f.StringArray("skill", nil, "what it is good at; may be repeated")
	runs := f.Int64("max-runs", 0, "how many runs it may act in at once, of all loops and nodes; 0: any `number`")
	accountRuns := f.Int64("account-max-runs", 0, "it does not act while so many runs act with its account; 0: any `number`")
	return func() roster.Change {
		c := roster.Change{
			Driver: driver(), Command: command(), Model: model(), Provider: provider(), BaseURL: base(), Auth: auth(), Role: role(), Board: board(),
		}
		if f.Changed("max-runs") {
			c.MaxRuns = runs
		}
		if f.Changed("account-max-runs") {
			c.AccountMaxRuns = accountRuns
		}
		if f.Changed("skill") {
			c.Skills = slices.DeleteFunc(slices.Clone(*skills), func(s string) bool { return s == "" })
		}
		return c
	}
}

func newAgentListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the roster", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(c api.Caller) error {
				all, err := api.ListAgents.Call(cmd.Context(), c, api.None{})
				if err != nil {
					return err
				}
				return printAgents(a.printer(), all)
			})
		},
	}
}

func printAgents(p *output.Printer, all []loop.Agent) error {
	return output.List[loop.Agent]{
		Schema: "pawl.agents/v1", Heading: []string{"HANDLE", "DRIVER", "MODEL", "ROLE", "BOARD", "ID"},
		Cells: func(who loop.Agent) []string {
			return []string{
				"@" + output.CleanLine(who.Handle), output.CleanLine(who.Driver), orDash(output.CleanLine(who.Model)), orDash(output.CleanLine(who.Role)),
				orDash(output.CleanLine(who.Board)), orDash(who.ID),
			}
		},
	}.Print(p, all)
}

func newAgentShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show @HANDLE", Short: "Show an agent", Args: exactArgs(1), ValidArgsFunction: completeAgents(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c api.Caller) error {
				entry, err := api.ShowAgent.Call(cmd.Context(), c, api.AgentRef{Agent: args[0]})
				if err != nil {
					return err
				}
				return printAgent(a.printer(), entry)
			})
		},
	}
}

func printAgent(p *output.Printer, e roster.Entry) error {
	if p.JSON {
		return p.WriteJSON(e)
	}
	p.Line("%s  %s", p.Style.Bold("@"+output.CleanLine(e.Handle)), orDash(e.ID))
	p.Field("  ", "driver", e.Driver)
	p.Field("  ", "command", e.Command)
	p.Field("  ", "model", e.Model)
	p.Field("  ", "provider", e.Provider)
	p.Field("  ", "base_url", e.BaseURL)
	p.Field("  ", "auth", string(e.Auth))
	p.Field("  ", "role", e.Role)
	p.Field("  ", "board", e.Board)
	p.Field("  ", "skills", strings.Join(e.Skills, ", "))
	if e.MaxRuns > 0 {
		p.Field("  ", "runs", fmt.Sprintf("at most %d at once", e.MaxRuns))
	}
	if e.AccountMaxRuns > 0 {
		p.Field("  ", "account", fmt.Sprintf("at most %d runs at once with it", e.AccountMaxRuns))
	}
	for _, s := range e.Seats {
		p.Field("  ", "acts in", output.CleanLine(s.String()))
	}
	if !e.Updated.IsZero() {
		p.Field("  ", "updated", p.Ago(&e.Updated))
	}
	return p.Err()
}

func newAgentDriversCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "drivers", Short: "Say which drivers this machine has programs, keys and logins for", Args: exactArgs(0),
		Long: `Say of every driver which program was found, in which version, and how it would get at its model.

With auth: inject a key stays outside of the sandbox, and every token is metered. With auth: lend a
subscription's login lies inside while a run lasts, for one run at a time, and usage is what the program
reports. A key goes before a login. Nothing is asked of a network: whether a vendor accepts what was
found shows in a run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := setup.Doctor{Dir: a.workDir(), Probe: compose.Prober(a.Environ, a.Now()), Profiles: compose.Profiles()}
			return printDrivers(a.printer(), d.Drivers(cmd.Context()))
		},
	}
}

func printDrivers(p *output.Printer, all []setup.DriverView) error {
	if p.JSON {
		return output.WriteListing(p, "pawl.drivers/v1", all)
	}
	for _, v := range all {
		mark := p.Style.Green("✓")
		switch v.State {
		case setup.StateWarn:
			mark = p.Style.Yellow("!")
		case setup.StateBad:
			mark = p.Style.Red("✗")
		}
		p.Line("%s %s", mark, joinNonEmpty("  ", p.Style.Bold(v.Name), output.CleanLine(v.Summary())))
		if v.State != setup.StateBad {
			resume := "no"
			if v.Resume {
				resume = "yes"
			}
			p.Field("    ", "promise", v.Promise)
			p.Field("    ", "resume", resume)
		}
		p.Field("    ", "why", v.Problem)
		p.Field("    ", "fix", v.Fix)
	}
	return p.Err()
}
