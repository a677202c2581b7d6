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

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
)

// helperArg makes the test binary run one script as pawl would:
// helperArg METHOD TAG SCRIPT, where METHOD "plain" means Plain.
const helperArg = "__proc-helper"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == helperArg {
		runAsHelper(os.Args[2], os.Args[3], os.Args[4])
	}
	if len(os.Args) > 3 && os.Args[1] == guardedArg {
		runAsGuarded(os.Args[2], os.Args[3:])
	}
	if len(os.Args) == 4 && os.Args[1] == hogArg {
		hogMemory(os.Args[2], os.Args[3])
	}
	if len(os.Args) == 4 && os.Args[1] == shareArg {
		shareMemory(os.Args[2], os.Args[3])
	}
	status := m.Run()
	// Helpers that were killed have left control groups.
	sweepGroups(cgroup.FindHome())
	os.Exit(status)
}

func runAsHelper(method, tag, script string) {
	s := shellSpec(script)
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

// helperCommand returns a command that runs script in a pawl of its own.
func helperCommand(method Method, tag, script string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", helperArg, string(method), tag, script)
	cmd.Stderr = os.Stderr
	return cmd
}

type runner interface {
	Run(context.Context, Spec) (Result, error)
}

const (
	plain   Method = "plain"
	spawned Method = "spawned" // PIDNamespace, in a user namespace, by a spawner
)

func runnerFor(m Method) runner {
	if m == plain {
		return Plain{}
	}
	if m == spawned {
		return spawnedTree{}
	}
	return Tree{Want: m}
}

// treeMethods returns the methods of this host by which Tree kills whole trees.
func treeMethods() []Method {
	methods := []Method{Subreaper}
	if groupHome().CanKill() {
		methods = append(methods, CGroup)
	}
	if (Tree{}).Method() == PIDNamespace {
		methods = append(methods, PIDNamespace, spawned)
	}
	return methods
}

// allRunners returns all ways to run a program on this host, by name.
func allRunners() map[string]runner {
	all := map[string]runner{}
	for _, m := range append(treeMethods(), Group, plain) {
		all[string(m)] = runnerFor(m)
	}
	return all
}

const systemPath = "PATH=/usr/local/bin:/usr/bin:/bin"

func shellSpec(script string) Spec {
	return Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{systemPath}}
}

// marks numbers the marks: each is in the command line of the processes that must
// die, as the seconds to sleep, and in their environment.
var marks atomic.Int64

func newMark() string {
	return fmt.Sprintf("300.%d%04d", os.Getpid(), marks.Add(1))
}

// markedSpec returns a spec for script, which may use $MARK and $UP, the path of a
// file that does not exist yet.
func markedSpec(t *testing.T, script string) (s Spec, mark string) {
	t.Helper()
	mark = newMark()
	s = shellSpec(script)
	s.Tag = "MARK=" + mark
	s.Env = append(s.Env, s.Tag, "UP="+filepath.Join(t.TempDir(), "up"))
	return s, mark
}

// livingWith returns the processes that have mark in their command line or
// environment, except this one and zombies.
func livingWith(t *testing.T, mark string) []string {
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
		if len(command) == 0 { // It is a thread of the kernel or has ended, and has no environment either.
			continue
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.Contains(string(command)+"\x00"+string(environ), mark) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// killAndWait kills and reaps a process of a test, which may be dead already.
func killAndWait(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// waitUntil calls ok until it returns true, and reports whether it did in time.
func waitUntil(limit time.Duration, ok func() bool) bool {
	// What is waited for is often a look at every process of the host, which takes milliseconds.
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// onWrite is a writer that calls the function once, at the first write.
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

// mustRunOut is mustRun for a program that its timeout may end. On a busy machine a
// short timeout may pass before the program has started.
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

func mustOutput(t *testing.T, r runner, s Spec) string {
	t.Helper()
	var out strings.Builder
	s.Stdout, s.Stderr = &out, &out
	if res := mustRun(t, r, s); res.Exit != 0 {
		t.Fatalf("exit %d, output %q", res.Exit, out.String())
	}
	return out.String()
}

func sortLines(lines string) []string {
	all := strings.Fields(lines)
	slices.Sort(all)
	return all
}
