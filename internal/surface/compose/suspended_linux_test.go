package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// moment is where a whole tree of processes is suspended.
type moment struct {
	phase string
	verb  string
	at    string // the fault point; empty: while a program of the run is at work
	slow  string // the key of the definition whose program that is
}

var moments = []moment{
	{phase: "rehydrate", verb: "run", at: "engine.rehydrate.open.before:1"},
	{phase: "sense", verb: "run", at: "engine.sense.before:1"},
	{phase: "act", verb: "run", slow: "agent_command: '"},
	{phase: "gather", verb: "run", at: "engine.gather.candidate.after:1"},
	{phase: "verify", verb: "run", slow: "verify: "},
	{phase: "conclude", verb: "run", at: "engine.conclude.commit.before:1"},
	{phase: "persist", verb: "run", at: "projection.write.before:1"},
	{phase: "effect", verb: "run", at: "engine.effect.confirm.after:1"},
	{phase: "answer", verb: "approve", at: "engine.claim.commit.after:1"},
	{phase: "effect of an answer", verb: "approve", at: "git.advance.ref.before:1"},
}

// slowly is what a program of a run sleeps, so that it is found at work: no other
// process of the host sleeps for just as long.
const slowly = "2.0173"

// suspension is one tree of processes that sleeps while the world goes on.
type suspension struct {
	*suspended

	moment    moment
	meanwhile string // what another command does; empty: nobody is active
	tree      []int  // all processes, stopped
	before    string // the branches
	said      string // by the other command, if it was an error
}

// A machine that sleeps for longer than a lease finds its runs as they were if
// nobody was active, and else concluded by whoever was; a branch moves by the one
// or by the other, and every loop runs again.
func TestASuspendedMachineLosesNothingAndMovesNothingTwice(t *testing.T) {
	t.Parallel()
	all := sample.All()
	var asleep []*suspension
	lease, sleep := shortLease, shortLease*3/2
	if all {
		lease, sleep = store.Lease, 60*time.Second
	}
	for i, m := range moments {
		for j, meanwhile := range []string{"", "run", "recover", "kill"} {
			if !all && (i%2 == 1 || (i/2+1)%4 != j) { // A sample: each command, and half of the phases.
				continue
			}
			z := suspend(t, m, meanwhile, lease)
			for z == nil { // This host is too slow for the lease.
				lease *= 2
				z = suspend(t, m, meanwhile, lease)
			}
			asleep = append(asleep, z)
		}
	}
	time.Sleep(max(sleep, lease*3/2))
	rows := [][]string{{"suspended in", "meanwhile", "the process", "run", "concluded", "moved", "recorded"}}
	for _, s := range asleep {
		rows = append(rows, s.wake())
	}
	printTable(t, rows)
}

// suspend starts a process, and stops it with all that it has started at the
// moment.
func suspend(t *testing.T, m moment, meanwhile string, lease time.Duration) *suspension {
	t.Helper()
	s := sweepFixture(t, "")
	if m.slow != "" {
		path := filepath.Join(s.root, ".loops/fix/loop.config.yaml")
		text := strings.Replace(readFile(t, path), m.slow, m.slow+"sleep "+slowly+"; ", 1)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.git("commit", "-aqm", "a program that takes its time")
	}
	if m.verb == "approve" {
		proposed(t, s)
	}
	z := &suspension{moment: m, meanwhile: meanwhile}
	if m.at != "" {
		z.suspended = s.stopWith(lease, m.verb, m.at)
	} else {
		z.suspended = s.startUntilSlow(lease, m.verb)
	}
	if z.suspended == nil {
		return nil
	}
	z.tree = stopTree(t, z.cmd.Process.Pid)
	z.before = z.branches()
	t.Cleanup(func() { z.signal(syscall.SIGCONT) })
	return z
}

// startUntilSlow starts a child and waits until the slow program of its run is at
// work.
func (s *fixture) startUntilSlow(lease time.Duration, verb string) *suspended {
	s.t.Helper()
	cmd := s.command(verb, leaseEnv+"="+lease.String())
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	for range 1200 {
		for _, pid := range descendants(s.t, cmd.Process.Pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // It may have ended.
			if string(line) == "sleep\x00"+slowly+"\x00" {
				return &suspended{s, cmd, proc.IdentityOf(cmd.Process.Pid), lease}
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("no program of the run sleeps for %s", slowly)
	return nil
}

// descendants are the process and all that it has started, directly or not.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // It has ended.
		}
		id, rest, _ := strings.Cut(string(text), " ")
		f := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		child, err1 := strconv.Atoi(id)
		parent, err2 := strconv.Atoi(f[1])
		if err1 == nil && err2 == nil {
			children[parent] = append(children[parent], child)
		}
	}
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// stopTree stops a process with all that it has started, from the top: who is
// stopped starts nobody else.
func stopTree(t *testing.T, pid int) (stopped []int) {
	t.Helper()
	for {
		more := slices.DeleteFunc(descendants(t, pid), func(p int) bool { return slices.Contains(stopped, p) })
		if len(more) == 0 {
			return stopped
		}
		for _, p := range more {
			_ = syscall.Kill(p, syscall.SIGSTOP) // It may have ended.
		}
		stopped = append(stopped, more...)
	}
}

func (z *suspension) signal(sig syscall.Signal) {
	for _, pid := range z.tree {
		// A pid that another process has by now is left alone.
		if pid != z.cmd.Process.Pid && proc.Stopped(proc.IdentityOf(pid)) {
			_ = syscall.Kill(pid, sig)
		}
	}
}

func (z *suspension) branches() string {
	return z.git("for-each-ref", "--format=%(refname:short)=%(objectname)", "refs/heads")
}

// wake lets the other command act, continues the tree, and tells what came of it.
func (z *suspension) wake() []string {
	t := z.t
	t.Helper()
	where := fmt.Sprintf("suspended in %s, meanwhile %q", z.moment.phase, z.meanwhile)
	if z.meanwhile != "" {
		v, stderr := z.try(z.meanwhile)
		if z.said = stderr; v == nil && !strings.Contains(stderr, "another process has had") {
			t.Errorf("%s: it said %q", where, stderr)
		}
	}
	z.signal(syscall.SIGCONT)
	v, stderr := z.resume()
	became := "went on"
	switch {
	case v == nil && stderr == "":
		became = "was killed"
	case v == nil:
		became = "gave up"
	}
	if want := loop.OutcomeProposed; z.meanwhile == "" {
		if z.moment.verb == "approve" {
			want = loop.OutcomeLanded
		}
		if v == nil || v.Run.Outcome != want {
			t.Errorf("%s: the run came to %+v %s, want %s", where, v, stderr, want)
		}
	} else if v != nil && z.moment.phase != "persist" {
		// It had lost its run, except where the run had ended already.
		t.Errorf("%s: the process went on: %s %s", where, v.Run.Outcome, v.Run.Detail)
	}
	z.checkDurations(v)
	after := z.pawl("recover")
	n := 1
	if z.moment.verb == "approve" {
		n = 2
	}
	run := z.runs()[n]
	if z.meanwhile == "kill" {
		z.pawl("resume")
	}
	var moved []string
	for branch := range strings.FieldsSeq(z.branches()) {
		if name, _, _ := strings.Cut(branch, "="); !slices.Contains(strings.Fields(z.before), branch) {
			moved = append(moved, name)
		}
	}
	if z.meanwhile == "kill" && len(moved) > 0 {
		t.Errorf("%s: %v moved past the kill switch", where, moved)
	}
	z.nothingLeft()
	z.checkRunnable()
	z.checkMoves()
	z.nothingLeft()
	recorded := string(after.Landing)
	if recorded == "" {
		recorded = "-"
	}
	if len(moved) == 0 {
		moved = []string{"nothing"}
	}
	meanwhile := z.meanwhile
	if meanwhile == "" {
		meanwhile = "nobody"
	}
	concluded := string(run.Outcome)
	if run.Reason != "" {
		concluded += " " + string(run.Reason)
	}
	return []string{z.moment.phase, meanwhile, became, fmt.Sprintf("#%d", run.N), concluded, strings.Join(moved, " "), recorded}
}

// runs are the loop's runs by number.
func (s *fixture) runs() map[int]loop.Run {
	s.t.Helper()
	db := s.openStore()
	defer func() { _ = db.Close() }()
	byNumber := map[int]loop.Run{}
	err := db.View(s.t.Context(), func(r *store.Reader) error {
		claims := s.claims()
		for _, c := range claims {
			run, err := r.Run(s.t.Context(), c.run)
			if err != nil {
				return err
			}
			byNumber[int(run.N)] = run
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return byNumber
}
