package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

const bound = 512

// limitsOf runs a program in a cell that prints its own limits, and nothing
// before that.
func limitsOf(ctx context.Context, b Box) (string, error) {
	var out bytes.Buffer
	_, err := b.Run(ctx, proc.Spec{
		Argv: []string{"/bin/cat", "/proc/self/limits"}, Dir: b.Tree, Stdout: &out, Stderr: &out,
		Limits: proc.Limits{Processes: bound, FileBytes: 1 << 30},
	})
	return out.String(), err
}

// limitLine returns the soft and the hard limit of that name.
func limitLine(limits, name string) string {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			fields := strings.Fields(rest)
			return strings.Join(fields[:2], " ")
		}
	}
	return limits
}

func TestAProgramHasItsBoundsFromItsFirstInstructionOn(t *testing.T) {
	b := newCell(t)
	for range 40 {
		limits, err := limitsOf(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"Max processes": "512 512", "Max file size": "1073741824 1073741824", "Max core file size": "1 1",
		} {
			if got := limitLine(limits, name); got != want {
				t.Fatalf("%s = %q, want %q", name, got, want)
			}
		}
	}
}

// deniedEnv makes the test binary a process that cannot limit processes, and that
// prints how a start in it ends.
const deniedEnv = "PAWL_TEST_NPROC"

func TestABoundThatCannotBeSetRefusesTheStart(t *testing.T) {
	for what, want := range map[string]string{
		"denied": "limit the number of processes: operation not permitted",
		"lower":  "100 100",
	} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestInAProcessOfItsOwn$", "-test.v")
		cmd.Env = append(os.Environ(), deniedEnv+"="+what)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s\nwant %q", what, err, out, want)
		}
	}
}

// TestInAProcessOfItsOwn is a part of the test before it.
func TestInAProcessOfItsOwn(t *testing.T) {
	switch os.Getenv(deniedEnv) {
	case "denied":
		denyProcessLimits(t)
	case "lower": // A host may allow less than pawl does.
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 100, Max: 100}); err != nil {
			t.Fatal(err)
		}
	default:
		t.Skip("a part of TestABoundThatCannotBeSetRefusesTheStart")
	}
	limits, err := limitsOf(t.Context(), newCell(t))
	if err != nil {
		limits = err.Error()
	}
	t.Log(limitLine(limits, "Max processes"))
}

// denyProcessLimits keeps all threads of this process, and what they start, from
// setting the limit of processes.
func denyProcessLimits(t *testing.T) {
	t.Helper()
	const (
		call, arg1, arg2 = 0, 16 + 8, 16 + 16 // offsets in the kernel's seccomp_data
		load             = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal            = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		end              = unix.BPF_RET | unix.BPF_K
	)
	code := []unix.SockFilter{
		{Code: load, K: call},
		{Code: equal, K: unix.SYS_PRLIMIT64, Jf: 5},
		{Code: load, K: arg1},
		{Code: equal, K: unix.RLIMIT_NPROC, Jf: 3},
		{Code: load, K: arg2},
		{Code: equal, K: 0, Jt: 1},
		{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		t.Fatal(errno)
	}
}
