package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// always is a protocol whose only step is there in every run, whatever became of it.
type always struct {
	boardLike
	memory string
}

func (p always) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s, err := p.boardLike.Open(ctx, v)
	return &alwaysSession{s, p.memory}, err
}

type alwaysSession struct {
	engine.Session
	memory string
}

func (s *alwaysSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	return []plan.Candidate{{Step: loop.Step{Key: "goal", Title: "the goal", Kind: loop.StepWork, State: loop.StepOpen}, Memory: s.memory}}
}

// sent is an effect that only says that it was done, with a pull request for each branch.
type sent struct{}

func (sent) Apply(_ context.Context, e loop.Effect, _ func(context.Context) error) (map[string]string, error) {
	return map[string]string{effect.ResultURL: "https://forge.example/o/n/pull/" + filepath.Base(e.Args[effect.ArgBranch])}, nil
}

func (sent) Look(context.Context, loop.Effect) (effect.Found, error) { return effect.Found{}, nil }

// host answers what became of pull requests, and counts how often it is asked.
type host struct {
	states map[string]string
	err    error
	behind map[string]string // addresses → the remote whose host knows them; origin where there is none
	asked  [][]string
}

func (h *host) ask(_ context.Context, _ *git.Repo, remote string, addresses []string) (map[string]string, error) {
	h.asked = append(h.asked, addresses)
	for _, address := range addresses {
		if cmp.Or(h.behind[address], "origin") != remote {
			return nil, fmt.Errorf("%s is not a pull request of %s", address, remote)
		}
	}
	return h.states, h.err
}

// pulling is the rig with a code host, and a loop whose agent is paid whenever the step
// is worked on.
func (r *rig) pulling(h *host) (target engine.Target, paid *int) {
	r.t.Helper()
	deps := r.deps
	deps.Pulls = h.ask
	deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindPush: sent{}, effect.KindPullRequest: sent{}}
	}
	r.engine = engine.New(deps)
	paid = new(int)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		*paid++
		gittest.WriteFile(r.t, filepath.Join(req.Dir, "src/a.txt"), fmt.Sprintf("attempt %d\n", *paid))
		return says(r.t, req, `{"outcome":"done"}`)
	}
	return r.target("p", always{}, loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", LandVia: "pr"}), paid
}

// wants runs the loop once more and compares how it ended.
func (r *rig) wants(target engine.Target, outcome loop.Outcome, reason loop.Reason, words string) loop.Run {
	r.t.Helper()
	run := r.run(target, engine.Firing{})
	if run.Outcome != outcome || reason != "" && run.Reason != reason || !strings.Contains(run.Detail, words) {
		r.t.Fatalf("run #%d = %s %s %q, want %s %s %q", run.N, run.Outcome, run.Reason, run.Detail, outcome, reason, words)
	}
	return run
}

// opened proposes and says yes: the pull request of run N has the address pull/N.
func (r *rig) opened(target engine.Target) string {
	r.t.Helper()
	run := r.wants(target, loop.OutcomeProposed, "", "")
	r.run(target, engine.Yes(run.Approval, loop.Answer{By: "ann"}))
	return fmt.Sprintf("https://forge.example/o/n/pull/%d", run.N)
}

func TestAStepWithAnOpenPullRequestIsNotPaidForAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		h := &host{}
		target, paid := r.pulling(h)
		address := r.opened(target)
		h.states = map[string]string{address: forge.Open}
		r.wants(target, loop.OutcomeQuiet, loop.ReasonPullRequest, "its pull request "+address+" is open")
		changed := target
		changed.Definition.Goal = "the same in other words"
		r.wants(changed, loop.OutcomeQuiet, loop.ReasonPullRequest, address)
		if len(h.asked) != 2 || !slices.Equal(h.asked[0], []string{address}) {
			t.Errorf("the code host was asked %q, want once a run", h.asked)
		}

		h.states, h.err = nil, &loop.Fault{What: "gh cannot be started", Why: "it is not there", Fix: "install gh"}
		r.wants(target, loop.OutcomeQuiet, loop.ReasonPullRequest, address+" may be open: gh cannot be started: it is not there; fix: install gh")
		h.err = errors.New("too slow")
		r.wants(target, loop.OutcomeQuiet, loop.ReasonPullRequest, address+" may be open: too slow")
		if *paid != 1 {
			t.Errorf("%d attempts were paid for, want 1", *paid)
		}

		other := engine.Firing{Overrides: loop.Overrides{Model: "another"}}
		if run := r.run(target, other); run.Outcome != loop.OutcomeProposed || *paid != 2 {
			t.Errorf("a run by another model = %s %q after %d attempts", run.Outcome, run.Detail, *paid)
		}
	})
}

func TestAPullRequestThatIsMergedOrClosedIsNotAskedForAgain(t *testing.T) {
	for state, c := range map[string]struct {
		reason loop.Reason
		words  string
	}{
		forge.Merged: {loop.ReasonMerged, "was merged, and main here does not have it yet"},
		forge.Closed: {loop.ReasonRejected, "was closed and not merged, and nothing has changed since"},
	} {
		t.Run(state, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				h := &host{}
				target, paid := r.pulling(h)
				address := r.opened(target)
				h.states = map[string]string{address: state}
				r.wants(target, loop.OutcomeQuiet, c.reason, address+" "+c.words)
				r.wants(target, loop.OutcomeQuiet, c.reason, address)
				if len(h.asked) != 1 || *paid != 1 {
					t.Errorf("asked %d times and paid for %d attempts, want 1 and 1", len(h.asked), *paid)
				}
				// A squash of it, or whatever else the base has now.
				gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "attempt 1\n")
				gittest.Run(t, r.root, "commit", "-qam", "squashed")
				if r.wants(target, loop.OutcomeProposed, "", ""); *paid != 2 || len(h.asked) != 1 {
					t.Errorf("asked %d times and paid for %d attempts, want 1 and 2", len(h.asked), *paid)
				}
			})
		})
	}
}

func TestAPullRequestThatTheBaseHasHereNeedsNoQuestion(t *testing.T) {
	r := one(t)
	h := &host{err: errors.New("nobody is there")}
	target, paid := r.pulling(h)
	r.opened(target)
	gittest.Run(t, r.root, "merge", "-q", "--ff-only", "pawl/p/1")
	if r.wants(target, loop.OutcomeProposed, "", ""); *paid != 2 || h.asked != nil {
		t.Errorf("asked %q and paid for %d attempts, want nobody and 2", h.asked, *paid)
	}
	if links := r.chain("lp_p"); !slices.ContainsFunc(links, func(l loop.Link) bool { return strings.Contains(l.Body, forge.Merged) }) {
		t.Error("the audit chain does not say that the pull request was merged")
	}
}

func TestARejectedStepIsPaidForAgainOnlyWithOtherInputs(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *rig, target *engine.Target){
		"the base tree": func(t *testing.T, r *rig, _ *engine.Target) {
			t.Helper()
			gittest.WriteFile(t, filepath.Join(r.root, "README.md"), "changed\n")
			gittest.Run(t, r.root, "commit", "-qam", "changed")
		},
		"the definition": func(_ *testing.T, _ *rig, target *engine.Target) { target.Definition.Goal = "another" },
		"the memory": func(_ *testing.T, _ *rig, target *engine.Target) {
			target.Protocol = always{memory: "run.md was edited"}
		},
		"what is sensed": func(_ *testing.T, _ *rig, target *engine.Target) {
			target.Protocol = always{boardLike: boardLike{mentions: []string{"look here"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				target, paid := r.pulling(&host{})
				run := r.wants(target, loop.OutcomeProposed, "", "")
				if _, _, err := r.engine.Answer(t.Context(), run.Approval, loop.Answer{By: "ann", Note: "too long"}); err != nil {
					t.Fatal(err)
				}
				r.wants(target, loop.OutcomeQuiet, loop.ReasonRejected, `its proposal pawl/p/1 was rejected by ann ("too long"), and nothing has changed since`)
				gittest.Run(t, r.root, "commit", "-q", "--allow-empty", "-m", "nothing new")
				r.wants(target, loop.OutcomeQuiet, loop.ReasonRejected, "")
				if *paid != 1 {
					t.Fatalf("%d attempts were paid for, want 1", *paid)
				}
				change(t, r, &target)
				if r.wants(target, loop.OutcomeProposed, "", ""); *paid != 2 {
					t.Errorf("%d attempts were paid for, want 2", *paid)
				}
			})
		})
	}
}

func TestAProposalThatWasMadeAgainOnANewBaseAndRejectedIsNotPaidForAgain(t *testing.T) {
	r := one(t)
	target, paid := r.pulling(&host{})
	first := r.wants(target, loop.OutcomeProposed, "", "")
	gittest.WriteFile(t, filepath.Join(r.root, "README.md"), "moved\n")
	gittest.Run(t, r.root, "commit", "-qam", "moved")
	err := r.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.VoidApproval(t.Context(), first.Approval, "main moved")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again := r.run(target, engine.Again(first.Approval, loop.Answer{By: "Ada", From: "test"}))
	if again.Outcome != loop.OutcomeProposed || *paid != 1 {
		t.Fatalf("run = %s %q after %d attempts", again.Outcome, again.Detail, *paid)
	}
	if _, _, err := r.engine.Answer(t.Context(), again.Approval, loop.Answer{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if r.wants(target, loop.OutcomeQuiet, loop.ReasonRejected, "its proposal pawl/p/2 was rejected by ann, and"); *paid != 1 {
		t.Errorf("%d attempts were paid for, want 1", *paid)
	}
}
