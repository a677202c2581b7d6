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

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/waiting"
)

// Prober looks at one machine through one environment.
type Prober struct {
	Exec    proc.Runner
	Environ []string  // NAME=VALUE; programs are looked up in its PATH
	Home    string    // the user's, with logins and shims; if empty, none are looked for
	Now     time.Time // to judge whether a login has expired; if zero, none has
}

// Program is what a word of a command means in one directory.
type Program struct {
	Word    string
	Path    string // the file, which may be a shim; empty if it was not found
	Shim    string // the manager that chooses the real program: asdf mise pyenv rustup …; or empty
	OK      bool   // it exists and, if it was asked, it answered
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

// FindProgram finds word as a shell in dir would, except that it ignores relative
// entries of PATH. A word with a slash is a file, relative to dir, and is never
// run. A toolchain is asked for its version; behind a shim it is asked in dir,
// because the shim may have no program for that directory. For any other word
// behind a shim, its manager is asked. It blocks for at most 15 seconds.
func (p Prober) FindProgram(ctx context.Context, dir, word string) Program {
	prog := p.locateWord(dir, word)
	if prog.Problem != "" {
		return prog
	}
	shim := p.shimOf(prog.Path)
	// The project may be the user's home; the shims there are not part of it.
	own := liesInside(dir, prog.Path) && (shim == nil || !shim.ownsFile(p, prog.Path))
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
		// Outside of the project it reads none of the project's configuration.
		q.dir = p.neutralDir()
	case !shim.managed || isTool && !tool.loads:
		prog.Shim, q.dir = shim.name, dir
	default:
		// The manager is asked which file the word stands for: that runs nothing
		// that might load the project, and says no version.
		prog.Shim = shim.name
		if q, ok := p.managerQuestion(&prog, dir, shim); ok {
			p.fillVersion(ctx, &prog, q)
			prog.Version = ""
		}
		return prog
	}
	p.fillVersion(ctx, &prog, q)
	return prog
}

// tool is a program that can be asked for its version.
type tool struct {
	args  []string
	loads bool // it may load code of the project in its directory even then
}

// tools are the programs that print their version and do nothing else.
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

// locateWord finds the file of a word, or sets Problem and Fix.
func (p Prober) locateWord(dir, word string) Program {
	prog := Program{Word: word}
	if strings.ContainsRune(word, '/') {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, filepath.FromSlash(word))
		}
		err := checkExecutable(path)
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
	prog.Path = p.FindInPath(word)
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

// FindInPath returns the executable file that PATH finds, or "".
func (p Prober) FindInPath(word string) string {
	for _, dir := range proc.PathDirs(proc.LookupVariable(p.Environ, "PATH")) {
		if path := filepath.Join(dir, word); word != "" && checkExecutable(path) == nil {
			return path
		}
	}
	return ""
}

// checkExecutable returns an error if path is not a program.
func checkExecutable(path string) error {
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

// liesInside reports whether path is in the project dir, and so is code of the
// project.
func liesInside(dir, path string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	rel, err := filepath.Rel(abs, path)
	return err == nil && filepath.IsLocal(rel)
}

// neutralDir returns a directory that is not a project's: the user's home, or an
// empty string if missing.
func (p Prober) neutralDir() string {
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

// fillVersion asks q and sets OK and Version, or Problem and Fix.
func (p Prober) fillVersion(ctx context.Context, prog *Program, q question) {
	out, errs, why := p.runQuestion(ctx, q)
	if why == "" {
		prog.OK = true
		prog.Version = cmp.Or(firstVersion(out), firstVersion(errs))
		return
	}
	p.explainRefusal(prog, q, errs+"\n"+out, why)
}

// explainRefusal sets Problem and Fix to why an answer does not count and what to do.
func (p Prober) explainRefusal(prog *Program, q question, said, why string) {
	prog.Problem = cmp.Or(firstLine(said), prog.Word+" "+why)
	prog.Fix = "reinstall " + prog.Word + ": its file is there and does not run"
	if q.shim != nil {
		prog.Fix = q.shim.fixFor(filepath.Base(prog.Word), said)
	}
}

// runQuestion starts a program that must not wait, write or connect. If its answer
// does not count, why is not empty.
func (p Prober) runQuestion(ctx context.Context, q question) (out, errs, why string) {
	stdout, stderr := &proc.Bounded{Limit: maxAnswer}, &proc.Bounded{Limit: maxAnswer}
	defer waiting.For(ctx, q.argv[0]+" to answer", nil)()
	res, err := p.Exec.Run(ctx, proc.Spec{
		Argv: q.argv, Dir: q.dir, Env: append(p.OfflineEnviron(), q.env...), Stdin: strings.NewReader(""),
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
