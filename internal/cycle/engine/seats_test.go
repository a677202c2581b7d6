package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// onNode makes the rig a node of its store, with a home of its own.
func (p *meteredRig) onNode(id, name string) {
	p.t.Helper()
	p.deps.Self.Node = id
	p.engine = engine.New(p.deps)
	p.change(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.SaveNode(ctx, loop.Node{ID: id, Name: name}); err != nil {
			return err
		}
		if err := tx.AddWorkspace(ctx, loop.Workspace{ID: "ws", Root: p.root}); err != nil {
			return err
		}
		return tx.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: id, Path: p.root})
	})
}

func (p *meteredRig) change(fn func(context.Context, *store.Tx) error) {
	p.t.Helper()
	if err := p.store.Update(p.t.Context(), func(tx *store.Tx) error { return fn(p.t.Context(), tx) }); err != nil {
		p.t.Fatal(err)
	}
}

// twoNodes are two machines with a store, a clone and a copy of one login each.
func twoNodes(t *testing.T, database string) (here, there *meteredRig, files [2]string) {
	t.Helper()
	here, files[0] = lenderOn(t, database)
	there, files[1] = lenderOn(t, database)
	here.onNode("node_here", "attic")
	there.onNode("node_there", "cellar")
	return here, there, files
}

// worksIn is a turn that does the task.
func (p *meteredRig) worksIn(r agent.Request) (agent.Result, error) {
	gittest.WriteFile(p.t, r.Dir+"/src/"+variable(r, "PAWL_LOOP")+".txt", "two\n")
	return says(p.t, r, `{"outcome":"done"}`)
}

// apart gives a loop a scope of its own: no lock is in the way of another one.
func apart(t engine.Target) engine.Target {
	t.Definition.Scope = []string{"src/" + t.Loop.Name + ".txt"}
	return t
}

// wantHeldBack fails the test unless the run found its seats taken, and nothing was
// spent.
func (p *meteredRig) wantHeldBack(run loop.Run, reason loop.Reason, names ...string) {
	p.t.Helper()
	if run.Outcome != loop.OutcomeBlocked || run.Reason != reason {
		p.t.Errorf("run = %s %s %q, want blocked by %s", run.Outcome, run.Reason, run.Detail, reason)
	}
	if !run.Usage.Zero() || len(p.turnRows(run.ID)) != 0 {
		p.t.Errorf("it has turns, and used %+v", run.Usage)
	}
	for _, name := range names {
		if !strings.Contains(run.Detail, name) {
			p.t.Errorf("detail = %q, want %q in it", run.Detail, name)
		}
	}
	if holds := p.holds(); len(holds) != 0 {
		p.t.Errorf("holds = %+v: what waits for another run rests for nobody", holds)
	}
}

func (p *meteredRig) wantProposed(run loop.Run) {
	p.t.Helper()
	if run.Outcome != loop.OutcomeProposed {
		p.t.Errorf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
	}
}

func TestALoginIsLentOnOneNodeAtATime(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there, _ := twoNodes(t, database(t))
			there.agent = func(_ context.Context, r agent.Request) (agent.Result, error) { return there.worksIn(r) }
			second := apart(there.signs("b", false))
			here.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
				there.wantHeldBack(there.run(second, engine.Firing{}), loop.FailureHeld,
					"the login ~/"+loginName+" is held by process ", " for a#1 on node attic since 20")
				return here.worksIn(r)
			}
			here.wantProposed(here.run(apart(here.signs("a", false)), engine.Firing{}))
			there.wantProposed(there.run(second, engine.Firing{}))
		})
	}
}

// Between the look at the seats and the first decision another run may take the last
// one: the transaction of the decision finds out.
func TestTheDecisionItselfTakesTheSeat(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there, _ := twoNodes(t, database(t))
			here.agent = func(_ context.Context, r agent.Request) (agent.Result, error) { return here.worksIn(r) }
			acting, other := make(chan struct{}), make(chan loop.Run, 1)
			there.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
				<-acting
				return there.worksIn(r)
			}
			overtaken := new(fault.Plan).Do("engine.decide.commit.before", 1, func(context.Context) error {
				go func() {
					run, err := there.engine.Run(t.Context(), apart(there.signs("b", false)), engine.Firing{Trigger: "manual"})
					if err != nil {
						t.Error(err)
					}
					other <- run
				}()
				for len(here.seats()) == 0 {
					time.Sleep(5 * time.Millisecond)
				}
				return nil
			})
			first := apart(here.signs("a", false))
			late, err := here.engine.Run(fault.With(t.Context(), overtaken), first, engine.Firing{Trigger: "manual"})
			close(acting)
			there.wantProposed(<-other)
			if err != nil {
				t.Fatal(err)
			}
			here.wantHeldBack(late, loop.FailureHeld, "for b#1 on node cellar since 20")
			if its := here.iterations(late.ID); len(its) != 0 {
				t.Errorf("iterations = %+v, want none", its)
			}
			here.wantProposed(here.run(first, engine.Firing{}))
		})
	}
}

func (r *rig) seats() (list []loop.Seat) {
	r.view(func(rd *store.Reader) (err error) {
		list, err = rd.Seats(r.t.Context())
		return err
	})
	return list
}

// Nobody can ask a node that is gone whether its agent still acts: the lease says so.
// What its program left in place of the login stays on that node, and goes where it
// belongs when that is back.
func TestTheSeatOfAKilledRunIsFreeWhenItsLeaseIsOver(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			here, there, files := twoNodes(t, place)
			there.agent = func(_ context.Context, r agent.Request) (agent.Result, error) { return there.worksIn(r) }
			first, renewed := apart(here.signs("a", false)), login("renewed", time.Now().Add(2*time.Hour))
			here.dies(place, first, dying{Leaves: renewed, Lease: 3 * time.Second, Node: "node_here"})
			second := there.run(apart(there.signs("b", false)), engine.Firing{})
			for second.Reason == loop.FailureHeld {
				there.wantHeldBack(second, loop.FailureHeld, "for a#1 on node attic since 20")
				time.Sleep(100 * time.Millisecond) // Each try is a run.
				second = there.run(apart(there.signs("b", false)), engine.Firing{})
			}
			there.wantProposed(second)
			rec, err := here.engine.Recover(t.Context(), first)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			if got := here.keptLogin(here.told(rec.Run.ID)); got != renewed {
				t.Errorf("the node of the dead run keeps %q, want what its program left", got)
			}
			for _, file := range files {
				if got := read(t, file); !strings.Contains(got, "tok-first-access") {
					t.Errorf("a login is %s, and nobody knows whether the dead run would have been refused", got)
				}
			}
		})
	}
}

func TestAnAgentActsInAsManyRunsAsItMay(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			here, there := newMeteredRig(t, place, fakemodel.Script{}), newMeteredRig(t, place, fakemodel.Script{})
			here.onNode("node_here", "attic")
			there.onNode("node_there", "cellar")
			here.change(func(ctx context.Context, tx *store.Tx) error {
				return tx.SaveAgent(ctx, loop.Agent{ID: "ag_dev", Handle: "dev", Driver: "caller", MaxRuns: 2})
			})
			as := func(agent string) func(*loop.Definition) { return func(d *loop.Definition) { d.Agent = agent } }
			third := apart(there.calls("c", as("@dev")))
			there.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
				if strings.HasPrefix(variable(r, "PAWL_LOOP"), "b") {
					here.wantHeldBack(here.run(apart(here.calls("c", as("@dev"))), engine.Firing{}), loop.ReasonAgentBusy,
						"agent @dev may have 2 at once: a#1 on node attic since 20", ", b#1 on node cellar since 20")
				}
				return there.worksIn(r)
			}
			here.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
				if variable(r, "PAWL_LOOP") == "a" {
					there.wantProposed(there.run(apart(there.calls("b", as("@dev"))), engine.Firing{}))
					here.wantProposed(here.run(apart(here.calls("other", nil)), engine.Firing{})) // Another agent.
				}
				return here.worksIn(r)
			}
			here.wantProposed(here.run(apart(here.calls("a", as("@dev"))), engine.Firing{}))
			there.wantProposed(there.run(third, engine.Firing{}))
		})
	}
}

// The account counts whoever acts with it, also agents that have no limit themselves.
func TestAnAgentLeavesAnAccountToOthersWhenItIsBusy(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.change(func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveAgent(ctx, loop.Agent{ID: "ag_dev", Handle: "dev", Driver: "caller", AccountMaxRuns: 1})
		})
		modest := apart(p.calls("b", func(d *loop.Definition) { d.Agent = "dev" }))
		p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
			if variable(r, "PAWL_LOOP") == "a" {
				held := p.run(modest, engine.Firing{})
				p.wantHeldBack(held, loop.ReasonAccountBusy, "account anthropic:", " may have 1 at once: a#1 since 20")
				if held.Agent != "dev" {
					t.Errorf("the run is of agent %q, want dev", held.Agent)
				}
			}
			return p.worksIn(r)
		}
		p.wantProposed(p.run(apart(p.calls("a", nil)), engine.Firing{}))
		p.wantProposed(p.run(modest, engine.Firing{}))
	})
}

// A run that did not extend its lease has no seat to go on with when another one has
// taken it: it begins no further turn.
func TestARunThatLostItsSeatBeginsNoTurn(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.change(func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveAgent(ctx, loop.Agent{ID: "ag_dev", Handle: "dev", Driver: "caller", MaxRuns: 1})
		})
		turns := 0
		p.agent = func(context.Context, agent.Request) (agent.Result, error) {
			turns++
			p.change(func(ctx context.Context, tx *store.Tx) error { return giveSeatAway(ctx, tx, "lp_a") })
			return ended(&loop.Failure{Class: loop.FailureServer, Text: "no answer"})
		}
		run := p.run(p.calls("a", func(d *loop.Definition) { d.Agent = "dev" }), engine.Firing{})
		if turns != 1 || run.Outcome != loop.OutcomeBlocked || run.Reason != loop.ReasonAgentBusy || !strings.Contains(run.Detail, "the lease of this run was over") {
			t.Errorf("%d turns, run = %s %s %q, want blocked after the first", turns, run.Outcome, run.Reason, run.Detail)
		}
		p.wantOpen("lp_a", 0)
	})
}

// giveSeatAway does what another run does that finds the lease of this one over.
func giveSeatAway(ctx context.Context, tx *store.Tx, loopID string) error {
	if pg := tx.Postgres(); pg != nil {
		_, err := pg.Exec(ctx, `DELETE FROM seats WHERE loop_id = $1`, loopID)
		return err
	}
	_, err := tx.SQLite().ExecContext(ctx, `DELETE FROM seats WHERE loop_id = $1`, loopID)
	return err
}

// What one node learns of an account keeps every node from calling with it.
func TestALimitOfAnAccountHoldsOnEveryNode(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there, _ := twoNodes(t, database(t))
			here.agent = func(context.Context, agent.Request) (agent.Result, error) {
				return ended(&loop.Failure{Class: loop.FailureRateLimit, Text: "You've hit your session limit · resets in 2 hours"})
			}
			there.agent = func(_ context.Context, r agent.Request) (agent.Result, error) { return there.worksIn(r) }
			limited := here.run(apart(here.signs("a", false)), engine.Firing{})
			holds := there.holds()
			if limited.Reason != loop.FailureRateLimit || len(holds) != 1 {
				t.Fatalf("run = %s %s %q, holds %+v", limited.Outcome, limited.Reason, limited.Detail, holds)
			}
			rests := there.run(apart(there.signs("b", false)), engine.Firing{})
			until := fmt.Sprintf("until %s", holds[0].Until.UTC().Format(time.RFC3339))
			if rests.Outcome != loop.OutcomeBlocked || rests.Reason != loop.FailureRateLimit || !strings.Contains(rests.Detail, until) || len(there.turnRows(rests.ID)) != 0 {
				t.Errorf("the other node = %s %s %q, want %s", rests.Outcome, rests.Reason, rests.Detail, until)
			}
		})
	}
}
