package runs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// keptAsItLies is a run whose copy was set aside without a snapshot.
func keptAsItLies(r *verbtest.Rig, files map[string]string) (v runs.View, dir string) {
	r.T.Helper()
	v = kept(r, "tidy")
	gittest.Run(r.T, r.Root, "update-ref", "-d", v.Snapshot)
	r.EditStore(`UPDATE runs SET snapshot = ''`)
	dir = filepath.Join(r.Home, "trees", "kept-"+v.ID)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		r.T.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(r.Root)); err != nil {
		r.T.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		r.T.Fatal(err)
	}
	gittest.Write(r.T, dir, files)
	return v, dir
}

func TestWorkThatLiesInPawlsHomeIsListedAndPutOnABranch(t *testing.T) {
	r := verbtest.New(t)
	v, dir := keptAsItLies(r, map[string]string{"src/rescued.txt": "work\n"})
	rows, err := r.Snapshots.List(t.Context())
	if err != nil || len(rows) != 1 || rows[0].State != runs.SnapshotKept || rows[0].Dir != dir || rows[0].RunID != v.ID || rows[0].Ref != "" {
		t.Fatalf("rows = %+v, %v; want the copy in %s", rows, err, dir)
	}
	if _, err := r.Runs.Diff(t.Context(), "tidy#1"); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("diff = %v, want where the files are", err)
	}
	if _, err := r.Snapshots.Diff(t.Context(), "tidy#1"); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("show = %v, want where the files are", err)
	}
	if p := prune(r); len(p.Removed) > 0 {
		t.Errorf("removed %+v", p.Removed)
	}
	for _, branch := range []string{"rescue/1", "rescue/2"} {
		if _, err := r.Snapshots.Restore(t.Context(), verbtest.Ann, "tidy#1", branch); err != nil {
			t.Fatal(err)
		}
		if got := gittest.Run(t, r.Root, "show", branch+":src/rescued.txt"); got != "work" {
			t.Errorf("restored = %q", got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "src/rescued.txt")); string(text) != "work\n" {
		t.Errorf("the files are gone: %v", err)
	}
}

func TestWorkThatCannotBeComparedIsSaidToBeCopiedByHand(t *testing.T) {
	r := verbtest.New(t)
	_, dir := keptAsItLies(r, nil)
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("?"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := r.Snapshots.Restore(t.Context(), verbtest.Ann, "tidy#1", "rescue/1")
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || !strings.Contains(f.Why, dir) || !strings.Contains(f.Advice().String(), "by hand") {
		t.Errorf("restore = %v, want where the files are", err)
	}
}
