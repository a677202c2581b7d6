//go:build unix

package workspace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// spelled are paths of which many are one path for some file system.
var spelled = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "A", "a.", "ａ", "ss", "ß", "é", "e\u0301", "b"}), 1, 3), func(parts []string) string { return strings.Join(parts, "/") })

func TestTheSameIsRefusedAsWithAllPathsOfTheBase(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			_, repo, _ := newRepo(t, map[string]string{"1": "1", "2": "2"}, "--object-format="+format)
			scope, err := policy.NewScope([]string{"a/**", "A/**", "b", "é/**"}, nil)
			must(t, err)
			refused := 0
			sample.SameChecks(t, 30) // The draws must contain a collision.
			rapid.Check(t, func(rt *rapid.T) {
				from := spelledTree(t, rt, repo, "from", "")
				to := spelledTree(t, rt, repo, "to", from)
				c, err := Compare(t.Context(), repo, from, to)
				must(rt, err)
				entries, err := repo.List(t.Context(), from)
				must(rt, err)
				var all []string
				for _, e := range entries {
					all = append(all, e.Path)
				}
				got, want := scope.Check(c.Changes, c.Beside, policy.Limits{}), scope.Check(c.Changes, all, policy.Limits{})
				if d := cmp.Diff(want, got); d != "" {
					rt.Fatalf("base %q, beside %q, changes %+v\n%s", all, c.Beside, c.Changes, d)
				}
				for _, v := range got {
					if v.Code == policy.CodeCaseCollision {
						refused++
					}
				}
				wantSameClasses(rt, c, len(all))
			})
			if refused == 0 {
				t.Error("no drawn change collided with anything")
			}
		})
	}
}

// wantSameClasses fails if counting all files of the base changes the classes.
func wantSameClasses(rt *rapid.T, c Comparison, files int) {
	rt.Helper()
	set := policy.ChangeSet{Changes: c.Changes, Files: files, Action: policy.ActionOpenPR, Branch: "pawl/x", Main: "main", Green: true}
	want := policy.Classify(set)
	set.Files = c.Files
	if d := cmp.Diff(want, policy.Classify(set)); d != "" {
		rt.Fatalf("%d files counted of %d: %s", c.Files, files, d)
	}
}

// spelledTree writes a tree of drawn files.
func spelledTree(t *testing.T, rt *rapid.T, repo *git.Repo, label, from string) string {
	t.Helper()
	var list []object.FileChange
	for _, p := range rapid.SliceOfN(spelled, 0, 8).Draw(rt, label) {
		list = append(list, object.FileChange{
			Path: p, Mode: object.ModeFile, ID: repo.Format.HashBytes([]byte(rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "content"))),
			Delete: rapid.Bool().Draw(rt, "delete"),
		})
	}
	c, err := repo.Candidate(t.Context(), object.Draft{Tree: from, Changes: list, When: when})
	must(rt, err)
	return c.Tree
}
