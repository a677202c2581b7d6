package compose_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
)

// nodeEnv is the name of the node that a child is.
const nodeEnv = "PAWL_TEST_NODE"

// gpuNodes are the nodes with the label gpu.
var gpuNodes = []string{"node1", "node2"}

// serve is the child of a node that is always on: as pawl up, or as pawl worker, which
// sends no notices. It is started again if it cannot start, as by a service manager.
func serve(ctx context.Context, open func() (*compose.Parts, error), up bool) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		if err := serveOnce(ctx, open, up); err != nil {
			fmt.Fprintf(os.Stderr, "error %v\n", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
	return 0
}

func serveOnce(ctx context.Context, open func() (*compose.Parts, error), up bool) error {
	parts, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = parts.Close() }()
	if slices.Contains(gpuNodes, os.Getenv(nodeEnv)) {
		if _, err := parts.Nodes().Set(ctx, nil, &[]string{"gpu", "linux"}); err != nil {
			return err
		}
	}
	d, err := parts.Daemon(ctx, compose.DaemonOptions{Workers: 3, Notices: up, Tell: func(h daemon.Happened) {
		switch {
		case h.Fired != nil:
			fmt.Fprintf(os.Stderr, "fired %s#%d\n", h.Loop, h.Fired.N)
		case h.Ended != nil:
			fmt.Fprintf(os.Stderr, "ended %s#%d %s %s\n", h.Loop, h.Ended.N, h.Ended.Outcome, h.Ended.Reason)
		case h.Recovered != nil:
			fmt.Fprintf(os.Stderr, "recovered %s#%d %s\n", h.Recovered.Loop, h.Recovered.Run.N, h.Recovered.How)
		default:
			fmt.Fprintf(os.Stderr, "wrong %v\n", h.Wrong)
		}
	}})
	if err != nil {
		return err
	}
	if err := d.Start(ctx); err != nil {
		d.Stop(ctx)
		return err
	}
	<-ctx.Done()
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	d.Stop(draining)
	return nil
}

// A daemon and three workers fire and execute loops of one PostgreSQL while processes are
// killed and stopped, the server is restarted and the network is cut. The ledger of
// planned times is compared with what arithmetic says of them, and the runs with the
// ledger; the history of the runs is checked as that of every cluster.
func TestWorkersLoseNoFiringAndExecuteNoneTwice(t *testing.T) {
	t.Parallel()
	const interval, loops = time.Minute, 24
	long, seed := soak(t, 12, 180)
	var keys []string
	for i := range loops {
		more := "cadence: 1m\n"
		if i%3 == 2 {
			more += "node_labels: [gpu]\n"
		}
		keys = append(keys, more)
	}
	c := newCluster(t, []string{"up", "worker", "worker", "worker"}, keys)
	c.random = rand.New(rand.NewPCG(seed, 3))
	c.register()
	c.recordHistory()
	for _, n := range c.nodes {
		c.start(n)
	}
	for end := time.Now().Add(long); time.Now().Before(end); {
		time.Sleep(time.Duration(c.random.Int64N(int64(time.Second))))
		c.fault()
	}
	defer func() {
		for _, n := range c.nodes {
			if t.Failed() {
				t.Logf("log of %s:\n%s", n.name, tail(readFile(t, n.log.Name()), 60))
			}
		}
	}()
	c.settle()
	for _, n := range c.nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, n := range c.nodes {
		<-n.done
	}
	for range 2 {
		for _, n := range c.nodes {
			n.database = c.url
			n.pawl("recover", leaseEnv+"="+clusterLease.String())
		}
	}
	t.Logf("faults: %v", c.counts)
	c.check()
	c.checkLedger(interval)
	c.checkLabels()
}

// register makes the loops known, and the first of them due soon: one every two seconds.
func (c *cluster) register() {
	c.t.Helper()
	(&twoNodes{t: c.t}).withParts(c.nodes[0].fixture, func(d *compose.Parts) error {
		v, err := d.Verbs(c.t.Context(), c.nodes[0].root)
		if err != nil {
			return err
		}
		_, err = v.Loops.Register(c.t.Context())
		return err
	})
	c.query(func(conn *pgx.Conn) error {
		// What is anchored at an earlier time is due earlier.
		_, err := conn.Exec(c.t.Context(), `
UPDATE loops l SET created_ms = created_ms - before, planned_ms = planned_ms - before, due_ms = due_ms - before
FROM   (SELECT id, 60000 - 2000 * row_number() OVER (ORDER BY name) AS before FROM loops WHERE name <> 'fix') x WHERE l.id = x.id`)
		return err
	})
}

// settle ends the firing of all loops, and waits until what was fired has ended.
func (c *cluster) settle() {
	c.t.Helper()
	c.query(func(conn *pgx.Conn) error {
		if _, err := conn.Exec(c.t.Context(), `UPDATE loops SET due_ms = 0`); err != nil {
			return err
		}
		// The time is that after which a hanging test is given up.
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			var open int
			if err := conn.QueryRow(c.t.Context(), `SELECT count(*) FROM runs WHERE state <> 'ended'`).Scan(&open); err != nil || open == 0 {
				return err
			}
			if time.Now().After(deadline) {
				c.t.Errorf("%d runs have not ended two minutes after the last fault", open)
				return nil
			}
		}
	})
}

// planned is a row of the ledger.
type planned struct {
	loop        string
	first, last int64
	n           int64
	verdict     loop.TickVerdict
	run         string
}

// checkLedger holds that the ledger has each planned time of a loop once, and each run.
func (c *cluster) checkLedger(interval time.Duration) {
	t := c.t
	t.Helper()
	created, due := map[string]int64{}, map[string]int64{}
	var ledger []planned
	runs := map[string]int64{} // by id: when it was planned
	c.query(func(conn *pgx.Conn) error {
		rows, err := conn.Query(t.Context(), `SELECT id, created_ms, planned_ms FROM loops WHERE name <> 'fix'`)
		if err != nil {
			return err
		}
		if _, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id string, err error) {
			var at, next int64
			err = row.Scan(&id, &at, &next)
			created[id], due[id] = at, next
			return id, err
		}); err != nil {
			return err
		}
		rows, err = conn.Query(t.Context(), `SELECT loop_id, first_ms, last_ms, n, verdict, run_id FROM ticks ORDER BY loop_id, first_ms`)
		if err != nil {
			return err
		}
		if ledger, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p planned, err error) {
			return p, row.Scan(&p.loop, &p.first, &p.last, &p.n, &p.verdict, &p.run)
		}); err != nil {
			return err
		}
		rows, err = conn.Query(t.Context(), `SELECT id, planned_ms FROM runs`)
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id string, err error) {
			var at int64
			err = row.Scan(&id, &at)
			runs[id] = at
			return id, err
		})
		return err
	})
	next := map[string]int64{}
	for id, at := range created {
		next[id] = at + interval.Milliseconds()
	}
	ran, verdicts := map[string]bool{}, map[loop.TickVerdict]int64{}
	for _, p := range ledger {
		if p.first != next[p.loop] || p.last != p.first+(p.n-1)*interval.Milliseconds() {
			t.Errorf("the ledger of %s has %d times from %d to %d, and the next was to be %d", p.loop, p.n, p.first, p.last, next[p.loop])
		}
		next[p.loop] = p.last + interval.Milliseconds()
		verdicts[p.verdict] += p.n
		at, there := runs[p.run]
		switch {
		case p.verdict == loop.TickSkipped || !there:
			t.Errorf("planned for %d, %s was %s, run %q", p.first, p.loop, p.verdict, p.run)
		case p.verdict == loop.TickRan && (ran[p.run] || at != p.first):
			t.Errorf("run %s was planned for %d; the ledger says %d", p.run, at, p.first)
		case p.verdict == loop.TickRan:
			ran[p.run] = true
		}
	}
	if len(ran) != len(runs) || len(created) == 0 {
		t.Errorf("%d runs were fired for %d loops, the ledger has %d", len(runs), len(created), len(ran))
	}
	for id, at := range due {
		if next[id] != at {
			t.Errorf("%s: the next planned time is %d, after the ledger it is %d", id, at, next[id])
		}
	}
	t.Logf("%d planned times: %v", verdicts[loop.TickRan]+verdicts[loop.TickCoalesced], verdicts)
}

// checkLabels holds that runs were executed by nodes with their labels only, and that the
// nodes told each other of runs.
func (c *cluster) checkLabels() {
	c.t.Helper()
	c.query(func(conn *pgx.Conn) error {
		var wrong, hints, takers int
		err := conn.QueryRow(c.t.Context(), `
SELECT count(*) FROM history h JOIN runs r ON r.id = h.id JOIN nodes n ON n.id = h.node_id WHERE r.node_labels <> '' AND n.labels NOT LIKE '%gpu%'`).Scan(&wrong)
		if err == nil {
			err = conn.QueryRow(c.t.Context(), `SELECT count(*), (SELECT count(DISTINCT node_id) FROM runs) FROM river_job WHERE state = 'completed'`).Scan(&hints, &takers)
		}
		if wrong > 0 {
			c.t.Errorf("%d times a node had a run whose label it lacks", wrong)
		}
		if hints == 0 {
			c.t.Error("no hint reached anybody")
		}
		c.t.Logf("%d hints reached somebody; %d nodes have executed runs", hints, takers)
		return err
	})
}
