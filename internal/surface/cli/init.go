package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

type initOptions struct {
	loops.ScaffoldRequest
	tier     string
	pkg      string // folder
	yes      bool
	noLoop   bool
	agentsMD bool
	accept   bool
	join     string // id of a workspace
	newID    bool
	owner    bool // whose this clone is, is accepted
}

func newInitCommand(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use: "init", Short: "Find out what a repository needs, and propose a first loop", Args: exactArgs(0),
		Long: `Look at the repository and the machine, register the repository as a workspace and propose a first loop with
what it would cost: test, lint, type-check and set-up commands, toolchains behind shims, installed agents and their
logins. Every question is also a flag. Nothing is written before you said yes, or --yes did.`,
		Example: "  pawl init\n  pawl init --yes --tier L2 --agent claude\n  pawl init --yes --verify 'make test' --scope 'src/**' --agent-command 'my-agent'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.yes, "yes", false, "take the proposal, ask nothing")
	f.BoolVar(&o.noLoop, "no-loop", false, "register the workspace only")
	f.BoolVar(&o.agentsMD, "agents-md", false, "add a section about pawl to AGENTS.md")
	f.BoolVar(&o.accept, "accept-git-config", false, "record what git would execute in this repository as it is now")
	f.BoolVar(&o.owner, "accept-owner", false, "accept that this repository belongs to another user, and nothing else")
	f.StringVar(&o.join, "join", "", "make this clone a place of the workspace with this `id`, and nothing else")
	f.BoolVar(&o.newID, "new-id", false, "make this clone a workspace of its own, and nothing else: it is a copy of another")
	f.BoolVar(&o.Force, "force", false, "write over the four files of a loop that is there")
	f.StringVar(&o.Name, "name", "", "`name` of the loop (default: keep-tests-green)")
	f.StringVar(&o.pkg, "package", "", "propose a loop for the package in this `folder` only")
	f.StringVar(&o.Pattern, "pattern", "", "a `pattern` of the catalogue (default: ci-watch)")
	f.StringVar(&o.tier, "tier", "", "L1 reports, L2 proposes a branch (default: L1)")
	f.StringVar(&o.Cadence, "cadence", "", "how often it fires (default: 1h)")
	f.StringVar(&o.Goal, "goal", "", "what it does and must not do, one `sentence`")
	f.StringArrayVar(&o.Scope, "scope", nil, "a `glob` that it may touch (repeat it)")
	f.StringVar(&o.Sense, "sense", "", "`command` that looks for work without a token, or gates")
	f.StringVar(&o.Verify, "verify", "", "the gate `command`")
	f.StringVar(&o.Guard, "guard", "", "the `command` that must always pass")
	f.StringVar(&o.Setup, "setup", "", "`command` that installs what they need")
	f.StringVar(&o.Agent, "agent", "", "claude, codex, gemini, opencode, qwen, goose or command")
	f.StringVar(&o.AgentCommand, "agent-command", "", "the program that acts, run by the shell")
	f.StringArrayVar(&o.Env, "env", nil, "`name` of a variable that agent and gates get (repeat it)")
	completeFlag(cmd, "pattern", completePatterns())
	completeFlag(cmd, "tier", offerWords("L1\treports", "L2\tproposes a branch", "L3\tlands what it may"))
	completeFlag(cmd, "agent", offerWords(append(setup.AgentPrograms(), "command")...))
	return cmd
}

// placeClone says which workspace a clone is.
func placeClone(ctx context.Context, a *app, o initOptions) error {
	if o.join != "" && o.newID {
		return &loop.Fault{Exit: loop.ExitUsage, What: "--join and --new-id exclude each other", Fix: "give the one that says what this clone is"}
	}
	p, ws, before := a.printer(), loop.Workspace{ID: o.join, Root: a.workDir()}, ""
	err := a.withParts(ctx, false, func(parts *compose.Parts) (err error) {
		if o.join != "" {
			before, err = parts.Join(ctx, a.workDir(), o.join)
			return err
		}
		ws, err = parts.Separate(ctx, a.workDir())
		return err
	})
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.WriteJSON(ws)
	case before != "" && before != ws.ID:
		p.Line("%s is a place of workspace %s now; it was %s, whose runs stay in the store", output.CleanLine(ws.Root), ws.ID, before)
	case o.join != "":
		p.Line("%s is a place of workspace %s now", output.CleanLine(ws.Root), output.CleanLine(ws.ID))
	default:
		p.Line("%s is workspace %s now", output.CleanLine(ws.Root), ws.ID)
	}
	return p.Err()
}

// acceptOwner accepts that the repository belongs to another user.
func acceptOwner(a *app) error {
	settings, err := a.composeOptions()
	if err != nil {
		return err
	}
	root, accepted, err := compose.AcceptOwner(settings.Settings.Home, a.workDir(), a.Environ)
	p := a.printer()
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.WriteJSON(map[string]any{"root": root, "accepted": accepted})
	case accepted:
		p.Line("%s is accepted although it belongs to another user", output.CleanLine(root))
	default:
		p.Line("%s is your own: there is nothing to accept", output.CleanLine(root))
	}
	return p.Err()
}

func runInit(ctx context.Context, a *app, o initOptions) error {
	if o.owner {
		return acceptOwner(a)
	}
	if o.join != "" || o.newID {
		return placeClone(ctx, a, o)
	}
	o.Tier, o.Now = loop.Tier(o.tier), a.Now()
	var survey setup.Survey
	err := a.withReadOnlyVerbs(ctx, func(s *api.Workspace) (err error) {
		survey, err = s.Setup.Survey(ctx, compose.Prober(a.Environ, a.Now()))
		return err
	})
	if err != nil {
		return err
	}
	p := a.printer()
	o.Work = survey.Root
	if !p.JSON {
		printSurvey(p, survey)
	}
	if o.pkg != "" {
		if survey, err = survey.ForPackage(o.pkg); err != nil {
			return err
		}
	}
	if name := survey.ExistingLoop(o.ScaffoldRequest); name != "" && !o.noLoop {
		o.noLoop = true // A second init does not make a second loop.
		p.Note("the loop %s is there already; --name makes another, --force writes over it", name)
	}
	if !o.noLoop {
		o.ScaffoldRequest = survey.CompleteRequest(o.ScaffoldRequest)
		if !o.yes && a.canAsk() {
			a.askQuestions(&o)
		}
	}
	plan := setup.NewInitiation(survey)
	if !o.noLoop {
		settings, err := a.composeOptions()
		if err != nil {
			return err
		}
		if plan, err = survey.Propose(ctx, a.formats(), settings.Settings.Home, o.ScaffoldRequest); err != nil {
			return err
		}
	}
	if !p.JSON {
		printInitPlan(p, plan, o)
	}
	if !o.yes && (!a.canAsk() || !a.confirm("Write this?")) {
		if p.JSON {
			return p.WriteJSON(plan)
		}
		p.Note("nothing was written; pawl init --yes writes it")
		return nil
	}
	return a.withCaller(ctx, nil, func(c verb.Caller) error {
		if _, err := api.RegisterWorkspace.Call(ctx, c, api.RegisterRequest{Accept: o.accept}); err != nil {
			return err
		}
		if !o.noLoop {
			made, err := loops.Scaffold(ctx, a.formats(), o.ScaffoldRequest)
			if err != nil {
				return err
			}
			plan.Loop = &made
		}
		added := false
		if o.agentsMD {
			err := a.withReadOnlyVerbs(ctx, func(s *api.Workspace) (err error) {
				added, err = s.Setup.AddAgentsSection()
				return err
			})
			if err != nil {
				return err
			}
		}
		registered, err := api.RegisterLoops.Call(ctx, c, verb.None{})
		if err != nil {
			return err
		}
		plan.Written, plan.Loops = true, &registered
		return printWritten(p, plan, o.Name, added)
	})
}

// printWritten says what was written and what to do next.
func printWritten(p *output.Printer, plan setup.Initiation, name string, agentsMD bool) error {
	if p.JSON {
		return p.WriteJSON(plan)
	}
	p.Line("")
	p.Line("registered  %s", output.Clean(plan.Survey.Root))
	if n := plan.Loops.Loops; n > 0 {
		broken := ""
		if plan.Loops.Broken > 0 {
			broken = fmt.Sprintf("; %d of them broken: pawl ls says why", plan.Loops.Broken)
		}
		p.Line("loops       %d%s", n, broken)
	}
	if agentsMD {
		p.Line("added       a section about pawl to AGENTS.md")
	}
	if plan.Loop == nil {
		return p.Err()
	}
	for _, f := range plan.Loop.Files {
		p.Line("wrote       %s", output.Clean(f.Path))
	}
	p.Line("")
	if len(plan.Missing) > 0 {
		p.Line("first: say what is marked with ! above, in %s: pawl config edit %s", output.Clean(plan.Loop.Path), name)
		p.Line("")
	}
	p.Line("next:  pawl check %s            is the definition complete?", name)
	p.Line("       pawl doctor %s --live    will it run here, and do its gates pass on the base?", name)
	p.Line("       pawl run %s              one run, live", name)
	p.Line("then:  pawl up                  fires loops when they are due; pawl service install --user keeps it at work")
	return p.Err()
}

// askQuestions asks for each part of the proposal. An empty answer keeps what is in
// brackets.
func (a *app) askQuestions(o *initOptions) {
	tier := string(o.Tier)
	scope := strings.Join(o.Scope, " ")
	for _, q := range []struct {
		what string
		at   *string
	}{
		{"name of the loop", &o.Name},
		{"tier (L1 reports, L2 proposes a branch)", &tier},
		{"how often", &o.Cadence},
		{"goal", &o.Goal},
		{"scope, globs with spaces between", &scope},
		{"verify, the gate", &o.Verify},
		{"guard, must always pass", &o.Guard},
		{"agent (" + strings.Join(setup.AgentPrograms(), ", ") + ", api, acp, command)", &o.Agent},
		{"its program, for acp and command", &o.AgentCommand},
	} {
		answer, ok := a.ask(q.what + " [" + output.CleanLine(*q.at) + "]: ")
		if answer != "" {
			*q.at = answer
		}
		if !ok {
			break
		}
	}
	o.Tier, o.Scope = loop.Tier(tier), strings.Fields(scope)
	if o.AgentCommand != "" && o.Agent == "" {
		o.Agent = "command"
	}
}
