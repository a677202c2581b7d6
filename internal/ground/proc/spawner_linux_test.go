package proc

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/spawner"
	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// spawnedTree runs programs in user namespaces that a spawner makes.
type spawnedTree struct{}

func (spawnedTree) Run(ctx context.Context, s Spec) (Result, error) {
	for stageSpawnerPID() == 0 { // This process may have too few starts behind it.
		if _, err := (userTree{}).Run(context.WithoutCancel(ctx), shellSpec("exit 0")); err != nil {
			return Result{}, err
		}
	}
	return userTree{}.Run(ctx, s)
}

// userTree runs programs in user namespaces, whoever makes them.
type userTree struct{}

func (userTree) Run(ctx context.Context, s Spec) (Result, error) {
	return runProgram(ctx, s, resolveProgram, treeMethod{method: PIDNamespace, kind: stage.KindUser}.startInGroup)
}

// stageSpawnerPID returns the pid of the spawner of this process, 0 without one.
func stageSpawnerPID() int {
	for _, p := range stage.ListProcesses() {
		command, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
		if p.Parent == os.Getpid() && !p.Dead && strings.HasSuffix(string(command), "\x00"+spawner.Arg+"\x00") {
			return p.PID
		}
	}
	return 0
}

func TestWhatASpawnerStartsIsAChildOfPawl(t *testing.T) {
	s, _ := markedSpec(t, `echo; exec sleep $MARK`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var parents []int
	look := onWrite(func() {
		for _, p := range stage.FindTagged(s.Tag) {
			parents = append(parents, p.Parent)
		}
		cancel()
	})
	s.Stdout = &look
	if got, err := (spawnedTree{}).Run(ctx, s); err != nil || got.Ended != Canceled {
		t.Fatalf("got %+v, %v", got, err)
	}
	if len(parents) != 2 || parents[0] != os.Getpid() && parents[1] != os.Getpid() {
		t.Errorf("the stage and the program are children of %v, and this is %d", parents, os.Getpid())
	}
}

func TestWithoutTheSpawnerProgramsAreStartedAllTheSame(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"it is dead": syscall.SIGKILL, "it is stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			s, mark := markedSpec(t, `echo; exec sleep $MARK`)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			before := onWrite(func() {
				old := stageSpawnerPID()
				_ = syscall.Kill(old, signal)
				if out := mustOutput(t, runnerFor(PIDNamespace), shellSpec("echo out")); out != "out\n" {
					t.Errorf("printed %q", out)
				}
				if got, err := (userTree{}).Run(t.Context(), shellSpec("exit 7")); err != nil || got.Exit != 7 {
					t.Errorf("got %+v, %v", got, err)
				}
				if !waitUntil(10*time.Second, func() bool { now := stageSpawnerPID(); return now != old }) {
					t.Error("the old spawner is still there")
				}
				if len(livingWith(t, mark)) == 0 {
					t.Error("what it had started is dead")
				}
				cancel()
			})
			s.Stdout = &before
			if got, err := (spawnedTree{}).Run(ctx, s); err != nil || got.Ended != Canceled {
				t.Fatalf("got %+v, %v", got, err)
			}
			if left := livingWith(t, mark); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestAPreparedSpawnerStartsTheFirstProgram(t *testing.T) {
	s := &stageSpawner
	s.mu.Lock()
	if s.process != nil {
		s.process.end()
	}
	s.process, s.starts = nil, 0
	s.mu.Unlock()
	PrepareSpawner()
	PrepareSpawner() // There is one for all.
	if got, err := (userTree{}).Run(t.Context(), shellSpec("exit 7")); err != nil || got.Exit != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
	if stageSpawnerPID() == 0 {
		t.Error("the first program was started without a spawner")
	}
}

func TestAUserNamespaceOutlivesTheProcessThatItWasMadeOf(t *testing.T) {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	ids := []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	f, err := UserNamespace(ids, []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	made, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil || !strings.HasPrefix(made, "user:[") || made == own {
		t.Errorf("made %s, %v, and this process is in %s", made, err, own)
	}
	for _, p := range stage.ListProcesses() {
		command, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
		if p.Parent == os.Getpid() && strings.HasSuffix(string(command), "\x00"+stage.Arg+"\x00") {
			t.Errorf("its process %d is still there", p.PID)
		}
	}
}

// BenchmarkStartFromALargeProcess starts programs in user namespaces from a process with
// 100 MB in memory.
func BenchmarkStartFromALargeProcess(b *testing.B) {
	ballast := make([]byte, 100<<20)
	for i := range ballast {
		ballast[i] = 1
	}
	b.Run("forked", func(b *testing.B) {
		stageSpawner.mu.Lock() // A start that cannot ask the spawner forks.
		stageSpawner.starts = -1 << 30
		stageSpawner.mu.Unlock()
		benchmarkRun(b, userTree{})
	})
	stageSpawner.starts = fewStarts
	b.Run("spawned", func(b *testing.B) { benchmarkRun(b, userTree{}) })
	runtime.KeepAlive(ballast)
}
