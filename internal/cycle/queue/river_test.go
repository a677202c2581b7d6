package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/queue"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// label gives labels to a node.
func (r *rig) label(node string, labels ...string) loop.Node {
	r.t.Helper()
	n := loop.Node{ID: node, Name: node, Labels: labels}
	r.update(func(ctx context.Context, tx *store.Tx) error { return tx.SaveNode(ctx, n) })
	return n
}

// share makes the workspace of one node lie on another one too.
func (r *rig) share(workspace, node string) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return tx.Place(ctx, loop.Placement{WorkspaceID: workspace, NodeID: node, Path: "/clone"})
	})
}

// jobs counts the hints in a state of River.
func (r *rig) jobs(state string) (n int) {
	r.t.Helper()
	if err := r.store.PostgresPool().QueryRow(r.t.Context(), `SELECT count(*) FROM river_job WHERE state::text = $1`, state).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *rig) waitForJobs(state string, want int) {
	r.t.Helper()
	// The time is that after which a hanging test is given up.
	for deadline := time.Now().Add(30 * time.Second); r.jobs(state) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d hints are %s, want %d", r.jobs(state), state, want)
		}
	}
}

func TestARunWithoutAHintIsFoundByTheLookAtTheRows(t *testing.T) {
	r := newRig(t, storetest.PostgreSQL(t), true)
	q := r.queue(time.Now)
	r.hint = nil
	id := r.fires("here")
	r.nothing(q)
	r.ahead = queue.Gap
	q.Wake()
	if run := r.takes(q); run.ID != id {
		t.Errorf("took %s, want %s", run.ID, id)
	}
}

func TestARunWithoutAHintIsFoundAlsoWhenTheClockOfTheDatabaseWasSetBack(t *testing.T) {
	r := newRig(t, storetest.PostgreSQL(t), true)
	q := r.queue(time.Now)
	r.hint = nil
	id := r.fires("here")
	r.ahead = -time.Second // It is still left to a hint.
	r.nothing(q)
	r.ahead = -7 * 24 * time.Hour
	q.Wake()
	if run := r.takes(q); run.ID != id {
		t.Errorf("took %s, want %s", run.ID, id)
	}
}

func TestARunGoesToANodeWithAllItsLabels(t *testing.T) {
	r := newRig(t, storetest.PostgreSQL(t), true)
	r.share("ws_here", "there")
	here, there := r.label("here", "linux"), r.label("there", "Big.GPU", "linux")
	a, b := r.riverOf(here, time.Now), r.riverOf(there, time.Now)
	id := r.fires("here", "Big.GPU", "linux")
	if run := r.takes(b); run.ID != id {
		t.Errorf("took %s, want %s", run.ID, id)
	}
	r.ahead = queue.Gap
	a.Wake()
	r.nothing(a)
	r.claims(id)
	b.Finish(loop.Run{ID: id}, "ws_here", 0)
	r.label("here", "gpu")
	r.fires("here", "fpga") // Nobody has that.
	if n := r.jobs("available"); n != 0 {
		t.Errorf("there are %d hints for a run that no node may execute", n)
	}
	r.ahead += queue.Gap
	a.Wake()
	b.Wake()
	r.nothing(a)
	r.nothing(b)
}

// Both nodes listen to the queue for runs that several nodes may execute. One of them has
// no clone.
func TestAHintThatReachesANodeWithoutTheCloneIsPassedOn(t *testing.T) {
	r := newRig(t, storetest.PostgreSQL(t), true)
	third := r.label("third")
	wrong := r.riverOf(third, time.Now)
	r.label("fourth")
	r.share("ws_here", "fourth") // So that it is not a hint for one node.
	id := r.fires("here")
	r.waitForJobs("available", 1) // The second, for a node with the clone.
	r.waitForJobs("completed", 1)
	r.nothing(wrong)
	here, fourth := r.riverOf(loop.Node{ID: "here"}, time.Now), r.riverOf(loop.Node{ID: "fourth"}, time.Now)
	taken := make(chan string, 2)
	for _, q := range []*queue.River{here, fourth} {
		go func() {
			run, err := q.Take(t.Context())
			if err == nil {
				taken <- run.ID
			}
		}()
	}
	if got := <-taken; got != id {
		t.Errorf("took %s, want %s", got, id)
	}
	r.claims(id)
}

func TestAHintAtARunThatWasTakenIsDropped(t *testing.T) {
	r := newRig(t, storetest.PostgreSQL(t), true)
	idle := r.riverOf(loop.Node{ID: "there"}, time.Now) // Tells of runs, and executes none of node "here".
	id := r.fires("here")
	r.claims(id)
	q := r.queue(time.Now)
	r.nothing(q)
	r.nothing(idle)
	r.waitForJobs("completed", 1)
}

// A node that ends gives back what it was told of and nobody has taken.
func TestWhatNobodyHasTakenGoesToAnotherNodeWhenOneEnds(t *testing.T) {
	r := newRig(t, storetest.PostgreSQL(t), true)
	r.share("ws_here", "there")
	first := r.riverOf(loop.Node{ID: "here"}, time.Now)
	id := r.fires("here")
	r.waitForJobs("running", 1)
	first.Stop()
	second := r.riverOf(loop.Node{ID: "there"}, time.Now)
	ctx, cancel := context.WithTimeout(t.Context(), queue.Gap-time.Second) // Before the look would find it.
	defer cancel()
	if run, err := second.Take(ctx); err != nil || run.ID != id {
		t.Errorf("took %s, %v, want %s", run.ID, err, id)
	}
}
