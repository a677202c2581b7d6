package boardsim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/heartbeat"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// Tally is what an agent came to.
type Tally struct {
	Agent      string  `json:"agent"`
	Heartbeats int     `json:"heartbeats"`
	Quiet      int     `json:"quiet"` // that had nothing to do, and asked no model
	QuietRatio float64 `json:"quiet_ratio"`
	Answered   int     `json:"answered"` // mentions and messages
	Done       int     `json:"done"`     // attempts at a task
	Blocked    int     `json:"blocked"`
	Failed     int     `json:"failed"`
	Lost       int     `json:"lost"` // claims that others made first
	Tokens     int64   `json:"tokens"`
	MicroUSD   int64   `json:"micro_usd"`
	Unpriced   int     `json:"unpriced_runs"`
	Assumed    int     `json:"assumed_runs"`
}

// Columns counts the tasks by their column.
type Columns map[board.Status]int

// Result is what the agents came to.
type Result struct {
	Agents    []Tally `json:"agents"`
	Total     Tally   `json:"total"`
	Before    Columns `json:"columns_before"`
	After     Columns `json:"columns"`
	Open      int     `json:"open_questions"` // that nobody has answered
	Told      int     `json:"told_people"`
	LongestMS int64   `json:"longest_approval_ms"` // that a proposal waited for a person
}

// simulation implements sim.Play.
type simulation struct {
	world   *world
	defs    map[string]loop.Definition
	tallies map[string]*Tally
	order   []string
	open    map[string]*beat
	longest time.Duration
}

// beat is a heartbeat that has begun.
type beat struct {
	run     loop.Run
	session engine.Session
	choice  *plan.Choice // the task; nil: there is none
	step    loop.Step    // once it has begun
	its     []loop.Iteration
	effects []loop.Effect
	settled map[string]bool
	end     loop.Run // with the outcome of a run that has nothing to do
}

// Run simulates the heartbeats of the agents that are the loops of the options. It blocks
// until the time is over, or ctx ends.
func Run(ctx context.Context, o sim.Options, from Start) (sim.Result, Result, error) {
	s := &simulation{world: newWorld(o.Start, from), defs: map[string]loop.Definition{}, tallies: map[string]*Tally{}, open: map[string]*beat{}}
	for _, l := range o.Loops {
		s.defs[l.Definition.Name] = l.Definition.WithDefaults()
		s.tallies[l.Definition.Name] = &Tally{Agent: l.Definition.Name}
		s.order = append(s.order, l.Definition.Name)
	}
	before, err := s.columns()
	if err != nil {
		return sim.Result{}, Result{}, err
	}
	o.Play = s
	r, err := sim.Run(ctx, o)
	if err != nil {
		return r, Result{}, err
	}
	result := Result{Agents: []Tally{}, Total: Tally{Agent: "total"}, Before: before, Told: len(s.world.post.Told), LongestMS: s.longest.Milliseconds()}
	if result.After, err = s.columns(); err != nil {
		return r, result, err
	}
	for _, m := range s.world.post.Messages {
		if m.Kind == string(board.Question) && m.Response == "" {
			result.Open++
		}
	}
	for _, l := range r.Loops {
		t := s.tallies[l.Loop]
		t.Heartbeats, t.Tokens, t.MicroUSD, t.Unpriced, t.Assumed = l.Runs, l.Tokens, l.MicroUSD, l.Unpriced, l.Assumed
		t.ratio()
		result.Agents = append(result.Agents, *t)
		result.Total.add(*t)
	}
	result.Total.ratio()
	return r, result, nil
}

func (t *Tally) ratio() {
	if t.Heartbeats > 0 {
		t.QuietRatio = float64(t.Quiet) / float64(t.Heartbeats)
	}
}

func (t *Tally) add(o Tally) {
	t.Heartbeats += o.Heartbeats
	t.Quiet += o.Quiet
	t.Answered += o.Answered
	t.Done += o.Done
	t.Blocked += o.Blocked
	t.Failed += o.Failed
	t.Lost += o.Lost
	t.Tokens += o.Tokens
	t.MicroUSD += o.MicroUSD
	t.Unpriced += o.Unpriced
	t.Assumed += o.Assumed
}

func (s *simulation) columns() (Columns, error) {
	all, err := s.world.tasks()
	n := Columns{}
	for _, t := range all {
		n[t.Status]++
	}
	return n, err
}

// Open implements sim.Play: what is to be answered is answered, and a task is claimed.
func (s *simulation) Open(ctx context.Context, agent string, run loop.Run, now time.Time) (bool, error) {
	s.world.now, run.Started = now, now
	b := &beat{run: run, settled: map[string]bool{}}
	s.open[agent], s.world.live[run.ID] = b, true
	session, err := heartbeat.Protocol{}.Open(ctx, s.world.view(s.defs[agent], run))
	if stop, is := errors.AsType[*engine.OpenError](err); is {
		b.end.Outcome, b.end.Reason, b.end.Detail = stop.Outcome, stop.Reason, stop.Detail
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b.session = session
	for _, r := range session.Recovered() {
		if _, err := s.world.apply(agent, run, r.Changes, false); err != nil {
			return false, err
		}
	}
	worked := false
	for {
		d := plan.Next(plan.Snapshot{
			Candidates: session.Candidates(engine.Sensed{}, now), Rules: plan.DefinitionRules(s.defs[agent]), Run: run.N, RunID: run.ID, Settled: b.settled, Started: now,
		}, now)
		if d.Choice == nil {
			b.end.Outcome, b.end.Reason, b.end.Detail = loop.OutcomeQuiet, d.Reason, d.Detail
			if worked {
				b.end.Outcome = loop.OutcomeDone
			}
			return worked, nil
		}
		changes, _, err := session.Begin(*d.Choice)
		if err != nil {
			return false, err
		}
		claimed, err := s.world.apply(agent, run, changes, true)
		if err != nil {
			return false, err
		}
		if !claimed {
			s.tallies[agent].Lost++
			b.settled[d.Choice.Step.Key] = true
			if err := session.(engine.SharedSteps).Refresh(ctx); err != nil {
				return false, err
			}
			continue
		}
		step := d.Choice.Step
		step.ID, step.LoopID, step.RunID, step.State = engine.StepID(run.LoopID, step.Key), run.LoopID, run.ID, loop.StepClaimed
		worked = true
		if step.Kind != loop.StepReply {
			b.choice, b.step = d.Choice, step
			return true, nil
		}
		s.tallies[agent].Answered++
		if err := s.record(agent, b, step, attempt{verdict: loop.VerdictPass, reason: loop.ReasonReplied, report: report.Report{Outcome: report.Done, Summary: "answered (simulated " + step.Key + ")"}}); err != nil {
			return false, err
		}
	}
}

// Begin implements sim.Play.
func (s *simulation) Begin(_ context.Context, _ string, now time.Time) ([]sim.Call, error) {
	s.world.now = now
	return nil, nil
}

// attempt is what became of a step.
type attempt struct {
	verdict loop.Verdict
	reason  loop.Reason
	words   string
	report  report.Report
	branch  bool // its change is proposed
}

// drawn is what an agent did with its task, by what was drawn for its run.
func (s *simulation) drawn(agent string, run loop.Run) attempt {
	switch {
	case run.Reason == loop.ReasonAgentBlocked, run.Reason == loop.ReasonAgentEscalated:
		a := attempt{verdict: loop.VerdictFail, reason: loop.ReasonAgentBlocked, words: cmp.Or(run.Detail, "it needs an answer (simulated)")}
		a.report = report.Report{Outcome: report.Blocked, Reason: a.words}
		if lead := s.leadOf(agent); lead != "" {
			a.report.Messages = []report.Message{{To: lead, Kind: string(board.Question), Content: a.words + " " + run.ID}}
		}
		return a
	case run.Outcome.IsSuccess(), run.Outcome == loop.OutcomeWaiting:
		return attempt{verdict: loop.VerdictPass, reason: loop.ReasonGatesPass, report: report.Report{Outcome: report.Done, Summary: "simulated"}, branch: s.defs[agent].Tier != loop.TierReport}
	case run.Reason.IsExternal():
		return attempt{verdict: loop.VerdictFail, reason: run.Reason, words: run.Detail}
	}
	return attempt{verdict: loop.VerdictFail, reason: loop.ReasonGateFailed, words: cmp.Or(run.Detail, "it went wrong (simulated)")}
}

// leadOf is whom an agent asks; empty: a person.
func (s *simulation) leadOf(agent string) string {
	var members []board.Member
	for _, r := range s.world.rows {
		if r.Set == board.SetMembers {
			if m, err := board.FromRow[board.Member](r); err == nil {
				members = append(members, m)
			}
		}
	}
	return board.Team(members).Superior(strings.TrimPrefix(agent, "@"))
}

func (s *simulation) record(agent string, b *beat, step loop.Step, did attempt) error {
	text, err := json.Marshal(did.report)
	if err != nil {
		return err
	}
	settled := plan.Settle(step, plan.Attempt{
		Verdict: did.verdict, Reason: did.reason, Words: did.words, Gate: plan.AgentGate, Tokens: b.run.Usage.ChargedTokens(), Ended: s.world.now,
	}, b.run.N, plan.DefinitionRules(s.defs[agent]))
	it := loop.Iteration{RunID: b.run.ID, N: len(b.its) + 1, StepID: step.ID, Step: step.Title, Verdict: did.verdict, Reason: did.reason, Feedback: did.words, Report: string(text)}
	res := engine.Result{Run: b.run, Iteration: it, Settlement: settled}
	if did.branch && did.verdict == loop.VerdictPass {
		res.Proposal = &loop.EffectRequest{Kind: effect.KindPropose, Key: b.run.ID}
	}
	b.its, b.settled[step.Key] = append(b.its, it), true
	settled.Step.RunID = ""
	s.world.step(agent, settled.Step)
	changes, effects := b.session.Record(res)
	for range effects {
		b.effects = append(b.effects, loop.Effect{Kind: effect.KindPropose, State: loop.EffectDone})
		lands := nextLook(s.world.now)
		s.world.proposed[step.ID] = lands
		s.longest = max(s.longest, lands.Sub(s.world.now))
	}
	b.end.Outcome, b.end.Reason, b.end.Detail = cmp.Or(settled.Outcome, loop.OutcomeDone), settled.Reason, settled.Detail
	if len(effects) > 0 {
		b.end.Outcome = loop.OutcomeProposed
	}
	_, err = s.world.apply(agent, b.run, changes, false)
	return err
}

// End implements sim.Play.
func (s *simulation) End(_ context.Context, agent string, run loop.Run, now time.Time) (sim.Ending, error) {
	s.world.now = now
	b, t := s.open[agent], s.tallies[agent]
	if b == nil || b.run.ID != run.ID { // It gave way to another run.
		return sim.Ending{Outcome: run.Outcome, Reason: run.Reason, Detail: run.Detail}, nil
	}
	delete(s.open, agent)
	defer delete(s.world.live, run.ID)
	b.run.Usage, b.run.Spent, b.run.Cost = run.Usage, run.Spent, run.Cost
	switch {
	case b.choice != nil:
		did := s.drawn(agent, run)
		switch {
		case did.verdict == loop.VerdictPass:
			t.Done++
		case did.reason == loop.ReasonAgentBlocked, did.reason.IsExternal():
			t.Blocked++
		default:
			t.Failed++
		}
		if err := s.record(agent, b, b.step, did); err != nil {
			return sim.Ending{}, err
		}
	case b.end.Outcome == loop.OutcomeQuiet:
		t.Quiet++
	}
	b.run.Outcome, b.run.Reason, b.run.Detail = b.end.Outcome, b.end.Reason, b.end.Detail
	if b.session != nil {
		changes := b.session.Close(engine.Summary{Run: b.run, Now: now, Iterations: b.its, Effects: b.effects})
		if _, err := s.world.apply(agent, b.run, changes, false); err != nil {
			return sim.Ending{}, err
		}
	}
	return sim.Ending{Outcome: b.run.Outcome, Reason: b.run.Reason, Detail: b.run.Detail}, nil
}

// String is the counts of the columns in their order.
func (c Columns) String() string {
	var words []string
	for _, status := range board.Statuses() {
		if c[status] > 0 || status != board.Failed {
			words = append(words, fmt.Sprintf("%d %s", c[status], status))
		}
	}
	return strings.Join(slices.Clip(words), ", ")
}
