package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// noLayersEnv tells the test binary that its temporary files are on a file system
// that takes no layers.
const noLayersEnv = "PAWL_TEST_NO_LAYERS"

// The root of most containers is an overlay, and the kernel mounts no overlay whose
// upper directory is on another one. This process mounts such an overlay, on a tmpfs,
// in a mount namespace of its own. A host that cannot do that fails the test, as one
// without a sandbox does.
func TestTheSelfTestHoldsWhereTheKernelTakesNoLayers(t *testing.T) {
	if os.Getenv(noLayersEnv) == "" {
		dir := t.TempDir()
		open755(t, dir)
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		argv := []string{"unshare", "--mount"}
		if os.Geteuid() != 0 {
			argv = []string{"unshare", "--user", "--map-current-user", "--keep-caps", "--mount"}
		}
		argv = append(argv, "sh", "-ec", `cd "$1"
mkdir base files
mount -t tmpfs none base
mkdir base/lower base/upper base/work
mount -t overlay none -o lowerdir=base/lower,upperdir=base/upper,workdir=base/work files
export `+noLayersEnv+`=yes TMPDIR="$1/files"
exec "$2" -test.v -test.run "$3"`, "sh", dir, exe, "^"+t.Name()+"$")
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	home := t.TempDir()
	open755(t, home)
	r, err := Test(t.Context(), Full, home)
	if err != nil {
		t.Fatal(err)
	}
	if r.NoLayers == nil || !strings.Contains(r.NoLayers.Why, home+" takes no layers") {
		t.Errorf("it says %+v, want that %s takes no layers", r.NoLayers, home)
	}
	for _, row := range r.Failed() {
		t.Errorf("%s: %s, want %s (%s)", row.Action, row.Got, row.Want, row.Detail)
	}
	if WhyNoLayers(home) != nil {
		t.Error("a host is without layers that nobody has checked")
	}
	knownLayerless.Clear()
	if err := Check(t.Context(), home, Full); err != nil || WhyNoLayers(home) == nil {
		t.Errorf("Check = %v, then WhyNoLayers = %v", err, WhyNoLayers(home))
	}
	knownLayerless.Clear() // As in the next process.
	if WhyNoLayers(home) == nil {
		t.Error("a later process takes layers to be possible")
	}
}

func TestAHostWithLayersIsFoundToHaveThem(t *testing.T) {
	home := t.TempDir()
	open755(t, home)
	RefuseLayers(home)
	if WhyNoLayers(home) == nil {
		t.Error("layers were refused and are not")
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(home, "sandbox.json")), Check(t.Context(), home, Full)); err != nil || WhyNoLayers(home) != nil {
		t.Errorf("Check = %v, then WhyNoLayers = %+v", err, WhyNoLayers(home))
	}
}

// In a tree that is a plain directory nothing protected can be written, moved or
// replaced, by its own name or by that of a folder above it.
func TestAProtectedFileOfAPlainTreeStaysWhereItIs(t *testing.T) {
	b := newCell(t)
	b.Layers, b.Dir = nil, t.TempDir()
	open755(t, b.Dir)
	for _, dir := range []string{"ci", "ci/gates", "src"} {
		if err := os.Mkdir(filepath.Join(b.Dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(b.Dir, "ci/gates/judge"), "true\n")
	writeFile(t, filepath.Join(b.Dir, "src/a"), "one\n")
	for _, path := range []string{".", "ci", "ci/gates", "ci/gates/judge", "src", "src/a"} {
		giveToProgram(t, filepath.Join(b.Dir, path))
	}
	b.Protect = []string{filepath.Join(b.Tree, "ci/gates/judge"), filepath.Join(b.Tree, "not/there")}
	out, _ := runScript(t, b, `for try in "echo false > ci/gates/judge" "rm ci/gates/judge" "mv ci/gates/judge x" "mv ci/gates y" "mv ci z" "mv src/a ci/gates/judge" "ln -f src/a ci/gates/judge"; do
	(eval "$try") 2>/dev/null && echo "worked: $try"
done
echo two > src/a; echo beside > ci/gates/new; cat ci/gates/judge`)
	if out != "true" {
		t.Errorf("inside: %q", out)
	}
	for name, want := range map[string]string{"ci/gates/judge": "true\n", "src/a": "two\n", "ci/gates/new": "beside\n"} {
		if got, err := os.ReadFile(filepath.Join(b.Dir, name)); string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
}
