package fault_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
)

var (
	before = fault.New("test.write.before")
	after  = fault.New("test.write.after")
)

// TestMain turns the test binary into the victim of the crash tests: three
// writes, each between its two points.
func TestMain(m *testing.M) {
	if os.Getenv("FAULT_TEST_VICTIM") == "" {
		os.Exit(m.Run())
	}
	for range 3 {
		if err := errors.Join(before.Hit(context.Background()), after.Hit(context.Background())); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(7)
		}
	}
	os.Exit(0)
}

// runVictim runs the victim and returns its trace, its exit and its standard error.
func runVictim(t *testing.T, env ...string) ([]string, *exec.ExitError, string) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), append(env, "FAULT_TEST_VICTIM=1", "PAWL_FAULT_TRACE="+trace)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err = cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	body, err := os.ReadFile(trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(body)), exit, stderr.String()
}

const pair = "test.write.before test.write.after "

func TestAProcessIsKilledAtExactlyTheHitThatItsEnvironmentNames(t *testing.T) {
	cases := map[string]struct{ at, trace string }{
		"the first hit, unnumbered": {"test.write.before", "test.write.before"},
		"the first hit, numbered":   {"test.write.before:1", "test.write.before"},
		"the second of one point":   {"test.write.before:2", pair + "test.write.before"},
		"the third of another":      {"test.write.after:3", pair + pair + pair},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			trace, exit, _ := runVictim(t, "PAWL_FAULTS=1", "PAWL_CRASH_AT="+c.at)
			if exit == nil || exit.Exited() {
				t.Errorf("process ended as %v, want killed by a signal", exit)
			}
			if want := strings.Fields(c.trace); !slices.Equal(trace, want) {
				t.Errorf("trace = %q, want %q", trace, want)
			}
		})
	}
}

func TestAHitThatIsNeverReachedKillsNobody(t *testing.T) {
	trace, exit, stderr := runVictim(t, "PAWL_FAULTS=1", "PAWL_CRASH_AT=test.write.after:4")
	if exit != nil {
		t.Errorf("process ended as %v: %s", exit, stderr)
	}
	if want := strings.Fields(pair + pair + pair); !slices.Equal(trace, want) {
		t.Errorf("trace = %q, want %q", trace, want)
	}
}

func TestTheVariablesAreIgnoredWithoutTheSwitch(t *testing.T) {
	trace, exit, stderr := runVictim(t, "PAWL_CRASH_AT=test.write.before", "PAWL_FAIL_AT=no.such=thing")
	if exit != nil || len(trace) > 0 {
		t.Errorf("process ended as %v with trace %q: %s", exit, trace, stderr)
	}
}

func TestAPlannedErrorReachesTheCallerInARealProcess(t *testing.T) {
	_, exit, stderr := runVictim(t, "PAWL_FAULTS=1", "PAWL_FAIL_AT=test.write.after:2=ENOSPC")
	if exit == nil || exit.ExitCode() != 7 {
		t.Errorf("process ended as %v, want exit 7", exit)
	}
	if want := "fault at test.write.after: " + syscall.ENOSPC.Error(); stderr != want {
		t.Errorf("stderr = %q, want %q", stderr, want)
	}
}

func TestAPlanThatCannotMeanAnythingStopsTheProcess(t *testing.T) {
	cases := map[string]string{
		"PAWL_CRASH_AT=no.such.point":                 `no point is named "no.such.point"`,
		"PAWL_CRASH_AT=test.write.before:0":           `not a number from 1`,
		"PAWL_FAIL_AT=test.write.before=ENOPE":        `no action "ENOPE"`,
		"PAWL_FAIL_AT=test.write.before":              `want name[:k]=action`,
		"PAWL_FAIL_AT=test.write.before:x=EIO":        `not a number from 1`,
		"PAWL_FAIL_AT=test.write.before=EIO,":         `want name[:k]=action`,
		"PAWL_FAIL_AT=no.such.point:2=EIO":            `no point is named "no.such.point"`,
		"PAWL_FAULT_TRACE=/no/such/directory/exists/": `PAWL_FAULT_TRACE: open`,
	}
	for env, want := range cases {
		t.Run(env, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "FAULT_TEST_VICTIM=1", "PAWL_FAULTS=1", env)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("process ended as %v with %q, want a panic with %q", err, out, want)
			}
		})
	}
}

func mustParse(t *testing.T, spec string) *fault.Plan {
	t.Helper()
	p, err := fault.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPlanInAContextFailsTheHitsThatItNames(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []error // of four hits
	}{
		"one hit":             {"test.write.before:2=EIO", []error{nil, syscall.EIO, nil, nil}},
		"persistent":          {"test.write.before:3+=ENOSPC", []error{nil, nil, syscall.ENOSPC, syscall.ENOSPC}},
		"the first rule wins": {"test.write.before:1+=EROFS,test.write.before:2=EIO", []error{syscall.EROFS, syscall.EROFS, syscall.EROFS, syscall.EROFS}},
		"another point":       {"test.write.after:1+=EIO", []error{nil, nil, nil, nil}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := fault.With(t.Context(), mustParse(t, c.spec))
			for i, want := range c.want {
				if err := before.Hit(ctx); !errors.Is(err, want) {
					t.Errorf("hit %d = %v, want %v", i+1, err, want)
				}
			}
		})
	}
}

func TestAPlanRecordsEveryHitInOrder(t *testing.T) {
	p := &fault.Plan{}
	ctx := fault.With(t.Context(), p)
	for _, point := range []*fault.Point{after, before, after} {
		if err := point.Hit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := p.Hits(), []string{after.Name(), before.Name(), after.Name()}; !slices.Equal(got, want) {
		t.Errorf("hits = %q, want %q", got, want)
	}
	if err := before.Hit(t.Context()); err != nil {
		t.Errorf("a context without a plan fails: %v", err)
	}
	if got := len(p.Hits()); got != 3 {
		t.Errorf("a hit outside the context was recorded: %d hits", got)
	}
}

func TestAnActionOfTheTestRunsAtItsHit(t *testing.T) {
	want := errors.New("the lease is gone")
	p := new(fault.Plan).Do("test.write.after", 2, func(context.Context) error { return want })
	ctx := fault.With(t.Context(), p)
	if err := after.Hit(ctx); err != nil {
		t.Errorf("first hit = %v, want nil", err)
	}
	if err := after.Hit(ctx); !errors.Is(err, want) {
		t.Errorf("second hit = %v, want %v", err, want)
	}
}

func TestAStallEndsByItselfOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := fault.With(t.Context(), mustParse(t, "test.write.before:1+=stall"))
		start := time.Now()
		if err := before.Hit(ctx); err != nil || time.Since(start) != fault.Stall {
			t.Errorf("stall = %v after %v, want nil after %v", err, time.Since(start), fault.Stall)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := before.Hit(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stall = %v, want the end of the context", err)
		}
	})
}

func TestAPlannedPanicPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing panicked")
		}
	}()
	_ = before.Hit(fault.With(t.Context(), mustParse(t, "test.write.before=panic")))
}

func TestTwoPointsCannotShareAName(t *testing.T) {
	for _, name := range []string{"test.write.before", "", "With Space", "a:1", "a=b", "a,b"} {
		t.Run(name, func(t *testing.T) {
			known := len(fault.Names())
			defer func() {
				if recover() == nil {
					t.Errorf("New(%q) did not panic", name)
				}
				if len(fault.Names()) != known {
					t.Errorf("New(%q) left its name behind", name)
				}
			}()
			fault.New(name)
		})
	}
}

func TestNamesListsEveryPointSorted(t *testing.T) {
	want := []string{"test.write.after", "test.write.before"}
	if got := fault.Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %q, want %q", got, want)
	}
}

func BenchmarkAnUnarmedHit(b *testing.B) {
	ctx := b.Context()
	for b.Loop() {
		if err := before.Hit(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
