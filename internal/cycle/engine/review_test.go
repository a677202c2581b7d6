package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// dear is another model than cheap.
const dear = "claude-opus-4-8"

// reviewed is a loop whose agent writes a file with one call of cheap, and whose result a
// critic of the roster reviews with one call of dear. The answers are what it says, the
// last one again and again.
func (p *meteredRig) reviewed(gate loop.Gate, answers ...string) (target engine.Target, reviews *[]agent.Request) {
	p.t.Helper()
	p.change(func(ctx context.Context, tx *store.Tx) error {
		return tx.SaveAgent(ctx, loop.Agent{ID: "ag_critic", Handle: "critic", Driver: "caller", Model: dear, BaseURL: p.url})
	})
	reviews = new([]agent.Request)
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		if status, text := ask(ctx, p.t, r, 100); status != http.StatusOK {
			return ended(&loop.Failure{Class: loop.FailureAuth, Status: status, Text: text})
		}
		res, err := ended(nil)
		if r.Purpose != loop.PurposeReview {
			gittest.WriteFile(p.t, r.Dir+"/src/a.txt", fmt.Sprintf("try %d\n", p.turns.Load()))
			return res, err
		}
		*reviews = append(*reviews, r)
		res.Message = answers[min(len(*reviews), len(answers))-1]
		return res, err
	}
	if gate.Name == "" {
		gate = loop.Gate{Name: "good", Kind: loop.GateReviewer, Check: "It is good.", Reviewer: loop.Reviewer{Agent: "@critic"}}
	}
	return p.calls("rev", func(d *loop.Definition) {
		d.Verify, d.Gates, d.MaxIterations, d.Effort, d.PermissionMode = "test -s src/a.txt", []loop.Gate{gate}, 2, "", "dontAsk"
		d.Env, d.Network = []string{"PAWL_TEST_OF_THE_MAKER"}, []string{"example.com"}
	}), reviews
}

// turnsOf are the purposes, agents and models of a run's turns.
func (p *meteredRig) turnsOf(run loop.Run) (list []string) {
	p.t.Helper()
	for _, row := range p.turnRows(run.ID) {
		texts := []string{row.Purpose, row.Agent, row.Model}
		for _, m := range row.Models {
			texts = append(texts, m.Model, strconv.FormatInt(m.ChargedTokens(), 10))
		}
		list = append(list, strings.Join(texts, " "))
	}
	return list
}

var spoken = fakemodel.Script{Turns: []fakemodel.Turn{{Say: "so it is", Usage: usage(10, 5)}}}

func TestAReviewIsATurnOfAnotherAgentThatIsCharged(t *testing.T) {
	onBothMetered(t, spoken, func(t *testing.T, p *meteredRig) {
		p.deps.Environ = append(p.deps.Environ, "PAWL_TEST_OF_THE_MAKER=1")
		p.engine = engine.New(p.deps)
		target, reviews := p.reviewed(loop.Gate{}, "FAIL\n1: not met", "pass\n1: met")
		run := p.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || run.Agent != "caller" || run.Auth != loop.AuthInject {
			t.Fatalf("run = %s %s %q of %s, want it proposed", run.Outcome, run.Reason, run.Detail, run.Agent)
		}
		want := []string{
			"act caller " + cheap + " " + cheap + " 15", "review critic " + dear + " " + dear + " 15",
			"act caller " + cheap + " " + cheap + " 15", "review critic " + dear + " " + dear + " 15",
		}
		if diff := cmp.Diff(want, p.turnsOf(run)); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
		its := p.iterations(run.ID)
		if run.Usage.ChargedTokens() != 60 || its[0].Usage.ChargedTokens() != 30 || !strings.HasPrefix(its[0].Acted, "the agent ended with exit status 0") {
			t.Errorf("the run used %d tokens and its first iteration %d, which did %q", run.Usage.ChargedTokens(), its[0].Usage.ChargedTokens(), its[0].Acted)
		}
		if g := its[0].Gates[1]; g.Pass || g.Pending || g.Evidence != "FAIL\n1: not met" || !strings.Contains(its[0].Feedback, "1: not met") {
			t.Errorf("the first review = %+v, feedback %q", g, its[0].Feedback)
		}
		r := (*reviews)[0]
		if text, err := os.ReadFile(filepath.Join(r.Dir, "src/a.txt")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the reviewer was shown %q, %v; want an empty tree", text, err)
		}
		if !strings.Contains(r.Prompt, "+try 1") || !strings.Contains(r.Prompt, "1. It is good.") || r.Model != dear || r.Keep || len(r.Tools) > 0 || len(r.Servers) > 0 {
			t.Errorf("request = %+v", r)
		}
		if got := variable(r, "PAWL_TEST_OF_THE_MAKER"); got != "" {
			t.Errorf("the reviewer got a variable that the definition allows the maker: %q", got)
		}
		if told := p.told(run.ID); !strings.Contains(told, "note: asking @critic for a review") || !strings.Contains(told, "prompt: # How to review") {
			t.Errorf("the run shows no review:\n%s", told)
		}
	})
}

func TestAReviewerThatWritesKeepsNothing(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), spoken)
	target, _ := p.reviewed(loop.Gate{}, "PASS")
	works := p.agent
	var dir string
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		res, err := works(ctx, r)
		if r.Purpose == loop.PurposeReview {
			dir = r.Dir
			gittest.WriteFile(t, r.Dir+"/src/a.txt", "the reviewer's\n")
			gittest.WriteFile(t, variable(r, "PAWL_REPORT"), `{"outcome":"failed","summary":"I did it"}`)
		}
		return res, err
	}
	run := p.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || strings.Contains(run.Summary, "I did it") {
		t.Fatalf("run = %s %s %q, %q", run.Outcome, run.Reason, run.Detail, run.Summary)
	}
	if got := gittest.Run(t, p.root, "show", run.Branch+":src/a.txt"); got != "try 1" {
		t.Errorf("the branch has %q, want the maker's work", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree of the review stays: %v", err)
	}
}

// Whoever cannot review leaves the result to a human. The run never fails for it, and the
// gate never passes.
func TestAReviewThatDecidesNothingLeavesTheResultToAHuman(t *testing.T) {
	by := func(r loop.Reviewer) loop.Gate {
		return loop.Gate{Name: "good", Kind: loop.GateReviewer, Check: "It is good.", Reviewer: r}
	}
	for name, c := range map[string]struct {
		gate    loop.Gate
		change  func(p *meteredRig, target *engine.Target)
		words   string
		reviews int
	}{
		"no critic":         {by(loop.Reviewer{}), nil, "no agent reviews: the gate names none, and no critic is configured", 0},
		"an unknown agent":  {by(loop.Reviewer{Agent: "nobody-knows"}), nil, `agent "nobody-knows" is neither a driver nor in the roster`, 0},
		"the maker itself":  {by(loop.Reviewer{Agent: "caller"}), nil, "@caller did the work and may not review it", 0},
		"the maker's model": {by(loop.Reviewer{Agent: "critic", Model: cheap}), nil, cheap + " did the work and reviewed it", 1},
		"the maker's model under another name": {
			by(loop.Reviewer{Agent: "critic", Model: cheap + "-20251001"}), nil, cheap + "-20251001 did the work and reviewed it", 1,
		},
		"an agent that pawl cannot meter": {by(loop.Reviewer{Agent: "plain"}), func(p *meteredRig, _ *engine.Target) {
			p.deps.Drivers["plain"] = driverFunc(p.turn)
		}, "nobody sees which model @plain asks", 0},
		"a login that would be lent": {by(loop.Reviewer{Agent: "signed"}), func(p *meteredRig, _ *engine.Target) {
			p.signsIn()
		}, "@signed would be lent a login, with which nobody sees which model answers; set a key for it", 0},
		"a login that was lent to the maker": {loop.Gate{}, func(p *meteredRig, target *engine.Target) {
			p.signsIn()
			d := &target.Definition
			d.Agent, d.BaseURL, d.Model, d.Auth, d.Env, d.Network = "signed", "", "", loop.AuthLend, nil, nil
			p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
				gittest.WriteFile(p.t, r.Dir+"/src/a.txt", "by a login\n")
				return ended(nil)
			}
		}, "nobody knows which model did the work, so it may be that of the reviewer", 0},
		"no key": {loop.Gate{}, func(p *meteredRig, _ *engine.Target) {
			p.change(func(ctx context.Context, tx *store.Tx) error {
				return tx.SaveAgent(ctx, loop.Agent{ID: "ag_critic", Handle: "critic", Driver: "caller", Model: dear, Provider: "anthropic", BaseURL: "https://models.example.com"})
			})
		}, "nobody reviews: ", 0},
		"an agent that fails": {loop.Gate{}, func(p *meteredRig, _ *engine.Target) {
			works := p.agent
			p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
				if r.Purpose == loop.PurposeReview {
					return ended(&loop.Failure{Class: loop.FailureRequest, Text: "I do not want to"})
				}
				return works(ctx, r)
			}
		}, "@critic did not review: the agent failed after 1ms: ", 0},
		"an agent that ends badly, where an error policy holds": {loop.Gate{}, func(p *meteredRig, target *engine.Target) {
			target.Definition.ErrorPolicy = &loop.ErrorPolicy{}
			works := p.agent
			p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
				if r.Purpose == loop.PurposeReview {
					return agent.Result{Ended: proc.Exited, Exit: 3, Took: time.Millisecond}, nil
				}
				return works(ctx, r)
			}
		}, "@critic did not review: the agent ended with exit status 3", 0},
		"an account that may not call": {loop.Gate{}, func(p *meteredRig, target *engine.Target) {
			target.Definition.BaseURL = p.url + "/" // Another account.
			p.agent = p.limits(p.agent)
		}, "@critic did not review: ", 0},
		"nothing left to spend": {loop.Gate{}, func(p *meteredRig, target *engine.Target) {
			target.Definition.BudgetTokens = 5 // The maker has used them.
		}, "the review was stopped: ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newMeteredRig(t, databases["sqlite"](t), spoken)
			target, reviews := p.reviewed(c.gate, "PASS")
			if c.change != nil {
				c.change(p, &target)
				p.engine = engine.New(p.deps)
			}
			run := p.run(target, engine.Firing{})
			its := p.iterations(run.ID)
			if run.Outcome != loop.OutcomeWaiting || run.Approval == "" || len(its) != 1 || its[0].Verdict != loop.VerdictPending {
				t.Fatalf("run = %s %s %q after %d iterations, want it to wait for a human", run.Outcome, run.Reason, run.Detail, len(its))
			}
			for _, h := range p.holds() {
				if strings.HasPrefix(h.Subject, "loop:") {
					t.Errorf("the loop rests because of its reviewer: %+v", h)
				}
			}
			g := its[0].Gates[len(its[0].Gates)-1]
			if g.Pass || !g.Pending || !strings.Contains(g.Note, c.words) || len(*reviews) != c.reviews {
				t.Errorf("gate = %+v after %d reviews, want %q", g, len(*reviews), c.words)
			}
		})
	}
}

// limits makes the vendor refuse a review for an hour.
func (p *meteredRig) limits(works func(context.Context, agent.Request) (agent.Result, error)) func(context.Context, agent.Request) (agent.Result, error) {
	return func(ctx context.Context, r agent.Request) (agent.Result, error) {
		if r.Purpose == loop.PurposeReview {
			return ended(&loop.Failure{Class: loop.FailureRateLimit, Status: http.StatusTooManyRequests, Text: "not now", Typed: true})
		}
		return works(ctx, r)
	}
}

func TestAReviewThatIsNeitherPassNorFailIsAskedForOnceMore(t *testing.T) {
	onBothMetered(t, spoken, func(t *testing.T, p *meteredRig) {
		target, reviews := p.reviewed(loop.Gate{}, "Well, it depends.")
		target.Definition.MaxIterations = 1
		run := p.run(target, engine.Firing{})
		if run.Outcome == loop.OutcomeProposed || run.Outcome == loop.OutcomeWaiting || len(*reviews) != 2 || run.Usage.ChargedTokens() != 45 {
			t.Errorf("run = %s %q after %d reviews and %d tokens, want it not to pass after 2 and 45", run.Outcome, run.Detail, len(*reviews), run.Usage.ChargedTokens())
		}
	})
}

func TestTheConfiguredCriticReviewsWhereAGateNamesNobody(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), spoken)
	p.deps.Critic = loop.Reviewer{Agent: "critic"}
	p.engine = engine.New(p.deps)
	target, reviews := p.reviewed(loop.Gate{Name: "good", Kind: loop.GateReviewer, Check: "It is good."}, "PASS")
	if run := p.run(target, engine.Firing{}); run.Outcome != loop.OutcomeProposed || len(*reviews) != 1 {
		t.Errorf("run = %s %q after %d reviews, want it proposed after one", run.Outcome, run.Detail, len(*reviews))
	}
}

// What an earlier run left was made by its model, whoever goes on with it.
func TestAModelDoesNotReviewWhatItDidInAnEarlierRun(t *testing.T) {
	onBothMetered(t, spoken, func(t *testing.T, p *meteredRig) {
		target, reviews := p.reviewed(loop.Gate{}, "PASS")
		target.Protocol, target.Definition.Sense, target.Definition.HumanGate = pinned{}, "false", loop.HumanGateDecide
		made := target
		made.Definition.Model, made.Definition.Gates = dear, nil // That of the reviewer, which has nothing to say yet.
		a := p.waits(made, loop.ReasonGatesPass, loop.ActionLand)
		no := ada
		no.Note = "write more"
		run := p.run(target, engine.Changes(a.ID, "goal", no))
		its := p.iterations(run.ID)
		if g := its[0].Gates[len(its[0].Gates)-1]; run.Outcome != loop.OutcomeWaiting || run.Reason != loop.ReasonUndecided || len(*reviews) != 1 || g.Note != dear+" did the work and reviewed it" {
			t.Errorf("run = %s %s %q after %d reviews: %+v; want it to wait for a human", run.Outcome, run.Reason, run.Detail, len(*reviews), g)
		}
	})
}

// A run that makes a proposal again on a base that has moved takes no turn before its
// gates, and so has reserved nothing.
func TestAReviewAfterTheBaseHasMovedIsPaidFor(t *testing.T) {
	for name, c := range map[string]struct {
		left    int64 // tokens, for the second run
		outcome loop.Outcome
		words   string
	}{
		"with a budget": {1_000_000, loop.OutcomeProposed, ""},
		"without one":   {0, loop.OutcomeWaiting, "nobody reviews: "},
	} {
		t.Run(name, func(t *testing.T) {
			onBothMetered(t, spoken, func(t *testing.T, p *meteredRig) {
				p.budget(all, loop.WindowDay, loop.Amount{Tokens: 1_000_000, MicroUSD: 50_000_000})
				target, reviews := p.reviewed(loop.Gate{}, "PASS")
				first := p.run(target, engine.Firing{})
				if first.Outcome != loop.OutcomeProposed || first.Approval == "" {
					t.Fatalf("run = %s %s %q, want it proposed", first.Outcome, first.Reason, first.Detail)
				}
				gittest.WriteFile(t, filepath.Join(p.root, "other.txt"), "a person's\n")
				gittest.Run(t, p.root, "add", "other.txt")
				gittest.Run(t, p.root, "commit", "-qm", "meanwhile")
				p.void(first.Approval)
				used := p.standing(all).Used
				p.budget(all, loop.WindowDay, loop.Amount{Tokens: used.Tokens + c.left, MicroUSD: 50_000_000})
				run := p.run(target, engine.Again(first.Approval, ada))
				its := p.iterations(run.ID)
				if len(its) != 1 || run.Outcome != c.outcome {
					t.Fatalf("run = %s %s %q, want %s", run.Outcome, run.Reason, run.Detail, c.outcome)
				}
				if a := p.approval(run.Approval); (len(a.Action.Flags) > 0 && strings.HasPrefix(a.Action.Flags[0], "no gate has decided: good: "+c.words)) != (c.words != "") {
					t.Errorf("flags = %q", a.Action.Flags)
				}
				charged := int64(0)
				if c.words == "" {
					charged = 15
				}
				st := p.standing(all)
				if got := st.Used.Tokens - used.Tokens; got != charged || run.Usage.ChargedTokens() != charged || !st.Reserved.Zero() || int64(len(*reviews)) != 1+charged/15 {
					t.Errorf("the second run is charged %d tokens after %d reviews, reserved are %+v; want %d and nothing", got, len(*reviews), st.Reserved, charged)
				}
				if g := its[0].Gates[len(its[0].Gates)-1]; !strings.HasPrefix(g.Note, c.words) || g.Pending != (c.words != "") {
					t.Errorf("gate = %+v, want %q", g, c.words)
				}
			})
		})
	}
}

func TestARunThatIsStoppedInAReviewEndsAsInATurn(t *testing.T) {
	for name, c := range map[string]struct {
		stop    func(p *meteredRig, target engine.Target)
		outcome loop.Outcome
		reason  loop.Reason
	}{
		"by the kill switch": {func(p *meteredRig, _ engine.Target) {
			gittest.WriteFile(p.t, p.root+"/.loops/PAUSED", "")
		}, loop.OutcomePaused, loop.ReasonKillSwitch},
		"by its lease": {func(p *meteredRig, target engine.Target) { p.steal(target.Loop.ID, loop.Holder{PID: 1, Host: "thief"}) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			onBothMetered(t, spoken, func(t *testing.T, p *meteredRig) {
				target, _ := p.reviewed(loop.Gate{}, "PASS")
				works := p.agent
				p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
					if r.Purpose != loop.PurposeReview {
						return works(ctx, r)
					}
					res, err := works(ctx, r)
					c.stop(p, target)
					<-ctx.Done()
					res.Ended, res.Claims = proc.Canceled, false
					return res, err
				}
				run, err := p.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
				if c.outcome == "" {
					if !errors.Is(err, loop.ErrLeaseLost) {
						t.Errorf("run = %s %s, %v; want a lost lease", run.Outcome, run.Reason, err)
					}
					return
				}
				if err != nil || run.Outcome != c.outcome || run.Reason != c.reason || run.Approval != "" {
					t.Fatalf("run = %s %s %q, %v; want %s", run.Outcome, run.Reason, run.Detail, err, c.outcome)
				}
				if turns := p.turnsOf(run); len(turns) != 2 || run.Usage.ChargedTokens() != 30 {
					t.Errorf("turns = %q with %d tokens, want the review charged", turns, run.Usage.ChargedTokens())
				}
			})
		})
	}
}
