package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/waiting"
)

// Prober looks at one machine through one environment.
type Prober struct {
	Exec    proc.Runner
	Environ []string  // NAME=VALUE; programs are looked up in its PATH
	Home    string    // of the user, where logins and shims lie; empty: none are looked for
	Now     time.Time // to judge whether a login has expired; zero: it is not judged
}

// Program is what a word of a command stands for in one directory.
type Program struct {
	Word    string
	Path    string // the file, which may be a shim; empty if there is none
	Shim    string // the manager that chooses the real program: asdf mise pyenv rustup …; or empty
	OK      bool   // it is there and, as far as could be asked, answers
	Version string // or empty: not every program is asked
	Problem string // why it is not OK
	Fix     string // a command, or a sentence
}

// Limits of one question for a version.
const (
	askTools  = 15 * time.Second
	askAgents = 30 * time.Second // some start for six seconds on an idle machine
	maxAnswer = 64 << 10
)

// Program finds word as a shell would that stands in dir, except that relative
// entries of PATH do not count. A word with a slash is a file, relative to dir,
// and is never run. A toolchain is asked for its version; so is one behind a
// shim, in dir, because a shim may have nothing to stand for there. Of any other
// word behind a shim its manager is asked. It blocks for at most 15 seconds.
func (p Prober) Program(ctx context.Context, dir, word string) Program {
	prog := p.locate(dir, word)
	if prog.Problem != "" {
		return prog
	}
	shim := p.shim(prog.Path)
	// The home of a user may be the project; the shims in it are no part of that.
	own := inside(dir, prog.Path) && (shim == nil || !shim.owns(p, prog.Path))
	if strings.ContainsRune(word, '/') || own {
		prog.OK = true
		return prog
	}
	tool, isTool := tools[word]
	q := question{argv: append([]string{prog.Path}, tool.args...), limit: askTools, shim: shim}
	switch {
	case shim == nil && !isTool:
		prog.OK = true
		return prog
	case shim == nil:
		// Outside of the project nothing of its own configuration is read.
		q.dir = p.neutral()
	case !shim.managed || isTool && !tool.loads:
		prog.Shim, q.dir = shim.name, dir
	default:
		// The manager is asked which file the word stands for: that runs nothing
		// that might load the project, and says no version.
		prog.Shim = shim.name
		if q, ok := p.managerQuestion(&prog, dir, shim); ok {
			p.ask(ctx, &prog, q)
			prog.Version = ""
		}
		return prog
	}
	p.ask(ctx, &prog, q)
	return prog
}

// tool is a program that can be asked for its version.
type tool struct {
	args  []string
	loads bool // even then it may load code of the project in which it stands
}

// tools are programs that answer and do nothing else.
var tools = toolWords()

func toolWords() map[string]tool {
	words := map[string]tool{}
	for word := range strings.FieldsSeq(`node npm npx bun bunx deno corepack python python3 pip pip3 uv ruff
		cargo rustc rustup golangci-lint dotnet swift cmake ctest ruby gem php elixir just task make git`) {
		words[word] = tool{args: []string{"--version"}}
	}
	for word := range strings.FieldsSeq("pnpm yarn tsc poetry pdm pipenv mypy pyright pytest tox nox gradle mvn bundle composer mix") {
		words[word] = tool{args: []string{"--version"}, loads: true}
	}
	for word, arg := range map[string]string{"go": "version", "java": "-version", "javac": "-version"} {
		words[word] = tool{args: []string{arg}}
	}
	return words
}

// locate finds the file of a word.
func (p Prober) locate(dir, word string) Program {
	prog := Program{Word: word}
	if strings.ContainsRune(word, '/') {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, filepath.FromSlash(word))
		}
		err := executable(path)
		switch {
		case err == nil:
			prog.Path = path
		case errors.Is(err, os.ErrPermission):
			prog.Problem, prog.Fix = word+" is not executable", "chmod +x "+Quoted(word)
		default:
			prog.Problem, prog.Fix = word+" is not there", "create it, or name another command"
		}
		return prog
	}
	prog.Path = p.search(word)
	if prog.Path == "" {
		prog.Problem = word + " is not in PATH"
		prog.Fix = "install " + word + ", or put its directory into PATH"
		isNode := word == "node" || word == "npm" || word == "npx"
		if isNode && p.Home != "" && isThere(filepath.Join(p.Home, ".nvm", "nvm.sh")) {
			prog.Fix = "nvm install, and start pawl from that shell: nvm works through the PATH of the shell that loaded it"
		}
	}
	return prog
}

func (p Prober) search(word string) string {
	for _, dir := range proc.PathDirs(proc.Variable(p.Environ, "PATH")) {
		if path := filepath.Join(dir, word); word != "" && executable(path) == nil {
			return path
		}
	}
	return ""
}

// executable says why a path is not a program.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: %w", path, os.ErrNotExist)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return os.ErrPermission
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// inside reports whether path lies in the project: what does is its own code.
func inside(dir, path string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	rel, err := filepath.Rel(abs, path)
	return err == nil && filepath.IsLocal(rel)
}

// neutral is a directory without a project, as far as there is one.
func (p Prober) neutral() string {
	if info, err := os.Stat(p.Home); err == nil && info.IsDir() {
		return p.Home
	}
	return ""
}

// question is a program that is asked for its version.
type question struct {
	dir   string
	argv  []string
	env   []string // variables beside those of the prober
	limit time.Duration
	shim  *shim
}

// ask fills in what the answer says: OK and Version, or Problem and Fix.
func (p Prober) ask(ctx context.Context, prog *Program, q question) {
	out, errs, why := p.run(ctx, q)
	if why == "" {
		prog.OK = true
		prog.Version = cmp.Or(version(out), version(errs))
		return
	}
	p.refused(prog, q, errs+"\n"+out, why)
}

// refused says in prog why an answer does not count, and what to do.
func (p Prober) refused(prog *Program, q question, said, why string) {
	prog.Problem = cmp.Or(firstLine(said), prog.Word+" "+why)
	prog.Fix = "reinstall " + prog.Word + ": its file is there and does not run"
	if q.shim != nil {
		prog.Fix = q.shim.fix(filepath.Base(prog.Word), said)
	}
}

// run starts a program that must not wait, write or connect, and says why its
// answer does not count.
func (p Prober) run(ctx context.Context, q question) (out, errs, why string) {
	stdout, stderr := &proc.Bounded{Limit: maxAnswer}, &proc.Bounded{Limit: maxAnswer}
	defer waiting.For(ctx, q.argv[0]+" to answer", nil)()
	res, err := p.Exec.Run(ctx, proc.Spec{
		Argv: q.argv, Dir: q.dir, Env: append(p.Offline(), q.env...), Stdin: strings.NewReader(""),
		Stdout: stdout, Stderr: stderr, Timeout: q.limit,
	})
	switch {
	case err != nil:
		why = "does not start: " + err.Error()
	case res.Ended == proc.TimedOut:
		why = fmt.Sprintf("did not answer within %s", q.limit)
	case res.Ended == proc.Canceled:
		why = "was not waited for"
	case res.Exit != 0:
		why = fmt.Sprintf("answers %s with exit status %d", strings.Join(q.argv[1:], " "), res.Exit)
	}
	return stdout.String(), stderr.String(), why
}
