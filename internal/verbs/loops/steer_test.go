package loops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func pause(t *testing.T, r *verbtest.Rig, name string) loops.Switched {
	t.Helper()
	sw, err := r.Loops.Pause(t.Context(), verbtest.Ann, name, "")
	if err != nil {
		t.Fatalf("pause %q: %v", name, err)
	}
	return sw
}

func resume(t *testing.T, r *verbtest.Rig, name string) loops.Switched {
	t.Helper()
	sw, err := r.Loops.Resume(t.Context(), verbtest.Ann, name)
	if err != nil {
		t.Fatalf("resume %q: %v", name, err)
	}
	return sw
}

const schema = "pawl.switch/v1"

func wantSwitch(t *testing.T, got, want loops.Switched) {
	t.Helper()
	want.Schema = schema
	if want.Scope = loop.SwitchLoop; want.Loop == loops.All {
		want.Scope = loop.SwitchWorkspace
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("switch (-want +got):\n%s", diff)
	}
}

func TestPauseSetsTheFileAndTheRowAndResumeClearsBoth(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.DefineLoop("other", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	r.RunLoop(runs.StartRequest{Loop: "other"})
	const file = ".loops/tidy/PAUSED"

	wantSwitch(t, pause(t, r, "tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: file})
	if !r.Exists(file) || !r.LoopRow(loop.ProtocolSpine, "tidy").Paused || r.LoopRow(loop.ProtocolSpine, "other").Paused {
		t.Error("pause did not set the switch of tidy alone, in file and row")
	}
	p, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "tidy"})
	if err == nil {
		_, err = r.Runs.Start(t.Context(), p)
	}
	verbtest.WantFault(t, err, loop.ExitPaused, "tidy is paused", file, "pawl resume tidy")
	wantSwitch(t, pause(t, r, "tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: file, Was: true})

	wantSwitch(t, resume(t, r, "tidy"), loops.Switched{Loop: "tidy", Switch: file})
	if r.Exists(file) || r.LoopRow(loop.ProtocolSpine, "tidy").Paused {
		t.Error("resume left a switch")
	}
	wantSwitch(t, resume(t, r, "tidy"), loops.Switched{Loop: "tidy", Switch: file, Was: true})
	if n := r.CountKillLinks(loop.ProtocolSpine, "tidy"); n != 3 {
		t.Errorf("the audit chain has %d switches, want 1 pause and 2 resumes", n)
	}
	if n := r.CountKillLinks(loop.ProtocolSpine, "other"); n != 0 {
		t.Errorf("the audit chain of other has %d switches", n)
	}
}

func TestASwitchThatOnlyTheStoreHasIsClearedToo(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	pause(t, r, "tidy")
	if err := os.Remove(filepath.Join(r.Root, ".loops/tidy/PAUSED")); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, resume(t, r, "tidy"), loops.Switched{Loop: "tidy", Switch: ".loops/tidy/PAUSED"})
	if row := r.ShowRow("tidy"); row.State != "idle" || row.Paused != "" {
		t.Errorf("tidy is %s by %q", row.State, row.Paused)
	}
}

func TestALoopThatIsResumedUnderTheSwitchForAllIsSaidToBePaused(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	pause(t, r, "tidy")
	pause(t, r, loops.All)
	wantSwitch(t, resume(t, r, "tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: ".loops/PAUSED", PausedBy: loop.KillSwitch{Path: ".loops/PAUSED"}, Was: true})
	if r.Exists(".loops/tidy/PAUSED") || !r.Exists(".loops/PAUSED") {
		t.Error("resume of one loop cleared another switch than its own")
	}
}

func TestPausingAllKeepsWhatWasPausedOneByOneApart(t *testing.T) {
	r := verbtest.New(t)
	for _, name := range []string{"a", "b"} {
		r.DefineLoop(name, verbtest.FindsNone)
		r.RunLoop(runs.StartRequest{Loop: name})
	}
	pause(t, r, "a")
	wantSwitch(t, pause(t, r, loops.All), loops.Switched{Paused: true, Switch: ".loops/PAUSED"})
	wantSwitch(t, pause(t, r, loops.All), loops.Switched{Paused: true, Switch: ".loops/PAUSED", Was: true})
	if r.Exists(".loops/b/PAUSED") || r.LoopRow(loop.ProtocolSpine, "b").Paused {
		t.Error("pausing all set the switch of b")
	}
	if n := r.CountKillLinks(loop.ProtocolSpine, "b"); n != 1 {
		t.Errorf("the audit chain of b has %d switches, want 1", n)
	}
	if n := r.CountKillLinks(loop.ProtocolSpine, "a"); n != 2 {
		t.Errorf("the audit chain of a has %d switches, want its own and that of all", n)
	}
	if err := os.Remove(filepath.Join(r.Root, ".loops/PAUSED")); err != nil {
		t.Fatal(err)
	}
	if b := r.ShowRow("b"); b.State != "paused" || !strings.HasPrefix(b.Paused, "`pawl pause --all`, set by Ann at ") || len(b.Switches) != 1 {
		t.Errorf("without the file b is %s by %q, want that the store still has the switch", b.State, b.Paused)
	}
	r.EditStore(`DELETE FROM switches`)
	if a, b := r.ShowRow("a"), r.ShowRow("b"); a.State != "paused" || b.State != "idle" {
		t.Errorf("a is %s and b is %s, want paused and idle", a.State, b.State)
	}
}

func TestResumingAllClearsEverySwitch(t *testing.T) {
	r := verbtest.New(t)
	for _, name := range []string{"a", "b", "fresh"} {
		r.DefineLoop(name, verbtest.FindsNone)
	}
	r.RunLoop(runs.StartRequest{Loop: "a"})
	r.RecordMet("stored")
	verbtest.Write(t, r.Root, ".loops/README.md", "no loop")
	for _, name := range []string{"a", "fresh", "stored", loops.All} {
		pause(t, r, name)
	}
	if err := os.Symlink("nowhere", filepath.Join(r.Root, ".loops/b/PAUSED")); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, resume(t, r, loops.All), loops.Switched{Switch: ".loops/PAUSED"})
	for _, name := range []string{".loops/PAUSED", ".loops/a/PAUSED", ".loops/b/PAUSED", ".loops/fresh/PAUSED", ".loops/stored/PAUSED"} {
		if r.Exists(name) {
			t.Errorf("%s stands", name)
		}
	}
	if r.LoopRow(loop.ProtocolSpine, "a").Paused || r.LoopRow(loop.ProtocolSpec, "stored").Paused {
		t.Error("a row is still paused")
	}
	wantSwitch(t, resume(t, r, loops.All), loops.Switched{Switch: ".loops/PAUSED", Was: true})
}

// Whoever makes the file by hand stops this checkout alone; pawl pause makes it known to
// all nodes.
func TestAFileThatStandsAlreadyIsStillMadeKnownToTheStore(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	for _, name := range []string{".loops/PAUSED", ".loops/tidy/PAUSED"} {
		verbtest.Write(t, r.Root, name, "")
	}
	wantSwitch(t, pause(t, r, loops.All), loops.Switched{Paused: true, Switch: ".loops/PAUSED"})
	wantSwitch(t, pause(t, r, loops.All), loops.Switched{Paused: true, Switch: ".loops/PAUSED", Was: true})
	wantSwitch(t, pause(t, r, "tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: ".loops/tidy/PAUSED"})
	wantSwitch(t, pause(t, r, "tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: ".loops/tidy/PAUSED", Was: true})
	if n := r.CountKillLinks(loop.ProtocolSpine, "tidy"); !r.LoopRow(loop.ProtocolSpine, "tidy").Paused || n != 2 {
		t.Errorf("the row is not set, or there are %d links", n)
	}
	wantSwitch(t, resume(t, r, loops.All), loops.Switched{Switch: ".loops/PAUSED"})
	if row := r.ShowRow("tidy"); row.State != "idle" || len(row.Switches) > 0 {
		t.Errorf("tidy is %s by %q", row.State, row.Paused)
	}
}

// everywhere is the switch of all workspaces of the rig's store.
func everywhere(r *verbtest.Rig) loops.Everywhere {
	return loops.Everywhere{Store: r.Store, WaitHalted: func(ctx context.Context) (runs.Halted, error) {
		return runs.Halting{
			Held:        func(ctx context.Context) ([]loop.HeldRun, error) { return r.Store.HeldRuns(ctx, "", "") },
			HolderState: r.Workspace.HolderState, Conclude: r.Runs.ConcludeHeld, Now: r.Workspace.Now, Wait: r.Runs.StopWait,
		}.Run(ctx)
	}}
}

func TestTheSwitchOfTheStoreStopsEveryWorkspaceAndIsClearedByItselfOnly(t *testing.T) {
	const why = "the kill switch is set: .loops/tidy/PAUSED" // A person's words name no switch.
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		ended := r.StartLive("slow")
		other := r.InRepo(verbtest.NewRepo(t))
		other.DefineLoop("tidy", verbtest.FindsNone)
		other.RunLoop(runs.StartRequest{Loop: "tidy"})
		sw, err := everywhere(r).Pause(t.Context(), verbtest.Ann, why)
		want := loops.Switched{Schema: schema, Scope: loop.SwitchStore, Paused: true, Switch: "`pawl pause --everywhere`", Why: why, Stopped: []string{"slow#1"}}
		if diff := cmp.Diff(want, sw); err != nil || diff != "" {
			t.Fatalf("pause = %v (-want +got):\n%s", err, diff)
		}
		if v := <-ended; v.Outcome != loop.OutcomePaused || v.Detail != "`pawl pause --everywhere`" {
			t.Errorf("slow ended %s %q", v.Outcome, v.Detail)
		}
		if again, err := everywhere(r).Pause(t.Context(), verbtest.Ann, "again"); err != nil || !again.Was || len(again.Stopped) > 0 {
			t.Errorf("again = %+v, %v", again, err)
		}
		p, err := other.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "tidy"})
		if err == nil {
			_, err = other.Runs.Start(t.Context(), p)
		}
		verbtest.WantFault(t, err, loop.ExitPaused, "tidy is paused", "`pawl pause --everywhere`, set by Ann at ", "`pawl resume --everywhere` clears it; `pawl resume tidy` does not")
		if row := other.ShowRow("tidy"); row.State != "paused" || !strings.HasSuffix(row.Paused, ": "+why) {
			t.Errorf("tidy is %s by %q", row.State, row.Paused)
		}
		if sw := resume(t, other, loops.All); !sw.Paused || !sw.PausedBy.StopsAll() {
			t.Errorf("resume --all = %+v, want that the switch of the store still stands", sw)
		}
		if got := other.ShowRow("tidy").PausedBy.ClearedBy("tidy").String(); got != "pawl resume --everywhere" {
			t.Errorf("the fix is %s", got)
		}
		for _, was := range []bool{false, true} {
			if sw, err := everywhere(r).Resume(t.Context(), verbtest.Ann); err != nil || sw.Was != was || sw.Paused {
				t.Errorf("resume = %+v, %v", sw, err)
			}
		}
		other.RunLoop(runs.StartRequest{Loop: "tidy"})
		for _, rig := range []*verbtest.Rig{r, other} {
			links, err := chainOf(t, r, rig.Workspace.ID)
			if err != nil || len(links) != 2 {
				t.Errorf("the chain of workspace %s has %d links, %v; want a pause and a resume", rig.Workspace.ID, len(links), err)
			}
		}
	})
}

func chainOf(t *testing.T, r *verbtest.Rig, id string) (links []loop.Link, err error) {
	t.Helper()
	err = r.Store.View(t.Context(), func(rd *store.Reader) (err error) {
		links, err = rd.Chain(t.Context(), id)
		return err
	})
	return links, err
}

func TestALoopOfTheStoreIsPausedByNameAndByProtocol(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RecordMet("tidy")
	_, err := r.Loops.Pause(t.Context(), verbtest.Ann, "tidy", "")
	verbtest.WantFault(t, err, loop.ExitUsage, `"tidy" names several loops`, "", "spec:tidy or spine:tidy")
	if r.Exists(".loops/tidy/PAUSED") {
		t.Error("an ambiguous name set a switch")
	}
	wantSwitch(t, pause(t, r, "spec:tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: ".loops/tidy/PAUSED"})
	if !r.LoopRow(loop.ProtocolSpec, "tidy").Paused || r.CountKillLinks(loop.ProtocolSpec, "tidy") != 1 {
		t.Error("the pause is not recorded")
	}
	pause(t, r, loops.All)
	wantSwitch(t, resume(t, r, "spec:tidy"), loops.Switched{Loop: "tidy", Paused: true, Switch: ".loops/PAUSED", PausedBy: loop.KillSwitch{Path: ".loops/PAUSED"}, Was: true})
	if r.LoopRow(loop.ProtocolSpec, "tidy").Paused || r.Exists(".loops/tidy/PAUSED") {
		t.Error("the loop's own switch still stands")
	}
}

func TestTheSwitchWorksWithoutAStore(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	s := r.WithoutStore()
	for _, name := range []string{"tidy", loops.All} {
		if sw := pause(t, s, name); !r.Exists(sw.Switch) {
			t.Errorf("%s is not there", sw.Switch)
		}
	}
	if row := r.ShowRow("tidy"); row.State != "paused" {
		t.Errorf("tidy is %s", row.State)
	}
	if sw, err := s.Loops.Kill(t.Context(), verbtest.Ann, loops.All, ""); err != nil || len(sw.Stopped) != 0 {
		t.Errorf("kill = %+v, %v", sw, err)
	}
	resume(t, s, loops.All)
	if r.Exists(".loops/PAUSED") || r.Exists(".loops/tidy/PAUSED") {
		t.Error("a switch stands")
	}
	if _, err := r.Loops.Pause(t.Context(), verbtest.Ann, "nobody", ""); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("pause of nobody = %v", err)
	}
	if _, err := r.Loops.Resume(t.Context(), verbtest.Ann, "nobody"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("resume of nobody = %v", err)
	}
}

func TestWhateverStandsAsSwitchIsClearedAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(t *testing.T, r *verbtest.Rig, outside string) error
		fix  string
		left bool
	}{
		"a file": {set: func(t *testing.T, r *verbtest.Rig, _ string) error {
			t.Helper()
			verbtest.Write(t, r.Root, ".loops/PAUSED", "x")
			return nil
		}},
		"an empty folder": {set: func(_ *testing.T, r *verbtest.Rig, _ string) error {
			return os.MkdirAll(filepath.Join(r.Root, ".loops/PAUSED"), 0o755)
		}},
		"a link": {set: func(_ *testing.T, r *verbtest.Rig, out string) error {
			return os.Symlink(out, filepath.Join(r.Root, ".loops/PAUSED"))
		}},
		"a dangling link": {set: func(_ *testing.T, r *verbtest.Rig, _ string) error {
			return os.Symlink("no", filepath.Join(r.Root, ".loops/PAUSED"))
		}},
		"a loop's own": {set: func(t *testing.T, r *verbtest.Rig, _ string) error {
			t.Helper()
			verbtest.Write(t, r.Root, ".loops/tidy/PAUSED", "")
			return nil
		}},
		"a folder of work": {set: func(t *testing.T, r *verbtest.Rig, _ string) error {
			t.Helper()
			verbtest.Write(t, r.Root, ".loops/PAUSED/loop.config.yaml", "x")
			return nil
		}, fix: "move away what is in it", left: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, outside := verbtest.New(t), t.TempDir()
			r.DefineLoop("tidy", verbtest.FindsNone)
			verbtest.Write(t, outside, "work.txt", "mine")
			if err := c.set(t, r, outside); err != nil {
				t.Fatal(err)
			}
			_, err := r.Loops.Resume(t.Context(), verbtest.Ann, loops.All)
			if c.fix != "" {
				verbtest.WantFault(t, err, loop.ExitError, "resume by .loops/PAUSED", "not empty", c.fix)
			} else if err != nil {
				t.Errorf("resume = %v", err)
			}
			if row := r.ShowRow("tidy"); (row.State == "paused") != c.left {
				t.Errorf("tidy is %s by %q", row.State, row.Paused)
			}
			if c.left != r.Exists(".loops/PAUSED/loop.config.yaml") {
				t.Error("the content of the folder was touched")
			}
			if _, err := os.Stat(filepath.Join(outside, "work.txt")); err != nil {
				t.Error(err)
			}
		})
	}
}

// tree lists everything below a folder.
func tree(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, root))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestNoVerbReachesOutOfTheWorkspaceThroughALink(t *testing.T) {
	for name, link := range map[string]string{"the folder of loops": ".loops", "the folder of one loop": ".loops/tidy"} {
		for how, absolute := range map[string]bool{"absolute": true, "relative": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				r := verbtest.New(t)
				outside := t.TempDir()
				r.DefineLoop("tidy", verbtest.FindsNone)
				place := filepath.Join(r.Root, link)
				target := filepath.Join(outside, "moved")
				if err := os.Rename(place, target); err != nil {
					t.Fatal(err)
				}
				to := target
				if !absolute {
					var err error
					if to, err = filepath.Rel(filepath.Dir(place), target); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Symlink(to, place); err != nil {
					t.Fatal(err)
				}
				before := tree(t, outside)
				_, err := r.Loops.Pause(t.Context(), verbtest.Ann, "tidy", "")
				verbtest.WantFault(t, err, loop.ExitError, "pause by .loops/tidy/PAUSED", "escapes", "no link out of it")

				if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
					t.Errorf("outside (-before +after):\n%s", diff)
				}

				// What stands outside is obeyed, and is not removed.
				own, _ := strings.CutPrefix(".loops/tidy", link)
				verbtest.Write(t, target, filepath.Join(own, "PAUSED/work.txt"), "mine")
				before = tree(t, outside)
				if row := r.ShowRow("tidy"); row.State != "paused" {
					t.Errorf("tidy is %s", row.State)
				}
				for _, name := range []string{"tidy", loops.All} {
					_, err = r.Loops.Resume(t.Context(), verbtest.Ann, name)
					verbtest.WantFault(t, err, loop.ExitError, "resume by .loops/tidy/PAUSED", "escapes", "no link out of it")
				}
				if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
					t.Errorf("outside (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestALinkWithinTheWorkspaceIsAsGoodAsAFolder(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	root := r.Root
	if err := errors.Join(os.Rename(filepath.Join(root, ".loops"), filepath.Join(root, "loops")), os.Symlink("loops", filepath.Join(root, ".loops"))); err != nil {
		t.Fatal(err)
	}
	pause(t, r, "tidy")
	if !r.Exists("loops/tidy/PAUSED") {
		t.Error("the switch is not there")
	}
	resume(t, r, "tidy")
	if r.Exists("loops/tidy/PAUSED") {
		t.Error("the switch still stands")
	}
}

func TestAFileInThePlaceOfTheFolderIsNoReasonToLoseIt(t *testing.T) {
	r := verbtest.New(t)
	verbtest.Write(t, r.Root, ".loops", "notes")
	_, err := r.Loops.Pause(t.Context(), verbtest.Ann, loops.All, "")
	verbtest.WantFault(t, err, loop.ExitError, "pause by .loops/PAUSED", ".loops: ", "see that .loops is a folder")
	// Every engine takes it for a switch, so that resume may not be silent.
	_, err = r.Loops.Resume(t.Context(), verbtest.Ann, loops.All)
	verbtest.WantFault(t, err, loop.ExitUnreadable, "list loops", "not a directory", "readable folder")
	if data, err := os.ReadFile(filepath.Join(r.Root, ".loops")); err != nil || string(data) != "notes" {
		t.Errorf(".loops = %q, %v", data, err)
	}
}
