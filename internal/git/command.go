package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

const (
	timeout   = 2 * time.Minute // of one command
	maxOutput = 256 << 20       // bytes of a listing or a blob held in memory
	maxStderr = 8 << 10
)

// Runner starts one process and waits for it. proc.Plain is one.
type Runner interface {
	Run(ctx context.Context, spec proc.Spec) (proc.Result, error)
}

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

// environ is the whole environment of a command. workTree is the git directory
// itself: no verb needs a checkout, and there git finds no .gitattributes that
// came with the content. The index is a path at which nothing ever exists.
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
		"GIT_AUTHOR_NAME=" + authorName, "GIT_AUTHOR_EMAIL=" + authorEmail,
		"GIT_COMMITTER_NAME=" + authorName, "GIT_COMMITTER_EMAIL=" + authorEmail,
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

// git runs one command and returns what it printed.
func (r *Repo) git(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	out := &bounded{limit: maxOutput}
	if err := r.pipe(ctx, stdin, out, nil, args...); err != nil {
		return nil, err
	}
	if out.cut {
		return nil, fmt.Errorf("git %s printed more than %d bytes", args[0], maxOutput)
	}
	return out.Bytes(), nil
}

// pipe runs one command. extra is appended to its environment.
func (r *Repo) pipe(ctx context.Context, stdin io.Reader, out io.Writer, extra []string, args ...string) error {
	stderr := &bounded{limit: maxStderr}
	res, err := r.run.Run(ctx, proc.Spec{
		Argv:    append(append([]string{"git"}, overrides...), args...),
		Dir:     r.GitDir,
		Env:     append(r.once[:len(r.once):len(r.once)], extra...),
		Stdin:   stdin,
		Stdout:  out,
		Stderr:  stderr,
		Timeout: timeout,
		Grace:   time.Second,
	})
	return ending(ctx, args[0], res, err, stderr.String())
}

// ending turns the end of a process into an error, or nil.
func ending(ctx context.Context, verb string, res proc.Result, err error, stderr string) error {
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
		return &commandError{verb: verb, exit: res.Exit, ended: res.Ended, stderr: stderr}
	}
	return nil
}

// commandError is a git command that ran and did not end with status 0.
type commandError struct {
	verb   string
	exit   int
	ended  proc.Ended
	stderr string
}

func (e *commandError) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(e.stderr), "\n")
	if line == "" || e.ended != proc.Exited {
		return fmt.Sprintf("git %s ended with status %d (%s)", e.verb, e.exit, e.ended)
	}
	return fmt.Sprintf("git %s: %s", e.verb, line)
}

// bounded keeps the first limit bytes and drops the rest, so that a child is
// never blocked by a full pipe.
type bounded struct {
	bytes.Buffer
	limit int
	cut   bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.Len()
	if len(p) <= room {
		return b.Buffer.Write(p)
	}
	b.cut = true
	b.Buffer.Write(p[:max(0, room)])
	return len(p), nil
}

// checkID refuses everything but a full object name of the repository's own
// format, so that no argument can be an option or a revision expression.
func (r *Repo) checkID(id string) error {
	if len(id) == r.hexLen() && isHex(id) {
		return nil
	}
	return fmt.Errorf("%q is not a full %s object name: %w", id, r.Format, loop.ErrNotFound)
}

func (r *Repo) hexLen() int {
	if r.Format == SHA256 {
		return 64
	}
	return 40
}

func isHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// exitStatus is the status of a git command that ended by itself, else 0.
func exitStatus(err error) int {
	if c, ok := errors.AsType[*commandError](err); ok && c.ended == proc.Exited {
		return c.exit
	}
	return 0
}
