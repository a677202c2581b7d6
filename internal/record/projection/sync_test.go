//go:build unix

package projection

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// synced notes what is synced below root while do runs, in order, and for each
// what the memory's files hold at that moment.
func synced(t *testing.T, root string, do func() error) []string {
	t.Helper()
	var list []string
	stop := durable.WatchSyncs(func(f *os.File) error {
		name, below := strings.CutPrefix(f.Name(), root)
		if !below {
			return nil
		}
		name = filepath.Join(".", name)
		info, err := f.Stat()
		if err != nil {
			return err
		}
		kind := "file"
		if info.IsDir() {
			kind = "folder"
		}
		now := held(t, root)
		state, there := now[statePath]
		if !there {
			state = "none"
		}
		list = append(list, fmt.Sprintf("%s %s, state %q, log of %d lines", kind, name, state, strings.Count(now[logPath], "\n")))
		return nil
	})
	defer stop()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return list
}

// A rename is atomic for who reads, and not for a disk that loses power: the new
// content must be there before its name is, and the name before the row that
// asked for it goes.
func TestEveryChangeIsOnTheDiskBeforeItCountsAsWritten(t *testing.T) {
	old := map[string]string{statePath: "old"}
	with := func(files map[string]string, name, text string) map[string]string {
		all := map[string]string{name: text}
		maps.Copy(all, files)
		return all
	}
	for name, c := range map[string]struct {
		there  map[string]string
		change loop.Change
		want   []string
	}{
		"an edit": {old, edits("old", "new"), []string{
			`file .loops/l/.STATE.md.pawl-tmp, state "old", log of 0 lines`, `folder .loops/l, state "new", log of 0 lines`,
		}},
		"a file in folders that are missing": {nil, edits("", "new"), []string{
			`folder .loops, state "none", log of 0 lines`, `folder ., state "none", log of 0 lines`,
			`file .loops/l/.STATE.md.pawl-tmp, state "none", log of 0 lines`, `folder .loops/l, state "new", log of 0 lines`,
		}},
		"an edit whose writer died before the name was": {with(nil, statePath, "new"), edits("old", "new"), []string{`folder .loops/l, state "new", log of 0 lines`}},
		"the first line of a log": {old, appends("line 1"), []string{
			`file .loops/l/run-log.md, state "old", log of 3 lines`, `folder .loops/l, state "old", log of 3 lines`,
		}},
		"one more line": {with(old, logPath, header), appends("line 1"), []string{`file .loops/l/run-log.md, state "old", log of 3 lines`}},
		"a line whose writer died before it was": {with(old, logPath, header+"line 1\n"), appends("line 1"), []string{
			`file .loops/l/run-log.md, state "old", log of 3 lines`,
		}},
		"a file that is put aside": {old, loop.Change{Kind: loop.ChangeAside, Path: statePath, Before: "old", Content: "STATE.md.broken"}, []string{
			`folder .loops/l, state "none", log of 0 lines`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, c.there)
			got := synced(t, root, func() error { return applied(t, root, c.change) })
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("synced (-want +got):\n%s", d)
			}
		})
	}
}

func TestAChangeThatCannotBeSyncedStaysPending(t *testing.T) {
	for name, c := range map[string]struct {
		at     string // what the disk refuses to sync
		change loop.Change
		left   map[string]string
	}{
		"the content of an edit":    {".STATE.md.pawl-tmp", edits("old", "new"), map[string]string{statePath: "old"}},
		"the name of an edit":       {"l", edits("old", "new"), map[string]string{statePath: "new"}},
		"the name of one made once": {"l", edits("older", "old"), map[string]string{statePath: "old"}},
		"the content of a log":      {"run-log.md", appends("line 1"), map[string]string{statePath: "old", logPath: header + "line 1\n"}},
		"the name of a log":         {"l", appends("line 1"), map[string]string{statePath: "old", logPath: header + "line 1\n"}},
		"the name of what is aside": {"l", loop.Change{Kind: loop.ChangeAside, Path: statePath, Before: "old", Content: "x"}, map[string]string{".loops/l/x": "old"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, map[string]string{statePath: "old"})
			stop := durable.WatchSyncs(func(f *os.File) error {
				if strings.HasPrefix(f.Name(), root) && filepath.Base(f.Name()) == c.at {
					return syscall.EIO
				}
				return nil
			})
			defer stop()
			m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
			done, err := m.Write(t.Context(), loop.Run{}, []loop.PendingChange{{RunID: "run_1", Seq: 1, Change: c.change}})
			if done != 0 || !errors.Is(err, syscall.EIO) {
				t.Errorf("%d changes count as written: %v, want EIO", done, err)
			}
			want(t, root, c.left)
		})
	}
}

func TestAFileThatHasGrownTooLargeIsNotEdited(t *testing.T) {
	huge := strings.Repeat("x", MaxFile+1)
	root := folder(t, map[string]string{statePath: huge})
	if err := applied(t, root, edits("old", "new")); err == nil || !strings.Contains(err.Error(), "grown over") {
		t.Errorf("edit = %v, want an error that says so", err)
	}
	if held(t, root)[statePath] != huge {
		t.Error("the file was changed")
	}
}

// What was put aside first is what a person wants to see.
func TestWhatIsAsideIsNeverReplaced(t *testing.T) {
	root := folder(t, map[string]string{statePath: "broken", ".loops/l/aside": "first"})
	if err := applied(t, root, loop.Change{Kind: loop.ChangeAside, Path: statePath, Before: "broken", Content: "aside"}); err != nil {
		t.Fatal(err)
	}
	want(t, root, map[string]string{statePath: "broken", ".loops/l/aside": "first"})
}

// Loops of several homes share no lock but that of the log itself.
func TestALineIsAppendedUnderTheLockOfItsLog(t *testing.T) {
	root := folder(t, map[string]string{logPath: header})
	f, err := os.OpenFile(filepath.Join(root, logPath), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := lockFile(f); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- appliedUnder(t.Context(), root, appends("line 1")) }()
	select {
	case err := <-done:
		t.Fatalf("a line was appended while the log was locked: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	want(t, root, map[string]string{logPath: header})
	if err := errors.Join(f.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	want(t, root, map[string]string{logPath: header + "line 1\n"})
}
