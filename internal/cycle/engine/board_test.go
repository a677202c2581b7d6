package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// boardLike is a protocol shaped like a heartbeat board: its memory is rows,
// mentions are answered before work, and the work is one claimed task.
type boardLike struct{ mentions, tasks []string }

func (p boardLike) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &boardSession{p, v}, nil
}

type boardSession struct {
	p boardLike
	v engine.View
}

func (s *boardSession) Recovered() []engine.Repair { return nil }
func (s *boardSession) Sources() []engine.Source {
	return []engine.Source{{Name: "inbox", Text: strings.Join(s.p.mentions, "\n")}}
}

func (s *boardSession) row(key string, kind loop.StepKind) loop.Step {
	for _, row := range s.v.Steps {
		if row.Key == key {
			return row
		}
	}
	return loop.Step{Key: key, Title: key, Kind: kind, State: loop.StepOpen}
}

func (s *boardSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	var list []plan.Candidate
	for _, task := range s.p.tasks {
		list = append(list, plan.Candidate{Step: s.row(task, loop.StepWork)})
	}
	for _, m := range s.p.mentions {
		list = append(list, plan.Candidate{Step: s.row(m, loop.StepReply)})
	}
	return list
}

func (s *boardSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	return nil, engine.Brief{Goal: envelope.Plain(s.v.Definition.Goal), Task: envelope.Plain(ch.Step.Title)}, nil
}

func (s *boardSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	if r.Proposal == nil {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

func (s *boardSession) Close(engine.Summary) []loop.Change { return nil }

func TestABoardAnswersFirstThenClaimsAsksAndTakesTheStepUpAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.target("b", boardLike{[]string{"@ann asks when", "@ben asks why"}, []string{"clean the table"}},
			loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", MaxIterations: 1})
		var asked []string
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			step := variable(req, "PAWL_STEP")
			asked = append(asked, req.Purpose+step[strings.Index(step, " "):])
			if req.Purpose == "reply" {
				return says(t, req, `{"outcome":"done","summary":"answered"}`)
			}
			if strings.Contains(req.Prompt, "said yes") {
				return says(t, req, `{"outcome":"done","summary":"cleaned"}`)
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/half.txt"), "half way\n")
			res, err := says(t, req, `{"summary":"needs a yes"}`)
			res.Asks = []agent.Ask{{Argv: []string{"/bin/rm", "src/a.txt"}, Why: "it is in the way"}}
			return res, err
		}
		first := r.run(target, engine.Firing{})
		if first.Outcome != loop.OutcomeWaiting || first.Approval == "" || first.Snapshot == "" {
			t.Fatalf("run = %s %q, approval %q, snapshot %q, want waiting_human", first.Outcome, first.Detail, first.Approval, first.Snapshot)
		}
		if got, want := strings.Join(asked, "; "), "reply @ann asks when; reply @ben asks why; act clean the table"; got != want {
			t.Errorf("turns = %s, want %s", got, want)
		}
		if left := left(t, r.home); len(left) > 0 {
			t.Errorf("a waiting step holds %v", left)
		}
		quiet := r.run(target, engine.Firing{})
		if quiet.Outcome != loop.OutcomeQuiet || quiet.Usage.ChargedTokens() != 0 {
			t.Errorf("while the human thinks the run is %s, want quiet", quiet.Outcome)
		}

		_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ben"}); !errors.Is(err, loop.ErrAnswered) {
			t.Errorf("a second answer = %v, want ErrAnswered", err)
		}
		second := r.run(target, firing)
		if a := r.approval(second.Approval); a.ID == first.Approval || a.Action.Kind != loop.ActionLand || a.Action.Base != "main" {
			t.Errorf("what was proposed after a yes asks %+v, want its landing on main", a)
		}
		if second.Outcome != loop.OutcomeProposed {
			t.Fatalf("run after the answer = %s %s %q, want proposed", second.Outcome, second.Reason, second.Detail)
		}
		if files := gittest.Run(t, r.root, "ls-tree", "-r", "--name-only", second.Branch); files != "README.md\nsrc/half.txt" {
			t.Errorf("proposed files = %q: the approved command and the work before it are both in it", files)
		}
		if _, err := r.engine.Run(t.Context(), target, firing); !errors.Is(err, loop.ErrDuplicateKey) {
			t.Errorf("firing the answer twice = %v, want ErrDuplicateKey", err)
		}
		if _, err := os.Stat(filepath.Join(r.root, "src/a.txt")); err != nil {
			t.Errorf("the approved command ran in the checkout: %v", err)
		}
		if err := store.VerifyChain(r.chain("lp_b")); err != nil {
			t.Error(err)
		}
	})
}

func TestANoIsSensedByTheRunThatItFires(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.target("b", boardLike{nil, []string{"clean the table"}},
			loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"})
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			if strings.Contains(req.Prompt, "ann said no") && strings.Contains(req.Prompt, "too dangerous") {
				return says(t, req, `{"outcome":"blocked","reason":"not allowed"}`)
			}
			return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{{Argv: []string{"/bin/false"}}}}, nil
		}
		first := r.run(target, engine.Firing{})
		_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{By: "ann", Note: "too dangerous"})
		if err != nil {
			t.Fatal(err)
		}
		if second := r.run(target, firing); second.Outcome != loop.OutcomeBlocked || second.Detail != "not allowed" {
			t.Errorf("run after a no = %s %q, want blocked", second.Outcome, second.Detail)
		}
	})
}

func TestThatNobodyAnsweredInTimeIsSensedByTheRunThatItFires(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			var ahead atomic.Int64
			r := newRigAt(t, url(t), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			target := r.target("b", boardLike{nil, []string{"clean the table"}},
				loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"})
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				if strings.Contains(req.Prompt, "nobody answered in time") && strings.Contains(req.Prompt, "/bin/false") {
					return says(t, req, `{"outcome":"blocked","reason":"no answer"}`)
				}
				return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{{Argv: []string{"/bin/false"}}}}, nil
			}
			first := r.run(target, engine.Firing{})
			ahead.Store(int64(engine.ApprovalTime))
			if err := r.store.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.ExpireApprovals(t.Context()); return err }); err != nil {
				t.Fatal(err)
			}
			if a := r.approval(first.Approval); a.State != loop.ApprovalExpired {
				t.Fatalf("the approval is %s, want expired", a.State)
			}
			if second := r.run(target, engine.Heard(first.Approval, loop.Actor{Who: "event"})); second.Outcome != loop.OutcomeBlocked || second.Detail != "no answer" {
				t.Errorf("run after no answer = %s %q, want blocked", second.Outcome, second.Detail)
			}
		})
	}
}

func TestRecoveryOffersNoLandingWhereTheYesWasToACommand(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"}
	target := r.target("b", boardLike{nil, []string{"clean the table"}}, def)
	r.agent = func(context.Context, agent.Request) (agent.Result, error) {
		return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{{Argv: []string{"/bin/true"}}}}, nil
	}
	first := r.run(target, engine.Firing{})
	_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fault.Parse("engine.conclude.commit.before:1+=EIO")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Run(fault.With(t.Context(), plan), target, firing); err == nil {
		t.Fatal("the run was concluded")
	}
	rec, err := r.engine.Recover(t.Context(), target)
	if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
		t.Fatalf("recover = %+v, %v", rec, err)
	}
	if got := rec.Next.String(); got != "" || strings.Contains(rec.Run.Detail, "landed") {
		t.Errorf("recovery says %q and the run %q, though nothing was to land", got, rec.Run.Detail)
	}
}

func TestAnApprovalOfAnotherDefinitionIsWorthNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"}
		target := r.target("b", boardLike{nil, []string{"clean the table"}}, def)
		marker := filepath.Join(t.TempDir(), "ran")
		r.agent = func(context.Context, agent.Request) (agent.Result, error) {
			return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{{Argv: []string{"/bin/sh", "-c", "touch " + marker}}}}, nil
		}
		first := r.run(target, engine.Firing{})
		_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		target.Definition.Scope = []string{"**/*"}
		if second := r.run(target, firing); second.Outcome != loop.OutcomeRefused {
			t.Errorf("run = %s, want refused", second.Outcome)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Error("the command ran")
		}
	})
}

func TestAttack109AnApprovedCommandRunsOnTheTreeThatWasShownOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, r *rig, snapshot string)
		file   string // that the agent writes before it asks
	}{
		"the base moved, and the snapshot of a step that changed nothing is gone": {func(t *testing.T, r *rig, snapshot string) {
			gittest.WriteFile(t, filepath.Join(r.root, "src/deploy.sh"), "another one\n")
			gittest.Run(t, r.root, "add", "-A")
			gittest.Run(t, r.root, "commit", "-qm", "moved")
			gittest.Run(t, r.root, "update-ref", "-d", snapshot)
		}, ""},
		"the snapshot was replaced": {func(t *testing.T, r *rig, snapshot string) {
			gittest.Run(t, r.root, "update-ref", snapshot, gittest.Run(t, r.root, "commit-tree", "-m", "x", "-p", "main", "main^{tree}"))
		}, "src/deploy.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.SQLite(t))
			def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"}
			target := r.target("b", boardLike{nil, []string{"clean the table"}}, def)
			marker := filepath.Join(t.TempDir(), "ran")
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				if c.file != "" {
					gittest.WriteFile(t, filepath.Join(req.Dir, c.file), "mine\n")
				}
				return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{{Argv: []string{"/bin/sh", "-c", "touch " + marker}}}}, nil
			}
			first := r.run(target, engine.Firing{})
			if first.Outcome != loop.OutcomeWaiting {
				t.Fatalf("run = %s %q, want waiting_human", first.Outcome, first.Detail)
			}
			_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			c.change(t, r, first.Snapshot)
			if second := r.run(target, firing); second.Outcome != loop.OutcomeRefused || second.Reason != loop.ReasonApproval {
				t.Errorf("run = %s %s %q, want refused", second.Outcome, second.Reason, second.Detail)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

func TestAttack001AQuestionDoesNotCarryWhatIsOutOfScope(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	target := r.target("b", boardLike{nil, []string{"clean the table"}},
		loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"})
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "Makefile"), "release:\n\techo evil\n")
		return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{{Argv: []string{"make", "release"}}}}, nil
	}
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeRefused || run.Approval != "" {
		t.Errorf("run = %s %q, approval %q, want refused without a question", run.Outcome, run.Detail, run.Approval)
	}
}
