package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// change writes a row in a transaction of a run.
func change(t *testing.T, s *store.Store, run loop.Run, row loop.Row) error {
	t.Helper()
	return held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.ChangeRow(t.Context(), "ws", row) })
}

// rowNamed is a task as it is stored.
func rowNamed(t *testing.T, s *store.Store, key string) loop.Row {
	t.Helper()
	return look(t, s, func(ctx context.Context, r *store.Reader) (loop.Row, error) { return r.Row(ctx, "ws", "tasks", key) })
}

func TestARowIsWrittenOnlyFromTheVersionThatIsStored(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "dev"), "1", alice)
		row := loop.Row{Set: "tasks", Key: "t1", Scope: "b1", State: "todo", Body: json.RawMessage(`{"title": "one", "size": 1}`)}
		for n, want := range []error{nil, loop.ErrRowChanged} {
			if err := change(t, s, run, row); !errors.Is(err, want) {
				t.Fatalf("the new row, time %d: %v, want %v", n+1, err, want)
			}
		}
		row.Version, row.State, row.Owner = 1, "in_progress", "dev"
		for n, want := range []error{nil, loop.ErrRowChanged} {
			if err := change(t, s, run, row); !errors.Is(err, want) {
				t.Fatalf("from version 1, time %d: %v, want %v", n+1, err, want)
			}
		}
		if got := rowNamed(t, s, "t1"); got.Version != 2 || got.State != "in_progress" || got.Owner != "dev" || got.Scope != "b1" || got.RunID != "" {
			t.Errorf("stored: %+v", got)
		}
		row.Version, row.Body = 2, nil
		if err := change(t, s, run, row); err != nil {
			t.Fatal(err)
		}
		err := s.View(t.Context(), func(r *store.Reader) error { _, err := r.Row(t.Context(), "ws", "tasks", "t1"); return err })
		if !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("after it was deleted: %v", err)
		}
	})
}

func TestARowIsHeldByARunUntilItHasEndedOrAPersonWritesIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "dev"), "1", alice)
		row := loop.Row{Set: "tasks", Key: "t1", State: "in_progress", Owner: "dev", Hold: true, Body: json.RawMessage(`{"title":"one","plan":"x"}`)}
		if err := change(t, s, run, row); err != nil {
			t.Fatal(err)
		}
		if got := rowNamed(t, s, "t1"); got.RunID != run.ID {
			t.Errorf("held by %q, want %s", got.RunID, run.ID)
		}
		// What a person adds meanwhile stays: the run writes only fields of its own.
		more := loop.Row{Set: "tasks", Key: "t1", State: "in_progress", Owner: "dev", Hold: true, Holds: true, Body: json.RawMessage(`{"plan":null,"done":2}`)}
		if err := change(t, s, run, more); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"done":2,"title":"one"}`, string(rowNamed(t, s, "t1").Body)); diff != "" {
			t.Error(diff)
		}
		taken := rowNamed(t, s, "t1")
		taken.Owner = "ada"
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.WriteRow(t.Context(), "ws", taken) }); err != nil {
			t.Fatal(err)
		}
		if err := change(t, s, run, more); !errors.Is(err, loop.ErrRowChanged) {
			t.Errorf("after a person took the row: %v", err)
		}

		row.Key = "t2"
		if err := change(t, s, run, row); err != nil {
			t.Fatal(err)
		}
		settle(t, s, run, loop.OutcomeFailed)
		if got := rowNamed(t, s, "t2"); got.RunID != "" || got.Owner != "dev" {
			t.Errorf("after the end of the run that held it: %+v", got)
		}
	})
}

func TestRowsAreFoundByWhatTheyBelongTo(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "dev"), "1", alice)
		for _, r := range []loop.Row{
			{Set: "tasks", Key: "t1", Scope: "b1", State: "todo"},
			{Set: "tasks", Key: "t2", Scope: "b1", State: "done", Owner: "dev"},
			{Set: "tasks", Key: "t3", Scope: "b2", State: "todo", Owner: "dev"},
			{Set: "tasks", Key: "t4", Scope: "b1", State: "review", Owner: "ada"},
			{Set: "boards", Key: "b1"},
		} {
			r.Body = json.RawMessage(`{}`)
			if err := change(t, s, run, r); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond) // Each has a time of its own.
		}
		for name, c := range map[string]struct {
			q    loop.RowQuery
			want []string
		}{
			"all of a set":       {loop.RowQuery{Set: "tasks"}, []string{"t1", "t2", "t3", "t4"}},
			"of a board":         {loop.RowQuery{Set: "tasks", Scope: "b1"}, []string{"t1", "t2", "t4"}},
			"in some states":     {loop.RowQuery{Set: "tasks", Scope: "b1", States: []string{"todo", "review"}}, []string{"t1", "t4"}},
			"of somebody":        {loop.RowQuery{Set: "tasks", Owner: "dev"}, []string{"t2", "t3"}},
			"by their keys":      {loop.RowQuery{Set: "tasks", Keys: []string{"t3", "t1", "x"}}, []string{"t1", "t3"}},
			"the newest of them": {loop.RowQuery{Set: "tasks", Newest: true, Limit: 2}, []string{"t4", "t3"}},
			"of another set":     {loop.RowQuery{Set: "boards"}, []string{"b1"}},
			"of no set":          {loop.RowQuery{Set: "nothing"}, nil},
		} {
			list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Row, error) { return r.Rows(ctx, "ws", c.q) })
			var got []string
			for _, r := range list {
				got = append(got, r.Key)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if other := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Row, error) {
			return r.Rows(ctx, "far", loop.RowQuery{Set: "tasks"})
		}); other != nil {
			t.Errorf("another workspace has %v", other)
		}
	})
}

func TestOfThoseWhoClaimOneRowAtOnceOneHasIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const agents, tasks = 8, 20
		runs := make([]loop.Run, agents)
		for i := range runs {
			runs[i] = fire(t, s, seed(t, s, fmt.Sprintf("a%d", i)), "1", alice)
		}
		for n := range tasks {
			if err := change(t, s, runs[0], loop.Row{Set: "tasks", Key: fmt.Sprintf("t%02d", n), State: "todo", Body: json.RawMessage(`{}`)}); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		won := map[string][]string{}
		var all sync.WaitGroup
		for _, run := range runs {
			all.Go(func() {
				for n := range tasks {
					key := fmt.Sprintf("t%02d", n)
					err := change(t, s, run, loop.Row{Set: "tasks", Key: key, State: "in_progress", Owner: run.ID, Version: 1, Hold: true, Body: json.RawMessage(`{}`)})
					mu.Lock()
					if err == nil {
						won[key] = append(won[key], run.ID)
					} else if !errors.Is(err, loop.ErrRowChanged) {
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for n := range tasks {
			key := fmt.Sprintf("t%02d", n)
			if w := won[key]; len(w) != 1 || rowNamed(t, s, key).RunID != w[0] {
				t.Errorf("%s was claimed by %v, and stored is %s", key, w, rowNamed(t, s, key).RunID)
			}
		}
	})
}
