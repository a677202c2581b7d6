package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// starts measures the start and the end of a program that does nothing, in each
// of the ways that there are.
func starts(b *testing.B) []row {
	b.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	dir := b.TempDir()
	tree, scratch := filepath.Join(dir, "tree"), filepath.Join(dir, "scratch")
	uid, gid := sandbox.Full.Owner()
	for _, made := range []string{tree, scratch} {
		if err := os.Mkdir(made, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.Chown(made, uid, gid); err != nil {
			b.Fatal(err)
		}
	}
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil { //nolint:gosec // Programs of another user find the way through it.
			b.Fatal(err)
		}
	}
	box := sandbox.Box{Tree: tree, Dir: tree, Home: "/home/pawl", Scratch: scratch}
	at := func(t sandbox.Tier) sandbox.Box { box := box; box.Tier = t; return box }
	type way struct {
		name, target string
		exec         interface {
			Run(ctx context.Context, s proc.Spec) (proc.Result, error)
		}
	}
	ways := []way{{"plain", "", proc.Plain{}}, {"as a tree", "", proc.Tree{}}, {"full", "5–10 ms", at(sandbox.Full)}}
	if sandbox.Check(b.Context(), dir, sandbox.Landlock) == nil { // Linux before 6.7 does not have it.
		ways = append(ways, way{"landlock", "", at(sandbox.Landlock)})
	}
	took := make([][]time.Duration, len(ways))
	for range 41 {
		for i, way := range ways { // In turns, so that what else the machine does strikes all alike.
			took[i] = append(took[i], timed(func() {
				res, err := way.exec.Run(b.Context(), proc.Spec{Argv: []string{"/bin/true"}, Dir: tree, Env: []string{"PATH=/usr/bin:/bin"}})
				if err != nil || res.Exit != 0 {
					b.Fatal(way.name, res, err)
				}
			}))
		}
	}
	bare := median(took[0])
	var rows []row
	for i, way := range ways {
		d := median(took[i])
		rows = append(rows, row{"start and end of `true`, " + way.name, millis(d), way.target, "fork and exec " + millis(bare), ratio(d, bare)})
	}
	return rows
}

// killSwitch measures how long the processes of each of many runs live on, and
// when the last run is concluded: on one node by a file, on two by a row.
func killSwitch(b *testing.B) []row {
	b.Helper()
	one := newFixture(b, 5, "")
	database := pgtest.URL(b)
	here, there := newFixture(b, 5, database), newFixture(b, 5, database)
	return []row{
		killed(b, "kill switch to zero processes, 100 sandboxes", "p99 < 1 s", func() { one.write(".loops/PAUSED", "") }, one),
		killed(b, "the same by `pause --everywhere`, 50 sandboxes on each of two nodes", "p99 < 2 s", func() {
			sw, err := here.d.Everywhere().Pause(b.Context(), loop.Actor{Who: "bench", Role: loop.RoleHuman}, "")
			if err == nil && len(sw.Silent) > 0 {
				err = fmt.Errorf("silent: %v", sw.Silent)
			}
			here.must(err)
		}, here, there),
	}
}

func killed(b *testing.B, name, target string, pull func(), nodes ...*fixture) row {
	b.Helper()
	const loops = 100
	long := fmt.Sprintf("6%d", os.Getpid())
	loopName := func(i int) string { return fmt.Sprintf("sleeps-%s-%d", long, i) }
	var all sync.WaitGroup
	ended := make([]time.Duration, loops)
	var pulled time.Time
	for i := range loops {
		// At L1 they do not exclude each other.
		node := nodes[i%len(nodes)]
		node.loop(loopName(i), "L1", "agent: command\nagent_command: 'sleep "+long+"'")
		all.Go(func() {
			node.run(b.Context(), loopName(i), loop.OutcomePaused)
			ended[i] = time.Since(pulled)
		})
	}
	for len(withWord("cmdline", "sleep\x00"+long+"\x00")) < loops {
		time.Sleep(20 * time.Millisecond)
	}
	living := make([][]string, loops)
	for i := range loops {
		living[i] = withWord("environ", "PAWL_LOOP="+loopName(i)+"\x00")
	}
	pulled = time.Now()
	var answered time.Duration
	all.Go(func() {
		pull()
		answered = time.Since(pulled)
	})
	gone := untilGone(living)
	all.Wait()
	if left := withWord("environ", "PAWL_LOOP=sleeps-"+long); len(left) > 0 {
		b.Fatalf("%d processes live on", len(left))
	}
	slices.Sort(gone)
	slices.Sort(ended)
	return row{
		name + ", p50 / p99", millis(gone[loops/2]) + " / " + millis(gone[loops*99/100-1]), target,
		"switch returned after " + millis(answered) + ", last run concluded " + millis(ended[loops-1]), "",
	}
}

// withWord lists the processes of the host that have a word in a file of theirs.
func withWord(file, word string) (dirs []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/" + file)
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), word) {
			dirs = append(dirs, filepath.Dir(name))
		}
	}
	return dirs
}

// untilGone returns for each group of processes how long it took until none of
// them was there.
func untilGone(groups [][]string) []time.Duration {
	start := time.Now()
	took := make([]time.Duration, len(groups))
	for left := len(groups); left > 0; time.Sleep(2 * time.Millisecond) {
		for i, group := range groups {
			if took[i] > 0 {
				continue
			}
			groups[i] = slices.DeleteFunc(group, func(dir string) bool {
				_, err := os.Lstat(dir)
				return err != nil
			})
			if len(groups[i]) == 0 {
				took[i] = time.Since(start)
				left--
			}
		}
	}
	return took
}
