// Package program is the one way in which pawl starts git: each command is a
// bounded process with an environment made from nothing, in which no hook,
// filter, file-system monitor, pager or signing program starts.
//
// It knows no verb, parses no answer and never uses a shell.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// MaxOutput is how much a command may print in bytes where all of it is held in
// memory.
const MaxOutput = 256 << 20

const (
	timeout   = 2 * time.Minute // of one command, unless its Git says another
	maxStderr = 8 << 10
)

// The identity of every commit that pawl writes.
const (
	AuthorName  = "pawl"
	AuthorEmail = "pawl@localhost"
)

// overrides stand before every verb, where no configuration can undo them.
var overrides = []string{
	"--no-pager",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.attributesFile=/dev/null",
	"-c", "core.quotePath=true",
	"-c", "core.filesRefLockTimeout=2000",
	"-c", "core.packedRefsTimeout=5000",
	"-c", "safe.bareRepository=explicit",
	"-c", "protocol.allow=never",
	"-c", "submodule.recurse=false",
	"-c", "commit.gpgsign=false",
	"-c", "i18n.commitEncoding=UTF-8",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
}

// Git is git as it is started in one place. It is a value: With and Without
// return another one.
type Git struct {
	Run proc.Runner
	Dir string   // in which it is started
	Env []string // all of its environment

	Timeout time.Duration // of one command; zero: two minutes
}

// New returns git for the repository in gitDir. workTree is usually the git
// directory itself: no verb needs a checkout, and there git finds no
// .gitattributes that came with the content. It may be empty.
func New(run proc.Runner, gitDir, commonDir, workTree string) Git {
	return Git{Run: run, Dir: gitDir, Env: environ(gitDir, commonDir, workTree)}
}

// With adds variables to the environment.
func (g Git) With(env ...string) Git {
	g.Env = slices.Concat(g.Env, env)
	return g
}

// Without takes variables out of the environment.
func (g Git) Without(names ...string) Git {
	g.Env = slices.DeleteFunc(slices.Clone(g.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
	return g
}

// environ is the whole environment of a command. The index is a path at which
// nothing ever exists.
func environ(gitDir, commonDir, workTree string) []string {
	env := []string{
		"GIT_DIR=" + gitDir,
		"PATH=" + searchPath(),
		"GIT_INDEX_FILE=" + filepath.Join(gitDir, "pawl-no-index"),
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		// A partial clone would fetch a missing object, and protocol.allow is
		// only a default that repository configuration can refine.
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_AUTHOR_NAME=" + AuthorName, "GIT_AUTHOR_EMAIL=" + AuthorEmail,
		"GIT_COMMITTER_NAME=" + AuthorName, "GIT_COMMITTER_EMAIL=" + AuthorEmail,
		"LC_ALL=C", "TZ=UTC",
	}
	// Where it is set, git ignores core.bare.
	if commonDir != gitDir {
		env = append(env, "GIT_COMMON_DIR="+commonDir)
	}
	if workTree != "" {
		env = append(env, "GIT_WORK_TREE="+workTree)
	}
	if runtime.GOOS == "windows" {
		env = append(env, "SystemRoot="+os.Getenv("SystemRoot"))
	}
	return env
}

// searchPath is pawl's own PATH without entries that depend on a directory.
func searchPath() string {
	return strings.Join(proc.PathDirs(os.Getenv("PATH")), string(filepath.ListSeparator))
}

// Output runs one command and returns what it printed. One that ends with
// another status than 0 is an *Error.
func (g Git) Output(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	out := &Bounded{Limit: MaxOutput}
	if err := g.Pipe(ctx, stdin, out, args...); err != nil {
		return nil, err
	}
	if out.Cut {
		return nil, fmt.Errorf("git %s printed more than %d bytes", args[0], MaxOutput)
	}
	return out.Bytes(), nil
}

// Pipe runs one command that prints to out.
func (g Git) Pipe(ctx context.Context, stdin io.Reader, out io.Writer, args ...string) error {
	stderr := &Bounded{Limit: maxStderr}
	defer waiting.For(ctx, "git "+args[0]+" in "+g.Dir, nil)()
	res, err := g.Run.Run(ctx, proc.Spec{
		Argv:    append(append([]string{"git"}, overrides...), args...),
		Dir:     g.Dir,
		Env:     g.Env,
		Stdin:   stdin,
		Stdout:  out,
		Stderr:  stderr,
		Timeout: cmp.Or(g.Timeout, timeout),
		Grace:   time.Second,
	})
	return g.ending(ctx, args[0], res, err, stderr.String())
}

// unlessGone returns err, or the fault of a repository that was there and is not
// any more: git cannot be started in it then, or says that it is not a repository.
func (g Git) unlessGone(err error) error {
	if _, statErr := os.Stat(g.Dir); g.Dir == "" || !errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	what := "the git directory " + g.Dir + " is gone"
	if top, name := filepath.Split(g.Dir); name == ".git" {
		if _, statErr := os.Stat(top); errors.Is(statErr, fs.ErrNotExist) {
			what = "the checkout at " + filepath.Clean(top) + " is gone"
		}
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: what, Why: "it was deleted or moved, or its disk is not mounted now", Err: err,
		Fix: "put it back where it was and run {1} in it; {1} in any repository says what is kept of its runs", Actions: []loop.Command{loop.PawlCommand("recover")},
	}
}

// ending turns the end of a process into an error, or nil.
func (g Git) ending(ctx context.Context, verb string, res proc.Result, err error, stderr string) error {
	err = failure(ctx, verb, res, err, stderr)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return g.unlessGone(err)
}

func failure(ctx context.Context, verb string, res proc.Result, err error, stderr string) error {
	switch {
	case err != nil && ctx.Err() == nil:
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "git cannot be started", Why: err.Error(),
			Fix: "install git 2.39 or newer, and see that it is on PATH", Err: err,
		}
	case err != nil:
		return fmt.Errorf("git %s: %w", verb, err)
	case res.Ended == proc.Canceled:
		return fmt.Errorf("git %s: %w", verb, context.Cause(ctx))
	case res.Ended != proc.Exited || res.Exit != 0:
		return &Error{Verb: verb, Exit: res.Exit, Ended: res.Ended, Stderr: stderr}
	}
	return nil
}

// Error is a git command that ran and did not end with status 0.
type Error struct {
	Verb   string
	Exit   int
	Ended  proc.Ended
	Stderr string // its beginning
}

func (e *Error) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(e.Stderr), "\n")
	if line == "" || e.Ended != proc.Exited {
		return fmt.Sprintf("git %s ended with status %d (%s)", e.Verb, e.Exit, e.Ended)
	}
	return fmt.Sprintf("git %s: %s", e.Verb, line)
}

// Bounded is the writer for what a git command prints.
type Bounded = proc.Bounded

// Status is the status of a git command that ended by itself, else 0.
func Status(err error) int {
	if c, ok := errors.AsType[*Error](err); ok && c.Ended == proc.Exited {
		return c.Exit
	}
	return 0
}
