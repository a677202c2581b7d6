//go:build linux

package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRunReportsHowAProgramEnded(t *testing.T) {
	cases := map[string]struct {
		script string
		want   Result
	}{
		"a program that succeeds":                       {"exit 0", Result{Exit: 0, Ended: Exited}},
		"a program that fails":                          {"exit 7", Result{Exit: 7, Ended: Exited}},
		"a status that looks like a signal is none":     {"exit 137", Result{Exit: 137, Ended: Exited}},
		"a program that a signal ended":                 {"kill -TERM $$", Result{Exit: 143, Ended: Signaled}},
		"a program that was killed by something else":   {"kill -KILL $$", Result{Exit: 137, Ended: Signaled}},
		"a status of more than eight bits is cut":       {"exit 258", Result{Exit: 2, Ended: Exited}},
		"a core-dumping signal is like any other":       {"ulimit -c 0; kill -SEGV $$", Result{Exit: 139, Ended: Signaled}},
		"output that nobody wants does not block":       {"head -c 1000000 /dev/zero", Result{Exit: 0, Ended: Exited}},
		"standard input is empty where none was given":  {"read x; test $? = 1 -a -z \"$x\"", Result{Exit: 0, Ended: Exited}},
		"a child that ends later does not change it":    {"sleep 0.01 & exit 3", Result{Exit: 3, Ended: Exited}},
		"a child that ended earlier does not change it": {"(exit 9) & wait; sh -c 'exit 8'; exit 4", Result{Exit: 4, Ended: Exited}},
	}
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					got := mustRun(t, r, shellSpec(c.script))
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
		"a file that is not a program": {
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
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
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
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					if diff := cmp.Diff(c.want, mustOutput(t, r, c.spec)); diff != "" {
						t.Error(diff)
					}
				})
			}
		})
	}
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
		if got := sortLines(mustOutput(t, runnerFor(m), shellSpec(script))); !cmp.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("%s: %q", m, got)
		}
	}
	for _, m := range append(treeMethods(), plain) {
		cmd := helperCommand(m, "T=1", script)
		cmd.ExtraFiles = []*os.File{os.Stderr, os.Stderr, os.Stderr}
		out, err := cmd.Output()
		if got := sortLines(string(out)); err != nil || !cmp.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("%s below a process with more: %q, %v", m, got, err)
		}
	}
}

func TestTreeRestoresSignalsThatPawlInherited(t *testing.T) {
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			cmd := helperCommand(m, "T=1", "grep -E 'Sig(Ign|Blk)' /proc/self/status")
			restore := ignoreAndBlock(t)
			out, err := cmd.Output()
			restore()
			want := "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
			if err != nil || string(out) != want {
				t.Errorf("%q, %v; want %q", out, err, want)
			}
		})
	}
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
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
		signal.Reset()
		runtime.UnlockOSThread()
	}
}

func TestATreeChangesNeitherUserNorCapabilities(t *testing.T) {
	const script = "grep -E '^(Uid|Gid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status"
	want := mustOutput(t, Plain{}, shellSpec(script))
	for _, m := range treeMethods() {
		if m == spawned { // In a user namespace of its own, root has every capability.
			continue
		}
		t.Run(string(m), func(t *testing.T) {
			if diff := cmp.Diff(want, mustOutput(t, runnerFor(m), shellSpec(script))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATreeInANamespaceSeesItsOwnProcessesOnly(t *testing.T) {
	if (Tree{}).Method() != PIDNamespace {
		t.Skip("no PID namespaces on this host")
	}
	got := sortLines(mustOutput(t, Tree{}, shellSpec("cd /proc && echo [0-9]* && test -d self/fd")))
	if len(got) != 2 || got[0] != "1" {
		t.Errorf("visible: %q, want the stage and the shell", got)
	}
}
