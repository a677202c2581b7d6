package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// keysOf are protocol:name of loops, in their order.
func keysOf(loops []loop.Loop) (keys []string) {
	for _, l := range loops {
		keys = append(keys, l.Protocol+":"+l.Name)
	}
	return keys
}

func idsOf(runs []loop.Run) (ids []string) {
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func addLoop(t *testing.T, s *store.Store, workspace, protocol, name string) loop.Loop {
	t.Helper()
	l := loop.Loop{ID: "lp_" + workspace + protocol + name, WorkspaceID: workspace, Name: name, Protocol: protocol}
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return tx.AddLoop(ctx, loop.Workspace{ID: workspace, Root: "/" + workspace}, l)
	})
	return l
}

// fireAt fires a run of a loop of any workspace.
func fireAt(t *testing.T, s *store.Store, l loop.Loop, by loop.Holder) (run loop.Run) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		if l, err = tx.Number(ctx, l.WorkspaceID, l.Protocol, l.Name); err != nil {
			return err
		}
		id := fmt.Sprintf("run_%s_%s_%d", l.WorkspaceID, l.Name, l.LastN)
		run = loop.Run{ID: id, LoopID: l.ID, N: l.LastN, Key: id, Trigger: "manual", Definition: "d"}
		if by == (loop.Holder{}) {
			run, err = tx.Fire(ctx, run)
		} else {
			run, err = tx.FireClaimed(ctx, run, by)
		}
		return err
	})
	return run
}

func TestLoopsAreListedInPagesByTheBytesOfTheirNames(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		// By a language's rules a comes before B, and é before z.
		for _, name := range []string{"b", "B", "a-b", "ab", "é", "z"} {
			addLoop(t, s, "ws", loop.ProtocolSpine, name)
		}
		addLoop(t, s, "ws", loop.ProtocolSpec, "ab")
		addLoop(t, s, "far", loop.ProtocolSpine, "c")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Forget(ctx, loop.Actor{Who: "ann"}, "lp_wsspineb")
		})
		want := []string{"spine:B", "spine:a-b", "spec:ab", "spine:ab", "spine:b", "spine:z", "spine:é"}
		for size := 1; size <= len(want)+1; size++ {
			var got []string
			var last loop.Loop
			for {
				page := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) {
					return r.LoopsAfter(ctx, "ws", last.Name, last.Protocol, size)
				})
				if len(page) == 0 {
					break
				}
				got, last = append(got, keysOf(page)...), page[len(page)-1]
			}
			if !slices.Equal(got, want) {
				t.Errorf("in pages of %d: %q, want %q", size, got, want)
			}
		}
	})
}

func TestLoopsOfManyNamesAreFoundWhateverTheirProtocol(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		addLoop(t, s, "ws", loop.ProtocolSpine, "ci")
		addLoop(t, s, "ws", loop.ProtocolSpec, "ci")
		addLoop(t, s, "ws", loop.ProtocolSpine, "last")
		addLoop(t, s, "far", loop.ProtocolSpine, "ci")
		many := []string{"ci", "\xff", "a\x00b"}
		for i := range 2000 {
			many = append(many, fmt.Sprintf("none-%d", i))
		}
		for name, c := range map[string]struct{ names, want []string }{
			"one":          {[]string{"ci"}, []string{"spec:ci", "spine:ci"}},
			"of thousands": {append(many, "last"), []string{"spec:ci", "spine:ci", "spine:last"}},
			"unknown":      {[]string{"CI"}, nil},
			"none":         {nil, nil},
		} {
			got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) {
				return r.LoopsNamed(ctx, "ws", c.names...)
			})
			if !slices.Equal(keysOf(got), c.want) {
				t.Errorf("%s: %q, want %q", name, keysOf(got), c.want)
			}
		}
	})
}

func TestRunsOfAWorkspaceAreListedInTheOrderOfTheirFiring(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		a, b, far := addLoop(t, s, "ws", loop.ProtocolSpine, "a"), addLoop(t, s, "ws", loop.ProtocolSpine, "b"), addLoop(t, s, "far", loop.ProtocolSpine, "a")
		var want []string
		for i, l := range []loop.Loop{b, a, far, b, b, a} {
			clock.set(noon.Add(-time.Duration(i) * time.Hour)) // The clock goes back.
			if run := fireAt(t, s, l, loop.Holder{}); l.WorkspaceID == "ws" {
				want = append([]string{run.ID}, want...)
			}
		}
		for size := 1; size <= len(want)+1; size++ {
			var got []string
			var before int64
			for {
				page := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) {
					return r.WorkspaceRuns(ctx, "ws", before, size)
				})
				if len(page) == 0 {
					break
				}
				if len(page) > size {
					t.Fatalf("a page of %d has %d", size, len(page))
				}
				got, before = append(got, idsOf(page)...), page[len(page)-1].Seq
			}
			if !slices.Equal(got, want) {
				t.Errorf("in pages of %d: %q, want %q", size, got, want)
			}
		}
		newest := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) {
			return r.NewestRuns(ctx, append(strings.Split(strings.Repeat("none ", 1200), " "), a.ID, b.ID)...)
		})
		got := idsOf(newest)
		if slices.Sort(got); !slices.Equal(got, []string{"run_ws_a_2", "run_ws_b_3"}) {
			t.Errorf("newest runs = %q", got)
		}
	})
}

func TestWhatARunWasPlannedForAndWhatTriggeredItAreKept(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		addLoop(t, s, "ws", loop.ProtocolSpine, "ci")
		for n, run := range []loop.Run{
			{ID: "run_1", Trigger: "cadence", Planned: noon.Add(-time.Hour)},
			{ID: "run_2", Trigger: "event", Event: "push main \x00"},
			{ID: "run_3", Trigger: "manual"},
		} {
			run.LoopID, run.N, run.Key = "lp_wsspineci", int64(n+1), run.ID
			var fired loop.Run
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				fired, err = tx.Fire(ctx, run)
				return err
			})
			got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
			run.Event = strings.ReplaceAll(run.Event, "\x00", "\uFFFD")
			if !got.Planned.Equal(run.Planned) || got.Event != run.Event || got.Seq != fired.Seq || fired.Seq != int64(n+1) {
				t.Errorf("%s was planned for %v by %q as number %d, want %v, %q and %d", run.ID, got.Planned, got.Event, got.Seq, run.Planned, run.Event, n+1)
			}
		}
	})
}

func TestUnfinishedLoopsHaveALiveRunOrFilesToWrite(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		state := map[string]func(l loop.Loop){
			"none":   func(loop.Loop) {},
			"queued": func(l loop.Loop) { fireAt(t, s, l, loop.Holder{}) },
			"live":   func(l loop.Loop) { fireAt(t, s, l, alice) },
			"ended":  func(l loop.Loop) { settle(t, s, fireAt(t, s, l, alice), loop.OutcomeQuiet) },
			"settling": func(l loop.Loop) {
				run := fireAt(t, s, l, alice)
				run.Outcome = loop.OutcomeProposed
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Settle(ctx, run, loop.PhaseConclude, true)
					return err
				})
			},
			"unwritten": func(l loop.Loop) {
				run := fireAt(t, s, l, alice)
				err := held(t.Context(), s, run, func(rt *store.RunTx) error {
					_, err := rt.RecordChanges(t.Context(), []loop.Change{{Kind: loop.ChangeAppend, Path: "run-log.md", Content: "line"}})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				settle(t, s, run, loop.OutcomeQuiet)
			},
		}
		for name, make := range state {
			make(addLoop(t, s, "ws", loop.ProtocolSpine, name))
		}
		state["live"](addLoop(t, s, "far", loop.ProtocolSpine, "elsewhere"))
		state["unwritten"](addLoop(t, s, "far", loop.ProtocolSpine, "unwritten there"))
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) {
			return r.UnfinishedLoops(ctx, "ws", "")
		})
		if want := []string{"spine:live", "spine:settling", "spine:unwritten"}; !slices.Equal(keysOf(got), want) {
			t.Errorf("unfinished are %q, want %q", keysOf(got), want)
		}
	})
}

func TestAnOverdueApprovalIsOneThatIsOpenAndWhoseTimeHasRunOut(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fireAt(t, s, addLoop(t, s, "ws", loop.ProtocolSpine, "ci"), alice)
		ask := func(id string, expires time.Time) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.AskApproval(ctx, loop.Approval{ID: id, LoopID: run.LoopID, RunID: run.ID, State: loop.ApprovalOpen, Expires: expires})
			})
		}
		overdue := func() bool {
			return look(t, s, func(ctx context.Context, r *store.Reader) (bool, error) { return r.OverdueApprovals(ctx, noon) })
		}
		ask("later", noon.Add(time.Second))
		if overdue() {
			t.Error("an approval that can be answered is overdue")
		}
		ask("now", noon)
		if !overdue() {
			t.Error("an approval whose time is over is not overdue")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.VoidApproval(ctx, "now", "old")
			return err
		})
		if overdue() {
			t.Error("an approval that is closed is overdue")
		}
	})
}

// A loop is read with FOR UPDATE: with a plain SELECT a run could be fired between
// the look at its row and what is decided by it.
func TestALoopThatIsLockedGetsNoRunBeforeTheTransactionEnds(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	l := seed(t, s, "ci")
	read := func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.LockLoop(ctx, l.ID)
		return err
	}
	number := func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Number(ctx, "ws", l.Protocol, l.Name)
		return err
	}
	if first, second := sideBySide(t, s, read, number); first != nil || second != nil {
		t.Error(first, second)
	}
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.LockLoop(t.Context(), "lp_none")
		return err
	})
	if !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("a loop that does not exist = %v, want ErrNotFound", err)
	}
}

// SQLite takes at most 1,000 levels in an expression.
func TestBudgetsOfThousandsOfLoopsAreRead(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		const loops = 2000
		var scopes []loop.BudgetScope
		var own []loop.Budget
		for i := range loops {
			scopes = append(scopes, loop.BudgetScope{Kind: loop.BudgetLoop, ID: fmt.Sprintf("lp_%04d", i)})
			own = append(own, budget(scopes[i], loop.WindowDay, tokens(1000)))
		}
		run := fireAt(t, s, addLoop(t, s, "ws", loop.ProtocolSpine, "ci"), alice)
		limit(t, s, budget(scopes[loops-1], loop.WindowMonth, tokens(7)))
		if short := reserve(t, s, run, scopes[loops-1:], tokens(5)); short != nil {
			t.Fatalf("reserve = %+v", short)
		}
		standing := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Standing, error) {
			return r.Standings(ctx, scopes, own, clock.now())
		})
		if len(standing) != loops+1 {
			t.Fatalf("%d budgets, want %d", len(standing), loops+1)
		}
		for i, st := range standing[loops-1:] {
			if st.Budget.Scope != scopes[loops-1] || st.Reserved != tokens(5) {
				t.Errorf("budget %d of the last loop = %+v, want 5 tokens reserved", i, st)
			}
		}
		if first := standing[0]; first.Reserved != tokens(0) || first.Opens.IsZero() {
			t.Errorf("the first = %+v", first)
		}
	})
}

func TestRunsOfAnEarlierPawlGetTheOrderOfTheirFiring(t *testing.T) {
	for name, c := range map[string]struct {
		database, driver string
		kind             goose.Dialect
	}{
		"sqlite":   {database: filepath.Join(t.TempDir(), "p.db"), driver: "sqlite", kind: goose.DialectSQLite3},
		"postgres": {database: pgtest.URL(t), driver: "pgx", kind: goose.DialectPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c.database)
			a, b, far := addLoop(t, s, "ws", loop.ProtocolSpine, "a"), addLoop(t, s, "ws", loop.ProtocolSpine, "b"), addLoop(t, s, "far", loop.ProtocolSpine, "a")
			created := map[string]int{} // hours
			for _, fired := range []struct {
				of loop.Loop
				at int
			}{{a, 5}, {a, 1}, {b, 3}, {far, 2}, {b, 6}, {a, 7}} { // The clock was at 5 when a#1 was made, and was set back.
				created[fireAt(t, s, fired.of, loop.Holder{}).ID] = fired.at
			}
			dsn := c.database
			if name == "sqlite" {
				dsn = "file:" + dsn
			}
			db, err := sql.Open(c.driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			p, err := goose.NewProvider(c.kind, db, os.DirFS(filepath.Join("migrations", name)))
			if err == nil {
				_, err = p.DownTo(t.Context(), 5)
			}
			for id, at := range created {
				_, setErr := db.ExecContext(t.Context(), `UPDATE runs SET created_ms = $1 WHERE id = $2`, at, id)
				err = errors.Join(err, setErr)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := open(t, c.database)
			list := func(workspace string) []string {
				return idsOf(look(t, again, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) {
					return r.WorkspaceRuns(ctx, workspace, 0, 9)
				}))
			}
			next := fireAt(t, again, b, loop.Holder{})
			for workspace, want := range map[string][]string{
				"ws":  {next.ID, "run_ws_a_3", "run_ws_b_2", "run_ws_a_2", "run_ws_a_1", "run_ws_b_1"},
				"far": {"run_far_a_1"},
			} {
				if d := cmp.Diff(want, list(workspace)); d != "" {
					t.Errorf("runs of %s (-want +got):\n%s", workspace, d)
				}
			}
			if next.Seq != 7 {
				t.Errorf("the next run is number %d, want 7", next.Seq)
			}
		})
	}
}
