//go:build linux

package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/proc/stage"
)

const long = 30 * time.Second

func TestBoundsEndAProgram(t *testing.T) {
	// Every script says something when it is ready to be ended.
	cases := map[string]struct {
		script string
		grace  time.Duration
		exit   int
	}{
		"at once without grace":              {`trap 'exit 3' TERM; echo; while :; do sleep 1; done`, 0, 137},
		"by TERM":                            {`echo; exec sleep 300`, long, 143},
		"by its own answer to TERM":          {`trap 'exit 3' TERM; echo; while :; do sleep 0.01; done`, long, 3},
		"by KILL when it ignores TERM":       {`trap '' TERM; echo; while :; do sleep 0.01; done`, 50 * time.Millisecond, 137},
		"although it is stopped":             {`echo; kill -STOP $$`, 0, 137},
		"by TERM although it is stopped":     {`echo; kill -STOP $$`, long, 143},
		"although its output is never ended": {`(trap '' TERM; exec sleep 300) & echo; exec sleep 300`, long, 143},
	}
	eachRunner(t, func(t *testing.T, r runner) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := shell(c.script)
				ready := onWrite(cancel)
				s.Stdout, s.Grace = &ready, c.grace
				got, err := r.Run(ctx, s)
				if err != nil || got.Exit != c.exit || got.Ended != Canceled || got.Took > long/2 {
					t.Errorf("got %+v, %v; want exit %d", got, err, c.exit)
				}
			})
		}
	})
}

func TestATimeOutIsToldFromACancellation(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		s := shell("exec sleep 300")
		s.Timeout = 250 * time.Millisecond
		if got := mustRun(t, r, s); got.Ended != TimedOut || got.Exit != 137 || got.Took < s.Timeout {
			t.Errorf("own time-out: %+v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
		defer cancel()
		s.Timeout = long
		if got, err := r.Run(ctx, s); err != nil || got.Ended != Canceled || got.Exit != 137 {
			t.Errorf("deadline of the caller: %+v, %v", got, err)
		}
		s = shell("exit 0")
		s.Timeout = long
		if got := mustRun(t, r, s); got.Ended != Exited || got.Took > long/2 {
			t.Errorf("time-out that is not reached: %+v", got)
		}
	})
}

// up waits until a detached process has written to $UP.
const up = `; while [ ! -s "$UP" ]; do sleep 0.01; done; `

// escapes are scripts that leave something behind, if they can, and then end.
var escapes = map[string]string{
	"a child":                           `sleep $MARK & exit 0`,
	"a child in a session of its own":   `(setsid sh -c 'echo > "$UP"; exec sleep $MARK' &)` + up + `exit 0`,
	"a daemon":                          `(setsid sh -c '(echo > "$UP"; exec sleep $MARK) &' &)` + up + `exit 0`,
	"a daemon that traps TERM":          `(setsid sh -c 'trap "" TERM HUP INT; echo > "$UP"; while :; do sleep $MARK; done' &)` + up,
	"a child that is stopped":           `sleep $MARK & kill -STOP $!; exit 0`,
	"a daemon that is stopped":          `(setsid sh -c 'echo > "$UP"; kill -STOP $$; exec sleep $MARK' &)` + up,
	"a daemon without its environment":  `(setsid sh -c 'echo > "$UP"; exec env -i sleep $MARK' &)` + up,
	"a daemon that holds no descriptor": `(setsid sh -c 'echo > "$UP"; exec sleep $MARK <&- >&- 2>&-' &)` + up,
	"a daemon that keeps forking":       `(setsid sh -c 'echo > "$UP"; i=0; while [ $i -lt 300 ]; do (sleep $MARK &); i=$((i+1)); done; sleep $MARK' &)` + up,
	"a program that kills its parent":   `(setsid sh -c 'echo > "$UP"; exec sleep $MARK' &)` + up + `kill -9 $PPID; sleep 0.1`,
}

func TestNothingIsLeftWhenATreeHasEnded(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		for name, script := range escapes {
			t.Run(name, func(t *testing.T) {
				s, mark := marked(t, script)
				var out strings.Builder
				s.Stdout, s.Stderr, s.Timeout = &out, &out, long
				got, err := Tree{Want: m}.Run(t.Context(), s)
				// Signals to PID 1 from inside its namespace have no effect; a
				// subreaper takes the program with it.
				killed := m == Subreaper && strings.Contains(script, "$PPID") && got.Exit == 137
				if err != nil || got.Exit != 0 && !killed || got.Took > long/2 {
					t.Errorf("%+v, %v, output %q", got, err, out.String())
				}
				if left := living(t, mark); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	})
}

func TestNothingIsLeftWhenATreeIsCut(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		for name, script := range escapes {
			t.Run(name, func(t *testing.T) {
				s, mark := marked(t, "("+script+"); trap '' TERM; echo; while :; do sleep $MARK; done")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ready := onWrite(cancel)
				s.Stdout, s.Grace = &ready, 20*time.Millisecond
				got, err := Tree{Want: m}.Run(ctx, s)
				if err != nil || got.Exit != 137 || got.Took > long/2 {
					t.Errorf("%+v, %v", got, err)
				}
				if left := living(t, mark); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	})
}

func TestATreeThatStopsItsSupervisorIsCut(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		s, mark := marked(t, `setsid sleep $MARK & kill -STOP $PPID; echo; while :; do sleep $MARK; done`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ready := onWrite(cancel)
		s.Stdout, s.Grace = &ready, 20*time.Millisecond
		got, err := Tree{Want: m}.Run(ctx, s)
		if left := living(t, mark); err != nil || got.Ended != Canceled || len(left) > 0 {
			t.Errorf("%+v, %v, left %q", got, err, left)
		}
	})
}

func TestATreeCannotHoldUpItsSupervisor(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		if got := mustRun(t, Tree{Want: m}, shell(`kill -STOP $PPID; exit 4`)); got.Exit != 4 {
			t.Errorf("%+v", got)
		}
	})
}

func TestASupervisorIgnoresRequestsToEnd(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		s, mark := marked(t, `echo; read x; exit 5`)
		in, feeder := io.Pipe()
		ready := onWrite(func() {
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
				killStage(t, mark, sig)
			}
			feeder.Close()
		})
		s.Stdin, s.Stdout, s.Timeout = in, &ready, long
		if got := mustRun(t, Tree{Want: m}, s); got.Exit != 5 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAProgramWithoutATagDiesWithItsSupervisorToo(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		mark := newMark()
		s := Spec{Argv: []string{"sleep", mark}, Env: []string{systemPath}, Timeout: long}
		var ended sync.WaitGroup
		ended.Go(func() {
			if got := mustRun(t, Tree{Want: m}, s); got.Exit != 137 || got.Ended != Signaled {
				t.Errorf("%+v", got)
			}
		})
		var sleeper string
		if !within(long, func() bool { sleeper = strings.Join(living(t, mark), ""); return sleeper != "" }) {
			t.Fatal("the program did not start")
		}
		pid, _, _ := strings.Cut(sleeper, " ")
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		program, _ := stage.Look(n)
		syscall.Kill(program.Parent, syscall.SIGKILL)
		ended.Wait()
		if !within(2*time.Second, func() bool { return len(living(t, mark)) == 0 }) {
			t.Errorf("left: %q", living(t, mark))
		}
	})
}

func TestATreeDiesWithItsSupervisor(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT} {
			s, mark := marked(t, `setsid sleep $MARK & echo; while :; do sleep $MARK; done`)
			ready := onWrite(func() { killStage(t, mark, sig) })
			s.Stdout = &ready
			s.Timeout = long
			got := mustRun(t, Tree{Want: m}, s)
			if got.Exit != 137 || got.Ended != Signaled {
				t.Errorf("%v: %+v", sig, got)
			}
			if left := living(t, mark); len(left) > 0 {
				t.Errorf("%v: left %q", sig, left)
			}
		}
	})
}

// killStage signals the stage of the tree that has mark.
func killStage(t *testing.T, mark string, sig syscall.Signal) {
	t.Helper()
	for _, p := range living(t, mark) {
		if pid, _, _ := strings.Cut(p, " "); strings.Contains(p, stage.Arg) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Error(err)
			}
			syscall.Kill(n, sig)
			return
		}
	}
	t.Errorf("no stage among %q", living(t, mark))
}

func TestATreeDiesWithPawl(t *testing.T) {
	const script = `
		(setsid sh -c 'trap "" TERM; while :; do sleep $MARK; done' &)
		(setsid sh -c 'kill -STOP $$' "$MARK" &)
		(setsid env -i sleep $MARK &)
		trap '' TERM; while :; do sleep $MARK; done`
	eachTree(t, func(t *testing.T, m Method) {
		mark := newMark()
		cmd := asHelper(m, "MARK="+mark, script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		// The helper, the stage, the shell, three daemons, two sleeps below.
		if !within(long, func() bool { return len(living(t, mark)) >= 8 }) {
			t.Fatalf("only %q started", living(t, mark))
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		killed := time.Now()
		if !within(2*time.Second, func() bool { return len(living(t, mark)) == 0 }) {
			t.Fatalf("left after two seconds: %q", living(t, mark))
		}
		t.Logf("gone after %v", time.Since(killed))
	})
}

func TestANamespaceDiesWithPawlAlsoWhenItsSupervisorIsStopped(t *testing.T) {
	if (Tree{}).Method() != PIDNamespace {
		t.Skip("no PID namespaces on this host")
	}
	mark := newMark()
	cmd := asHelper(PIDNamespace, "MARK="+mark, `sleep $MARK & exec sleep $MARK`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if !within(long, func() bool { return strings.Count(strings.Join(living(t, mark), "\n"), " sleep "+mark) == 2 }) {
		t.Fatalf("only %q started", living(t, mark))
	}
	killStage(t, mark, syscall.SIGSTOP)
	cmd.Process.Signal(syscall.SIGKILL)
	if !within(2*time.Second, func() bool { return len(living(t, mark)) == 0 }) {
		t.Fatalf("left after two seconds: %q", living(t, mark))
	}
}

func TestAPlainProgramDiesWithPawl(t *testing.T) {
	mark := newMark()
	cmd := asHelper(plain, "MARK="+mark, `exec sleep $MARK`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if !within(long, func() bool { return strings.Contains(strings.Join(living(t, mark), "\n"), " sleep "+mark) }) {
		t.Fatalf("only %q started", living(t, mark))
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if !within(2*time.Second, func() bool { return len(living(t, mark)) == 0 }) {
		t.Fatalf("left after two seconds: %q", living(t, mark))
	}
}

func TestPlainKillsItsGroupAndDoesNotWaitForADaemon(t *testing.T) {
	before := runtime.NumGoroutine()
	s, mark := marked(t, `exec 3<&0; sleep $MARK & (setsid sh -c 'echo > "$UP"; exec sleep $MARK' &)`+up+`echo said; exit 2`)
	defer KillTagged(context.Background(), s.Tag)
	var out strings.Builder
	s.Stdin, s.Stdout = bytes.NewReader(make([]byte, 1<<20)), &out
	got := mustRun(t, Plain{}, s)
	if got.Exit != 2 || out.String() != "said\n" || got.Took > 5*time.Second {
		t.Errorf("%+v, output %q", got, out.String())
	}
	if left := living(t, mark); len(left) != 1 {
		t.Errorf("%q live, want the daemon alone", left)
	}
	if !within(long/2, func() bool { return runtime.NumGoroutine() <= before }) {
		t.Error("a goroutine still feeds the daemon")
	}
}

func TestAFloodOfOutputCostsBoundedMemory(t *testing.T) {
	const flood = 1 << 30
	eachRunner(t, func(t *testing.T, r runner) {
		ring := NewRing(4<<10, 60<<10)
		s := Spec{Argv: []string{"head", "-c", "1073741824", "/dev/zero"}, Env: []string{systemPath}, Stdout: ring}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := mustRun(t, r, s)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if ring.Total() != flood || ring.Dropped() != flood-64<<10 || allocated > 4<<20 {
			t.Errorf("%d bytes passed, %d dropped, %d allocated", ring.Total(), ring.Dropped(), allocated)
		}
		t.Logf("1 GiB in %v, %d KiB allocated", got.Took, allocated>>10)
	})
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
			s := shell("cat; exit 1")
			s.Stdin, s.Stdout, s.Stderr = strings.NewReader("x"), NewRing(1, 1), NewRing(1, 1)
			mustRun(t, runnerFor(m), s)
			ctx, cancel := context.WithCancel(t.Context())
			ready := onWrite(cancel)
			s = shell("echo; exec sleep 300")
			s.Stdout = &ready
			if got, err := runnerFor(m).Run(ctx, s); err != nil || got.Ended != Canceled {
				t.Errorf("%+v, %v", got, err)
			}
			runnerFor(m).Run(t.Context(), Spec{Argv: []string{"/no/such"}, Stdout: NewRing(1, 1)})
		}
	}
	runAll()
	g, f, c := count()
	for range 10 {
		runAll()
	}
	if !within(5*time.Second, func() bool { g2, f2, c2 := count(); return g2 <= g && f2 <= f && c2 <= c }) {
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
	got, err := Tree{Want: "cgroup"}.Run(t.Context(), shell("exit 0"))
	if !errors.Is(err, errors.ErrUnsupported) || got.Ended != NotStarted {
		t.Errorf("%+v, %v", got, err)
	}
}

// unprivileged is set for the run of these tests as a user without rights.
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
	cmd := exec.Command("/proc/self/exe", "-test.run=.", "-test.skip=Flood|Fuzz", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{systemPath, unprivileged + "=1", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestATreeDiesWithPawl", "TestNothingIsLeftWhenATreeIsCut", "TestAllThisHolds"} {
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

func BenchmarkPlain(b *testing.B) { benchmark(b, Plain{}) }

func BenchmarkTree(b *testing.B) {
	for _, m := range treeMethods() {
		b.Run(string(m), func(b *testing.B) { benchmark(b, Tree{Want: m}) })
	}
}

func benchmark(b *testing.B, r runner) {
	for b.Loop() {
		if got, err := r.Run(b.Context(), Spec{Argv: []string{"/bin/true"}}); err != nil || got.Exit != 0 {
			b.Fatal(got, err)
		}
	}
}
