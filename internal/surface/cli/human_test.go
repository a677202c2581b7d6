//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/cli"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// workspace is a repository with loops, and a home beside it.
type workspace struct {
	t          *testing.T
	root, home string
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	w := &workspace{t: t, root: t.TempDir(), home: t.TempDir()}
	w.write("src/a.txt", "one\n")
	w.write("README.md", "")
	w.write(".gitignore", ".loops/\n")
	w.git("init", "-q", "-b", "main")
	w.git("add", "-A")
	w.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first")
	return w
}

func (w *workspace) write(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) git(args ...string) string {
	w.t.Helper()
	return gittest.Run(w.t, w.root, args...)
}

// loop defines a loop whose agent is a line for the shell.
func (w *workspace) loop(name, agent string) {
	w.t.Helper()
	w.write(".loops/"+name+"/loop.config.yaml", loopDefinition("name", name, "agent_command", "'"+strings.ReplaceAll(agent, "'", "''")+"'"))
}

// pawl runs one command there, with more variables, and returns its exit status
// and everything that it printed.
func (w *workspace) pawl(vars []string, args ...string) (int, string) {
	w.t.Helper()
	var out bytes.Buffer
	env := outsideEnv(w.home, args)
	env.Dir, env.Out, env.Err = w.root, &out, &out
	env.Environ = append(append(env.Environ, "PATH="+os.Getenv("PATH"), "USER=somebody"), vars...)
	return cli.Run(context.WithoutCancel(w.t.Context()), env), out.String()
}

func TestAttack113AnAgentAnswersNothing(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t)
	w.loop("fix", "echo two >src/a.txt")
	if status, out := w.pawl(nil, "run", "fix"); status != loop.ExitOK {
		t.Fatalf("run fix = %d\n%s", status, out)
	}
	tip, answers := w.git("rev-parse", "main"), filepath.Join(t.TempDir(), "answers")
	var line strings.Builder
	for _, verb := range []string{"approve", "reject", "land"} {
		fmt.Fprintf(&line, `"%s" --home "%s/pawl" --workspace "%s" %s fix --by Ada >>"%s" 2>&1; echo "%s=$?" >>"%s"; `, binary, w.home, w.root, verb, answers, verb, answers)
	}
	w.loop("rogue", line.String()+"echo three >src/b.txt")
	if status, out := w.pawl(nil, "run", "rogue"); status != loop.ExitOK {
		t.Fatalf("run rogue = %d\n%s", status, out)
	}
	got, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"approve=14\n", "reject=14\n", "land=14\n", "an agent cannot answer"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the agent got %q, want %q in it", got, want)
		}
	}
	if now := w.git("rev-parse", "main"); now != tip {
		t.Errorf("main moved from %s to %s", tip, now)
	}
	if _, out := w.pawl(nil, "approvals", "fix#1", "--jq", ".state"); out != "open\n" {
		t.Errorf("the approval is %q, want open", out)
	}
	// Whatever is a part of a run is refused, also in another repository.
	status, out := w.pawl([]string{"PAWL_RUN=run_elsewhere"}, "approve", "fix")
	if status != loop.ExitRefused || !strings.Contains(out, "run_elsewhere") {
		t.Errorf("approve = %d, %q", status, out)
	}
	if status, out := w.pawl(nil, "approve", "fix"); status != loop.ExitUsage || w.git("rev-parse", "main") != tip {
		t.Errorf("approve without a terminal and --yes = %d\n%s", status, out)
	}
	if status, out := w.pawl(nil, "approve", "fix", "--yes"); status != loop.ExitOK || w.git("rev-parse", "main") == tip {
		t.Errorf("a person's approve = %d, and main is %s\n%s", status, w.git("rev-parse", "main"), out)
	}
}
