package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boards/heartbeat"
	"github.com/pawl-run/pawl/internal/formats/boot"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

// formats are those with files.
var formats = format.List{spine.Format(), spec.Format(), boot.Format(bootrepo.Cache{}), tasks.Format(time.Now), heartbeat.Format()}

// rig is a workspace with a store.
type rig struct {
	*catalog.Catalog
	t     testing.TB
	ws    loop.Workspace
	store *store.Store
	now   time.Time
}

func openStore(t *testing.T, database string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func newRig(t *testing.T, database string) *rig {
	t.Helper()
	r := &rig{t: t, ws: loop.Workspace{ID: "ws", Root: t.TempDir()}, now: time.Now()}
	if database != "" {
		r.store = openStore(t, database)
	}
	r.write(".git/HEAD", "")
	r.Catalog = catalog.New(r.ws, formats, r.store, func() time.Time { return r.now }, "v1")
	return r
}

func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return storetest.SQLite(t) },
		"postgres": func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, url(t)))
		})
	}
}

// write writes a file of the workspace, long ago.
func (r *rig) write(name, text string) {
	r.t.Helper()
	name = filepath.Join(r.ws.Root, name)
	old := r.now.Add(-time.Hour)
	err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644), os.Chtimes(name, old, old))
	if err != nil {
		r.t.Fatal(err)
	}
}

// defines writes a definition, to which more is added.
func (r *rig) defines(name, more string) {
	r.t.Helper()
	r.write(definition.Path(name), fmt.Sprintf(`name: %q
pattern: custom
tier: L1
cadence: 1h
goal: keep it right
scope: ["src/**"]
permission_mode: plan
budget_tokens: 1000
escalation: what is not clear
kill_switch: .loops/PAUSED exists
agent: command
agent_command: "true"
%s`, name, more))
}

// stores adds a loop to the store, as its first run does.
func (r *rig) stores(protocol, name string, forgotten bool) {
	r.t.Helper()
	ctx, id := r.t.Context(), catalog.LoopID(r.ws.ID, protocol, name)
	err := r.store.Update(ctx, func(tx *store.Tx) error {
		err := tx.AddLoop(ctx, r.ws, loop.Loop{ID: id, WorkspaceID: r.ws.ID, Name: name, Protocol: protocol, LastN: 1})
		err = errors.Join(err, tx.SaveDefinition(ctx, id, loop.Definition{Name: name, Goal: "as it last ran"}))
		if forgotten {
			err = errors.Join(err, tx.Forget(ctx, loop.Actor{Who: "ann"}, id))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func keysOf(list []catalog.Entry) (keys []string) {
	for _, e := range list {
		keys = append(keys, e.Protocol+":"+e.Name)
	}
	return keys
}

func TestALoopIsFoundByItsNameOrByProtocolAndName(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.defines("file", "")
		r.defines("ran", "")
		r.stores(loop.ProtocolSpine, "ran", false)
		r.stores(loop.ProtocolSpec, "until", false)
		r.defines("both", "")
		r.stores(loop.ProtocolSpec, "both", false)
		r.stores(loop.ProtocolSpec, "forgotten", true)
		r.defines("back", "")
		r.stores(loop.ProtocolSpine, "back", true)
		r.stores(loop.ProtocolSpec, "odd:name", false)
		r.write(".loops/notes/README.md", "no loop")
		for name, want := range map[string]string{
			"file": "spine:file", "spine:file": "spine:file", "ran": "spine:ran", "until": "spec:until", "spec:until": "spec:until",
			"spec:both": "spec:both", "spine:both": "spine:both", "back": "spine:back", "odd:name": "spec:odd:name", "spec:odd:name": "spec:odd:name",
		} {
			e, err := r.Lookup(t.Context(), name)
			if err != nil || e.Protocol+":"+e.Name != want || e.Problem != nil {
				t.Errorf("%q is %s:%s, %v (%v), want %s", name, e.Protocol, e.Name, err, e.Problem, want)
			}
			stored := e.Name != "file" && want != "spine:both"
			if stored != (e.Row.ID == e.LoopID() && e.Row.LastN == 1) || (e.Protocol == loop.ProtocolSpine) != (e.File == definition.Path(e.Name)) {
				t.Errorf("%q = %+v", name, e)
			}
			if goal := map[bool]string{true: "keep it right", false: "as it last ran"}[e.File != ""]; e.Definition.Goal != goal {
				t.Errorf("%q has the goal %q, want %q", name, e.Definition.Goal, goal)
			}
			bare, err := r.Resolve(t.Context(), name)
			if err != nil || bare.LoopID() != e.LoopID() || bare.Definition.Goal != "" {
				t.Errorf("without its definition %q is %+v, %v", name, bare, err)
			}
		}
		_, err := r.Lookup(t.Context(), "both")
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUsage || f.Fix != "say which: spec:both or spine:both" {
			t.Errorf("a name that two protocols know = %v", err)
		}
		for _, name := range []string{
			"nobody", "forgotten", "spec:file", "notes", "", ".", "..", "./file", "file/", "/file", "../.loops/file", "FILE", ":", ":file", "spine:",
			"\xff", "fi\x00le", strings.Repeat("long", 200),
		} {
			_, err := r.Lookup(t.Context(), name)
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != loop.ExitNotFound || !errors.Is(err, loop.ErrNotFound) || !strings.HasSuffix(f.Advice().String(), "there are: back, both, file, odd:name, ran, until") {
				t.Errorf("%q = %+v", name, f)
			}
		}
	})
}

func TestLoopsOfANameAreFoundWhateverTheirProtocol(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.defines("a", "")
		r.stores(loop.ProtocolSpec, "a", false)
		r.stores(loop.ProtocolSpec, "b", false)
		r.stores(loop.ProtocolBoot, "b", true)
		got, err := r.FindNamed(t.Context(), "b", "none", "a", "a")
		if want := []string{"spec:a", "spine:a", "spec:b"}; err != nil || !slices.Equal(keysOf(got), want) {
			t.Errorf("named are %q, %v, want %q", keysOf(got), err, want)
		}
	})
}

func TestWhatIsWrongWithADefinitionIsSaidAndIsNoErrorOfTheListing(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.defines("right", "")
		r.defines("warned", "colour: red\n")
		r.defines("wrong", "max_iterations: many\n")
		r.write(definition.Path("unreadable"), "<<<<<<< ours\n")
		r.defines("linked", "")
		if err := os.Link(filepath.Join(r.ws.Root, definition.Path("linked")), filepath.Join(r.ws.Root, "second")); err != nil {
			t.Fatal(err)
		}
		r.stores(loop.ProtocolSpine, "gone", false)
		list, err := r.List(t.Context(), catalog.Page{})
		if err != nil || len(list) != 6 {
			t.Fatalf("list = %q, %v", keysOf(list), err)
		}
		for _, e := range list {
			want := map[string]struct {
				problem, fix string
				exit         int
			}{
				"wrong":      {"wrong is not ready to run", "correct " + definition.Path("wrong"), loop.ExitNotReady},
				"unreadable": {"", "", loop.ExitUnreadable},
				"linked":     {"cannot be read: the file has a second name", "", loop.ExitUnreadable},
				"gone":       {"loop gone has no definition any more: " + definition.Path("gone") + " is missing", "forget the loop: pawl rm gone", loop.ExitNotFound},
			}[e.Name]
			f, broken := errors.AsType[*loop.Fault](e.Problem)
			if broken != (want.exit != 0) || broken && (f.Exit != want.exit || !strings.Contains(f.Error(), want.problem) || !strings.Contains(f.Advice().String(), want.fix)) {
				t.Errorf("problem of %s = %+v, want %+v", e.Name, f, want)
			}
			if warned := len(e.Warnings) > 0; warned != (e.Name == "warned") {
				t.Errorf("warnings of %s = %q", e.Name, e.Warnings)
			}
			one, err := r.Lookup(t.Context(), e.Name)
			same := cmp.Options{cmpopts.IgnoreUnexported(catalog.Entry{}), cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })}
			if d := cmp.Diff(e, one, same); err != nil || d != "" {
				t.Errorf("lookup of %s, %v (-listed +found):\n%s", e.Name, err, d)
			}
		}
	})
}

func TestAFolderThatCannotBeListedIsToldAlikeByAll(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	r.stores(loop.ProtocolSpec, "until", false)
	r.write(".loops", "a file")
	_, listed := r.List(t.Context(), catalog.Page{})
	_, found := r.Lookup(t.Context(), "until")
	for _, err := range []error{listed, found} {
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUnreadable || f.What != "list loops" {
			t.Errorf("error = %v", err)
		}
	}
}

func TestWithoutAStoreTheFilesAreListed(t *testing.T) {
	r := newRig(t, "")
	if list, err := r.List(t.Context(), catalog.Page{}); err != nil || len(list) != 0 {
		t.Errorf("list = %v, %v", list, err)
	}
	r.defines("b", "")
	r.defines("a", "")
	list, err := r.List(t.Context(), catalog.Page{Limit: 1})
	if err != nil || !slices.Equal(keysOf(list), []string{"spine:a"}) || list[0].Definition.Name != "a" {
		t.Errorf("list = %+v, %v", list, err)
	}
	if e, err := r.Lookup(t.Context(), "b"); err != nil || e.Row.ID != "" {
		t.Errorf("b = %+v, %v", e, err)
	}
}

// Whatever files and rows there are, pages of any size make up the whole listing.
func TestPagesMakeUpTheListing(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "pawl.db"))
	top, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		ws := loop.Workspace{ID: fmt.Sprintf("ws%d", n), Root: filepath.Join(top, fmt.Sprint(n))}
		r := &rig{t: t, ws: ws, store: s, now: time.Now()}
		r.Catalog = catalog.New(ws, formats, s, time.Now, "v1")
		names := rapid.SampledFrom([]string{"a", "A", "a-b", "ab", "b", "é", "spine:a"})
		want := map[catalog.Key]bool{}
		for _, name := range rapid.SliceOfDistinct(names, rapid.ID[string]).Draw(rt, "files") {
			r.write(definition.Path(name), "goal: x\n")
			want[catalog.Key{Name: name, Protocol: loop.ProtocolSpine}] = true
		}
		type row struct {
			name, protocol string
			forgotten      bool
		}
		rows := rapid.Custom(func(rt *rapid.T) row {
			return row{names.Draw(rt, "name"), rapid.SampledFrom([]string{loop.ProtocolSpine, loop.ProtocolSpec, loop.ProtocolTasks}).Draw(rt, "protocol"), rapid.Bool().Draw(rt, "forgotten")}
		})
		stored := map[catalog.Key]bool{}
		for _, row := range rapid.SliceOfDistinct(rows, func(r row) string { return r.protocol + ":" + r.name }).Draw(rt, "rows") {
			k := catalog.Key{Name: row.name, Protocol: row.protocol}
			r.stores(row.protocol, row.name, row.forgotten)
			want[k] = want[k] || !row.forgotten
			stored[k] = true
		}
		maps.DeleteFunc(want, func(_ catalog.Key, listed bool) bool { return !listed })
		keys := slices.SortedFunc(maps.Keys(want), func(a, b catalog.Key) int {
			return strings.Compare(a.Name+"\x00"+a.Protocol, b.Name+"\x00"+b.Protocol)
		})
		size := rapid.IntRange(0, len(keys)+1).Draw(rt, "size")
		bare := rapid.Bool().Draw(rt, "bare")
		var got []catalog.Key
		for p := (catalog.Page{Limit: size, Bare: bare}); ; {
			page, err := r.List(context.Background(), p)
			if err != nil {
				rt.Fatal(err)
			}
			for _, e := range page {
				got = append(got, e.Key())
				if (e.Row.ID != "") != stored[e.Key()] || bare && (e.Problem != nil || e.Definition.Name != "") {
					rt.Errorf("entry = %+v", e)
				}
			}
			if len(page) == 0 || size == 0 {
				break
			}
			if len(page) > size {
				rt.Fatalf("a page of %d has %d", size, len(page))
			}
			p.After = page[len(page)-1].Key()
		}
		if !slices.Equal(got, keys) {
			rt.Errorf("in pages of %d: %q, want %q", size, got, keys)
		}
	})
}

func TestADefinitionIsReadAgainOnlyWhenItsFileHasChanged(t *testing.T) {
	r := newRig(t, "")
	goal := func() string {
		t.Helper()
		e, err := r.Lookup(t.Context(), "ci")
		if err != nil || e.Problem != nil {
			t.Fatal(err, e.Problem)
		}
		return e.Definition.Goal
	}
	file := filepath.Join(r.ws.Root, definition.Path("ci"))
	// again changes the goal and nothing else that a listing sees of the file, but its time.
	again := func(from, to string, at time.Time) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o644)
		}
		if err = errors.Join(err, os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	r.defines("ci", "")
	old := r.now.Add(-time.Hour)
	if got := goal(); got != "keep it right" {
		t.Fatalf("goal = %q", got)
	}
	again("keep", "hold", old)
	if got := goal(); got != "keep it right" {
		t.Errorf("a file of the same size and time was opened again: %q", got)
	}
	again("hold", "make", old.Add(time.Nanosecond))
	if got := goal(); got != "make it right" {
		t.Errorf("of a file with another time it is %q", got)
	}
	again("make it", "make them", old.Add(time.Nanosecond))
	if got := goal(); got != "make them right" {
		t.Errorf("of a file with another size it is %q", got)
	}
	again("them", "that", old.Add(time.Nanosecond))
	text, err := os.ReadFile(file)
	if err == nil {
		err = errors.Join(os.WriteFile(file+".new", text, 0o644), os.Chtimes(file+".new", old, old.Add(time.Nanosecond)), os.Rename(file+".new", file))
	}
	if got := goal(); err != nil || got != "make that right" {
		t.Errorf("of another file it is %q, %v", got, err)
	}
	// Who writes it twice within a tick of the clock gives it one time.
	again("that", "this", r.now)
	if got := goal(); got != "make this right" {
		t.Fatalf("goal = %q", got)
	}
	again("this", "what", r.now)
	if got := goal(); got != "make what right" {
		t.Errorf("of a file that was written just now it is %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if e, err := r.Lookup(t.Context(), "ci"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("without its file it is %+v, %v", e, err)
	}
}

func TestALoopIDIsThatOfItsWorkspaceProtocolAndName(t *testing.T) {
	// Rows of every store depend on it.
	if got := catalog.LoopID("ws_1", "spine", "ci"); got != "lp_7b8311b1030b1ce9" {
		t.Errorf("id = %s", got)
	}
	if catalog.LoopID("a", "b", "c") == catalog.LoopID("ab", "", "c") {
		t.Error("two loops have one id")
	}
}
