//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachBlockOfTheStartPageWorks runs the page from its beginning to its end.
func TestEachBlockOfTheStartPageWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eux\n"
	for _, block := range strings.Split(string(page), "```sh\n")[1:] {
		commands, _, ends := strings.Cut(block, "```\n")
		if !ends {
			t.Fatal("a block of docs/start.md has no end")
		}
		script += commands
	}
	if !canConfine(t) {
		script = strings.ReplaceAll(script, "pawl run --until", "pawl run --sandbox none --until")
		script = strings.ReplaceAll(script, "pawl run keep", "pawl run --sandbox none keep")
	}
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "PAWL_HOME="+filepath.Join(dir, "pawl"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=s@example.com", "GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=s@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"✓ proposed", "✓ landed", "already passes; nothing to do", "– quiet", "exit status 15", "run log: 3 lines"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page does not show %q:\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "\nexit status 15\n"); n != 2 {
		t.Errorf("%d of 2 paused runs exit with 15", n)
	}
}
