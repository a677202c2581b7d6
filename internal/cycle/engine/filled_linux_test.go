package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// partial gives the rig's repository a submodule and a file of git LFS, both of
// which are in the clone.
func (r *rig) partial() {
	r.t.Helper()
	lib := gittest.Repo(r.t, map[string]string{"f": "library\n", ".gitignore": "*.o\n"})
	const content = "full text\n"
	sum := sha256.Sum256([]byte(content))
	oid := hex.EncodeToString(sum[:])
	gittest.WriteFile(r.t, filepath.Join(r.root, ".git/lfs/objects", oid[:2], oid[2:4], oid), content)
	gittest.WriteFile(r.t, filepath.Join(r.root, ".gitattributes"), "*.dat filter=lfs -text\n")
	gittest.WriteFile(r.t, filepath.Join(r.root, "src/x.dat"), fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content)))
	gittest.Run(r.t, r.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "lib", lib, "src/lib")
	gittest.Run(r.t, r.root, "add", "-A")
	gittest.Run(r.t, r.root, "commit", "-qm", "what a tree only names")
}

func TestRunsHaveWhatTheirTreeOnlyNamesAndProposeNoneOfIt(t *testing.T) {
	if os.Getenv(noLayersEnv) == "" {
		t.Run("layers", filledRuns)
		withoutLayers(t, t.Name())
		return
	}
	filledRuns(t)
}

func filledRuns(t *testing.T) {
	t.Helper()
	r := newRig(t, databases["sqlite"](t))
	r.confine()
	if layerless := sandbox.WhyNoLayers(r.home) != nil; layerless != (os.Getenv(noLayersEnv) != "") {
		t.Fatalf("copies without layers: %v", layerless)
	}
	r.partial()
	run := func(name, agent string) loop.Run {
		return r.run(r.target(name, boardLike{nil, []string{"work"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, Sandbox: "full", MaxIterations: 1,
			Setup: "mkdir -p src/lib/built && cat src/lib/f >src/lib/built/out.o", AgentCommand: agent,
			Verify: `grep -q library src/lib/f && grep -q library src/lib/built/out.o && grep -q "full text" src/x.dat && test ! -e src/lib/left.o && echo left >src/lib/left.o`,
			Guard:  `test -z "$(git status --porcelain --untracked-files=no)" && echo spoiled >src/x.dat && test ! -e src/lib/left.o`,
		}), engine.Firing{})
	}

	good := run("good", `set -e
grep -q library src/lib/f && grep -q "full text" src/x.dat
test -z "$(git status --porcelain)"
touch src/x.dat src/lib/f && echo mine >src/lib/mine.o && echo two >src/a.txt`)
	if good.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %s %q\n%s", good.Outcome, good.Reason, good.Detail, r.said())
	}
	if got := gittest.Run(t, r.root, "diff", "--name-only", good.BaseCommit, good.Branch); got != "src/a.txt" {
		t.Errorf("it proposes %q", got)
	}
	if n := strings.Count(r.said(), "filled from this clone: 1 submodule and 1 file of git LFS"); n != 1 {
		t.Errorf("it was said %d times what was filled:\n%s", n, r.said())
	}
	for what, c := range map[string]struct{ agent, detail string }{
		"a file of a submodule":      {"echo two >src/lib/f", "src/lib/f: in_submodule: a run cannot propose what is in a submodule; change it in its own repository"},
		"a file of git LFS":          {"echo two >src/x.dat", "src/x.dat: lfs_content: a run cannot propose content that git LFS keeps; commit it yourself"},
		"a new file for git LFS":     {"echo two >src/new.dat", "src/new.dat: lfs_content: "},
		"the submodule as a whole":   {"rm -r src/lib", "src/lib: submodules are never changed"},
		"a file beside those of it":  {"echo two >src/lib/new", "src/lib/new: in_submodule: "},
		"a file of it that is moved": {"mv src/lib/f src/lib/g", "src/lib/f: in_submodule: "},
	} {
		bad := run("bad", "echo two >src/a.txt; "+c.agent)
		if bad.Outcome != loop.OutcomeRefused || bad.Reason != loop.ReasonScope || !strings.Contains(bad.Detail, c.detail) {
			t.Errorf("%s: run = %s %s %q", what, bad.Outcome, bad.Reason, bad.Detail)
		}
	}
	if left := left(t, r.home); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatIsNotInTheCloneEndsARunBeforeAnyTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.partial()
		if err := os.RemoveAll(filepath.Join(r.root, ".git/lfs")); err != nil {
			t.Fatal(err)
		}
		turns := filepath.Join(t.TempDir(), "turns")
		target := r.target("u", boardLike{nil, []string{"work"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "echo turn >>" + turns, Verify: "true",
		})
		run := r.run(target, engine.Firing{})
		const want = "files of the base are not in this clone: src/x.dat (git LFS); fetch them in the checkout: git lfs pull"
		if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonUnfilled || run.Detail != want {
			t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
		}
		if got := read(t, turns); got != "" || run.Usage.Output != 0 {
			t.Errorf("an agent worked: %q, %+v", got, run.Usage)
		}
		if left := left(t, r.home); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
