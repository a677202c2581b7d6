//go:build mutants

package arch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachListedMutantIsCaught builds each bug as an overlay, so that the
// checkout never changes, and runs the test that is named for it. It belongs
// to `make mutants-listed`.
func TestEachListedMutantIsCaught(t *testing.T) {
	for _, m := range listedMutants {
		t.Run(m.what, func(t *testing.T) {
			if out, err := m.run(t); err != nil {
				t.Fatalf("%s fails without the bug: %v\n%s", m.test, err, out)
			}
			out, err := m.run(t, "-overlay", m.overlay(t))
			_, name, _ := strings.Cut(m.test, ".")
			// A bug that makes something wait for ever is noticed by the time limit.
			hung := strings.Contains(out, "panic: test timed out") && strings.Contains(out, "\t"+name)
			if err == nil || !strings.Contains(out, "--- FAIL: "+name) && !hung {
				t.Errorf("%s does not notice: %v\n%s", m.test, err, out)
			}
		})
	}
}

// run runs the named test and nothing else.
func (m mutant) run(t *testing.T, more ...string) (string, error) {
	t.Helper()
	pkg, name, _ := strings.Cut(m.test, ".")
	args := append([]string{"test", "-count=1", "-timeout=5m", "-run", "^" + name + "$"}, more...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./internal/"+pkg)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// overlay writes the file with the bug, and what tells the go command to take
// it for the one in the checkout.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	original, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	bug, list := filepath.Join(dir, "bug.go"), filepath.Join(dir, "overlay.json")
	body, err := json.Marshal(map[string]map[string]string{"Replace": {original: bug}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{bug: m.source(t), list: string(body)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
