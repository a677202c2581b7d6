//go:build agents && linux

package agente2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What pawl mcp install writes is what each program reads.
func TestEachAgentKnowsPawlAfterMCPInstall(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string][]string{
		"claude": {"mcp", "get", "pawl"}, "codex": {"mcp", "get", "pawl"}, "gemini": {"mcp", "list"}, "opencode": {"mcp", "list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			environ := append(os.Environ(), "HOME="+home, "PATH="+agents+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "CODEX_HOME=", "CLAUDE_CONFIG_DIR=")
			run := func(program string, args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, program, args...)
				cmd.Dir, cmd.Env = home, environ
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			if out := run(pawl, "mcp", "install", name, "--yes"); !strings.Contains(out, "knows pawl") {
				t.Errorf("pawl says: %s", out)
			}
			if out := run(filepath.Join(agents, name), ask...); !strings.Contains(out, "pawl") || !strings.Contains(out, pawl) {
				t.Errorf("%s says: %s", name, out)
			}
			if out := run(pawl, "mcp", "install", name, "--yes"); !strings.Contains(out, "already") {
				t.Errorf("the second time, after %s has written to its files, pawl says: %s", name, out)
			}
		})
	}
}
