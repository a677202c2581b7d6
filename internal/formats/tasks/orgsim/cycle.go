package orgsim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// Attempt is what an agent does with a step.
type Attempt struct {
	Verdict loop.Verdict
	Reason  loop.Reason
	Words   string
	Report  string // as JSON; may be empty
	Said    string // what it printed
	Branch  bool   // it changes files: if it passes, a branch is proposed
}

// Done is an attempt that passes and changes files.
func Done(words string) Attempt {
	return Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Report: encode(report.Report{Outcome: report.Done, Summary: words}), Branch: true}
}

// Blocked is an attempt whose agent waits for something.
func Blocked(words string) Attempt {
	return Attempt{Verdict: loop.VerdictFail, Reason: loop.ReasonAgentBlocked, Words: words, Report: encode(report.Report{Outcome: report.Blocked, Reason: words})}
}

// Failed is an attempt whose agent says that it failed.
func Failed(words string) Attempt {
	return Attempt{Verdict: loop.VerdictFail, Reason: loop.ReasonAgentFailed, Words: words, Report: encode(report.Report{Outcome: report.Failed, Reason: words})}
}

// HandedOver is an attempt whose agent says that the step is not its job.
func HandedOver(words string) Attempt {
	return Attempt{Verdict: loop.VerdictFail, Reason: loop.ReasonAgentEscalated, Words: words, Report: encode(report.Report{Outcome: report.Escalate, Reason: words})}
}

func encode(r report.Report) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic("orgsim: a report does not marshal: " + err.Error())
	}
	return string(text)
}

// Cycle is a run of an agent that has begun: Open, then Begin and Record if it chose a step,
// then Close.
type Cycle struct {
	Run    loop.Run     // as it is now; Outcome is empty before Record, or Close if no step was chosen
	Choice *plan.Choice // nil: there is nothing to do
	Brief  engine.Brief // what the agent is told; of Begin
	Step   loop.Step    // the chosen step as it is now; of Begin
	Notes  []string     // what is said of the files

	world   *World
	agent   string
	session engine.Session // nil: it did not open
	its     []loop.Iteration
	effects []loop.Effect
}

// Open begins a run of an agent, and decides what it works on. The run has an id, a number and
// the time when it began.
func (w *World) Open(ctx context.Context, agent string, run loop.Run) (*Cycle, error) {
	c := &Cycle{Run: run, world: w, agent: agent}
	a := w.Agents[agent]
	if a.Paused {
		c.Run.Outcome = loop.OutcomePaused
		return c, nil
	}
	opened, err := tasks.Protocol{}.Open(ctx, w.View(agent, run))
	if stop, is := errors.AsType[*engine.OpenError](err); is {
		c.Run.Outcome, c.Run.Reason, c.Run.Detail = stop.Outcome, stop.Reason, stop.Detail
		return c, nil
	}
	if err != nil {
		c.Run.Outcome, c.Run.Reason, c.Run.Detail = loop.OutcomeFailed, loop.ReasonMemory, err.Error()
		return c, nil //nolint:nilerr // The run has failed, and its organisation goes on.
	}
	c.session = opened
	if noted, is := opened.(engine.MemoryNotes); is {
		c.Notes = noted.Notes()
	}
	for _, r := range opened.Recovered() {
		if err := w.apply(agent, r.Changes); err != nil {
			return nil, err
		}
		c.Notes = append(c.Notes, r.Note)
		if r.Escalate != "" {
			c.Run.Outcome, c.Run.Reason, c.Run.Detail = loop.OutcomeEscalated, loop.ReasonMemory, r.Escalate
		}
	}
	if c.Run.Outcome == "" {
		c.decide(a)
	}
	return c, nil
}

// decide chooses a step.
func (c *Cycle) decide(a *Agent) {
	candidates := c.session.Candidates(engine.Sensed{}, c.world.Now)
	for i := range candidates {
		if row, known := a.Steps[candidates[i].Step.Key]; known && row.State == loop.StepBlocked {
			for _, r := range slices.Backward(a.Runs) {
				if r.N <= row.BlockedAt {
					break
				}
				if !r.IsCycle() {
					candidates[i].NoCycles++
				}
			}
		}
	}
	d := plan.Next(plan.Snapshot{Candidates: candidates, Rules: plan.DefinitionRules(a.Definition), Run: c.Run.N, RunID: c.Run.ID, Started: c.world.Now}, c.world.Now)
	if c.Choice = d.Choice; d.Choice == nil {
		c.Run.Outcome, c.Run.Reason, c.Run.Detail = loop.OutcomeQuiet, d.Reason, d.Detail
	}
}

// Begin writes that the chosen step is in progress.
func (c *Cycle) Begin() error {
	changes, brief, err := c.session.Begin(*c.Choice)
	if err != nil {
		return fmt.Errorf("begin %s of %s: %w", c.Choice.Step.Key, c.agent, err)
	}
	c.Brief, c.Step = brief, c.Choice.Step
	c.Step.ID, c.Step.LoopID, c.Step.State, c.Step.RunID = engine.StepID(loopID(c.agent), c.Step.Key), loopID(c.agent), loop.StepClaimed, c.Run.ID
	if c.Step.Begun.IsZero() {
		c.Step.Begun = c.world.Now
	}
	c.world.Agents[c.agent].Steps[c.Step.Key] = c.Step
	return c.world.apply(c.agent, changes)
}

// Begun reports whether a step has begun.
func (c *Cycle) Begun() bool { return c.Step.Key != "" }

// Record settles the step that has begun, by what its agent did.
func (c *Cycle) Record(did Attempt) error {
	a := c.world.Agents[c.agent]
	s := plan.Settle(c.Step, plan.Attempt{
		Verdict: did.Verdict, Reason: did.Reason, Words: did.Words, Gate: plan.AgentGate, Tokens: c.Run.Usage.ChargedTokens(), Ended: c.world.Now,
	}, c.Run.N, plan.DefinitionRules(a.Definition))
	s.Step.RunID = ""
	it := loop.Iteration{RunID: c.Run.ID, N: 1, StepID: c.Step.ID, Step: c.Step.Title, Verdict: did.Verdict, Reason: did.Reason, Feedback: did.Words, Report: did.Report}
	if did.Branch && did.Verdict == loop.VerdictPass {
		it.Tree = "tree of " + c.Run.ID
		c.effects = []loop.Effect{{Kind: effect.KindPropose, State: loop.EffectDone, Args: map[string]string{
			effect.ArgBranch: fmt.Sprintf("pawl/%s/%d", c.agent, c.Run.N), effect.ArgTree: it.Tree,
		}}}
	}
	recorded, _ := c.session.Record(engine.Result{Run: c.Run, Iteration: it, Settlement: s, Said: did.Said})
	c.its, c.Step = []loop.Iteration{it}, s.Step
	a.Steps[c.Step.Key] = c.Step
	a.Paused = a.Paused || s.Halt
	passed := loop.OutcomeProposed
	if a.Definition.Tier == loop.TierReport {
		passed = loop.OutcomeReported
	}
	c.Run.Outcome, c.Run.Reason, c.Run.Detail = cmp.Or(s.Outcome, passed), s.Reason, s.Detail
	return c.world.apply(c.agent, recorded)
}

// Close ends the run, and adds it to those of the agent.
func (c *Cycle) Close() error {
	a := c.world.Agents[c.agent]
	var err error
	if c.session != nil {
		err = c.world.apply(c.agent, c.session.Close(engine.Summary{Run: c.Run, Now: c.world.Now, Iterations: c.its, Effects: c.effects}))
	}
	a.Runs = append(a.Runs, c.Run)
	return err
}
