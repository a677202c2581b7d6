//go:build unix

package projection

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestALineIsAppendedOnceHoweverTheFileEnds(t *testing.T) {
	const line = "2026-09-03T12:00:00Z  run#58  action=none  -  outcome=quiet  tokens=0"
	old := header + "line of run 57\n"
	for name, c := range map[string]struct {
		file string
		none bool
		want string
	}{
		"no file":                       {"", true, header + line + "\n"},
		"an empty file":                 {"", false, header + line + "\n"},
		"a file with a header":          {header, false, header + line + "\n"},
		"a file without":                {"line of run 57\n", false, "line of run 57\n" + line + "\n"},
		"lines of other runs":           {old, false, old + line + "\n"},
		"it is there":                   {old + line + "\n", false, old + line + "\n"},
		"it is the first line":          {line + "\n", false, line + "\n"},
		"it is there, and others since": {old + line + "\nline of run 59\n", false, old + line + "\nline of run 59\n"},
		"it is there without an end":    {old + line, false, old + line + "\n"},
		"half of it is there":           {old + line[:30], false, old + line + "\n"},
		"a hand-written last line":      {old + "a note", false, old + "a note\n" + line + "\n"},
		"it stands in another line":     {old + "see " + line + "\n", false, old + "see " + line + "\n" + line + "\n"},
		"it begins another line":        {old + line + "0\n", false, old + line + "0\n" + line + "\n"},
		"a torn header":                 {header[:9], false, header[:9] + "\n" + line + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if !c.none {
				files[logPath] = c.file
			}
			root := folder(t, files)
			for range 2 {
				if err := applied(t, root, appends(line)); err != nil {
					t.Fatal(err)
				}
				want(t, root, map[string]string{logPath: c.want})
			}
		})
	}
}

func TestAnAppendThatFailsIsCompletedByTheNext(t *testing.T) {
	for point, after := range map[string]map[string]string{
		"projection.append.before": {}, "projection.append.after": {logPath: header + "line 1\n"},
	} {
		for name, e := range errnos {
			t.Run(point+" "+name, func(t *testing.T) {
				root := folder(t, nil)
				plan, err := fault.Parse(point + "=" + name)
				if err != nil {
					t.Fatal(err)
				}
				ctx := fault.With(t.Context(), plan)
				wantFailure(t, appliedUnder(ctx, root, appends("line 1")), logPath, e.errno, e.fix)
				want(t, root, after)
				if err := appliedUnder(ctx, root, appends("line 1")); err != nil {
					t.Errorf("and once more: %v", err)
				}
				want(t, root, map[string]string{logPath: header + "line 1\n"})
			})
		}
	}
}

// TestALogSurvivesEveryPowerCut appends lines with cuts between and inside
// them: every line is there once, whole and in order.
func TestALogSurvivesEveryPowerCut(t *testing.T) {
	root := folder(t, nil)
	name := filepath.Join(root, logPath)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	lines := func(text string) []string {
		return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" || l[0] == '#' })
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		var all []string
		for n := range rapid.IntRange(1, 6).Draw(t, "runs") {
			line := "2026  run#" + strings.Repeat("1", n+1) + rapid.SampledFrom([]string{"", "  outcome=quiet  Ä"}).Draw(t, "line")
			all = append(all, line)
			before, _ := os.ReadFile(name)
			if err := appliedUnder(t.Context(), root, appends(line)); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 2).Draw(t, "cuts") {
				// What was durable stays; of the rest any part may be missing.
				cut := rapid.IntRange(len(before), len(after)).Draw(t, "at")
				if err := os.WriteFile(name, after[:cut], 0o644); err != nil {
					t.Fatal(err)
				}
				if err := appliedUnder(t.Context(), root, appends(line)); err != nil {
					t.Fatal(err)
				}
			}
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, lines(string(text))); diff != "" {
			t.Fatalf("lines (-want +got):\n%s\nof %q", diff, text)
		}
	})
}

func TestALineIsFoundInTheEndOfALongLog(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 2000)
	root := folder(t, map[string]string{logPath: long})
	for range 2 {
		if err := applied(t, root, appends("line 1")); err != nil {
			t.Fatal(err)
		}
	}
	if got := held(t, root)[logPath]; got != long+"line 1\n" {
		t.Errorf("the log ends with %q", got[len(long):])
	}
	for behind, want := range map[int]string{tailSize - len("line 1\n"): "", tailSize + 1 - len("line 1\n"): "line 1\n"} {
		text := "line 1\n" + strings.Repeat("x", behind-1) + "\n"
		root := folder(t, map[string]string{logPath: text})
		if err := applied(t, root, appends("line 1")); err != nil {
			t.Fatal(err)
		}
		if got := held(t, root)[logPath]; got != text+want {
			t.Errorf("behind %d bytes, the log ends with %q, want %q more", behind, got[len(text):], want)
		}
	}
}

func TestTwoProcessesThatAppendLoseNothing(t *testing.T) {
	root := folder(t, map[string]string{logPath: header})
	done := make(chan error)
	for _, name := range []string{"a", "b"} {
		go func() {
			var err error
			for i := range 50 {
				err = errors.Join(err, appliedUnder(t.Context(), root, appends(name+strings.Repeat("i", i+1))))
			}
			done <- err
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(held(t, root)[logPath], "\n"); got != 102 {
		t.Errorf("the log has %d lines, want 102", got)
	}
}

func TestAFileIsPutAsideOnce(t *testing.T) {
	aside := loop.Change{Kind: loop.ChangeAside, Path: statePath, Before: "broken", Content: "STATE.md.broken-1"}
	const to = ".loops/l/STATE.md.broken-1"
	for name, c := range map[string]struct{ files, want map[string]string }{
		"it is broken":            {map[string]string{statePath: "broken"}, map[string]string{to: "broken"}},
		"it was moved":            {map[string]string{to: "broken"}, map[string]string{to: "broken"}},
		"moved and written":       {map[string]string{to: "broken", statePath: "new"}, map[string]string{to: "broken", statePath: "new"}},
		"somebody mended it":      {map[string]string{statePath: "mended"}, map[string]string{statePath: "mended"}},
		"somebody removed it":     {map[string]string{"a": "b"}, map[string]string{"a": "b"}},
		"it is more than is read": {map[string]string{statePath: strings.Repeat("x", MaxFile+1)}, map[string]string{to: strings.Repeat("x", MaxFile+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, c.files)
			for range 2 {
				if err := applied(t, root, aside); err != nil {
					t.Fatal(err)
				}
				want(t, root, c.want)
			}
		})
	}
}

func TestAFileIsPutAsideInAnotherFolderWhichMayBeMissing(t *testing.T) {
	for name, c := range map[string]struct{ files, want map[string]string }{
		"it is missing":   {map[string]string{statePath: "broken"}, map[string]string{"scratch/broken-1": "broken", statePath: "new\n"}},
		"it is there":     {map[string]string{statePath: "broken", "scratch/a": "b"}, map[string]string{"scratch/broken-1": "broken", "scratch/a": "b", statePath: "new\n"}},
		"there is nobody": {map[string]string{"a": "b"}, map[string]string{"a": "b", statePath: "new\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, c.files)
			for range 2 {
				err := applied(t, root, loop.Change{Kind: loop.ChangeAside, Path: statePath, Before: "broken", Content: "scratch/broken-1"}, loop.Change{Kind: loop.ChangeEdit, Path: statePath, Content: "new\n"})
				if err != nil {
					t.Fatal(err)
				}
				want(t, root, c.want)
			}
		})
	}
}

func TestABrokenFileIsPutAsideAndMadeAnewInOneGo(t *testing.T) {
	root := folder(t, map[string]string{statePath: "broken"})
	changes := []loop.Change{
		{Kind: loop.ChangeAside, Path: statePath, Before: "broken", Content: "STATE.md.broken-1"},
		{Kind: loop.ChangeEdit, Path: statePath, Content: "new\n"},
	}
	for range 2 {
		if err := applied(t, root, changes...); err != nil {
			t.Fatal(err)
		}
		want(t, root, map[string]string{".loops/l/STATE.md.broken-1": "broken", statePath: "new\n"})
	}
}

func TestAFileIsReadAsItIsOrNotAtAll(t *testing.T) {
	root := folder(t, map[string]string{
		statePath: "\ufeffone\r\n\x00\xff", "big": strings.Repeat("x", MaxFile+1), "full": strings.Repeat("x", MaxFile), "empty": "", "file": "f",
	})
	for name, c := range map[string]struct {
		path string
		want File
	}{
		"a file":            {statePath, File{Exists: true, Content: "\ufeffone\r\n\x00\xff"}},
		"an empty file":     {"empty", File{Exists: true}},
		"none":              {".loops/l/none", File{}},
		"none in no folder": {".loops/none/STATE.md", File{}},
		"a big one":         {"full", File{Exists: true, Content: strings.Repeat("x", MaxFile)}},
		"one too big":       {"big", File{Exists: true, TooBig: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Memory{Root: root}.Read(c.path)
			if err != nil || got != c.want {
				t.Errorf("Read = exists %v, %d bytes, too big %v, %v", got.Exists, len(got.Content), got.TooBig, err)
			}
		})
	}
	if got, err := (Memory{Root: root}).Read("file/STATE.md"); !errors.Is(err, syscall.ENOTDIR) || got != (File{}) {
		t.Errorf("below a file: Read = %+v, %v; want that it is not a folder", got, err)
	}
	for name, path := range map[string]string{
		"a folder": ".loops", "outside": "../x", "far outside": "/etc/hostname", "out and in": ".loops/../../x",
	} {
		if got, err := (Memory{Root: root}).Read(path); err == nil || got != (File{}) {
			t.Errorf("%s: Read = %+v, %v; want an error", name, got, err)
		}
	}
}

// within fails a test that hangs.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

func TestWhatIsNoFileOfTheWorkspaceIsNeitherReadNorWritten(t *testing.T) {
	const secret = "a secret of somebody else\n"
	for name, place := range map[string]func(outside, path string) error{
		"a link to outside":         func(outside, p string) error { return os.Symlink(filepath.Join(outside, "secret"), p) },
		"a link to nothing outside": func(outside, p string) error { return os.Symlink(filepath.Join(outside, "new"), p) },
		"a link that climbs":        func(_, p string) error { return os.Symlink("../../../../../../../../etc/hostname", p) },
		"a link to itself":          func(_, p string) error { return os.Symlink(filepath.Base(p), p) },
		"a pipe":                    func(_, p string) error { return syscall.Mkfifo(p, 0o644) },
		"a folder":                  func(_, p string) error { return os.Mkdir(p, 0o755) },
		"a file in a folder outside": func(outside, p string) error {
			return errors.Join(os.Remove(filepath.Dir(p)), os.Symlink(outside, filepath.Dir(p)))
		},
		"a file below another file": func(_, p string) error {
			return errors.Join(os.Remove(filepath.Dir(p)), os.WriteFile(filepath.Dir(p), []byte("f"), 0o644))
		},
	} {
		for _, path := range []string{statePath, logPath} {
			t.Run(name+", "+filepath.Base(path), func(t *testing.T) {
				outside := folder(t, map[string]string{"secret": secret, "STATE.md": secret, "run-log.md": secret})
				root := folder(t, map[string]string{"README.md": "r"})
				if err := os.MkdirAll(filepath.Join(root, ".loops/l"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := place(outside, filepath.Join(root, path)); err != nil {
					t.Fatal(err)
				}
				before := held(t, root)
				within(t, "reading "+name, func() {
					if got, err := (Memory{Root: root}).Read(path); err == nil || got != (File{}) {
						t.Errorf("Read = %+v, %v; want an error", got, err)
					}
				})
				ch := edits("one\n", "two\n")
				if path == logPath {
					ch = appends("line 1")
				}
				within(t, "writing "+name, func() {
					if err := applied(t, root, ch); err == nil || !strings.Contains(err.Error(), "write "+path) {
						t.Errorf("applied = %v, want an error that names %s", err, path)
					}
				})
				want(t, root, before)
				want(t, outside, map[string]string{"secret": secret, "STATE.md": secret, "run-log.md": secret})
			})
		}
	}
}

func TestALinkToAnotherFileOfTheWorkspaceIsNotWrittenThrough(t *testing.T) {
	for path, ch := range map[string]loop.Change{statePath: edits("package main\n", "two\n"), logPath: appends("line 1")} {
		root := folder(t, map[string]string{"main.go": "package main\n", ".loops/l/keep": ""})
		if err := os.Symlink("../../main.go", filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
		_ = applied(t, root, ch)
		if got := held(t, root)["main.go"]; got != "package main\n" {
			t.Errorf("%s: main.go = %q", path, got)
		}
	}
}

func TestWhatIsGoneNeedsNotBePutAside(t *testing.T) {
	root := folder(t, map[string]string{"a": "b"})
	if err := applied(t, root, loop.Change{Kind: loop.ChangeAside, Path: statePath, Content: "STATE.md.broken-1"}); err != nil {
		t.Error(err)
	}
	want(t, root, map[string]string{"a": "b"})
}

func TestAFolderThatIsALinkToNothingTakesNoFile(t *testing.T) {
	for _, ch := range []loop.Change{edits("", "two\n"), appends("line 1")} {
		root := folder(t, map[string]string{".loops/a": "b"})
		if err := os.Symlink("nothing", filepath.Join(root, ".loops/l")); err != nil {
			t.Fatal(err)
		}
		if err := applied(t, root, ch); err == nil || !strings.Contains(err.Error(), "write "+ch.Path) {
			t.Errorf("applied = %v, want an error that names %s", err, ch.Path)
		}
		want(t, root, map[string]string{".loops/a": "b", ".loops/l": "→ nothing"})
	}
}

func TestAFileIsPutAsideWhateverItHolds(t *testing.T) {
	root := folder(t, map[string]string{statePath: "anything"})
	if err := applied(t, root, loop.Change{Kind: loop.ChangeAside, Path: statePath, Content: "aside"}); err != nil {
		t.Fatal(err)
	}
	want(t, root, map[string]string{".loops/l/aside": "anything"})
}

func TestWhatIsNoFileCanBePutAside(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"a link": func(p string) error { return os.Symlink("/etc/hostname", p) },
		"a pipe": func(p string) error { return syscall.Mkfifo(p, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, map[string]string{".loops/l/keep": ""})
			if err := place(filepath.Join(root, statePath)); err != nil {
				t.Fatal(err)
			}
			within(t, name, func() {
				err := applied(t, root, loop.Change{Kind: loop.ChangeAside, Path: statePath, Content: "STATE.md.broken-1"}, edits("", "new\n"))
				if err != nil {
					t.Error(err)
				}
			})
			got := held(t, root)
			if got[statePath] != "new\n" || got[".loops/l/STATE.md.broken-1"] == "" {
				t.Errorf("files = %v, want it aside and a new one", got)
			}
		})
	}
}

func TestAChangeThatIsNoneOfAFileIsRefused(t *testing.T) {
	root := folder(t, map[string]string{"a": "b"})
	for _, kind := range []loop.ChangeKind{loop.ChangeStep, "", "remove"} {
		if err := applied(t, root, loop.Change{Kind: kind, Path: "a"}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%q: %v, want unsupported", kind, err)
		}
	}
	want(t, root, map[string]string{"a": "b"})
}

func TestAWorkspaceThatIsGoneIsAnError(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := applied(t, gone, edits("", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("applied = %v, want that it does not exist", err)
	}
	if _, err := (Memory{Root: gone}).Read(statePath); err == nil {
		t.Error("a file of a workspace that is gone was read as one that is missing")
	}
	if err := applied(t, gone); err != nil {
		t.Errorf("nothing to write: %v", err)
	}
}
