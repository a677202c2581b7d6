package store_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // opens a store of an older version
	"github.com/pressly/goose/v3"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

func head(t *testing.T, s *store.Store, chain string) store.Head {
	t.Helper()
	return look(t, s, func(ctx context.Context, r *store.Reader) (store.Head, error) { return r.ChainHead(ctx, chain) })
}

func chain(t *testing.T, s *store.Store, id string) []loop.Link {
	t.Helper()
	return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Link, error) { return r.Chain(ctx, id) })
}

func TestEntriesThatAreGoneAtTheEndAreSeenByTheHead(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		for range 4 {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Link(ctx, "lp", loop.LinkKill, "", map[string]string{})
			})
		}
		links, h := chain(t, s, "lp"), head(t, s, "lp")
		other := append(links[:3:3], loop.Link{Seq: 4, Hash: "other"})
		for name, c := range map[string]struct {
			links []loop.Link
			seq   int64
		}{
			"whole": {links, 0}, "the last two gone": {links[:2], 3}, "all gone": {nil, 1}, "one too many": {append(links[:4:4], other[3]), 5},
			"another last one": {other, 4},
		} {
			err := h.Verify("lp", c.links)
			e, broken := errors.AsType[*store.BreakError](err)
			if broken != (c.seq > 0) || broken && e.Seq != c.seq {
				t.Errorf("%s: %v, want a break at %d", name, err, c.seq)
			}
		}
		if err := (store.Head{}).Verify("none", nil); err != nil {
			t.Errorf("a chain that nobody began: %v", err)
		}
	})
}

// hashOf is the hash of an entry, computed a second time: a field that the store
// forgets would change no entry's hash by itself.
func hashOf(l loop.Link) string {
	body, err := json.Marshal([]any{l.Chain, l.Seq, l.At.UnixMilli(), l.Kind, l.RunID, l.Body, l.Prev})
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func TestEveryFieldOfAnEntryIsInItsHash(t *testing.T) {
	links := oldChain(t)
	for _, l := range links {
		if l.Hash != hashOf(l) {
			t.Errorf("entry %d has the hash %s, want %s", l.Seq, l.Hash, hashOf(l))
		}
	}
	for field, c := range map[string]struct {
		touch func(*loop.Link)
		says  string
	}{
		"chain":        {func(l *loop.Link) { l.Chain = "other" }, "was changed"},
		"number":       {func(l *loop.Link) { l.Seq++ }, "is missing"},
		"time":         {func(l *loop.Link) { l.At = l.At.Add(time.Millisecond) }, "was changed"},
		"kind":         {func(l *loop.Link) { l.Kind = loop.LinkRun }, "was changed"},
		"run":          {func(l *loop.Link) { l.RunID = "run_x" }, "was changed"},
		"body":         {func(l *loop.Link) { l.Body = `{"i":7}` }, "was changed"},
		"entry before": {func(l *loop.Link) { l.Prev = strings.Repeat("0", 64) }, "does not follow entry 1"},
		"hash":         {func(l *loop.Link) { l.Hash = strings.Repeat("0", 64) }, "was changed"},
	} {
		touched := slices.Clone(links)
		c.touch(&touched[1])
		e, ok := errors.AsType[*store.BreakError](store.VerifyChain(touched))
		if !ok || e.Seq != 2 || !strings.Contains(e.What, c.says) {
			t.Errorf("%s: %v, want that entry 2 %s", field, e, c.says)
		}
	}
}

func TestAnEntryThatWasWrittenAnewWithItsOwnHashIsSeenBehindIt(t *testing.T) {
	links := oldChain(t)
	head := store.Head{Links: int64(len(links)), Hash: links[len(links)-1].Hash}
	for i := range links {
		touched := slices.Clone(links)
		touched[i].Body = "{}"
		touched[i].Hash = hashOf(touched[i])
		want, says := int64(i+2), fmt.Sprintf("does not follow entry %d", i+1)
		if i == len(links)-1 { // Nothing follows it but the head.
			want, says = int64(i+1), "is not the one that the chain ended with"
		}
		err := cmp.Or(store.VerifyChain(touched), head.Verify("lp", touched))
		if e, ok := errors.AsType[*store.BreakError](err); !ok || e.Seq != want || e.What != says {
			t.Errorf("another body in entry %d: %v, want that entry %d %s", i+1, err, want, says)
		}
		touched = slices.Clone(links)
		touched[i].Prev = hashOf(loop.Link{})
		touched[i].Hash = hashOf(touched[i])
		err = store.VerifyChain(touched)
		if e, ok := errors.AsType[*store.BreakError](err); !ok || e.Seq != int64(i+1) || e.What != fmt.Sprintf("does not follow entry %d", i) {
			t.Errorf("entry %d behind another one: %v", i+1, err)
		}
	}
}

func TestTheOnlyEntryOfAChainIsComparedWithItsHead(t *testing.T) {
	links := oldChain(t)[:1]
	head := store.Head{Links: 1, Hash: links[0].Hash}
	if err := head.Verify("lp", links); err != nil {
		t.Error(err)
	}
	head.Hash = strings.Repeat("0", 64)
	if e, ok := errors.AsType[*store.BreakError](head.Verify("lp", links)); !ok || e.Seq != 1 {
		t.Errorf("another head: %v, want that entry 1 is not it", e)
	}
}

func TestAChainHoldsHoweverManyWriteToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					return tx.Link(t.Context(), "lp", loop.LinkKill, "", map[string]int{"i": i})
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		links := chain(t, s, "lp")
		if err := errors.Join(store.VerifyChain(links), head(t, s, "lp").Verify("lp", links)); err != nil || len(links) != 50 {
			t.Errorf("%d entries: %v", len(links), err)
		}
	})
}

func TestTheLinkOfARunHoldsTheLinesThatItAppends(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			_, err := rt.RecordChanges(t.Context(), []loop.Change{
				{Kind: loop.ChangeEdit, Path: "STATE.md", Content: "x"}, {Kind: loop.ChangeAppend, Path: "run-log.md", Content: "line <1>"},
			})
			if err != nil {
				return err
			}
			return errors.Join(
				rt.Link(t.Context(), run.LoopID, loop.LinkEffect, run.ID, map[string]int{"n": 1}),
				rt.Link(t.Context(), run.LoopID, loop.LinkRun, run.ID, map[string]int{"n": 1}))
		})
		if err != nil {
			t.Fatal(err)
		}
		links := chain(t, s, run.LoopID)
		if want := `{"n":1}`; links[0].Body != want {
			t.Errorf("effect = %s, want %s", links[0].Body, want)
		}
		if want := `{"appended":[{"path":"run-log.md","line":"line \u003c1\u003e"}],"n":1}`; links[1].Body != want {
			t.Errorf("run = %s, want %s", links[1].Body, want)
		}
		if err := store.VerifyChain(links); err != nil {
			t.Error(err)
		}
	})
}

func TestAStoreOfTheFirstVersionKeepsItsChains(t *testing.T) {
	for name, c := range map[string]struct {
		driver  string
		dialect goose.Dialect
		place   func(*testing.T) string
	}{
		"sqlite":   {"sqlite", goose.DialectSQLite3, func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "p.db") }},
		"postgres": {"pgx", goose.DialectPostgres, func(t *testing.T) string { t.Helper(); return pgtest.URL(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := c.place(t)
			links := oldChain(t)
			db, err := sql.Open(c.driver, place)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			p, err := goose.NewProvider(c.dialect, db, os.DirFS("migrations/"+name))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.UpTo(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			for _, l := range links {
				_, err := db.ExecContext(t.Context(), `INSERT INTO audit (chain, seq, at_ms, kind, run_id, body, prev, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
					l.Chain, l.Seq, l.At.UnixMilli(), l.Kind, l.RunID, l.Body, l.Prev, l.Hash)
				if err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, place)
			if h := head(t, s, "lp"); h.Links != 3 || h.Hash != links[2].Hash {
				t.Errorf("head = %+v, want that of the last of 3 entries", h)
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Link(ctx, "lp", loop.LinkKill, "", map[string]string{})
			})
			got := chain(t, s, "lp")
			if err := errors.Join(store.VerifyChain(got), head(t, s, "lp").Verify("lp", got)); err != nil || len(got) != 4 {
				t.Errorf("%d entries: %v", len(got), err)
			}
		})
	}
}

// oldChain is a chain of three entries.
func oldChain(t *testing.T) []loop.Link {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "old.db"))
	for i := range 3 {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Link(ctx, "lp", loop.LinkKill, "", map[string]int{"i": i})
		})
	}
	return chain(t, s, "lp")
}

func TestCountsAndFingerprintsAreKept(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		seed(t, s, "ci")
		counts := func(tree, gate string) (c loop.TestRecord, err error) {
			err = s.View(t.Context(), func(r *store.Reader) error { c, err = r.TestRecord(t.Context(), tree, gate); return err })
			return c, err
		}
		if _, err := counts("t", "g"); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("nothing was counted: %v, want ErrNotFound", err)
		}
		for _, passed := range []int{3, 4} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.SaveTestRecord(ctx, "t", "g", loop.TestRecord{
					TestCounts: loop.TestCounts{Format: "go", Passed: passed}, Names: &loop.TestNames{Ran: []string{"go x.TestA"}},
				})
			})
			if c, err := counts("t", "g"); err != nil || c.Passed != passed || c.Names == nil || len(c.Names.Ran) != 1 {
				t.Errorf("counts = %+v, %v, want %d passed", c, err, passed)
			}
		}
		if _, err := counts("t", "other"); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("another gate: %v, want ErrNotFound", err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveGitFingerprint(ctx, "ws", "", "f1", `["hook"]`)
		})
		got := look(t, s, func(ctx context.Context, r *store.Reader) (string, error) {
			f, h, err := r.GitFingerprint(ctx, "ws", "")
			return f + " " + h, err
		})
		if want := `f1 ["hook"]`; got != want {
			t.Errorf("fingerprint = %s, want %s", got, want)
		}
		none := look(t, s, func(ctx context.Context, r *store.Reader) (string, error) {
			f, h, err := r.GitFingerprint(ctx, "none", "")
			return f + h, err
		})
		if none != "" {
			t.Errorf("the fingerprint of a workspace that is not registered = %s", none)
		}
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveGitFingerprint(t.Context(), "none", "", "f", "") })
		if !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("a workspace that is not registered: %v, want ErrNotFound", err)
		}
	})
}

func TestASnapshotIsSettledWhenItsStepsAre(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		work := func(key, id string, state loop.StepState, verdict loop.Verdict, o loop.Outcome, snapshot string) loop.Run {
			t.Helper()
			run := fire(t, s, l, key, alice)
			err := held(t.Context(), s, run, func(rt *store.RunTx) error {
				step := loop.Step{ID: id, LoopID: l.ID, Key: id, Kind: loop.StepWork, Title: "do it", State: loop.StepClaimed}
				it := loop.Iteration{RunID: run.ID, N: 1, StepID: id, Verdict: verdict}
				err := errors.Join(rt.SaveStep(t.Context(), step), rt.SaveIteration(t.Context(), it))
				step.State, step.Snapshot = state, snapshot
				return errors.Join(err, rt.SaveStep(t.Context(), step))
			})
			if err != nil {
				t.Fatal(err)
			}
			run.Snapshot = snapshot
			settle(t, s, run, o)
			return look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
		}
		settled := func(run loop.Run) (at time.Time, ok bool) {
			t.Helper()
			err := s.View(t.Context(), func(r *store.Reader) (err error) { at, ok, err = r.Settled(t.Context(), run); return err })
			if err != nil {
				t.Fatal(err)
			}
			return at, ok
		}
		waits := func() string {
			return look(t, s, func(ctx context.Context, r *store.Reader) (string, error) {
				w, err := r.Waiting(ctx, "ws", false)
				return w["refs/pawl/snapshots/ci/1"], err
			})
		}
		work("-0", "st", loop.StepFailed, loop.VerdictPass, loop.OutcomeDone, "")
		first := work("-1", "st", loop.StepFailed, loop.VerdictFail, loop.OutcomeFailed, "refs/pawl/snapshots/ci/1")
		if _, ok := settled(first); ok || waits() != "do it" {
			t.Errorf("settled = %v, waits = %q while its step is to be tried again", ok, waits())
		}
		work("-failed", "st", loop.StepFailed, loop.VerdictPass, loop.OutcomeFailed, "")
		work("-without", "st", loop.StepFailed, loop.VerdictFail, loop.OutcomeDone, "")
		work("-another", "other", loop.StepFailed, loop.VerdictPass, loop.OutcomeDone, "")
		if at, ok := settled(first); ok {
			t.Errorf("settled at %v by a run that failed, that did not pass, or by another step", at)
		}
		found := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) {
			return r.SnapshotRun(ctx, "ws", "refs/pawl/snapshots/ci/1", false)
		})
		if found.ID != first.ID {
			t.Errorf("the ref is of run %s, want %s", found.ID, first.ID)
		}
		second := work("-2", "st", loop.StepDone, loop.VerdictPass, loop.OutcomeProposed, "")
		if at, ok := settled(first); !ok || !at.Equal(second.Ended) || waits() != "" {
			t.Errorf("settled at %v %v, waits = %q, want the end of run 2, %v", at, ok, waits(), second.Ended)
		}
		work("-3", "st", loop.StepFailed, loop.VerdictFail, loop.OutcomeFailed, "")
		if at, ok := settled(first); !ok || !at.Equal(second.Ended) {
			t.Errorf("a step that came back settles the snapshot at %v %v, want %v", at, ok, second.Ended)
		}
	})
}

func TestABreakSaysItsPlace(t *testing.T) {
	err := fmt.Errorf("verify: %w", &store.BreakError{Chain: "lp", Seq: 3, What: "was changed"})
	if !strings.Contains(err.Error(), "entry 3 was changed") {
		t.Error(err)
	}
}
