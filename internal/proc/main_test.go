//go:build linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/proc/cgroup"
)

// helperArg makes the test binary run one script as pawl would:
// helperArg METHOD TAG SCRIPT, where METHOD "plain" stands for Plain.
const helperArg = "__proc-helper"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == helperArg {
		helper(os.Args[2], os.Args[3], os.Args[4])
	}
	if len(os.Args) == 4 && os.Args[1] == hogArg {
		hog(os.Args[2], os.Args[3])
	}
	if len(os.Args) == 4 && os.Args[1] == shareArg {
		share(os.Args[2], os.Args[3])
	}
	status := m.Run()
	// Helpers that were killed have left their groups to the next pawl.
	sweepGroups(cgroup.FindHome())
	os.Exit(status)
}

func helper(method, tag, script string) {
	s := shell(script)
	s.Env, s.Tag = append(os.Environ(), tag), tag
	s.Stdout, s.Stderr = os.Stdout, os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	res, err := runnerFor(Method(method)).Run(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	os.Exit(res.Exit)
}

// asHelper returns a command that runs script in a pawl of its own.
func asHelper(method Method, tag, script string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", helperArg, string(method), tag, script)
	cmd.Stderr = os.Stderr
	return cmd
}

type runner interface {
	Run(context.Context, Spec) (Result, error)
}

const plain Method = "plain"

func runnerFor(m Method) runner {
	if m == plain {
		return Plain{}
	}
	return Tree{Want: m}
}

// treeMethods are the methods of this host that keep the promise of Tree.
func treeMethods() []Method {
	methods := []Method{Subreaper}
	if groupHome().CanKill() {
		methods = append(methods, CGroup)
	}
	if (Tree{}).Method() == PIDNamespace {
		methods = append(methods, PIDNamespace)
	}
	return methods
}

// runners are all ways to run a program here, by name.
func runners() map[string]runner {
	all := map[string]runner{}
	for _, m := range append(treeMethods(), Group, plain) {
		all[string(m)] = runnerFor(m)
	}
	return all
}

const systemPath = "PATH=/usr/local/bin:/usr/bin:/bin"

func shell(script string) Spec {
	return Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{systemPath}}
}

// marks makes values that stand in the command line of whatever must die, as
// the seconds to sleep, and in its environment.
var marks atomic.Int64

func newMark() string {
	return fmt.Sprintf("300.%d%04d", os.Getpid(), marks.Add(1))
}

// marked returns a spec for script, which may use $MARK and $UP, a file that
// does not exist yet.
func marked(t *testing.T, script string) (s Spec, mark string) {
	t.Helper()
	mark = newMark()
	s = shell(script)
	s.Tag = "MARK=" + mark
	s.Env = append(s.Env, s.Tag, "UP="+filepath.Join(t.TempDir(), "up"))
	return s, mark
}

// living lists the processes that have mark in their command line or
// environment, except this one and zombies.
func living(t *testing.T, mark string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.Contains(string(command)+"\x00"+string(environ), mark) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// end kills and collects what a test started; it may be gone already.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// within polls until ok, and reports whether it came in time.
func within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// onWrite is a writer that calls itself once, at the first write.
type onWrite func()

func (f *onWrite) Write(p []byte) (int, error) {
	if *f != nil {
		(*f)()
		*f = nil
	}
	return len(p), nil
}

func mustRun(t *testing.T, r runner, s Spec) Result {
	t.Helper()
	res, err := r.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// mustRunOut is mustRun for a program that its time-out may end. On a busy
// machine one that is short may be over before the program has started.
func mustRunOut(t *testing.T, r runner, s Spec) Result {
	t.Helper()
	for ; ; s.Timeout *= 2 {
		res, err := r.Run(t.Context(), s)
		if e, early := errors.AsType[exceeded](err); !early || e.limit != TimeLimit || s.Timeout > long {
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
	}
}

func output(t *testing.T, r runner, s Spec) string {
	t.Helper()
	var out strings.Builder
	s.Stdout, s.Stderr = &out, &out
	if res := mustRun(t, r, s); res.Exit != 0 {
		t.Fatalf("exit %d, output %q", res.Exit, out.String())
	}
	return out.String()
}

func sorted(lines string) []string {
	all := strings.Fields(lines)
	slices.Sort(all)
	return all
}
