package stage

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAnOrderArrivesAsItWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.String())
		want := Order{
			Kind: Kind(rapid.Byte().Draw(t, "kind")),
			Dir:  rapid.String().Draw(t, "dir"),
			Path: rapid.String().Draw(t, "path"),
			Argv: list.Draw(t, "argv"),
			Env:  list.Draw(t, "env"),
			Bounds: Bounds{
				FileBytes: rapid.Uint64().Draw(t, "file bytes"),
				Group:     rapid.String().Draw(t, "group"),
				Tasks:     list.Draw(t, "tasks"),
			},
		}
		encoded := want.Encode()
		got, ok := decodeOrder(encoded)
		if !ok || got.Kind != want.Kind || got.Dir != want.Dir || got.Path != want.Path ||
			!slices.Equal(got.Argv, want.Argv) || !slices.Equal(got.Env, want.Env) ||
			got.Bounds.FileBytes != want.Bounds.FileBytes || got.Bounds.Group != want.Bounds.Group ||
			!slices.Equal(got.Bounds.Tasks, want.Bounds.Tasks) {
			t.Fatalf("got %+v, %v; want %+v", got, ok, want)
		}
		cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")
		if _, ok := decodeOrder(encoded[:cut]); ok {
			t.Errorf("%d of %d bytes were taken for an order", cut, len(encoded))
		}
		if _, ok := decodeOrder(append(encoded, 0)); ok {
			t.Error("an order with something behind it was taken")
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("p\xff\xff\xff\xff"))
	f.Add(append([]byte("p\x00\x00\x00\x00\x00\x00\x00\x00"), 0xff, 0xff, 0xff, 0xff))
	f.Add(Order{Kind: KindPID, Dir: "/", Path: "/bin/sh", Argv: []string{"sh", ""}, Env: []string{"A=1"}}.Encode())
	f.Add(Order{Kind: KindSubreaper, Path: "/bin/sh", Bounds: Bounds{FileBytes: 1 << 40, Group: "/g", Tasks: []string{"/t"}}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, ok := decodeOrder(b); ok && string(o.Encode()) != string(b) {
			t.Errorf("%q reads as %+v, which is %q", b, o, o.Encode())
		}
	})
}

func TestAReportArrivesAsItWasSent(t *testing.T) {
	for _, want := range []Report{
		{Event: Started},
		{Event: Refused, Step: StepExec, Errno: syscall.ENOENT},
		{Event: Ended, Status: 0x0700},
		{Event: Ended, Status: syscall.WaitStatus(syscall.SIGKILL)},
	} {
		if got := ParseReport([ReportSize]byte(want.encode())); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestEveryStepHasAName(t *testing.T) {
	for s := StepOrder; s <= StepExec; s++ {
		if s.String() == "unknown step" {
			t.Errorf("step %d has none", s)
		}
	}
}

func TestTheStageImportsNothingThatWouldDelayIt(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{`"os"`, `"runtime"`, `"syscall"`, `"unsafe"`, `"golang.org/x/sys/unix"`}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if !slices.Contains(allowed, i.Path.Value) {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}

func TestAStageThatIsStartedByHandEndsAtOnce(t *testing.T) {
	order, err := os.CreateTemp(t.TempDir(), "order")
	if err != nil {
		t.Fatal(err)
	}
	defer order.Close()
	for name, extra := range map[string][]*os.File{"no order": nil, "an empty order": {order}} {
		cmd := exec.Command("/proc/self/exe", Arg)
		cmd.ExtraFiles = extra
		err := cmd.Run()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != exitLost {
			t.Errorf("%s: %v, want exit status %d", name, err, exitLost)
		}
	}
}

func TestAnyNameOfAProgramIsReadCorrectly(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", ") Z 1 (x", "a b) R 9", "new\nline"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, binary, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "300")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got, ok := ReadProcess(cmd.Process.Pid)
		if !ok || got.Parent != os.Getpid() || got.Dead || got.Start == 0 {
			t.Errorf("%q: %+v, %v", name, got, ok)
		}
		if sent, _ := (ID{PID: got.PID, Start: got.Start + 1}).Signal(syscall.SIGKILL); sent {
			t.Errorf("%q: a process of another time was signalled", name)
		}
		if sent, _ := got.Signal(syscall.SIGKILL); !sent {
			t.Errorf("%q was not signalled", name)
		}
		_ = cmd.Wait()
	}
}

func TestOnlyLivingDescendantsAreFound(t *testing.T) {
	p := func(pid, parent int) Process { return Process{ID: ID{PID: pid, Start: 1}, Parent: parent} }
	dead := p(12, 10)
	dead.Dead = true
	all := []Process{p(1, 0), p(10, 1), p(11, 10), dead, p(13, 12), p(20, 1), p(30, 31), p(31, 30)}
	cases := map[string]struct {
		root int
		want []int
	}{
		"everything below PID 1":               {1, []int{10, 11, 13, 20}},
		"children, also of a zombie":           {10, []int{11, 13}},
		"a process without children":           {20, nil},
		"a cycle, as a reused pid may make it": {30, []int{31}},
		"a process that is gone":               {99, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, p := range FindDescendants(all, func(p Process) bool { return p.PID == c.root }) {
				got = append(got, p.PID)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKillAllStopsEverythingBeforeItKillsAnything(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	stat := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat"
	looks := 0
	find := func() []Process {
		p, ok := ReadProcess(cmd.Process.Pid)
		if !ok || p.Dead {
			return nil
		}
		if looks++; looks == 2 {
			var b []byte
			for end := time.Now().Add(time.Minute); !strings.Contains(string(b), ") T "); {
				if b, _ = os.ReadFile(stat); time.Now().After(end) {
					t.Fatalf("second look finds %q, want it stopped", b)
				}
			}
		}
		return []Process{p}
	}
	if killed, clean := KillAll(find, func() bool { return false }); killed != 1 || !clean {
		t.Errorf("killed %d, clean %v", killed, clean)
	}
}

func TestKillAllEndsAfterTwoRoundsThatFoundNothing(t *testing.T) {
	rounds := 0
	none := func() []Process { rounds++; return nil }
	if killed, clean := KillAll(none, func() bool { return false }); killed != 0 || !clean || rounds != 2 {
		t.Errorf("killed %d, clean %v after %d rounds", killed, clean, rounds)
	}
	if _, clean := KillAll(none, func() bool { return true }); clean {
		t.Error("KillAll was stopped and reports that nothing is left")
	}
}
