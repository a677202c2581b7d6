//go:build linux

package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

const long = 30 * time.Second

func TestBoundsEndAProgram(t *testing.T) {
	// Every script prints something when it is ready to be killed.
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
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s := shellSpec(c.script)
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
}

func TestATimeOutIsToldFromACancellation(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			s := shellSpec("exec sleep 300")
			s.Timeout = 250 * time.Millisecond
			began := time.Now()
			if got := mustRunOut(t, r, s); got.Ended != TimedOut || got.Exit != 137 || time.Since(began) < s.Timeout || got.Took > time.Since(began) {
				t.Errorf("own time-out: %+v after %s", got, time.Since(began))
			}
			got, err := Result{}, context.DeadlineExceeded
			for wait := 250 * time.Millisecond; errors.Is(err, context.DeadlineExceeded) && wait < long; wait *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				s.Timeout = long
				got, err = r.Run(ctx, s) // With this error it did not start in time.
			}
			if err != nil || got.Ended != Canceled || got.Exit != 137 {
				t.Errorf("deadline of the caller: %+v, %v", got, err)
			}
			s = shellSpec("exit 0")
			s.Timeout = long
			if got := mustRun(t, r, s); got.Ended != Exited || got.Took > long/2 {
				t.Errorf("time-out that is not reached: %+v", got)
			}
		})
	}
}

// up waits until a detached process has written to $UP.
const up = `; while [ ! -s "$UP" ]; do sleep 0.01; done; `

// escapes are scripts that try to leave a process behind, and then end.
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
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			for name, script := range escapes {
				t.Run(name, func(t *testing.T) {
					s, mark := markedSpec(t, script)
					var out strings.Builder
					s.Stdout, s.Stderr, s.Timeout = &out, &out, long
					got, err := runnerFor(m).Run(t.Context(), s)
					// Signals to PID 1 from inside its namespace have no effect; any
					// other supervisor takes the program with it.
					killed := m != PIDNamespace && strings.Contains(script, "$PPID") && got.Exit == 137
					if err != nil || got.Exit != 0 && !killed || got.Took > long/2 {
						t.Errorf("%+v, %v, output %q", got, err, out.String())
					}
					if left := livingWith(t, mark); len(left) > 0 {
						t.Errorf("left: %q", left)
					}
				})
			}
		})
	}
}

func TestNothingIsLeftWhenATreeIsCut(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			for name, script := range escapes {
				t.Run(name, func(t *testing.T) {
					s, mark := markedSpec(t, "("+script+"); trap '' TERM; echo; while :; do sleep $MARK; done")
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					ready := onWrite(cancel)
					s.Stdout, s.Grace = &ready, 20*time.Millisecond
					got, err := runnerFor(m).Run(ctx, s)
					if err != nil || got.Exit != 137 || got.Took > long/2 {
						t.Errorf("%+v, %v", got, err)
					}
					if left := livingWith(t, mark); len(left) > 0 {
						t.Errorf("left: %q", left)
					}
				})
			}
		})
	}
}

func TestATreeThatStopsItsSupervisorIsCut(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			s, mark := markedSpec(t, `setsid sleep $MARK & kill -STOP $PPID; echo; while :; do sleep $MARK; done`)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ready := onWrite(cancel)
			s.Stdout, s.Grace = &ready, 20*time.Millisecond
			got, err := runnerFor(m).Run(ctx, s)
			if left := livingWith(t, mark); err != nil || got.Ended != Canceled || len(left) > 0 {
				t.Errorf("%+v, %v, left %q", got, err, left)
			}
		})
	}
}

func TestATreeCannotHoldUpItsSupervisor(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			if got := mustRun(t, runnerFor(m), shellSpec(`kill -STOP $PPID; exit 4`)); got.Exit != 4 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestASupervisorIgnoresRequestsToEnd(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			s, mark := markedSpec(t, `echo; read x; exit 5`)
			in, feeder := io.Pipe()
			ready := onWrite(func() {
				for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
					killStage(t, mark, sig)
				}
				feeder.Close()
			})
			s.Stdin, s.Stdout, s.Timeout = in, &ready, long
			if got := mustRun(t, runnerFor(m), s); got.Exit != 5 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAProgramWithoutATagDiesWithItsSupervisorToo(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			mark := newMark()
			s := Spec{Argv: []string{"sleep", mark}, Env: []string{systemPath}, Timeout: long}
			var ended sync.WaitGroup
			ended.Go(func() {
				if got := mustRun(t, runnerFor(m), s); got.Exit != 137 || got.Ended != Signaled {
					t.Errorf("%+v", got)
				}
			})
			var sleeper string
			if !waitUntil(long, func() bool { sleeper = strings.Join(livingWith(t, mark), ""); return sleeper != "" }) {
				t.Fatal("the program did not start")
			}
			pid, _, _ := strings.Cut(sleeper, " ")
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			program, _ := stage.ReadProcess(n)
			if err := syscall.Kill(program.Parent, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			ended.Wait()
			if !waitUntil(long, func() bool { return len(livingWith(t, mark)) == 0 }) {
				t.Errorf("left: %q", livingWith(t, mark))
			}
		})
	}
}

func TestATreeDiesWithItsSupervisor(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT} {
				s, mark := markedSpec(t, `setsid sleep $MARK & echo; while :; do sleep $MARK; done`)
				ready := onWrite(func() { killStage(t, mark, sig) })
				s.Stdout = &ready
				s.Timeout = long
				got := mustRun(t, runnerFor(m), s)
				if got.Exit != 137 || got.Ended != Signaled {
					t.Errorf("%v: %+v", sig, got)
				}
				if left := livingWith(t, mark); len(left) > 0 {
					t.Errorf("%v: left %q", sig, left)
				}
			}
		})
	}
}

// killStage signals the stage of the tree that has mark.
func killStage(t *testing.T, mark string, sig syscall.Signal) {
	t.Helper()
	for _, p := range livingWith(t, mark) {
		if pid, _, _ := strings.Cut(p, " "); strings.Contains(p, stage.Arg) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Error(err)
			}
			if err := syscall.Kill(n, sig); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("no stage among %q", livingWith(t, mark))
}

func TestATreeDiesWithPawl(t *testing.T) {
	const script = `
		(setsid sh -c 'trap "" TERM; while :; do sleep $MARK; done' &)
		(setsid sh -c 'kill -STOP $$' "$MARK" &)
		(setsid env -i sleep $MARK &)
		trap '' TERM; while :; do sleep $MARK; done`
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			mark := newMark()
			cmd := helperCommand(m, "MARK="+mark, script)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer killAndWait(cmd)
			// The helper, the stage, the shell, three daemons, two sleeps below.
			if !waitUntil(long, func() bool { return len(livingWith(t, mark)) >= 8 }) {
				t.Fatalf("only %q started", livingWith(t, mark))
			}
			killAndWait(cmd)
			killed := time.Now()
			if !waitUntil(long, func() bool { return len(livingWith(t, mark)) == 0 }) {
				t.Fatalf("left: %q", livingWith(t, mark))
			}
			t.Logf("gone after %v", time.Since(killed))
		})
	}
}

func TestATreeDiesWithPawlAlsoWhenItsSupervisorIsStopped(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			mark := newMark()
			cmd := helperCommand(m, "MARK="+mark, `sleep $MARK & exec sleep $MARK`)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer killAndWait(cmd)
			if !waitUntil(long, func() bool { return strings.Count(strings.Join(livingWith(t, mark), "\n"), " sleep "+mark) == 2 }) {
				t.Fatalf("only %q started", livingWith(t, mark))
			}
			// A stopped pawl cannot wake the stage before it is killed.
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			killStage(t, mark, syscall.SIGSTOP)
			killAndWait(cmd)
			if !waitUntil(long, func() bool { return len(livingWith(t, mark)) == 0 }) {
				t.Fatalf("left: %q", livingWith(t, mark))
			}
		})
	}
}

func TestAPlainProgramDiesWithPawl(t *testing.T) {
	mark := newMark()
	cmd := helperCommand(plain, "MARK="+mark, `exec sleep $MARK`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer killAndWait(cmd)
	if !waitUntil(long, func() bool { return strings.Contains(strings.Join(livingWith(t, mark), "\n"), " sleep "+mark) }) {
		t.Fatalf("only %q started", livingWith(t, mark))
	}
	killAndWait(cmd)
	if !waitUntil(long, func() bool { return len(livingWith(t, mark)) == 0 }) {
		t.Fatalf("left: %q", livingWith(t, mark))
	}
}

func TestPlainKillsItsGroupAndDoesNotWaitForADaemon(t *testing.T) {
	before := runtime.NumGoroutine()
	s, mark := markedSpec(t, `exec 3<&0; sleep $MARK & (setsid sh -c 'echo > "$UP"; exec sleep $MARK' &)`+up+`echo said; exit 2`)
	t.Cleanup(func() { _, _ = KillTagged(context.Background(), s.Tag) })
	var out strings.Builder
	s.Stdin, s.Stdout = bytes.NewReader(make([]byte, 1<<20)), &out
	got := mustRun(t, Plain{}, s)
	if got.Exit != 2 || out.String() != "said\n" || got.Took > long {
		t.Errorf("%+v, output %q", got, out.String())
	}
	if left := livingWith(t, mark); len(left) != 1 {
		t.Errorf("%q live, want the daemon alone", left)
	}
	if !waitUntil(long/2, func() bool { return runtime.NumGoroutine() <= before }) {
		t.Error("a goroutine still feeds the daemon")
	}
}
