package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// mayNotSay is an invariant: no file has the word.
type mayNotSay string

func (word mayNotSay) Check() gate.Check {
	return gate.Check{Name: "no-" + string(word), Kind: "invariant", Line: string(word), Fail: loop.ReasonGuardFailed}
}

func (word mayNotSay) Run(_ context.Context, in gate.Input) (loop.GateResult, error) {
	res := loop.GateResult{Name: word.Check().Name, Kind: word.Check().Kind, Pass: true}
	names, err := in.Tree.Names()
	for _, name := range names {
		text, err := in.Tree.Read(name)
		if err != nil {
			return res, err
		}
		if bytes.Contains(text, []byte(word)) {
			res.Pass, res.Note = false, fmt.Sprintf("%s says %q", name, word)
		}
	}
	return res, err
}

// reviewer asks a model about the new text of one file, unless it is that of the base.
type reviewer struct{ file string }

func (r reviewer) Check() gate.Check {
	return gate.Check{Name: "review", Kind: "reviewer", Line: "review " + r.file, Fail: loop.ReasonGateFailed}
}

func (r reviewer) Run(ctx context.Context, in gate.Input) (loop.GateResult, error) {
	res := loop.GateResult{Name: "review", Kind: "reviewer", Pass: true}
	before, err := in.Base.Read(r.file)
	if err != nil {
		return res, err
	}
	now, err := in.Tree.Read(r.file)
	if err != nil || bytes.Equal(before, now) {
		return res, err
	}
	answer, err := in.Ask(ctx, gate.Question{Purpose: loop.PurposeReview, Prompt: "yes or no: " + string(now), Timeout: time.Minute})
	if err != nil {
		return res, fmt.Errorf("review %s: %w", r.file, err)
	}
	if res.Evidence = answer.Text; answer.Text != "yes" {
		res.Pass, res.Note = false, "the reviewer did not say yes"
	}
	return res, nil
}

// gated makes a rig judge by its definition's command, an invariant and a reviewer, and
// returns a target whose agent writes each text in turn.
func (p *meteredRig) gated(answer func(prompt string) string, texts ...string) engine.Target {
	p.t.Helper()
	p.deps.Gates = func(d loop.Definition) []runenv.Gate {
		return []runenv.Gate{gate.Commands(d)[0], mayNotSay("bad"), reviewer{"src/a.txt"}}
	}
	p.engine = engine.New(p.deps)
	p.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if req.Purpose == loop.PurposeReview {
			return agent.Result{Ended: proc.Exited, Message: answer(req.Prompt)}, nil
		}
		gittest.WriteFile(p.t, filepath.Join(req.Dir, "src/a.txt"), texts[0])
		gittest.WriteFile(p.t, filepath.Join(req.Dir, "src/a_test.txt"), "it is changed with its test\n")
		texts = texts[1:]
		return says(p.t, req, `{"outcome":"done"}`)
	}
	return p.calls("g", func(d *loop.Definition) {
		d.Scope, d.Verify, d.MaxIterations = []string{"src/**", "src/a_test.txt"}, "test -s src/a.txt", len(texts)
	})
}

// verdicts are what the gates of a run said, iteration by iteration.
func (r *rig) verdicts(run loop.Run) (said []string) {
	r.t.Helper()
	for _, it := range r.iterations(run.ID) {
		for _, g := range it.Gates {
			said = append(said, strings.TrimSpace(fmt.Sprintf("%d %s %s %v %s", it.N, g.Kind, g.Name, g.Pass, g.Note)))
		}
	}
	return said
}

func TestGatesOfEveryKindDecideAboutACandidate(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, r *meteredRig) {
		var asked []string
		r.deps.Critic = loop.Reviewer{Model: dear}
		target := r.gated(func(prompt string) string {
			asked = append(asked, prompt)
			if strings.Contains(prompt, "dull") {
				return "no, it is dull"
			}
			return "yes"
		}, "", "bad\n", "dull\n", "fine\n")
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed {
			t.Fatalf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
		}
		want := []string{
			"1 command verify false", "1 invariant no-bad true", // The reviewer is spared.
			"2 command verify true", `2 invariant no-bad false src/a.txt says "bad"`, "2 reviewer review true",
			"3 command verify true", "3 invariant no-bad true", "3 reviewer review false the reviewer did not say yes",
			"4 command verify true", "4 invariant no-bad true", "4 reviewer review true", "4 command verify@base true",
		}
		if diff := cmp.Diff(want, r.verdicts(run)); diff != "" {
			t.Errorf("what the gates said (-want +got):\n%s", diff)
		}
		its := r.iterations(run.ID)
		for i, want := range []string{
			"verify failed with exit status 1", `no-bad failed: src/a.txt says "bad"`, "review failed: the reviewer did not say yes:\nno, it is dull",
		} {
			if !strings.Contains(its[i].Feedback, want) {
				t.Errorf("feedback of iteration %d = %q, want it to say %q", i+1, its[i].Feedback, want)
			}
		}
		if its[1].Reason != loop.ReasonGuardFailed || its[2].Reason != loop.ReasonGateFailed {
			t.Errorf("reasons = %s, %s, want those of the gates", its[1].Reason, its[2].Reason)
		}
		if diff := cmp.Diff([]string{"yes or no: bad\n", "yes or no: dull\n", "yes or no: fine\n"}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

func TestAGateThatAsksAModelWhereThereIsNoneSaysSo(t *testing.T) {
	r := newMeteredRig(t, databases["sqlite"](t), fakemodel.Script{})
	target := r.gated(nil, "fine\n")
	run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	if said := fmt.Sprint(run.Detail, err); run.Outcome == loop.OutcomeProposed || !strings.Contains(said, "review src/a.txt: no agent reviews: the gate names none, and no critic is configured") {
		t.Errorf("run = %s %q, %v, want an error that says that there is no model", run.Outcome, run.Detail, err)
	}
}

func TestInvariantsOfADefinitionCompareACandidateWithItsBase(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		texts := []string{"base\n", "two\n", "three\n"}
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), texts[0])
			if len(texts) == 1 {
				if err := os.Remove(filepath.Join(req.Dir, "src/b.txt")); err != nil {
					t.Error(err)
				}
			}
			if len(texts) == 2 {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/b.txt"), "one file too many\n")
			} else {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/c.txt"), fmt.Sprint(len(texts)))
			}
			texts = texts[1:]
			return says(t, req, `{"outcome":"done"}`)
		}
		gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "base\n")
		gittest.Run(t, r.root, "add", ".")
		gittest.Run(t, r.root, "commit", "-qm", "base")
		target := r.target("inv", boardLike{nil, []string{"write it"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", Verify: "cat src/a.txt", MaxIterations: 3,
			Gates: []loop.Gate{
				{Name: "moves", Kind: loop.GateInvariant, Check: `output("verify") != base.output("verify")`},
				{Name: "small", Kind: loop.GateInvariant, Check: `not ("src/b.txt" in diff.paths) and iteration <= 3`},
			},
		})
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed {
			t.Fatalf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
		}
		var got []string
		for _, it := range r.iterations(run.ID) {
			for _, g := range it.Gates {
				got = append(got, fmt.Sprintf("%d %s %v", it.N, g.Name, g.Pass))
			}
		}
		want := []string{"1 verify true", "1 moves false", "1 small true", "2 verify true", "2 moves true", "2 small false", "3 verify true", "3 moves true", "3 small true"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what the gates said (-want +got):\n%s", diff)
		}
	})
}
