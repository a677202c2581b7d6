package proc

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
	"github.com/pawl-run/pawl/internal/ground/proc/stage"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// ownGroups returns the control groups that this process has made.
func ownGroups() []string {
	return groupHome().GroupNames(groupPrefix + strconv.Itoa(os.Getpid()) + "-")
}

// hasUnifiedGroups reports whether this user may make control groups of version 2 here,
// and logs if not.
func hasUnifiedGroups(t *testing.T) bool {
	t.Helper()
	if slices.Contains(treeMethods(), CGroup) {
		return true
	}
	t.Log("this user may not make control groups of version 2 here: not tried")
	return false
}

func TestAGroupIsGoneWhenItsRunHasEnded(t *testing.T) {
	for _, m := range treeMethods() {
		for name, script := range map[string]string{
			"success":   "exit 0",
			"failure":   "sleep 300 & exit 3",
			"time-out":  "(setsid sleep 300 &); exec sleep 300",
			"orphaning": "(setsid sleep 300 &); kill -9 $PPID; sleep 300",
		} {
			s, _ := markedSpec(t, script)
			s.Timeout, s.Limits = 300*time.Millisecond, Limits{Processes: 100, Memory: 1 << 30}
			mustRunOut(t, runnerFor(m), s)
			if left := ownGroups(); len(left) > 0 {
				t.Errorf("%s after %s: groups %q are left", m, name, left)
			}
		}
		s := Spec{Argv: []string{"/dev/null/no"}, Limits: Limits{Processes: 100}}
		if _, err := runnerFor(m).Run(t.Context(), s); err == nil || len(ownGroups()) > 0 {
			t.Errorf("%s: %v, groups %q are left", m, err, ownGroups())
		}
	}
}

func TestAGroupFindsWhatNoTagTellsOf(t *testing.T) {
	if !hasUnifiedGroups(t) {
		return
	}
	cases := map[string]struct {
		method Method
		limits Limits
	}{
		"killed by the kernel":         {CGroup, Limits{}},
		"killed one by one, by a walk": {Subreaper, Limits{Processes: 50}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.limits.Processes > 0 && groupHome().ProcessLimiter() == "" {
				t.Log("no control group can limit processes here: not tried")
				return
			}
			s, mark := markedSpec(t, `(setsid sh -c 'echo > "$UP"; exec env -i sleep $MARK' &)`+up+`kill -9 $PPID; sleep 1`)
			s.Tag, s.Limits, s.Timeout = "", c.limits, long
			got := mustRun(t, Tree{Want: c.method}, s)
			if left := livingWith(t, mark); got.Exit != 137 || len(left) > 0 {
				t.Errorf("%+v, left %q", got, left)
			}
		})
	}
}

func TestTheGroupsOfADeadPawlAreRemovedByTheNext(t *testing.T) {
	if !hasUnifiedGroups(t) {
		return
	}
	mark := newMark()
	cmd := helperCommand(CGroup, "MARK="+mark, `exec sleep $MARK`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer killAndWait(cmd)
	if !waitUntil(long, func() bool { return strings.Contains(strings.Join(livingWith(t, mark), "\n"), " sleep "+mark) }) {
		t.Fatalf("only %q started", livingWith(t, mark))
	}
	prefix := groupPrefix + strconv.Itoa(cmd.Process.Pid) + "-"
	if names := groupHome().GroupNames(prefix); len(names) != 1 || isOrphaned(names[0]) {
		t.Fatalf("groups %q, want one of a living pawl", names)
	}
	killAndWait(cmd)
	if !waitUntil(long, func() bool { return len(livingWith(t, mark)) == 0 }) {
		t.Fatalf("left: %q", livingWith(t, mark))
	}
	names := groupHome().GroupNames(prefix)
	if len(names) == 0 {
		t.Log("another pawl of this host was the next, and removed it")
		return
	}
	if len(names) != 1 || !isOrphaned(names[0]) {
		t.Fatalf("groups %q, want one of a dead pawl", names)
	}
	if err := helperCommand(CGroup, "T=1", "exit 0").Run(); err != nil {
		t.Fatal(err)
	}
	if names := groupHome().GroupNames(prefix); len(names) > 0 {
		t.Errorf("the next pawl left %q", names)
	}
}

func TestOnlyADeadPawlOfThisHostLeavesGroups(t *testing.T) {
	id := Self()
	name := func(pid int, start int64, boot string) string {
		return groupPrefix + strconv.Itoa(pid) + "-" + strconv.FormatInt(start, 10) + "-" + boot + "-1"
	}
	cases := map[string]struct {
		name string
		want bool
	}{
		"this process":                       {newGroupName(), false},
		"an earlier process with this pid":   {name(id.PID, id.Start-1, bootMark()), true},
		"a process of another PID namespace": {name(id.PID, id.Start-1, "x"+bootMark()), false},
		"no process":                         {name(1<<30, 1, bootMark()), true},
		"another's":                          {"pawl-service", false},
		"no numbers":                         {groupPrefix + "a-b-" + bootMark() + "-1", false},
	}
	for what, c := range cases {
		if got := isOrphaned(c.name); got != c.want {
			t.Errorf("%s, %s: got %v, want %v", what, c.name, got, c.want)
		}
	}
}

func TestAProgramThatCannotEnterItsGroupIsNotStarted(t *testing.T) {
	if !hasUnifiedGroups(t) {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p := program{path: "/bin/true", argv: []string{"true"}, env: []string{}}
	p.group = groupHome().MakeGroup(newGroupName(), cgroup.Limits{Kill: true})
	if err := p.group.Remove(); err != nil {
		t.Fatal(err)
	}
	_, err = startStage(t.Context(), stage.KindSubreaper, p, [3]*os.File{null, null, null})
	if !errors.Is(err, errGroup) {
		t.Errorf("got %v, want it refused for its group", err)
	}
}

func TestAHundredTreesDieAtOnce(t *testing.T) {
	trees := sample.Size(30, 100)
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ready, ended sync.WaitGroup
			var lock sync.Mutex
			var killed time.Time
			var took []time.Duration
			_, mark := markedSpec(t, "")
			ready.Add(trees)
			for range trees {
				ended.Go(func() {
					s := shellSpec(`(setsid sleep $MARK &); trap '' TERM; echo; exec sleep $MARK`)
					s.Env = append(s.Env, "MARK="+mark)
					first := onWrite(ready.Done)
					s.Stdout = &first
					_, err := runnerFor(m).Run(ctx, s)
					lock.Lock()
					defer lock.Unlock()
					took = append(took, time.Since(killed))
					if err != nil {
						t.Error(err)
					}
				})
			}
			ready.Wait()
			killed = time.Now()
			cancel()
			ended.Wait()
			slices.Sort(took)
			t.Logf("%d trees killed: p50 %v, p99 %v", trees, took[trees/2], took[trees*99/100])
			if left := livingWith(t, mark); len(left) > 0 {
				t.Errorf("%d left: %.200q", len(left), left)
			}
		})
	}
}

func BenchmarkTreeWithLimits(b *testing.B) {
	for _, m := range []Method{Subreaper, CGroup, PIDNamespace} {
		b.Run(string(m), func(b *testing.B) {
			s := Spec{Argv: []string{"/bin/true"}, Limits: Limits{Processes: 4096, Memory: 8 << 30, Output: 1 << 20, FileBytes: 1 << 30}}
			for b.Loop() {
				if got, err := runnerFor(m).Run(b.Context(), s); err != nil || got.Exit != 0 {
					b.Fatal(got, err)
				}
			}
		})
	}
}

func BenchmarkWatch(b *testing.B) {
	l := Limits{Processes: 4096, Memory: 1 << 40}
	for b.Loop() {
		l.measureUse(os.Getpid())
	}
}
