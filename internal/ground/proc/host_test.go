//go:build linux

package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/test/sample"
)

func TestAFloodOfOutputCostsBoundedMemory(t *testing.T) {
	flood := int64(sample.Size(64<<20, 1<<30))
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			ring := NewRing(4<<10, 60<<10)
			s := Spec{Argv: []string{"head", "-c", strconv.FormatInt(flood, 10), "/dev/zero"}, Env: []string{systemPath}, Stdout: ring}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := mustRun(t, r, s)
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			if ring.Total() != flood || ring.droppedBytes() != flood-64<<10 || allocated > 4<<20 {
				t.Errorf("%d bytes passed, %d dropped, %d allocated", ring.Total(), ring.droppedBytes(), allocated)
			}
			t.Logf("%d MiB in %v, %d KiB allocated", flood>>20, got.Took, allocated>>10)
		})
	}
}

func TestRunsLeaveNothingBehindInPawl(t *testing.T) {
	count := func() (goroutines, descriptors, children int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		below, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range below {
			b, _ := os.ReadFile(f)
			children += len(strings.Fields(string(b)))
		}
		return runtime.NumGoroutine(), len(fds), children
	}
	runAll := func() {
		for _, m := range append(treeMethods(), plain) {
			s := shellSpec("cat; exit 1")
			s.Stdin, s.Stdout, s.Stderr = strings.NewReader("x"), NewRing(1, 1), NewRing(1, 1)
			mustRun(t, runnerFor(m), s)
			ctx, cancel := context.WithCancel(t.Context())
			ready := onWrite(cancel)
			s = shellSpec("echo; exec sleep 300")
			s.Stdout = &ready
			if got, err := runnerFor(m).Run(ctx, s); err != nil || got.Ended != Canceled {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := runnerFor(m).Run(t.Context(), Spec{Argv: []string{"/no/such"}, Stdout: NewRing(1, 1)}); err == nil {
				t.Error("a program that does not exist started")
			}
		}
	}
	runAll()
	g, f, c := count()
	for range 10 {
		runAll()
	}
	if !waitUntil(long, func() bool { g2, f2, c2 := count(); return g2 <= g && f2 <= f && c2 <= c }) {
		g2, f2, c2 := count()
		t.Errorf("goroutines %d → %d, descriptors %d → %d, children %d → %d", g, g2, f, f2, c, c2)
	}
}

func TestTheStrongestMethodIsTheOneThatTheHostOffers(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("no unshare on this host to ask independently")
	}
	want := Subreaper
	flags := []string{"--user", "--pid", "--fork", "--mount-proc", "--map-root-user", "true"}
	if os.Geteuid() == 0 {
		flags = []string{"--pid", "--fork", "--mount-proc", "true"}
	}
	if exec.Command(unshare, flags...).Run() == nil {
		want = PIDNamespace
	}
	if got := (Tree{}).Method(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAMethodThatDoesNotExistIsRefused(t *testing.T) {
	got, err := Tree{Want: "no-such-method"}.Run(t.Context(), shellSpec("exit 0"))
	if !errors.Is(err, errors.ErrUnsupported) || got.Ended != NotStarted {
		t.Errorf("%+v, %v", got, err)
	}
}

// unprivileged is set when these tests run again as a user without privileges.
const unprivileged = "PAWL_TEST_UNPRIVILEGED"

func TestAllThisHoldsForAnUnprivilegedUser(t *testing.T) {
	if os.Getenv(unprivileged) != "" {
		if os.Geteuid() != 65534 {
			t.Errorf("still uid %d", os.Geteuid())
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("the other tests already run without privilege")
	}
	names := []string{"TestATreeDiesWithPawl", "TestNothingIsLeftWhenATreeIsCut", "TestAllThisHolds"}
	tests := strings.Join(names, "|")
	if sample.All() {
		tests = "."
	}
	cmd := exec.Command("/proc/self/exe", "-test.run="+tests, "-test.skip=Flood|Fuzz", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{systemPath, unprivileged + "=1", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range names {
		if !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("%s did not pass without privilege", name)
		}
	}
}

func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlain(b *testing.B) { benchmarkRun(b, Plain{}) }

func BenchmarkTree(b *testing.B) {
	for _, m := range treeMethods() {
		b.Run(string(m), func(b *testing.B) { benchmarkRun(b, runnerFor(m)) })
	}
}

func benchmarkRun(b *testing.B, r runner) {
	b.Helper()
	for b.Loop() {
		if got, err := r.Run(b.Context(), Spec{Argv: []string{"/bin/true"}}); err != nil || got.Exit != 0 {
			b.Fatal(got, err)
		}
	}
}
