package bench

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// runsEnv is how many runs BenchmarkMillion makes instead of a million.
const runsEnv = "PAWL_BENCH_RUNS"

// BenchmarkMillion makes a store with a million runs, whose rows are those of one real run
// again and again (a transcript for each tenth), copies it to PostgreSQL and reads from the copy as people do.
func BenchmarkMillion(b *testing.B) {
	count := 1_000_000
	if n, err := strconv.Atoi(os.Getenv(runsEnv)); err == nil {
		count = n
	}
	const loops = 1000
	s := newFixture(b, 5, "")
	for i := range loops {
		s.loop(fmt.Sprintf("l%04d", i), "L2", writes)
	}
	_, err := s.svc.Loops.Register(b.Context())
	s.must(err)
	s.proposes("l0000")
	var rows []row
	defer func() { report(b, "million", rows) }() // Also of one that fails on its way.
	file := filepath.Join(s.home, "pawl.db")
	one := fileSize(b, file)
	rows = append(rows, row{fmt.Sprintf("make %d runs of %d loops", count, loops), seconds(timed(func() { s.multiply(count, loops) })), "", "", ""})
	s.must(s.d.Close())
	s.d, err = compose.New(b.Context(), compose.Options{Settings: s.settings(""), Environ: os.Environ(), Log: compose.Log(nil), ReadOnly: true})
	s.must(err)
	size := fileSize(b, file) - one
	rows = append(rows, row{"bytes a run, SQLite", fmt.Sprint(size / int64(count)), "", fmt.Sprintf("%d MB", size>>20), ""})
	rows = append(rows, s.look("SQLite", "")...)
	url := pgtest.URL(b)
	o := compose.Options{Settings: s.settings("")}
	var c store.Copied
	runtime.GC()
	highest := watchMemory(b)
	took := timed(func() {
		c, err = compose.CopyStore(b.Context(), o, url, func(string) {})
	})
	s.must(err)
	rows = append(rows, row{
		"copy to PostgreSQL", seconds(took), "", fmt.Sprintf("%d runs, %d rows/s; heads of %d chains equal", c.Runs, int(float64(c.Rows)/took.Seconds()), c.Chains),
		fmt.Sprintf("at most %d MB more", highest()),
	})
	rows = append(rows, row{"bytes a run, PostgreSQL", fmt.Sprint(postgresSize(b, url) / int64(count)), "", "", ""})
	rows = append(rows, s.look("PostgreSQL", url)...)
	back := filepath.Join(b.TempDir(), "back.db")
	o.Settings = s.settings(url)
	highest = watchMemory(b)
	took = timed(func() { c, err = compose.Backup(b.Context(), o, back, func(string) {}) })
	s.must(err)
	rows = append(rows, row{"back up to a file", seconds(took), "", fmt.Sprintf("%d rows/s", int(float64(c.Rows)/took.Seconds())), fmt.Sprintf("at most %d MB more", highest())})
	s.must(os.Remove(back))
	took = timed(func() {
		t, err := compose.Prune(b.Context(), compose.Options{Settings: s.settings("")}, 0)
		s.must(err)
		rows = append(rows, row{"compress all transcripts, SQLite", "", "", fmt.Sprintf("%d MB of text to %d MB; the file is %d MB smaller", t.Before>>20, t.After>>20, t.Freed>>20), ""})
	})
	rows[len(rows)-1].value = seconds(took)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (s *fixture) settings(database string) config.Settings {
	s.b.Helper()
	settings, err := config.Load(config.Settings{Home: s.home, Database: database}, nil)
	s.must(err)
	return settings
}

func fileSize(b *testing.B, path string) int64 {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

func postgresSize(b *testing.B, url string) (n int64) {
	b.Helper()
	s, err := store.Open(b.Context(), store.Options{Database: url, ReadOnly: true, Now: clock.System{}.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.PostgresPool().QueryRow(b.Context(), `SELECT pg_database_size(current_database())`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// watchMemory returns a function that says by how many MB the process was larger, at most,
// than when it was called.
func watchMemory(b *testing.B) func() int64 {
	b.Helper()
	runtime.GC()
	start, highest := residentMB(), int64(0)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				highest = max(highest, int64(residentMB()-start))
			}
		}
	}()
	return func() int64 {
		close(done)
		<-stopped
		return highest
	}
}

// look measures what people read, each several times: the median. The verbs are made anew, as
// a command does.
func (s *fixture) look(name, url string) (rows []row) {
	s.b.Helper()
	d, err := compose.New(s.b.Context(), compose.Options{Settings: s.settings(url), Environ: os.Environ(), Log: compose.Log(nil), ReadOnly: true})
	s.must(err)
	defer func() { s.must(d.Close()) }()
	for verb, read := range map[string]func(v *api.Workspace) error{
		"ls":               func(v *api.Workspace) error { _, err := v.Loops.List(s.b.Context()); return err },
		"runs":             func(v *api.Workspace) error { _, err := v.Runs.List(s.b.Context(), "", 20); return err },
		"runs of one loop": func(v *api.Workspace) error { _, err := v.Runs.List(s.b.Context(), "l0007", 20); return err },
		"why":              func(v *api.Workspace) error { _, err := v.Runs.Why(s.b.Context(), "l0007"); return err },
	} {
		var all []time.Duration
		for range 9 {
			all = append(all, timed(func() {
				v, err := d.Verbs(s.b.Context(), s.root)
				s.must(err)
				s.must(read(v))
			}))
		}
		slices.Sort(all)
		rows = append(rows, row{"pawl " + verb + ", " + name, millis(all[len(all)/2]), "< 200 ms", "slowest " + millis(all[len(all)-1]), ""})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.measure, b.measure) })
	return rows
}

// multiply makes runs whose rows are those of the only run, and one planned time of each,
// spread over the loops. The audit chains are whole.
func (s *fixture) multiply(count, loops int) {
	s.b.Helper()
	db := s.d.Store().SQLiteWriter()
	ctx := s.b.Context()
	type table struct {
		name    string
		columns []string
		rows    [][]any
	}
	read := func(name, where string) table {
		rows, err := db.QueryContext(ctx, "SELECT * FROM "+name+" WHERE "+where)
		s.must(err)
		defer rows.Close()
		t := table{name: name}
		t.columns, err = rows.Columns()
		s.must(err)
		for rows.Next() {
			values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
			for i := range values {
				into[i] = &values[i]
			}
			s.must(rows.Scan(into...))
			t.rows = append(t.rows, values)
		}
		s.must(rows.Err())
		return t
	}
	var run, digest string
	s.must(db.QueryRowContext(ctx, `SELECT id, definition FROM runs`).Scan(&run, &digest))
	tables := []table{read("runs", "true"), read("iterations", "true"), read("turns", "true"), read("effects", "true"), read("events", "true"), read("reservations", "true")}
	links := read("audit", "run_id = '"+run+"'")
	var ids []string
	for i := range loops {
		var id string
		s.must(db.QueryRowContext(ctx, `SELECT id FROM loops WHERE name = ?`, fmt.Sprintf("l%04d", i)).Scan(&id))
		ids = append(ids, id)
	}
	type head struct {
		n    int64
		hash string
	}
	heads := map[string]head{}
	for _, id := range ids {
		var h head
		if err := db.QueryRowContext(ctx, `SELECT links, head FROM chains WHERE id = ?`, id).Scan(&h.n, &h.hash); err != nil && err != sql.ErrNoRows {
			s.must(err)
		}
		heads[id] = h
	}
	numbers := map[string]int64{ids[0]: 1}
	begin := time.Now().Add(-time.Duration(count) * time.Second).UnixMilli()
	const batch = 2000
	for from := 0; from < count; from += batch {
		tx, err := db.BeginTx(ctx, nil)
		s.must(err)
		inserts := map[string]*sql.Stmt{}
		insert := func(name string, columns []string, values []any) {
			if inserts[name] == nil {
				inserts[name], err = tx.PrepareContext(ctx, "INSERT INTO "+name+" ("+strings.Join(columns, ", ")+") VALUES ("+strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ")+")") //nolint:sqlclosecheck // The transaction closes it.
				s.must(err)
			}
			_, err := inserts[name].ExecContext(ctx, values...)
			s.must(err)
		}
		for i := from; i < min(from+batch, count); i++ {
			id, loopID, at := fmt.Sprintf("run_m%026d", i), ids[i%loops], begin+int64(i)*1000
			numbers[loopID]++
			for _, t := range tables {
				if t.name == "events" && i%10 > 0 { // The transcripts of the others would fill the disk.
					continue
				}
				for _, r := range t.rows {
					values := slices.Clone(r)
					for j, c := range t.columns {
						switch {
						case c == "run_id", t.name == "runs" && c == "id":
							values[j] = id
						case c == "effect_key", c == "run_key":
							values[j] = fmt.Sprintf("%v-%d", values[j], i)
						case c == "loop_id":
							values[j] = loopID
						case t.name == "runs" && c == "n":
							values[j] = numbers[loopID]
						case t.name == "runs" && c == "seq":
							values[j] = int64(i) + 10
						case t.name == "runs" && (c == "created_ms" || c == "started_ms" || c == "ended_ms"):
							values[j] = at
						}
					}
					insert(t.name, t.columns, values)
				}
			}
			insert("ticks", []string{"loop_id", "first_ms", "last_ms", "n", "verdict", "run_id", "at_ms"}, []any{loopID, at, at, 1, "ran", id, at})
			h := heads[loopID]
			for _, r := range links.rows {
				l := map[string]any{}
				for j, c := range links.columns {
					l[c] = r[j]
				}
				h.n++
				body := strings.ReplaceAll(fmt.Sprint(l["body"]), run, id)
				text, err := json.Marshal([]any{loopID, h.n, at, l["kind"], id, body, h.hash})
				s.must(err)
				sum := sha256.Sum256(text)
				hash := hex.EncodeToString(sum[:])
				insert("audit", []string{"chain", "seq", "at_ms", "kind", "run_id", "body", "prev", "hash"}, []any{loopID, h.n, at, l["kind"], id, body, h.hash, hash})
				h.hash = hash
			}
			heads[loopID] = h
		}
		s.must(tx.Commit())
	}
	tx, err := db.BeginTx(ctx, nil)
	s.must(err)
	for id, h := range heads {
		_, err := tx.ExecContext(ctx, `INSERT INTO chains (id, links, head) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET links = excluded.links, head = excluded.head`, id, h.n, h.hash)
		s.must(err)
		_, err = tx.ExecContext(ctx, `UPDATE loops SET last_n = ?, definition = ?, numbered = 1 WHERE id = ?`, numbers[id], digest, id)
		s.must(err)
	}
	s.must(tx.Commit())
}
