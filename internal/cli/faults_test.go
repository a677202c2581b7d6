//go:build linux

package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const faultsFile = "testdata/faults.golden"

// place is where one fault is provoked: a repository with a commit and a home of its
// own.
type place struct {
	t   *testing.T
	dir string
	env []string
}

// fault is something that goes wrong for a newcomer. The last command is the one that
// says so.
type fault struct {
	title string
	setup func(p *place)
	args  []string
}

const (
	better = `echo better >src/a.txt; printf '{"outcome":"done","summary":"made it better"}' >"$PAWL_REPORT"`
	claude = "#!/bin/sh\necho '2.1.329 (Claude Code)'\n"
)

func (p *place) write(name, text string) {
	p.t.Helper()
	name = filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) git(args ...string) {
	p.t.Helper()
	if out, _, err := p.run("git", args...); err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// run runs a program in the repository, and returns what it printed and its status.
func (p *place) run(program string, args ...string) (out string, status int, err error) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), program, args...)
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env
	text, err := cmd.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), ended.ExitCode(), err
	}
	return string(text), 0, err
}

// pawl runs a command that prepares the fault. It may fail.
func (p *place) pawl(args ...string) string {
	p.t.Helper()
	out, _, _ := p.run("pawl", args...)
	return out
}

// loop writes a definition that is ready at L2, without the keys that are "-".
func (p *place) loop(keys ...string) {
	p.t.Helper()
	at := [][2]string{
		{"name", "tidy"},
		{"pattern", "custom"},
		{"tier", "L2"},
		{"cadence", "1h"},
		{"goal", "keep things right"},
		{"scope", "src/**"},
		{"verify", "test -d src"},
		{"guard", "test -f README.md"},
		{"permission_mode", "auto"},
		{"worktree", "true"},
		{"escalation", "what is not clear"},
		{"budget_tokens", "100000"},
		{"kill_switch", ".loops/PAUSED exists"},
		{"land_via", "human"},
		{"agent", "command"},
		{"agent_command", better},
		{"sandbox", "none"},
	}
	for i := 0; i+1 < len(keys); i += 2 {
		found := false
		for n, kv := range at {
			if kv[0] == keys[i] {
				at[n][1], found = keys[i+1], true
			}
		}
		if !found {
			at = append(at, [2]string{keys[i], keys[i+1]})
		}
	}
	var b strings.Builder
	for _, kv := range at {
		if kv[1] != "-" {
			fmt.Fprintf(&b, "%s: %s\n", kv[0], kv[1])
		}
	}
	p.write("repo/.loops/"+at[0][1]+"/loop.config.yaml", b.String())
}

// with writes a loop and does nothing else.
func with(keys ...string) func(p *place) {
	return func(p *place) { p.loop(keys...) }
}

// proposed has a proposal that waits.
func proposed(keys ...string) func(p *place) {
	return func(p *place) {
		p.t.Helper()
		p.loop(keys...)
		if out := p.pawl("run", "tidy"); !strings.Contains(out, "✓ proposed") {
			p.t.Fatalf("nothing was proposed:\n%s", out)
		}
	}
}

// after does one thing after another.
func after(steps ...func(p *place)) func(p *place) {
	return func(p *place) {
		for _, step := range steps {
			step(p)
		}
	}
}

func writing(name, text string) func(p *place) { return func(p *place) { p.write(name, text) } }

func running(args ...string) func(p *place) {
	return func(p *place) { p.pawl(args...) }
}

func git(args ...string) func(p *place) { return func(p *place) { p.git(args...) } }

func setting(env string) func(p *place) { return func(p *place) { p.env = append(p.env, env) } }

// newcomers are the faults, in the order in which they are met.
var newcomers = []fault{
	{"not in a repository", func(p *place) { must(p, os.RemoveAll(filepath.Join(p.dir, "repo/.git"))) }, []string{"run", "tidy"}},
	{"a repository without a commit", after(func(p *place) { must(p, os.RemoveAll(filepath.Join(p.dir, "repo/.git"))) }, git("init", "-q", "-b", "main"), with()), []string{"run", "tidy"}},
	{"a bare repository", after(func(p *place) {
		must(p, os.RemoveAll(filepath.Join(p.dir, "repo")))
		must(p, os.Mkdir(filepath.Join(p.dir, "repo"), 0o755))
	}, git("init", "-q", "--bare")), []string{"run", "tidy"}},
	{"pawl's home cannot be written", after(with(), writing("file", ""), func(p *place) { p.env = append(p.env, "PAWL_HOME="+p.dir+"/file/home") }), []string{"run", "tidy"}},
	{"an unknown command", nil, []string{"rnu", "tidy"}},
	{"an unknown flag", with(), []string{"run", "tidy", "--iteration", "2"}},
	{"a flag without its value", with(), []string{"run", "tidy", "--agent"}},
	{"an argument is missing", with(), []string{"approve"}},
	{"an invalid duration", with(), []string{"recover", "prune", "--older-than", "two weeks"}},
	{"an invalid amount", with(), []string{"budget", "set", "tidy", "--usd", "five"}},
	{"no loop at all", nil, []string{"run", "tidy"}},
	{"an unknown loop", with(), []string{"run", "tidi"}},
	{"nothing to run is named", with(), []string{"run"}},
	{"two loops of one name", after(with(), running("run", "--until", "test -f src/b.txt", "--scope", "src/**", "--name", "tidy", "--agent-command", "echo x >src/b.txt")), []string{"run", "--until", "test -f src/c.txt", "--scope", "src/**", "--name", "tidy", "--agent-command", "true"}},
	{"a loop that exists already", with(), []string{"new", "tidy", "--pattern", "ci-watch"}},
	{"an unknown pattern", nil, []string{"new", "tidy", "--pattern", "ci-wach"}},
	{"invalid YAML", after(with(), writing("repo/.loops/tidy/loop.config.yaml", "name: tidy\n goal: [unclosed\n")), []string{"run", "tidy"}},
	{"conflict markers in the definition", after(with(), writing("repo/.loops/tidy/loop.config.yaml", "name: tidy\n<<<<<<< HEAD\ntier: L1\n=======\ntier: L2\n>>>>>>> other\n")), []string{"run", "tidy"}},
	{"an unknown key", with("tokens_budget", "5"), []string{"check", "tidy"}},
	{"a key that is almost one", with("agnet", "claude"), []string{"check", "tidy"}},
	{"an invalid value", with("tier", "L9"), []string{"run", "tidy"}},
	{"no gate", with("verify", "-"), []string{"run", "tidy"}},
	{"a scope without bounds", with("scope", "'**'"), []string{"run", "tidy"}},
	{"an invalid cadence", with("cadence", "sometimes"), []string{"run", "tidy"}},
	{"no agent", with("agent", "-", "agent_command", "-"), []string{"run", "tidy"}},
	{"an unknown agent", with(), []string{"run", "tidy", "--agent", "cluade"}},
	{"the agent's program is missing", with("agent", "claude", "agent_command", "-"), []string{"run", "tidy"}},
	{"the agent is not signed in", after(with("agent", "claude", "agent_command", "-"), writing("bin/claude", claude)), []string{"run", "tidy"}},
	{"an agent's own command as agent_command", after(with("agent_command", "claude -p 'do it'", "sandbox", "full"), writing("bin/claude", claude)), []string{"run", "tidy"}},
	{"the agent's command is missing", with("agent_command", "no-such-agent --go"), []string{"run", "tidy"}},
	{"the model has no price", after(with("agent", "claude", "agent_command", "-", "model", "claude-next-99", "budget_usd_day", "1"), writing("bin/claude", claude), setting("ANTHROPIC_API_KEY=sk-false-0123456789")), []string{"run", "tidy"}},
	{"over budget", after(with("budget_tokens_day", "10"), running("run", "tidy")), []string{"run", "tidy"}},
	{"no sandbox of that kind here", with("sandbox", "seatbelt"), []string{"run", "tidy"}},
	{"paused by a file", after(with(), writing("repo/.loops/PAUSED", "")), []string{"run", "tidy"}},
	{"paused by a command", after(with(), running("run", "tidy"), running("pause", "tidy")), []string{"run", "tidy"}},
	{"the loop is running already", after(with("agent_command", "touch $PAWL_HOME_DIR/working; sleep 60", "env", "[PAWL_HOME_DIR]"), func(p *place) { p.background("run", "tidy") }), []string{"run", "tidy"}},
	{"a gate is missing", with("verify", "no-such-runner --all"), []string{"run", "tidy"}},
	{"the set-up fails", with("setup", "echo no lockfile; exit 3"), []string{"run", "tidy"}},
	{"the sense command is missing", with("sense", "no-such-look"), []string{"run", "tidy"}},
	{"conflict markers in STATE.md", after(with(), running("run", "tidy"), func(p *place) {
		p.write("repo/.loops/tidy/STATE.md", "# tidy — STATE\n<<<<<<< HEAD\n## Priority\n=======\n## Watch\n>>>>>>> other\n")
	}), []string{"run", "tidy"}},
	{"a gate is red", with("verify", "echo two tests failed; false"), []string{"run", "tidy"}},
	{"the guard is red on the base", with("guard", "echo lint is red; false"), []string{"run", "tidy"}},
	{"the agent fails", with("agent_command", "echo I am out of memory >&2; exit 7", "max_iterations", "1"), []string{"run", "tidy"}},
	{"the agent takes too long", with("agent_command", "sleep 60", "max_step_timeout", "1s", "max_iterations", "1"), []string{"run", "tidy"}},
	{"the agent changes nothing", with("agent_command", "true", "max_iterations", "1"), []string{"run", "tidy"}},
	{"the agent writes outside of the scope", with("agent_command", "echo x >other.txt"), []string{"run", "tidy"}},
	{"the agent changes a test", with("agent_command", "echo x >src/a_test.go"), []string{"run", "tidy"}},
	{"the change holds a secret", with("agent_command", "echo 'key = \"ghp_0123456789abcdefghijklmnopqrstuvwxyzAB\"' >src/a.txt"), []string{"run", "tidy"}},
	{"the agent asks for a person", with("agent_command", `printf '{"outcome":"escalate","reason":"which of the two APIs?"}' >"$PAWL_REPORT"`), []string{"run", "tidy"}},
	{"an escalated goal", after(with("agent_command", `printf '{"outcome":"escalate","reason":"which of the two APIs?"}' >"$PAWL_REPORT"`), running("run", "tidy")), []string{"run", "tidy"}},
	{"the proposal waits", proposed(), []string{"run", "tidy"}},
	{"the proposal was rejected", after(proposed(), running("reject", "tidy", "--note", "too long")), []string{"run", "tidy"}},
	{"an answer without a terminal", proposed(), []string{"approve", "tidy"}},
	{"nothing to approve", after(with("tier", "L1"), running("run", "tidy")), []string{"approve", "tidy", "--yes"}},
	{"approved twice", after(proposed(), running("approve", "tidy", "--yes")), []string{"approve", "tidy#1", "--yes"}},
	{"an agent approves", after(proposed(), setting("PAWL_RUN=run_1")), []string{"approve", "tidy", "--yes"}},
	{"the checkout has changes on the same files", after(proposed(), writing("repo/src/a.txt", "mine\n")), []string{"approve", "tidy", "--yes"}},
	{"git's index is locked", after(proposed(), writing("repo/.git/index.lock", "")), []string{"approve", "tidy", "--yes"}},
	{"the base moved", after(proposed(), writing("repo/README.md", "moved\n"), git("commit", "-qam", "moved")), []string{"approve", "tidy", "--yes"}},
	{"the base changed the same lines", after(proposed(), writing("repo/src/a.txt", "other\n"), git("commit", "-qam", "moved")), []string{"approve", "tidy", "--yes"}},
	{"the branch of the proposal is gone", after(proposed(), git("branch", "-qD", "pawl/tidy/1")), []string{"approve", "tidy", "--yes"}},
	{"a pull request without a remote", proposed("land_via", "pr"), []string{"approve", "tidy", "--yes"}},
	{"no such run", after(with(), running("run", "tidy")), []string{"show", "tidy#9"}},
	{"no such approval", with(), []string{"approve", "ap_none", "--yes"}},
	{"a command that passes already", nil, []string{"run", "--until", "true", "--scope", "src/**", "--agent-command", "true", "--sandbox", "none"}},
	{"a command of --until that is missing", nil, []string{"run", "--until", "no-such-test", "--scope", "src/**", "--agent-command", "true", "--sandbox", "none"}},
	{"git's configuration runs programs", after(with(), running("run", "tidy"), git("config", "core.fsmonitor", "./watch.sh")), []string{"run", "tidy"}},
	{"an invalid expression of --jq", with(), []string{"ls", "--jq", ".data["}},
}

func must(p *place, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// background starts a run and waits until its agent works. It ends with the test.
func (p *place) background(args ...string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	cmd := exec.CommandContext(ctx, "pawl", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), append(p.env, "PAWL_HOME_DIR="+p.dir)
	must(p, cmd.Start())
	p.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.dir, "working")); err == nil {
			return
		}
		if time.Now().After(end) {
			p.t.Fatal("the agent does not work")
		}
	}
}

// restless is what differs from one time to the next.
var restless = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(?m)^pawl: waiting for .*\n`), ""},
	{regexp.MustCompile(`\b(ap|run|lp|st)_[0-9a-v]{26}`), "${1}_ID"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b`), "HASH"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`process \d+ on \S+`), "process N on HOST"},
	{regexp.MustCompile(`\S+@\S+`), "somebody@HOST"},
	{regexp.MustCompile(`\b\d+ tokens\b`), "N tokens"},
	{regexp.MustCompile(`\b[\d.]+( ms|ms| s|s)\b`), "TIME"},
}

// said is what a person reads of a fault: standard error, and without any the end of
// standard output.
func (f fault) said(t *testing.T, dir string) string {
	t.Helper()
	home := filepath.Join(dir, "user")
	p := &place{t: t, dir: dir, env: []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + filepath.Dir(lookPath(t, "pawl")) + ":/usr/bin:/bin", "HOME=" + home, "PAWL_HOME=" + filepath.Join(dir, "home"), "USER=somebody",
		"LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=s", "GIT_AUTHOR_EMAIL=s@example.com", "GIT_COMMITTER_NAME=s", "GIT_COMMITTER_EMAIL=s@example.com",
	}}
	p.write("user/.keep", "")
	p.write("repo/README.md", "hello\n")
	p.write("repo/.gitignore", ".loops/\n")
	p.write("repo/src/a.txt", "one\n")
	p.git("init", "-q", "-b", "main")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
	if f.setup != nil {
		f.setup(p)
	}
	cmd := exec.CommandContext(t.Context(), "pawl", f.args...)
	var out, words strings.Builder
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Join(dir, "repo"), p.env, &out, &words
	status := 0
	if err := cmd.Run(); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		status = ended.ExitCode()
	}
	text := words.String()
	if text == "" {
		text = out.String()
		if i := strings.LastIndex(text, "\n\n"); i >= 0 {
			text = text[i+2:]
		}
	}
	text = strings.ReplaceAll(text, dir, "DIR")
	for _, r := range restless {
		text = r.find.ReplaceAllString(text, r.put)
	}
	quoted := make([]string, len(f.args))
	for i, a := range f.args {
		if quoted[i] = a; strings.ContainsAny(a, " *[") {
			quoted[i] = "'" + a + "'"
		}
	}
	if status != 0 && !strings.Contains(text, "\n  fix: ") {
		t.Errorf("it says no fix:\n%s", text)
	}
	return fmt.Sprintf("## %s\n$ pawl %s\n%s[exit status %d]\n", f.title, strings.Join(quoted, " "), text, status)
}

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFaultsDrawn keeps what the faults say that a newcomer can meet in one file, so
// that each can be read beside the others.
func TestFaultsDrawn(t *testing.T) {
	t.Parallel()
	texts := make([]string, len(newcomers))
	var mu sync.Mutex
	t.Run("each", func(t *testing.T) {
		for i, f := range newcomers {
			t.Run(f.title, func(t *testing.T) {
				t.Parallel()
				text := f.said(t, t.TempDir())
				mu.Lock()
				defer mu.Unlock()
				texts[i] = text
			})
		}
	})
	if t.Failed() {
		return
	}
	drawn := strings.Join(texts, "\n")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(faultsFile, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(faultsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), drawn); diff != "" {
		t.Errorf("%s is stale; if the change is meant, read it aloud and run: go test ./internal/cli -run Drawn -update\n(-file +now)\n%s", faultsFile, diff)
	}
}

// riddles are words that a stranger does not understand, with what else begins or
// ends like them.
var riddles = regexp.MustCompile(`(?i)that (is|are) none\b|numbers? that (is|are) no\b|\b95 of 100\b|what a yes (meets|does not)|\bst(and|ands|ood) in\b|of this machine is none|\bjudging it\b|" is no (run|number|flag|agent)\b|cannot be had`)

// TestNoRiddles looks for them in what people read: the documents, the help of every
// command and the faults above.
func TestNoRiddles(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, name := range append(pages, "../../README.md", faultsFile) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var help func(args ...string)
	help = func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "pawl", append(args, "--help")...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("pawl %q --help: %v", args, err)
		}
		texts["pawl "+strings.Join(args, " ")+" --help"] = string(out)
		for _, m := range subcommand.FindAllStringSubmatch(string(out), -1) {
			if len(args) < 3 && (len(args) == 0 || strings.Contains(string(out), "[command]")) {
				help(append(args[:len(args):len(args)], m[1])...)
			}
		}
	}
	help()
	if len(texts) < 60 {
		t.Errorf("only %d texts were read", len(texts))
	}
	for name, text := range texts {
		for line := range strings.Lines(text) {
			if found := riddles.FindString(line); found != "" {
				t.Errorf("%s: %q: %s", name, found, line)
			}
		}
	}
}

// subcommand is a line of a help that names a command.
var subcommand = regexp.MustCompile(`(?m)^  ([a-z][a-z-]+) {2,}\S`)
