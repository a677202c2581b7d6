package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
	"github.com/pawl-run/pawl/internal/test/sample"
)

func TestOutputBeyondTheLimitIsNotPassedOn(t *testing.T) {
	cases := map[string]struct {
		script string
		limit  int64
		want   Result
		total  int64
	}{
		"less":              {`printf abc`, 4, Result{Ended: Exited}, 3},
		"exactly the limit": {`printf abcd; exit 3`, 4, Result{Exit: 3, Ended: Exited}, 4},
		"more, at the end of the program": {
			`trap '' TERM; printf abcde; exit 0`, 4, Result{Ended: Limited, Limit: OutputLimit}, 4,
		},
		"without end": {`exec cat /dev/zero`, 100_000, Result{Exit: 137, Ended: Limited, Limit: OutputLimit}, 100_000},
		"on standard error": {
			`exec cat /dev/zero >&2`, 100_000, Result{Exit: 137, Ended: Limited, Limit: OutputLimit}, 100_000,
		},
		"on both together": {
			`cat /dev/zero >&2 & exec cat /dev/zero`, 100_000, Result{Exit: 137, Ended: Limited, Limit: OutputLimit}, 100_000,
		},
	}
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					out, errs := NewRing(0, 0), NewRing(0, 0)
					s := shellSpec(c.script)
					s.Stdout, s.Stderr, s.Grace, s.Timeout = out, errs, long, long
					s.Limits.Output = c.limit
					got := mustRun(t, r, s)
					got.Took = 0
					if c.want.Ended == Limited && c.want.Exit == 0 && got.Exit == 137 {
						got.Exit = 0 // It was killed before it ended by itself.
					}
					if total := out.Total() + errs.Total(); got != c.want || total != c.total {
						t.Errorf("got %+v with %d bytes, want %+v with %d", got, total, c.want, c.total)
					}
				})
			}
		})
	}
}

func TestAMeterPassesOnAsMuchAsItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 1000).Draw(t, "limit")
		exceeded := 0
		m := newMeter(limit, func(Limit) { exceeded++ })
		var asked, got int64
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 300)).Draw(t, "reads") {
			asked += int64(n)
			fits := m.takeBytes(n)
			if fits < 0 || fits > n {
				t.Fatalf("%d of %d fit", fits, n)
			}
			got += int64(fits)
		}
		want := asked
		if limit > 0 {
			want = min(asked, limit)
		}
		if got != want || m.isPassed() != (got < asked) {
			t.Errorf("%d of %d passed on with limit %d, passed %v", got, asked, limit, m.isPassed())
		}
	})
}

func TestAFileDoesNotGrowBeyondItsLimit(t *testing.T) {
	const limit = 64 << 10
	cases := map[string]struct {
		script string
		want   Result
		size   int64
	}{
		"a file within it":          {`head -c 65536 /dev/zero > f`, Result{Ended: Exited}, limit},
		"a file that is written":    {`exec cat /dev/zero > f`, Result{Exit: 153, Ended: Signaled, Limit: FileSizeLimit}, limit},
		"a sparse file":             {`exec truncate -s 1T f`, Result{Exit: 153, Ended: Signaled, Limit: FileSizeLimit}, 0},
		"written by a child":        {`cat /dev/zero > f`, Result{Exit: 153, Ended: Exited, Limit: FileSizeLimit}, limit},
		"a program that carries on": {`cat /dev/zero > f; exit 0`, Result{Ended: Exited}, limit},
		"another failure":           {`exit 9`, Result{Exit: 9, Ended: Exited}, -1},
	}
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					// The shell would end as the child did, and sees it only as
					// long as it has something else to do.
					s := shellSpec("ulimit -c 0; " + c.script + "; exit $?")
					s.Dir, s.Timeout, s.Limits.FileBytes = t.TempDir(), long, limit
					got := mustRun(t, runnerFor(m), s)
					got.Took = 0
					size := int64(-1)
					if info, err := os.Stat(filepath.Join(s.Dir, "f")); err == nil {
						size = info.Size()
					}
					if got != c.want || size != c.size {
						t.Errorf("got %+v and %d bytes, want %+v and %d", got, size, c.want, c.size)
					}
				})
			}
		})
	}
}

// useGroupHome makes h the home of control groups until the test ends.
func useGroupHome(t *testing.T, h cgroup.Home) {
	t.Helper()
	before := groupHome()
	set := func(h cgroup.Home) {
		cgroups.mu.Lock()
		defer cgroups.mu.Unlock()
		cgroups.home, cgroups.found = h, &h
	}
	set(h)
	t.Cleanup(func() { set(before) })
}

// bombs are scripts that fork for ever. They may run only if the kernel enforces the
// limit of processes.
var bombs = map[string]string{
	"a fork bomb":                   `f() { f & f & wait; }; f`,
	"one that traps TERM":           `trap '' TERM HUP; f() { f & f & while :; do wait; done; }; f`,
	"one of daemons":                `(setsid sh -c "$F" &) ; (setsid sh -c "$F" &) ; sleep $MARK`,
	"one that stops itself":         `f() { f & f & kill -STOP $$; wait; }; f`,
	"one that starts after a while": `sleep 0.4; f() { f & f & wait; }; f`,
}

// swarms are scripts that grow to at most a thousand processes.
var swarms = map[string]string{
	"a swarm": `f() { if [ $1 -lt 9 ]; then f $(($1+1)) & f $(($1+1)) & fi; sleep $MARK; }; f 0`,
	"one that traps TERM": `trap '' TERM HUP
		f() { if [ $1 -lt 9 ]; then f $(($1+1)) & f $(($1+1)) & fi; while :; do sleep $MARK; done; }; f 0`,
	"one of daemons": `if [ ${D:=0} -lt 8 ]; then
		D=$((D+1)); export D; (setsid sh -c "$F" &); (setsid sh -c "$F" &); fi; exec sleep $MARK`,
	"one that stops itself":         `f() { if [ $1 -lt 9 ]; then f $(($1+1)) & f $(($1+1)) & fi; kill -STOP $$; sleep $MARK; }; f 0`,
	"one that starts after a while": `sleep 0.4; f() { if [ $1 -lt 9 ]; then f $(($1+1)) & f $(($1+1)) & fi; sleep $MARK; }; f 0`,
}

func TestAForkBombEnds(t *testing.T) {
	if groupHome().ProcessLimiter() == "" {
		t.Log("no control group that bounds processes is lent to this user here: bombs were not tried, swarms are")
		return
	}
	methods := treeMethods()
	for i, m := range methods {
		t.Run(string(m), func(t *testing.T) {
			for j, name := range slices.Sorted(maps.Keys(bombs)) {
				if !sample.All() && j%len(methods) != i { // A sample: each bomb, against one method.
					continue
				}
				script := bombs[name]
				t.Run(name, func(t *testing.T) {
					// The kernel only refuses to fork more, and the script may then end.
					if got := runMultiplying(t, m, script, 700*time.Millisecond); got.Ended == Limited {
						t.Errorf("%+v, want it refused to fork", got)
					}
				})
			}
		})
	}
}

func TestASwarmEndsAlsoWithoutAControlGroup(t *testing.T) {
	// The method CGroup does not exist without control groups.
	methods := slices.DeleteFunc(treeMethods(), func(m Method) bool { return m == CGroup })
	for i, m := range methods {
		t.Run(string(m), func(t *testing.T) {
			useGroupHome(t, cgroup.Home{})
			for j, name := range slices.Sorted(maps.Keys(swarms)) {
				if !sample.All() && j%len(methods) != i { // A sample: each swarm, against one method.
					continue
				}
				script := swarms[name]
				t.Run(name, func(t *testing.T) {
					if got := runMultiplying(t, m, script, long); got.Ended != Limited || got.Limit != ProcessesLimit {
						t.Errorf("%+v, want it ended by the limit", got)
					}
				})
			}
		})
	}
}

// runMultiplying runs a script with a limit of 64 processes.
func runMultiplying(t *testing.T, m Method, script string, timeout time.Duration) Result {
	t.Helper()
	s, mark := markedSpec(t, script)
	s.Env = append(s.Env, "F="+script)
	s.Limits.Processes, s.Timeout = 64, timeout
	got := mustRunOut(t, runnerFor(m), s)
	t.Logf("%+v", got)
	if left := livingWith(t, mark); len(left) > 0 || got.Took > long {
		t.Errorf("%d left: %.200q; took %v", len(left), left, got.Took)
	}
	return got
}

func TestAFailureAtTheLimitOfProcessesIsNamed(t *testing.T) {
	if groupHome().ProcessLimiter() == "" {
		t.Log("no control group is lent to this user here: what the kernel refuses was not tried")
		return
	}
	const script = `i=0; while [ $i -lt $N ]; do sleep 300 & i=$((i+1)); done; exit $STATUS`
	cases := map[string]struct {
		n, status string
		want      Result
	}{
		"a tree beyond it":                    {"60", "0", Result{Exit: 2, Ended: Exited, Limit: ProcessesLimit}},
		"a tree within it that succeeds":      {"10", "0", Result{Ended: Exited}},
		"a tree within it that fails anyway":  {"10", "4", Result{Exit: 4, Ended: Exited}},
		"a tree that has exactly what it may": {"19", "0", Result{Ended: Exited}},
	}
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					s := shellSpec(script)
					s.Env = append(s.Env, "N="+c.n, "STATUS="+c.status)
					s.Limits.Processes, s.Timeout = 20, long
					got := mustRun(t, runnerFor(m), s)
					got.Took = 0
					if got != c.want {
						t.Errorf("got %+v, want %+v", got, c.want)
					}
				})
			}
		})
	}
}

func TestATimeOutIsALimitToo(t *testing.T) {
	for name, r := range allRunners() {
		s := shellSpec("exec sleep 300")
		s.Timeout = 250 * time.Millisecond
		if got := mustRunOut(t, r, s); got.Ended != TimedOut || got.Limit != TimeLimit {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestALimitThatIsNegativeIsRefused(t *testing.T) {
	for _, l := range []Limits{{Processes: -1}, {Memory: -1}, {Output: -1}, {FileBytes: -1}} {
		s := shellSpec("exit 0")
		s.Limits = l
		if got, err := (Tree{}).Run(t.Context(), s); err == nil || got.Ended != NotStarted {
			t.Errorf("%+v: %+v, %v", l, got, err)
		}
	}
}

func TestATreeSaysWhatItEnforces(t *testing.T) {
	got := Tree{}.EnforcedLimits()
	t.Logf("%q", got)
	for _, limit := range []Limit{TimeLimit, OutputLimit, FileSizeLimit, ProcessesLimit, MemoryLimit} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, string(limit)) }) {
			t.Errorf("%q does not name %s", got, limit)
		}
	}
	if got := (Tree{Want: Group}).EnforcedLimits(); !slices.Equal(got, []string{"time", "output"}) {
		t.Errorf("a group enforces %q", got)
	}
}
