package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// early is a board that asks for a change that no engine applies yet, in one of the
// methods of its session.
type early struct {
	boardLike
	in string
	ch loop.Change
}

func (p early) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &earlySession{boardSession{p.boardLike, v}, p}, nil
}

type earlySession struct {
	boardSession
	p early
}

// changes are those of a method.
func (s *earlySession) changes(method string) []loop.Change {
	if s.p.in == method {
		return []loop.Change{s.p.ch}
	}
	return nil
}

func (s *earlySession) Recovered() []engine.Repair {
	return []engine.Repair{{Changes: s.changes("Recovered"), Note: "nothing was wrong"}}
}

func (s *earlySession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	_, brief, err := s.boardSession.Begin(ch)
	return s.changes("Begin"), brief, err
}

func (s *earlySession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	_, effects := s.boardSession.Record(r)
	return s.changes("Record"), effects
}

func (s *earlySession) Close(engine.Summary) []loop.Change { return s.changes("Close") }

func TestAChangeThatNobodyAppliesYetIsRefusedAndTheRunIsConcluded(t *testing.T) {
	changes := []loop.Change{
		{Kind: loop.ChangePush, Push: &loop.Push{Remote: "origin", Branch: "dev", Commit: "def"}},
		{Kind: loop.ChangeCommit, Commit: &loop.Commit{Branch: "dev", Onto: "def", Paths: []string{"b"}, Message: "m"}},
		{Kind: loop.ChangeCommit, Commit: &loop.Commit{Branch: "main", Onto: "abc", Paths: []string{"a"}, Message: "m"}},
		{Kind: loop.ChangePush, Push: &loop.Push{Remote: "origin", Branch: "main", Commit: "abc"}},
	}
	for i, method := range []string{"Recovered", "Begin", "Record", "Close"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, databases["sqlite"](t))
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
				return says(t, req, `{"outcome":"done"}`)
			}
			target := r.target("e", early{boardLike{nil, []string{"write it"}}, method, changes[i]},
				loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"})
			run := r.run(target, engine.Firing{})
			if run.State != loop.RunEnded {
				t.Fatalf("run is %s, want it to have ended", run.State)
			}
			said := run.Detail
			if method == "Close" { // Its work is good, whatever is written about it.
				said = strings.Join(r.notes(), "\n")
			}
			if done := run.Outcome == loop.OutcomeProposed; done != (method == "Close") {
				t.Errorf("run = %s %s", run.Outcome, run.Reason)
			}
			if want := fmt.Sprintf("change %q: this version of pawl cannot apply it", changes[i].Kind); !strings.Contains(said, want) {
				t.Errorf("it says %q, want %q", said, want)
			}
		})
	}
}
