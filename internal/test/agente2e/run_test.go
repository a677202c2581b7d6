//go:build agents && linux

package agente2e_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// key is what the runtime has for a key. Programs in a sandbox must not have it.
const key = "sk-canary-7Q2vN8xLr4TzW1mB6cY9dE3f"

// pawl is the binary that runs are made with, agents the folder of the programs.
var pawl, agents string

func TestMain(m *testing.M) {
	if agents = os.Getenv("PAWL_TEST_AGENTS"); agents == "" {
		fmt.Fprintln(os.Stderr, "PAWL_TEST_AGENTS names no folder of agent programs: run make test-agents")
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "pawl-agente2e")
	if err != nil {
		panic(err)
	}
	pawl = filepath.Join(dir, "pawl")
	if out, err := exec.Command("go", "build", "-o", pawl, "../../../cmd/pawl").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pawl: %v\n%s", err, out)
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // They mostly wait: for a limit, and before they try again.
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// fixture is a repository with one loop, a home of pawl's and of its user, a
// scripted model, and a listener that nobody may reach.
type fixture struct {
	t          *testing.T
	root, home string
	model      *fakemodel.Server
	url        string // of the model
	decoy      string // address that no program may reach
	knocks     atomic.Int64

	between func(http.Handler) http.Handler // stands between the model and whoever asks; nil: nothing
}

// newFixture makes one for an agent. The keys come after those that all have.
func newFixture(t *testing.T, s subject, script func(*fixture) fakemodel.Script, keys ...string) *fixture {
	t.Helper()
	v := &fixture{t: t, root: t.TempDir(), home: t.TempDir()}
	v.listen()
	v.model = fakemodel.New(script(v))
	answers := http.Handler(v.model)
	if v.between != nil {
		answers = v.between(answers)
	}
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	v.url = server.URL
	v.write("src/readme.txt", "an answer is wanted\n")
	v.write("check.sh", "#!/bin/sh\n# The gate.\nread -r value < src/answer.txt\n[ \"$value\" = two ] || { echo \"value is $value, want two\"; exit 1; }\n")
	v.write("other.txt", "not in scope\n")
	v.write("look.sh", look)
	v.write("decoy", v.decoy+"\n")
	lines := append([]string{
		"name: fix", "pattern: custom", "tier: L2", "cadence: 1h", "goal: Make check.sh pass.", `scope: ["src/**"]`, "verify: sh check.sh",
		"guard: test -e other.txt", "permission_mode: dontAsk", "worktree: true", "escalation: anything else", "budget_tokens: 200000",
		"kill_switch: .loops/PAUSED or .loops/fix/PAUSED exists", "land_via: human", "sandbox: full", "max_iterations: 1", "setup: none",
		"agent: " + s.agent, "model: " + s.model, "base_url: " + v.url + s.base,
	}, append(s.keys, keys...)...)
	v.write(".loops/fix/loop.config.yaml", strings.Join(lines, "\n")+"\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "begin"}} {
		v.git(args...)
	}
	return v
}

// listen opens what stands for every other host.
func (v *fixture) listen() {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	v.decoy = l.Addr().String()
	v.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			v.knocks.Add(1)
			conn.Close()
		}
	}()
}

func (v *fixture) write(name, text string) {
	v.t.Helper()
	v.put(v.root, name, text)
}

// put writes a file below a folder.
func (v *fixture) put(dir, name, text string) {
	v.t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		v.t.Fatal(err)
	}
}

func (v *fixture) git(args ...string) string {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	cmd.Dir = v.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// environ is that of a user who has a key, a PATH with the programs, and nothing
// of whoever runs the tests.
func (v *fixture) environ() []string {
	env := []string{
		"PATH=" + agents + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + v.home, "PAWL_HOME=" + filepath.Join(v.home, ".pawl"),
		"LANG=C.UTF-8", "NO_COLOR=1",
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"} {
		env = append(env, name+"="+key)
	}
	return env
}

// command is the binary in the repository.
func (v *fixture) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(v.t.Context(), pawl, args...)
	cmd.Dir, cmd.Env = v.root, v.environ()
	return cmd
}

// pawl runs the binary in the repository and returns what it printed and its exit
// status.
func (v *fixture) pawl(args ...string) (out, errOut string, exit int) {
	v.t.Helper()
	cmd := v.command(args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if bad, ok := errors.AsType[*exec.ExitError](err); ok {
		return stdout.String(), stderr.String(), bad.ExitCode()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), 0
}

// run is one run of the loop.
func (v *fixture) run() (runs.View, int) {
	v.t.Helper()
	out, errOut, exit := v.pawl("run", "fix", "--json")
	var view runs.View
	if err := json.Unmarshal([]byte(out), &view); err != nil {
		v.t.Fatalf("pawl run: exit status %d, %v\n%s\n%s", exit, err, out, errOut)
	}
	return view, exit
}

// logs is what happened in the newest run, for a test that failed.
func (v *fixture) logs() string {
	out, _, _ := v.pawl("logs", "fix")
	return out
}
