package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

var (
	beforeAct = fault.New("engine.act.before")
	afterAct  = fault.New("engine.act.after")
)

// agentSide is the agent's part of a run: its turns, the conversation and the
// instructions that they share, and what keeps it from acting.
type agentSide struct {
	*heldRun
	tree  *workTree
	login *login
	money *spending

	reviews  bool          // it takes no turn on a step
	hold     *loop.Hold    // what keeps the loop or its account from acting; nil: nothing
	failures int64         // turns in a row that ended with an error of the agent's program
	limits   int64         // in a row, of the account
	talk     *loop.Session // the conversation to go on with; nil: a fresh one

	guidance    string   // the repository's instructions as they stand in a prompt
	guidedFor   string   // commit that they are of
	guidedPaths []string // of the files that were found
}

// runIteration works one step once: act, gather, verify, conclude. A nil ending
// lets the run decide again.
func (c *cycle) runIteration(ctx context.Context, d plan.Decision) (*ending, error) {
	if end := c.switchEnding(); end != nil {
		return end, nil
	}
	if f, ok := errors.AsType[*loop.Fault](c.nobody); ok {
		return &ending{outcome: loop.OutcomeFailed, reason: loop.ReasonAgentMissing, detail: f.Why + "; " + f.Advice().String()}, nil
	}
	if c.nobody != nil {
		return nil, c.nobody
	}
	brief, err := c.saveIntent(ctx, d)
	if budget.IsUnpriced(err) {
		return &ending{outcome: loop.OutcomeBlocked, reason: loop.ReasonPriceUnknown, detail: err.Error()}, nil
	}
	if budget.IsUnpaid(err) {
		return &ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudget, detail: err.Error()}, nil
	}
	if taken, ok := errors.AsType[*loop.SeatError](err); ok {
		c.run.Agent = taken.Wish.Agent
		return &ending{outcome: loop.OutcomeBlocked, reason: taken.Reason, detail: taken.Error()}, nil
	}
	if key := d.Choice.Step.Key; errors.Is(err, loop.ErrRowChanged) {
		return c.loseClaim(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	c.memory.sayRemarks()
	step := c.steps[d.Choice.Step.Key]
	if err := c.readRejected(ctx, step); err != nil {
		return nil, err
	}
	turn, err := c.agent.takeTurns(ctx, step, brief, c.sensed.Observations)
	if err != nil {
		return nil, err
	}
	if end := stopEnding(ctx); end != nil {
		return end, nil
	}
	turn.Asks = slices.DeleteFunc(turn.Asks, func(ask agent.Ask) bool { return c.isRejected(ask.Argv) }) // Of a driver that does not ask first.
	claimed := c.tree.readClaim(turn)
	ran, end, err := c.runCommands(ctx, step, turn, claimed)
	if err != nil {
		return nil, err
	}
	if end == nil {
		end = stopEnding(ctx)
	}
	if end != nil {
		return end, nil
	}
	work, err := c.tree.gatherWork(ctx, turn, claimed, ran, c.sensed.Observations)
	if err != nil {
		return nil, err
	}
	if work.refused != nil {
		return c.refuseChanges(ctx, step, work) // Before a question: an approved command would run on a refused tree.
	}
	if len(turn.Asks) > 0 {
		return c.askHuman(ctx, step, work, turn.Asks[0])
	}
	if ran.asked != nil {
		return c.askHuman(ctx, step, work, *ran.asked)
	}
	verdict, err := c.judge.verify(ctx, work)
	if err != nil {
		return nil, err
	}
	if end := stopEnding(ctx); end != nil {
		return end, nil
	}
	return c.conclude(ctx, step, work, verdict)
}

// mostLost bounds how many steps a run tries to claim and finds taken.
const mostLost = 32

// loseClaim lets the run decide once more without a step that somebody else has claimed,
// and without those of which its session says the same.
func (c *cycle) loseClaim(ctx context.Context, key string) (*ending, error) {
	c.said.Note("somebody else has claimed %s", key)
	if c.claimed[key] = true; len(c.claimed) >= mostLost {
		return &ending{outcome: loop.OutcomeQuiet, reason: loop.ReasonStepClaimed, detail: fmt.Sprintf("others were first at %d steps", len(c.claimed))}, nil
	}
	s, ok := c.memory.session.(SharedSteps)
	if !ok {
		return nil, nil
	}
	err := s.Refresh(ctx)
	c.memory.sayRemarks()
	return nil, err
}

// takeTurns readies the tree and lets the agent take its turn, and another one if the
// first failed in a way that may pass.
func (a *agentSide) takeTurns(ctx context.Context, step loop.Step, brief Brief, sensed []Observation) (turnResult, error) {
	a.enterPhase(loop.PhaseAct)
	a.runEnv().PrepareStarts()
	if step.Snapshot != "" {
		if err := a.tree.restoreSnapshot(ctx, step); err != nil {
			return turnResult{}, err
		}
	}
	if err := a.tree.make(ctx); err != nil {
		return turnResult{}, err
	}
	if brief.Prompt != "" {
		return a.answer(ctx, assignment{purpose: loop.PurposeGenerate, prompt: brief.Prompt, def: a.def, env: a.runEnv(), limit: a.def.MaxStepTimeout})
	}
	if err := a.readSession(ctx); err != nil {
		return turnResult{}, err
	}
	if err := a.readGuidance(ctx); err != nil {
		return turnResult{}, err
	}
	beside, err := a.announced(ctx)
	if err != nil {
		return turnResult{}, err
	}
	t := assignment{purpose: purposeOf(step), prompt: a.promptFor(step, brief, sensed, beside), def: a.def, env: a.runEnv(), copy: a.tree.copy, limit: a.def.MaxStepTimeout}
	if brief.Prints {
		t.begins = MostPrinted
	}
	a.said.Emit(loop.EventPrompt, t.prompt)
	if err := beforeAct.Hit(ctx); err != nil {
		return turnResult{}, err
	}
	res, err := a.carryOut(ctx, t)
	if err != nil {
		return res, err
	}
	return res, afterAct.Hit(ctx)
}

// assignment is what an agent takes a turn for.
type assignment struct {
	purpose string
	prompt  string
	def     loop.Definition // of what the agent may use
	env     runenv.Env      // where its programs work
	copy    *runenv.Copy    // that they work on
	limit   time.Duration   // of the turn
	begins  int             // bytes that are kept of the beginning of what its program prints
}

// carryOut lets the agent take its turn, and another one if the first failed in a way
// that may pass.
func (a *agentSide) carryOut(ctx context.Context, t assignment) (turnResult, error) {
	a.target.Repo.Rest()
	for try := 1; ; try++ {
		started := a.Now()
		res, err := a.takeTurn(ctx, t)
		if err != nil && res.Usage.Zero() {
			return res, err
		}
		a.bookTurn(ctx, t, res, started)
		if err != nil {
			return res, err
		}
		if !a.tryAgain(ctx, t, try, res) {
			res.hold = a.hold
			return res, nil
		}
	}
}

// takeTurn lets the agent act once: it gets a folder with its prompt, a place to
// work in, and what it needs to reach its model.
func (a *agentSide) takeTurn(ctx context.Context, t assignment) (res turnResult, err error) {
	n := len(a.its)
	dir, err := t.env.FreshTurn(n)
	if err != nil {
		return res, err
	}
	if err := t.env.WritePrompt(n, t.prompt); err != nil {
		return res, err
	}
	if lost, err := a.login.checkSeat(ctx); err != nil || lost != nil {
		return deref(lost), err
	}
	turnEnv, err := a.openTurnEnv(ctx, t)
	if missing, ok := errors.AsType[*loop.Fault](err); ok {
		res.Result = turn.RefusedResult(loop.FailureAuth, missing)
		return res, nil
	}
	if held, ok := errors.AsType[*loop.HeldError](err); ok {
		res.Result = turn.RefusedResult(loop.FailureHeld, &loop.Fault{What: held.Error()})
		return res, nil
	}
	if err != nil {
		return res, err
	}
	res, err = a.runDriver(ctx, turnEnv, t, dir)
	err = errors.Join(err, turnEnv.Close())
	a.login.loan = turnEnv.Loan()
	return res, err
}

// runDriver runs the driver in a turnEnv.
func (a *agentSide) runDriver(ctx context.Context, turnEnv *turn.Env, t assignment, dir string) (end turnResult, err error) {
	a.said.Learn(turnEnv.Secrets())
	at, err := t.env.Place(ctx, t.copy, a.useOf(turnEnv, dir))
	if err != nil {
		return end, err
	}
	defer at.Done()
	guard, err := a.toolGuard(ctx, t, at, dir)
	if err != nil {
		return end, err
	}
	out, printed := a.said.Output(), proc.NewRing(t.begins, mostWords)
	defer out.End()
	defer func() { end.printed = printed.String() }()
	end.unmetered = !turnEnv.Metered()
	count := a.newCounter(turnEnv)
	row := a.turnRow(t.purpose, a.Now())
	row.Usage = leastUsage(len(t.prompt))
	defer a.beginTurn(ctx, &liveTurn{row: row, count: count, cost: a.money.ledger().Cost})()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer callWhenClosed(a.money.ledger().Account().Exhausted(), func() {
		end.cut = &ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudget, detail: a.money.ledger().WhyExhausted()}
		if a.money.ledger().MostUsedUp() {
			end.cut.reason = loop.ReasonLifeBudget
		}
		cancel()
	})()
	defer callWhenClosed(turnEnv.Rejected(), cancel)()
	defer a.hostTurn(t)()
	asks := &turn.PermissionAsks{Guard: guard}
	res, err := a.login.actor.Driver.Turn(ctx, agent.Request{
		Purpose: t.purpose, Prompt: t.prompt, Command: turnEnv.Command, Model: a.login.actor.Model, Effort: t.def.Effort, Servers: append(t.def.Servers(), turnEnv.Servers...), Session: a.talk, Keep: t.def.Resume,
		Exec: at, Dir: at.Dir, Timeout: a.money.turnTime(t.limit), Tag: runenv.Tag(a.run.ID), Env: turnEnv.Environ(t.env.StepEnv()),
		Home: turnEnv.AgentHome(), Models: turnEnv.Endpoint, Tools: t.def.ModelTools, Judge: asks.Judge, OnEvent: (&shown{said: a.said, out: out}).showEvent,
		Output:  io.MultiWriter(out, printed),
		OnUsage: count.used(ctx),
	})
	count.end(res)
	if left, bound := a.money.wallLeft(); bound && left <= 0 && end.cut == nil && res.Ended == proc.TimedOut {
		end.cut = &ending{outcome: loop.OutcomeBudget, reason: loop.ReasonLifeBudget, detail: "the time of its whole life is over"}
	}
	if wrong, ok := errors.AsType[*loop.Fault](err); ok {
		end.Result = turn.RefusedResult(loop.FailureRequest, wrong)
		return end, nil
	}
	if err != nil {
		if res.Usage.Zero() {
			res.Usage, res.Models = count.soFar()
		}
		end.Result = res
		return end, err
	}
	a.said.Learn(turnEnv.Secrets())
	if len(res.Asks) == 0 { // The agent was told that it is recorded, whatever its driver keeps.
		res.Asks = asks.List()
	}
	if res = turnEnv.MergeResult(res); res.Failure != nil {
		hidden := *res.Failure
		if hidden.Class == loop.FailureRateLimit && hidden.Reset.IsZero() {
			hidden.Reset = agent.LimitReset(hidden.Text, a.Now())
		}
		hidden.Text = a.said.Hide(hidden.Text)
		res.Failure = &hidden
	}
	a.money.blind = a.money.blind || end.unmetered && (res.Usage.Zero() || res.Usage.Source == loop.UsageEstimated)
	end.Result = res
	return end, nil
}

// purposeOf is what a turn on a step is for.
func purposeOf(step loop.Step) string {
	if step.Kind == loop.StepReply {
		return loop.PurposeReply
	}
	return loop.PurposeAct
}

func stepText(s loop.Step) string { return s.ID + " " + s.Title }

// turnRow is the row of the turn that comes next.
func (a *agentSide) turnRow(purpose string, started time.Time) loop.Turn {
	by := a.login.actor
	return loop.Turn{
		RunID: a.run.ID, N: a.money.turns + 1, Iteration: len(a.its), Purpose: purpose, Agent: by.Handle,
		Driver: by.Agent.Driver, Model: by.Model, Auth: a.login.signed.Auth, Started: started,
	}
}

// bookTurn books a turn on the run and stages its row.
func (a *agentSide) bookTurn(ctx context.Context, t assignment, res turnResult, started time.Time) {
	row := a.turnRow(t.purpose, started)
	row.Exit, row.Ended, row.Usage, row.Failure, row.Took = res.Exit, string(res.Ended), res.Usage, res.Failure, res.Took
	row.Models, row.Cost = a.money.ledger().Cost(res.Models)
	if res.Session != nil {
		row.Session = res.Session.ID
	}
	it := a.current()
	it.Usage, it.Agent = it.Usage.Add(res.Usage), it.Agent+res.Took
	if !a.reviews {
		it.Acted = res.words()
		a.run.Agent, a.run.Auth = row.Agent, row.Auth
	}
	a.money.book(row)
	a.run.Spent.Agent += res.Took
	a.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveTurn(ctx, row) })
	a.turns.mu.Lock()
	a.turns.unsaved = append(a.turns.unsaved, row)
	a.noteTurns(ctx)
	a.turns.mu.Unlock()
	a.keepSession(t, res.Result)
}

// turnResult is what an agent's turn came to.
type turnResult struct {
	agent.Result
	cut       *ending    // why the agent was stopped before its turn was over: it had nothing left to spend
	unmetered bool       // no endpoint counted its calls: an agent that was cut was killed in the midst of what it did
	answers   bool       // only what it says counts
	printed   string     // the end of what its program printed, and what the assignment keeps of its beginning
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
	if c.login.loan != nil {
		c.login.loan.Close() // The run did not come to its end: its note is left to Recover.
	}
	unlocked := c.outbox.release()
	if c.run.State == loop.RunRunning || c.run.State == loop.RunSettling {
		if c.tree.copy != nil {
			_ = c.tree.copy.Leave()
		}
		return // Recover needs the rest.
	}
	err := unlocked
	if c.tree.copied {
		err = errors.Join(err, c.tree.dropAll(ctx), sandbox.RemoveTree(c.runDir(c.run.ID)))
	}
	err = errors.Join(err, c.dropMarks())
	if err != nil {
		c.Log.WarnContext(ctx, "run files stay behind", slog.String("run", c.run.ID), slog.String("error", err.Error()))
	}
}
