//go:build unix

package projection

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Two runs died before they wrote all of their changes of the same files.
var twoDead = []loop.PendingChange{
	{RunID: "run_1", Seq: 1, Change: edits("a\nb\nc\n", "a\nb\nc\none\n")},
	{RunID: "run_1", Seq: 2, Change: appends("line 1")},
	{RunID: "run_2", Seq: 1, Change: edits("a\nb\nc\none\n", "two\na\nb\nc\none\n")},
	{RunID: "run_2", Seq: 2, Change: appends("line 2")},
}

func TestWhatTwoDeadRunsRecordedIsWrittenWholeInOrderAndOnce(t *testing.T) {
	both := map[string]string{statePath: "two\na\nb\nc\none\n", logPath: header + "line 1\nline 2\n"}
	for name, c := range map[string]struct {
		there map[string]string
		note  string // the run whose changes are known to be written
		want  map[string]string
	}{
		"neither has written anything":          {map[string]string{statePath: "a\nb\nc\n"}, "", both},
		"the first has written one of its two":  {map[string]string{statePath: "a\nb\nc\none\n"}, "", both},
		"the first has written, and noted it":   {map[string]string{statePath: "a\nb\nc\none\n", logPath: header + "line 1\n"}, "run_1", both},
		"the first has, and its note was lost":  {map[string]string{statePath: "a\nb\nc\none\n", logPath: header + "line 1\n"}, "", both},
		"the second has written one of its two": {map[string]string{statePath: "two\na\nb\nc\none\n", logPath: header + "line 1\n"}, "run_1", both},
		"both have, and no note was written":    {both, "", both},
		"a person has changed the file between them": {
			map[string]string{statePath: "a\nb, by hand\nc\none\n", logPath: header + "line 1\n"},
			"run_1",
			map[string]string{statePath: "two\na\nb, by hand\nc\none\n", logPath: header + "line 1\nline 2\n"},
		},
		"a person has taken out what the first had written": {
			map[string]string{statePath: "a\nb\nc\n", logPath: header},
			"run_1",
			map[string]string{statePath: "two\na\nb\nc\n", logPath: header + "line 2\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, c.there)
			m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
			if c.note != "" {
				w, err := m.lockFiles(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.recordRun(c.note); err != nil {
					t.Fatal(err)
				}
				if err := w.file.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // Whoever recovers may die before the rows are gone.
				if done, err := m.Write(t.Context(), loop.Run{}, twoDead); err != nil || done != len(twoDead) {
					t.Fatalf("%d of %d are written: %v", done, len(twoDead), err)
				}
				want(t, root, c.want)
			}
		})
	}
}

func TestARecoveryThatFailsBetweenTwoDeadRunsIsCompletedByTheNext(t *testing.T) {
	for point, c := range map[string]struct {
		done int
		want map[string]string
	}{
		"projection.rename.before:1": {0, map[string]string{statePath: "a\nb\nc\n"}},
		"projection.append.before:1": {1, map[string]string{statePath: "a\nb\nc\none\n"}},
		"projection.rename.before:2": {2, map[string]string{statePath: "a\nb\nc\none\n", logPath: header + "line 1\n"}},
		"projection.append.before:2": {3, map[string]string{statePath: "two\na\nb\nc\none\n", logPath: header + "line 1\n"}},
	} {
		t.Run(point, func(t *testing.T) {
			root := folder(t, map[string]string{statePath: "a\nb\nc\n"})
			m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
			plan, err := fault.Parse(point + "=EIO")
			if err != nil {
				t.Fatal(err)
			}
			ctx := fault.With(t.Context(), plan)
			if done, err := m.Write(ctx, loop.Run{}, twoDead); err == nil || done != c.done {
				t.Fatalf("%d are written, %v, want %d", done, err, c.done)
			}
			want(t, root, c.want)
			if done, err := m.Write(ctx, loop.Run{}, twoDead); err != nil || done != len(twoDead) {
				t.Fatalf("and once more: %d are written, %v", done, err)
			}
			want(t, root, map[string]string{statePath: "two\na\nb\nc\none\n", logPath: header + "line 1\nline 2\n"})
		})
	}
}

// The note of who wrote last is made when a run has ended and all is written. A
// run that goes on records more, and that must be written too.
func TestOnlyARunThatHasEndedIsNotedAsWritten(t *testing.T) {
	root := folder(t, map[string]string{statePath: "a\nb\nc\n"})
	m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
	noted := func() string {
		t.Helper()
		w, err := m.lockFiles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.file.Close() }()
		return w.run
	}
	run := loop.Run{ID: "run_1", State: loop.RunRunning}
	for i, step := range []struct {
		state   loop.RunState
		changes []loop.PendingChange
		want    string
	}{
		{loop.RunRunning, twoDead[:1], ""},
		{loop.RunSettling, twoDead[1:2], ""},
		{loop.RunEnded, nil, ""},
		{loop.RunEnded, twoDead[1:2], "run_1"},
	} {
		run.State = step.state
		if _, err := m.Write(t.Context(), run, step.changes); err != nil {
			t.Fatal(err)
		}
		if got := noted(); got != step.want {
			t.Errorf("after step %d the note says %q, want %q", i, got, step.want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(m.Home, "written", "lp_1")); err != nil || string(text) != "run_1" {
		t.Errorf("the note holds %q, %v", text, err)
	}
	// What the run itself records after its note is written all the same.
	more := []loop.PendingChange{{RunID: "run_1", Seq: 3, Change: appends("line 3")}}
	if _, err := m.Write(t.Context(), run, more); err != nil {
		t.Fatal(err)
	}
	want(t, root, map[string]string{statePath: "a\nb\nc\none\n", logPath: header + "line 1\nline 3\n"})
}
