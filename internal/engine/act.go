package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/budget"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/runenv"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/turn"
)

// EventPrompt carries the prompt of a turn, so that people can see what an
// agent was told.
const EventPrompt = "prompt"

var (
	beforeAct = fault.New("engine.act.before")
	afterAct  = fault.New("engine.act.after")
)

// iterate works one step once: act, gather, verify, conclude. A nil ending
// lets the run decide again.
func (c *cycle) iterate(ctx context.Context, d plan.Decision) (*ending, error) {
	if end := c.paused(); end != nil {
		return end, nil
	}
	if f, ok := errors.AsType[*loop.Fault](c.nobody); ok {
		return &ending{outcome: loop.OutcomeFailed, reason: loop.ReasonAgentMissing, detail: f.Why + "; " + f.Advice().String()}, nil
	}
	if c.nobody != nil {
		return nil, c.nobody
	}
	brief, err := c.intend(ctx, d)
	if budget.Unpaid(err) {
		return &ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudget, detail: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	step := c.steps[d.Choice.Step.Key]
	turn, err := c.act(ctx, step, brief, c.sensed.Observations)
	if err != nil {
		return nil, err
	}
	if end := stopped(ctx); end != nil {
		return end, nil
	}
	work, err := c.gather(ctx, turn, c.sensed.Observations)
	if err != nil {
		return nil, err
	}
	if work.refused != nil {
		return c.refuse(ctx, step, work) // Before a question: a yes would run on a tree that nobody may have.
	}
	if len(turn.Asks) > 0 {
		return c.ask(ctx, step, work, turn.Asks[0])
	}
	verdict, err := c.verify(ctx, work)
	if err != nil {
		return nil, err
	}
	if end := stopped(ctx); end != nil {
		return end, nil
	}
	return c.conclude(ctx, step, work, verdict)
}

// act readies the tree and lets the agent take its turn, and another one where
// the first failed in a way that another one may not.
func (c *cycle) act(ctx context.Context, step loop.Step, brief Brief, sensed []Observation) (turnResult, error) {
	c.enter(loop.PhaseAct)
	if step.Snapshot != "" {
		if err := c.restore(ctx, step); err != nil {
			return turnResult{}, err
		}
	}
	if err := c.makeTree(ctx); err != nil {
		return turnResult{}, err
	}
	if err := c.readSession(ctx); err != nil {
		return turnResult{}, err
	}
	if err := c.readGuidance(ctx); err != nil {
		return turnResult{}, err
	}
	prompt := c.prompt(step, brief, sensed)
	c.said.Emit(EventPrompt, prompt)
	if err := beforeAct.Hit(ctx); err != nil {
		return turnResult{}, err
	}
	c.t.Repo.Rest()
	for try := 1; ; try++ {
		started := c.Now()
		res, err := c.takeTurn(ctx, step, prompt)
		if err != nil && res.Usage.Zero() {
			return res, err
		}
		c.account(ctx, res, started)
		if err != nil {
			return res, err
		}
		if !c.tryAgain(ctx, try, res) {
			res.hold = c.hold
			return res, afterAct.Hit(ctx)
		}
	}
}

// takeTurn lets the agent act once: it gets a folder with its prompt, a place to
// work in, and what it needs to reach its model.
func (c *cycle) takeTurn(ctx context.Context, step loop.Step, prompt string) (res turnResult, err error) {
	s, n := c.runEnv(), len(c.its)
	dir, err := s.FreshTurn(n)
	if err != nil {
		return res, err
	}
	if err := s.WritePrompt(n, prompt); err != nil {
		return res, err
	}
	turnEnv, err := c.openTurnEnv(ctx)
	if missing, ok := errors.AsType[*loop.Fault](err); ok {
		res.Result = turn.Refused(loop.FailureAuth, missing)
		return res, nil
	}
	if held, ok := errors.AsType[*loop.HeldError](err); ok {
		res.Result = turn.Refused(loop.FailureHeld, &loop.Fault{What: held.Error(), Fix: "run it again when that run has ended, or set a key and auth: inject"})
		return res, nil
	}
	if err != nil {
		return res, err
	}
	res, err = c.runDriver(ctx, turnEnv, step, prompt, dir)
	err = errors.Join(err, turnEnv.Close())
	c.loan = turnEnv.Loan()
	return res, err
}

// runDriver runs the driver in a turnEnv.
func (c *cycle) runDriver(ctx context.Context, turnEnv *turn.Env, step loop.Step, prompt, dir string) (end turnResult, err error) {
	c.said.Learn(turnEnv.Secrets())
	s := c.runEnv()
	at, err := s.Place(ctx, c.tree, c.useOf(turnEnv, dir))
	if err != nil {
		return end, err
	}
	defer at.Done()
	guard, err := c.guard(ctx, at, dir)
	if err != nil {
		return end, err
	}
	out, printed := c.said.Output(), proc.NewRing(0, mostWords)
	defer out.End()
	defer func() { end.printed = printed.String() }()
	end.unmetered = !turnEnv.Metered()
	count := c.counter(turnEnv)
	row := c.turnRow(c.Now())
	row.Usage = leastUsage(len(prompt))
	defer c.begin(ctx, &liveTurn{row: row, count: count, cost: c.ledger().Cost})()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer when(c.ledger().Account().Exhausted(), func() {
		end.cut = &ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudget, detail: c.ledger().Exhausted()}
		cancel()
	})()
	defer when(turnEnv.Rejected(), cancel)()
	asks := &turn.Asked{Guard: guard}
	res, err := c.actor.Driver.Turn(ctx, agent.Request{
		Purpose: purpose(step), Prompt: prompt, Command: turnEnv.Command, Model: c.actor.Model, Effort: c.def.Effort, Servers: c.def.Servers(), Session: c.talk, Keep: c.def.Resume,
		Exec: at, Dir: at.Dir, Timeout: c.turnTime(), Tag: runenv.Tag(c.run.ID), Env: turnEnv.Environ(s.StepEnv()),
		Home: turnEnv.AgentHome(), Models: turnEnv.Endpoint, Tools: c.def.ModelTools, Judge: asks.Judge, On: (&shown{said: c.said, out: out}).event,
		Output: io.MultiWriter(out, printed),
		Used:   count.used(ctx),
	})
	count.end(res)
	if wrong, ok := errors.AsType[*loop.Fault](err); ok {
		end.Result = turn.Refused(loop.FailureRequest, wrong)
		return end, nil
	}
	if err != nil {
		if res.Usage.Zero() {
			res.Usage, res.Models = count.soFar()
		}
		end.Result = res
		return end, err
	}
	c.said.Learn(turnEnv.Secrets())
	if len(res.Asks) == 0 { // The agent was told that it is recorded, whatever its driver keeps.
		res.Asks = asks.List()
	}
	if res = turnEnv.Outcome(res); res.Failure != nil {
		hidden := *res.Failure
		if hidden.Class == loop.FailureRateLimit && hidden.Reset.IsZero() {
			hidden.Reset = agent.LimitReset(hidden.Text, c.Now())
		}
		hidden.Text = c.said.Hide(hidden.Text)
		res.Failure = &hidden
	}
	c.blind = c.blind || end.unmetered && (res.Usage.Zero() || res.Usage.Source == loop.UsageEstimated)
	end.Result = res
	return end, nil
}

// purpose is what a turn on a step is for.
func purpose(step loop.Step) string {
	if step.Kind == loop.StepReply {
		return "reply"
	}
	return "act"
}

func stepText(s loop.Step) string { return s.ID + " " + s.Title }

// turnRow is the row of the turn that comes next.
func (c *cycle) turnRow(started time.Time) loop.Turn {
	return loop.Turn{
		RunID: c.run.ID, N: c.turns + 1, Iteration: len(c.its), Purpose: purpose(c.stepOf(c.current())), Agent: c.actor.Handle,
		Driver: c.actor.Agent.Driver, Model: c.actor.Model, Auth: c.run.Auth, Started: started,
	}
}

// account books a turn on the run and stages its row.
func (c *cycle) account(ctx context.Context, res turnResult, started time.Time) {
	row := c.turnRow(started)
	row.Exit, row.Ended, row.Usage, row.Failure, row.Took = res.Exit, string(res.Ended), res.Usage, res.Failure, res.Took
	row.Models, row.Cost = c.ledger().Cost(res.Models)
	if res.Session != nil {
		row.Session = res.Session.ID
	}
	it := c.current()
	it.Usage, it.Agent = it.Usage.Add(res.Usage), it.Agent+res.Took
	it.Acted = res.words()
	c.turns++
	c.run.Agent = c.actor.Handle
	c.run.Usage = c.run.Usage.Add(res.Usage)
	c.run.Cost = c.run.Cost.Add(row.Cost)
	c.run.Spent.Agent += res.Took
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveTurn(ctx, row) })
	c.mu.Lock()
	c.unsaved = append(c.unsaved, row)
	c.noteTurns(ctx)
	c.mu.Unlock()
	c.keepSession(res.Result)
}

// turnResult is what an agent's turn came to.
type turnResult struct {
	agent.Result
	cut       *ending    // why the agent was stopped before its turn was over: it had nothing left to spend
	unmetered bool       // no endpoint counted its calls: an agent that was cut was killed in the midst of what it did
	printed   string     // the end of what its program printed
	hold      *loop.Hold // what keeps the loop or its account from acting after it; nil: nothing
}

// words says how a turn ended.
func (res turnResult) words() string {
	switch {
	case res.cut != nil:
		return fmt.Sprintf("the agent was stopped after %s: %s", res.Took.Round(time.Millisecond), res.cut.detail)
	case res.Failure != nil:
		return fmt.Sprintf("the agent failed after %s: %s: %s", res.Took.Round(time.Millisecond), res.Failure.Class, turn.FailureText(*res.Failure))
	}
	switch res.Ended {
	case proc.Exited, proc.NotStarted:
	case proc.Limited:
		return fmt.Sprintf("the agent was stopped after %s: %s", res.Took.Round(time.Millisecond), runenv.LimitText(res.Limit, res.Took))
	case proc.TimedOut:
		return fmt.Sprintf("the agent was stopped after %s, the longest that a turn may take (max_step_timeout)", res.Took.Round(time.Millisecond))
	case proc.Signaled:
		return fmt.Sprintf("the agent was killed by signal %d after %s", res.Exit-128, res.Took.Round(time.Millisecond))
	case proc.Canceled:
		return fmt.Sprintf("the agent was stopped with the run after %s", res.Took.Round(time.Millisecond))
	}
	return fmt.Sprintf("the agent ended with exit status %d after %s", res.Exit, res.Took.Round(time.Millisecond))
}

// cleanUp removes what only a live run needs. What was in the tree is in the
// object store by now, or conclude would have failed.
func (c *cycle) cleanUp(ctx context.Context) {
	c.closeMarks()
	if c.loan != nil {
		c.loan.Close() // The run did not come to its end: its note is left to Recover.
	}
	unlocked := c.unlockEffects()
	if c.run.State == loop.RunRunning || c.run.State == loop.RunSettling {
		if c.tree != nil {
			_ = c.tree.Leave()
		}
		return // Recover needs the rest.
	}
	err := unlocked
	if c.copied {
		err = errors.Join(err, c.dropTrees(ctx), sandbox.Discard(c.runDir(c.run.ID)))
	}
	err = errors.Join(err, c.dropMarks())
	if err != nil {
		c.Log.WarnContext(ctx, "run files stay behind", slog.String("run", c.run.ID), slog.String("error", err.Error()))
	}
}
