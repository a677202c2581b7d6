//go:build unix

package git

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestListAgreesWithPlainGitForEveryKindOfName(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			dir := gittest.Repo(t, gittest.OddlyNamed("x"), "--object-format="+format)
			r := open(t, dir)
			if string(r.Format) != format {
				t.Fatalf("format = %s, want %s", r.Format, format)
			}
			entries, err := r.List(t.Context(), base(t, r).Tree)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, fmt.Sprintf("%o blob %s\t%s", e.Mode, e.ID, e.Path))
				if id := r.Format.HashBytes([]byte("x" + e.Path)); id != e.ID || e.Size != int64(len("x"+e.Path)) {
					t.Errorf("%q: id %s size %d, want %s", e.Path, e.ID, e.Size, id)
				}
			}
			want := strings.Split(strings.TrimSuffix(gittest.Run(t, dir, "ls-tree", "-r", "-z", "HEAD"), "\x00"), "\x00")
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			sameThroughSession(t, r, entries)
		})
	}
}

func sameThroughSession(t *testing.T, r *Repo, want []object.Entry) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	for _, rev := range []string{base(t, r).Commit, base(t, r).Tree} {
		tree, got, err := blobs.Tree(rev)
		if err != nil || tree != base(t, r).Tree {
			t.Fatalf("Tree(%s) = %s, %v", rev, tree, err)
		}
		for i := range got {
			got[i].Size = want[i].Size
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

func TestATypicalRunStartsFewProcesses(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	count := &gittest.Counting{}
	ctx := t.Context()
	r, err := OpenWith(ctx, count, dir)
	must(t, err)
	b, err := r.Base(ctx, "main")
	must(t, err)
	blobs, err := r.Blobs(ctx)
	must(t, err)
	_, _, err = blobs.Tree(b.Commit)
	must(t, err)
	must(t, blobs.Close())
	c, err := r.Candidate(ctx, object.Draft{Base: b.Commit, When: when})
	must(t, err)
	must(t, r.UpdateRef(ctx, "refs/pawl/x", c.Commit, ""))
	want := []string{"update-ref"}
	if d := cmp.Diff(want, count.Verbs); d != "" {
		t.Error(d)
	}
}
