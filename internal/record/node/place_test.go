package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

// host is a machine with a home, beside others on one store.
type host struct {
	t    *testing.T
	s    *store.Store
	home string
	name string
}

var ids atomic.Int64

func newHost(t *testing.T, s *store.Store, name string) *host {
	t.Helper()
	return &host{t: t, s: s, home: t.TempDir(), name: name}
}

func (h *host) newID(prefix string) string {
	return fmt.Sprintf("%s_%s%d", prefix, h.name, ids.Add(1))
}

func (h *host) node() loop.Node {
	h.t.Helper()
	n, err := node.Identify(h.home, h.newID)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *host) registry() *node.Registry {
	return &node.Registry{Store: h.s, Node: h.node(), Host: h.name, NewID: h.newID}
}

func (h *host) register(dir string) (node.Registered, error) {
	return h.registry().Register(h.t.Context(), dirsOf(h.t, dir), "")
}

// mustRegister returns the id of the workspace at dir.
func (h *host) mustRegister(dir string) string {
	h.t.Helper()
	reg, err := h.register(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	return reg.ID
}

func dirsOf(t *testing.T, dir string) gitdir.Dirs {
	t.Helper()
	dirs, err := gitdir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func onBoth(t *testing.T, fn func(*testing.T, *store.Store)) {
	t.Helper()
	for name, database := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) { fn(t, openStore(t, database(t))) })
	}
}

func openStore(t *testing.T, database string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: clock.System{}.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func wantFault(t *testing.T, err error, exit int, parts ...string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit {
		t.Fatalf("error = %v, want a fault with exit status %d", err, exit)
	}
	text := f.What + "\n" + f.Why + "\n" + f.Advice().String()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the fault says %q, want %q in it", text, part)
		}
	}
}

func TestAHomeIsOneNodeForGood(t *testing.T) {
	home := filepath.Join(t.TempDir(), "new", "home")
	if n, err := node.Read(home); err != nil || n.ID != "" {
		t.Fatalf("a home that is not there is node %+v, %v", n, err)
	}
	var made [8]loop.Node
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			made[i], _ = node.Identify(home, func(prefix string) string { return fmt.Sprintf("%s_%d", prefix, i) })
		})
	}
	all.Wait()
	for _, n := range made {
		if n.ID == "" || n.ID != made[0].ID {
			t.Errorf("one home is node %q and node %q", made[0].ID, n.ID)
		}
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 1 {
		t.Errorf("the home holds %v, %v, want one file", entries, err)
	}
	if err := node.Keep(home, loop.Node{ID: made[0].ID, Name: "build1", Labels: []string{"gpu"}}); err != nil {
		t.Fatal(err)
	}
	if n, err := node.Read(home); err != nil || n.Name != "build1" || n.ID != made[0].ID || len(n.Labels) != 1 {
		t.Errorf("the node is %+v, %v", n, err)
	}
}

func TestANodeFileThatCannotBeReadIsRefusedAndKept(t *testing.T) {
	for _, text := range []string{"", "{", "{}", "\x00", `{"id": ""}`} {
		home := t.TempDir()
		path := filepath.Join(home, "node.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := node.Identify(home, func(string) string { return "node_new" })
		wantFault(t, err, loop.ExitUnreadable, path)
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("the file is %q, %v now", kept, err)
		}
	}
}

func TestAWorkspaceIsItsCloneAndNotItsPath(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here, there := newHost(t, s, "here"), newHost(t, s, "there")
		one, two := gittest.Repo(t, nil), gittest.Repo(t, nil)
		id := here.mustRegister(one)
		if again := here.mustRegister(one); again != id {
			t.Errorf("the workspace was %s and is %s", id, again)
		}
		if other := there.mustRegister(two); other == id {
			t.Errorf("another clone on another node is %s, too", id)
		}
		// A clone on another node at the very same path is a workspace of its own.
		if err := os.RemoveAll(one); err != nil {
			t.Fatal(err)
		}
		gittest.Run(t, t.TempDir(), "init", "-q", one)
		if other := there.mustRegister(one); other == id {
			t.Errorf("another clone at the same path of another node is %s, too", id)
		}
	})
}

func TestACloneThatMovesStaysItsWorkspace(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here := newHost(t, s, "here")
		old := gittest.Repo(t, nil)
		id, moved := here.mustRegister(old), filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(old, moved); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if ws, _, err := node.Find(t.Context(), s, here.node(), dirsOf(t, moved), ""); err != nil || ws.ID != id {
				t.Errorf("the moved clone is %+v, %v for a reader, want %s", ws, err, id)
			}
			if again := here.mustRegister(moved); again != id {
				t.Errorf("the moved clone is %s, want %s", again, id)
			}
		}
		var places []loop.Placement
		view(t, s, func(ctx context.Context, r *store.Reader) (err error) {
			places, err = r.Placements(ctx, id)
			return err
		})
		if len(places) != 1 || places[0].Path != moved {
			t.Errorf("the workspace lies at %+v", places)
		}
	})
}

func TestACloneThatWasMadeAnewAtItsPathGoesOnUnlessItCameFromElsewhere(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here := newHost(t, s, "here")
		root := gittest.Repo(t, nil)
		id := here.mustRegister(root)
		anew := func() {
			if err := os.RemoveAll(root); err != nil {
				t.Fatal(err)
			}
			gittest.Run(t, t.TempDir(), "init", "-q", root)
		}
		anew()
		if ws, _, err := node.Find(t.Context(), s, here.node(), dirsOf(t, root), ""); err != nil || ws.ID != id {
			t.Errorf("for a reader it is %+v, %v, want %s", ws, err, id)
		}
		if again := here.mustRegister(root); again != id {
			t.Errorf("it is %s, want %s", again, id)
		}
		anew()
		reg, err := here.registry().Register(t.Context(), dirsOf(t, root), "https://example.com/other")
		if err != nil || reg.ID == id || reg.Before != id {
			t.Errorf("a clone of another repository is %+v, %v", reg, err)
		}
	})
}

func TestACopyOfACloneIsRefusedOnItsNodeAndOnAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here, there := newHost(t, s, "here"), newHost(t, s, "there")
		one := gittest.Repo(t, nil)
		id, two := here.mustRegister(one), filepath.Join(t.TempDir(), "copy")
		if out, err := exec.Command("cp", "-r", one, two).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		there.mustRegister(gittest.Repo(t, nil))
		for _, h := range []*host{here, there} {
			_, err := h.register(two)
			wantFault(t, err, loop.ExitHeld, two, one, id, "pawl init --new-id", "pawl init --join "+id)
			_, _, err = node.Find(t.Context(), s, h.node(), dirsOf(t, two), "")
			wantFault(t, err, loop.ExitHeld, one)
		}
		if again := here.mustRegister(one); again != id {
			t.Errorf("the first clone is %s, want %s", again, id)
		}
	})
}

func TestALinkedWorktreeIsAWorkspaceOfTheRepository(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here := newHost(t, s, "here")
		root, linked := gittest.Repo(t, map[string]string{"a": "a"}), filepath.Join(t.TempDir(), "linked")
		gittest.Run(t, root, "worktree", "add", "-q", linked)
		reg, err := here.register(linked)
		if err != nil {
			t.Fatal(err)
		}
		main, err := here.register(root)
		if err != nil {
			t.Fatal(err)
		}
		if reg.ID == main.ID || reg.Repository != main.ID || main.Repository != main.ID {
			t.Errorf("the worktree is %+v, the checkout %+v", reg.Workspace, main.Workspace)
		}
	})
}

func TestNodesOfOneHostAreCalledApartAndAChosenNameIsNotTakenTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		var names []string
		for range 3 {
			reg, err := newHost(t, s, "box").register(gittest.Repo(t, nil))
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, reg.Node.Name)
		}
		if got := strings.Join(names, " "); got != "box box-2 box-3" {
			t.Errorf("the nodes are %s", got)
		}
		late := newHost(t, s, "late")
		n := late.node()
		n.Name = "box-2"
		if err := node.Keep(late.home, n); err != nil {
			t.Fatal(err)
		}
		root := gittest.Repo(t, nil)
		_, err := late.register(root)
		wantFault(t, err, loop.ExitHeld, "box-2", "pawl nodes set --name")
	})
}

func TestAGitDirectoryThatCannotBeWrittenIsSaid(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		root := gittest.Repo(t, nil)
		path := filepath.Join(root, ".git", "pawl-workspace")
		for _, text := range []string{"", "x", "ws_", "ws_A", "ws_a/b"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := newHost(t, s, "here").register(root)
			wantFault(t, err, loop.ExitUnreadable, path, "--new-id")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if ws, _, err := node.Find(t.Context(), s, loop.Node{}, dirsOf(t, root), ""); err != nil || ws.ID != "" {
			t.Errorf("a clone that nobody registered is %+v, %v", ws, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading has made the file: %v", err)
		}
	})
}

func view(t *testing.T, s *store.Store, fn func(context.Context, *store.Reader) error) {
	t.Helper()
	if err := s.View(t.Context(), func(r *store.Reader) error { return fn(t.Context(), r) }); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyAWorkspaceThatTheStoreHasHereIsPlaced: an id in a git directory, which came with a copy,
// is no registration.
func TestOnlyAWorkspaceThatTheStoreHasHereIsPlaced(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		here, elsewhere := newHost(t, s, "here"), newHost(t, s, "elsewhere")
		dir, theirs := gittest.Repo(t, nil), gittest.Repo(t, nil)
		gittest.Write(t, theirs, map[string]string{".git/pawl-workspace": "ws_madeup\n"})
		here.mustRegister(dir)
		moved := filepath.Join(t.TempDir(), "moved")
		for name, c := range map[string]struct {
			of   loop.Node
			dir  string
			want bool
		}{
			"registered":           {here.node(), dir, true},
			"never registered":     {here.node(), gittest.Repo(t, nil), false},
			"with an id of nobody": {here.node(), theirs, false},
			"a home that is new":   {loop.Node{}, dir, false},
		} {
			if _, placed, err := node.Find(t.Context(), s, c.of, dirsOf(t, c.dir), ""); placed != c.want || err != nil {
				t.Errorf("%s: placed %t, %v", name, placed, err)
			}
		}
		if _, placed, err := node.Find(t.Context(), s, elsewhere.node(), dirsOf(t, dir), ""); placed || err == nil {
			t.Errorf("on another node: placed %t, %v", placed, err)
		}
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		if _, placed, err := node.Find(t.Context(), s, here.node(), dirsOf(t, moved), ""); placed || err != nil {
			t.Errorf("moved since: placed %t, %v", placed, err)
		}
	})
}
