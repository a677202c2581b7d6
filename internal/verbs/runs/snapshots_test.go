package runs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// kept runs a loop whose work is kept because its gate fails, and returns
// the run.
func kept(r *verbtest.Rig, name string) runs.View {
	r.T.Helper()
	r.DefineLoop(name, verbtest.WritesTwo, "verify", "false", "max_iterations", "1")
	v := r.RunLoop(runs.StartRequest{Loop: name})
	if v.Snapshot == "" {
		r.T.Fatalf("run %s = %s %s, want its work kept", name, v.Outcome, v.Detail)
	}
	return v
}

func snapshot(r *verbtest.Rig, ref string) runs.Snapshot {
	r.T.Helper()
	rows, err := r.Snapshots.List(r.T.Context())
	if err != nil {
		r.T.Fatal(err)
	}
	i := slices.IndexFunc(rows, func(row runs.Snapshot) bool { return row.Ref == ref })
	if i < 0 {
		r.T.Fatalf("%s is not among %+v", ref, rows)
	}
	return rows[i]
}

func prune(r *verbtest.Rig) runs.Pruned {
	r.T.Helper()
	p, err := r.Snapshots.Prune(r.T.Context(), verbtest.Ann, 0, false)
	if err != nil {
		r.T.Fatal(err)
	}
	return p
}

func TestASnapshotThatAStepWaitsForIsNeverRemoved(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	r.EditStore(`UPDATE steps SET state = 'waiting_human', snapshot = '` + v.Snapshot + `'`)
	commit := snapshot(r, v.Snapshot).Commit
	if row := snapshot(r, v.Snapshot); row.State != runs.SnapshotWaiting || row.Waits == "" || row.Loop != "tidy" || row.N != 1 {
		t.Errorf("row = %+v, want waiting, of tidy#1", row)
	}
	if p := prune(r); len(p.Removed) != 0 {
		t.Errorf("removed %+v", p.Removed)
	}
	r.EditStore(`UPDATE steps SET state = 'dropped'`)
	if p := prune(r); len(p.Removed) != 1 || !p.Packed {
		t.Errorf("pruned = %+v, want the one removed and the others packed", p)
	}
	if _, there, err := r.Workspace.Repo.Ref(t.Context(), v.Snapshot); there || err != nil {
		t.Errorf("it is still there: %v", err)
	}
	// The entry names the commit, so that the work can be brought back.
	if _, err := r.Snapshots.Find(t.Context(), "tidy#1"); err == nil {
		t.Error("it is still found by its run")
	}
	if text := gittest.Run(t, r.Root, "show", commit+":src/a.txt"); text != "two" {
		t.Errorf("the work is %q, want two", text)
	}
}

func TestARemovalIsAnEntryBeforeItIsDone(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	commit := snapshot(r, v.Snapshot).Commit
	r.EditStore(`UPDATE steps SET state = 'done', snapshot = ''`)
	lock := filepath.Join(".git", filepath.FromSlash(v.Snapshot)+".lock")
	verbtest.Write(t, r.Root, lock, "")
	p, err := r.Snapshots.Prune(t.Context(), verbtest.Ann, 0, false)
	if err == nil || len(p.Removed) != 0 || len(p.Kept) != 1 {
		t.Errorf("a ref that somebody holds = %+v, %v, want it kept with an error", p, err)
	}
	var bodies []string
	err = r.Store.View(t.Context(), func(rd *store.Reader) error {
		links, err := rd.Chain(t.Context(), catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "tidy"))
		for _, l := range links {
			if l.Kind == loop.LinkSnapshot {
				bodies = append(bodies, l.Body)
			}
		}
		return err
	})
	if err != nil || len(bodies) != 2 || !strings.Contains(bodies[0], `"verb":"remove"`) || !strings.Contains(bodies[0], commit) || !strings.Contains(bodies[1], `"verb":"keep"`) {
		t.Errorf("entries = %v, %v, want the removal with its commit, and that it was not done", bodies, err)
	}
	if a, err := r.Audit.Verify(t.Context(), ""); err != nil || !a.Intact {
		t.Errorf("the audit finds %+v, %v", a.Chains, err)
	}
}

func TestSnapshotsOfOthersAreListedAndKept(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	r.EditStore(`UPDATE steps SET state = 'done', snapshot = ''`)
	commit := snapshot(r, v.Snapshot).Commit
	tail := v.ID[max(0, len(v.ID)-6):]
	for ref, want := range map[string]string{
		"tidy/1-" + tail: runs.SnapshotSettled, "tidy/1-" + tail + "-" + tail: runs.SnapshotSettled, "rescued/" + v.ID: runs.SnapshotSettled,
		"tidy/1-000000": runs.SnapshotForeign, "tidy/7": runs.SnapshotForeign, "other/1": runs.SnapshotForeign, "rescued/run_none": runs.SnapshotForeign, "odd": runs.SnapshotForeign,
	} {
		if err := r.Workspace.Repo.UpdateRef(t.Context(), git.SnapshotPrefix+ref, commit, ""); err != nil {
			t.Fatal(err)
		}
		if got := snapshot(r, git.SnapshotPrefix+ref).State; got != want {
			t.Errorf("%s is %s, want %s", ref, got, want)
		}
	}
	if p := prune(r); len(p.Removed) != 4 || len(p.Kept) != 5 {
		t.Errorf("removed %d, kept %d, want 4 and 5", len(p.Removed), len(p.Kept))
	}
}

func TestARunThatIsLiveKeepsItsSnapshot(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	r.EditStore(`UPDATE steps SET state = 'done', snapshot = ''`, `UPDATE runs SET state = 'settling', holder = '{"pid":1}'`)
	if row := snapshot(r, v.Snapshot); row.State != runs.SnapshotRunning {
		t.Errorf("state = %s, want running", row.State)
	}
	if p := prune(r); len(p.Removed) != 0 {
		t.Errorf("removed %+v", p.Removed)
	}
}

func TestASnapshotIsKeptForItsTimeAfterItsStepWasDone(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	r.EditStore(`UPDATE steps SET state = 'done', snapshot = ''`)
	settled := *snapshot(r, v.Snapshot).Settled
	for name, c := range map[string]struct {
		later time.Duration
		gone  int
	}{"a day early": {runs.KeepSnapshots - 24*time.Hour, 0}, "when it is over": {runs.KeepSnapshots, 1}} {
		r.Workspace.Now = func() time.Time { return settled.Add(c.later) }
		if p, err := r.Snapshots.Prune(t.Context(), verbtest.Ann, runs.KeepSnapshots, true); err != nil || len(p.Removed) != c.gone || !p.DryRun {
			t.Errorf("%s: %+v, %v, want %d to go", name, p, err, c.gone)
		}
	}
	if _, there, err := r.Workspace.Repo.Ref(t.Context(), v.Snapshot); !there || err != nil {
		t.Errorf("a dry run removed it: %v", err)
	}
}

func TestARefThatNamesARunOfAnotherRepositoryIsNobodysWork(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	other := r.InRepo(verbtest.NewRepo(t))
	gittest.Run(t, other.Root, "update-ref", "refs/pawl/snapshots/rescued/"+v.ID+"-1", "HEAD")
	rows, err := other.Snapshots.List(t.Context())
	if err != nil || len(rows) != 1 || rows[0].State != runs.SnapshotForeign || rows[0].RunID != "" || rows[0].Loop != "" {
		t.Errorf("in the other repository = %+v, %v, want the work of no run", rows, err)
	}
	_, err = other.Snapshots.Find(t.Context(), v.ID)
	verbtest.WantFault(t, err, loop.ExitNotFound, "there is no snapshot "+v.ID, "", "pawl recover")
}

func TestLinkedWorktreesKeepEachOthersSnapshots(t *testing.T) {
	r := verbtest.New(t)
	v := kept(r, "tidy")
	r.EditStore(`UPDATE steps SET state = 'failed', snapshot = '` + v.Snapshot + `'`)
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Run(t, r.Root, "worktree", "add", "-q", linked)
	other := r.InRepo(linked)
	rows, err := other.Snapshots.List(t.Context())
	if err != nil || len(rows) != 1 || rows[0].State != runs.SnapshotWaiting || rows[0].RunID != v.ID {
		t.Errorf("seen from the other checkout = %+v, %v, want waiting, of %s", rows, err, v.ID)
	}
	if p, err := other.Snapshots.Prune(t.Context(), verbtest.Ann, 0, false); err != nil || len(p.Removed) != 0 {
		t.Errorf("pruned = %+v, %v", p, err)
	}
}
