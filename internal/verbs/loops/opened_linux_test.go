package loops_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// opened tells how many definitions of the workspace were opened since it was asked
// before, by any process.
func opened(r *verbtest.Rig) func() int {
	r.T.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		r.T.Fatal(err)
	}
	r.T.Cleanup(func() { _ = unix.Close(fd) })
	names, err := verbtest.Formats().Names(r.Root)
	if err != nil {
		r.T.Fatal(err)
	}
	for _, name := range names {
		if _, err := unix.InotifyAddWatch(fd, filepath.Dir(filepath.Join(r.Root, definition.Path(name))), unix.IN_OPEN); err != nil {
			r.T.Fatal(err)
		}
	}
	buf := make([]byte, 1<<20)
	return func() (count int) {
		for {
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EAGAIN) {
				return count
			}
			if err != nil {
				r.T.Fatal(err)
			}
			for at := 0; at < n; { // wd, mask, cookie and the length of the name, then the name
				length := int(binary.NativeEndian.Uint32(buf[at+12:]))
				at += unix.SizeofInotifyEvent
				if string(bytes.TrimRight(buf[at:at+length], "\x00")) == definition.ConfigFile {
					count++
				}
				at += length
			}
		}
	}
}

// A look at all loops opens what a process has not seen yet, and parses what nobody has.
func TestALookAtAllLoopsOpensEachDefinitionOnceAndWritesNothingIfNoneChanged(t *testing.T) {
	r := verbtest.New(t)
	const loops = 60
	old := time.Now().Add(-time.Hour)
	path := func(i int) string { return filepath.Join(r.Root, definition.Path(fmt.Sprintf("loop-%d", i))) }
	for i := range loops {
		r.DefineLoop(fmt.Sprintf("loop-%d", i), verbtest.FindsNone)
		if err := os.Chtimes(path(i), old, old); err != nil {
			t.Fatal(err)
		}
	}
	opened := opened(r)
	for _, c := range []struct {
		name    string
		do      func()
		by      *verbtest.Rig
		opens   int
		changes int
		commits int64
	}{
		{name: "the first look", do: func() {}, by: r, opens: loops, changes: loops, commits: 1},
		{name: "the same process", do: func() {}, by: r, opens: 0},
		{name: "another process", do: func() {}, by: r.InRepo(r.Root), opens: loops},
		{name: "one has changed", do: func() { r.DefineLoop("loop-7", verbtest.WritesTwo) }, by: r, opens: 1, changes: 1, commits: 1},
	} {
		c.do()
		before := r.Store.Commits()
		opened()
		s, err := c.by.Loops.Register(t.Context())
		if err != nil || s.Loops != loops || s.Changed != c.changes {
			t.Errorf("%s: registered %+v, %v; want %d changed", c.name, s, err, c.changes)
		}
		if n := opened(); n != c.opens {
			t.Errorf("%s: %d definitions were opened, want %d", c.name, n, c.opens)
		}
		if n := r.Store.Commits() - before; n != c.commits {
			t.Errorf("%s: %d commits, want %d", c.name, n, c.commits)
		}
	}
}

// A verb about one loop costs the same however many there are: it opens no
// definition but that loop's.
func TestAVerbOpensOnlyTheDefinitionsThatItIsAbout(t *testing.T) {
	r := verbtest.New(t)
	const loops = 60
	for i := range loops {
		r.DefineLoop(fmt.Sprintf("loop-%d", i), verbtest.FindsNone)
	}
	first, other := r.RunLoop(runs.StartRequest{Loop: "loop-7"}), r.RunLoop(runs.StartRequest{Loop: "loop-8"})
	opened := opened(r)
	ctx := t.Context()
	show := func(name string) func() error {
		return func() error { _, err := r.Loops.Show(ctx, name); return err }
	}
	for _, c := range []struct {
		name string
		do   func() error
		most int
	}{
		{"runs", func() error { _, err := r.Runs.List(ctx, "", 20); return err }, 0},
		{"runs LOOP", func() error { _, err := r.Runs.List(ctx, "loop-7", 20); return err }, 0},
		{"show LOOP", show("loop-7"), 1},
		{"show protocol:LOOP", show("spine:loop-7"), 1},
		{"show of a loop that never ran", show("loop-9"), 1},
		{"show of no loop", func() error {
			if _, err := r.Loops.Show(ctx, "nobody"); !lookup.Absent(err) {
				return fmt.Errorf("show = %w", err)
			}
			return nil
		}, 0},
		{"show RUN", func() error { _, err := r.Runs.Show(ctx, first.ID); return err }, 0},
		{"show LOOP#N", func() error { _, err := r.Runs.Show(ctx, "loop-8#1"); return err }, 0},
		{"why", func() error { _, err := r.Runs.Why(ctx, "loop-7"); return err }, 0},
		{"diff", func() error { _, err := r.Runs.Diff(ctx, "loop-7"); return err }, 0},
		{"run", func() error { r.RunLoop(runs.StartRequest{Loop: "loop-7"}); return nil }, 1},
		{"recovery", func() error { _, err := r.Runs.Recover(ctx); return err }, 0},
		{"pause", func() error { _, err := r.Loops.Pause(ctx, verbtest.Ann, "loop-7", ""); return err }, 0},
		{"kill", func() error { _, err := r.Loops.Kill(ctx, verbtest.Ann, "loop-8", ""); return err }, 0},
		{"resume", func() error { _, err := r.Loops.Resume(ctx, verbtest.Ann, "loop-7"); return err }, 1},
		{"stop", func() error { _, err := r.Runs.Stop(ctx, verbtest.Ann, other.ID, "test"); return err }, 0},
		{"approvals", func() error { _, err := r.Approvals.List(ctx, "loop-7", true); return err }, 0},
		{"audit LOOP", func() error { return r.Audit.VerifyChain(ctx, "loop-7") }, 0},
		{"budget show LOOP", func() error { _, err := r.Budgets.Show(ctx, budgets.Target{Loop: "loop-7"}); return err }, 1},
		{"a look at one loop", func() error { return r.Loops.RegisterOne(ctx, "loop-9") }, 1},
		{"rm", func() error { _, err := r.Loops.Forget(ctx, verbtest.Ann, "loop-9"); return err }, 0},
		{"ls of another process", func() error { _, err := r.InRepo(r.Root).Loops.List(ctx); return err }, loops}, // The watch works.
	} {
		opened()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := opened(); n > c.most || c.most == loops && n != loops {
			t.Errorf("%s opened %d definitions, want at most %d of %d", c.name, n, c.most, loops)
		}
	}
}
