//go:build linux

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRunReportsHowAProgramEnded(t *testing.T) {
	cases := map[string]struct {
		script string
		want   Result
	}{
		"a program that succeeds":                       {"exit 0", Result{0, Exited, 0}},
		"a program that fails":                          {"exit 7", Result{7, Exited, 0}},
		"a status that looks like a signal is none":     {"exit 137", Result{137, Exited, 0}},
		"a program that a signal ended":                 {"kill -TERM $$", Result{143, Signaled, 0}},
		"a program that was killed by something else":   {"kill -KILL $$", Result{137, Signaled, 0}},
		"a status of more than eight bits is cut":       {"exit 258", Result{2, Exited, 0}},
		"a core-dumping signal is like any other":       {"ulimit -c 0; kill -SEGV $$", Result{139, Signaled, 0}},
		"output that nobody wants does not block":       {"head -c 1000000 /dev/zero", Result{0, Exited, 0}},
		"standard input is empty where none was given":  {"read x; test $? = 1 -a -z \"$x\"", Result{0, Exited, 0}},
		"a child that ends later does not change it":    {"sleep 0.01 & exit 3", Result{3, Exited, 0}},
		"a child that ended earlier does not change it": {"(exit 9) & wait; sh -c 'exit 8'; exit 4", Result{4, Exited, 0}},
	}
	eachRunner(t, func(t *testing.T, r runner) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				got := mustRun(t, r, shell(c.script))
				if got.Took <= 0 {
					t.Errorf("took %v", got.Took)
				}
				got.Took = 0
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		}
	})
}

func TestRunSaysWhyNothingStarted(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone, stop := context.WithCancelCause(t.Context())
	errStop := errors.New("the operator said so")
	stop(errStop)
	argv := func(a ...string) Spec { return Spec{Argv: a, Env: []string{systemPath}} }
	with := func(s Spec, change func(*Spec)) Spec { change(&s); return s }
	cases := map[string]struct {
		ctx  context.Context
		spec Spec
		want error
		text string
	}{
		"a name that is nowhere":     {spec: argv("no-such-program-here"), want: exec.ErrNotFound, text: "no-such-program-here"},
		"a path that does not exist": {spec: argv("/no/such/program"), want: fs.ErrNotExist, text: "/no/such/program"},
		"a file that is not executable": {
			spec: argv(file("data", "x", 0o644)), want: fs.ErrPermission, text: "data",
		},
		"a name that PATH has only as a file that is not executable": {
			spec: Spec{Argv: []string{"data"}, Env: []string{"PATH=" + dir}}, want: fs.ErrPermission,
		},
		"a directory in place of a program": {spec: argv(dir), want: fs.ErrPermission},
		"a missing working directory": {
			spec: with(argv("true"), func(s *Spec) { s.Dir = filepath.Join(dir, "gone") }),
			want: fs.ErrNotExist, text: "working directory",
		},
		"a file in place of the working directory": {
			spec: with(argv("true"), func(s *Spec) { s.Dir = "/bin/sh" }), want: syscall.ENOTDIR, text: "working directory",
		},
		"a script whose interpreter is missing": {
			spec: argv(file("script", "#!/no/such/interpreter\n", 0o755)), want: fs.ErrNotExist, text: "interpreter",
		},
		"a file that is no program": {
			spec: argv(file("garbage", "\x01\x02 not a program", 0o755)), want: syscall.ENOEXEC, text: "garbage",
		},
		"relative entries of PATH": {
			spec: Spec{Argv: []string{"sh"}, Env: []string{"PATH=.:bin::"}, Dir: "/"}, want: exec.ErrNotFound,
		},
		"no PATH":                   {spec: Spec{Argv: []string{"sh"}}, want: exec.ErrNotFound},
		"no program":                {spec: Spec{}, text: "no program named"},
		"a NUL byte":                {spec: argv("true", "a\x00b"), text: "NUL"},
		"a tag that is not passed":  {spec: with(argv("true"), func(s *Spec) { s.Tag = "A=b" }), text: "not in the environment"},
		"a tag without a name":      {spec: with(argv("true"), func(s *Spec) { s.Tag = "=b" }), text: "not NAME=VALUE"},
		"a context that ended":      {ctx: gone, spec: argv("true"), want: errStop},
		"arguments beyond the host": {spec: argv("true", strings.Repeat("x", 1<<20)), want: syscall.E2BIG},
	}
	eachRunner(t, func(t *testing.T, r runner) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				ctx := c.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				got, err := r.Run(ctx, c.spec)
				if want := (Result{Exit: -1, Ended: NotStarted}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got error %v, want %v with %q", err, c.want, c.text)
				}
			})
		}
	})
}

func TestTheProgramGetsExactlyWhatTheSpecSays(t *testing.T) {
	t.Setenv("PAWL_TEST_LEAK", "leaked")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gate"), []byte("#!/bin/sh\necho from $PWD\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	printf := func(args ...string) []string { return append([]string{"printf", `[%s]`}, args...) }
	cases := map[string]struct {
		spec Spec
		want string
	}{
		"the environment, in order and with repetitions": {
			Spec{Argv: []string{"/usr/bin/env"}, Env: []string{"B=2", "A=1", "A=3", "GODEBUG=inittrace=1", "GOTRACEBACK=x"}},
			"B=2\nA=1\nA=3\nGODEBUG=inittrace=1\nGOTRACEBACK=x\n",
		},
		"no environment":         {Spec{Argv: []string{"/usr/bin/env"}}, ""},
		"the directory":          {Spec{Argv: []string{"/bin/pwd"}, Dir: dir}, dir + "\n"},
		"a program relative":     {Spec{Argv: []string{"./gate"}, Dir: dir}, "from " + dir + "\n"},
		"a name from PATH":       {Spec{Argv: []string{"gate"}, Dir: "/", Env: []string{"PATH=/nowhere:" + dir}}, "from /\n"},
		"arguments of all kinds": {Spec{Argv: printf("", "a b", "\n", "--", "\xff"), Env: []string{systemPath}}, "[][a b][\n][--][\xff]"},
	}
	eachRunner(t, func(t *testing.T, r runner) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(c.want, output(t, r, c.spec)); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}

func TestTheProgramLeadsASessionAndHasThreeDescriptors(t *testing.T) {
	// A descriptor without close-on-exec, as a shell may leave behind in pawl.
	fd, err := unix.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const script = `
		read -r _ _ _ _ group session _ < /proc/self/stat
		test "$session" = $$ -a "$group" = $$ || echo "pid $$ has session $session and group $group"
		for fd in /proc/$$/fd/*; do if [ -e "$fd" ]; then echo "${fd##*/}"; fi; done`
	for _, m := range treeMethods() {
		if got := sorted(output(t, runnerFor(m), shell(script))); !cmp.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("%s: %q", m, got)
		}
	}
	for _, m := range append(treeMethods(), plain) {
		cmd := asHelper(m, "T=1", script)
		cmd.ExtraFiles = []*os.File{os.Stderr, os.Stderr, os.Stderr}
		out, err := cmd.Output()
		if got := sorted(string(out)); err != nil || !cmp.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("%s below a process with more: %q, %v", m, got, err)
		}
	}
}

func TestTreeRestoresSignalsThatPawlInherited(t *testing.T) {
	eachTree(t, func(t *testing.T, m Method) {
		cmd := asHelper(m, "T=1", "grep -E 'Sig(Ign|Blk)' /proc/self/status")
		restore := ignoreAndBlock(t)
		out, err := cmd.Output()
		restore()
		want := "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
		if err != nil || string(out) != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	})
}

// ignoreAndBlock makes this process one that was started by nohup and worse,
// until restore is called. What it starts meanwhile inherits that.
func ignoreAndBlock(t *testing.T) (restore func()) {
	t.Helper()
	runtime.LockOSThread()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTSTP, syscall.SIGTTIN)
	var blocked, before unix.Sigset_t
	blocked.Val[0] = 1<<(syscall.SIGUSR2-1) | 1<<(syscall.SIGTERM-1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &before); err != nil {
		t.Fatal(err)
	}
	return func() {
		unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
		signal.Reset()
		runtime.UnlockOSThread()
	}
}

func TestATreeChangesNeitherUserNorCapabilities(t *testing.T) {
	const script = "grep -E '^(Uid|Gid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status"
	want := output(t, Plain{}, shell(script))
	eachTree(t, func(t *testing.T, m Method) {
		if diff := cmp.Diff(want, output(t, Tree{Want: m}, shell(script))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestATreeInANamespaceSeesItsOwnProcessesOnly(t *testing.T) {
	if (Tree{}).Method() != PIDNamespace {
		t.Skip("no PID namespaces on this host")
	}
	got := sorted(output(t, Tree{}, shell("cd /proc && echo [0-9]* && test -d self/fd")))
	if len(got) != 2 || got[0] != "1" {
		t.Errorf("visible: %q, want the stage and the shell", got)
	}
}

func TestInputIsCopiedAndClosed(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 1<<16)
	eachRunner(t, func(t *testing.T, r runner) {
		s := shell("cat")
		s.Stdin = strings.NewReader(text)
		if got := output(t, r, s); got != text {
			t.Errorf("got %d bytes, want %d", len(got), len(text))
		}
	})
}

func TestInputThatIsNotReadDoesNotHoldTheEnd(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		silent, feeder := io.Pipe()
		defer feeder.Close()
		for name, in := range map[string]io.Reader{
			"more than a pipe holds": bytes.NewReader(make([]byte, 10<<20)),
			"nothing for ever":       silent,
		} {
			s := shell("exit 5")
			s.Stdin = in
			if got := mustRun(t, r, s); got.Exit != 5 || got.Took > 5*time.Second {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

func TestFilesAreHandedOver(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		in, err := os.Open("/proc/self/comm")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		s := shell("readlink /proc/self/fd/1 /proc/self/fd/0")
		s.Stdin, s.Stdout = in, out
		mustRun(t, r, s)
		got, err := os.ReadFile(out.Name())
		want := fmt.Sprintf("%s\n", out.Name())
		if err != nil || !strings.HasPrefix(string(got), want) || !strings.HasSuffix(string(got), "/comm\n") {
			t.Errorf("%q, %v; want %q and a comm", got, err, want)
		}
	})
}

func TestTheEndOfAStreamIsSeenWhenTheProgramClosesIt(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		in, feeder := io.Pipe()
		out, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		s := shell("echo said; exec >&-; read x")
		s.Stdin, s.Stdout, s.Timeout = in, end, long
		var ended sync.WaitGroup
		ended.Go(func() { mustRun(t, r, s) })
		out.SetReadDeadline(time.Now().Add(long / 2))
		first := make([]byte, 5)
		if _, err := io.ReadFull(out, first); err != nil {
			t.Error(err)
		}
		end.Close()
		rest, err := io.ReadAll(out)
		if string(first) != "said\n" || len(rest) > 0 || err != nil {
			t.Errorf("got %q, %q, %v", first, rest, err)
		}
		feeder.Close()
		ended.Wait()
	})
}

func TestOneWriterForBothStreamsKeepsTheirOrder(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		got := output(t, r, shell("for i in 1 2 3 4 5; do echo out; echo err >&2; done"))
		if want := strings.Repeat("out\nerr\n", 5); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// failing fails at its second write.
type failing struct{ writes int }

func (f *failing) Write(p []byte) (int, error) {
	f.writes++
	if f.writes == 2 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

func TestAWriterThatFailsIsLeftAloneAndTheProgramGoesOn(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		out := &failing{}
		s := shell("head -c 3000000 /dev/zero && exit 6")
		s.Stdout = out
		if got := mustRun(t, r, s); got.Exit != 6 || out.writes != 2 {
			t.Errorf("%+v after %d writes", got, out.writes)
		}
	})
}

// slow takes longer for one write than output may outlast the program.
type slow struct{ bytes int }

func (s *slow) Write(p []byte) (int, error) {
	if s.bytes == 0 {
		time.Sleep(linger + 50*time.Millisecond)
	}
	s.bytes += len(p)
	return len(p), nil
}

func TestASlowWriterLosesNothing(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		out := &slow{}
		s := shell("head -c 90000 /dev/zero")
		s.Stdout = out
		if mustRun(t, r, s); out.bytes != 90000 {
			t.Errorf("got %d bytes", out.bytes)
		}
	})
}

func TestManyRunsAtOnceDoNotMeet(t *testing.T) {
	eachRunner(t, func(t *testing.T, r runner) {
		var all sync.WaitGroup
		for n := range 16 {
			all.Go(func() {
				var out strings.Builder
				s := shell(fmt.Sprintf("echo %d; cat; exit %d", n, n))
				s.Stdin, s.Stdout = strings.NewReader(fmt.Sprint("in", n)), &out
				got, err := r.Run(t.Context(), s)
				if want := fmt.Sprintf("%d\nin%d", n, n); err != nil || got.Exit != n || out.String() != want {
					t.Errorf("run %d: %+v, %q, %v", n, got, out.String(), err)
				}
			})
		}
		all.Wait()
	})
}

func TestAScriptJustWrittenStartsWhileOthersFork(t *testing.T) {
	stop := make(chan struct{})
	var forking sync.WaitGroup
	for range 2 {
		forking.Go(func() {
			for !isClosed(stop) {
				Plain{}.Run(t.Context(), shell("exit 0"))
			}
		})
	}
	defer forking.Wait()
	defer close(stop)
	for n := range 50 {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := (Plain{}).Run(t.Context(), Spec{Argv: []string{path}}); err != nil {
			t.Fatalf("script %d: %v", n, err)
		}
	}
}
