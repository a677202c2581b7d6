package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/guard"
	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// guardedArg makes the test binary a pawl with a guard:
// guardedArg METHOD RUN…, where a RUN is that of guardedRun.String.
const guardedArg = "__proc-guarded"

// guardedRun is one run of a pawl with a guard. Its lease lasts for an hour until the test
// begins it, so that a slow machine has its tree before it ends.
type guardedRun struct {
	tag           string
	until, before time.Duration
	again         time.Duration // between extensions; 0: once
	script        string
}

// leaseFile is where a run notes when its lease ends.
func (r guardedRun) leaseFile() string {
	return filepath.Join(os.TempDir(), "lease-"+strings.TrimPrefix(r.tag, "MARK="))
}

// extend extends the lease. If a guard was told, it notes a time that is not after its end.
func (r guardedRun) extend(g *Guard) {
	end := guard.BootTime() + int64(r.until)
	g.Extend(r.tag, r.until, r.before)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process != nil {
		_ = os.WriteFile(r.leaseFile()+"~", []byte(strconv.FormatInt(end, 10)), 0o600)
		_ = os.Rename(r.leaseFile()+"~", r.leaseFile())
	}
}

func (r guardedRun) String() string {
	return fmt.Sprintf("%s,%d,%d,%d,%s", r.tag, r.until, r.before, r.again, r.script)
}

func parseGuardedRun(text string) guardedRun {
	f := strings.SplitN(text, ",", 5)
	d := func(i int) time.Duration { n, _ := strconv.ParseInt(f[i], 10, 64); return time.Duration(n) }
	return guardedRun{tag: f[0], until: d(1), before: d(2), again: d(3), script: f[4]}
}

// runAsGuarded prints a line "TAG ENDED WORD" for each run that ends, where WORD says
// whether it was told of a kill.
func runAsGuarded(method string, runs []string) {
	var g Guard
	var running sync.WaitGroup
	begun := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(begun)
	}()
	for _, text := range runs {
		r := parseGuardedRun(text)
		running.Go(func() {
			var mu sync.Mutex
			word := "quiet"
			g.Hold(r.tag, func() { mu.Lock(); defer mu.Unlock(); word = "told" })
			defer g.Release(r.tag)
			g.Extend(r.tag, time.Hour, time.Minute)
			stop := make(chan struct{})
			var extending sync.WaitGroup
			extending.Go(func() {
				select {
				case <-stop:
					return
				case <-begun:
				}
				for r.extend(&g); r.again > 0; r.extend(&g) {
					select {
					case <-stop:
						return
					case <-time.After(r.again):
					}
				}
			})
			s := shellSpec(r.script)
			s.Env, s.Tag, s.Guard = append(os.Environ(), r.tag), r.tag, &g
			res, err := runnerFor(Method(method)).Run(context.Background(), s)
			close(stop)
			extending.Wait()
			mu.Lock()
			defer mu.Unlock()
			fmt.Println(r.tag, res.Ended, word, err)
		})
	}
	running.Wait()
	g.Close()
	os.Exit(0)
}

// guardedPawl is a running pawl with a guard.
type guardedPawl struct {
	*exec.Cmd

	leases io.Closer
	lines  *bufio.Scanner
}

func startGuarded(t *testing.T, method Method, runs ...guardedRun) *guardedPawl {
	t.Helper()
	args := []string{guardedArg, string(method)}
	for _, r := range runs {
		args = append(args, r.String())
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stderr = os.Stderr
	leases, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killAndWait(cmd) })
	return &guardedPawl{cmd, leases, bufio.NewScanner(out)}
}

// begin lets the leases of the runs last as long as they say, from now on.
func (p *guardedPawl) begin(t *testing.T, runs ...guardedRun) {
	t.Helper()
	p.leases.Close()
	for _, r := range runs {
		t.Cleanup(func() { _ = os.Remove(r.leaseFile()) })
		if !waitUntil(long, func() bool { _, err := os.Stat(r.leaseFile()); return err == nil }) {
			t.Fatal("the lease does not begin")
		}
	}
}

// guards are the guards below pid.
func guards(pid int) (found []int) {
	for _, p := range stage.ReadDescendants(pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if string(line) == "pawl\x00"+guard.Arg+"\x00" {
			found = append(found, p.PID)
		}
	}
	return found
}

// detachedTree is a script of a program with a daemon: four processes have the mark.
const detachedTree = `sleep $MARK & (setsid sh -c 'sleep $MARK & sleep $MARK' &) ; sleep $MARK`

// markedTree returns a run whose tree has the mark.
func markedTree(until time.Duration) (r guardedRun, mark string) {
	mark = newMark()
	return guardedRun{
		tag: "MARK=" + mark, until: until, before: until / 10, script: strings.ReplaceAll(detachedTree, "$MARK", mark),
	}, mark
}

// sleepsWith are the living sleeps with the mark.
func sleepsWith(t *testing.T, mark string) (pids []int) {
	t.Helper()
	for _, line := range livingWith(t, mark) {
		if id, command, _ := strings.Cut(line, " "); command == "sleep "+mark+" " {
			pid, _ := strconv.Atoi(id)
			pids = append(pids, pid)
		}
	}
	return pids
}

func (p *guardedPawl) awaitTrees(t *testing.T, marks ...string) {
	t.Helper()
	for _, mark := range marks {
		if !waitUntil(long, func() bool { return len(sleepsWith(t, mark)) == 4 }) {
			t.Fatalf("%q is up, want four sleeps", livingWith(t, mark))
		}
	}
}

func (p *guardedPawl) stop(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if !waitUntil(long, func() bool { return Stopped(IdentityOf(p.Process.Pid)) }) {
		t.Fatal("it did not stop")
	}
}

// resume continues it and returns how its runs ended, by tag.
func (p *guardedPawl) resume(t *testing.T) map[string]string {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	return p.ends(t)
}

func (p *guardedPawl) ends(t *testing.T) map[string]string {
	t.Helper()
	ends := map[string]string{}
	for p.lines.Scan() {
		tag, end, _ := strings.Cut(p.lines.Text(), " ")
		ends[tag] = end
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	return ends
}

func TestAStoppedPawlLosesItsTreesBeforeTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			r, mark := markedTree(8 * time.Second)
			r.again, r.before = 100*time.Millisecond, 4*time.Second
			p := startGuarded(t, m, r)
			p.awaitTrees(t, mark)
			p.begin(t, r)
			p.stop(t)
			text, err := os.ReadFile(r.leaseFile())
			if err != nil {
				t.Fatal(err)
			}
			end, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			for ; len(sleepsWith(t, mark)) > 0; time.Sleep(20 * time.Millisecond) {
				if guard.BootTime() > end+int64(long) {
					t.Fatalf("left: %q", livingWith(t, mark))
				}
			}
			if late := guard.BootTime() - end; late > 0 {
				t.Errorf("its programs were gone %s after the end of the lease", time.Duration(late))
			}
			if left := livingWith(t, mark); !waitUntil(long, func() bool { left = exceptPawl(livingWith(t, mark)); return len(left) == 0 }) {
				t.Errorf("left: %q", left)
			}
			if got := p.resume(t)[r.tag]; got != "canceled told <nil>" {
				t.Errorf("its run ended as %q", got)
			}
		})
	}
}

func TestNoProgramStartsBeforeTheGuardKnowsItsTree(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	touch, err := exec.LookPath("touch")
	if err != nil {
		t.Fatal(err)
	}
	order, err := orderFile(stage.Order{Kind: stage.KindSubreaper, Path: touch, Argv: []string{"touch", ran}})
	if err != nil {
		t.Fatal(err)
	}
	defer order.Close()
	for _, first := range []byte{'x', stage.Go} {
		link, far, err := linkPair()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := link.Write([]byte{first}); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", stage.Arg)
		cmd.ExtraFiles = []*os.File{order, far}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		far.Close()
		err = cmd.Wait()
		link.Close()
		if _, missing := os.Stat(ran); (missing == nil) != (first == stage.Go) || (err == nil) != (first == stage.Go) {
			t.Errorf("after %q the program ran: %v, and the stage ended with %v", first, missing == nil, err)
		}
		if _, err := order.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// exceptPawl leaves out the helper, which has the mark in its command line.
func exceptPawl(lines []string) (others []string) {
	for _, line := range lines {
		if !strings.Contains(line, guardedArg) {
			others = append(others, line)
		}
	}
	return others
}

func TestOnlyTheRunsWhoseTimeIsOverAreKilled(t *testing.T) {
	t.Parallel()
	for _, m := range treeMethods() {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			short, first := markedTree(2 * time.Second)
			other, second := markedTree(time.Hour)
			p := startGuarded(t, m, short, other)
			p.awaitTrees(t, first, second)
			p.begin(t, short, other)
			p.stop(t)
			if !waitUntil(long, func() bool { return len(sleepsWith(t, first)) == 0 }) {
				t.Errorf("left: %q", livingWith(t, first))
			}
			if n := len(sleepsWith(t, second)); n != 4 {
				t.Errorf("%d of four of the other run are left", n)
			}
			for _, pid := range sleepsWith(t, second) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			ends := p.resume(t)
			if ends[short.tag] != "canceled told <nil>" || !strings.HasSuffix(ends[other.tag], "quiet <nil>") {
				t.Errorf("they ended as %q", ends)
			}
		})
	}
}

func TestAGuardThatWasKilledIsStartedAgainAndGuards(t *testing.T) {
	t.Parallel()
	r, mark := markedTree(5 * time.Second)
	r.again = 50 * time.Millisecond
	p := startGuarded(t, Tree{}.Method(), r)
	p.awaitTrees(t, mark)
	for range 3 {
		first := guards(p.Process.Pid)
		if len(first) != 1 {
			t.Fatalf("guards: %v, want one", first)
		}
		if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if !waitUntil(long, func() bool { g := guards(p.Process.Pid); return len(g) == 1 && g[0] != first[0] }) {
			t.Fatalf("guards: %v after %v was killed", guards(p.Process.Pid), first)
		}
	}
	p.begin(t, r)
	p.stop(t)
	if !waitUntil(long, func() bool { return len(sleepsWith(t, mark)) == 0 }) {
		t.Fatalf("left: %q", livingWith(t, mark)) // The run would go on for ever.
	}
	if got := p.resume(t)[r.tag]; got != "canceled told <nil>" {
		t.Errorf("its run ended as %q", got)
	}
}

func TestAGuardOutlivesTheSignalsOfATerminalAndStops(t *testing.T) {
	t.Parallel()
	r, mark := markedTree(time.Hour)
	p := startGuarded(t, Tree{}.Method(), r)
	p.awaitTrees(t, mark)
	id := IdentityOf(guards(p.Process.Pid)[0])
	if session, err := syscall.Getpgid(id.PID); session != id.PID || err != nil {
		t.Errorf("it is in the process group %d, %v", session, err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(id.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(id.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if !waitUntil(long, func() bool { return Alive(id) && !Stopped(id) }) {
		t.Error("it stays stopped")
	}
}

func TestNothingIsLeftOfAPawlThatWasKilled(t *testing.T) {
	t.Parallel()
	for _, m := range treeMethods() {
		for _, stopped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/guard stopped %v", m, stopped), func(t *testing.T) {
				t.Parallel()
				r, mark := markedTree(time.Hour)
				p := startGuarded(t, m, r)
				p.awaitTrees(t, mark)
				id := IdentityOf(guards(p.Process.Pid)[0])
				if stopped { // As a whole tree of processes is suspended: nobody continues the guard then.
					p.stop(t)
					_ = syscall.Kill(id.PID, syscall.SIGSTOP)
				}
				killAndWait(p.Cmd)
				if !waitUntil(long, func() bool { return !Alive(id) && len(livingWith(t, mark)) == 0 }) {
					t.Errorf("guard alive: %v, left: %q", Alive(id), livingWith(t, mark))
				}
			})
		}
	}
}

func TestARunThatEndsIsNotTouched(t *testing.T) {
	t.Parallel()
	r, _ := markedTree(time.Hour)
	r.script = "exit 3"
	late, mark := markedTree(200 * time.Millisecond) // Nothing is killed for want of a word once it has ended.
	late.script = "sleep 0.1"
	last, _ := markedTree(time.Hour)
	last.script = `sleep 0.5; [ $(ls /proc/self/fd | wc -l) = 4 ] || kill -9 $$` // Three streams, and the folder that ls reads.
	p := startGuarded(t, Tree{}.Method(), r, late, last)
	p.begin(t)
	ends := p.ends(t)
	for tag, want := range map[string]string{r.tag: "exit quiet <nil>", last.tag: "exit quiet <nil>"} {
		if ends[tag] != want {
			t.Errorf("%s ended as %q, want %q", tag, ends[tag], want)
		}
	}
	if left := livingWith(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A whole tree that was suspended and continued has its programs for a moment, in which
// pawl can say that the run is still its own.
func TestASuspendedTreeThatIsContinuedKeepsItsProgramsIfItIsTold(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]time.Duration{"told": 50 * time.Millisecond, "not told": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mark := markedTree(5 * time.Second)
			r.again = again
			p := startGuarded(t, Tree{}.Method(), r)
			p.awaitTrees(t, mark)
			p.begin(t, r)
			id := IdentityOf(guards(p.Process.Pid)[0])
			p.stop(t)
			_ = syscall.Kill(id.PID, syscall.SIGSTOP)
			time.Sleep(r.until + 100*time.Millisecond)
			_ = syscall.Kill(id.PID, syscall.SIGCONT)
			_ = p.Process.Signal(syscall.SIGCONT)
			if again == 0 {
				if got := p.ends(t)[r.tag]; got != "canceled told <nil>" {
					t.Errorf("its run ended as %q", got)
				}
				return
			}
			time.Sleep(3 * time.Second) // Longer than a guard waits for a word.
			if n := len(sleepsWith(t, mark)); n != 4 {
				t.Errorf("%d of four are left", n)
			}
		})
	}
}

func BenchmarkTreeWithGuard(b *testing.B) {
	for name, guarded := range map[string]bool{"without": false, "with": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var g *Guard
				s := shellSpec("exit 0")
				if guarded {
					g = new(Guard)
					s.Env, s.Tag, s.Guard = append(s.Env, "MARK=bench"), "MARK=bench", g
					g.Hold(s.Tag, func() {})
					g.Extend(s.Tag, time.Hour, time.Minute)
				}
				if _, err := (Tree{}).Run(b.Context(), s); err != nil {
					b.Fatal(err)
				}
				g.Release(s.Tag)
				g.Close()
			}
		})
	}
}
