package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

type runOptions struct {
	runs.StartRequest
	dryRun    bool
	detach    bool // do not wait for its end
	exitQuiet int
}

func newRunCommand(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run [LOOP]", Short: "Run a loop once, in the foreground", Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		Long: `Run a loop once, in the foreground and live.

With --until no file is needed: the agent repairs until the command passes, on a branch of its own. If the command
passes already there is nothing to do, and no run is made. Without --agent the only agent of this machine that has a
login works. Give the loop a --name to find it again; pawl rm NAME forgets it.

While another run of the loop is live, or a run of another loop whose scope overlaps, nothing is started and the exit
status is 16. With --wait the run begins once nothing is in its way.`,
		Example: `  pawl run keep-tests-green
  pawl run ci-watch --request "look at the flaky test" --iterations 2
  pawl run --until "go test ./..." --scope 'internal/**' --agent-command 'my-agent'
  pawl run --until "npm test" --name npm-green --scope 'src/**' --guard "npm run lint" --network registry.npmjs.org
  pawl run keep-tests-green --sandbox external`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Loop = args[0]
			}
			if err := o.validate(cmd); err != nil {
				return err
			}
			if err := chooseUntilAgent(cmd.Context(), a, &o.StartRequest); err != nil {
				return err
			}
			if o.dryRun {
				return dryRun(cmd.Context(), a, o.StartRequest)
			}
			return runLoop(cmd.Context(), a, o, func(ctx context.Context, c verb.Caller) (runs.View, error) {
				return api.StartRun.Call(ctx, c, o.StartRequest)
			})
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
	f.StringVar(&o.Overrides.Sandbox, "sandbox", "", "another `tier` of confinement: "+strings.Join(runs.Tiers(), ", "))
	f.BoolVar(&o.Wait, "wait", false, "wait for a run that is in the way: one of this loop, or one that may touch the same files")
	f.IntVar(&o.exitQuiet, "exit-quiet", 0, "exit with `n` instead of 0 if there was nothing to do")
	f.BoolVar(&o.detach, "detach", false, "leave the run to pawl up, and print its id")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would run; start and write nothing")
	completeFlag(cmd, "sandbox", offerWords(runs.Tiers()...))
	return cmd
}

// validate refuses flags that are empty, invalid or do not go together.
func (o *runOptions) validate(cmd *cobra.Command) error {
	switch {
	case o.Loop == "" && o.Until == "":
		return usageError(cmd, "which loop? Name one, or give --until")
	case o.Loop != "" && o.Until != "":
		return usageError(cmd, "both a loop and --until are given")
	case o.Flags.BaseURL != "" && o.Overrides.AgentCommand != "" && o.Overrides.Agent == "":
		return usageError(cmd, "--base-url goes with --agent: pawl does not know how another program asks its model")
	case o.Loop != "" && len(o.Scope) > 0:
		return usageError(cmd, "--scope goes with --until; a loop's scope is in its definition")
	}
	for _, flag := range []string{"name", "guard", "setup", "network", "env", "usd", "base-url"} {
		switch f := cmd.Flag(flag); {
		case f.Changed && o.Until == "":
			return usageError(cmd, "--"+flag+" goes with --until; a loop's own is in its definition")
		case f.Changed && strings.TrimSpace(strings.Trim(f.Value.String(), "[]")) == "":
			return usageError(cmd, "--"+flag+" is given and empty")
		}
	}
	switch {
	case cmd.Flags().Changed("iterations") && o.Overrides.MaxIterations < 1:
		return usageError(cmd, fmt.Sprintf("--iterations %d: write a number above 0", o.Overrides.MaxIterations))
	case o.exitQuiet < 0 || o.exitQuiet > mostExit:
		return usageError(cmd, fmt.Sprintf("--exit-quiet %d: write a number from 0 to %d", o.exitQuiet, mostExit))
	case cmd.Flags().Changed("sandbox") && o.Overrides.Sandbox == "":
		return usageError(cmd, "--sandbox is empty: write one of "+strings.Join(runs.Tiers(), ", "))
	case cmd.Flags().Changed("until") && strings.TrimSpace(o.Until) == "":
		return usageError(cmd, "--until is empty: write the command that has to pass")
	}
	return nil
}

// chooseUntilAgent chooses the agent of a run --until that names none: the only one of
// this machine that has a login.
func chooseUntilAgent(ctx context.Context, a *app, r *runs.StartRequest) error {
	if r.Until == "" || r.Overrides.Agent != "" || r.Overrides.AgentCommand != "" {
		return nil
	}
	switch ready := setup.LoggedIn(ctx, compose.Prober(a.Environ, a.Now())); len(ready) {
	case 0:
		return nil // The run says what is missing, and how to get it.
	case 1:
		r.Overrides.Agent = ready[0]
		a.printer().Note("note: %s", describeOnlyAgent(ready[0]))
		return nil
	default:
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "no agent is named", Why: "several have a login on this machine", Fix: "pass --agent with one of " + strings.Join(ready, ", "),
		}
	}
}

// runLoop carries out one run, which start starts, and prints its account.
func runLoop(ctx context.Context, a *app, o runOptions, start func(context.Context, verb.Caller) (runs.View, error)) error {
	defer surviveClosedPipe()()
	p := a.printer()
	show := &lateWatcher{}
	begun := waiting.For(ctx, "the checks before the run", nil)
	var telling sync.Mutex
	say := func(r verb.Progress) {
		switch {
		case r.Plan != nil:
			noteWarnings(p, *r.Plan)
			if !p.JSON && r.Plan.Paused == "" && !o.detach {
				printIntentHead(a.printer(), *r.Plan) // A run does not depend on whether somebody reads about it.
			}
			begun()
			telling.Lock()
			defer telling.Unlock()
			if !o.detach {
				show.watcher = a.newWatcher(r.Plan.Limits.Iterations)
				show.begun = waiting.For(ctx, "the run to begin", nil)
			}
		case r.Event != nil:
			telling.Lock()
			defer telling.Unlock()
			show.see(*r.Event)
		default:
			a.printProgress(r)
		}
	}
	return a.withCaller(ctx, say, func(c verb.Caller) error {
		if o.detach {
			defer func() { begun() }()
			fired, err := api.FireRun.Call(ctx, c, o.StartRequest)
			if err != nil {
				return err
			}
			return printFired(p, fired)
		}
		a.running.Store(true)
		view, err := start(ctx, c)
		a.running.Store(false)
		begun()
		show.close()
		if err != nil {
			return err
		}
		if err := printAccount(p, view); err != nil || view.Outcome != loop.OutcomeQuiet || o.exitQuiet == 0 {
			return err
		}
		return quietError(o.exitQuiet)
	})
}

// printFired says which run was queued.
func printFired(p *output.Printer, f verb.Fired) error {
	if p.JSON {
		return p.WriteJSON(f)
	}
	p.Line("%s", f.ID)
	p.Note("pawl: %s#%d is queued; pawl logs -f %s#%d follows it", output.CleanLine(f.Loop), f.N, output.CleanLine(f.Loop), f.N)
	return p.Err()
}

// mostExit is the highest exit status that a program should use: a shell uses those
// above for itself and for signals.
const mostExit = 125

// quietError is the exit status that was asked for if a run finds nothing to do.
// There is nothing to explain.
type quietError int

func (e quietError) Error() string { return "there was nothing to do" }

// lateWatcher passes events on once its watcher is set: how to show a run is known when
// it is planned.
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

func (l *lateWatcher) close() {
	if l.begun != nil {
		l.begun()
	}
	if l.watcher != nil {
		l.watcher.close()
	}
}

// noteWarnings prints on standard error what a person should know before the run.
func noteWarnings(p *output.Printer, i runs.Plan) {
	for _, w := range i.Warnings {
		p.Note("pawl: warning: %s", output.Indent(w, "  "))
	}
	if i.Dirty {
		p.Note("pawl: the checkout has uncommitted work, which this run does not see: it starts from commit %s", shortHash(i.Base.Commit))
	}
}

// printIntentHead says what is about to act, and on what.
func printIntentHead(p *output.Printer, i runs.Plan) {
	branch := cmp.Or(output.CleanLine(i.Base.Branch), "detached HEAD")
	p.Line("%s · %s · base %s at %s", p.Style.Bold(output.CleanLine(i.Loop)), i.Tier, branch, shortHash(i.Base.Commit))
	p.Field("  ", "goal", i.Goal)
	p.Field("  ", "agent", joinNonEmpty(" · ", i.Agent, i.AgentCommand, i.Model))
	gates := []string{i.Gates.Verify, i.Gates.Guard}
	for _, g := range i.Gates.Others {
		gates = append(gates, g.Check)
	}
	p.Field("  ", "gates", joinNonEmpty(" · ", gates...))
	p.Field("  ", "sandbox", describeSandbox(i.Sandbox))
}

// printAccount prints how a run ended. If it did not succeed, the error holds the run.
func printAccount(p *output.Printer, v runs.View) error {
	switch {
	case p.JSON:
		if err := p.WriteJSON(v); err != nil {
			return err
		}
	case v.ID == "": // Nothing was started.
		p.Line("– %s", output.CleanLine(v.Detail))
	default:
		printEnd(p, v)
	}
	switch {
	case p.Err() != nil:
		return p.Err()
	case v.Outcome.IsSuccess():
		return nil
	}
	return &endedError{v}
}

// printUngated says that a run has pushed work which no gate has judged.
func printUngated(p *output.Printer, v runs.View) {
	if v.Ungated != "" {
		p.Field("  ", "careful", "pushed to "+output.CleanLine(v.Ungated)+", no gate")
	}
}

// printEnd prints the outcome of a run, what it made, what that cost and what can be
// done next.
func printEnd(p *output.Printer, v runs.View) {
	name := runName(v)
	p.Line("")
	p.Line("%s  %s", styleResult(p.Style, v.Outcome, v.Reason, v.State), p.Style.Bold(name))
	if v.Outcome.IsSuccess() {
		printDetail(p, "why", v.Reason, v.Detail)
	}
	p.QuotedField("  ", "it says", v.Summary)
	if v.Branch != "" {
		p.Field("  ", "branch", v.Branch+" ("+shortHash(v.Commit)+")")
	} else if v.Commit != "" {
		p.Field("  ", "commit", shortHash(v.Commit))
	}
	printUngated(p, v)
	if v.Branch != "" && v.Outcome == loop.OutcomeProposed {
		p.Field("  ", "look", fmt.Sprintf("pawl diff %s   or   git diff %s %s", name, shortHash(v.Base), v.Branch))
		if v.PullRequest() == "" {
			take := "git merge " + v.Branch
			if v.Answer == loop.ApprovalOpen {
				take = "pawl approve " + name + "   or   " + take
			}
			p.Field("  ", "take", take)
		}
	}
	p.Field("  ", "pull request", v.PullRequest())
	p.Field("  ", "kept in", v.Snapshot)
	if v.Outcome == loop.OutcomeQuiet {
		p.Field("  ", "next", runs.Next(v).String())
	}
	p.Field("  ", "trace", "pawl trace "+name)
	p.Field("  ", "tokens", describeTokens(v.Tokens))
	p.Field("  ", "cost", describeCost(v))
	p.Field("  ", "time", describeTimes(v.MS))
	p.Field("  ", "sandbox", describeSandbox(v.Sandbox))
}
