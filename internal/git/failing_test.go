//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

var errNotStarted = errors.New("it cannot be started")

// failing starts processes, but not one of them.
type failing struct {
	mu     sync.Mutex
	in     int // so many from now on
	struck bool
}

func (f *failing) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	f.mu.Lock()
	f.in--
	fail := f.in == 0
	f.struck = f.struck || fail
	f.mu.Unlock()
	if fail {
		return proc.Result{}, errNotStarted
	}
	return proc.Plain{}.Run(ctx, spec)
}

// given is what the verbs are tried on: a branch main at Base, a commit on top of
// it, and another one beside that.
type given struct {
	dir, remote       string
	base              Base
	next, nextTo      string
	snapshot, scratch string
}

func newGiven(t *testing.T) given {
	t.Helper()
	dir := gittest.Repo(t, map[string]string{"f": lines, "g": "1", ".gitignore": "*.o\n"})
	r := open(t, dir)
	g := given{dir: dir, base: base(t, r), snapshot: SnapshotPrefix + "ci/1", scratch: t.TempDir()}
	commit := func(text string) string {
		file := filepath.Join(t.TempDir(), "f")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := r.Candidate(t.Context(), object.Draft{
			Base: g.base.Commit, Changes: []object.FileChange{{Path: "f", Mode: object.ModeFile, From: file}}, Message: "m", When: when,
		})
		must(t, err)
		return c.Commit
	}
	g.next, g.nextTo = commit(edited("2", "x")), commit(edited("8", "y"))
	must(t, r.UpdateRef(t.Context(), g.snapshot, g.nextTo, ""))
	must(t, os.MkdirAll(filepath.Join(g.scratch, "objects/pack"), 0o700))
	must(t, r.HoldCandidate(t.Context(), "run_1", 1, g.next))
	gittest.Run(t, dir, "pack-refs", "--all")
	must(t, r.HoldCandidate(t.Context(), "run_2", 1, g.nextTo)) // One is packed, one is not.
	g.remote = bareRemote(t).URL
	return g
}

// verb is one way to use a repository; the error is all that counts.
type verb func(ctx context.Context, r *Repo, g given) error

// verbs are those that may be repeated on one repository.
var verbs = map[string]verb{
	"Base":   func(ctx context.Context, r *Repo, _ given) error { _, err := r.Base(ctx, ""); return err },
	"Dirty":  func(ctx context.Context, r *Repo, _ given) error { _, err := r.Dirty(ctx); return err },
	"List":   func(ctx context.Context, r *Repo, g given) error { _, err := r.List(ctx, g.next); return err },
	"Parent": func(ctx context.Context, r *Repo, g given) error { _, err := r.Parent(ctx, g.next); return err },
	"Changed": func(ctx context.Context, r *Repo, g given) error {
		_, err := r.Changed(ctx, g.base.Commit, g.next)
		return err
	},
	"TreeOf": func(ctx context.Context, r *Repo, g given) error { _, err := r.TreeOf(ctx, g.next); return err },
	"Diff": func(ctx context.Context, r *Repo, g given) error {
		_, err := r.Diff(ctx, g.base.Commit, g.next)
		return err
	},
	"DiffStat": func(ctx context.Context, r *Repo, g given) error {
		_, _, _, err := r.DiffStat(ctx, g.base.Commit, g.next)
		return err
	},
	"Show": func(ctx context.Context, r *Repo, g given) error { _, err := r.Show(ctx, g.next, "f"); return err },
	"Contains": func(ctx context.Context, r *Repo, g given) error {
		_, err := r.Contains(ctx, g.next, g.base.Commit)
		return err
	},
	"Ref": func(ctx context.Context, r *Repo, _ given) error {
		_, _, err := r.Ref(ctx, "refs/heads/main")
		return err
	},
	"Refs":      func(ctx context.Context, r *Repo, _ given) error { _, err := r.Refs(ctx, "refs/heads/"); return err },
	"Snapshots": func(ctx context.Context, r *Repo, _ given) error { _, err := r.Snapshots(ctx); return err },
	"PackRefs":  func(ctx context.Context, r *Repo, _ given) error { return r.PackRefs(ctx) },
	"Absent":    func(ctx context.Context, r *Repo, g given) error { _, err := r.Absent(ctx, g.next); return err },
	"PackReach": func(ctx context.Context, r *Repo, g given) error {
		_, err := r.PackReach(ctx, g.scratch, Reach{Commit: g.next, Without: g.base.Commit})
		return err
	},
	"CanAdvance": func(ctx context.Context, r *Repo, g given) error {
		return r.CanAdvance(ctx, Advance{Branch: "main", Onto: g.base.Commit, Commit: g.next})
	},
	"Commit": func(ctx context.Context, r *Repo, g given) error {
		_, err := r.Commit(ctx, g.base.Tree, []string{g.base.Commit}, "m", when)
		return err
	},
	"Rebase": func(ctx context.Context, r *Repo, g given) error {
		_, conflicts, err := r.Rebase(ctx, Replay{Commit: g.next, Onto: g.nextTo, When: when})
		if len(conflicts) > 0 {
			return nil // None of the two changes is at the place of the other.
		}
		return err
	},
	"Candidate": func(ctx context.Context, r *Repo, g given) error {
		_, err := r.Candidate(ctx, object.Draft{Base: g.next, Changes: []object.FileChange{{Path: "g", Delete: true}}, Message: "m", When: when})
		return err
	},
	"CandidateRuns": func(ctx context.Context, r *Repo, _ given) error { _, err := r.CandidateRuns(ctx); return err },
	"Push": func(ctx context.Context, r *Repo, g given) error {
		return r.Push(ctx, Push{To: Remote{URL: g.remote, Local: true, Environ: os.Environ()}, Commit: g.next, Ref: pushed})
	},
	"RemoteRef": func(ctx context.Context, r *Repo, g given) error {
		_, _, err := r.RemoteRef(ctx, Remote{URL: g.remote, Local: true, Environ: os.Environ()}, pushed)
		return err
	},
	"Ignores": func(ctx context.Context, r *Repo, g given) error {
		ignores := r.Ignores(ctx, filepath.Join(g.scratch, "rules"), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\n"), 0o600)
		})
		ignored := ignores.Ignored([]string{"a.o", "b.c"})
		err := ignores.Close()
		if err == nil && (!ignored[0] || ignored[1]) {
			err = fmt.Errorf("a.o, b.c: %v", ignored)
		}
		return err
	},
}

// movers change refs, each try on a repository of its own.
var movers = map[string]verb{
	"Base of a detached HEAD": func(ctx context.Context, r *Repo, g given) error {
		if err := os.WriteFile(filepath.Join(g.dir, ".git/HEAD"), []byte(g.next+"\n"), 0o600); err != nil {
			return err
		}
		_, err := r.Base(ctx, "")
		return err
	},
	"ShallowFor": func(ctx context.Context, r *Repo, g given) error {
		if err := os.WriteFile(filepath.Join(g.dir, ".git/shallow"), []byte(g.base.Commit+"\n"), 0o600); err != nil {
			return err
		}
		_, err := r.ShallowFor(ctx, g.next)
		return err
	},
	"UpdateRef": func(ctx context.Context, r *Repo, g given) error { return r.UpdateRef(ctx, "refs/pawl/x", g.next, "") },
	"DeleteRef": func(ctx context.Context, r *Repo, g given) error { return r.DeleteRef(ctx, g.snapshot, g.nextTo) },
	"Advance": func(ctx context.Context, r *Repo, g given) error {
		return r.Advance(ctx, Advance{Branch: "main", Onto: g.base.Commit, Commit: g.next})
	},
	"DropCandidates": func(ctx context.Context, r *Repo, _ given) error { return r.DropCandidates(ctx, "run_1") },
	"candidates in a ref table": func(ctx context.Context, r *Repo, g given) error {
		if err := os.Mkdir(filepath.Join(g.dir, ".git/reftable"), 0o700); err != nil {
			return err
		}
		if err := r.HoldCandidate(ctx, "run_3", 2, g.next); err != nil {
			return err
		}
		runs, err := r.CandidateRuns(ctx)
		if err == nil && strings.Join(runs, " ") != "run_1 run_2 run_3" {
			return fmt.Errorf("runs = %q", runs)
		}
		for _, run := range []string{"run_1", "run_3"} {
			if err == nil {
				err = r.DropCandidates(ctx, run)
			}
		}
		if err != nil {
			return err
		}
		if runs, err = r.CandidateRuns(ctx); err == nil && strings.Join(runs, " ") != "run_2" {
			return fmt.Errorf("runs that are left = %q", runs)
		}
		return err
	},
}

// What a verb would answer without the answer of git is made up: that nothing
// stands against landing, that a branch is not there, that nothing was changed.
func TestNoVerbForgetsThatGitCouldNotBeStarted(t *testing.T) {
	try := func(name string, do verb, g given, n int) (struck bool) {
		t.Helper()
		f := &failing{}
		r, err := OpenWith(t.Context(), f, g.dir)
		must(t, err)
		r.Store = object.At(r.git, r.Format, func() ([]string, error) { return nil, nil }) // Git reads and writes all objects.
		f.in = n
		err = do(t.Context(), r, g)
		switch {
		case f.struck && (err == nil || !strings.Contains(err.Error(), errNotStarted.Error())):
			t.Errorf("%s = %v though its process %d could not be started", name, err, n)
		case !f.struck && err != nil:
			t.Errorf("%s = %v", name, err)
		case !f.struck && n == 1:
			t.Errorf("%s starts no process", name)
		}
		return f.struck
	}
	ordinary, symbolic := newGiven(t), newGiven(t)
	gittest.Run(t, symbolic.dir, "branch", "real")
	gittest.Run(t, symbolic.dir, "symbolic-ref", "refs/heads/main", "refs/heads/real")
	for name, do := range verbs {
		g := ordinary
		switch name {
		case "CandidateRuns":
			continue // It reads files.
		case "Ref":
			g = symbolic // Of others it reads files.
		}
		for n := 1; try(name, do, g, n); n++ {
		}
	}
	for name, do := range movers {
		for n := 1; try(name, do, newGiven(t), n); n++ {
		}
	}
	_, err := OpenWith(t.Context(), &failing{in: 1}, gittest.Repo(t, nil, "--object-format=sha256"))
	wantFault(t, err, loop.ExitMissing, "install git")
}

func TestNoVerbLeavesAFileOpen(t *testing.T) {
	descriptors := func() int {
		list, err := os.ReadDir("/dev/fd")
		must(t, err)
		return len(list)
	}
	g := newGiven(t)
	r := open(t, g.dir)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // It would close what was forgotten.
	for _, list := range []map[string]verb{verbs, {"Advance": movers["Advance"], "DropCandidates": movers["DropCandidates"]}} {
		for name, do := range list {
			before := descriptors()
			must(t, do(t.Context(), r, g))
			for i := 0; descriptors() > before; i++ {
				if i == 200 {
					t.Errorf("%s leaves %d files open", name, descriptors()-before)
					break
				}
				time.Sleep(10 * time.Millisecond) // A process that was left alone may be ending.
			}
		}
	}
}

// What reaches git as an object name must be one: it could be an option, or a
// name that means something else a moment later.
func TestNoVerbTakesANameForAnObject(t *testing.T) {
	g := newGiven(t)
	started := &gittest.Counting{}
	r, err := OpenWith(t.Context(), started, g.dir)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(g.dir, ".git/shallow"), []byte(g.base.Commit+"\n"), 0o600))
	started.Verbs = nil
	ctx, ok := t.Context(), g.next
	for name, call := range map[string]func(id string) error{
		"List":           func(id string) error { _, err := r.List(ctx, id); return err },
		"Parent":         func(id string) error { _, err := r.Parent(ctx, id); return err },
		"Changed from":   func(id string) error { _, err := r.Changed(ctx, id, ok); return err },
		"Changed to":     func(id string) error { _, err := r.Changed(ctx, ok, id); return err },
		"TreeOf":         func(id string) error { _, err := r.TreeOf(ctx, id); return err },
		"Diff from":      func(id string) error { _, err := r.Diff(ctx, id, ok); return err },
		"Diff to":        func(id string) error { _, err := r.Diff(ctx, ok, id); return err },
		"DiffStat":       func(id string) error { _, _, _, err := r.DiffStat(ctx, ok, id); return err },
		"Show":           func(id string) error { _, err := r.Show(ctx, id, "f"); return err },
		"Commit tree":    func(id string) error { _, err := r.Commit(ctx, id, nil, "m", when); return err },
		"Commit parent":  func(id string) error { _, err := r.Commit(ctx, ok, []string{ok, id}, "m", when); return err },
		"Contains tip":   func(id string) error { _, err := r.Contains(ctx, id, ok); return err },
		"Contains":       func(id string) error { _, err := r.Contains(ctx, ok, id); return err },
		"CanAdvance":     func(id string) error { return r.CanAdvance(ctx, Advance{Branch: "main", Onto: ok, Commit: id}) },
		"Advance onto":   func(id string) error { return r.Advance(ctx, Advance{Branch: "main", Onto: id, Commit: ok}) },
		"Advance branch": func(id string) error { return r.Advance(ctx, Advance{Branch: id + "..", Onto: ok, Commit: ok}) },
		"UpdateRef":      func(id string) error { return r.UpdateRef(ctx, "refs/pawl/x", id, "") },
		"UpdateRef old":  func(id string) error { return r.UpdateRef(ctx, "refs/pawl/x", ok, id) },
		"DeleteRef":      func(id string) error { return r.DeleteRef(ctx, g.snapshot, id) },
		"PackReach":      func(id string) error { _, err := r.PackReach(ctx, g.scratch, Reach{Commit: id}); return err },
		"PackReach beside": func(id string) error {
			_, err := r.PackReach(ctx, g.scratch, Reach{Commit: ok, Without: id})
			return err
		},
		"Absent":     func(id string) error { _, err := r.Absent(ctx, id); return err },
		"ShallowFor": func(id string) error { _, err := r.ShallowFor(ctx, id); return err },
		"Rebase": func(id string) error {
			_, _, err := r.Rebase(ctx, Replay{Base: ok, Commit: id, Onto: ok, Message: "m"})
			return err
		},
		"Rebase onto": func(id string) error {
			_, _, err := r.Rebase(ctx, Replay{Base: ok, Commit: ok, Onto: id, Message: "m"})
			return err
		},
		"Rebase base": func(id string) error {
			_, _, err := r.Rebase(ctx, Replay{Base: id, Commit: ok, Onto: ok, Message: "m"})
			return err
		},
		"Candidate":      func(id string) error { _, err := r.Candidate(ctx, object.Draft{Base: id}); return err },
		"Candidate tree": func(id string) error { _, err := r.Candidate(ctx, object.Draft{Tree: id}); return err },
		"HoldCandidate":  func(id string) error { return r.HoldCandidate(ctx, "run", 1, id) },
		"Push": func(id string) error {
			return r.Push(ctx, Push{To: Remote{URL: g.remote, Local: true}, Commit: id, Ref: pushed})
		},
	} {
		for _, id := range []string{"-x", "main~1", strings.Repeat("z", len(ok)), ok[:len(ok)-1]} {
			if err := call(id); err == nil {
				t.Errorf("%s took %q", name, id)
			}
			if started.Verbs != nil {
				t.Errorf("%s started git %q for %q", name, started.Verbs, id)
				started.Verbs = nil
			}
		}
	}
	if err := r.DeleteRef(ctx, g.snapshot, ""); err == nil {
		t.Error("a ref was deleted whatever its value is")
	}
	if id, there, err := r.Ref(ctx, g.snapshot); id != g.nextTo || !there || err != nil {
		t.Errorf("%s = %s, %v, %v, want that it stays at %s", g.snapshot, id, there, err, g.nextTo)
	}
}
