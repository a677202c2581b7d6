package loops_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestANameThatTwoProtocolsKnowIsRefusedWithTheChoice(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RecordMet("tidy")
	_, err := r.Workspace.Loop(t.Context(), "tidy")
	verbtest.WantFault(t, err, loop.ExitUsage, `"tidy" names several loops`, "", "say which: spec:tidy or spine:tidy")
	for _, protocol := range []string{loop.ProtocolSpec, loop.ProtocolSpine} {
		row, err := r.Workspace.Loop(t.Context(), protocol+":tidy")
		if err != nil || row.Protocol != protocol || row.Name != "tidy" {
			t.Errorf("find %s:tidy = %s:%s, %v", protocol, row.Protocol, row.Name, err)
		}
	}
	if v, err := r.Runs.Show(t.Context(), "spec:tidy#1"); err != nil || v.Protocol != loop.ProtocolSpec || v.N != 1 {
		t.Errorf("run spec:tidy#1 = %s %d, %v", v.Protocol, v.N, err)
	}
	_, err = r.Runs.Show(t.Context(), "spine:tidy")
	verbtest.WantFault(t, err, loop.ExitNotFound, "loop spine:tidy has no runs yet", "", "pawl run spine:tidy")
}

func TestAnUnknownLoopIsAnsweredWithTheKnownOnes(t *testing.T) {
	r := verbtest.New(t)
	_, err := r.Workspace.Loop(t.Context(), "nobody")
	verbtest.WantFault(t, err, loop.ExitNotFound, `there is no loop "nobody" in `+r.Root, "", "make it: pawl new nobody")
	r.DefineLoop("one", verbtest.FindsNone)
	r.DefineLoop("two", verbtest.FindsNone)
	verbtest.Write(t, r.Root, ".loops/notes/README.md", "no loop")
	_, err = r.Workspace.Loop(t.Context(), "nobody")
	verbtest.WantFault(t, err, loop.ExitNotFound, `"nobody"`, "", "there are: one, two")
	if !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("%v is not ErrNotFound", err)
	}
}

func TestARunIsFoundByItsIDItsNumberOrItsLoop(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.DefineLoop("fresh", verbtest.FindsNone)
	first, second := r.RunLoop(runs.StartRequest{Loop: "tidy"}), r.RunLoop(runs.StartRequest{Loop: "tidy"})
	for ref, want := range map[string]string{
		first.ID: first.ID, "tidy#1": first.ID, "tidy#2": second.ID, "tidy": second.ID, "spine:tidy": second.ID, "spine:tidy#1": first.ID,
	} {
		if run, err := r.Workspace.Run(t.Context(), ref); err != nil || run.ID != want {
			t.Errorf("run %s = %s, %v, want %s", ref, run.ID, err, want)
		}
	}
	for name, c := range map[string]struct {
		ref, what, fix string
		exit           int
	}{
		"an id that no run has":      {"run_none", "there is no run run_none", "`pawl runs` lists them", loop.ExitNotFound},
		"a number that no run has":   {"tidy#3", "there is no run tidy#3", "`pawl runs` lists them", loop.ExitNotFound},
		"a number below the first":   {"tidy#-1", "there is no run tidy#-1", "`pawl runs` lists them", loop.ExitNotFound},
		"an invalid number":          {"tidy#x", `"tidy#x" is not a run`, "write LOOP#NUMBER, for example tidy#3", loop.ExitUsage},
		"an empty number":            {"tidy#", `"tidy#" is not a run`, "tidy#3", loop.ExitUsage},
		"a number that is too large": {"tidy#99999999999999999999", "is not a run", "tidy#3", loop.ExitUsage},
		"a loop without runs":        {"fresh", "loop fresh has no runs yet", "start one: pawl run fresh", loop.ExitNotFound},
		"a number of such a loop":    {"fresh#1", "there is no run fresh#1", "`pawl runs` lists them", loop.ExitNotFound},
		"no loop":                    {"nobody#1", `there is no loop "nobody"`, "there are: fresh, tidy", loop.ExitNotFound},
		"a number alone":             {"#1", `there is no loop ""`, "there are: fresh, tidy", loop.ExitNotFound},
		"nothing":                    {"", `there is no loop ""`, "there are: fresh, tidy", loop.ExitNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Runs.Show(t.Context(), c.ref)
			verbtest.WantFault(t, err, c.exit, c.what, "", c.fix)
		})
	}
}

func TestEveryStateOfALoopIsSeenInTheListing(t *testing.T) {
	r := verbtest.New(t)
	for _, name := range []string{"fresh", "ran", "busy", "lost", "due", "held", "stopped"} {
		r.DefineLoop(name, verbtest.FindsNone)
	}
	r.DefineLoop("wrong", verbtest.FindsNone, "tier", "L9")
	r.RunLoop(runs.StartRequest{Loop: "ran"})
	r.RunLoop(runs.StartRequest{Loop: "stopped"})
	r.InsertRun("busy", r.Self)
	r.InsertRun("lost", r.DeadHolder())
	r.InsertRun("due", loop.Holder{})
	verbtest.Write(t, r.Root, ".loops/held/PAUSED", "")
	if _, err := r.Loops.Pause(t.Context(), verbtest.Ann, "stopped", ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.Root, ".loops/stopped/PAUSED")); err != nil {
		t.Fatal(err)
	}
	rows, err := r.Loops.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var paged []loops.Row
	for next := (catalog.Page{Limit: 3}); ; next.After = (catalog.Key{Name: paged[len(paged)-1].Name, Protocol: paged[len(paged)-1].Protocol}) {
		page, err := r.Loops.ListPage(t.Context(), next)
		if err != nil || len(page) > 3 {
			t.Fatalf("a page of %d loops: %v", len(page), err)
		}
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
	}
	if diff := cmp.Diff(rows, paged); diff != "" {
		t.Errorf("pages have something else (-want +got):\n%s", diff)
	}
	if _, err := r.Loops.ListPage(t.Context(), catalog.Page{Limit: -1}); err == nil {
		t.Error("less than no loop is listed")
	}
	want := map[string]string{
		"fresh": "never_run", "ran": "idle", "busy": "running", "lost": "dead", "due": "queued", "held": "paused", "stopped": "paused", "wrong": "broken",
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.Name)
		if row.State != want[row.Name] {
			t.Errorf("%s is %s, want %s", row.Name, row.State, want[row.Name])
		}
		if held := row.Held != nil; held != slices.Contains([]string{"busy", "lost"}, row.Name) {
			t.Errorf("%s is held: %v", row.Name, held)
		}
		if ran := row.LastRun != nil; ran != slices.Contains([]string{"ran", "stopped", "busy", "lost"}, row.Name) {
			t.Errorf("%s has started: %v", row.Name, row.LastRun)
		}
	}
	if !slices.IsSorted(names) || len(names) != len(want) {
		t.Errorf("listed are %q, want all by name", names)
	}
	if row := r.ShowRow("held"); row.Paused != ".loops/held/PAUSED" {
		t.Errorf("held is paused by %q", row.Paused)
	}
	if row := r.ShowRow("stopped"); row.Paused != "pawl pause" {
		t.Errorf("stopped is paused by %q, want the store's switch", row.Paused)
	}
	if row := r.ShowRow("wrong"); !strings.Contains(row.Problem, "wrong is not ready to run") {
		t.Errorf("problem = %q", row.Problem)
	}
}

func TestALoopWhoseFilesAreGoneIsListedWithItsRunsAndCannotRun(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.DefineLoop("kept", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	if err := os.RemoveAll(filepath.Join(r.Root, ".loops/tidy")); err != nil {
		t.Fatal(err)
	}
	if row := r.ShowRow("tidy"); row.State != "idle" || row.Goal != "keep things right" || row.LastN != 1 || row.Outcome != loop.OutcomeQuiet {
		t.Errorf("row = %+v", row)
	}
	_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "tidy"})
	verbtest.WantFault(t, err, loop.ExitNotFound, `loop tidy has no definition any more`, ".loops/tidy/loop.config.yaml is missing", "forget the loop: pawl rm tidy")
	_, err = r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "tidi"})
	verbtest.WantFault(t, err, loop.ExitNotFound, `there is no loop "tidi"`, "", "did you mean tidy? there are: kept, tidy")
}

func TestWithoutAStoreFilesAreListedAndNothingHasRun(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	s := r.WithoutStore()
	rows, err := s.Loops.List(t.Context())
	if err != nil || len(rows) != 1 || rows[0].State != "never_run" {
		t.Errorf("loops = %+v, %v", rows, err)
	}
	if row, err := s.Loops.Show(t.Context(), "tidy"); err != nil || row.Schema != "pawl.loop/v1" {
		t.Errorf("show = %+v, %v", row, err)
	}
	for _, name := range []string{"", "tidy"} {
		if views, err := s.Runs.List(t.Context(), name, 5); err != nil || views == nil || len(views) > 0 {
			t.Errorf("runs of %q = %v, %v, want an empty list", name, views, err)
		}
	}
	if found, err := s.Runs.Recover(t.Context()); !lookup.Absent(err) || found != nil {
		t.Errorf("recover = %v, %v", found, err)
	}
	if err := s.Audit.VerifyChain(t.Context(), "tidy"); err != nil {
		t.Errorf("audit = %v", err)
	}
	_, err = s.Runs.Show(t.Context(), "run_1")
	verbtest.WantFault(t, err, loop.ExitNotFound, "there is no run run_1", "", "pawl runs")
}

func TestRunsOfAllLoopsComeNewestFirstAndNoMoreThanAsked(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("a", verbtest.FindsNone)
	r.DefineLoop("b", verbtest.FindsNone)
	for _, name := range []string{"a", "b", "a"} {
		r.RunLoop(runs.StartRequest{Loop: name})
	}
	for name, c := range map[string]struct {
		loop  string
		limit int
		want  []string
	}{
		"all":         {"", 9, []string{"a#2", "b#1", "a#1"}},
		"the newest":  {"", 2, []string{"a#2", "b#1"}},
		"of one loop": {"a", 9, []string{"a#2", "a#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			views, err := r.Runs.List(t.Context(), c.loop, c.limit)
			var got []string
			for _, v := range views {
				got = append(got, fmt.Sprintf("%s#%d", v.Loop, v.N))
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("runs = %q, %v, want %q", got, err, c.want)
			}
		})
	}
	_, err := r.Runs.List(t.Context(), "nobody", 1)
	verbtest.WantFault(t, err, loop.ExitNotFound, "nobody", "", "there are: a, b")
}

func TestTwoClonesAreTwoWorkspaces(t *testing.T) {
	r, other := verbtest.New(t), verbtest.NewRepo(t)
	s := r.InRepo(other)
	if s.Workspace.ID == r.Workspace.ID {
		t.Fatalf("both are %s", r.Workspace.ID)
	}
	r.DefineLoop("tidy", verbtest.FindsNone)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	if rows, err := s.Loops.List(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("the other workspace has %+v, %v", rows, err)
	}
}

func TestAFolderOutsideOfAnyRepositoryIsRefused(t *testing.T) {
	_, err := lookup.Open(t.Context(), lookup.Deps{}, t.TempDir())
	verbtest.WantFault(t, err, loop.ExitNotFound, "is not in a git repository", "", "git init")
}

func TestARepositoryIsFoundFromAnyFolderInIt(t *testing.T) {
	r := verbtest.New(t)
	s := r.InRepo(filepath.Join(r.Root, "src"))
	if s.Root != r.Root || s.Workspace.Repo.Root != r.Root || s.Workspace.ID != r.Workspace.ID {
		t.Errorf("from src it is %+v", s)
	}
}

func TestRunsOfALoopThatWasForgottenAreNotListed(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	first := r.RunLoop(runs.StartRequest{Loop: "tidy"})
	for range 3 {
		r.RecordMet("until")
	}
	last := r.RunLoop(runs.StartRequest{Loop: "tidy"})
	list := func(limit int) (ids []string) {
		t.Helper()
		views, err := r.Runs.List(t.Context(), "", limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range views {
			ids = append(ids, v.ID)
		}
		return ids
	}
	if got := list(9); len(got) != 5 {
		t.Errorf("listed are %q", got)
	}
	for _, name := range []string{"until", "tidy"} { // The folder of the second is there.
		if _, err := r.Loops.Forget(t.Context(), verbtest.Ann, name); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int][]string{1: {last.ID}, 2: {last.ID, first.ID}, 9: {last.ID, first.ID}} {
		if got := list(limit); !slices.Equal(got, want) {
			t.Errorf("at most %d: %q, want %q", limit, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(r.Root, ".loops/tidy")); err != nil {
		t.Fatal(err)
	}
	if got := list(9); len(got) != 0 {
		t.Errorf("without its folder %q are listed", got)
	}
}
