package compose_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// The agent negates every parsed bool, is shown what the module's own tests
// say about that, and takes it back.
const breaksAndRepairs = `if grep -q '^verify failed' "$PAWL_PROMPT"; then
  grep -q -- '--- FAIL: TestBool' "$PAWL_PROMPT" || exit 9
  sed -i.bak 's/boolValue(!v)/boolValue(v)/; s/^\/\/ BoolVar defines/\/\/ BoolVar makes/' bool.go
else
  sed -i.bak 's/boolValue(v)/boolValue(!v)/' bool.go
fi
rm -f bool.go.bak
`

func TestALoopBreaksAndRepairsARealModule(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	if err := os.Remove(filepath.Join(s.root, "README.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(s.root, os.DirFS(moduleDir(t))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.Contains(path, ".git") {
			return err
		}
		// Two thirds of the work would be to compile the other tests of the module, four times.
		if base := filepath.Base(path); strings.HasSuffix(base, "_test.go") && base != "bool_test.go" && !sample.All() {
			return os.Remove(path)
		}
		return os.Chmod(path, 0o755) // The module cache is read-only.
	})
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(
		`"src/**"`, `"*.go"`, "grep -q three src/a.txt || { echo a.txt lacks three; exit 7; }", "go test -vet=off -ldflags=-s ./...", `guard: "true"`, "guard: go vet ./...",
	).Replace(fixConfig[:strings.Index(fixConfig, "agent_command:")]) + "agent_command: sh .loops/fix/agent.sh\nsandbox: none\n"
	for name, text := range map[string]string{"loop.config.yaml": config, "agent.sh": breaksAndRepairs} {
		if err := os.WriteFile(filepath.Join(s.root, ".loops/fix", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "a real module")
	index, head := readFile(t, filepath.Join(s.root, ".git/index")), s.git("rev-parse", "HEAD")

	run := s.pawl("run").Run
	if run.Outcome != loop.OutcomeProposed || len(run.Iterations) != 2 {
		t.Fatalf("run = %s %s %q after %d iterations, want proposed after 2", run.Outcome, run.Reason, run.Detail, len(run.Iterations))
	}
	first, second := run.Iterations[0], run.Iterations[1]
	if first.Verdict != loop.VerdictFail || first.Gates[0].Exit != 1 || !strings.Contains(first.Gates[0].Evidence, "--- FAIL: TestBool") {
		t.Errorf("first iteration = %+v, want the module's tests to fail", first)
	}
	if second.Verdict != loop.VerdictPass || len(second.Gates) != 2 {
		t.Errorf("second iteration = %+v, want verify and guard to pass", second)
	}
	if files := s.git("diff", "--name-only", "main", run.Branch); files != "bool.go" {
		t.Errorf("proposed files = %q", files)
	}
	if diff := s.git("diff", "main", run.Branch); !strings.Contains(diff, "+// BoolVar makes") || strings.Contains(diff, "!v") {
		t.Errorf("proposed diff:\n%s", diff)
	}
	if readFile(t, filepath.Join(s.root, ".git/index")) != index || s.git("rev-parse", "HEAD") != head {
		t.Error("the checkout was touched")
	}
	if status := s.git("status", "--porcelain"); strings.Contains(status, ".go") {
		t.Errorf("the checkout was touched:\n%s", status)
	}
}

// moduleDir is where the module cache holds a dependency of pawl with its tests.
func moduleDir(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/spf13/pflag").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
