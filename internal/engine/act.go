package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/store"
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
	brief, err := c.intend(ctx, d)
	if err != nil {
		return nil, err
	}
	step := c.steps[d.Choice.Step.Key]
	turn, err := c.act(ctx, step, brief)
	if err != nil {
		return nil, err
	}
	if end := stopped(ctx); end != nil {
		return end, nil
	}
	work, err := c.gather(ctx, step, turn)
	if err != nil {
		return nil, err
	}
	if work.refused != nil {
		return c.refuse(ctx, step, work) // Before a question: a yes would run on a tree that nobody may have.
	}
	if len(turn.Asks) > 0 {
		return c.ask(ctx, step, work, turn.Asks[0])
	}
	attempt, err := c.verify(ctx, work)
	if err != nil {
		return nil, err
	}
	if end := stopped(ctx); end != nil {
		return end, nil
	}
	return c.conclude(ctx, step, work, attempt)
}

// act readies the tree and lets the agent take one turn.
func (c *cycle) act(ctx context.Context, step loop.Step, brief Brief) (agent.Result, error) {
	c.enter(loop.PhaseAct)
	if step.Snapshot != "" {
		if err := c.restore(ctx, step); err != nil {
			return agent.Result{}, err
		}
	}
	if err := c.makeTree(ctx); err != nil {
		return agent.Result{}, err
	}
	out := c.output()
	req, err := c.request(step, brief, out)
	if err != nil {
		return agent.Result{}, err
	}
	c.emit(EventPrompt, req.Prompt)
	driver, ok := c.Drivers[c.driver()]
	if !ok {
		return agent.Result{}, fmt.Errorf("agent %q: %w", c.driver(), loop.ErrNotFound)
	}
	if err := beforeAct.Hit(ctx); err != nil {
		return agent.Result{}, err
	}
	started := c.Now()
	res, err := driver.Turn(ctx, req)
	out.end()
	if err != nil {
		return res, err
	}
	c.account(res, started)
	return res, afterAct.Hit(ctx)
}

// request makes the files and the environment of a turn.
func (c *cycle) request(step loop.Step, brief Brief, out io.Writer) (agent.Request, error) {
	n := len(c.its)
	dir := c.runDir(c.run.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return agent.Request{}, err
	}
	prompt := c.prompt(step, brief)
	promptFile := c.promptFile(c.run.ID, n)
	if err := os.WriteFile(promptFile, []byte(prompt), 0o600); err != nil {
		return agent.Request{}, err
	}
	return agent.Request{
		Purpose: purpose(step), Prompt: prompt, Command: c.def.AgentCommand, Model: c.def.Model, Dir: c.tree.Dir, Timeout: c.within(c.def.MaxStepTimeout), Tag: Tag(c.run.ID),
		Env:    c.environ(append([]string{"PAWL_ITERATION=" + fmt.Sprint(n)}, c.stepEnviron(c.run.ID, stepText(step), n)...)),
		Output: out,
	}, nil
}

// purpose is what a turn on a step is for.
func purpose(step loop.Step) string {
	if step.Kind == loop.StepReply {
		return "reply"
	}
	return "act"
}

// stepEnviron is what an agent is told of its step. Its gates are told the same,
// so that nothing in the tree can tell who runs it.
func (e *Engine) stepEnviron(runID, step string, n int) []string {
	return []string{"PAWL_STEP=" + step, "PAWL_PROMPT=" + e.promptFile(runID, n), "PAWL_REPORT=" + e.reportFile(runID, n)}
}

func stepText(s loop.Step) string { return s.ID + " " + s.Title }

func (e *Engine) promptFile(runID string, n int) string {
	return filepath.Join(e.runDir(runID), fmt.Sprintf("prompt-%d.md", n))
}

func (e *Engine) reportFile(runID string, n int) string {
	return filepath.Join(e.runDir(runID), fmt.Sprintf("report-%d.json", n))
}

// driver names the driver of the definition's agent. A command of the
// definition's own stands in for the program of any other.
func (c *cycle) driver() string {
	if _, ok := c.Drivers[c.def.Agent]; c.def.Agent == "" || !ok && c.def.AgentCommand != "" {
		return command
	}
	return c.def.Agent
}

// command is the driver that runs any program.
const command = "command"

// account books a turn on the run and stages its row.
func (c *cycle) account(res agent.Result, started time.Time) {
	c.turns++
	turn := loop.Turn{
		RunID: c.run.ID, N: c.turns, Iteration: len(c.its), Purpose: purpose(c.stepOf(c.current())), Agent: c.driver(), Driver: c.driver(), Model: c.def.Model,
		Exit: res.Exit, Ended: string(res.Ended), Usage: res.Usage, Took: res.Took, Started: started,
	}
	it := c.current()
	it.Usage, it.Agent = it.Usage.Add(res.Usage), it.Agent+res.Took
	it.Acted = acted(res)
	c.run.Usage = c.run.Usage.Add(res.Usage)
	c.run.Spent.Agent += res.Took
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveTurn(ctx, turn) })
}

func acted(res agent.Result) string {
	switch res.Ended {
	case proc.Exited, proc.NotStarted:
	case proc.TimedOut:
		return fmt.Sprintf("the agent was stopped after %s", res.Took.Round(time.Millisecond))
	case proc.Signaled:
		return fmt.Sprintf("the agent was killed by signal %d after %s", res.Exit-128, res.Took.Round(time.Millisecond))
	case proc.Canceled:
		return fmt.Sprintf("the agent was stopped with the run after %s", res.Took.Round(time.Millisecond))
	}
	return fmt.Sprintf("the agent ended with exit status %d after %s", res.Exit, res.Took.Round(time.Millisecond))
}

// outputCap is how much of a turn's output becomes events; the rest is counted.
const outputCap = 1 << 20

// cleanUp removes what only a live run needs. What was in the tree is in the
// object store by now, or conclude would have failed.
func (c *cycle) cleanUp(ctx context.Context) {
	c.closeMarks()
	if c.run.State == loop.RunRunning || c.run.State == loop.RunSettling {
		if c.tree != nil {
			_ = c.tree.ignores.Close()
		}
		return // Recover needs the rest.
	}
	var err error
	if c.copied {
		err = errors.Join(c.dropTrees(ctx), os.RemoveAll(c.runDir(c.run.ID)))
	}
	err = errors.Join(err, c.dropMarks())
	if err != nil {
		c.Log.WarnContext(ctx, "run files stay behind", slog.String("run", c.run.ID), slog.String("error", err.Error()))
	}
}
