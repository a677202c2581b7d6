package orgsim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Simulation lets the runs of a simulation be cycles of an organisation. It implements
// sim.Play.
type Simulation struct {
	world   *World
	order   []string
	tallies map[string]*Tally
	rungs   Rungs
	open    map[string]*Cycle // of runs that are at work, by agent
	blocked map[place]time.Time
	wait    Wait
	urgent  []sim.Call // since they were last taken
}

// place is a step of an agent.
type place struct{ agent, key string }

// Tally is what an agent came to.
type Tally struct {
	Agent       string `json:"agent"`
	ReportsTo   string `json:"reports_to"`
	Runs        int    `json:"runs"`
	Worked      int    `json:"worked"` // runs that worked on a step
	Done        int    `json:"done"`   // attempts of those
	Blocked     int    `json:"blocked"`
	Failed      int    `json:"failed"`
	Idle        int    `json:"idle"`        // runs without a step to work on
	Escalations int    `json:"escalations"` // sent
	Messages    int    `json:"messages"`    // got
	Halted      bool   `json:"halted,omitempty"`
	Tokens      int64  `json:"tokens"`
	MicroUSD    int64  `json:"micro_usd"`
	Unpriced    int    `json:"unpriced_runs"`
	Assumed     int    `json:"assumed_runs"`
}

// Steps counts the steps of all agents by what their files say.
type Steps struct {
	Open      int `json:"open"` // or in progress
	Blocked   int `json:"blocked"`
	Done      int `json:"done"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

// Wait is for how long steps were blocked: each time until the next attempt, or the end.
type Wait struct {
	TotalMS      int64  `json:"total_ms"`
	LongestMS    int64  `json:"longest_ms"`
	LongestAgent string `json:"longest_agent,omitempty"`
	LongestStep  string `json:"longest_step,omitempty"`
}

// Rungs counts escalations by who was told.
type Rungs struct {
	Superior   int `json:"superior"`   // whom the agent reports to, unless that is the chief
	Escalation int `json:"escalation"` // another agent that its definition names
	Chief      int `json:"chief"`
	Owner      int `json:"owner"`
}

// Result is what an organisation came to.
type Result struct {
	Agents      []Tally `json:"agents"`
	Total       Tally   `json:"total"`
	Before      Steps   `json:"steps_before"`
	After       Steps   `json:"steps"`
	Blocked     Wait    `json:"blocked_time"`
	Escalations Rungs   `json:"escalations"`
}

// Run simulates an organisation whose agents are the loops of the options: from is where
// their files are read, and root the checkout. It blocks until the time is over, or ctx ends.
func Run(ctx context.Context, o sim.Options, root string, from engine.Files) (sim.Result, Result, error) {
	s := &Simulation{world: NewWorld(o.Start), tallies: map[string]*Tally{}, open: map[string]*Cycle{}, blocked: map[place]time.Time{}}
	s.world.Root, s.world.Others, s.world.Delivered = root, from, s.delivered
	for _, l := range o.Loops {
		s.add(l.Definition, from)
	}
	before := s.countSteps()
	o.Play = s
	r, err := sim.Run(ctx, o)
	if err != nil {
		return r, Result{}, err
	}
	result := s.result(r)
	result.Before = before
	return r, result, nil
}

func (s *Simulation) add(d loop.Definition, from engine.Files) {
	a := s.world.Add(d)
	s.world.Load(d.Name, from)
	s.order = append(s.order, d.Name)
	s.tallies[d.Name] = &Tally{Agent: d.Name, ReportsTo: cmp.Or(a.Definition.Tasks.ReportsTo, a.Definition.Tasks.Owner, "owner")}
	for _, st := range s.world.Steps(d.Name) {
		if !st.Malformed && !st.Completed && st.Status == taskfile.StatusBlocked {
			s.blocked[place{d.Name, st.Key}] = s.world.Now
		}
	}
}

// delivered counts a message between agents, which fires its recipient if it is urgent.
func (s *Simulation) delivered(d loop.Delivery) {
	if to := s.tallies[d.To]; to != nil {
		to.Messages++
	}
	if d.Priority == loop.Urgent {
		s.urgent = append(s.urgent, sim.Call{To: d.To, Key: d.Key})
	}
}

func (s *Simulation) takeUrgent() []sim.Call {
	calls := s.urgent
	s.urgent = nil
	return calls
}

// Open implements sim.Play.
func (s *Simulation) Open(ctx context.Context, agent string, run loop.Run, now time.Time) (bool, error) {
	s.world.Now, run.Started = now, now
	c, err := s.world.Open(ctx, agent, run)
	if err != nil {
		return false, err
	}
	s.open[agent] = c
	return c.Choice != nil, nil
}

// Begin implements sim.Play.
func (s *Simulation) Begin(_ context.Context, agent string, now time.Time) ([]sim.Call, error) {
	s.world.Now = now
	c := s.open[agent]
	if err := c.Begin(); err != nil {
		return nil, err
	}
	s.unblock(place{agent, c.Step.Key}, now)
	return s.takeUrgent(), nil
}

// unblock counts for how long a step was blocked.
func (s *Simulation) unblock(at place, now time.Time) {
	since, was := s.blocked[at]
	if !was {
		return
	}
	delete(s.blocked, at)
	d := now.Sub(since).Milliseconds()
	s.wait.TotalMS += d
	if d > s.wait.LongestMS {
		s.wait.LongestMS, s.wait.LongestAgent, s.wait.LongestStep = d, at.agent, at.key
	}
}

// End implements sim.Play.
func (s *Simulation) End(_ context.Context, agent string, run loop.Run, now time.Time) (sim.Ending, error) {
	s.world.Now = now
	a, c, t := s.world.Agents[agent], s.open[agent], s.tallies[agent]
	if c == nil || c.Run.ID != run.ID { // It gave way to another run.
		a.Runs = append(a.Runs, run)
		return sim.Ending{Outcome: run.Outcome, Reason: run.Reason, Detail: run.Detail}, nil
	}
	delete(s.open, agent)
	c.Run.Usage, c.Run.Spent, c.Run.Cost = run.Usage, run.Spent, run.Cost
	switch {
	case c.Begun():
		did := attemptOf(run, a.Definition)
		if err := c.Record(did); err != nil {
			return sim.Ending{}, err
		}
		t.count(did, c.Step.State)
	case c.Choice != nil: // No budget paid for it.
		c.Run.Outcome, c.Run.Reason, c.Run.Detail = run.Outcome, run.Reason, run.Detail
	case c.Run.Outcome == loop.OutcomeQuiet:
		t.Idle++
	}
	messages, told := len(s.world.Messages), len(s.world.Told)
	if err := c.Close(); err != nil {
		return sim.Ending{}, err
	}
	for _, m := range s.world.Messages[messages:] {
		s.countEscalation(m.Delivery)
	}
	for _, d := range s.world.Told[told:] {
		s.countEscalation(d)
	}
	if c.Begun() && s.isBlocked(agent, c.Step.Key) {
		s.blocked[place{agent, c.Step.Key}] = now
	}
	t.Halted = a.Paused
	return sim.Ending{Outcome: c.Run.Outcome, Reason: c.Run.Reason, Detail: c.Run.Detail, Calls: s.takeUrgent(), Pause: a.Paused}, nil
}

// attemptOf is what an agent did with its step, by what was drawn for its run.
func attemptOf(run loop.Run, d loop.Definition) Attempt {
	switch {
	case run.Reason == loop.ReasonAgentBlocked:
		return Blocked(cmp.Or(run.Detail, "it waits for something (simulated)"))
	case run.Reason == loop.ReasonAgentEscalated:
		return HandedOver(cmp.Or(run.Detail, "it is not its job (simulated)"))
	case run.Outcome.IsSuccess(), run.Outcome == loop.OutcomeWaiting:
		did := Done("simulated")
		if d.Tier == loop.TierReport {
			did.Reason, did.Branch = loop.ReasonReportedOnly, false
		}
		return did
	case run.Reason.IsExternal():
		return Attempt{Verdict: loop.VerdictFail, Reason: run.Reason, Words: run.Detail}
	}
	return Failed(cmp.Or(run.Detail, "it went wrong (simulated)"))
}

// count counts an attempt at a step that left it in a state.
func (t *Tally) count(did Attempt, left loop.StepState) {
	t.Worked++
	switch {
	case did.Verdict == loop.VerdictPass && left == loop.StepDone:
		t.Done++
	case did.Verdict == loop.VerdictPass, did.Reason == loop.ReasonAgentBlocked, did.Reason == loop.ReasonAgentEscalated, did.Reason.IsExternal():
		t.Blocked++
	default:
		t.Failed++
	}
}

// countEscalation counts a message by who is told, if it is an escalation.
func (s *Simulation) countEscalation(d loop.Delivery) {
	if d.Kind != "escalation" {
		return
	}
	s.tallies[d.From].Escalations++
	switch me := s.world.Agents[d.From].Definition.Tasks; {
	case d.Person:
		s.rungs.Owner++
	case d.To == me.Chief:
		s.rungs.Chief++
	case d.To == me.ReportsTo:
		s.rungs.Superior++
	default:
		s.rungs.Escalation++
	}
}

func (s *Simulation) isBlocked(agent, key string) bool {
	return slices.ContainsFunc(s.world.Steps(agent), func(st taskfile.Step) bool { return st.Key == key && st.Status == taskfile.StatusBlocked })
}

func (s *Simulation) countSteps() (n Steps) {
	for _, agent := range s.order {
		for _, st := range s.world.Steps(agent) {
			switch {
			case st.Malformed:
			case st.Completed, st.Status == taskfile.StatusDone:
				n.Done++
			case st.Status == taskfile.StatusBlocked:
				n.Blocked++
			case st.Status == taskfile.StatusFailed:
				n.Failed++
			case st.Status == taskfile.StatusCancelled:
				n.Cancelled++
			default:
				n.Open++
			}
		}
	}
	return n
}

// result adds up. What r says of the loops is what the agents used.
func (s *Simulation) result(r sim.Result) Result {
	for _, agent := range s.order { // In one order, so that the longest is the same each time.
		for _, st := range s.world.Steps(agent) {
			s.unblock(place{agent, st.Key}, r.To)
		}
	}
	result := Result{Agents: []Tally{}, Total: Tally{Agent: "total"}, After: s.countSteps(), Blocked: s.wait, Escalations: s.rungs}
	for _, l := range r.Loops {
		t := s.tallies[l.Loop]
		t.Runs, t.Tokens, t.MicroUSD, t.Unpriced, t.Assumed = l.Runs, l.Tokens, l.MicroUSD, l.Unpriced, l.Assumed
		result.Agents = append(result.Agents, *t)
		result.Total.add(*t)
	}
	return result
}

func (t *Tally) add(o Tally) {
	t.Runs += o.Runs
	t.Worked += o.Worked
	t.Done += o.Done
	t.Blocked += o.Blocked
	t.Failed += o.Failed
	t.Idle += o.Idle
	t.Escalations += o.Escalations
	t.Messages += o.Messages
	t.Tokens += o.Tokens
	t.MicroUSD += o.MicroUSD
	t.Unpriced += o.Unpriced
	t.Assumed += o.Assumed
}
