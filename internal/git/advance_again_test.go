//go:build unix

package git

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAdvanceThatDiesAnywhereIsFinishedByRepeatingIt(t *testing.T) {
	trace := &fault.Plan{}
	l := newLanding(t)
	must(t, l.repo.Advance(fault.With(t.Context(), trace), l.a))
	count := map[string]int{}
	for _, name := range trace.Hits() {
		count[name]++
	}
	if len(count) != 8 {
		t.Fatalf("hits = %v, want all eight points", count)
	}
	for name, n := range count {
		for k := 1; k <= n; k++ {
			l := newLanding(t)
			died := errors.New("died")
			plan := (&fault.Plan{}).Do(name, k, func(context.Context) error { return died })
			if err := l.repo.Advance(fault.With(t.Context(), plan), l.a); !errors.Is(err, died) {
				t.Fatalf("%s:%d: Advance = %v, want the fault", name, k, err)
			}
			_, unfinished, err := l.repo.Unfinished(t.Context())
			moved := gittest.Run(t, l.dir, "rev-parse", "main") == l.a.Commit
			if err != nil || unfinished != moved {
				t.Errorf("%s:%d: Unfinished = %v, %v, and the branch moved: %v", name, k, unfinished, err, moved)
			}
			must(t, l.repo.Advance(t.Context(), l.a))
			l.landed(t)
			if _, unfinished, _ := l.repo.Unfinished(t.Context()); unfinished {
				t.Errorf("%s:%d: it is still unfinished", name, k)
			}
		}
	}
}

func TestRepeatingLeavesWhatAPersonChangedMeanwhile(t *testing.T) {
	l := newLanding(t)
	plan, err := fault.Parse("git.advance.ref.after=EIO")
	must(t, err)
	if err := l.repo.Advance(fault.With(t.Context(), plan), l.a); err == nil {
		t.Fatal("the fault was not seen")
	}
	gittest.Write(t, l.dir, map[string]string{"edit": "mine\n", "gone/deep/file": "mine\n", "new/er/file": "mine\n"})
	must(t, l.repo.Advance(t.Context(), l.a))
	if got, want := gittest.Run(t, l.dir, "status", "--porcelain", "-uall"), "M edit\n M new/er/file\n?? gone/deep/file"; got != want {
		t.Errorf("status = %q, want %q", got, want)
	}
	for name, text := range map[string]string{"edit": "mine\n", "gone/deep/file": "mine\n", "new/er/file": "mine\n", "dir": "now a file\n"} {
		if got := readFile(t, filepath.Join(l.dir, name)); got != text {
			t.Errorf("%s = %q, want %q", name, got, text)
		}
	}
}

func TestALaterAdvanceFinishesTheOneBefore(t *testing.T) {
	l := newLanding(t)
	plan, err := fault.Parse("git.advance.file.before:3=EIO")
	must(t, err)
	if err := l.repo.Advance(fault.With(t.Context(), plan), l.a); err == nil {
		t.Fatal("the fault was not seen")
	}
	c, err := l.repo.Candidate(t.Context(), object.Draft{Base: l.a.Commit, Message: "m", When: when, Changes: []object.FileChange{{Path: "edit", Delete: true}}})
	must(t, err)
	next := Advance{Branch: "main", Onto: l.a.Commit, Commit: c.Commit}
	must(t, l.repo.Advance(t.Context(), next))
	landing{l.dir, l.repo, next}.landed(t)
}

func TestACompletedAdvanceIsNeverDoneAgain(t *testing.T) {
	l := newLanding(t)
	must(t, l.repo.Advance(t.Context(), l.a))
	gittest.Run(t, l.dir, "checkout", "-q", l.a.Onto, "--", "edit")
	before := snapshot(t, l.dir)
	must(t, l.repo.Advance(t.Context(), l.a))
	if d := cmp.Diff(before, snapshot(t, l.dir)); d != "" {
		t.Errorf("what a person took back was landed again: %s", d)
	}
}

func TestOneAdvanceRunsAtATime(t *testing.T) {
	l := newLanding(t)
	var inner error
	plan := (&fault.Plan{}).Do("git.advance.file.after", 1, func(context.Context) error {
		inner = l.repo.Advance(t.Context(), l.a)
		return nil
	})
	must(t, l.repo.Advance(fault.With(t.Context(), plan), l.a))
	wantFault(t, inner, loop.ExitHeld, "wait")
	l.landed(t)
}
