package catalog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// What a daemon does every 30 seconds must not cost more because it has ten thousand loops.
func TestWhereNothingHasMovedRowsAreNotRead(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, err := store.Open(ctx, store.Options{Database: database(t), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			ws := loop.Workspace{ID: "ws", Root: t.TempDir()}
			if err := os.Mkdir(filepath.Join(ws.Root, ".git"), 0o755); err != nil {
				t.Fatal(err)
			}
			update := func(fn func(tx *store.Tx) error) {
				t.Helper()
				if err := s.Update(ctx, fn); err != nil {
					t.Fatal(err)
				}
			}
			update(func(tx *store.Tx) error { return tx.AddWorkspace(ctx, ws) })
			long := time.Now().Add(-time.Hour)
			write := func(name, text string) {
				t.Helper()
				file := filepath.Join(ws.Root, definition.Path(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				long = long.Add(time.Second)
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(file, long, long); err != nil {
					t.Fatal(err)
				}
			}
			c := New(ws, format.List{spine.Format()}, s, time.Now, "v1")
			var id string
			for _, step := range []struct {
				what string
				do   func()
			}{
				{"two new files", func() { write("a", "cadence: 1h\n"); write("b", "goal: [\n") }},
				{"another text of the same length", func() { write("a", "cadence: 2h\n") }},
				{"a file that is gone", func() { _ = os.Remove(filepath.Join(ws.Root, definition.Path("b"))) }},
				{"a row that was written", func() { update(func(tx *store.Tx) error { return tx.Pause(ctx, id, true) }) }},
				{"a file that somebody has looked up", func() {
					write("a", "cadence: 3h\n")
					if _, err := c.Lookup(ctx, "a"); err != nil {
						t.Fatal(err)
					}
				}},
				{"a feed that begins anew", func() {
					update(func(tx *store.Tx) error { _, err := tx.PruneFeed(ctx, tx.Now().Add(time.Hour), 1000); return err })
				}},
			} {
				step.do()
				same, err := c.nothingMoved(ctx, c.files.lastSync())
				if pruned := step.what == "a feed that begins anew"; err != nil || same != pruned {
					t.Errorf("%s: nothing moved = %v, %v", step.what, same, err)
				}
				var found Synced
				for range 3 { // What one has written, the next one reads.
					if found, err = c.Sync(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if same, err := c.nothingMoved(ctx, c.files.lastSync()); !same || err != nil {
					t.Errorf("after %s was looked at: nothing moved = %v, %v", step.what, same, err)
				}
				if again, err := c.Sync(ctx); again != found || err != nil {
					t.Errorf("%s: found %+v and then %+v, %v", step.what, found, again, err)
				}
				id = LoopID(ws.ID, loop.ProtocolSpine, "a")
			}
		})
	}
}
