//go:build linux

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/surface/cli"
	"github.com/pawl-run/pawl/internal/test/drawn"
	"github.com/pawl-run/pawl/internal/test/sample"
)

const faultsFile = "testdata/faults.golden"

// place is where one fault happens: a repository with a commit, and a home of its own.
type place struct {
	t   *testing.T
	dir string
	env []string
}

// fault is something that goes wrong for a newcomer: args is the command that reports
// it.
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

// withLoop writes a definition that is ready at L2, with other values for some keys.
func withLoop(keys ...string) func(p *place) {
	return func(p *place) {
		keys := append([]string{"agent_command", better}, keys...)
		p.write("repo/.loops/tidy/loop.config.yaml", loopDefinition(keys...))
	}
}

// withProposal makes a loop with a proposal that waits for an answer.
func withProposal(keys ...string) func(p *place) {
	return func(p *place) {
		p.t.Helper()
		withLoop(keys...)(p)
		if out := p.pawl("run", "tidy"); !strings.Contains(out, "✓ proposed") {
			p.t.Fatalf("nothing was proposed:\n%s", out)
		}
	}
}

// inOrder does one thing after another.
func inOrder(steps ...func(p *place)) func(p *place) {
	return func(p *place) {
		for _, step := range steps {
			step(p)
		}
	}
}

func writeFile(name, text string) func(p *place) { return func(p *place) { p.write(name, text) } }

func runPawl(args ...string) func(p *place) {
	return func(p *place) { p.pawl(args...) }
}

func runGit(args ...string) func(p *place) { return func(p *place) { p.git(args...) } }

func setEnv(env string) func(p *place) { return func(p *place) { p.env = append(p.env, env) } }

// newcomerFaults are in the order in which a newcomer meets them.
var newcomerFaults = []fault{
	{"not in a repository", func(p *place) { requireNoError(p, os.RemoveAll(filepath.Join(p.dir, "repo/.git"))) }, []string{"run", "tidy"}},
	{"a repository without a commit", inOrder(func(p *place) { requireNoError(p, os.RemoveAll(filepath.Join(p.dir, "repo/.git"))) }, runGit("init", "-q", "-b", "main"), withLoop()), []string{"run", "tidy"}},
	{"a bare repository", inOrder(func(p *place) {
		requireNoError(p, os.RemoveAll(filepath.Join(p.dir, "repo")))
		requireNoError(p, os.Mkdir(filepath.Join(p.dir, "repo"), 0o755))
	}, runGit("init", "-q", "--bare")), []string{"run", "tidy"}},
	{"pawl's home cannot be written", inOrder(withLoop(), writeFile("file", ""), func(p *place) { p.env = append(p.env, "PAWL_HOME="+p.dir+"/file/home") }), []string{"run", "tidy"}},
	{"an unknown command", nil, []string{"rnu", "tidy"}},
	{"an unknown flag", withLoop(), []string{"run", "tidy", "--iteration", "2"}},
	{"a flag without its value", withLoop(), []string{"run", "tidy", "--agent"}},
	{"an argument is missing", withLoop(), []string{"approve"}},
	{"an invalid duration", withLoop(), []string{"recover", "prune", "--older-than", "two weeks"}},
	{"an invalid amount", withLoop(), []string{"budget", "set", "tidy", "--usd", "five"}},
	{"no loop at all", nil, []string{"run", "tidy"}},
	{"an unknown loop", withLoop(), []string{"run", "tidi"}},
	{"nothing to run is named", withLoop(), []string{"run"}},
	{"two loops of one name", inOrder(withLoop(), runPawl("run", "--until", "test -f src/b.txt", "--scope", "src/**", "--name", "tidy", "--agent-command", "echo x >src/b.txt")), []string{"run", "--until", "test -f src/c.txt", "--scope", "src/**", "--name", "tidy", "--agent-command", "true"}},
	{"a loop that exists already", withLoop(), []string{"new", "tidy", "--pattern", "ci-watch"}},
	{"an unknown pattern", nil, []string{"new", "tidy", "--pattern", "ci-wach"}},
	{"invalid YAML", inOrder(withLoop(), writeFile("repo/.loops/tidy/loop.config.yaml", "name: tidy\n goal: [unclosed\n")), []string{"run", "tidy"}},
	{"conflict markers in the definition", inOrder(withLoop(), writeFile("repo/.loops/tidy/loop.config.yaml", "name: tidy\n<<<<<<< HEAD\ntier: L1\n=======\ntier: L2\n>>>>>>> other\n")), []string{"run", "tidy"}},
	{"an unknown key", withLoop("tokens_budget", "5"), []string{"check", "tidy"}},
	{"a key that is almost one", withLoop("agnet", "claude"), []string{"check", "tidy"}},
	{"an invalid value", withLoop("tier", "L9"), []string{"run", "tidy"}},
	{"no gate", withLoop("verify", "-"), []string{"run", "tidy"}},
	{"a scope without bounds", withLoop("scope", "'**'"), []string{"run", "tidy"}},
	{"an invalid cadence", withLoop("cadence", "sometimes"), []string{"run", "tidy"}},
	{"no agent", withLoop("agent", "-", "agent_command", "-"), []string{"run", "tidy"}},
	{"an unknown agent", withLoop(), []string{"run", "tidy", "--agent", "cluade"}},
	{"the agent's program is missing", withLoop("agent", "claude", "agent_command", "-"), []string{"run", "tidy"}},
	{"the agent is not signed in", inOrder(withLoop("agent", "claude", "agent_command", "-"), writeFile("bin/claude", claude)), []string{"run", "tidy"}},
	{"an agent's own command as agent_command", inOrder(withLoop("agent_command", "claude -p 'do it'", "sandbox", "full"), writeFile("bin/claude", claude)), []string{"run", "tidy"}},
	{"the agent's command is missing", withLoop("agent_command", "no-such-agent --go"), []string{"run", "tidy"}},
	{"the model has no price", inOrder(withLoop("agent", "claude", "agent_command", "-", "model", "claude-next-99", "budget_usd_day", "1"), writeFile("bin/claude", claude), setEnv("ANTHROPIC_API_KEY=sk-false-0123456789")), []string{"run", "tidy"}},
	{"over budget", inOrder(withLoop("budget_tokens_day", "10"), runPawl("run", "tidy")), []string{"run", "tidy"}},
	{"no sandbox of that kind here", withLoop("sandbox", "seatbelt"), []string{"run", "tidy"}},
	{"paused by a file", inOrder(withLoop(), writeFile("repo/.loops/PAUSED", "")), []string{"run", "tidy"}},
	{"paused by a command", inOrder(withLoop(), runPawl("run", "tidy"), runPawl("pause", "tidy")), []string{"run", "tidy"}},
	{"the loop is running already", inOrder(withLoop("agent_command", "touch $PAWL_HOME_DIR/working; sleep 60", "env", "[PAWL_HOME_DIR]"), func(p *place) { p.background("run", "tidy") }), []string{"run", "tidy"}},
	{"a gate is missing", withLoop("verify", "no-such-runner --all"), []string{"run", "tidy"}},
	{"the set-up fails", withLoop("setup", "echo no lockfile; exit 3"), []string{"run", "tidy"}},
	{"the sense command is missing", withLoop("sense", "no-such-look"), []string{"run", "tidy"}},
	{"conflict markers in STATE.md", inOrder(withLoop(), runPawl("run", "tidy"), func(p *place) {
		p.write("repo/.loops/tidy/STATE.md", "# tidy — STATE\n<<<<<<< HEAD\n## Priority\n=======\n## Watch\n>>>>>>> other\n")
	}), []string{"run", "tidy"}},
	{"a gate is red", withLoop("verify", "echo two tests failed; false"), []string{"run", "tidy"}},
	{"the guard is red on the base", withLoop("guard", "echo lint is red; false"), []string{"run", "tidy"}},
	{"the agent fails", withLoop("agent_command", "echo I am out of memory >&2; exit 7", "max_iterations", "1"), []string{"run", "tidy"}},
	{"the agent takes too long", withLoop("agent_command", "sleep 60", "max_step_timeout", "1s", "max_iterations", "1"), []string{"run", "tidy"}},
	{"the agent changes nothing", withLoop("agent_command", "true", "max_iterations", "1"), []string{"run", "tidy"}},
	{"the agent writes outside of the scope", withLoop("agent_command", "echo x >other.txt"), []string{"run", "tidy"}},
	{"the agent changes a test", withLoop("agent_command", "echo x >src/a_test.go"), []string{"run", "tidy"}},
	{"the change holds a secret", withLoop("agent_command", "echo 'key = \"ghp_0123456789abcdefghijklmnopqrstuvwxyzAB\"' >src/a.txt"), []string{"run", "tidy"}},
	{"the agent asks for a person", withLoop("agent_command", `printf '{"outcome":"escalate","reason":"which of the two APIs?"}' >"$PAWL_REPORT"`), []string{"run", "tidy"}},
	{"an escalated goal", inOrder(withLoop("agent_command", `printf '{"outcome":"escalate","reason":"which of the two APIs?"}' >"$PAWL_REPORT"`), runPawl("run", "tidy")), []string{"run", "tidy"}},
	{"the proposal waits", withProposal(), []string{"run", "tidy"}},
	{"the proposal was rejected", inOrder(withProposal(), runPawl("reject", "tidy", "--note", "too long")), []string{"run", "tidy"}},
	{"an answer without a terminal", withProposal(), []string{"approve", "tidy"}},
	{"nothing to approve", inOrder(withLoop("tier", "L1"), runPawl("run", "tidy")), []string{"approve", "tidy", "--yes"}},
	{"approved twice", inOrder(withProposal(), runPawl("approve", "tidy", "--yes")), []string{"approve", "tidy#1", "--yes"}},
	{"an agent approves", inOrder(withProposal(), setEnv("PAWL_RUN=run_1")), []string{"approve", "tidy", "--yes"}},
	{"the checkout has changes on the same files", inOrder(withProposal(), writeFile("repo/src/a.txt", "mine\n")), []string{"approve", "tidy", "--yes"}},
	{"git's index is locked", inOrder(withProposal(), writeFile("repo/.git/index.lock", "")), []string{"approve", "tidy", "--yes"}},
	{"the base moved", inOrder(withProposal(), writeFile("repo/README.md", "moved\n"), runGit("commit", "-qam", "moved")), []string{"approve", "tidy", "--yes"}},
	{"the base changed the same lines", inOrder(withProposal(), writeFile("repo/src/a.txt", "other\n"), runGit("commit", "-qam", "moved")), []string{"approve", "tidy", "--yes"}},
	{"the branch of the proposal is gone", inOrder(withProposal(), runGit("branch", "-qD", "pawl/tidy/1")), []string{"approve", "tidy", "--yes"}},
	{"a pull request without a remote", withProposal("land_via", "pr"), []string{"approve", "tidy", "--yes"}},
	{"no such run", inOrder(withLoop(), runPawl("run", "tidy")), []string{"show", "tidy#9"}},
	{"no such approval", withLoop(), []string{"approve", "ap_none", "--yes"}},
	{"a command that passes already", nil, []string{"run", "--until", "true", "--scope", "src/**", "--agent-command", "true", "--sandbox", "none"}},
	{"a command of --until that is missing", nil, []string{"run", "--until", "no-such-test", "--scope", "src/**", "--agent-command", "true", "--sandbox", "none"}},
	{"git's configuration runs programs", inOrder(withLoop(), runPawl("run", "tidy"), runGit("config", "core.fsmonitor", "./watch.sh")), []string{"run", "tidy"}},
	{"an invalid expression of --jq", withLoop(), []string{"ls", "--jq", ".data["}},
}

func requireNoError(p *place, err error) {
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
	requireNoError(p, cmd.Start())
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

// volatile is the text that differs from one run of the test to the next.
var volatile = []struct {
	find *lazyregexp.Regexp
	put  string
}{
	{waitNotice, ""},
	{lazyregexp.New(`\b(ap|run|lp|st)_[0-9a-v]{26}`), "${1}_ID"},
	{lazyregexp.New(`\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b`), "HASH"},
	{lazyregexp.New(`(?m)^\d\d:\d\d:\d\d `), ""},
	{lazyregexp.New(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC)?`), "TIME"},
	{lazyregexp.New(`process \d+ on \S+`), "process N on HOST"},
	{lazyregexp.New(`\S+@\S+`), "somebody@HOST"},
	{lazyregexp.New(`\b\d+ tokens\b`), "N tokens"},
	{lazyregexp.New(`\b[\d.]+( ms|ms| s|s)\b`), "TIME"},
}

// newPlace makes a repository with a commit below dir, and a home of its own.
func newPlace(t *testing.T, dir string) *place {
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
	return p
}

// message is what a person reads of a fault: standard error or, if that is empty, the
// end of standard output.
func (f fault) message(t *testing.T, dir string) string {
	t.Helper()
	p := newPlace(t, dir)
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
	for _, r := range volatile {
		text = r.find.ReplaceAllString(text, r.put)
	}
	quoted := make([]string, len(f.args))
	for i, a := range f.args {
		if quoted[i] = a; strings.ContainsAny(a, " *[") {
			quoted[i] = "'" + a + "'"
		}
	}
	if status != 0 && !strings.Contains(text, "\n  fix: ") {
		t.Errorf("no fix is named:\n%s", text)
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

// TestFaultsDrawnSlowly keeps the messages of all faults that a newcomer can meet in one
// file, so that they can be read side by side. A sample takes every second from the file.
// To draw all of them takes minutes: make generate ALL=1, then read them aloud.
func TestFaultsDrawnSlowly(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(faultsFile)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(newcomerFaults))
	var mu sync.Mutex
	t.Run("each", func(t *testing.T) {
		for i, f := range newcomerFaults {
			if i%2 == 1 && !drawn.Updates() && !sample.All() {
				_, text, _ := strings.Cut(string(want), "## "+f.title+"\n")
				text, _, _ = strings.Cut(text, "\n## ")
				texts[i] = "## " + f.title + "\n" + text
				continue
			}
			t.Run(f.title, func(t *testing.T) {
				t.Parallel()
				text := f.message(t, t.TempDir())
				mu.Lock()
				defer mu.Unlock()
				texts[i] = text
			})
		}
	})
	if t.Failed() {
		return
	}
	drawn.File(t, faultsFile, strings.Join(texts, "\n"))
}

// riddles are phrases that a stranger does not understand.
var riddles = lazyregexp.New(`(?i)that (is|are) none\b|numbers? that (is|are) no\b|\b95 of 100\b|what a yes (meets|does not)|\bst(and|ands|ood) in\b|of this machine is none|\bjudging it\b|" is no (run|number|flag|agent)\b|cannot be had`)

// TestNoRiddles looks for them in everything that people read: the documents, the
// help of every command and the faults above.
func TestNoRiddles(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	dev, err := filepath.Glob("../../../docs/dev/*.md")
	if err != nil || len(dev) == 0 {
		t.Fatalf("%d pages for contributors, %v", len(dev), err)
	}
	pages = append(pages, dev...)
	for _, name := range append(pages, "../../../README.md", faultsFile) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	var help func(args ...string)
	help = func(args ...string) {
		out := helpOf(t, args)
		texts["pawl "+strings.Join(args, " ")+" --help"] = out
		for _, m := range subcommand.FindAllStringSubmatch(out, -1) {
			if len(args) < 3 && (len(args) == 0 || strings.Contains(out, "[command]")) {
				help(append(args[:len(args):len(args)], m[1])...)
			}
		}
	}
	help()
	if len(texts) < 60 {
		t.Errorf("only %d texts were read", len(texts))
	}
	for name, text := range texts {
		for part := range strings.SplitSeq(text, "\n\n") {
			part = strings.Join(strings.Fields(part), " ") // A line may end in a phrase.
			if at := riddles.FindStringIndex(part); at != nil {
				t.Errorf("%s: %q: %s", name, part[at[0]:at[1]], part[max(0, at[0]-80):min(len(part), at[1]+80)])
			}
		}
	}
}

// subcommand is a line of a help that names a command.
var subcommand = lazyregexp.New(`(?m)^  ([a-z][a-z-]+) {2,}\S`)

// helpOf is what a command says of itself. It is asked in this process: there are more
// than a hundred of them.
func helpOf(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	status := cli.Run(t.Context(), cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Args: append(args[:len(args):len(args)], "--help"), Dir: t.TempDir(), Program: "pawl",
		Width: func() int { return 80 }, Now: time.Now,
	})
	if status != 0 {
		t.Fatalf("pawl %q --help: exit status %d\n%s", args, status, errs.String())
	}
	return out.String()
}
