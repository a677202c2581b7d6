package proc

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
)

// hogArg makes the test binary hold memory: hogArg MEGABYTES SHARERS. With 0 sharers
// the memory is its own, otherwise that many processes share it.
const hogArg = "__proc-hog"

// shareArg is hogArg for a process that shares memory.
const shareArg = "__proc-share"

func hogMemory(megabytes, sharers string) {
	size, _ := strconv.Atoi(megabytes)
	n, _ := strconv.Atoi(sharers)
	how, fd := unix.MAP_PRIVATE|unix.MAP_ANON, -1
	if n > 0 {
		how, fd = unix.MAP_SHARED, 3
	}
	b, err := unix.Mmap(fd, 0, size<<20, unix.PROT_READ|unix.PROT_WRITE, how)
	if err != nil {
		os.Exit(125)
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	os.Stdout.WriteString("x")
	if n > 1 {
		cmd := exec.Command("/proc/self/exe", hogArg, megabytes, strconv.Itoa(n-1))
		cmd.Stdout, cmd.ExtraFiles = os.Stdout, []*os.File{os.NewFile(3, "shared")}
		_ = cmd.Run()
	}
	time.Sleep(long)
}

// shareMemory makes the shared memory, and executes the first of the processes that
// share it.
func shareMemory(megabytes, sharers string) {
	size, _ := strconv.ParseInt(megabytes, 10, 64)
	fd, err := unix.MemfdCreate("shared", 0)
	if err == nil {
		err = unix.Ftruncate(fd, size<<20)
	}
	if err == nil && fd != 3 {
		err = unix.Dup3(fd, 3, 0)
	}
	if err == nil {
		err = unix.Exec("/proc/self/exe", []string{"hog", hogArg, megabytes, sharers}, os.Environ())
	}
	os.Stderr.WriteString(err.Error())
	os.Exit(125)
}

func TestATreeThatHoldsTooMuchMemoryEnds(t *testing.T) {
	cases := map[string]struct {
		megabytes, sharers string
		limit              int64
		ends               bool
	}{
		"more than it may":                      {"256", "0", 128 << 20, true},
		"less than it may":                      {"64", "0", 256 << 20, false},
		"memory that three share, but not much": {"96", "3", 240 << 20, false},
		"memory that three share, and too much": {"160", "3", 120 << 20, true},
	}
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			useGroupHome(t, groupHome().WithoutUnified())
			if groupHome().MemoryLimiter() != "" {
				useGroupHome(t, cgroup.Home{})
			}
			if m == CGroup {
				useGroupHome(t, cgroup.FindHome())
			}
			for name, c := range cases {
				t.Run(name, func(t *testing.T) { holdMemory(t, m, c.megabytes, c.sharers, c.limit, c.ends) })
			}
		})
	}
}

// holdMemory runs processes that hold memory. If the watchdog has not killed them
// after several measurements, holdMemory ends them.
func holdMemory(t *testing.T, m Method, megabytes, sharers string, limit int64, ends bool) {
	t.Helper()
	s := Spec{Argv: []string{"/proc/self/exe", hogArg, megabytes, sharers}, Env: []string{systemPath}, Timeout: long}
	if sharers != "0" {
		s.Argv[1] = shareArg
	}
	n, _ := strconv.Atoi(sharers)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &holderCount{left: max(n, 1), there: func() {
		if !ends {
			time.AfterFunc(3*lookEvery, cancel)
		}
	}}
	s.Stdout, s.Stderr, s.Limits.Memory = out, os.Stderr, limit
	got, err := runnerFor(m).Run(ctx, s)
	t.Logf("%+v, %v", got, err)
	want := Result{Exit: 137, Ended: Canceled}
	if ends {
		want.Ended, want.Limit = Limited, MemoryLimit
	}
	got.Took = 0
	if err != nil || got != want || !ends && out.left != 0 {
		t.Errorf("got %+v, %v with %d holders to come, want %+v", got, err, out.left, want)
	}
}

// holderCount receives a byte from each process that holds its memory, and calls there
// after the last.
type holderCount struct {
	left  int
	there func()
}

func (h *holderCount) Write(p []byte) (int, error) {
	if h.left -= len(p); h.left == 0 {
		h.there()
	}
	return len(p), nil
}

func TestTheKernelsEndOfTooMuchMemoryIsNamed(t *testing.T) {
	if groupHome().MemoryLimiter() == "" {
		t.Log("no control group that bounds memory is lent to this user here: not tried")
		return
	}
	for _, m := range treeMethods() {
		s := Spec{Argv: []string{"/proc/self/exe", hogArg, "256", "0"}, Env: []string{systemPath}, Timeout: long}
		s.Limits.Memory = 64 << 20
		got := mustRun(t, runnerFor(m), s)
		got.Took = 0
		if want := (Result{Exit: 137, Ended: Signaled, Limit: MemoryLimit}); got != want {
			t.Errorf("%s: got %+v, want %+v", m, got, want)
		}
	}
}
