//go:build unix

package projection

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	statePath = ".loops/l/STATE.md"
	logPath   = ".loops/l/run-log.md"
)

// folder is a workspace of files, named as in changes.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// held is everything below a folder: files with their text, links with their
// target, anything else with its kind.
func held(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		text, err := []byte(d.Type().String()), error(nil)
		switch {
		case d.Type().IsRegular():
			text, err = os.ReadFile(path)
		case d.Type() == fs.ModeSymlink:
			var target string
			target, err = os.Readlink(path)
			text = []byte("→ " + target)
		}
		all[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func applied(t *testing.T, root string, changes ...loop.Change) error {
	t.Helper()
	return appliedUnder(t.Context(), root, changes...)
}

// appliedUnder applies changes as a run does, under the faults of ctx.
func appliedUnder(ctx context.Context, root string, changes ...loop.Change) error {
	home, err := os.MkdirTemp("", "pawl-home-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	m := Memory{Home: home, Root: root, Loop: "lp_1"}
	var pending []loop.PendingChange
	for i, ch := range changes {
		pending = append(pending, loop.PendingChange{RunID: "run_1", Seq: i + 1, Change: ch})
	}
	done, err := m.Write(ctx, loop.Run{}, pending)
	if err == nil && done != len(pending) {
		return errors.New("a change is neither applied nor pending")
	}
	return err
}

func edits(before, after string) loop.Change {
	return loop.Change{Kind: loop.ChangeEdit, Path: statePath, Before: before, Content: after}
}

const header = "# l — run log\n# format: <ISO-Z> …\n"

func appends(line string) loop.Change {
	return loop.Change{Kind: loop.ChangeAppend, Path: logPath, Before: header, Content: line}
}

func want(t *testing.T, root string, files map[string]string) {
	t.Helper()
	if diff := cmp.Diff(files, held(t, root)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAnEditLeavesTheNewTextOrAMergeOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		now, before, after, want string
		missing                  bool
		left                     string // a line that is told to stay out
	}{
		"nobody touched it":           {"one\n", "one\n", "two\n", "two\n", false, ""},
		"it is there already":         {"two\n", "one\n", "two\n", "two\n", false, ""},
		"a person wrote elsewhere":    {"a\nb\nc\nmine\n", "a\nb\nc\n", "A\nb\nc\n", "A\nb\nc\nmine\n", false, ""},
		"a person wrote in its place": {"mine\n", "one\n", "two\n", "mine\n", false, "two"},
		"a person emptied it":         {"", "one\n", "two\n", "", false, "two"},
		"there was none":              {"", "", "two\n", "two\n", true, ""},
		"a person removed it":         {"", "one\n", "two\n", "two\n", true, ""},
		"a person made it meanwhile":  {"mine\n", "", "two\n", "mine\n", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"README.md": "r"}
			if !c.missing {
				files[statePath] = c.now
			}
			root := folder(t, files)
			var told []string
			left := func(path string, lines []string) { told = append(append(told, path), lines...) }
			m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1", NotMerged: left}
			for range 2 { // Once more, as after a crash.
				told = nil
				if _, err := m.Write(t.Context(), loop.Run{}, []loop.PendingChange{{RunID: "run_1", Seq: 1, Change: edits(c.before, c.after)}}); err != nil {
					t.Fatal(err)
				}
				want(t, root, map[string]string{"README.md": "r", statePath: c.want})
				if all := strings.Join(told, " "); c.left == "" && all != "" || c.left != "" && all != statePath+" "+c.left {
					t.Errorf("told to stay out: %q, want %q", told, c.left)
				}
			}
		})
	}
}

func TestAnEditThatIsThereAlreadyIsNotWrittenAgain(t *testing.T) {
	root := folder(t, map[string]string{statePath: "two\n"})
	before, err := os.Stat(filepath.Join(root, statePath))
	if err != nil {
		t.Fatal(err)
	}
	plan := new(fault.Plan)
	if err := appliedUnder(fault.With(t.Context(), plan), root, edits("one\n", "two\n")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(root, statePath))
	if err != nil || !os.SameFile(before, after) || len(plan.Hits()) > 0 {
		t.Errorf("it was written again, %v, %v", plan.Hits(), err)
	}
}

// errnos are faults of a disk, and whether a person can do something about it.
var errnos = map[string]struct {
	errno syscall.Errno
	fix   string
}{
	"ENOSPC": {syscall.ENOSPC, "free disk space"},
	"EDQUOT": {syscall.EDQUOT, "free disk space"},
	"EROFS":  {syscall.EROFS, "make the folder writable"},
	"EACCES": {syscall.EACCES, "make the folder writable"},
	"EIO":    {syscall.EIO, ""},
}

func TestAnEditThatFailsLeavesTheOldTextOrTheNewAndNothingElse(t *testing.T) {
	for point, after := range map[string]string{
		"projection.write.before": "one\n", "projection.sync.before": "one\n", "projection.rename.before": "one\n",
		"projection.rename.after": "two\n",
	} {
		for name, e := range errnos {
			t.Run(point+" "+name, func(t *testing.T) {
				root := folder(t, map[string]string{statePath: "one\n"})
				plan, err := fault.Parse(point + "=" + name)
				if err != nil {
					t.Fatal(err)
				}
				ctx := fault.With(t.Context(), plan)
				wantFailure(t, appliedUnder(ctx, root, edits("one\n", "two\n")), statePath, e.errno, e.fix)
				want(t, root, map[string]string{statePath: after})
				if err := appliedUnder(ctx, root, edits("one\n", "two\n")); err != nil {
					t.Errorf("and once more: %v", err)
				}
				want(t, root, map[string]string{statePath: "two\n"})
			})
		}
	}
}

func wantFailure(t *testing.T, err error, path string, errno syscall.Errno, fix string) {
	t.Helper()
	if !errors.Is(err, errno) || !strings.Contains(err.Error(), "write "+path) {
		t.Fatalf("error = %v, want %v that names %s", err, errno, path)
	}
	f, ok := errors.AsType[*loop.Fault](err)
	if ok != (fix != "") || ok && (!strings.Contains(f.Advice().String(), fix) || f.Exit == 0 || f.What != "write") {
		t.Errorf("error = %#v, want the fix %q", f, fix)
	}
}

func TestANewFileThatFailsIsNotThere(t *testing.T) {
	for _, point := range []string{"projection.write.before", "projection.sync.before", "projection.rename.before"} {
		root := folder(t, nil)
		plan, err := fault.Parse(point + "=ENOSPC")
		if err != nil {
			t.Fatal(err)
		}
		if err := appliedUnder(fault.With(t.Context(), plan), root, edits("", "two\n")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v, want no space", point, err)
		}
		want(t, root, map[string]string{})
	}
}

func TestWhatACrashLeftUnderTheTemporaryNameIsUsedUp(t *testing.T) {
	const tmp = ".loops/l/.STATE.md.pawl-tmp"
	for name, make := range map[string]func(path string) error{
		"half a text":        func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("x", 9999)), 0o600) },
		"a link to the code": func(p string) error { return os.Symlink("../../main.go", p) },
		"a link to outside":  func(p string) error { return os.Symlink("/etc/hostname", p) },
		"a link to nothing":  func(p string) error { return os.Symlink("nothing", p) },
		"a pipe":             func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, map[string]string{statePath: "one\n", "main.go": "package main\n"})
			if err := make(filepath.Join(root, tmp)); err != nil {
				t.Fatal(err)
			}
			if err := applied(t, root, edits("one\n", "two\n")); err != nil {
				t.Error(err)
			}
			want(t, root, map[string]string{statePath: "two\n", "main.go": "package main\n"})
		})
	}
}

// A process died while it wrote the new version, and a person changed the file so
// that nothing of it is written any more.
func TestWhatACrashLeftIsRemovedWhereNothingIsWritten(t *testing.T) {
	root := folder(t, map[string]string{statePath: "one\n", ".loops/l/.STATE.md.pawl-tmp": "tw"})
	if err := applied(t, root, edits("one\ntwo\n", "one\nzwei\n")); err != nil {
		t.Error(err)
	}
	want(t, root, map[string]string{statePath: "one\n"})
}

func TestChangesAreAppliedInOrderUpToTheOneThatFails(t *testing.T) {
	root := folder(t, map[string]string{statePath: "one\n"})
	plan, err := fault.Parse("projection.append.before=ENOSPC")
	if err != nil {
		t.Fatal(err)
	}
	m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
	var pending []loop.PendingChange
	for i, ch := range []loop.Change{edits("one\n", "two\n"), appends("line 1"), edits("two\n", "three\n")} {
		pending = append(pending, loop.PendingChange{Seq: i + 1, Change: ch})
	}
	ctx := fault.With(t.Context(), plan)
	done, err := m.Write(ctx, loop.Run{}, pending)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Write = %v, want no space", err)
	}
	if done != 1 {
		t.Errorf("%d changes are written, want the first", done)
	}
	want(t, root, map[string]string{statePath: "two\n"})
	if done, err := m.Write(ctx, loop.Run{}, pending[1:]); err != nil || done != 2 {
		t.Errorf("once more: %v, %d are written", err, done)
	}
	want(t, root, map[string]string{statePath: "three\n", logPath: header + "line 1\n"})
}

func TestAFileThatCannotTakeItsPlaceIsAnErrorAndLeavesNothingBehind(t *testing.T) {
	aside := loop.Change{Kind: loop.ChangeAside, Path: statePath, Before: "one\n", Content: strings.Repeat("x", 300)}
	for name, c := range map[string]struct {
		there  map[string]string
		change loop.Change
		during func(root string) error // while the new content, or the new folder, is written
		errno  syscall.Errno
		left   map[string]string
	}{
		"a folder has its temporary name": {
			map[string]string{statePath: "one\n", ".loops/l/.STATE.md.pawl-tmp/x": "x"},
			edits("one\n", "two\n"), nil, syscall.ENOTEMPTY,
			map[string]string{statePath: "one\n", ".loops/l/.STATE.md.pawl-tmp/x": "x"},
		},
		"somebody makes a folder of its name meanwhile": {
			nil, edits("", "two\n"), func(root string) error { return os.MkdirAll(filepath.Join(root, statePath, "x"), 0o755) }, syscall.EEXIST,
			map[string]string{},
		},
		"somebody removes its new folder meanwhile": {
			nil, edits("", "two\n"), func(root string) error { return os.RemoveAll(filepath.Join(root, ".loops")) }, syscall.ENOENT, map[string]string{},
		},
		"somebody removes the new folder of a log meanwhile": {
			nil, appends("line 1"), func(root string) error { return os.RemoveAll(filepath.Join(root, ".loops")) }, syscall.ENOENT, map[string]string{},
		},
		"the name to put it aside is too long": {map[string]string{statePath: "one\n"}, aside, nil, syscall.ENAMETOOLONG, map[string]string{statePath: "one\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, c.there)
			stop := durable.WatchSyncs(func(f *os.File) error {
				if c.during != nil && (strings.HasSuffix(f.Name(), ".pawl-tmp") || c.there == nil && filepath.Clean(f.Name()) == root) {
					return c.during(root)
				}
				return nil
			})
			defer stop()
			if err := applied(t, root, c.change); !errors.Is(err, c.errno) || !strings.Contains(err.Error(), "write "+c.change.Path) {
				t.Errorf("applied = %v, want %v that names the file", err, c.errno)
			}
			want(t, root, c.left)
		})
	}
}

// Whoever shares the workspace may have another group, and umask says what it may.
func TestFilesAreMadeForTheirOwnerAlone(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	root := t.TempDir()
	if err := applied(t, root, edits("", "two\n"), loop.Change{Kind: loop.ChangeAppend, Path: "logs/run-log.md", Content: "line 1"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{statePath: 0o644, ".loops": 0o755, ".loops/l": 0o755, "logs": 0o755, "logs/run-log.md": 0o644} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", name, info, err, want)
		}
	}
}

func TestWhatCannotBeReadOrWrittenIsAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	opened := func(flags int) *os.File {
		f, err := os.OpenFile(name, flags|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	if err := os.WriteFile(name, []byte("line 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	closed := opened(os.O_RDWR)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(f *os.File) error { _, err := readBounded(f, nil, MaxFile); return err }
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"a log that is closed":     {appendTo(closed, appends("line 1")), os.ErrClosed},
		"a log that is only read":  {appendTo(opened(os.O_RDONLY), appends("line 1")), syscall.EBADF},
		"a log that is not read":   {appendTo(opened(os.O_WRONLY), appends("line 1")), syscall.EBADF},
		"a file that is closed":    {read(closed), os.ErrClosed},
		"a file that is not read":  {read(opened(os.O_WRONLY)), syscall.EBADF},
		"a lock that is closed":    {lockFile(closed), syscall.EBADF},
		"a new file that is there": {writeSynced(t.Context(), root, filepath.Base(name), "text"), syscall.EEXIST},
		"a note that is closed":    {(&writeLock{file: closed}).recordRun("run_1"), os.ErrClosed},
		"a note that is only read": {(&writeLock{file: opened(os.O_RDONLY)}).recordRun("run_1"), syscall.EINVAL},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
}

func TestAnotherWriterOfTheLoopsFilesIsWaitedForTenSecondsAndNamed(t *testing.T) {
	root := folder(t, map[string]string{statePath: "one\n"})
	m := Memory{Home: t.TempDir(), Root: root, Loop: "lp_1"}
	other, err := m.lockFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.file.Close() }()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		done, err := m.Write(t.Context(), loop.Run{}, []loop.PendingChange{{RunID: "run_1", Seq: 1, Change: edits("one\n", "two\n")}})
		f, ok := errors.AsType[*loop.Fault](err)
		if done != 0 || !ok || f.Exit != loop.ExitHeld || !strings.Contains(f.Why, "for 10s") || !strings.Contains(f.Advice().String(), "fuser "+other.file.Name()) {
			t.Errorf("%d changes are written, %+v; want a fault that names the lock", done, err)
		}
		if got := time.Since(begin); got != 10*time.Second {
			t.Errorf("it was waited for %s", got)
		}
	})
	want(t, root, map[string]string{statePath: "one\n"})
}
