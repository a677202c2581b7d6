package compose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The lease of a run that died elsewhere is over when the database says so, whatever the
// clock of a node says.
func TestAWrongClockNeitherTakesARunNorLeavesOne(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"five minutes behind": -5 * time.Minute, "five minutes ahead": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTwoNodes(t)
			n.join()
			n.b.setClock(wrong)
			if v := n.a.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1"); v != nil {
				t.Fatalf("the run was not killed: %+v", v)
			}
			look := func(when string, want ...string) {
				t.Helper()
				if v := n.b.pawl("look"); !slices.Equal(v.States, want) {
					t.Errorf("%s ls, show, runs and why say %q, want %q", when, v.States, want)
				}
			}
			leaseEnds := func(in time.Duration) { // By less than the clock is wrong.
				n.a.sql(fmt.Sprintf(`UPDATE runs SET lease_until_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + %d`, in.Milliseconds()))
			}
			leaseEnds(4 * time.Minute)
			look("while the lease lasts", "running", "running", "running", "running")
			if v := n.b.pawl("recover"); len(v.Recovered) != 0 {
				t.Errorf("a run was taken whose lease lasts: %q", v.Recovered)
			}
			leaseEnds(-time.Second)
			look("when the lease is over", "lost", "lost", "lost", "lost")
			if v := n.b.pawl("recover"); len(v.Recovered) != 1 || !strings.Contains(v.Recovered[0], " interrupted") {
				t.Errorf("when the lease is over, recovery finds %q", v.Recovered)
			}
			look("when it was recovered", "idle", "ended", "ended", "ended")
		})
	}
}

// A question is open or over, and a day of a budget is that of the database, wherever the
// answer is given.
func TestAWrongClockLeavesAProposalAsItIs(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"a month behind": -30 * 24 * time.Hour, "a month ahead": 30 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTwoNodes(t)
			proposed(t, n.a)
			n.a.setClock(wrong)
			if v := n.a.pawl("recover"); len(v.Recovered) != 0 {
				t.Errorf("recovery finds %q", v.Recovered)
			}
			if v := n.a.pawl("approve"); v == nil || v.Run.Outcome != "landed" {
				t.Errorf("approved on a host with a wrong clock, the run is %+v, want landed", v)
			}
		})
	}
}
