// Package sixth adds a format to the program as anybody would: with a folder in
// internal/formats, and one line where formats are listed.
package sixth

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	root       = "../../.."
	listed     = "internal/surface/compose/formats.go"
	importLine = "\t\"github.com/pawl-run/pawl/internal/formats/boot\"\n"
	line       = "\t\tspine.Format(),\n"
)

// build builds the program with the checklist among its formats.
func build(t *testing.T) string {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, listed))
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(text), line, line+"\t\tchecklist.Format(),\n", 1)
	with = strings.Replace(with, importLine, importLine+"\t\"github.com/pawl-run/pawl/internal/formats/checklist\"\n", 1)
	if added := strings.Count(with, "\n") - strings.Count(string(text), "\n"); added != 2 {
		t.Fatalf("%s has no place for a line: %d lines were added", listed, added)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "formats.go")
	if err := os.WriteFile(changed, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(top, listed):                                    changed,
		filepath.Join(top, "internal/formats/checklist/checklist.go"): filepath.Join(top, "internal/test/checklist/checklist.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "pawl")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "-ldflags=-s", "-gcflags=github.com/pawl-run/pawl/...=-l -dwarf=0", "-o", program, "./cmd/pawl") // Built as for the tests, so that only what differs is compiled.
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

const list = `---
scope: ["src/**"]
agent: command
agent_command: sh agent.sh
verify: "! grep -rq unsaid src"
guard: "true"
sandbox: none
land_via: human
cadence: 1h
---
# Say what each file is for

- [x] src/a.txt
- [ ] src/b.txt
- [ ] src/c.txt
`

const agent = `file=$(grep -o 'src/[bc].txt' "$PAWL_PROMPT" | head -1)
echo "what it is for" >"$file"
printf '{"outcome":"done","summary":"%s says what it is for"}' "$file" >"$PAWL_REPORT"
`

// repository has a checklist, and commands run in it.
type repository struct {
	t            *testing.T
	program, dir string
	environ      []string
}

func (r *repository) run(name string, args ...string) (string, int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Dir, cmd.Env = r.dir, r.environ
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatalf("%s %s: %v", name, args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// pawl runs a command that has to end with this status and to print all of these.
func (r *repository) pawl(command string, exit int, want ...string) string {
	r.t.Helper()
	out, got := r.run(r.program, strings.Fields(command)...)
	missing := slices.DeleteFunc(want, func(s string) bool { return strings.Contains(out, s) })
	if got != exit || len(missing) > 0 {
		r.t.Fatalf("pawl %s: exit %d, want %d; missing %q in\n%s", command, got, exit, missing, out)
	}
	return out
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// up runs the daemon until a line contains want.
func (r *repository) up(want string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.program, "up")
	cmd.Dir, cmd.Env = r.dir, r.environ
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var said strings.Builder
	interrupt := sync.OnceFunc(func() { _ = cmd.Process.Signal(os.Interrupt) }) // A second one would not let it drain.
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), want) {
			interrupt()
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), want) {
		r.t.Errorf("pawl up: %v; %q is missing in\n%s", err, want, said.String())
	}
}

func TestASixthFormatIsAFolderAndALine(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	r := &repository{t, build(t), t.TempDir(), []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PAWL_HOME=" + filepath.Join(home, "pawl"), "TMPDIR=" + t.TempDir(),
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}}
	r.write("checklists/words.md", list)
	r.write("agent.sh", agent)
	for _, name := range []string{"src/a.txt", "src/b.txt", "src/c.txt"} {
		r.write(name, "x\n")
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "begin"}} {
		if out, exit := r.run("git", args...); exit != 0 {
			t.Fatalf("git %s: %s", args, out)
		}
	}
	r.pawl("ls", 0, "words", "never_run")
	r.pawl("check", 0, "words", "100/100", "ready")
	r.pawl("run words", 0, "proposed", "src/b.txt")
	r.pawl("show words", 0, "words", "Say what each file is for", "done          src/b.txt")
	r.pawl("why words#1", 0, "src/b.txt")
	r.pawl("approve words#1 --yes", 0, "landed")
	r.pawl("run words", 0, "proposed", "src/c.txt")
	r.pawl("run words", 0)
	r.write("checklists/soon.md", strings.NewReplacer("1h", "1m", "[ ] src/b", "[x] src/b").Replace(list))
	r.pawl("check soon", 0, "ready")
	r.up("soon#1 ✓ proposed")
	if text, err := os.ReadFile(filepath.Join(r.dir, "checklists/words.md")); err != nil || !strings.Contains(string(text), "- [x] src/b.txt\n- [x] src/c.txt\n") {
		t.Errorf("the checklist is %q, %v", text, err)
	}
}
