package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
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
		Use: "create @HANDLE", Short: "Add an agent to the roster or to boards, and print its id", Args: exactArgs(1),
		Long: `Add an agent. With a driver or a program it is in the roster, and definitions may name it. With --board it works on that board, and its
heartbeat is the loop @HANDLE: pawl run, show, why and pause take it as any other, and pawl up wakes it every --interval. An agent of
boards without a driver acts by the entry of the roster that has its handle; without one, each run has to say who acts.`,
		Example: `  pawl agent create @dev --driver claude
  pawl agent create @local --driver qwen --provider ollama --base-url http://127.0.0.1:11434/v1 --model qwen3-coder
  pawl agent create @script --agent-command 'sh agents/fix.sh'
  pawl agent create @ada --driver claude --role 'frontend developer' --layer specialist --board site --capability 'npm test'`,
	}
	change, member := addChangeFlags(cmd), addMemberFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if changesAny(cmd, memberFlags) {
			return saveMember(cmd.Context(), a, boards.CreateMember.Call, args[0], withDriver(cmd, member(), change()), func(p *output.Printer, v boards.AgentView) error {
				if v.Agent == "" && !p.JSON {
					p.Note("nobody acts for it yet: pawl agent set @%s --driver D, or pawl run @%s --agent A", v.Handle, v.Handle)
				}
				return printID(p, "@"+v.Handle, v)
			})
		}
		return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
			entry, err := api.CreateAgent.Call(cmd.Context(), c, api.AgentChange{Agent: args[0], Change: change()})
			if err != nil {
				return err
			}
			if err := followMember(cmd.Context(), c, args[0]); err != nil {
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
		Use: "set @HANDLE", Short: "Change an agent of the roster or of boards", Args: exactArgs(1), ValidArgsFunction: completeAgents(a),
		Long:    "Change what is named by a flag; an empty value takes it away. Loops see it with their next run.",
		Example: "  pawl agent set @dev --model claude-sonnet-4-5 --auth ''\n  pawl agent set @ada --interval 10m --dormant=false",
	}
	change, member := addChangeFlags(cmd), addMemberFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !changesAny(cmd, slices.Concat(agentFlags, memberFlags, bothFlags)) {
			return usageError(cmd, "nothing is to be changed")
		}
		isMember, err := isMember(cmd.Context(), a, args[0])
		if err != nil {
			return err
		}
		if changesAny(cmd, memberFlags) || isMember {
			save := boards.SetMember.Call
			if !isMember {
				save = boards.CreateMember.Call // It is in the roster, and gets its boards now.
			}
			return saveMember(cmd.Context(), a, save, args[0], withDriver(cmd, member(), change()), func(p *output.Printer, v boards.AgentView) error {
				return printAgentAsIs(cmd.Context(), a, p, v.Handle)
			})
		}
		return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
			entry, err := api.SetAgent.Call(cmd.Context(), c, api.AgentChange{Agent: args[0], Change: change()})
			if err != nil {
				return err
			}
			return printAgent(a.printer(), agentRow{Entry: entry})
		})
	}
	return cmd
}

// Flags that set something of an agent: of an entry of the roster, of an agent of boards, or
// of both.
var (
	agentFlags  = []string{"driver", "agent-command", "model", "provider", "base-url", "auth", "max-runs", "account-max-runs"}
	memberFlags = []string{"board", "layer", "lead", "leads", "capability", "interval", "dormant", "name"}
	bothFlags   = []string{"role", "skill"}
)

func changesAny(cmd *cobra.Command, flags []string) bool {
	return slices.ContainsFunc(flags, cmd.Flags().Changed)
}

// addChangeFlags adds the flags of what an agent has. The returned function says
// which of them were given.
func addChangeFlags(cmd *cobra.Command) func() roster.Change {
	f := cmd.Flags()
	driver, command := given(f, "driver", "which `driver` speaks to it"), given(f, "agent-command", "`command` line of the program, run by the shell")
	model, provider := given(f, "model", "`model` that it uses"), given(f, "provider", "who serves the model: anthropic, openai, gemini, or another `name` with --base-url")
	base, auth := given(f, "base-url", "`address` of the model's API"), given(f, "auth", "inject (a key, metered) or lend (a login); empty: whichever there is")
	role, skills := given(f, "role", "what it is there for"), givenList(f, "skill", "what it is good at; may be repeated")
	runs := f.Int64("max-runs", 0, "how many runs it may act in at once, of all loops and nodes; 0: any `number`")
	accountRuns := f.Int64("account-max-runs", 0, "it does not act while so many runs act with its account; 0: any `number`")
	return func() roster.Change {
		c := roster.Change{
			Driver: driver(), Command: command(), Model: model(), Provider: provider(), BaseURL: base(), Auth: auth(), Role: role(), Skills: skills(),
		}
		if f.Changed("max-runs") {
			c.MaxRuns = runs
		}
		if f.Changed("account-max-runs") {
			c.AccountMaxRuns = accountRuns
		}
		return c
	}
}

// agentRow is an agent with all that is known of it here.
type agentRow struct {
	roster.Entry

	Member *boards.AgentView `json:"member,omitempty"` // nil: it works on no board of this repository
}

func newAgentListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the roster, and the agents of the repository's boards", Args: exactArgs(0), Aliases: []string{"ls"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				rows, err := listAgents(cmd.Context(), c)
				if err != nil {
					return err
				}
				return printAgents(a.printer(), rows)
			})
		},
	}
}

// listAgents lists the agents of boards that are not in the roster before those that are in
// it.
func listAgents(ctx context.Context, c verb.Caller) (rows []agentRow, err error) {
	all, err := api.ListAgents.Call(ctx, c, verb.None{})
	if err != nil {
		return nil, err
	}
	members, err := listMembers(ctx, c)
	for _, m := range members {
		if m.Agent == "" {
			rows = append(rows, agentRow{Entry: roster.Entry{Agent: loop.Agent{Handle: m.Handle, Role: m.Role}}, Member: &m})
		}
	}
	for _, who := range all {
		row := agentRow{Entry: roster.Entry{Agent: who}}
		if i := slices.IndexFunc(members, func(m boards.AgentView) bool { return m.Handle == who.Handle }); i >= 0 {
			row.Member = &members[i]
		}
		rows = append(rows, row)
	}
	return rows, err
}

// listMembers lists the agents of the repository's boards; none without a repository.
func listMembers(ctx context.Context, c verb.Caller) ([]boards.AgentView, error) {
	all, err := boards.ListMembers.Call(ctx, c, verb.None{})
	if errors.Is(err, loop.ErrNotFound) {
		err = nil
	}
	return all, err
}

func isMember(ctx context.Context, a *app, handle string) (is bool, err error) {
	err = a.withCaller(ctx, nil, func(c verb.Caller) error {
		all, err := listMembers(ctx, c)
		is = slices.ContainsFunc(all, func(m boards.AgentView) bool { return m.Handle == strings.TrimPrefix(handle, "@") })
		return err
	})
	return is, err
}

// followMember makes the loop of an agent of boards follow its entry of the roster.
func followMember(ctx context.Context, c verb.Caller, handle string) error {
	all, err := listMembers(ctx, c)
	if err != nil || !slices.ContainsFunc(all, func(m boards.AgentView) bool { return m.Handle == strings.TrimPrefix(handle, "@") }) {
		return err
	}
	_, err = boards.SetMember.Call(ctx, c, boards.MemberChange{Agent: handle})
	return err
}

// saveMember makes or changes an agent of boards.
func saveMember(ctx context.Context, a *app, save verb.Ask[boards.MemberChange, boards.AgentView], handle string, c boards.AgentChange, show func(*output.Printer, boards.AgentView) error) error {
	return a.writing(ctx, "", func(ask verb.Caller) error {
		v, err := save(ctx, ask, boards.MemberChange{Agent: handle, AgentChange: c})
		if err != nil {
			return err
		}
		return show(a.printer(), v)
	})
}

// withDriver adds what is said of the entry of the roster, if something is.
func withDriver(cmd *cobra.Command, c boards.AgentChange, entry roster.Change) boards.AgentChange {
	if changesAny(cmd, agentFlags) {
		c.Driver = &entry
	}
	return c
}

// addMemberFlags adds the flags of an agent of boards. What it shares with an entry of the
// roster is added by addChangeFlags before.
func addMemberFlags(cmd *cobra.Command) func() boards.AgentChange {
	f := cmd.Flags()
	boardsOf, capabilities := givenList(f, "board", "a `board` that it works on; may be repeated"), givenList(f, "capability", "the first words of `commands` that it may run, as in 'go test'; may be repeated")
	layer, lead := given(f, "layer", "`word`: "+joinWords(board.Layers())+" (default: specialist)"), given(f, "lead", "the `@handle` of whom it reports to (default: the lead of its board)")
	leads, interval := given(f, "leads", "the `board` that it leads"), given(f, "interval", "`time` between heartbeats, as in 1m (default: 20m)")
	name := given(f, "name", "its `name` (default: the handle)")
	dormant := f.Bool("dormant", false, "it has no heartbeats")
	completeFlag(cmd, "layer", offerWords(strings.Split(joinWords(board.Layers()), ", ")...))
	return func() boards.AgentChange {
		text := func(flag string) *string {
			if !f.Changed(flag) {
				return nil
			}
			value := f.Lookup(flag).Value.String()
			return &value
		}
		c := boards.AgentChange{Name: name(), Role: text("role"), Layer: layer(), Lead: lead(), Leads: leads(), Interval: interval(), Boards: boardsOf(), Capabilities: capabilities()}
		if f.Changed("skill") {
			skills, err := f.GetStringArray("skill")
			if err != nil {
				panic("cli: --skill is not a list: " + err.Error()) // addChangeFlags has added it.
			}
			c.Skills = slices.DeleteFunc(skills, func(s string) bool { return s == "" })
		}
		if f.Changed("dormant") {
			c.Dormant = dormant
		}
		return c
	}
}

func printAgents(p *output.Printer, all []agentRow) error {
	return output.List[agentRow]{
		Schema: "pawl.agents/v1", Heading: []string{"HANDLE", "DRIVER", "MODEL", "ROLE", "BOARD", "ID"},
		Cells: func(who agentRow) []string {
			boardsOf := who.Board
			if who.Member != nil {
				who.Role, boardsOf = who.Member.Role, strings.Join(who.Member.Slugs, ", ")
			}
			return []string{
				"@" + output.CleanLine(who.Handle), orDash(output.CleanLine(who.Driver)), orDash(output.CleanLine(who.Model)), orDash(output.CleanLine(who.Role)),
				orDash(output.CleanLine(boardsOf)), orDash(who.ID),
			}
		},
	}.Print(p, all)
}

func newAgentShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show @HANDLE", Short: "Show an agent", Args: exactArgs(1), ValidArgsFunction: completeAgents(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printAgentAsIs(cmd.Context(), a, a.printer(), args[0])
		},
	}
}

// printAgentAsIs prints what the roster and the boards say of an agent.
func printAgentAsIs(ctx context.Context, a *app, p *output.Printer, handle string) error {
	return a.withCaller(ctx, nil, func(c verb.Caller) error {
		members, err := listMembers(ctx, c)
		if err != nil {
			return err
		}
		row := agentRow{}
		if i := slices.IndexFunc(members, func(m boards.AgentView) bool { return m.Handle == strings.TrimPrefix(handle, "@") }); i >= 0 {
			row.Member = &members[i]
		}
		row.Entry, err = api.ShowAgent.Call(ctx, c, api.AgentRef{Agent: handle})
		if row.Member != nil && errors.Is(err, loop.ErrNotFound) {
			row.Entry, err = roster.Entry{Schema: "pawl.agent/v1", Agent: loop.Agent{Handle: row.Member.Handle}}, nil
		}
		if err != nil {
			return err
		}
		return printAgent(p, row)
	})
}

func printAgent(p *output.Printer, e agentRow) error {
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
	if e.Member == nil {
		p.Field("  ", "role", e.Role)
		p.Field("  ", "board", e.Board)
		p.Field("  ", "skills", strings.Join(e.Skills, ", "))
	}
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
	if e.Member != nil {
		printMember(p, *e.Member)
	}
	return p.Err()
}

// printMember prints what boards have of an agent.
func printMember(p *output.Printer, m boards.AgentView) {
	p.Field("  ", "name", output.CleanLine(m.Name))
	p.Field("  ", "role", output.CleanLine(m.Role))
	p.Field("  ", "layer", string(m.Layer))
	p.Field("  ", "skills", strings.Join(m.Skills, ", "))
	p.Field("  ", "boards", strings.Join(m.Slugs, ", "))
	if len(m.Chain) > 0 {
		p.Field("  ", "reports", "to @"+strings.Join(m.Chain, ", @"))
	}
	for _, c := range m.Capabilities {
		p.Field("  ", "may run", strings.Join(c, " "))
	}
	p.Field("  ", "wakes", "every "+cmp.Or(m.Interval, "20m"))
	if m.Dormant {
		p.Field("  ", "dormant", "it has no heartbeats")
	}
	p.Field("  ", "status", joinNonEmpty(", ", string(m.Status), heartbeatOf(p, m)))
	p.Field("  ", "task", m.CurrentTaskID)
	if h := m.HealthMetrics; h.TasksCompleted+h.TasksFailed > 0 {
		p.Field("  ", "tasks", fmt.Sprintf("%d done, %d failed", h.TasksCompleted, h.TasksFailed))
	}
	if n := m.WorkingMemory.ErrorCount; n > 0 {
		p.Field("  ", "errors", fmt.Sprintf("%d in a row", n))
	}
	for _, r := range m.WorkingMemory.Reflections[max(0, len(m.WorkingMemory.Reflections)-3):] {
		p.QuotedField("  ", "learned", r)
	}
}

func heartbeatOf(p *output.Printer, m boards.AgentView) string {
	if m.LastHeartbeat == 0 {
		return "no heartbeat yet"
	}
	return "heartbeat " + agoMillis(p, m.LastHeartbeat)
}

// agentTable is a table of agents of boards.
func agentTable(p *output.Printer, all []boards.AgentView) [][]string {
	rows := [][]string{{"AGENT", "LAYER", "ROLE", "STATUS", "HEARTBEAT", "TASK"}}
	for _, m := range all {
		rows = append(rows, []string{"@" + output.CleanLine(m.Handle), string(m.Layer), excerpt(m.Role, 24), string(m.Status), agoMillis(p, m.LastHeartbeat), orDash(m.CurrentTaskID)})
	}
	return rows
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
