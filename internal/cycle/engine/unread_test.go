package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// idle has the step of always, and a source that says that there is nothing to do.
type idle struct{ always }

func (p idle) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s, err := p.always.Open(ctx, v)
	return &idleSession{s}, err
}

type idleSession struct{ engine.Session }

func (*idleSession) Sources() []engine.Source {
	return []engine.Source{{Name: "inbox", Quiet: engine.QuietOnEmpty}}
}

func TestARunWithNothingToDoAsksNoCodeHost(t *testing.T) {
	r := one(t)
	h := &host{err: errors.New("nobody is there")}
	target, _ := r.pulling(h)
	r.opened(target)
	target.Protocol = idle{}
	if r.wants(target, loop.OutcomeQuiet, loop.ReasonSensedNothing, ""); h.asked != nil {
		t.Errorf("the code host was asked %q", h.asked)
	}
}

func TestNobodyIsAskedAboutAPullRequestWithoutAnAddress(t *testing.T) {
	r := one(t)
	h := &host{err: errors.New("nobody is there")}
	target, _ := r.pulling(h)
	r.opened(target)
	if err := r.exec(`UPDATE effects SET result = '{}' WHERE kind = 'pull_request'`); err != nil {
		t.Fatal(err)
	}
	if r.wants(target, loop.OutcomeProposed, "", ""); h.asked != nil {
		t.Errorf("the code host was asked %q", h.asked)
	}
}

func TestTheHostOfEachRemoteIsAskedAboutItsOwnPullRequests(t *testing.T) {
	r := one(t)
	h := &host{}
	target, _ := r.pulling(h)
	first := r.opened(target)
	h.states = map[string]string{first: forge.Open}
	another := loop.Overrides{Model: "another"}
	yes := engine.Yes(r.run(target, engine.Firing{Overrides: another}).Approval, loop.Answer{By: "ann"})
	yes.Overrides = another
	r.run(target, yes)
	second := "https://forge.example/o/n/pull/3"
	h.states, h.behind = map[string]string{first: forge.Open, second: forge.Open}, map[string]string{second: "upstream"}
	if err := r.exec(`UPDATE effects SET args = replace(args, '"origin"', '"upstream"') WHERE kind = 'pull_request' AND result LIKE '%/pull/3%'`); err != nil {
		t.Fatal(err)
	}
	h.asked = nil
	run := r.wants(target, loop.OutcomeQuiet, loop.ReasonPullRequest, " is open")
	slices.SortFunc(h.asked, slices.Compare)
	if !slices.EqualFunc(h.asked, [][]string{{first}, {second}}, slices.Equal) || strings.Contains(run.Detail, "may be open") {
		t.Errorf("run = %q, after %q", run.Detail, h.asked)
	}
}

// execFunc starts processes of git.
type execFunc func(context.Context, proc.Spec) (proc.Result, error)

func (f execFunc) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) { return f(ctx, spec) }

func TestWhetherAPullRequestWasMergedHereIsKnownOrTheRunFails(t *testing.T) {
	t.Run("git cannot be started", func(t *testing.T) {
		r := one(t)
		h := &host{}
		target, paid := r.pulling(h)
		h.states = map[string]string{r.opened(target): forge.Closed}
		gittest.Run(t, r.root, "commit", "-q", "--allow-empty", "-m", "moved")
		repo, err := git.OpenWith(t.Context(), execFunc(func(ctx context.Context, spec proc.Spec) (proc.Result, error) {
			if slices.Contains(spec.Argv, "--is-ancestor") {
				return proc.Result{}, errors.New("too many processes")
			}
			return proc.Plain{}.Run(ctx, spec)
		}), r.root)
		if err != nil {
			t.Fatal(err)
		}
		target.Repo = repo
		if r.wants(target, loop.OutcomeFailed, loop.ReasonInternal, "too many processes"); h.asked != nil || *paid != 1 {
			t.Errorf("asked %q, and paid for %d attempts", h.asked, *paid)
		}
	})
	t.Run("its commit was removed with its branch", func(t *testing.T) {
		r := one(t)
		h := &host{}
		target, _ := r.pulling(h)
		h.states = map[string]string{r.opened(target): forge.Open}
		gittest.Run(t, r.root, "branch", "-qD", "pawl/p/1")
		gittest.Run(t, r.root, "reflog", "expire", "--expire=now", "--all")
		gittest.Run(t, r.root, "gc", "-q", "--prune=now")
		if r.wants(target, loop.OutcomeQuiet, loop.ReasonPullRequest, " is open"); len(h.asked) != 1 {
			t.Errorf("asked %q, want the code host", h.asked)
		}
	})
}

// Rows of which a loop's proposals are read, each broken and mended.
var proposalRows = map[string][2]string{
	"the open question":     {`UPDATE approvals SET body = '{' || body WHERE state = 'open'`, `UPDATE approvals SET body = substr(body, 2) WHERE state = 'open'`},
	"the approved question": {`UPDATE approvals SET body = '{' || body WHERE state = 'approved'`, `UPDATE approvals SET body = substr(body, 2) WHERE state = 'approved'`},
	"the rejected question": {`UPDATE approvals SET body = '{' || body WHERE state = 'rejected'`, `UPDATE approvals SET body = substr(body, 2) WHERE state = 'rejected'`},
	"the pull request":      {`UPDATE effects SET result = '{' || result WHERE kind = 'pull_request'`, `UPDATE effects SET result = substr(result, 2) WHERE kind = 'pull_request'`},
	"the run that proposed": {`UPDATE runs SET usage = '{' || usage WHERE n = 1`, `UPDATE runs SET usage = substr(usage, 2) WHERE n = 1`},
	"its iteration":         {`UPDATE iterations SET body = '{' || body`, `UPDATE iterations SET body = substr(body, 2)`},
}

// What cannot be read may be what keeps a step from being paid for again.
func TestAStepWhoseProposalCannotBeReadIsNotWorkedOn(t *testing.T) {
	asked := func(r *rig, target engine.Target, _ *host) { r.wants(target, loop.OutcomeProposed, "", "") }
	pulled := func(state string) func(*rig, engine.Target, *host) {
		return func(r *rig, target engine.Target, h *host) { h.states = map[string]string{r.opened(target): state} }
	}
	for name, c := range map[string]struct {
		prepare func(*rig, engine.Target, *host)
		rows    []string
	}{
		"one without an answer":                {asked, []string{"the open question", "the run that proposed", "its iteration"}},
		"one on a pull request that is open":   {pulled(forge.Open), []string{"the pull request", "the approved question", "the run that proposed", "its iteration"}},
		"one on a pull request that is closed": {pulled(forge.Closed), []string{"the pull request", "the approved question", "the run that proposed", "its iteration"}},
		"one that was rejected": {func(r *rig, target engine.Target, _ *host) {
			run := r.wants(target, loop.OutcomeProposed, "", "")
			if _, _, err := r.engine.Answer(r.t.Context(), run.Approval, loop.Answer{By: "ann"}); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"the rejected question", "the run that proposed", "its iteration"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			h := &host{}
			target, paid := r.pulling(h)
			c.prepare(r, target, h)
			for _, row := range c.rows {
				breaks := new(fault.Plan).Do("engine.sense.before", 1, func(context.Context) error { return r.exec(proposalRows[row][0]) })
				run, err := r.engine.Run(fault.With(t.Context(), breaks), target, engine.Firing{Trigger: "manual"})
				if err != nil || run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonInternal {
					t.Errorf("without %s: %s %s %q, %v, want the error of the store", row, run.Outcome, run.Reason, run.Detail, err)
				}
				if err := r.exec(proposalRows[row][1]); err != nil {
					t.Fatal(err)
				}
			}
			if r.wants(target, loop.OutcomeQuiet, "", ""); *paid != 1 {
				t.Errorf("%d attempts were paid for, want 1", *paid)
			}
		})
	}
}
