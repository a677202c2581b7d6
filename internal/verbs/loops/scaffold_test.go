package loops_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// childEnv makes this test binary a process that makes a loop in the folder
// that it names, and nothing else.
const childEnv = "PAWL_TEST_SCAFFOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if _, err := loops.Scaffold(context.Background(), verbtest.Formats(), tidy(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.Main(m, "fsync=off"))
}

// tidy asks for a loop that is ready at once.
func tidy(work string) loops.ScaffoldRequest {
	return loops.ScaffoldRequest{
		LoopRequest: format.LoopRequest{Name: "tidy", Pattern: "ci-watch", Now: time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)}, Work: work,
	}
}

// filesIn is every file below a folder with its text, folders with a slash.
func filesIn(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		switch {
		case entry.IsDir():
			found[filepath.ToSlash(rel)+"/"] = ""
			return nil
		case !entry.Type().IsRegular():
			found[filepath.ToSlash(rel)] = entry.Type().String()
			return nil
		}
		data, err := os.ReadFile(name)
		found[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// scaffolded is what filesIn finds of a loop that was made below .loops.
func scaffolded(made loops.Scaffolded) map[string]string {
	want := map[string]string{".loops/": "", ".loops/" + made.Loop + "/": ""}
	for _, f := range made.Files {
		want[filepath.ToSlash(f.Path)] = f.Text
	}
	return want
}

func TestANewLoopHasItsFourFilesAndIsReady(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	made, err := loops.Scaffold(t.Context(), verbtest.Formats(), tidy(work))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(".loops", "tidy", "loop.config.yaml"); made.Path != want || !made.Written || made.Note != "" {
		t.Errorf("made %s, written %v, note %q, want %s", made.Path, made.Written, made.Note, want)
	}
	if len(made.Files) != 4 || !strings.Contains(made.Config(), "\nname: tidy\n") {
		t.Errorf("files = %+v", made.Files)
	}
	if diff := cmp.Diff(scaffolded(made), filesIn(t, work)); diff != "" {
		t.Errorf("on the disk (-want +got):\n%s", diff)
	}
	doc, source, err := definition.Load(filepath.Join(work, made.Path))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := doc.Definition("tidy")
	for _, f := range findings {
		t.Error(f.Render(made.Path, source))
	}
}

func TestANewLoopIsListedAndRunsWithAnAgent(t *testing.T) {
	r := verbtest.New(t)
	req := tidy(r.Root)
	req.Tier, req.Verify, req.Guard, req.AgentCommand = loop.TierAssisted, "grep -q two src/a.txt", "test -f README.md", verbtest.WritesTwo
	if _, err := loops.Scaffold(t.Context(), verbtest.Formats(), req); err != nil {
		t.Fatal(err)
	}
	if row := r.ShowRow("tidy"); row.State != "never_run" || row.Verify != req.Verify || row.Problem != "" {
		t.Errorf("row = %+v", row)
	}
	if v := r.RunLoop(runs.StartRequest{Loop: "tidy"}); v.Outcome != loop.OutcomeProposed {
		t.Errorf("outcome %s (%s %s), want proposed", v.Outcome, v.Reason, v.Detail)
	}
	log, err := os.ReadFile(filepath.Join(r.Root, ".loops", "tidy", loop.LogFile))
	if entries, bad := runlog.Parse(string(log)); err != nil || len(entries) != 1 || len(bad) != 0 || !strings.HasPrefix(string(log), runlog.Header("tidy")) {
		t.Errorf("log %q has entries %v, bad lines %v", log, entries, bad)
	}
}

func TestAFolderOfOnesOwnIsNamedAsItWasGiven(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	for name, dir := range map[string]string{"relative": filepath.Join("a", "b"), "absolute": elsewhere} {
		t.Run(name, func(t *testing.T) {
			req := tidy(t.TempDir())
			req.Dir = dir
			made, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, "tidy", definition.ConfigFile); made.Path != want {
				t.Errorf("path %s, want %s", made.Path, want)
			}
			file := made.Path
			if !filepath.IsAbs(file) {
				file = filepath.Join(req.Work, file)
			}
			if data, err := os.ReadFile(file); err != nil || string(data) != made.Config() {
				t.Errorf("%s holds %q, %v", file, data, err)
			}
		})
	}
}

func TestADryRunShowsTheFilesAndWritesNone(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	req := tidy(work)
	req.DryRun = true
	dry, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
	if err != nil || dry.Written {
		t.Fatalf("Scaffold = %+v, %v", dry, err)
	}
	if got := filesIn(t, work); len(got) != 0 {
		t.Errorf("a dry run wrote %v", got)
	}
	req.DryRun = false
	wet, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
	if err != nil {
		t.Fatal(err)
	}
	dry.Written = true
	if diff := cmp.Diff(wet, dry); diff != "" {
		t.Errorf("-made +shown:\n%s", diff)
	}
	req.DryRun = true
	_, err = loops.Scaffold(t.Context(), verbtest.Formats(), req)
	verbtest.WantFault(t, err, loop.ExitMissing, "make the loop tidy", "is not empty", "--force")
}

func TestAnUnknownPatternIsMentioned(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"ci-wach": "ci-watch", "ci-watch": "", "custom": "", "": ""} {
		req := tidy(t.TempDir())
		req.Pattern, req.DryRun = name, true
		made, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
		if err != nil || (want == "") != (made.Note == "") || !strings.Contains(made.Note, want) {
			t.Errorf("pattern %q: note %q, %v, want %q", name, made.Note, err, want)
		}
	}
}

func TestARequestThatCannotBeALoopIsRefused(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	for name, c := range map[string]struct {
		change func(*loops.ScaffoldRequest)
		what   string
	}{
		"a name that leads out of the folder": {func(r *loops.ScaffoldRequest) { r.Name = "../x" }, "name '../x'"},
		"an unknown tier":                     {func(r *loops.ScaffoldRequest) { r.Tier = "L4" }, "tier 'L4'"},
		"a cadence that never fires":          {func(r *loops.ScaffoldRequest) { r.Cadence = "0 0 31 2 *" }, "cadence '0 0 31 2 *'"},
		"a pattern in capitals":               {func(r *loops.ScaffoldRequest) { r.Pattern = "CI" }, "pattern 'CI'"},
	} {
		t.Run(name, func(t *testing.T) {
			req := tidy(work)
			c.change(&req)
			_, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
			verbtest.WantFault(t, err, loop.ExitUsage, c.what, "", "")
		})
	}
	if got := filesIn(t, work); len(got) != 0 {
		t.Errorf("a refusal wrote %v", got)
	}
}

func TestWhatIsInTheWayStaysAsItIs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(".loops", "tidy")
	link := func(t *testing.T, to, name string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(to, 0o755), os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		prepare  func(t *testing.T, work string)
		force    bool
		why, fix string
	}{
		"a folder with a file": {func(t *testing.T, work string) { verbtest.Write(t, work, filepath.Join(dir, "notes.txt"), "x") }, false, "it holds notes.txt", "--force"},
		"a loop": {func(t *testing.T, work string) {
			verbtest.Write(t, work, filepath.Join(dir, definition.ConfigFile), "name: tidy\n")
		}, false, "is not empty", "--force"},
		"a file of that name": {func(t *testing.T, work string) { verbtest.Write(t, work, dir, "x") }, true, "is not a folder", "move it"},
		"a folder that is a link": {
			func(t *testing.T, work string) { link(t, filepath.Join(work, "other"), filepath.Join(work, dir)) }, true, "is a symbolic link", "move it",
		},
		"loops that are a link": {
			func(t *testing.T, work string) { link(t, filepath.Join(work, "other"), filepath.Join(work, ".loops")) }, true, "is a symbolic link", "move it",
		},
		"a file that is a link": {
			func(t *testing.T, work string) {
				link(t, filepath.Join(work, "other"), filepath.Join(work, dir, loop.StateFile))
			}, true, "is not a regular file", "move it",
		},
		"a folder in place of a file": {
			func(t *testing.T, work string) { verbtest.Write(t, work, filepath.Join(dir, loop.LogFile, "x"), "x") }, true, "is not a regular file", "move it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			c.prepare(t, work)
			before := filesIn(t, work)
			for _, dry := range []bool{true, false} {
				req := tidy(work)
				req.Force, req.DryRun = c.force, dry
				_, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
				verbtest.WantFault(t, err, loop.ExitMissing, "make the loop tidy", c.why, c.fix)
			}
			if diff := cmp.Diff(before, filesIn(t, work)); diff != "" {
				t.Errorf("a refusal changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestForceReplacesTheFourFilesKeepsThemAndChangesNothingElse(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	if _, err := loops.Scaffold(t.Context(), verbtest.Formats(), tidy(work)); err != nil {
		t.Fatal(err)
	}
	others := map[string]string{
		".loops/tidy/notes.txt": "kept", ".loops/tidy/PAUSED": "", ".loops/tidy/sub/run.md": "kept", ".loops/tidy/sub/": "", ".loops/PAUSED": "kept",
	}
	// Copies of what is written over, once: the second time nothing is.
	copies := map[string]string{
		".loops/tidy/STATE.md.before-20260903T120000.000Z": "old", ".loops/tidy/loop.config.yaml.before-20260903T120000.000Z": "old",
	}
	for name, text := range others {
		if !strings.HasSuffix(name, "/") {
			verbtest.Write(t, work, name, text)
		}
	}
	verbtest.Write(t, work, filepath.Join(".loops", "tidy", loop.StateFile), "old")
	verbtest.Write(t, work, filepath.Join(".loops", "tidy", definition.ConfigFile), "old")
	req := tidy(work)
	req.Force = true
	for range 2 {
		made, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
		if err != nil {
			t.Fatal(err)
		}
		want := scaffolded(made)
		maps.Copy(want, others)
		maps.Copy(want, copies)
		if diff := cmp.Diff(want, filesIn(t, work)); diff != "" {
			t.Errorf("on the disk (-want +got):\n%s", diff)
		}
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	staged := filepath.Join(".loops", "tidy", loops.StagedName(spine.PromptFile), "x")
	for name, c := range map[string]struct {
		change  func(*loops.ScaffoldRequest)
		prepare string // a file that is there before
		why     string
	}{
		"a folder below a file":            {func(r *loops.ScaffoldRequest) { r.Dir = filepath.Join("file", "loops") }, "file", "file"},
		"a name that no file system takes": {func(r *loops.ScaffoldRequest) { r.Name = strings.Repeat("a", 300) }, "file", "aaa"},
		"a folder in the writer's own way": {func(*loops.ScaffoldRequest) {}, staged, "pawl-tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := tidy(t.TempDir())
			verbtest.Write(t, req.Work, c.prepare, "x")
			before := filesIn(t, req.Work)
			c.change(&req)
			_, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
			verbtest.WantFault(t, err, loop.ExitError, "make the loop "+req.Name, c.why, "--dir")
			if diff := cmp.Diff(before, filesIn(t, req.Work)); diff != "" {
				t.Errorf("a failed write left (-before +after):\n%s", diff)
			}
		})
	}
}

// points are the fault points of one scaffold, in the order in which they are hit.
func points(t *testing.T) []string {
	t.Helper()
	plan := &fault.Plan{}
	if _, err := loops.Scaffold(fault.With(t.Context(), plan), verbtest.Formats(), tidy(t.TempDir())); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	var list []string
	for _, name := range plan.Hits() {
		count[name]++
		list = append(list, fmt.Sprintf("%s:%d", name, count[name]))
	}
	if len(list) != 16 {
		t.Fatalf("points = %q, want four for each file", list)
	}
	return list
}

func TestADiskThatFailsAnywhereLeavesWhatWasThere(t *testing.T) {
	t.Parallel()
	for _, point := range points(t) {
		for _, errno := range []string{"ENOSPC", "EROFS"} {
			t.Run(point+" "+errno, func(t *testing.T) {
				t.Parallel()
				work := t.TempDir()
				plan, err := fault.Parse(point + "=" + errno)
				if err != nil {
					t.Fatal(err)
				}
				_, err = loops.Scaffold(fault.With(t.Context(), plan), verbtest.Formats(), tidy(work))
				verbtest.WantFault(t, err, loop.ExitError, "make the loop tidy", "", "--dir")
				if got := filesIn(t, work); len(got) != 0 {
					t.Errorf("left %v", got)
				}
			})
		}
	}
}

func TestAFullDiskUnderForceChangesNoFile(t *testing.T) {
	t.Parallel()
	for _, point := range points(t) {
		if strings.Contains(point, "rename.") {
			continue // Names are given after everything is on the disk.
		}
		work := t.TempDir()
		if _, err := loops.Scaffold(t.Context(), verbtest.Formats(), tidy(work)); err != nil {
			t.Fatal(err)
		}
		verbtest.Write(t, work, filepath.Join(".loops", "tidy", loop.StateFile), "mine")
		before := filesIn(t, work)
		plan, err := fault.Parse(point + "=ENOSPC")
		if err != nil {
			t.Fatal(err)
		}
		req := tidy(work)
		req.Force = true
		_, err = loops.Scaffold(fault.With(t.Context(), plan), verbtest.Formats(), req)
		verbtest.WantFault(t, err, loop.ExitError, "make the loop tidy", "", "--dir")
		if diff := cmp.Diff(before, filesIn(t, work)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", point, diff)
		}
	}
}

func TestAProcessKilledAnywhereLeavesNoHalfLoop(t *testing.T) {
	t.Parallel()
	var whole loops.Scaffolded
	for _, point := range points(t) {
		work := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+work, "PAWL_FAULTS=1", "PAWL_CRASH_AT="+point)
		out, err := cmd.CombinedOutput()
		if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.Exited() {
			t.Fatalf("%s: the process ended with %v, want it killed\n%s", point, err, out)
		}
		left := filesIn(t, work)
		req := tidy(work)
		req.Force = true
		if whole, err = loops.Scaffold(t.Context(), verbtest.Formats(), req); err != nil {
			t.Fatalf("%s: %v", point, err)
		}
		want := scaffolded(whole)
		_, defined := left[".loops/tidy/"+definition.ConfigFile]
		for name, text := range want {
			got, there := left[name]
			if there && got != text || defined && !there {
				t.Errorf("%s: %s holds %q (%v), want nothing or all of it", point, name, got, there)
			}
		}
		if diff := cmp.Diff(want, filesIn(t, work)); diff != "" {
			t.Errorf("%s: made again (-want +got):\n%s", point, diff)
		}
	}
}

func TestWhatAKilledProcessStagedIsNotInTheWay(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	verbtest.Write(t, work, filepath.Join(".loops", "tidy", loops.StagedName(loop.StateFile)), "half")
	made, err := loops.Scaffold(t.Context(), verbtest.Formats(), tidy(work))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(scaffolded(made), filesIn(t, work)); diff != "" {
		t.Errorf("on the disk (-want +got):\n%s", diff)
	}
}

func TestALoopWithoutWordsIsMadeAndIsNotReady(t *testing.T) {
	t.Parallel()
	req := tidy(t.TempDir())
	req.Pattern = ""
	made, err := loops.Scaffold(t.Context(), verbtest.Formats(), req)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := definition.Parse("x", []byte(made.Config()))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := doc.Definition("tidy")
	var keys []string
	for _, f := range findings {
		if f.Severity == readiness.SeverityError {
			keys = append(keys, f.Key)
		}
	}
	if diff := cmp.Diff([]string{"goal", "scope", "escalation"}, keys); diff != "" {
		t.Error(diff)
	}
}
