package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Whatever happens to files, after a look at them the rows say what the files say.
func TestRowsSayWhatFilesSay(t *testing.T) {
	onBoth(t, func(t *testing.T, base *rig) {
		top, n := t.TempDir(), 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			r := &rig{t: t, ws: loop.Workspace{ID: fmt.Sprintf("ws%d", n), Root: filepath.Join(top, fmt.Sprint(n))}, store: base.store, now: time.Now()}
			r.write(".git/HEAD", "")
			r.registers()
			names := rapid.SampledFrom([]string{"a", "b", "c"})
			cadences := rapid.SampledFrom([]string{"1h", "2h", "0 9 * * 1-5", "H H * * *", ""})
			long := catalog.New(r.ws, formats, r.store, time.Now, "v1") // A process that lives longer.
			want, seen := map[string]loop.Registration{}, map[string]loop.Definition{}
			check := func() {
				for name, l := range r.rows() {
					if d := cmp.Diff(want[name], l.Registered); d != "" {
						rt.Fatalf("%s:\n%s", name, d)
					}
					delete(want, name)
				}
				for name := range want {
					rt.Fatalf("%s has no row", name)
				}
			}
			// model says what the rows have to be, given what they were and the files.
			model := func(before map[string]loop.Loop, from, to time.Time) {
				after := r.rows()
				clear(want)
				for name, l := range before {
					want[name] = loop.Registration{}
					if l.Registered.Source == "" {
						want[name] = l.Registered
					}
				}
				files, err := formats.Names(r.ws.Root)
				if err != nil {
					rt.Fatal(err)
				}
				for _, name := range files {
					was := before[name].Registered
					d, _, err := formats.Load(r.ws.Root, name)
					now := loop.Registration{Source: after[name].Registered.Source} // Of the digest only is asked that it differs.
					if now.Source == "" || was.Source == "" && now.Source == was.Source {
						rt.Fatalf("%s: source %q after %q", name, now.Source, was.Source)
					}
					if err != nil {
						now.Good, now.Planned, now.Due = was.Good, was.Planned, was.Due
						now.Broken = strings.ReplaceAll(strings.Split(err.Error(), "\n")[0], r.ws.Root+"/", "")
						want[name] = now
						continue
					}
					now.Good = d.WithDefaults().Digest()
					now.Planned, now.Due = was.Planned, was.Due
					if was.Due.IsZero() || seen[was.Good].Cadence != d.Cadence {
						earliest, err1 := schedule.Next(d, after[name].Created, from.Add(-time.Second))
						latest, err2 := schedule.Next(d, after[name].Created, to.Add(time.Second))
						now.Planned = after[name].Registered.Planned
						if now.Due = after[name].Registered.Due; !now.Due.Equal(now.Planned) || errors.Join(err1, err2) != nil || now.Due.Before(earliest.Due) || now.Due.After(latest.Due) {
							rt.Fatalf("%s is due at %s, want between %s and %s", name, now.Due, earliest.Due, latest.Due)
						}
					}
					seen[now.Good] = d
					want[name] = now
				}
			}
			write := func(name, text string) {
				r.now = time.Now().Add(-time.Duration(rand.IntN(1e9)))
				r.write(definition.Path(name), text)
			}
			valid := func(name, cadence string) string {
				r.defines(name, "")
				text := r.text(name)
				if cadence == "" {
					return strings.Replace(text, "cadence: 1h\n", "", 1)
				}
				return strings.Replace(text, "1h", "\""+cadence+"\"", 1)
			}
			look := func(c *catalog.Catalog) {
				before, from := r.rows(), r.store.Now()
				if _, err := c.Sync(context.Background()); err != nil {
					rt.Fatal(err)
				}
				model(before, from, r.store.Now())
				check()
			}
			rt.Repeat(map[string]func(*rapid.T){
				"valid": func(rt *rapid.T) {
					name := names.Draw(rt, "name")
					write(name, valid(name, cadences.Draw(rt, "cadence"))+fmt.Sprintf("max_items: %d\n", rapid.IntRange(1, 2).Draw(rt, "items")))
				},
				"broken": func(rt *rapid.T) { write(names.Draw(rt, "name"), "goal: [\n") },
				"touched": func(rt *rapid.T) {
					name := names.Draw(rt, "name")
					now := time.Now()
					_ = os.Chtimes(filepath.Join(r.ws.Root, definition.Path(name)), now, now) // It may be missing.
				},
				"removed": func(rt *rapid.T) { r.removes(names.Draw(rt, "name")) },
				"renamed": func(rt *rapid.T) {
					from, to := names.Draw(rt, "from"), names.Draw(rt, "to")
					if from != to {
						r.removes(to)
						_ = os.Rename(filepath.Join(r.ws.Root, ".loops", from), filepath.Join(r.ws.Root, ".loops", to)) // It may be missing.
					}
				},
				"somebody looks one up": func(rt *rapid.T) { _, _ = long.Lookup(context.Background(), names.Draw(rt, "name")) }, // It may be missing.
				"another process looks": func(*rapid.T) { look(r.opens()) },
				"the same looks again":  func(*rapid.T) { look(long) },
			})
			look(r.opens())
			look(long)
		})
	})
}
