package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// rig is a repository and a cache of mirrors.
type rig struct {
	t     *testing.T
	dir   string
	repo  *git.Repo
	git   *gittest.Counting
	cache mirror.Cache
	said  []string
}

func newRig(t *testing.T, dir string) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir, git: &gittest.Counting{}}
	r.cache = mirror.Cache{Dir: filepath.Join(t.TempDir(), "mirrors"), Now: time.Now, Say: func(s string) { r.said = append(r.said, s) }}
	var err error
	if r.repo, err = git.OpenWith(t.Context(), r.git, dir); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) run(args ...string) string { r.t.Helper(); return gittest.Run(r.t, r.dir, args...) }

// commit writes a file on the branch that is checked out.
func (r *rig) commit(name, text string) string {
	r.t.Helper()
	gittest.Write(r.t, r.dir, map[string]string{name: text})
	r.run("add", "-A")
	r.run("commit", "-q", "-m", name)
	return r.run("rev-parse", "HEAD")
}

func (r *rig) open(base string) *mirror.Mirror { r.t.Helper(); return r.openAs(base, false) }

func (r *rig) openAs(base string, alone bool) *mirror.Mirror {
	r.t.Helper()
	m, err := r.cache.Open(r.t.Context(), "key", r.repo, base, alone)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(m.Release)
	return m
}

// objects lists all objects below an object directory, sorted, and holds that git
// finds no fault with it.
func objects(t *testing.T, m *mirror.Mirror) []string {
	t.Helper()
	inside := t.TempDir()
	gittest.Run(t, inside, "init", "-q", "--object-format="+map[int]string{40: "sha1", 64: "sha256"}[len(m.Base)])
	if err := os.WriteFile(filepath.Join(inside, ".git/objects/info/alternates"), []byte(m.Objects+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m.Shallow != nil {
		if err := os.WriteFile(filepath.Join(inside, ".git/shallow"), m.Shallow, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Run(t, inside, "update-ref", "refs/heads/x", m.Base)
	gittest.Run(t, inside, "fsck", "--full", "--strict", "x")
	return lines(gittest.Run(t, inside, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
}

// reached lists what a commit reaches, sorted.
func reached(r *rig, revs ...string) []string {
	r.t.Helper()
	return lines(r.run(append([]string{"rev-list", "--objects", "--no-object-names"}, revs...)...))
}

func lines(text string) []string {
	list := strings.Fields(text)
	slices.Sort(list)
	return slices.Compact(list)
}

func wantObjects(t *testing.T, m *mirror.Mirror, want []string) {
	t.Helper()
	if got := objects(t, m); !slices.Equal(got, want) {
		t.Errorf("the mirror of %s holds %d objects\n%v\nwant %d\n%v", m.Base, len(got), got, len(want), want)
	}
}

// packs counts the packs of a mirror.
func packs(t *testing.T, m *mirror.Mirror) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(m.Objects, "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAMirrorHoldsWhatItsBaseReachesAndNothingElse(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n", "d/b": "2\n"}, "--object-format="+format))
			r.commit("d/c", "3\n")
			r.run("tag", "-a", "-m", "note", "v1")
			r.run("checkout", "-q", "-b", "other")
			r.commit("canary", "of a deleted branch\n")
			r.run("checkout", "-q", "main")
			r.run("branch", "-q", "-D", "other")
			gittest.Write(t, r.dir, map[string]string{"a": "stashed\n"})
			r.run("stash", "-q")
			if format == "sha1" {
				r.run("gc", "-q")
			}
			base := r.run("rev-parse", "main")
			m := r.open(base)
			wantObjects(t, m, reached(r, "main"))
			if len(r.said) != 1 || !strings.HasPrefix(r.said[0], "history: packed what "+base[:12]+" reaches for the sandbox: ") {
				t.Errorf("said %q, want once what it cost", r.said)
			}
		})
	}
}

func TestAMirrorThatIsThereCostsNoGit(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	base := r.run("rev-parse", "HEAD")
	r.open(base).Release()
	r.git.Verbs, r.said = nil, nil
	again := r.open(base)
	if len(r.git.Verbs)+len(r.said) > 0 {
		t.Errorf("git %q was started and %q was said", r.git.Verbs, r.said)
	}
	again.Release()
	again.Release()
}

func TestABaseThatMovesForwardsAddsOnePack(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n", "b": strings.Repeat("x", 1000)}))
	first := r.open(r.run("rev-parse", "HEAD"))
	was := objects(t, first)
	next := r.open(r.commit("a", "2\n"))
	wantObjects(t, next, reached(r, "main"))
	if n := len(packs(t, next)); n != 2 {
		t.Errorf("%d packs, want 2", n)
	}
	shared := packs(t, first)[0]
	one, err := os.Stat(shared)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Stat(filepath.Join(next.Objects, "pack", filepath.Base(shared)))
	if err != nil || !os.SameFile(one, other) {
		t.Errorf("the first pack was copied: %v", err)
	}
	wantObjects(t, first, was) // Programs that run still see the old one.
	if len(r.said) != 1 {
		t.Errorf("said %q, want nothing of the second", r.said)
	}
}

func TestABaseThatMovesElsewhereIsMirroredAnew(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	root := r.run("rev-parse", "HEAD")
	secret := r.commit("secret", "canary\n")
	r.open(secret).Release()
	r.run("reset", "-q", "--hard", root)
	forced := r.commit("b", "2\n")
	m := r.open(forced)
	wantObjects(t, m, reached(r, forced))
	wantObjects(t, r.open(root), reached(r, root))
}

func TestManySmallPacksBecomeOne(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	most := 0
	for i := range 25 {
		m := r.open(r.commit("a", fmt.Sprintln(i)))
		most = max(most, len(packs(t, m)))
		m.Release()
		if i%6 == 0 {
			wantObjects(t, m, reached(r, "main"))
		}
	}
	if most > 10 {
		t.Errorf("a mirror had %d packs", most)
	}
	entries, err := os.ReadDir(filepath.Join(r.cache.Dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(entries) - 2; n > 6 {
		t.Errorf("%d mirrors stay though nobody uses them", n)
	}
}

func TestAloneABaseHasNoCommitsBeforeIt(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n", "d/b": "2\n"}))
	r.commit("a", "two\n")
	base := r.commit("c", "3\n")
	m := r.openAs(base, true)
	want := append(lines(r.run("rev-parse", base, base+"^{tree}")), lines(r.run("ls-tree", "-r", "-t", "--format=%(objectname)", base))...)
	slices.Sort(want)
	wantObjects(t, m, want)
	if string(m.Shallow) != base+"\n" {
		t.Errorf("the history ends at %q", m.Shallow)
	}
	// The next one must not build on it, nor on what is whole.
	r.open(base)
	next := r.openAs(r.commit("a", "four\n"), true)
	if n := len(objects(t, next)); n != 6 {
		t.Errorf("%d objects, want the commit, two trees and three files", n)
	}
}

func TestAShallowCloneEndsWhereItEnds(t *testing.T) {
	origin := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	for i := range 4 {
		origin.commit("a", fmt.Sprintln("more", i))
	}
	dir := filepath.Join(t.TempDir(), "clone")
	gittest.Run(t, t.TempDir(), "clone", "-q", "--depth=2", "file://"+origin.dir, dir)
	r := newRig(t, dir)
	base := r.run("rev-parse", "HEAD")
	m := r.open(base)
	wantObjects(t, m, reached(r, "HEAD"))
	if got, want := string(m.Shallow), r.run("rev-parse", "HEAD~1")+"\n"; got != want {
		t.Errorf("the history ends at %q, want %q", got, want)
	}
	// One that became deeper is another one.
	r.run("fetch", "-q", "--deepen=1")
	deeper := r.open(base)
	wantObjects(t, deeper, reached(r, "HEAD"))
	if got, want := string(deeper.Shallow), r.run("rev-parse", "HEAD~2")+"\n"; got != want {
		t.Errorf("the history ends at %q, want %q", got, want)
	}
	r.run("fetch", "-q", "--unshallow")
	whole := r.open(base)
	wantObjects(t, whole, reached(r, "HEAD"))
	if whole.Shallow != nil {
		t.Errorf("a whole history ends at %q", whole.Shallow)
	}
}

// promised makes a partial clone whose remote is then a server that nobody may
// contact. It returns the clone and the number of its connections.
func promised(t *testing.T, origin string, args ...string) (dir string, contacts *atomic.Int32) {
	t.Helper()
	gittest.Run(t, origin, "config", "uploadpack.allowFilter", "true")
	gittest.Run(t, origin, "config", "uploadpack.allowAnySHA1InWant", "true")
	dir = filepath.Join(t.TempDir(), "clone")
	gittest.Run(t, t.TempDir(), append(append([]string{"clone", "-q"}, args...), "file://"+origin, dir)...)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	contacts = new(atomic.Int32)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			contacts.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { server.Close(); <-done })
	gittest.Run(t, dir, "remote", "set-url", "origin", "git://"+server.Addr().String()+"/x")
	return dir, contacts
}

func TestOfAPartialCloneNothingIsFetched(t *testing.T) {
	origin := newRig(t, gittest.Repo(t, map[string]string{"a": "old\n"}))
	origin.commit("a", "new\n")
	dir, contacts := promised(t, origin.dir, "--filter=blob:none")
	r := newRig(t, dir)
	m := r.open(r.run("rev-parse", "HEAD"))
	inside := t.TempDir()
	gittest.Run(t, inside, "init", "-q")
	if err := os.WriteFile(filepath.Join(inside, ".git/objects/info/alternates"), []byte(m.Objects+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Run(t, inside, "log", "--format=%s", m.Base); got != "a\nfirst" {
		t.Errorf("log = %q", got)
	}
	if got := gittest.Run(t, inside, "show", m.Base+":a"); got != "new" {
		t.Errorf("the base's file = %q", got)
	}
	if old, err := gittest.Try(t.Context(), inside, "show", m.Base+"~1:a"); err == nil {
		t.Errorf("a file that the clone has not fetched = %q", old)
	}
	next := r.open(r.commit("b", "3\n"))
	if n := len(packs(t, next)); n != 2 {
		t.Errorf("%d packs after the base moved, want 2", n)
	}
	if n := contacts.Load(); n > 0 {
		t.Errorf("the remote was contacted %d times", n)
	}
}

func TestAPartialCloneWithoutTheFilesOfItsBaseIsRefusedWithTheFix(t *testing.T) {
	origin := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n", "b": "2\n"}))
	dir, contacts := promised(t, origin.dir, "--filter=blob:none", "--no-checkout")
	r := newRig(t, dir)
	_, err := r.cache.Open(t.Context(), "key", r.repo, r.run("rev-parse", "HEAD"), false)
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != loop.ExitNotReady || !strings.Contains(f.What, "2 files of commit") || !strings.Contains(f.Advice().String(), "git checkout") {
		t.Errorf("Open = %v, want what is missing and the fix", err)
	}
	if n := contacts.Load(); n > 0 {
		t.Errorf("the remote was contacted %d times", n)
	}
}

func TestAPathOfAnyCharactersIsMirrored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a:b "c" [d] \e*`)
	if err := os.Rename(gittest.Repo(t, map[string]string{"a": "1\n"}), dir); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, dir)
	wantObjects(t, r.open(r.run("rev-parse", "HEAD")), reached(r, "HEAD"))
	if left, _ := filepath.Glob(filepath.Join(gittest.Repo(t, nil), ".git/objects/pack/tmp*")); left != nil {
		t.Errorf("the repository got %q", left)
	}
}

func TestOfTwoThatWantOneMirrorOneMakesIt(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	base := r.run("rev-parse", "HEAD")
	var all sync.WaitGroup
	made := make([]*mirror.Mirror, 8)
	for i := range made {
		all.Go(func() {
			cache := r.cache
			cache.Say = nil
			m, err := cache.Open(t.Context(), "key", r.repo, base, false)
			if err != nil {
				t.Error(err)
				return
			}
			made[i] = m
		})
	}
	all.Wait()
	n := 0
	for _, verb := range r.git.Verbs {
		if verb == "pack-objects" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was packed %d times", n)
	}
	for _, m := range made {
		if m == nil || m.Objects != made[0].Objects {
			t.Fatalf("they hold different mirrors: %v", made)
		}
		m.Release()
	}
}

func TestWhatIsLeftOfAMirrorThatFailedCountsForNothing(t *testing.T) {
	for _, point := range []string{"mirror.pack.before", "mirror.pack.after", "mirror.place.before", "mirror.place.after"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
			base := r.run("rev-parse", "HEAD")
			plan, err := fault.Parse(point + "=ENOSPC")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.cache.Open(fault.With(t.Context(), plan), "key", r.repo, base, false); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Open = %v, want a full disk", err)
			}
			if point == "mirror.place.after" { // It is complete, and nobody holds it.
				unused, err := r.cache.Collect(t.Context(), time.Now().Add(time.Hour), true)
				if err != nil || len(unused) != 1 {
					t.Errorf("Collect = %+v, %v, want the mirror that nobody uses", unused, err)
				}
			}
			// A process that is killed leaves this behind.
			half := filepath.Join(r.cache.Dir, "key", "."+base+".new", "objects", "pack")
			if err := errors.Join(os.MkdirAll(half, 0o700), os.WriteFile(filepath.Join(half, "tmp_pack_x"), []byte("half"), 0o600)); err != nil {
				t.Fatal(err)
			}
			wantObjects(t, r.open(base), reached(r, base))
			hidden, _ := filepath.Glob(filepath.Join(r.cache.Dir, "key", ".*"))
			if hidden != nil && point != "mirror.place.after" {
				t.Errorf("left behind: %q", hidden)
			}
		})
	}
}

func TestWhereAShallowCloneEndsMustBeKnown(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	base := r.run("rev-parse", "HEAD")
	if err := os.Mkdir(filepath.Join(r.dir, ".git", "shallow"), 0o700); err != nil {
		t.Fatal(err)
	}
	if m, err := r.cache.Open(t.Context(), "key", r.repo, base, false); err == nil {
		t.Errorf("Open = %+v though nobody knows where the history ends", m)
	}
}

func TestADamagedMirrorIsMadeAnew(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	base := r.run("rev-parse", "HEAD")
	m := r.open(base)
	pack := packs(t, m)[0]
	if err := errors.Join(os.Chmod(pack, 0o600), os.Truncate(pack, 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.cache.Open(t.Context(), "key", r.repo, base, false); err == nil || !strings.Contains(err.Error(), "damaged, and a run still uses it") {
		t.Errorf("Open = %v, while somebody uses the damaged one", err)
	}
	m.Release()
	wantObjects(t, r.open(base), reached(r, base))
}

// Without its lock, what a mirror has could be removed while the next one takes it over.
func TestAMirrorThatCannotBeLockedIsNotExtended(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	first := r.open(r.run("rev-parse", "HEAD"))
	first.Release()
	lock := filepath.Join(r.cache.Dir, "key", "locks", first.Base)
	if err := errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	if m, err := r.cache.Open(t.Context(), "key", r.repo, r.commit("a", "2\n"), false); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("Open = %+v, %v, want that the lock is a directory", m, err)
	}
}

func TestWhatNobodyUsesIsCollected(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	old := r.open(r.run("rev-parse", "HEAD"))
	held := r.open(r.commit("a", "2\n"))
	old.Release()
	collect := func(before time.Time, dry bool) (bases []string) {
		t.Helper()
		gone, err := r.cache.Collect(t.Context(), before, dry)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gone {
			bases = append(bases, g.Base)
		}
		return bases
	}
	soon := time.Now().Add(time.Hour)
	if got := collect(time.Now().Add(-time.Hour), false); got != nil {
		t.Errorf("removed %q, which was used just now", got)
	}
	for _, dry := range []bool{true, false} {
		if got := collect(soon, dry); !slices.Equal(got, []string{old.Base}) {
			t.Errorf("removed %q, want the one that nobody holds", got)
		}
	}
	wantObjects(t, held, reached(r, "main"))
	u, err := r.cache.Usage("key")
	if err != nil || u.Mirrors != 1 || u.Bytes == 0 || u.Own != u.Bytes {
		t.Errorf("usage = %+v, %v", u, err)
	}
	held.Release()
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	if got := collect(time.Time{}, false); !slices.Equal(got, []string{held.Base}) {
		t.Errorf("removed %q of a repository that is gone", got)
	}
	if left, _ := os.ReadDir(r.cache.Dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAMirrorIsNotRemovedWhileSomebodyWaitsForIt(t *testing.T) {
	r := newRig(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	base := r.run("rev-parse", "HEAD")
	r.open(base).Release()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			if _, err := r.cache.Collect(context.WithoutCancel(ctx), time.Now().Add(time.Hour), false); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 30 {
		m, err := r.cache.Open(t.Context(), "key", r.repo, base, false)
		if err != nil {
			t.Error(err)
			break
		}
		if len(packs(t, m)) != 1 {
			t.Error("the mirror that is held is gone")
		}
		m.Release()
	}
	cancel()
	all.Wait()
}
