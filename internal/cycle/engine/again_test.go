package engine_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// takeBack lets PostgreSQL take back every transaction once that writes, as the
// victim of another, at the very end of it. A sequence remembers that, because it
// is never taken back itself.
const takeBack = `
CREATE SEQUENCE tries;
CREATE FUNCTION take_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF coalesce(current_setting('pawl.again', true), '') = '' THEN
		IF nextval('tries') % 2 = 1 THEN
			RAISE EXCEPTION 'taken back once' USING ERRCODE = '40001';
		END IF;
		PERFORM set_config('pawl.again', 'yes', true);
	END IF;
	RETURN NULL;
END $$;
DO $$
DECLARE name text;
BEGIN
	FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
		EXECUTE format('CREATE CONSTRAINT TRIGGER again AFTER INSERT OR UPDATE OR DELETE ON %I
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION take_back()', name);
	END LOOP;
END $$`

// takesBack begins every transaction of the rig anew from now on, and returns how
// many were.
func (r *rig) takesBack() (taken func() int) {
	r.t.Helper()
	r.postgres(func(tx pgx.Tx) error {
		_, err := tx.Exec(r.t.Context(), takeBack, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	return func() (n int) {
		r.t.Helper()
		r.postgres(func(tx pgx.Tx) error { return tx.QueryRow(r.t.Context(), `SELECT last_value FROM tries`).Scan(&n) })
		return n / 2
	}
}

func (r *rig) postgres(fn func(pgx.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return fn(tx.Postgres()) }); err != nil {
		r.t.Fatal(err)
	}
}

// byTheClock is what the database's own clock says, and what the machine's clock
// measured.
var byTheClock = regexp.MustCompile(`\\?"(lease_until_ms|answered_ms|gates_us|took)\\?": ?\d+`)

// rows are all rows of the store, of every one of its tables.
func (r *rig) rows() string {
	r.t.Helper()
	var b strings.Builder
	r.postgres(func(tx pgx.Tx) error {
		found, err := tx.Query(r.t.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'goose%' ORDER BY 1`)
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(found, pgx.RowTo[string])
		for _, table := range tables {
			row := `to_jsonb(t)`
			if table == "feed" || table == "runs" { // A try that is taken back uses numbers up.
				row += ` - 'xact' - 'seq'`
			}
			found, err := tx.Query(r.t.Context(), `SELECT (`+row+`)::text FROM `+table+` t ORDER BY 1`)
			if err != nil {
				return err
			}
			rows, err := pgx.CollectRows(found, pgx.RowTo[string])
			if err != nil {
				return err
			}
			for _, row := range rows {
				b.WriteString(table + " " + row + "\n")
			}
		}
		return err
	})
	return r.plain(b.String())
}

// plain is a text without what differs between two rigs that did the same.
func (r *rig) plain(text string) string {
	text = strings.NewReplacer(r.root, "ROOT", r.home, "HOME").Replace(text)
	return byTheClock.ReplaceAllString(text, "$1")
}

// files are those of the workspace and of pawl's home, with what is in them, and
// the refs. Copies that are kept for the next run have names by chance.
func (r *rig) files() string {
	r.t.Helper()
	var b strings.Builder
	for _, dir := range []string{r.root, r.home} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "layers" || d.Name() == "toolsets") {
				return fs.SkipDir
			}
			if d.IsDir() {
				return nil
			}
			data, err := os.ReadFile(name)
			fmt.Fprintf(&b, "%s: %s\n", name, data)
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return r.plain(b.String()) + gittest.Run(r.t, r.root, "for-each-ref", "--format=%(refname) %(objectname)")
}

// scribe is a board that writes a line about everything that becomes of its tasks,
// and repairs its memory whenever it is opened.
type scribe struct{ boardLike }

func (p scribe) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &scribeSession{boardSession{p.boardLike, v}}, nil
}

type scribeSession struct{ boardSession }

func (s *scribeSession) line(what string) []loop.Change {
	return []loop.Change{{Kind: loop.ChangeAppend, Path: ".loops/" + s.v.Loop.Name + "/log.md", Content: fmt.Sprintf("#%d %s", s.v.Run.N, what)}}
}

func (s *scribeSession) Recovered() []engine.Repair {
	return []engine.Repair{{Changes: s.line("repaired"), Note: "nothing was wrong"}}
}

func (s *scribeSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	_, brief, err := s.boardSession.Begin(ch)
	return s.line("begins " + ch.Step.Title), brief, err
}

func (s *scribeSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	_, effects := s.boardSession.Record(r)
	step := r.Settlement.Step
	return append(s.line(string(r.Iteration.Verdict)), loop.Change{Kind: loop.ChangeStep, Step: &step}), effects
}

func (s *scribeSession) Close(sum engine.Summary) []loop.Change {
	return s.line(string(sum.Run.Outcome))
}

// On PostgreSQL a transaction may be begun anew, and what a run leaves behind must
// be what it leaves behind where none is.
func TestARunWhoseEveryTransactionIsBegunAnewLeavesTheSameBehind(t *testing.T) {
	t.Setenv("GIT_AUTHOR_DATE", "2026-09-03T12:00:00Z")
	t.Setenv("GIT_COMMITTER_DATE", "2026-09-03T12:00:00Z")
	began := time.Now().Truncate(time.Second)
	began = began.Add(pastMidnight(began))
	var rows, files [2]string
	var order []string
	var model http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { model.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	for i, name := range []string{"at once", "begun anew"} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRigAt(t, databases["postgres"](t), fakemodel.Script{}, func() time.Time { return began })
			p.number = 0 // The same ids in both.
			p.budget(all, loop.WindowDay, loop.Amount{Tokens: 2_000_000, Iterations: 40})
			p.url, model = server.URL, http.HandlerFunc(p.answer) // An address is a part of the definition.
			taken := func() int { return 0 }
			if i == 1 {
				taken = p.takesBack()
			}
			order = append(order, p.lives()...)
			if n := taken(); i == 1 && n < 40 {
				t.Errorf("%d transactions were taken back, want all of them", n)
			}
			rows[i], files[i] = p.rows(), p.files()
			if err := store.VerifyChain(p.chain("lp_w")); err != nil {
				t.Error(err)
			}
		})
	}
	for _, o := range []loop.Outcome{loop.OutcomeWaiting, loop.OutcomeProposed, loop.OutcomeLanded, loop.OutcomeFailed, loop.OutcomeInterrupted} {
		if !strings.Contains(strings.Join(order, "\n"), " "+string(o)+" ") {
			t.Errorf("no run ended %s: %q", o, order)
		}
	}
	if d := cmp.Diff(order[:len(order)/2], order[len(order)/2:]); d != "" {
		t.Errorf("what became of the runs (-at once +begun anew):\n%s", d)
	}
	if d := cmp.Diff(strings.Split(rows[0], "\n"), strings.Split(rows[1], "\n")); d != "" {
		t.Errorf("rows (-at once +begun anew):\n%s", d)
	}
	if d := cmp.Diff(strings.Split(files[0], "\n"), strings.Split(files[1], "\n")); d != "" {
		t.Errorf("files (-at once +begun anew):\n%s", d)
	}
}

// lives takes a loop through most of what can become of one: work that fails and
// is tried again and needs more money than was thought, a question and its answer,
// a proposal and its landing, and a process that dies.
func (p *meteredRig) lives() (outcomes []string) {
	p.t.Helper()
	p.writes.Store(1000)
	target := p.calls("w", func(d *loop.Definition) {
		d.Verify, d.MaxIterations, d.Resume = "grep -q three src/a.txt", 3, false
	})
	target.Protocol = scribe{boardLike{nil, []string{"the task"}}}
	say := func(run loop.Run) loop.Run {
		outcomes = append(outcomes, fmt.Sprintf("#%d %s %s %s", run.N, run.Outcome, run.Reason, run.Detail))
		return run
	}
	turn := 0
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		turn++
		for range 20 {
			ask(ctx, p.t, r, 1000)
		}
		text := fmt.Sprintf("three in turn %d\n", turn)
		if turn == 1 {
			text = "two\n"
		}
		gittest.WriteFile(p.t, r.Dir+"/src/a.txt", text)
		res, err := ended(nil)
		if turn == 2 {
			res.Asks = []agent.Ask{{Argv: []string{"/bin/true"}, Why: "it has to be"}}
		}
		return res, err
	}
	asked := say(p.run(target, engine.Firing{}))
	if asked.Approval == "" {
		p.t.Fatalf("run = %s %s %q, want a question", asked.Outcome, asked.Reason, asked.Detail)
	}
	say(p.run(target, engine.Yes(asked.Approval, loop.Answer{By: "ada"})))
	target.Protocol = scribe{boardLike{nil, []string{"another task"}}}
	proposed := say(p.run(target, engine.Firing{}))
	if proposed.Approval == "" {
		p.t.Fatalf("run = %s %s %q, want a proposal", proposed.Outcome, proposed.Reason, proposed.Detail)
	}
	say(p.run(target, engine.Yes(proposed.Approval, loop.Answer{By: "ada"})))
	for _, at := range []string{"engine.gather.before=EIO", "engine.conclude.commit.before=EIO", "engine.effect.apply.before=EIO"} {
		target.Protocol = scribe{boardLike{nil, []string{"the task, " + at}}}
		broken, err := fault.Parse(at)
		if err != nil {
			p.t.Fatal(err)
		}
		run, err := p.engine.Run(fault.With(p.t.Context(), broken), target, engine.Firing{Trigger: "manual"})
		say(run)
		rec, recErr := p.engine.Recover(p.t.Context(), target)
		if recErr != nil {
			p.t.Fatal(err, recErr)
		}
		if rec != nil {
			say(rec.Run)
		}
	}
	return slices.Clip(outcomes)
}

// What a transaction did not write is not written into files either.
func TestAnIterationThatNobodyPaysForLeavesNoLineInTheMemory(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: 1})
		target := p.calls("w", nil)
		target.Protocol = scribe{boardLike{nil, []string{"the task"}}}
		if run := p.run(target, engine.Firing{}); run.Outcome != loop.OutcomeBudget {
			t.Fatalf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
		}
		if got, want := read(t, filepath.Join(p.root, ".loops/w/log.md")), "#1 repaired\n#1 budget\n"; got != want {
			t.Errorf("log.md = %q, want %q", got, want)
		}
	})
}
