//go:build unix

package git

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAHeldRepositorySeesWhatIsWrittenAndPackedMeanwhile(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "one"})
	held, release := open(t, dir).Hold()
	first := base(t, held)
	gittest.Write(t, dir, map[string]string{"b": "two"})
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "-m", "second")
	second := base(t, held)
	gittest.Run(t, dir, "gc", "-q", "--prune=now")
	blobs, err := held.Blobs(t.Context())
	must(t, err)
	if got, err := blobs.Read(held.Format.HashBytes([]byte("two"))); err != nil || string(got) != "two" {
		t.Errorf("Read = %q, %v, want two", got, err)
	}
	must(t, blobs.Close())
	if third := base(t, held); first == second || second != third || second.Commit != gittest.Run(t, dir, "rev-parse", "HEAD") {
		t.Errorf("bases %+v, %+v and %+v", first, second, third)
	}
	gittest.Run(t, dir, "checkout", "-q", "-b", "other", first.Commit)
	if b := base(t, held); b.Branch != "other" || b.Commit != first.Commit {
		t.Errorf("base = %+v, want the branch that is checked out now", b)
	}
	release()
	if names := strings.Fields(gittest.Run(t, dir, "for-each-ref", "--format=%(refname)")); !slices.Equal(names, []string{"refs/heads/main", "refs/heads/other"}) {
		t.Errorf("refs = %v", names)
	}
}
