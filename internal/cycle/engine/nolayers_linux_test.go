package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// noLayersEnv tells the test binary that its temporary files are on a file system
// that takes no layers.
const noLayersEnv = "PAWL_TEST_NO_LAYERS"

// mountNoLayers makes $1/files a directory over which the kernel mounts no overlay
// with an upper directory, because it is one itself, as in most containers. It
// belongs to the user $2, if that is not empty, and only this process and its
// children see it.
const mountNoLayers = `set -e
mkdir "$1/base" "$1/files"
mount -t tmpfs none "$1/base"
mkdir "$1/base/lower" "$1/base/upper" "$1/base/work"
if [ "$2" ]; then chown "$2:$2" "$1/base/upper"; fi
mount -t overlay none -o "lowerdir=$1/base/lower,upperdir=$1/base/upper,workdir=$1/base/work" "$1/files"
`

// withoutLayers runs the named test once more, in a process whose temporary files
// are on a file system that takes no layers: as this user and, if that is
// root, as an ordinary one too. A host that cannot make such a file system fails
// the test, as one without a sandbox does.
func withoutLayers(t *testing.T, name string) {
	t.Helper()
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	unshare, users := []string{"unshare", "--mount"}, map[string]string{"as root": "", "as an ordinary user": "2345"}
	if os.Geteuid() != 0 {
		unshare, users = []string{"unshare", "--user", "--map-current-user", "--keep-caps", "--mount"}, map[string]string{"as an ordinary user": ""}
	}
	for who, user := range users {
		t.Run(who, func(t *testing.T) {
			dir := t.TempDir()
			binary := filepath.Join(dir, "test")
			if err := errors.Join(os.WriteFile(binary, exe, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
				t.Fatal(err)
			}
			script := mountNoLayers + `export ` + noLayersEnv + `=yes TMPDIR="$1/files" HOME="$1/files" GOCOVERDIR=
if [ "$2" ]; then exec setpriv --reuid "$2" --regid "$2" --clear-groups "$1/test" -test.v -test.run "$3"; fi
exec "$1/test" -test.v -test.run "$3"`
			argv := append(unshare, "sh", "-c", script, "sh", dir, user, "^"+name+"$")
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Dir = "/"
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestFullWorksInCopiesWhereTheKernelTakesNoLayers(t *testing.T) {
	if os.Getenv(noLayersEnv) == "" {
		withoutLayers(t, t.Name())
		return
	}
	r := newRig(t, databases["sqlite"](t))
	r.confine()
	if sandbox.WhyNoLayers(r.home) == nil {
		t.Fatalf("layers can be mounted over %s, so nothing is shown here", r.home)
	}
	uid, _ := sandbox.Full.Owner()
	gittest.WriteFile(t, filepath.Join(r.root, ".gitignore"), "deps/\n")
	gittest.WriteFile(t, filepath.Join(r.root, "ci/judge"), "as it was\n")
	gittest.Run(t, r.root, "add", "-A")
	gittest.Run(t, r.root, "commit", "-q", "-m", "more")
	proposed := func(name, changed string, d loop.Definition) {
		t.Helper()
		run := r.run(r.target(name, boardLike{nil, []string{"work"}}, d), engine.Firing{})
		if run.Outcome != loop.OutcomeProposed {
			t.Fatalf("%s = %s %s %q\n%s", name, run.Outcome, run.Reason, run.Detail, r.said())
		}
		if got := strings.Fields(gittest.Run(t, r.root, "diff", "--name-only", run.BaseCommit, run.Branch)); strings.Join(got, " ") != changed {
			t.Errorf("%s proposes %q, want %q", name, got, changed)
		}
	}
	d := loop.Definition{
		Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, Protect: []string{"ci/judge"}, Sandbox: "full", MaxIterations: 1,
	}

	first := d
	first.Setup = `mkdir -p deps loose && echo dependency > deps/a && echo found > loose/x && echo mine > src/a.txt`
	first.AgentCommand = `set -e
test "$PWD" = ` + r.root + `
test "$(stat -c %u .)" = "$(id -u)"
grep -q dependency deps/a && grep -q found loose/x && grep -q one src/a.txt
! echo judged by me > ci/judge
! mv ci other
! mv ci/judge ci/other
! cat ` + r.home + `/sandbox.json
git status --short | grep -q loose
echo spoiled > deps/a
echo two > src/a.txt
id -u > src/who.txt`
	first.Verify = `grep -q two src/a.txt && grep -q dependency deps/a && grep -q found loose/x && grep -q "as it was" ci/judge && echo left > src/left.txt`
	first.Guard = `test ! -e src/left.txt`
	proposed("first", "src/a.txt src/who.txt", first)
	if got := gittest.Run(t, r.root, "show", "pawl/first/1:src/who.txt"); got != strconv.Itoa(uid) {
		t.Errorf("the agent ran as %s, want %d", got, uid)
	}

	outside := d
	outside.Setup, outside.AgentCommand, outside.Verify = "none", "echo three > src/a.txt; echo x > outside; echo y > src/left.txt", "true"
	run := r.run(r.target("outside", boardLike{nil, []string{"work"}}, outside), engine.Firing{})
	if run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonScope {
		t.Errorf("an agent that wrote outside of its scope: %s %s %q", run.Outcome, run.Reason, run.Detail)
	}

	wrong := d
	wrong.Setup, wrong.AgentCommand, wrong.Verify = "none", "echo four > src/a.txt", "grep -q five src/a.txt"
	if run := r.run(r.target("wrong", boardLike{nil, []string{"work"}}, wrong), engine.Firing{}); run.Outcome == loop.OutcomeProposed {
		t.Errorf("a gate that fails let %s through", run.Branch)
	}

	next := d
	next.Setup, next.AgentCommand, next.Verify = "none", `find . -path ./.git -prune -o -type f -print | sort > /tmp/seen; cat /tmp/seen src/a.txt > src/seen.txt`, "true"
	proposed("next", "src/seen.txt", next)
	if got := strings.Join(strings.Fields(gittest.Run(t, r.root, "show", "pawl/next/1:src/seen.txt")), " "); got != "./.gitignore ./README.md ./ci/judge ./src/a.txt one" {
		t.Errorf("the next run sees %s", got)
	}

	if !strings.Contains(r.said(), "copy: a complete one instead of layers") {
		t.Errorf("nothing says what the copy is made of:\n%s", r.said())
	}
	if parked := unreachable(t, r.home); parked == 0 {
		t.Error("no copy waits for the next run")
	}
}

// unreachable checks that no other user of the host finds a way to copies, and
// counts those that wait.
func unreachable(t *testing.T, home string) (parked int) {
	t.Helper()
	for _, name := range []string{"trees", "layers"} {
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s of pawl's home is open to others: %v, %v", name, info, err)
		}
	}
	err := filepath.WalkDir(filepath.Join(home, "layers"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "marks" {
			parked++
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return parked
}
