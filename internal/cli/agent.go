package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

func (a *app) cmdAgent() *cobra.Command {
	cmd := &cobra.Command{
		Use: "agent", Short: "Say who acts: drivers, and the roster", Args: exactly(0),
		Long: `An agent is who acts in a loop: a driver, which speaks to one kind of program, with a model and a role.
Every driver is an agent by itself, so agent: claude in a definition needs nothing else. The roster holds
those that people made; a definition names them by their handle. It belongs to no repository.`,
		Example: "  pawl agent drivers\n  pawl agent create @reviewer --driver claude --model claude-opus-4-5 --role reviewer\n  pawl agent list",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.cmdAgentCreate(), a.cmdAgentSet(), a.cmdAgentList(), a.cmdAgentShow(), a.cmdAgentDrivers(), a.cmdAgentLogin())
	return cmd
}

func (a *app) cmdAgentCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create @HANDLE", Short: "Add an agent to the roster, and print its id", Args: exactly(1),
		Example: `  pawl agent create @dev --driver claude
  pawl agent create @local --driver qwen --provider ollama --base-url http://127.0.0.1:11434/v1 --model qwen3-coder
  pawl agent create @script --agent-command 'sh agents/fix.sh'`,
	}
	change := changeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.roster(cmd.Context(), false, func(r control.Roster) error {
			entry, err := r.Create(cmd.Context(), args[0], change())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(entry)
			}
			_, err = fmt.Fprintln(a.Out, entry.ID)
			return err
		})
	}
	return cmd
}

func (a *app) cmdAgentSet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set @HANDLE", Short: "Change an agent of the roster", Args: exactly(1), ValidArgsFunction: a.completeAgents,
		Long:    "Change what is named by a flag; an empty value takes it away. Loops see it with their next run.",
		Example: "  pawl agent set @dev --model claude-sonnet-4-5 --auth ''",
	}
	change := changeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !changed(cmd.Flags(), agentFlags) {
			return usage(cmd, "nothing is to be changed")
		}
		return a.roster(cmd.Context(), false, func(r control.Roster) error {
			entry, err := r.Set(cmd.Context(), args[0], change())
			if err != nil {
				return err
			}
			return a.printAgent(entry)
		})
	}
	return cmd
}

// agentFlags are those that set something of an agent.
var agentFlags = []string{"driver", "agent-command", "model", "provider", "base-url", "auth", "role", "board", "skill"}

// changeFlags adds the flags of what an agent has. The function that it returns
// tells which were given.
func changeFlags(cmd *cobra.Command) func() control.Change {
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
	return func() control.Change {
		c := control.Change{
			Driver: driver(), Command: command(), Model: model(), Provider: provider(), BaseURL: base(), Auth: auth(), Role: role(), Board: board(),
		}
		if f.Changed("skill") {
			c.Skills = slices.DeleteFunc(slices.Clone(*skills), func(s string) bool { return s == "" })
		}
		return c
	}
}

func changed(f *pflag.FlagSet, names []string) bool { return slices.ContainsFunc(names, f.Changed) }

func (a *app) cmdAgentList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the roster", Args: exactly(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.roster(cmd.Context(), true, func(r control.Roster) error {
				all, err := r.List(cmd.Context())
				if err != nil {
					return err
				}
				return a.printAgents(all)
			})
		},
	}
}

func (a *app) printAgents(all []loop.Agent) error {
	if a.json {
		return a.printJSON(listOf("pawl.agents/v1", all))
	}
	table := [][]string{{"HANDLE", "DRIVER", "MODEL", "ROLE", "BOARD", "ID"}}
	for _, who := range all {
		table = append(table, []string{
			"@" + cleanLine(who.Handle), cleanLine(who.Driver), orDash(cleanLine(who.Model)), orDash(cleanLine(who.Role)),
			orDash(cleanLine(who.Board)), orDash(who.ID),
		})
	}
	return a.columns(table)
}

func (a *app) cmdAgentShow() *cobra.Command {
	return &cobra.Command{
		Use: "show @HANDLE", Short: "Show an agent", Args: exactly(1), ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.roster(cmd.Context(), true, func(r control.Roster) error {
				entry, err := r.Show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printAgent(entry)
			})
		},
	}
}

func (a *app) printAgent(e control.AgentEntry) error {
	if a.json {
		return a.printJSON(e)
	}
	p := printer{w: a.Out}
	p.line("%s  %s", a.style().bold("@"+cleanLine(e.Handle)), orDash(e.ID))
	p.field("  ", "driver", e.Driver)
	p.field("  ", "command", e.Command)
	p.field("  ", "model", e.Model)
	p.field("  ", "provider", e.Provider)
	p.field("  ", "base_url", e.BaseURL)
	p.field("  ", "auth", string(e.Auth))
	p.field("  ", "role", e.Role)
	p.field("  ", "board", e.Board)
	p.field("  ", "skills", strings.Join(e.Skills, ", "))
	if !e.Updated.IsZero() {
		p.field("  ", "updated", ago(a.Now(), &e.Updated))
	}
	return p.err
}

func (a *app) cmdAgentDrivers() *cobra.Command {
	return &cobra.Command{
		Use: "drivers", Short: "Say which drivers this machine has programs, keys and logins for", Args: exactly(0),
		Long: `Say of every driver which program was found, in which version, and how it would get at its model.

With auth: inject a key stays outside of the sandbox, and every token is metered. With auth: lend a
subscription's login lies inside while a run lasts, for one run at a time, and usage is what the program
reports. A key goes before a login. Nothing is asked of a network: whether a vendor accepts what was
found shows in a run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := control.Doctor{Dir: a.dir(), Probe: a.prober(), Profiles: compose.Profiles()}
			return a.printDrivers(d.Drivers(cmd.Context()))
		},
	}
}

func (a *app) printDrivers(all []control.DriverView) error {
	if a.json {
		return a.printJSON(listOf("pawl.drivers/v1", all))
	}
	s, p := a.style(), printer{w: a.Out}
	for _, v := range all {
		mark := s.green("✓")
		switch v.State {
		case readiness.StateWarn:
			mark = s.yellow("!")
		case readiness.StateBad:
			mark = s.red("✗")
		}
		p.line("%s %s", mark, joined("  ", s.bold(v.Name), cleanLine(v.Says())))
		if v.State != readiness.StateBad {
			p.field("    ", "promise", v.Promise)
			p.field("    ", "resume", yesNo(v.Resume))
		}
		p.field("    ", "why", v.Problem)
		p.field("    ", "fix", v.Fix)
	}
	return p.err
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// roster calls fn with the roster of this home.
func (a *app) roster(ctx context.Context, read bool, fn func(control.Roster) error) error {
	return a.daemon(ctx, read, func(d *compose.Parts) error { return fn(d.Roster()) })
}

// logins calls fn with the logins that are kept in this home.
func (a *app) logins(ctx context.Context, read bool, fn func(control.Logins) error) error {
	return a.daemon(ctx, read, func(d *compose.Parts) error { return fn(d.Logins()) })
}

// daemon calls fn with the store of this home, which needs no repository.
func (a *app) daemon(ctx context.Context, read bool, fn func(*compose.Parts) error) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	o.ReadOnly = read
	d, err := compose.New(ctx, o)
	if err != nil {
		return err
	}
	err = fn(d)
	if closed := d.Close(); closed != nil {
		return errors.Join(err, fmt.Errorf("close the store: %w", closed))
	}
	return err
}

// completeAgents offers the handles of the roster for a first argument.
func (a *app) completeAgents(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		_ = a.roster(cmd.Context(), true, func(r control.Roster) error {
			all, err := r.List(cmd.Context())
			for _, who := range all {
				if name := "@" + who.Handle; strings.HasPrefix(name, prefix) && who.ID != "" {
					names = append(names, cleanLine(name)+"\t"+excerpt(who.Role, 60))
				}
			}
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
