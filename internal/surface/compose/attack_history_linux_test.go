package compose_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// look tries every way to the objects whose ids are in the file ids, and says
// what it could read. It is run by agents and by gates.
const look = `
while read -r id; do git cat-file -p "$id" 2>/dev/null | sed 's/^/read by id: /'; done <ids
for env in "" "GIT_DIR=ROOT/.git" "GIT_OBJECT_DIRECTORY=ROOT/.git/objects"; do
  env $env git cat-file --batch-all-objects --batch 2>/dev/null | grep -a 'canar[y] ' | sed 's/^/read from all: /'
done
files=$(find / \( -path /proc -o -path /usr \) -prune -o -type f \( -path '*/objects/*' -o -name '*.idx' \) -print 2>/dev/null)
while read -r id; do echo "$files" | grep -F -e "$(echo "$id" | cut -c3-)" | sed 's/^/its file: /'; done <ids
echo "$files" | grep 'idx$' | while read -r idx; do git show-index <"$idx" 2>/dev/null | grep -F -f ids | sed 's/^/in a pack: /'; done
git for-each-ref | grep -v refs/heads/agent | sed 's/^/a ref: /'
`

// hide puts canaries into the repository where no base reaches them, and returns
// the names of their objects.
func (v *victim) hide() (ids []string) {
	v.t.Helper()
	id := func(rev string) { v.t.Helper(); ids = append(ids, v.git("rev-parse", rev)) }
	v.write("canary.txt", "canary of a stash\n")
	v.git("stash", "-q", "-u")
	id("stash@{0}^3:canary.txt")
	id("stash@{0}")
	v.git("checkout", "-q", "-b", "gone")
	v.write("canary.txt", "canary of a deleted branch\n")
	v.git("add", "-A")
	v.git("commit", "-q", "-m", "canary commit")
	id("gone:canary.txt")
	id("gone")
	v.git("update-ref", "refs/pawl/snapshots/other/1", "gone")
	v.git("rm", "-q", "canary.txt")
	v.git("commit", "-q", "-m", "secret removed")
	v.git("branch", "elsewhere")
	v.git("checkout", "-q", "main")
	v.git("branch", "-q", "-D", "gone")
	v.write("canary.txt", "canary of the index\n")
	v.git("add", "canary.txt")
	id(":canary.txt")
	v.git("rm", "-q", "-f", "canary.txt")
	v.git("tag", "-a", "-m", "canary tag", "v1", "main~1")
	id("v1")
	return ids
}

// seen is what look found in a run, without what the agent did itself.
func (v *victim) seen(run runs.View) string { return v.said(run, "src/seen.txt") }

// historian makes a workspace with some history whose agent looks for canaries
// and uses git in the usual ways, as its gate does.
func historian(t *testing.T, keys ...string) *victim {
	t.Helper()
	script := "sh look.sh >src/seen.txt 2>&1; git log --format=%s >src/log.txt; git show HEAD~3:src/note.txt >src/show.txt; git blame -s HEAD -- src/note.txt >src/blame.txt"
	gate := `test "$(sh look.sh)" = "" && git diff --name-only HEAD~1 | grep -q src/seen.txt && git log -1 --format=%s HEAD~1 | grep -q more`
	v := caged(t, script, map[string]string{"ids": "", "look.sh": "true\n"}, append([]string{"verify", "sh gate.sh"}, keys...)...)
	v.commits(map[string]string{"look.sh": strings.ReplaceAll(look, "ROOT", v.root), "gate.sh": gate + "\n"})
	for _, text := range []string{"one\n", "one\ntwo\n", "one\ntwo\nthree\n"} {
		v.commits(map[string]string{"src/note.txt": text})
	}
	return v
}

func TestAttack039InFullGitInsideReadsWhatTheBaseReachesAndNothingElse(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.Full, sandbox.Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			t.Parallel()
			if err := sandbox.Check(t.Context(), t.TempDir(), tier); tier != sandbox.Full && err != nil {
				t.Skip("this kernel cannot keep it:", err)
			}
			v := historian(t, "sandbox", string(tier))
			ids := v.hide()
			v.commits(map[string]string{"ids": strings.Join(ids, "\n") + "\n"})
			for range 2 { // The second finds the mirror that the first made.
				run := v.runs()
				if run.Outcome == loop.OutcomeFailed {
					t.Fatalf("the gate says:\n%s", evidence(t, run))
				}
				if got := v.seen(run); got != "" {
					t.Errorf("inside one finds:\n%s", got)
				}
				for path, want := range map[string]string{"src/log.txt": strings.Repeat("more\n", 5) + "first", "src/show.txt": "one"} {
					if got := v.said(run, path); got != want {
						t.Errorf("%s = %q, want %q", path, got, want)
					}
				}
				if got := v.said(run, "src/blame.txt"); strings.Count(got, "\n") != 2 || !strings.Contains(got, v.git("rev-parse", "--short=8", "HEAD~1")[:7]) {
					t.Errorf("blame = %q", got)
				}
			}
		})
	}
}

func TestAttack039InFullAHistoryThatTheBaseHasLeftIsNotReadAnyMore(t *testing.T) {
	t.Parallel()
	v := historian(t)
	clean := v.main
	v.commits(map[string]string{"canary.txt": "canary of a commit that is forced away\n"})
	secret := v.git("rev-parse", "main:canary.txt")
	v.commits(map[string]string{"ids": secret + "\n", "gate.sh": "true\n"})
	if got := v.seen(v.runs()); !strings.Contains(got, "read by id: canary of a commit that is forced away") {
		t.Fatalf("what the base reaches is not read: %q", got)
	}
	v.git("reset", "-q", "--hard", clean)
	v.commits(map[string]string{"ids": secret + "\n"})
	run := v.runs()
	if run.Outcome == loop.OutcomeFailed {
		t.Fatalf("the gate says:\n%s", evidence(t, run))
	}
	if got := v.seen(run); got != "" {
		t.Errorf("what the base reached before is found:\n%s", got)
	}
	if old, err := filepath.Glob(filepath.Join(v.home, "mirrors", "*", v.main)); err != nil || len(old) != 1 {
		t.Errorf("the mirror of the new base is %q, %v", old, err)
	}
}

func TestWithHistoryNoneThereIsTheBaseCommitAlone(t *testing.T) {
	t.Parallel()
	v := caged(t, "git log --format=%s >src/log.txt; git diff HEAD --stat >src/diff.txt; git cat-file --batch-all-objects --batch-check | grep -c commit >src/n.txt; echo three >src/a.txt; git diff HEAD -- src/a.txt | tail -1 >src/d.txt",
		nil, "history", "none", "verify", "git show HEAD~1:src/a.txt && ! git show HEAD~2:src/a.txt")
	v.commits(map[string]string{"src/x.txt": "x"})
	v.commits(map[string]string{"src/y.txt": "y"})
	run := v.runs()
	if run.Outcome == loop.OutcomeFailed {
		t.Fatalf("the gate says:\n%s", evidence(t, run))
	}
	for path, want := range map[string]string{"src/log.txt": "more", "src/n.txt": "1", "src/d.txt": "+three"} {
		if got := v.said(run, path); got != want {
			t.Errorf("%s = %q, want %q", path, got, want)
		}
	}
}
