//go:build unix

package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestSnapshotsAreListedWithWhatTheyChanged(t *testing.T) {
	for name, args := range map[string][]string{"sha1": nil, "sha256": {"--object-format=sha256"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := gittest.Repo(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n"}, args...)
			r := open(t, dir)
			if list, err := r.Snapshots(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("of none = %v, %v", list, err)
			}
			on := base(t, r)
			gittest.Write(t, dir, map[string]string{"a.txt": "one two\n", "new name.txt": "12345"})
			gittest.Run(t, dir, "rm", "-q", "b.txt")
			gittest.Run(t, dir, "add", "-A")
			tree := gittest.Run(t, dir, "write-tree")
			commit, err := r.Commit(t.Context(), tree, []string{on.Commit}, "kept", when)
			if err != nil {
				t.Fatal(err)
			}
			root, err := r.Commit(t.Context(), tree, nil, "without a parent", when)
			if err != nil {
				t.Fatal(err)
			}
			for ref, id := range map[string]string{"tidy/1": commit, "tidy/2-again": commit, "rescued/run_1": root} {
				if err := r.UpdateRef(t.Context(), SnapshotPrefix+ref, id, ""); err != nil {
					t.Fatal(err)
				}
			}
			gittest.Run(t, dir, "update-ref", SnapshotPrefix+"no/commit", tree)
			list, err := r.Snapshots(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := []Snapshot{
				{SnapshotPrefix + "rescued/run_1", root, "", when.UTC(), 2, 13},
				{SnapshotPrefix + "tidy/1", commit, on.Commit, when.UTC(), 3, 13},
				{SnapshotPrefix + "tidy/2-again", commit, on.Commit, when.UTC(), 3, 13},
			}
			if diff := cmp.Diff(want, list); diff != "" {
				t.Errorf("snapshots (-want +got):\n%s", diff)
			}
			if diff, err := r.Diff(t.Context(), r.Format.EmptyTree(), root); err != nil || !strings.Contains(string(diff), "+12345") {
				t.Errorf("diff against nothing = %q, %v", diff, err)
			}
		})
	}
}

func TestPackingLeavesEveryRefWhereItPoints(t *testing.T) {
	t.Parallel()
	dir := gittest.Repo(t, map[string]string{"a.txt": "one\n"})
	r := open(t, dir)
	commit := base(t, r).Commit
	for _, ref := range []string{"refs/pawl/snapshots/a/1", "refs/pawl/snapshots/a/2", "refs/pawl/other"} {
		if err := r.UpdateRef(t.Context(), ref, commit, ""); err != nil {
			t.Fatal(err)
		}
	}
	before := gittest.Run(t, dir, "for-each-ref")
	if err := r.PackRefs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := gittest.Run(t, dir, "for-each-ref"); after != before {
		t.Errorf("refs were\n%s\nand are\n%s", before, after)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "refs", "pawl", "snapshots", "a", "1")); !os.IsNotExist(err) {
		t.Errorf("the ref still has a file: %v", err)
	}
	if err := r.DeleteRef(t.Context(), "refs/pawl/snapshots/a/1", commit); err != nil {
		t.Errorf("a packed ref cannot be removed: %v", err)
	}
	if _, ok, err := r.Ref(t.Context(), "refs/pawl/snapshots/a/1"); ok || err != nil {
		t.Errorf("it is still there: %v, %v", ok, err)
	}
}
