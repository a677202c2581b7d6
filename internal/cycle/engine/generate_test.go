package engine_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// asksLike is a protocol that tells its agent only a prompt.
type asksLike struct{ prompt string }

func (p asksLike) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &asksSession{boardSession{boardLike{nil, []string{"the answer is wanted"}}, v}, p.prompt}, nil
}

type asksSession struct {
	boardSession
	prompt string
}

func (s *asksSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	return nil, engine.Brief{Goal: envelope.Plain("it is known"), Task: envelope.Plain(ch.Step.Title), Prompt: s.prompt}, nil
}

// prompted is a loop whose agent answers with one call of the model.
func (p *meteredRig) prompted(answer string) engine.Target {
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		if status, text := ask(ctx, p.t, r, 100); status != http.StatusOK {
			return ended(&loop.Failure{Class: loop.FailureAuth, Status: status, Text: text})
		}
		res, err := ended(nil)
		res.Message = answer
		return res, err
	}
	target := p.calls("asks", func(d *loop.Definition) { d.Tier, d.Scope, d.MaxIterations = loop.TierReport, nil, 1 })
	target.Protocol = asksLike{"Which one?\n"}
	return target
}

func TestATurnOfWhichOnlyTheAnswerCountsIsInAnEmptyTreeChargedAndShown(t *testing.T) {
	onBothMetered(t, spoken, func(t *testing.T, p *meteredRig) {
		target := p.prompted(` {"outcome": "failed", "summary": "this is the answer, and no report", "key": "sk-false-0123456789"} `)
		works := p.agent
		var asked agent.Request
		p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
			asked = r
			if _, err := os.Stat(filepath.Join(r.Dir, "README.md")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it sees the files of the workspace: %v", err)
			}
			gittest.WriteFile(t, filepath.Join(r.Dir, "src/a.txt"), "mine\n")
			gittest.WriteFile(t, variable(r, "PAWL_REPORT"), `{"outcome":"blocked","reason":"no"}`)
			return works(ctx, r)
		}
		run := p.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeReported || run.Snapshot != "" || run.Usage.ChargedTokens() != 15 {
			t.Fatalf("run = %s %s %q, snapshot %q, %d tokens; want it reported with nothing kept", run.Outcome, run.Reason, run.Detail, run.Snapshot, run.Usage.ChargedTokens())
		}
		if diff := cmp.Diff([]string{"generate caller " + cheap + " " + cheap + " 15"}, p.turnsOf(run)); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
		it := p.iterations(run.ID)[0]
		if !strings.HasPrefix(it.Words, `{"outcome": "failed", "summary": "this is the answer`) || strings.Contains(it.Words, "sk-false") || it.Report != "" || len(it.Changed) > 0 {
			t.Errorf("iteration = %+v, want the answer without the key", it)
		}
		if asked.Prompt != "Which one?\n" || asked.Purpose != loop.PurposeGenerate {
			t.Errorf("it was asked %q for %s", asked.Prompt, asked.Purpose)
		}
		if _, err := os.Stat(asked.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the tree of the turn stays: %v", err)
		}
		if told := p.told(run.ID); !strings.Contains(told, "prompt: Which one?") || strings.Contains(told, "sk-false") {
			t.Errorf("the run shows:\n%s", told)
		}
	})
}

func TestATurnWithoutAnAnswerDoesNotPass(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), spoken)
	target := p.prompted("yes")
	p.agent = func(context.Context, agent.Request) (agent.Result, error) {
		return ended(&loop.Failure{Class: loop.FailureRequest, Text: "I do not want to"})
	}
	run := p.run(target, engine.Firing{})
	if its := p.iterations(run.ID); run.Outcome != loop.OutcomeBlocked || run.Reason != loop.FailureRequest || its[0].Verdict != loop.VerdictFail || its[0].Words != "" {
		t.Errorf("run = %s %s %q, %+v; want it blocked", run.Outcome, run.Reason, run.Detail, its)
	}
}
