package control

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
)

func pause(t *testing.T, s *Service, name string) Switched {
	t.Helper()
	sw, err := s.Pause(t.Context(), ann, name)
	if err != nil {
		t.Fatalf("pause %q: %v", name, err)
	}
	return sw
}

func resume(t *testing.T, s *Service, name string) Switched {
	t.Helper()
	sw, err := s.Resume(t.Context(), ann, name)
	if err != nil {
		t.Fatalf("resume %q: %v", name, err)
	}
	return sw
}

const schema = "pawl.switch/v1"

func wantSwitch(t *testing.T, got, want Switched) {
	t.Helper()
	want.Schema = schema
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("switch (-want +got):\n%s", diff)
	}
}

func TestPauseSetsTheFileAndTheRowAndResumeClearsBoth(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	r.define("other", findsNone)
	r.run(RunRequest{Loop: "tidy"})
	r.run(RunRequest{Loop: "other"})
	const file = ".loops/tidy/PAUSED"

	wantSwitch(t, pause(t, r.Service, "tidy"), Switched{Loop: "tidy", Paused: true, Switch: file})
	if !r.exists(file) || !r.loopRow(loop.ProtocolSpine, "tidy").Paused || r.loopRow(loop.ProtocolSpine, "other").Paused {
		t.Error("pause did not set the switch of tidy alone, in file and row")
	}
	p, err := r.Prepare(t.Context(), RunRequest{Loop: "tidy"})
	if err == nil {
		_, err = r.Start(t.Context(), p)
	}
	wantFault(t, err, loop.ExitPaused, "tidy is paused", file, "pawl resume tidy")
	wantSwitch(t, pause(t, r.Service, "tidy"), Switched{Loop: "tidy", Paused: true, Switch: file, Was: true})

	wantSwitch(t, resume(t, r.Service, "tidy"), Switched{Loop: "tidy", Switch: file})
	if r.exists(file) || r.loopRow(loop.ProtocolSpine, "tidy").Paused {
		t.Error("resume left a switch")
	}
	wantSwitch(t, resume(t, r.Service, "tidy"), Switched{Loop: "tidy", Switch: file, Was: true})
	if n := r.kills(loop.ProtocolSpine, "tidy"); n != 3 {
		t.Errorf("the audit chain has %d switches, want 1 pause and 2 resumes", n)
	}
	if n := r.kills(loop.ProtocolSpine, "other"); n != 0 {
		t.Errorf("the audit chain of other has %d switches", n)
	}
}

func TestASwitchThatOnlyTheStoreHasIsClearedToo(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	r.run(RunRequest{Loop: "tidy"})
	pause(t, r.Service, "tidy")
	if err := os.Remove(filepath.Join(r.Root(), ".loops/tidy/PAUSED")); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, resume(t, r.Service, "tidy"), Switched{Loop: "tidy", Switch: ".loops/tidy/PAUSED"})
	if row := r.row("tidy"); row.State != "idle" || row.Paused != "" {
		t.Errorf("tidy is %s by %q", row.State, row.Paused)
	}
}

func TestALoopThatIsResumedUnderTheSwitchForAllIsSaidToBePaused(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	pause(t, r.Service, "tidy")
	pause(t, r.Service, All)
	wantSwitch(t, resume(t, r.Service, "tidy"), Switched{Loop: "tidy", Paused: true, Switch: ".loops/PAUSED", Was: true})
	if r.exists(".loops/tidy/PAUSED") || !r.exists(".loops/PAUSED") {
		t.Error("resume of one loop cleared another switch than its own")
	}
}

func TestPausingAllKeepsWhatWasPausedOneByOneApart(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b"} {
		r.define(name, findsNone)
		r.run(RunRequest{Loop: name})
	}
	pause(t, r.Service, "a")
	wantSwitch(t, pause(t, r.Service, All), Switched{Paused: true, Switch: ".loops/PAUSED"})
	wantSwitch(t, pause(t, r.Service, All), Switched{Paused: true, Switch: ".loops/PAUSED", Was: true})
	if r.exists(".loops/b/PAUSED") || r.loopRow(loop.ProtocolSpine, "b").Paused {
		t.Error("pausing all set the switch of b")
	}
	if n := r.kills(loop.ProtocolSpine, "b"); n != 1 {
		t.Errorf("the audit chain of b has %d switches, want 1", n)
	}
	if err := os.Remove(filepath.Join(r.Root(), ".loops/PAUSED")); err != nil {
		t.Fatal(err)
	}
	if a, b := r.row("a"), r.row("b"); a.State != "paused" || b.State != "idle" {
		t.Errorf("a is %s and b is %s, want paused and idle", a.State, b.State)
	}
}

func TestResumingAllClearsEverySwitch(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b", "fresh"} {
		r.define(name, findsNone)
	}
	r.run(RunRequest{Loop: "a"})
	r.met("stored")
	write(t, r.Root(), ".loops/README.md", "no loop")
	for _, name := range []string{"a", "fresh", "stored", All} {
		pause(t, r.Service, name)
	}
	if err := os.Symlink("nowhere", filepath.Join(r.Root(), ".loops/b/PAUSED")); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, resume(t, r.Service, All), Switched{Switch: ".loops/PAUSED"})
	for _, name := range []string{".loops/PAUSED", ".loops/a/PAUSED", ".loops/b/PAUSED", ".loops/fresh/PAUSED", ".loops/stored/PAUSED"} {
		if r.exists(name) {
			t.Errorf("%s stands", name)
		}
	}
	if r.loopRow(loop.ProtocolSpine, "a").Paused || r.loopRow(loop.ProtocolSpec, "stored").Paused {
		t.Error("a row is still paused")
	}
	wantSwitch(t, resume(t, r.Service, All), Switched{Switch: ".loops/PAUSED", Was: true})
}

func TestALoopOfTheStoreIsPausedByNameAndByProtocol(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	r.met("tidy")
	_, err := r.Pause(t.Context(), ann, "tidy")
	wantFault(t, err, loop.ExitUsage, `"tidy" names several loops`, "", "spec:tidy or spine:tidy")
	if r.exists(".loops/tidy/PAUSED") {
		t.Error("an ambiguous name set a switch")
	}
	wantSwitch(t, pause(t, r.Service, "spec:tidy"), Switched{Loop: "tidy", Paused: true, Switch: ".loops/tidy/PAUSED"})
	if !r.loopRow(loop.ProtocolSpec, "tidy").Paused || r.kills(loop.ProtocolSpec, "tidy") != 1 {
		t.Error("the pause is not recorded")
	}
	pause(t, r.Service, All)
	wantSwitch(t, resume(t, r.Service, "spec:tidy"), Switched{Loop: "tidy", Paused: true, Switch: ".loops/PAUSED", Was: true})
	if r.loopRow(loop.ProtocolSpec, "tidy").Paused || r.exists(".loops/tidy/PAUSED") {
		t.Error("the loop's own switch still stands")
	}
}

func TestTheSwitchWorksWithoutAStore(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	s := r.without()
	for _, name := range []string{"tidy", All} {
		if sw := pause(t, s, name); !r.exists(sw.Switch) {
			t.Errorf("%s is not there", sw.Switch)
		}
	}
	if row := r.row("tidy"); row.State != "paused" {
		t.Errorf("tidy is %s", row.State)
	}
	if sw, err := s.Kill(t.Context(), ann, All); err != nil || len(sw.Stopped) != 0 {
		t.Errorf("kill = %+v, %v", sw, err)
	}
	resume(t, s, All)
	if r.exists(".loops/PAUSED") || r.exists(".loops/tidy/PAUSED") {
		t.Error("a switch stands")
	}
	if _, err := s.Pause(t.Context(), ann, "nobody"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("pause of nobody = %v", err)
	}
	if _, err := s.Resume(t.Context(), ann, "nobody"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("resume of nobody = %v", err)
	}
}

func TestWhateverStandsAsSwitchIsClearedAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(t *testing.T, r *rig, outside string) error
		fix  string
		left bool
	}{
		"a file": {set: func(t *testing.T, r *rig, _ string) error {
			t.Helper()
			write(t, r.Root(), ".loops/PAUSED", "x")
			return nil
		}},
		"an empty folder": {set: func(_ *testing.T, r *rig, _ string) error {
			return os.MkdirAll(filepath.Join(r.Root(), ".loops/PAUSED"), 0o755)
		}},
		"a link": {set: func(_ *testing.T, r *rig, out string) error {
			return os.Symlink(out, filepath.Join(r.Root(), ".loops/PAUSED"))
		}},
		"a dangling link": {set: func(_ *testing.T, r *rig, _ string) error {
			return os.Symlink("no", filepath.Join(r.Root(), ".loops/PAUSED"))
		}},
		"a loop's own": {set: func(t *testing.T, r *rig, _ string) error {
			t.Helper()
			write(t, r.Root(), ".loops/tidy/PAUSED", "")
			return nil
		}},
		"a folder of work": {set: func(t *testing.T, r *rig, _ string) error {
			t.Helper()
			write(t, r.Root(), ".loops/PAUSED/loop.config.yaml", "x")
			return nil
		}, fix: "move away what is in it", left: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, outside := newRig(t), t.TempDir()
			r.define("tidy", findsNone)
			write(t, outside, "work.txt", "mine")
			if err := c.set(t, r, outside); err != nil {
				t.Fatal(err)
			}
			_, err := r.Resume(t.Context(), ann, All)
			if c.fix != "" {
				wantFault(t, err, loop.ExitError, "resume by .loops/PAUSED", "not empty", c.fix)
			} else if err != nil {
				t.Errorf("resume = %v", err)
			}
			if row := r.row("tidy"); (row.State == "paused") != c.left {
				t.Errorf("tidy is %s by %q", row.State, row.Paused)
			}
			if c.left != r.exists(".loops/PAUSED/loop.config.yaml") {
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
				r := newRig(t)
				outside := t.TempDir()
				r.define("tidy", findsNone)
				place := filepath.Join(r.Root(), link)
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
				_, err := r.Pause(t.Context(), ann, "tidy")
				wantFault(t, err, loop.ExitError, "pause by .loops/tidy/PAUSED", "escapes", "no link out of it")

				if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
					t.Errorf("outside (-before +after):\n%s", diff)
				}

				// What stands outside is obeyed, and is not removed.
				own, _ := strings.CutPrefix(".loops/tidy", link)
				write(t, target, filepath.Join(own, "PAUSED/work.txt"), "mine")
				before = tree(t, outside)
				if row := r.row("tidy"); row.State != "paused" {
					t.Errorf("tidy is %s", row.State)
				}
				for _, name := range []string{"tidy", All} {
					_, err = r.Resume(t.Context(), ann, name)
					wantFault(t, err, loop.ExitError, "resume by .loops/tidy/PAUSED", "escapes", "no link out of it")
				}
				if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
					t.Errorf("outside (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestALinkWithinTheWorkspaceIsAsGoodAsAFolder(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone)
	root := r.Root()
	if err := errors.Join(os.Rename(filepath.Join(root, ".loops"), filepath.Join(root, "loops")), os.Symlink("loops", filepath.Join(root, ".loops"))); err != nil {
		t.Fatal(err)
	}
	pause(t, r.Service, "tidy")
	if !r.exists("loops/tidy/PAUSED") {
		t.Error("the switch is not there")
	}
	resume(t, r.Service, "tidy")
	if r.exists("loops/tidy/PAUSED") {
		t.Error("the switch still stands")
	}
}

func TestAFileInThePlaceOfTheFolderIsNoReasonToLoseIt(t *testing.T) {
	r := newRig(t)
	write(t, r.Root(), ".loops", "notes")
	_, err := r.Pause(t.Context(), ann, All)
	wantFault(t, err, loop.ExitError, "pause by .loops/PAUSED", ".loops: ", "see that .loops is a folder")
	// Every engine takes it for a switch, so that resume may not be silent.
	_, err = r.Resume(t.Context(), ann, All)
	wantFault(t, err, loop.ExitUnreadable, "list loops", "not a directory", "readable folder")
	if data, err := os.ReadFile(filepath.Join(r.Root(), ".loops")); err != nil || string(data) != "notes" {
		t.Errorf(".loops = %q, %v", data, err)
	}
}
