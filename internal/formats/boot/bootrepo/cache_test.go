//go:build unix

package bootrepo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAWarmCacheNeedsNoGitForARepositoryOnThisMachine(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	gittest.Run(t, dir, "gc", "-q")
	for _, reference := range []string{"main", head(t, dir)} {
		link := linkTo(dir, reference)
		want := r.load(link)
		r.cache.Now = func() time.Time { return when.Add(time.Hour) }
		verbs := r.processes(func() {
			if got := r.load(link); got.Commit != want.Commit || !got.Fetched.Equal(when) || got.Offline != "" {
				t.Errorf("commit %s, fetched %s, offline %q", got.Commit, got.Fetched, got.Offline)
			}
		})
		if len(verbs) > 0 {
			t.Errorf("%s: git was started: %q", reference, verbs)
		}
	}
}

func TestABranchElsewhereIsLookedUpAndACommitIsNot(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	gittest.Run(t, dir, "tag", "-a", "-m", "m", "v1")
	commit(t, dir, "contract/AGENT_RULES.md", "# Second\n")
	address := r.serve(dir, plain) + "/.git"
	for _, c := range []struct {
		reference string
		cold      []string
		warm      []string
	}{
		{"main", []string{"ls-remote", "fetch", "cat-file"}, []string{"ls-remote"}},
		{"v1", []string{"ls-remote", "fetch", "cat-file"}, []string{"ls-remote"}},
		{head(t, dir), nil, nil},
	} {
		for i, want := range [][]string{c.cold, c.warm} {
			if got := r.processes(func() { r.load(linkTo(address, c.reference)) }); !slices.Equal(got, want) {
				t.Errorf("%s, load %d: git %q, want %q", c.reference, i+1, got, want)
			}
		}
	}
	newer := commit(t, dir, "contract/AGENT_RULES.md", "# New\n")
	if got := r.load(linkTo(address, "main")); got.Commit != newer || got.Rules != "# New\n" {
		t.Errorf("the branch has moved, and the commit is %s", got.Commit)
	}
}

func TestARepositoryThatIsAwayIsReadFromTheCacheAndThatIsSaid(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	link := linkTo(dir, "main")
	want := r.load(link)
	gone := dir + "-away"
	if err := os.Rename(dir, gone); err != nil {
		t.Fatal(err)
	}
	if got := r.load(link); got.Commit != want.Commit || got.Offline != "no git repository is there" || !got.Fetched.Equal(when) {
		t.Errorf("commit %s, offline %q, fetched %s", got.Commit, got.Offline, got.Fetched)
	}
	// A commit does not have to be looked up.
	if got := r.load(linkTo(dir, want.Commit)); got.Offline != "" {
		t.Errorf("offline: %s", got.Offline)
	}
	_, err := r.cache.Load(t.Context(), linkTo(dir, "other"), r.root)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "no git repository is there")
	// A version that does not fit is refused from the cache as well.
	other := link
	other.Version.Major = 2
	_, err = r.cache.Load(t.Context(), other, r.root)
	wantError(t, err, loop.ReasonVersionMajor, loop.ExitNotReady, "")
	// One that is there and has the branch no more is not away.
	if err := os.Rename(gone, dir); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, dir, "branch", "-m", "main", "trunk")
	_, err = r.cache.Load(t.Context(), link, r.root)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, `has no "main"`)
}

func TestALoadThatIsEndedIsNotOffline(t *testing.T) {
	r := newRig(t)
	link := linkTo(r.serve(gittest.Repo(t, standard(nil)), plain)+"/.git", "main")
	r.load(link)
	why := errors.New("kill switch")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if c, err := r.cache.Load(ctx, link, r.root); !errors.Is(err, why) {
		t.Errorf("Load = %+v, %v, want the cause", c, err)
	}
}

func TestADamagedCacheIsNoticedAndMadeAnew(t *testing.T) {
	for name, damage := range map[string]func(text []byte) []byte{
		"cut":          func(text []byte) []byte { return text[:len(text)/2] },
		"empty":        func([]byte) []byte { return nil },
		"a bit":        func(text []byte) []byte { text[len(text)/2] ^= 1; return text },
		"another file": func([]byte) []byte { return slices.Concat(digestOf([]byte("{}")), []byte("\n{}")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := linkTo(gittest.Repo(t, standard(nil)), "main")
			want := r.load(link)
			for _, pattern := range []string{"*/contracts/*", "*/tips"} {
				kept, err := filepath.Glob(filepath.Join(r.cache.Dir, pattern))
				if err != nil || len(kept) != 1 {
					t.Fatalf("%s: %q, %v", pattern, kept, err)
				}
				text, err := os.ReadFile(kept[0])
				if err == nil {
					err = os.WriteFile(kept[0], damage(slices.Clone(text)), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := r.load(link); got.Commit != want.Commit || got.Rules != want.Rules {
					t.Errorf("%s: commit %s, rules %q", pattern, got.Commit, got.Rules)
				}
				if again, err := os.ReadFile(kept[0]); err != nil || !slices.Equal(again, text) {
					t.Errorf("%s: it was not made anew: %q, %v", pattern, again, err)
				}
			}
		})
	}
}

func TestOldContractsAreRemoved(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	first := r.load(linkTo(dir, "main")).Commit
	for i := range maxKept + 3 {
		commit(t, dir, "contract/AGENT_RULES.md", strconv.Itoa(i))
		r.load(linkTo(dir, "main"))
	}
	kept, err := filepath.Glob(filepath.Join(r.cache.Dir, "*", "contracts", "*"))
	if err != nil || len(kept) != maxKept || slices.ContainsFunc(kept, func(p string) bool { return strings.HasSuffix(p, first) }) {
		t.Errorf("%d contracts are kept, %v, want %d without the first", len(kept), err, maxKept)
	}
}

func TestOneRepositoryIsLoadedByManyAtOnce(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	want := head(t, dir)
	link := linkTo(r.serve(dir, plain)+"/.git", "main")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if c, err := r.cache.Load(t.Context(), link, r.root); err != nil || c.Commit != want {
				t.Errorf("Load = %s, %v", c.Commit, err)
			}
		})
	}
	all.Wait()
	if fetches := len(slices.DeleteFunc(r.git.Verbs, func(v string) bool { return v != "fetch" })); fetches != 1 {
		t.Errorf("it was fetched %d times", fetches)
	}
}

const (
	envKilled = "PAWL_TEST_BOOTREPO_LOAD"
	envSSH    = "PAWL_TEST_BOOTREPO_SSH"
)

// TestMain is also a process that loads: one of several, or one that is killed while it
// fetches.
func TestMain(m *testing.M) {
	if dir := os.Getenv(envKilled); dir != "" {
		cache := Cache{Dir: dir, Environ: os.Environ(), Exec: proc.Plain{}, Now: time.Now}
		c, err := cache.Load(context.Background(), linkTo(os.Getenv(envSSH), "main"), "/")
		if err != nil {
			println(err.Error())
		}
		fmt.Print(c.Commit)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOneRepositoryIsLoadedByManyProcessesAtOnce(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	folder := t.TempDir()
	program, asked := filepath.Join(folder, "ssh"), filepath.Join(folder, "asked")
	script := "#!/bin/sh\nfor command; do :; done\necho asked >> " + asked + "\nexec sh -c \"$command\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes = 5
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(slices.Clone(r.cache.Environ), "GIT_SSH="+program, "GIT_SSH_VARIANT=simple", envKilled+"="+r.cache.Dir, envSSH+"=ssh://git@git.example.com"+dir)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != head(t, dir) {
				t.Errorf("a process says %q, %v", out, err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(asked)
	if n := strings.Count(string(text), "asked"); err != nil || n != processes+1 {
		t.Errorf("the other side was asked %d times, %v: want once by each process, and one fetch", n, err)
	}
	if left, err := filepath.Glob(filepath.Join(r.cache.Dir, "*", "*", ".half-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The other side sends the beginning of a pack and no more. The process that fetches is
// killed then, and what it started with it or later.
func TestAFetchThatIsKilledLeavesNothingInTheWayOfTheNext(t *testing.T) {
	r := newRig(t)
	noise := rand.New(rand.NewPCG(1, 2))
	var long strings.Builder
	for range 10_000 {
		fmt.Fprintf(&long, "%x\n", noise.Uint64())
	}
	dir := gittest.Repo(t, standard(map[string]string{"noise": long.String()}))
	folder := t.TempDir()
	program, reached := filepath.Join(folder, "ssh"), filepath.Join(folder, "reached")
	// The first connection is the look-up. The second one ends when the folder is gone.
	script := `#!/bin/sh
for command; do :; done
if [ -e DIR/whole ] || [ ! -e DIR/second ]; then
	touch DIR/second
	exec sh -c "$command"
fi
sh -c "$command" | {
	dd bs=1 count=4000 2>/dev/null
	touch DIR/reached
	while [ -e DIR/second ]; do sleep 0.1; done
}
`
	script = strings.ReplaceAll(script, "DIR", folder)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	address := "ssh://git@git.example.com" + dir
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	variables := append(slices.Clone(r.cache.Environ), "GIT_SSH="+program, "GIT_SSH_VARIANT=simple")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	killed := make(chan error, 1)
	var mu sync.Mutex
	process := 0
	go func() {
		child, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
			Env: append(slices.Clone(variables), envKilled+"="+r.cache.Dir, envSSH+"="+address), Files: []*os.File{nil, os.Stderr, os.Stderr},
			Sys: &syscall.SysProcAttr{Setpgid: true},
		})
		if err == nil {
			mu.Lock()
			process = child.Pid
			mu.Unlock()
			_, err = child.Wait()
		}
		killed <- err
	}()
	for ctx.Err() == nil {
		if _, err := os.Stat(reached); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	mu.Lock()
	err = syscall.Kill(process, syscall.SIGKILL)
	mu.Unlock()
	if err := errors.Join(err, <-killed, ctx.Err()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(r.cache.Dir, "*", "pawl-remote-*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the killed process left %q, %v: it was not in the middle of a fetch", left, err)
	}
	gittest.WriteFile(t, filepath.Join(folder, "whole"), "")
	r.cache.Environ = variables
	if got := r.load(linkTo(address, "main")).Commit; got != head(t, dir) {
		t.Errorf("the commit is %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(r.cache.Dir, "*", "pawl-remote-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func BenchmarkLoadFromAWarmCache(b *testing.B) {
	dir := gittest.Repo(b, standard(nil))
	cache := Cache{Dir: filepath.Join(b.TempDir(), "boot"), Exec: proc.Plain{}, Now: time.Now}
	for b.Loop() {
		if _, err := cache.Load(b.Context(), linkTo(dir, "main"), "/"); err != nil {
			b.Fatal(err)
		}
	}
}
