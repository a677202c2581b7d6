package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// View is a run as `run --json` and `show` print it, schema pawl.run/v1.
type View struct {
	Schema     string       `json:"schema"`
	ID         string       `json:"id"`
	Loop       string       `json:"loop"`
	N          int64        `json:"n"`
	Protocol   string       `json:"protocol"`
	State      string       `json:"state"` // queued, running, settling, ended, dead, lost
	Phase      loop.Phase   `json:"phase"`
	Outcome    loop.Outcome `json:"outcome"`
	Reason     loop.Reason  `json:"reason"`
	Detail     string       `json:"detail"`
	Summary    string       `json:"summary"`
	Trigger    string       `json:"trigger"`
	Event      string       `json:"event,omitempty"` // what fired it: items of the key on, or rest; empty: a person or the time
	Request    string       `json:"request,omitempty"`
	Iterations []Iteration  `json:"iterations"`
	Tokens     Tokens       `json:"tokens"`
	CostUSD    *float64     `json:"cost_usd"` // null: a model that was used has no price, or none was used
	Cost       loop.Cost    `json:"cost,omitzero"`
	Agent      string       `json:"agent,omitempty"` // of the roster
	Auth       loop.Auth    `json:"auth,omitempty"`
	ModelTools string       `json:"model_tools,omitempty"` // enforced, or not enforced; empty: nobody acted, or without a model that pawl knows of
	Turns      []Turn       `json:"turns,omitempty"`

	Instructions []Instruction `json:"instructions,omitempty"` // of the repository: those that the agent was given, and those that it was not

	Base       string             `json:"base"`
	Branch     string             `json:"branch"`
	Commit     string             `json:"commit"`
	Snapshot   string             `json:"snapshot"`
	Subject    string             `json:"subject,omitempty"` // what the run was about, key=value: pr=URL
	Cause      loop.Cause         `json:"cause,omitzero"`    // what the outcome is about, as data; without what the agent calls its item
	Approval   string             `json:"approval"`
	Answer     loop.ApprovalState `json:"approval_state,omitempty"` // how Approval stands
	Definition string             `json:"definition"`
	Overrides  loop.Overrides     `json:"overrides"`
	Sandbox    string             `json:"sandbox"`
	Readiness  int                `json:"readiness"`
	Started    *time.Time         `json:"started"`
	Ended      *time.Time         `json:"ended"`
	MS         Spent              `json:"ms"`

	DeferredTo *loop.Deferral `json:"deferred_to,omitempty"` // the run that it gave way to
	Ungated    string         `json:"ungated,omitempty"`     // where it has pushed work that no gate has judged, as in origin/main

	Events []loop.FiringEvent `json:"events,omitempty"` // that fired it, and those that it took in before it began

	lookup.Family          // of its loop; only of one run
	Calls         []string `json:"pawl_tools,omitempty"` // of pawl's own tools by its agent, each with what became of it; only of one run

	Run loop.Run `json:"-"`

	Again   *loop.Command `json:"again,omitempty"`   // does what its approval allowed; nil if it is about no landing
	Landing *Landing      `json:"landing,omitempty"` // of its approval, if that is a yes whose landing has not come about
}

// Instruction is a file of the repository with instructions for agents.
type Instruction struct {
	Path  string `json:"path"`
	Blob  string `json:"blob"`           // git's name of its content
	Bytes int64  `json:"bytes"`          // its size
	Given int    `json:"given"`          // bytes that the agent was given; 0: none
	Note  string `json:"note,omitempty"` // why it was not given all of it
}

// PullRequest is the address of the pull request that an approved run opened,
// or nothing.
func (v View) PullRequest() string {
	if v.Again == nil || v.Outcome != loop.OutcomeProposed {
		return ""
	}
	return v.Cause.PullRequest
}

// Iteration is one iteration of a View.
type Iteration struct {
	N          int               `json:"n"`
	Step       string            `json:"step"`
	Sensed     string            `json:"sensed"`
	Decided    string            `json:"decided"`
	Acted      string            `json:"acted"`
	Feedback   string            `json:"feedback"`
	Verdict    loop.Verdict      `json:"verdict"`
	Reason     loop.Reason       `json:"reason"`
	Gates      []Gate            `json:"gates"`
	Tokens     int64             `json:"tokens"`
	Tree       string            `json:"tree"`
	Changed    []string          `json:"changed"`
	Considered []loop.Considered `json:"considered"`
	MS         float64           `json:"ms"`
}

// Gate is one gate of an iteration.
type Gate struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Pass     bool    `json:"pass"`
	Pending  bool    `json:"pending,omitempty"` // it decides nothing, and Note says why
	Exit     int     `json:"exit"`
	Evidence string  `json:"evidence"`
	MS       float64 `json:"ms"`

	Tests *loop.TestCounts `json:"tests,omitempty"` // what reported in its output
	Base  *loop.TestCounts `json:"base,omitempty"`  // the same on the base
	Note  string           `json:"note,omitempty"`
	Tries []Try            `json:"tries,omitempty"`
}

// Try is one try of a gate that the definition holds for flaky.
type Try struct {
	Pass bool    `json:"pass"`
	Exit int     `json:"exit"`
	MS   float64 `json:"ms"`
}

// costInDollars is what a run cost, if that is known.
func costInDollars(r loop.Run) *float64 {
	if len(r.Cost.Unpriced) > 0 || len(r.Cost.Prices) == 0 {
		return nil
	}
	return new(float64(r.Cost.MicroUSD) / 1e6)
}

// modelTools says whether the definition's model_tools holds for requests to the
// model: those with a lent login pawl does not see.
func modelTools(a loop.Auth) string {
	switch a {
	case loop.AuthInject:
		return "enforced"
	case loop.AuthLend:
		return "not enforced"
	}
	return ""
}

// Turn is one invocation of an agent.
type Turn struct {
	N         int               `json:"n"`
	Iteration int               `json:"iteration"`
	Purpose   string            `json:"purpose"`
	Agent     string            `json:"agent"`
	Driver    string            `json:"driver"`
	Model     string            `json:"model,omitempty"`
	Exit      int               `json:"exit"`
	Ended     string            `json:"ended"`
	Tokens    Tokens            `json:"tokens"`
	Models    []loop.ModelUsage `json:"models,omitempty"`
	Failure   *loop.Failure     `json:"failure,omitempty"`
	Session   string            `json:"session,omitempty"`
	MS        float64           `json:"ms"`
}

func turnOf(t loop.Turn) Turn {
	return Turn{
		N: t.N, Iteration: t.Iteration, Purpose: t.Purpose, Agent: t.Agent, Driver: t.Driver, Model: t.Model, Exit: t.Exit, Ended: t.Ended,
		Tokens: Tokens(t.Usage), Models: t.Models, Failure: t.Failure, Session: t.Session, MS: shape.Millis(t.Took),
	}
}

// Tokens is the usage of a run.
type Tokens struct {
	Input        int64            `json:"input"`
	Output       int64            `json:"output"`
	CacheRead    int64            `json:"cache_read"`
	CacheWrite   int64            `json:"cache_write"`
	CacheWrite1h int64            `json:"cache_write_1h,omitempty"` // the part of cache_write that is kept for an hour
	Reasoning    int64            `json:"reasoning,omitempty"`      // the part of output that was thought, as far as it is told
	WebSearches  int64            `json:"web_searches,omitempty"`   // by tools that the vendor runs
	FileSearches int64            `json:"file_searches,omitempty"`
	Source       loop.UsageSource `json:"source"`
}

// Spent is where the time of a run went, in milliseconds.
type Spent struct {
	Total    float64 `json:"total"`
	Agent    float64 `json:"agent"`
	Gates    float64 `json:"gates"`
	Overhead float64 `json:"overhead"`
}

// ViewOf describes a run with its iterations and turns.
func (s *Service) ViewOf(ctx context.Context, run loop.Run) (View, error) {
	var its []loop.Iteration
	var turns []loop.Turn
	var events []loop.FiringEvent
	var given []Instruction
	var name, protocol string
	var again *loop.Command
	var landing *Landing
	var answer loop.ApprovalState
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		if its, err = r.Iterations(ctx, run.ID); err != nil {
			return err
		}
		if name, protocol, err = s.ws.LoopOf(ctx, r, run.LoopID); err != nil {
			return err
		}
		if turns, err = r.Turns(ctx, run.ID); err != nil {
			return err
		}
		if run.Event != "" {
			if events, err = r.RunEvents(ctx, run.ID); err != nil {
				return err
			}
		}
		switch text, err := r.LastOf(ctx, run.ID, loop.EventInstructions); {
		case err == nil:
			if given, err = InstructionsIn(text); err != nil {
				return fmt.Errorf("read the instructions of run %s: %w", run.ID, err)
			}
		case !errors.Is(err, loop.ErrNotFound):
			return fmt.Errorf("read the instructions of run %s: %w", run.ID, err)
		}
		answer, again, landing, err = s.approvalOf(ctx, r, run, name)
		return err
	})
	if err != nil {
		return View{}, err
	}
	v := View{
		Schema: "pawl.run/v1", ID: run.ID, Loop: name, N: run.N, Protocol: protocol, State: string(run.State), Phase: run.Phase,
		Outcome: run.Outcome, Reason: run.Reason, Detail: run.Detail, Summary: run.Summary, Trigger: run.Trigger, Event: run.Event, Events: events, Request: run.Request,
		Tokens: Tokens(run.Usage), Base: run.BaseCommit, Branch: run.Branch, Commit: run.Commit, Snapshot: run.Snapshot,
		Approval: run.Approval, Definition: run.Definition, Overrides: run.Overrides, Sandbox: sandboxOrNone(run.Sandbox), Readiness: run.Readiness,
		Started: shape.Time(run.Started), Ended: shape.Time(run.Ended), Iterations: []Iteration{}, Run: run, Instructions: given,
		Subject: run.Subject(), Cause: run.Cause, Ungated: run.Cause.Ungated, Answer: answer, Again: again, Landing: landing, Agent: run.Agent, Auth: run.Auth, ModelTools: modelTools(run.Auth), Cost: run.Cost, CostUSD: costInDollars(run),
		MS: Spent{shape.Millis(run.Spent.Total), shape.Millis(run.Spent.Agent), shape.Millis(run.Spent.Gates), shape.Millis(run.Spent.Overhead())},
	}
	v.Cause.Item = "" // Nothing follows from it, and Subject says it.
	if run.DeferredTo != (loop.Deferral{}) {
		v.DeferredTo = &run.DeferredTo
	}
	if left := s.ws.Liveness(run); lookup.IsLeft(left) {
		v.State = left
	}
	for _, it := range its {
		v.Iterations = append(v.Iterations, iterationOf(it))
	}
	for _, t := range turns {
		v.Turns = append(v.Turns, turnOf(t))
	}
	return v, nil
}

// InstructionsIn reads the text of an event of kind loop.EventInstructions.
func InstructionsIn(text string) (files []Instruction, err error) {
	err = json.Unmarshal([]byte(text), &files)
	return files, err
}

func iterationOf(it loop.Iteration) Iteration {
	v := Iteration{
		N: it.N, Step: it.Step, Sensed: it.Sensed, Decided: it.Decided, Acted: it.Acted, Feedback: it.Feedback, Verdict: it.Verdict,
		Reason: it.Reason, Tokens: it.Usage.ChargedTokens(), Tree: it.Tree, Changed: shape.List(it.Changed), Considered: shape.List(it.Considered), Gates: []Gate{},
	}
	if !it.Ended.IsZero() {
		v.MS = shape.Millis(it.Ended.Sub(it.Started))
	}
	for _, g := range it.Gates {
		v.Gates = append(v.Gates, GateOf(g))
	}
	return v
}

// GateOf describes the result of a gate.
func GateOf(g loop.GateResult) Gate {
	v := Gate{Name: g.Name, Kind: string(g.Kind), Pass: g.Pass, Pending: g.Pending, Exit: g.Exit, Evidence: g.Evidence, MS: shape.Millis(g.Took), Tests: g.Tests, Base: g.Base, Note: g.Note}
	for _, t := range g.Tries {
		v.Tries = append(v.Tries, Try{t.Pass, t.Exit, shape.Millis(t.Took)})
	}
	return v
}

// sandboxOrNone says what confines a run that names nothing: in this version nothing
// does.
func sandboxOrNone(sandbox string) string {
	if sandbox == "" {
		return "none"
	}
	return sandbox
}
