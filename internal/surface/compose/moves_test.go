package compose_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// move is one movement of a branch, from its reflog.
type move struct {
	branch, to string
	run        string // by whom; empty: not by a run of pawl
	fence      int64
	from, till time.Time // when: a reflog knows the second
}

// claim is what a run's row became at a time: who may act for it from then on.
type claim struct {
	run   string
	fence int64
	live  bool
	at    time.Time
}

func (c claim) String() string {
	return fmt.Sprintf("%s fence %d live %v at %s", c.run, c.fence, c.live, c.at.Format(time.StampMilli))
}

// clockGrain is how far the time of a file may lie behind that of a row, which is a
// whole number of milliseconds, cut and not rounded.
const clockGrain = 20 * time.Millisecond

// lawless says what is wrong with movements of branches: each has to be one
// effect that is recorded as done, and the fence by which it was made has to have
// been the run's live one at that moment.
func lawless(moves []move, claims []claim, done []loop.Effect) (wrong []string) {
	for _, m := range moves {
		say := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("%s was moved to %.12s ", m.branch, m.to)+fmt.Sprintf(format, args...))
		}
		if m.run == "" {
			say("by no run")
			continue
		}
		recorded, pushed := 0, 0
		for _, e := range done {
			switch {
			case e.RunID != m.run || e.Result[effect.ResultCommit] != m.to || movesBranch(e) != m.branch:
			case e.Kind == effect.KindMemoryPush: // It only moves the branch here if it has to, which may be all that it does.
				pushed++
			case e.State != loop.EffectDone:
			default:
				recorded++
			}
		}
		if recorded > 1 || recorded+pushed == 0 {
			say("by %s, which has %d effects for it", m.run, recorded)
		}
		if !slices.ContainsFunc(liveTimes(claims, m.run, m.fence), func(span [2]time.Time) bool {
			return !m.till.Add(clockGrain).Before(span[0]) && (span[1].IsZero() || !m.from.Truncate(time.Millisecond).After(span[1]))
		}) {
			say("by fence %d of %s between %s and %s, when it was not the live one: %v", m.fence, m.run,
				m.from.Format(time.StampMilli), m.till.Format(time.StampMilli), claims)
		}
	}
	return wrong
}

// liveTimes are the spans of time in which the fence was the live one of the run;
// the end of one that still is, is zero.
func liveTimes(claims []claim, run string, fence int64) (spans [][2]time.Time) {
	open := false
	for _, c := range claims {
		if c.run != run {
			continue
		}
		switch is := c.live && c.fence == fence; {
		case is && !open:
			spans = append(spans, [2]time.Time{c.at})
			open = true
		case !is && open:
			spans[len(spans)-1][1] = c.at
			open = false
		}
	}
	return spans
}

// movesBranch is the branch that an effect moves.
func movesBranch(e loop.Effect) string {
	switch e.Kind {
	case effect.KindPropose:
		return e.Args[effect.ArgBranch]
	case effect.KindLand, effect.KindMemoryCommit, effect.KindMemoryPull, effect.KindMemoryPush:
		return e.Args[effect.ArgBase]
	}
	return ""
}

func TestAMovementWithoutALiveFenceOrARecordIsFound(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(1_700_000_000_000 + ms) }
	claims := []claim{{"r", 1, true, at(0)}, {"r", 2, true, at(5000)}, {"other", 1, true, at(5500)}, {"r", 2, false, at(9000)}}
	land := loop.Effect{
		RunID: "r", Kind: effect.KindLand, State: loop.EffectDone,
		Args: map[string]string{effect.ArgBase: "main"}, Result: map[string]string{effect.ResultCommit: "c"},
	}
	failed, twice := land, land
	failed.State = loop.EffectFailed
	by := func(fence, ms int64) move { return move{"main", "c", "r", fence, at(ms), at(ms)} }
	for name, c := range map[string]struct {
		move move
		done []loop.Effect
		want string
	}{
		"by the first holder":                   {by(1, 1000), []loop.Effect{land}, ""},
		"by the second":                         {by(2, 6000), []loop.Effect{land}, ""},
		"in the second in which it was taken":   {move{"main", "c", "r", 1, at(4500), at(5499)}, []loop.Effect{land}, ""},
		"by who has lost it":                    {by(1, 5001), []loop.Effect{land}, "by fence 1"},
		"in a second after it was taken":        {move{"main", "c", "r", 1, at(6000), at(6999)}, []loop.Effect{land}, "by fence 1"},
		"in the millisecond of its end":         {move{"main", "c", "r", 2, at(9000).Add(900 * time.Microsecond), at(9001)}, []loop.Effect{land}, ""},
		"after the run has ended":               {by(2, 9001), []loop.Effect{land}, "by fence 2"},
		"before it had the run":                 {by(2, 4000), []loop.Effect{land}, "by fence 2"},
		"by a fence that never was":             {by(3, 6000), []loop.Effect{land}, "by fence 3"},
		"by nobody":                             {move{branch: "main", to: "c", from: at(1), till: at(1)}, nil, "by no run"},
		"and the effect is recorded as failed":  {by(1, 1000), []loop.Effect{failed}, "which has 0 effects"},
		"and two effects say that they did it":  {by(1, 1000), []loop.Effect{land, twice}, "which has 2 effects"},
		"to another commit than what is stored": {move{"main", "d", "r", 1, at(1), at(1)}, []loop.Effect{land}, "which has 0 effects"},
	} {
		wrong := strings.Join(lawless([]move{c.move}, claims, c.done), "; ")
		if (wrong == "") != (c.want == "") || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", name, wrong, c.want)
		}
	}
}

// checkMoves holds every movement of a branch of the fixture against the rows.
func (s *fixture) checkMoves() {
	s.t.Helper()
	moves := s.moves()
	claims := s.claims()
	var done []loop.Effect
	db := s.openStore()
	defer func() { _ = db.Close() }()
	err := db.View(s.t.Context(), func(r *store.Reader) error {
		for _, m := range moves {
			if m.run == "" || slices.ContainsFunc(done, func(e loop.Effect) bool { return e.RunID == m.run }) {
				continue
			}
			effects, err := r.Effects(s.t.Context(), m.run)
			if err != nil {
				return err
			}
			done = append(done, effects...)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, wrong := range lawless(moves, claims, done) {
		s.t.Error(wrong)
	}
}

var byRun = regexp.MustCompile(`^pawl: (run_\w+) fence (\d+)$`)

// moves reads the reflogs of all branches. Commits are the test's own: pawl never
// runs git commit.
func (s *fixture) moves() (moves []move) {
	s.t.Helper()
	logs := filepath.Join(s.root, ".git", "logs", "refs", "heads")
	err := filepath.WalkDir(logs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		branch, err := filepath.Rel(logs, path)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(readFile(s.t, path)), "\n")
		for i, line := range lines {
			head, why, _ := strings.Cut(line, "\t")
			if strings.HasPrefix(why, "commit") || strings.HasPrefix(why, "reset") {
				continue
			}
			f := strings.Fields(head)
			second, err := strconv.ParseInt(f[len(f)-2], 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %q: %w", path, line, err)
			}
			m := move{branch: branch, to: f[1], from: time.Unix(second, 0)}
			m.till = m.from.Add(time.Second - 1)
			if i == len(lines)-1 && info.ModTime().Unix() == second && !s.collected { // gc writes it anew.
				m.from, m.till = info.ModTime(), info.ModTime()
			}
			if who := byRun.FindStringSubmatch(why); who != nil {
				m.run = who[1]
				m.fence, _ = strconv.ParseInt(who[2], 10, 64)
			}
			moves = append(moves, m)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return moves
}

// The rows of runs tell who holds a run, and not who held it when. A trigger
// notes that, by a clock that no test sets.
const (
	notesSQLite = `
CREATE TABLE test_claims (run_id TEXT, fence INTEGER, live INTEGER, at_ms INTEGER);
CREATE TRIGGER test_claims_new AFTER INSERT ON runs BEGIN
  INSERT INTO test_claims VALUES (new.id, new.fence, new.state IN ('running', 'settling'), CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER test_claims_changed AFTER UPDATE OF fence, state ON runs BEGIN
  INSERT INTO test_claims VALUES (new.id, new.fence, new.state IN ('running', 'settling'), CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;`
	notesPostgres = `
CREATE TABLE IF NOT EXISTS test_claims (n BIGSERIAL, run_id TEXT, fence BIGINT, live INTEGER, at_ms BIGINT);
CREATE OR REPLACE FUNCTION test_note_claim() RETURNS trigger AS $$ BEGIN
  INSERT INTO test_claims (run_id, fence, live, at_ms)
  VALUES (new.id, new.fence, (new.state IN ('running', 'settling'))::int, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  RETURN new;
END $$ LANGUAGE plpgsql;
CREATE OR REPLACE TRIGGER test_claims_changed AFTER INSERT OR UPDATE OF fence, state ON runs FOR EACH ROW EXECUTE FUNCTION test_note_claim();`
)

// noteClaims begins to note who holds a run when.
func (s *fixture) noteClaims() {
	s.t.Helper()
	s.inStore(func(ctx context.Context, tx *store.Tx) error {
		if pg := tx.Postgres(); pg != nil {
			_, err := pg.Exec(ctx, notesPostgres)
			return err
		}
		_, err := tx.SQLite().ExecContext(ctx, notesSQLite)
		return err
	})
}

func (s *fixture) claims() (list []claim) {
	s.t.Helper()
	type rows interface {
		Next() bool
		Scan(...any) error
		Err() error
	}
	read := func(r rows) error {
		for r.Next() {
			var c claim
			var ms int64
			var live int
			if err := r.Scan(&c.run, &c.fence, &live, &ms); err != nil {
				return err
			}
			c.live, c.at = live == 1, time.UnixMilli(ms)
			list = append(list, c)
		}
		return r.Err()
	}
	s.inStore(func(ctx context.Context, tx *store.Tx) error {
		list = nil
		if pg := tx.Postgres(); pg != nil {
			r, err := pg.Query(ctx, `SELECT run_id, fence, live, at_ms FROM test_claims ORDER BY n`)
			if err != nil {
				return err
			}
			defer r.Close()
			return read(r)
		}
		r, err := tx.SQLite().QueryContext(ctx, `SELECT run_id, fence, live, at_ms FROM test_claims ORDER BY rowid`)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		return errors.Join(read(r), r.Err())
	})
	return list
}

// inStore runs fn in a transaction of the fixture's store.
func (s *fixture) inStore(fn func(context.Context, *store.Tx) error) {
	s.t.Helper()
	db := s.openStore()
	defer func() { _ = db.Close() }()
	if err := db.Update(s.t.Context(), func(tx *store.Tx) error { return fn(s.t.Context(), tx) }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) openStore() *store.Store {
	s.t.Helper()
	where := s.database
	if where == "" {
		where = filepath.Join(s.home, "pawl.db")
	}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	db, err := store.Open(s.t.Context(), store.Options{Database: where, Now: clock.System{}.Now})
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}
