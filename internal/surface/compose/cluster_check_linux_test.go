package compose_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The checker of a cluster reads the database and the clones by itself: none of the code
// that wrote them takes part.

// version is a state of a run's row, as the database saw it.
type version struct {
	seq           int64
	at, lease     int64 // milliseconds by the database's clock
	run, loop     string
	n, fence      int64
	state, result string
	holder, node  string
	owed          bool
}

func (c *cluster) query(fn func(*pgx.Conn) error) {
	c.t.Helper()
	ctx := context.WithoutCancel(c.t.Context())
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := fn(conn); err != nil {
		c.t.Fatal(err)
	}
}

// recordHistory makes the database keep every version of every row of a run.
func (c *cluster) recordHistory() {
	c.query(func(conn *pgx.Conn) error {
		_, err := conn.Exec(c.t.Context(), `
CREATE TABLE history (seq BIGSERIAL PRIMARY KEY, at_ms BIGINT, id TEXT, loop_id TEXT, n BIGINT, state TEXT, outcome TEXT, holder TEXT, node_id TEXT, owed BIGINT, fence BIGINT, lease_ms BIGINT);
CREATE FUNCTION keep_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (at_ms, id, loop_id, n, state, outcome, holder, node_id, owed, fence, lease_ms)
  VALUES ((extract(epoch FROM clock_timestamp()) * 1000)::bigint, NEW.id, NEW.loop_id, NEW.n, NEW.state, NEW.outcome, NEW.holder, NEW.node_id, NEW.owed, NEW.fence, NEW.lease_until_ms);
  RETURN NULL;
END $$;
CREATE TRIGGER keep_version AFTER INSERT OR UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION keep_version();`)
		return err
	})
}

// runs is how many runs there were until now; none while the database is away.
func (c *cluster) runs() (n int) {
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close(c.t.Context()) }()
	_ = conn.QueryRow(c.t.Context(), `SELECT count(DISTINCT id) FROM history`).Scan(&n)
	return n
}

func (c *cluster) readHistory() (list []version) {
	c.query(func(conn *pgx.Conn) error {
		rows, err := conn.Query(c.t.Context(), `SELECT seq, at_ms, id, loop_id, n, state, outcome, holder, node_id, owed = 1, fence, lease_ms FROM history ORDER BY seq`)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v version, err error) {
			return v, row.Scan(&v.seq, &v.at, &v.run, &v.loop, &v.n, &v.state, &v.result, &v.holder, &v.node, &v.owed, &v.fence, &v.lease)
		})
		return err
	})
	return list
}

// lifetime is from the claim of a run to its end.
type lifetime struct {
	run        string
	start, end int64
}

// check holds the history, the clones and what is left against what pawl promises.
func (c *cluster) check() {
	t := c.t
	t.Helper()
	history := c.readHistory()
	last := map[string]version{}
	lives := map[string][]lifetime{} // by loop
	started := map[string]int64{}
	var takeovers, longest int64
	for _, v := range history {
		before, seen := last[v.run]
		last[v.run] = v
		live := v.state == "running" || v.state == "settling"
		if _, ok := started[v.run]; live && !ok {
			started[v.run] = v.at
		}
		if v.state == "ended" && (!seen || before.state != "ended") {
			lives[v.loop] = append(lives[v.loop], lifetime{v.run, started[v.run], v.at})
		}
		if !seen {
			continue
		}
		switch {
		case v.fence < before.fence:
			t.Errorf("run %s: fence %d came after %d", v.run, v.fence, before.fence)
		case before.state == "ended" && (v.state != "ended" || v.result != before.result):
			t.Errorf("run %s was %s and became %s %s", v.run, before.result, v.state, v.result)
		case live && v.holder != before.holder && before.holder != "" && v.fence <= before.fence:
			t.Errorf("run %s changed hands without a new fence: %s, then %s", v.run, before.holder, v.holder)
		case v.fence > before.fence && before.holder != "" && hostOf(v.holder) != hostOf(before.holder):
			takeovers++
			if v.at < before.lease {
				t.Errorf("run %s was taken %d ms before its lease was over, from %s by %s", v.run, before.lease-v.at, before.holder, v.holder)
			}
			longest = max(longest, v.at-before.lease)
			if v.node != before.node {
				t.Errorf("run %s of node %s became one of node %s", v.run, before.node, v.node)
			}
		}
	}
	for loop, list := range lives {
		slices.SortFunc(list, func(a, b lifetime) int { return cmp.Compare(a.start, b.start) })
		for i := 1; i < len(list); i++ {
			if list[i].start < list[i-1].end {
				t.Errorf("loop %s: runs %s and %s were live at once, for %d ms", loop, list[i-1].run, list[i].run, list[i-1].end-list[i].start)
			}
		}
	}
	owned := map[string]map[string][]int64{} // node → loop id → numbers
	numbers := map[string][]int64{}
	outcomes := map[string]int{}
	for _, v := range last {
		outcomes[v.result]++
		numbers[v.loop] = append(numbers[v.loop], v.n)
		if owned[v.node] == nil {
			owned[v.node] = map[string][]int64{}
		}
		if v.result != "paused" {
			owned[v.node][v.loop] = append(owned[v.node][v.loop], v.n)
		}
		if v.state != "ended" || v.owed {
			t.Errorf("run %s is %s, owed: %v, when all nodes have recovered", v.run, v.state, v.owed)
		}
	}
	for loop, list := range numbers {
		slices.Sort(list)
		for i, n := range list {
			if n != int64(i)+1 {
				t.Errorf("loop %s has no run #%d", loop, i+1)
				break
			}
		}
	}
	c.checkBeats()
	c.checkRest()
	for _, n := range c.nodes {
		c.checkClone(n, owned)
	}
	t.Logf("%d versions of %d runs, %d takeovers by another host, the last lease over for %d ms at most; %v", len(history), len(last), takeovers, longest, outcomes)
	if len(last) < 3 {
		t.Errorf("only %d runs", len(last))
	}
}

var hostInHolder = regexp.MustCompile(`"host":"([^"]*)"`)

func hostOf(holder string) string {
	m := hostInHolder.FindStringSubmatch(holder)
	if m == nil {
		return ""
	}
	return m[1]
}

// checkBeats holds that no two agents of a loop lived at once, by what they said
// themselves.
func (c *cluster) checkBeats() {
	type span struct {
		run         string
		first, last int64
	}
	spans := map[string]map[string]*span{}
	for line := range strings.Lines(readFile(c.t, c.beats())) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue // Two agents have written at once.
		}
		at, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			continue
		}
		if spans[f[0]] == nil {
			spans[f[0]] = map[string]*span{}
		}
		if s := spans[f[0]][f[1]]; s == nil {
			spans[f[0]][f[1]] = &span{f[1], at, at}
		} else {
			s.first, s.last = min(s.first, at), max(s.last, at)
		}
	}
	for loop, runs := range spans {
		list := slices.SortedFunc(func(yield func(*span) bool) {
			for _, s := range runs {
				if !yield(s) {
					return
				}
			}
		}, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
		for i := 1; i < len(list); i++ {
			if list[i].first < list[i-1].last {
				c.t.Errorf("loop %s: the agents of runs %s and %s lived at once, for %v", loop, list[i-1].run, list[i].run, time.Duration(list[i-1].last-list[i].first))
			}
		}
	}
}

// checkRest holds that nothing is left to do in the database, and that its sums are right.
func (c *cluster) checkRest() {
	c.query(func(conn *pgx.Conn) error {
		for what, query := range map[string]string{
			"changes of files that nobody writes": `SELECT count(*) FROM changes`,
			"claimed steps of ended runs":         `SELECT count(*) FROM steps s JOIN runs r ON r.id = s.run_id WHERE s.state = 'claimed' AND r.state = 'ended'`,
			"open reservations of ended runs":     `SELECT count(*) FROM reservations v JOIN runs r ON r.id = v.run_id WHERE v.settled = 0 AND r.state = 'ended'`,
			"amounts that are still held":         `SELECT count(*) FROM spending WHERE held_tokens + held_output + held_micro_usd + held_wall_ns + held_iterations + held_items <> 0`,
			"iterations without a verdict":        `SELECT count(*) FROM iterations WHERE verdict = 'intended'`,
			"effects that nobody looked at":       `SELECT count(*) FROM effects WHERE state IN ('requested', 'applying')`,
			"runs without an entry in the chain":  `SELECT count(*) FROM runs r WHERE NOT EXISTS (SELECT 1 FROM audit a WHERE a.run_id = r.id AND a.kind = 'run')`,
			"runs with two entries in the chain":  `SELECT count(*) FROM (SELECT run_id FROM audit WHERE kind = 'run' GROUP BY run_id HAVING count(*) > 1) x`,
		} {
			var n int
			if err := conn.QueryRow(c.t.Context(), query).Scan(&n); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if n > 0 {
				c.t.Errorf("%d %s", n, what)
			}
		}
		return nil
	})
}

var logLine = regexp.MustCompile(`run#(\d+) `)

// checkClone holds that the files of a clone tell of exactly the runs of its node, and
// that nothing is left in its home.
func (c *cluster) checkClone(n *clusterNode, owned map[string]map[string][]int64) {
	t := c.t
	var node string
	loops := map[string]string{}
	c.query(func(conn *pgx.Conn) error {
		if err := conn.QueryRow(t.Context(), `SELECT node_id FROM placements WHERE path = $1`, n.root).Scan(&node); err != nil {
			return err
		}
		rows, err := conn.Query(t.Context(), `SELECT name, id FROM loops`)
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
			var name, id string
			err := row.Scan(&name, &id)
			loops[name] = id
			return struct{}{}, err
		})
		return err
	})
	for name, id := range loops {
		want := owned[node][id]
		slices.Sort(want)
		text, err := os.ReadFile(filepath.Join(n.root, ".loops", name, "run-log.md"))
		if err != nil && (len(want) > 0 || !os.IsNotExist(err)) {
			t.Errorf("%s: %v", n.name, err)
		}
		var got []int64
		for _, m := range logLine.FindAllStringSubmatch(string(text), -1) {
			run, _ := strconv.ParseInt(m[1], 10, 64)
			got = append(got, run)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the log of %s on %s has runs %v, its node had %v", name, n.name, got, want)
		}
	}
	for _, pattern := range []string{"trees/run_*", "trees/.run_*", "runs/*"} {
		if left, _ := filepath.Glob(filepath.Join(n.home, pattern)); len(left) > 0 {
			t.Errorf("left behind on %s: %v", n.name, left)
		}
	}
	for name := range loops {
		if err := n.reader().Audit.VerifyChain(context.WithoutCancel(t.Context()), name); err != nil {
			t.Errorf("audit of %s on %s: %v", name, n.name, err)
		}
	}
}
