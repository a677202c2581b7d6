package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// registers makes the workspace known, as every command does that may write.
func (r *rig) registers() {
	r.t.Helper()
	err := r.store.Update(context.Background(), func(tx *store.Tx) error { return tx.AddWorkspace(context.Background(), r.ws) })
	if err != nil {
		r.t.Fatal(err)
	}
}

// opens returns another catalog of the workspace, as another process has.
func (r *rig) opens() *catalog.Catalog { return catalog.New(r.ws, formats, r.store, time.Now, "v1") }

// rows returns the rows of the workspace's loops by name.
func (r *rig) rows() map[string]loop.Loop {
	r.t.Helper()
	rows := map[string]loop.Loop{}
	err := r.store.View(context.Background(), func(rd *store.Reader) error {
		list, err := rd.Loops(context.Background(), r.ws.ID)
		for _, l := range list {
			rows[l.Name] = l
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

func (r *rig) sync() catalog.Synced {
	r.t.Helper()
	s, err := r.opens().Sync(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// plans sets when the next run of a loop is planned for, as a trigger does.
func (r *rig) plans(name string, due time.Time) {
	r.t.Helper()
	l := r.rows()[name]
	l.Registered.Due = due
	err := r.store.Update(context.Background(), func(tx *store.Tx) error { return tx.SaveRegistration(context.Background(), l.ID, l.Registered) })
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestALoopIsRegisteredWithoutARun(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.registers()
		r.defines("hourly", "")
		r.defines("by-hand", "")
		r.write(definition.Path("by-hand"), strings.Replace(r.text("by-hand"), "cadence: 1h\n", "", 1))
		r.defines("broken", "max_items: many\n")
		r.write(".loops/notes/README.md", "no loop")
		r.write(".loops/od\xffd/loop.config.yaml", "name: odd\n")
		before := r.store.Now()
		if s := r.sync(); s != (catalog.Synced{Loops: 3, Broken: 1, Changed: 3}) {
			t.Errorf("synced %+v", s)
		}
		rows := r.rows()
		if len(rows) != 3 {
			t.Errorf("rows = %+v", rows)
		}
		for name, l := range rows {
			if l.ID != catalog.LoopID(r.ws.ID, loop.ProtocolSpine, name) || l.LastN != 0 || l.Definition != "" || l.Forgotten || l.Paused || l.Registered.Source == "" {
				t.Errorf("%s = %+v", name, l)
			}
		}
		hourly := rows["hourly"]
		if want := r.definition("hourly").Digest(); hourly.Registered.Good != want || hourly.Registered.Broken != "" {
			t.Errorf("hourly = %+v, want the digest %s", hourly.Registered, want)
		}
		var kept loop.Definition
		err := r.store.View(t.Context(), func(rd *store.Reader) (err error) {
			kept, err = rd.Definition(t.Context(), hourly.Registered.Good)
			return err
		})
		if err != nil || kept.Cadence != "1h" || kept.MaxIterations == 0 {
			t.Errorf("the definition of hourly = %+v, %v", kept, err)
		}
		if due := hourly.Registered.Due; !due.Equal(hourly.Created.Add(time.Hour)) || hourly.Created.Before(before.Add(-time.Second)) {
			t.Errorf("after %s hourly was registered at %s and is due at %s", before, hourly.Created, due)
		}
		if reg := rows["by-hand"].Registered; reg.Good == "" || !reg.Due.IsZero() {
			t.Errorf("without a cadence = %+v", reg)
		}
		if reg := rows["broken"].Registered; reg.Good != "" || !reg.Due.IsZero() || !strings.HasPrefix(reg.Broken, "broken is not ready to run: .loops/broken/loop.config.yaml:") {
			t.Errorf("broken from the beginning = %+v", reg)
		}
	})
}

// text returns a definition as it is in its file.
func (r *rig) text(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.ws.Root, definition.Path(name)))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// definition returns what the file of a loop says, with its defaults.
func (r *rig) definition(name string) loop.Definition {
	r.t.Helper()
	d, _, err := formats.Load(r.ws.Root, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return d.WithDefaults()
}

func TestWhatAnEditMeansForWhatIsPlanned(t *testing.T) {
	planned := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC) // It was missed.
	for name, c := range map[string]struct {
		edit               func(r *rig)
		good, due, broken  bool // the row has one
		sameGood, samePlan bool
	}{
		"nothing": {
			edit: func(*rig) {}, good: true, due: true, sameGood: true, samePlan: true,
		},
		"a comment": {
			edit: func(r *rig) { r.defines("l", "# about it\n") }, good: true, due: true, sameGood: true, samePlan: true,
		},
		"another limit": {
			edit: func(r *rig) { r.defines("l", "max_items: 2\n") }, good: true, due: true, samePlan: true,
		},
		"another cadence": {
			edit: func(r *rig) { r.write(definition.Path("l"), strings.Replace(r.text("l"), "1h", "2h", 1)) }, good: true, due: true,
		},
		"no cadence": {
			edit: func(r *rig) {
				r.write(definition.Path("l"), strings.Replace(r.text("l"), "cadence: 1h\n", "", 1))
			}, good: true,
		},
		"one that breaks it": {
			edit: func(r *rig) { r.defines("l", "max_items: many\n") }, good: true, due: true, broken: true, sameGood: true, samePlan: true,
		},
		"a conflict": {
			edit: func(r *rig) {
				r.write(definition.Path("l"), "<<<<<<< ours\n"+r.text("l")+"=======\n>>>>>>> theirs\n")
			}, good: true, due: true, broken: true, sameGood: true, samePlan: true,
		},
		"a link": {
			edit: func(r *rig) {
				path := filepath.Join(r.ws.Root, definition.Path("l"))
				if err := errors.Join(os.Remove(path), os.Symlink("elsewhere", path)); err != nil {
					r.t.Fatal(err)
				}
			}, good: true, due: true, broken: true, sameGood: true, samePlan: true,
		},
		"one that breaks it, mended": {
			edit: func(r *rig) { r.defines("l", "max_items: many\n"); r.sync(); r.defines("l", "") }, good: true, due: true, sameGood: true, samePlan: true,
		},
		"one that breaks it, mended to another cadence": {
			edit: func(r *rig) {
				r.defines("l", "max_items: many\n")
				r.sync()
				r.defines("l", "")
				r.write(definition.Path("l"), strings.Replace(r.text("l"), "1h", "2h", 1))
			}, good: true, due: true,
		},
		"a removal": {
			edit: func(r *rig) { r.removes("l") },
		},
		"a removal, taken back": {
			edit: func(r *rig) { r.removes("l"); r.sync(); r.defines("l", "") }, good: true, due: true, sameGood: true,
		},
		"a loop that was forgotten and whose file stays": {
			edit: func(r *rig) { r.forgets("l") }, good: true, due: true, sameGood: true,
		},
		"a loop that was forgotten and removed": {
			edit: func(r *rig) { r.removes("l"); r.forgets("l") },
		},
		"another pawl": {
			edit: func(r *rig) {
				if s, err := catalog.New(r.ws, formats, r.store, time.Now, "v2").Sync(context.Background()); err != nil || s.Changed != 1 {
					r.t.Errorf("another pawl synced %+v, %v", s, err)
				}
			}, good: true, due: true, sameGood: true, samePlan: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, storetest.SQLite(t))
			r.registers()
			r.defines("l", "")
			r.sync()
			r.plans("l", planned)
			before := r.rows()["l"].Registered
			c.edit(r)
			from := r.store.Now()
			r.sync()
			after := r.rows()["l"].Registered
			if got := []bool{after.Good != "", !after.Due.IsZero(), after.Broken != ""}; !cmp.Equal(got, []bool{c.good, c.due, c.broken}) {
				t.Errorf("good, due, broken = %t, want %t %t %t: %+v", got, c.good, c.due, c.broken, after)
			}
			if same := after.Good == before.Good; same != c.sameGood {
				t.Errorf("the same definition counts: %t, want %t: %+v", same, c.sameGood, after)
			}
			if same := after.Due.Equal(planned); same != c.samePlan {
				t.Errorf("the plan is kept: %t, want %t: %+v", same, c.samePlan, after)
			}
			if c.due && !c.samePlan && !after.Due.After(from.Add(-time.Second)) {
				t.Errorf("due at %s, before %s", after.Due, from)
			}
			if commits := r.store.Commits(); r.sync().Changed != 0 || r.store.Commits() != commits {
				t.Error("what has not changed was written")
			}
		})
	}
}

func (r *rig) removes(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.ws.Root, ".loops", name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) forgets(name string) {
	r.t.Helper()
	err := r.store.Update(context.Background(), func(tx *store.Tx) error {
		return tx.Forget(context.Background(), loop.Actor{Who: "ann"}, catalog.LoopID(r.ws.ID, loop.ProtocolSpine, name))
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A loop without a file that has never run is not listed: nothing of it is left. Its row
// stays, with what was said about it.
func TestOfALoopThatWasOnlyRegisteredNothingIsListedOnceItsFileIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.registers()
		r.defines("a", "")
		r.defines("b", "")
		r.sync()
		r.removes("a")
		r.write(definition.Path("c"), r.text("b"))
		r.removes("b")
		r.sync()
		list, err := r.List(t.Context(), catalog.Page{})
		if d := cmp.Diff([]string{"spine:c"}, keysOf(list)); d != "" || err != nil {
			t.Errorf("listed (%v):\n%s", err, d)
		}
		if _, err := r.Lookup(t.Context(), "a"); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("a = %v", err)
		}
		if rows := r.rows(); len(rows) != 3 || !strings.Contains(rows["c"].Registered.Broken, "is not the name of the directory") {
			t.Errorf("rows = %+v", rows)
		}
	})
}

// The disk of a clone may not be mounted, and a clone of a node be removed while others have
// theirs.
func TestACloneThatIsGoneTakesNoLoopAway(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.registers()
		r.write(definition.Path("a"), "name: a\ntier: L1\ncadence: 1h\n")
		if s, err := r.Sync(t.Context()); err != nil || s.Changed != 1 {
			t.Fatalf("Sync = %+v, %v", s, err)
		}
		before := r.rows()
		if err := os.Rename(r.ws.Root, r.ws.Root+".away"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := r.Sync(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Sync = %v, want that the clone is not there", err)
			}
		}
		if d := cmp.Diff(before, r.rows()); d != "" {
			t.Errorf("the rows have changed:\n%s", d)
		}
		if err := os.Rename(r.ws.Root+".away", r.ws.Root); err != nil {
			t.Fatal(err)
		}
		if s, err := r.Sync(t.Context()); err != nil || s.Loops != 1 || s.Changed != 0 {
			t.Errorf("Sync = %+v, %v once it is back", s, err)
		}
	})
}

func TestALookThatIsCutLeavesAllOrNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.registers()
		for i := range 5 {
			r.defines(fmt.Sprint("l", i), "")
		}
		cut := errors.New("cut")
		for _, c := range []struct {
			point string
			rows  int
		}{{"catalog.sync.commit.before", 0}, {"catalog.sync.commit.after", 5}} {
			ctx := fault.With(t.Context(), new(fault.Plan).Do(c.point, 1, func(context.Context) error { return cut }))
			if _, err := r.opens().Sync(ctx); !errors.Is(err, cut) {
				t.Fatalf("cut at %s = %v", c.point, err)
			}
			if n := len(r.rows()); n != c.rows {
				t.Errorf("cut at %s: %d rows, want %d", c.point, n, c.rows)
			}
		}
		if s := r.sync(); s != (catalog.Synced{Loops: 5}) {
			t.Errorf("after that, synced %+v", s)
		}
	})
}

// Who has read a file earlier must not write over what another has read since.
func TestAnOlderLookDoesNotWinOverANewerOne(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.registers()
		for name, newer := range map[string]string{"one": "max_items: 30\n", "other": "max_items: 500\n"} {
			r.defines("l", "max_items: 2\n")
			ctx := fault.With(t.Context(), new(fault.Plan).Do("catalog.sync.commit.before", 1, func(context.Context) error {
				r.defines("l", newer)
				r.sync()
				return nil
			}))
			if _, err := r.opens().Sync(ctx); err != nil {
				t.Fatal(err)
			}
			if got, want := r.rows()["l"].Registered.Good, r.definition("l").Digest(); got != want {
				t.Errorf("%s: %s counts, want %s", name, got, want)
			}
		}
	})
}

func TestManyLookAtOnce(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return storetest.SQLite(t) },
		"postgres": func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := url(t)
			r := newRig(t, database)
			r.registers()
			const loops, processes = 20, 4
			for round := range 5 {
				for i := range loops {
					r.defines(fmt.Sprint("l", i), fmt.Sprintf("max_items: %d\n", round+1))
				}
				if round == 3 {
					r.removes("l0")
				}
				errs := make(chan error, processes)
				for p := range processes {
					s := openStore(t, database)
					go func() {
						ctx := context.Background()
						_, err := catalog.New(r.ws, formats, s, time.Now, "v1").Sync(ctx)
						if p == 0 { // The first run of a loop comes at the same time.
							l := loop.Loop{ID: catalog.LoopID(r.ws.ID, loop.ProtocolSpine, "l1"), WorkspaceID: r.ws.ID, Name: "l1", Protocol: loop.ProtocolSpine, LastN: 7}
							err = errors.Join(err, s.Update(ctx, func(tx *store.Tx) error { return tx.AddLoop(ctx, r.ws, l) }))
						}
						errs <- err
					}()
				}
				for range processes {
					if err := <-errs; err != nil {
						t.Error(err)
					}
				}
				for name, l := range r.rows() {
					want := ""
					if name != "l0" || round < 3 || round == 4 {
						want = r.definition(name).Digest()
					}
					if l.Registered.Good != want {
						t.Errorf("round %d: %s has %q, want %q", round, name, l.Registered.Good, want)
					}
					if first := map[bool]int64{true: 7}[name == "l1"]; l.LastN != first {
						t.Errorf("the runs of %s are numbered on from %d, want %d", name, l.LastN, first)
					}
				}
			}
		})
	}
}
