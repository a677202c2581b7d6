package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/waiting"
)

type runOptions struct {
	control.RunRequest
	dryRun    bool
	exitQuiet int
}

func (a *app) cmdRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run [LOOP]", Short: "Run a loop once, in the foreground", Args: between(0, 1), ValidArgsFunction: a.completeLoops,
		Long: `Run a loop once, in the foreground and live.

With --until no file is needed: the agent repairs until the command passes, on a branch of its own. If the command
passes already there is nothing to do, and no run is made. Without --agent the only agent of this machine that has a
login works. Give the loop a --name to find it again; pawl rm NAME forgets it.`,
		Example: `  pawl run keep-tests-green
  pawl run ci-watch --request "look at the flaky test" --iterations 2
  pawl run --until "go test ./..." --scope 'internal/**' --agent-command 'my-agent'
  pawl run --until "npm test" --name npm-green --scope 'src/**' --guard "npm run lint" --network registry.npmjs.org
  pawl run keep-tests-green --sandbox external`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fill(cmd, args); err != nil {
				return err
			}
			if err := a.untilAgent(cmd.Context(), &o.RunRequest); err != nil {
				return err
			}
			if o.dryRun {
				return a.dryRun(cmd.Context(), o.RunRequest)
			}
			return a.run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Request, "request", "", "what you ask for in this run")
	f.StringVar(&o.Until, "until", "", "repair until this `command` passes")
	f.StringArrayVar(&o.Scope, "scope", nil, "with --until: a `glob` of what may be changed (repeat it)")
	f.StringVar(&o.Name, "name", "", "with --until: the loop's `name`, like keep-tests-green")
	f.StringVar(&o.Flags.Guard, "guard", "", "with --until: a `command` that must pass, too")
	f.StringVar(&o.Flags.Setup, "setup", "", "with --until: the `command` that prepares dependencies, or none")
	f.StringArrayVar(&o.Flags.Network, "network", nil, "with --until: a `host` that may be reached (repeat it)")
	f.StringArrayVar(&o.Flags.Env, "env", nil, "with --until: the name of a `variable` that agent and gates may see (repeat it)")
	f.StringVar(&o.Flags.BudgetUSDDay, "usd", "", "with --until: at most so many US `dollars` in a day of UTC")
	f.StringVar(&o.Flags.BaseURL, "base-url", "", "with --until: the `URL` where the model is served")
	f.IntVar(&o.Overrides.MaxIterations, "iterations", 0, "at most `n` iterations")
	f.StringVar(&o.Overrides.Agent, "agent", "", "another agent")
	f.StringVar(&o.Overrides.AgentCommand, "agent-command", "", "another program as agent, run by the shell")
	f.StringVar(&o.Overrides.Model, "model", "", "another model")
	f.StringVar(&o.Overrides.Sandbox, "sandbox", "", "another `tier` of confinement: "+strings.Join(control.Tiers(), ", "))
	f.IntVar(&o.exitQuiet, "exit-quiet", 0, "exit with `n` instead of 0 if there was nothing to do")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would run; start and write nothing")
	complete(cmd, "sandbox", among(control.Tiers()...))
	return cmd
}

func (o *runOptions) fill(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		o.Loop = args[0]
	}
	switch {
	case o.Loop == "" && o.Until == "":
		return usage(cmd, "which loop? Name one, or give --until")
	case o.Loop != "" && o.Until != "":
		return usage(cmd, "both a loop and --until are given")
	case o.Flags.BaseURL != "" && o.Overrides.AgentCommand != "" && o.Overrides.Agent == "":
		return usage(cmd, "--base-url goes with --agent: pawl does not know how another program asks its model")
	case o.Loop != "" && len(o.Scope) > 0:
		return usage(cmd, "--scope goes with --until; a loop's scope is in its definition")
	}
	for _, flag := range []string{"name", "guard", "setup", "network", "env", "usd", "base-url"} {
		switch f := cmd.Flag(flag); {
		case f.Changed && o.Until == "":
			return usage(cmd, "--"+flag+" goes with --until; a loop's own is in its definition")
		case f.Changed && strings.TrimSpace(strings.Trim(f.Value.String(), "[]")) == "":
			return usage(cmd, "--"+flag+" is given and empty")
		}
	}
	switch {
	case cmd.Flags().Changed("iterations") && o.Overrides.MaxIterations < 1:
		return usage(cmd, fmt.Sprintf("--iterations %d: write a number above 0", o.Overrides.MaxIterations))
	case o.exitQuiet < 0 || o.exitQuiet > mostExit:
		return usage(cmd, fmt.Sprintf("--exit-quiet %d: write a number from 0 to %d", o.exitQuiet, mostExit))
	case cmd.Flags().Changed("sandbox") && o.Overrides.Sandbox == "":
		return usage(cmd, "--sandbox is empty: write one of "+strings.Join(control.Tiers(), ", "))
	case cmd.Flags().Changed("until") && strings.TrimSpace(o.Until) == "":
		return usage(cmd, "--until is empty: write the command that has to pass")
	}
	return nil
}

// untilAgent chooses who works for a run --until that names nobody: the only agent of
// this machine that has a login.
func (a *app) untilAgent(ctx context.Context, r *control.RunRequest) error {
	if r.Until == "" || r.Overrides.Agent != "" || r.Overrides.AgentCommand != "" {
		return nil
	}
	switch ready := a.readyAgents(ctx); len(ready) {
	case 0:
		return nil // What is missing is said with how to get it.
	case 1:
		r.Overrides.Agent = ready[0]
		_, _ = fmt.Fprintf(a.Err, "note: %s\n", onlyAgent(ready[0]))
		return nil
	default:
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "no agent is named", Why: "several have a login on this machine", Fix: "pass --agent with one of " + strings.Join(ready, ", "),
		}
	}
}

// run carries out one run and prints its account. A run that did not succeed
// is an error that carries the view.
func (a *app) run(ctx context.Context, o runOptions) error {
	defer unheard()()
	show := &lateWatcher{}
	return a.writing(ctx, show.see, func(s *compose.Verbs) error {
		checked := waiting.For(ctx, "the checks before the run", nil)
		o.By = a.actor("")
		p, err := s.Prepare(ctx, o.RunRequest)
		checked()
		if err != nil {
			return err
		}
		intent, err := intentOf(ctx, s, p, o.RunRequest)
		if err != nil {
			return err
		}
		a.warn(intent)
		if !a.json && intent.Paused == "" {
			_ = a.announce(intent) // A run does not depend on whether somebody reads about it.
		}
		show.watcher = a.watch(intent.Limits.Iterations)
		a.running.Store(true)
		show.begun = waiting.For(ctx, "the run to begin", nil)
		view, err := s.Start(ctx, p)
		show.begun()
		a.running.Store(false)
		show.close()
		if err != nil {
			return err
		}
		if err := a.account(view); err != nil || view.Outcome != loop.OutcomeQuiet || o.exitQuiet == 0 {
			return err
		}
		return quietError(o.exitQuiet)
	})
}

// mostExit is the highest exit status that a shell takes for one: above it are its own
// and those of signals.
const mostExit = 125

// quietError is the exit status that was asked for where a run found nothing to do.
// There is nothing to explain.
type quietError int

func (e quietError) Error() string { return "there was nothing to do" }

// lateWatcher is known when the store is opened and begins to show when the
// run starts.
type lateWatcher struct {
	watcher

	begun func() // ends the wait for the first event; nil before the run starts
}

func (l *lateWatcher) see(e loop.Event) {
	if l.begun != nil {
		l.begun()
	}
	if l.watcher != nil {
		l.watcher.see(e)
	}
}

// warn prints on standard error what a person should know before it runs.
func (a *app) warn(i intent) {
	for _, w := range i.Warnings {
		_, _ = fmt.Fprintf(a.Err, "pawl: warning: %s\n", indented(w, "  "))
	}
	if i.Dirty {
		_, _ = fmt.Fprintf(a.Err, "pawl: the checkout has uncommitted work, which this run does not see: it starts from commit %s\n", shortHash(i.Base.Commit))
	}
}

// announce says what is about to act, and on what.
func (a *app) announce(i intent) error {
	p := printer{w: a.Out}
	p.line("%s · %s · base %s", a.style().bold(cleanLine(i.Loop)), i.Tier, i.Base)
	p.field("  ", "goal", i.Goal)
	p.field("  ", "agent", i.agent())
	p.field("  ", "gates", joined(" · ", i.Gates.Verify, i.Gates.Guard))
	p.field("  ", "sandbox", sandbox(i.Sandbox))
	return p.err
}

// account is what stands at the end of a run.
func (a *app) account(v control.RunView) error {
	if a.json {
		if err := a.printJSON(v); err != nil {
			return err
		}
	} else if err := a.closing(v); err != nil {
		return err
	}
	if v.Outcome.Success() {
		return nil
	}
	return &endedError{v}
}

func (a *app) closing(v control.RunView) error {
	p := printer{w: a.Out}
	if v.ID == "" {
		p.line("– %s", cleanLine(v.Detail))
		return p.err
	}
	p.line("")
	p.line("%s  %s", a.style().result(v.Outcome, v.Reason, v.State), a.style().bold(runName(v)))
	if v.Outcome.Success() {
		p.detailed("why", v.Reason, v.Detail)
	}
	p.said("  ", "it says", v.Summary)
	if v.Branch != "" {
		p.field("  ", "branch", v.Branch+" ("+shortHash(v.Commit)+")")
	}
	if v.Branch != "" && v.Outcome == loop.OutcomeProposed {
		p.field("  ", "look", fmt.Sprintf("pawl diff %s   or   git diff %s %s", runName(v), shortHash(v.Base), v.Branch))
	}
	if v.Branch != "" && v.Outcome == loop.OutcomeProposed && v.PullRequest() == "" {
		p.field("  ", "take", takes(v))
	}
	p.field("  ", "pull request", v.PullRequest())
	p.field("  ", "kept in", v.Snapshot)
	if v.Outcome == loop.OutcomeQuiet {
		p.field("  ", "next", control.Next(v))
	}
	p.field("  ", "trace", "pawl trace "+runName(v))
	p.field("  ", "tokens", tokens(v.Tokens))
	p.field("  ", "cost", costText(v))
	p.field("  ", "time", spent(v.MS))
	p.field("  ", "sandbox", sandbox(v.Sandbox))
	return p.err
}

// takes is how a proposal gets where it belongs: by a yes if one is asked for.
func takes(v control.RunView) string {
	if v.Answer == loop.ApprovalOpen {
		return "pawl approve " + runName(v) + "   or   git merge " + v.Branch
	}
	return "git merge " + v.Branch
}
