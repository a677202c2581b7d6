// Package forge asks a code host for the few things that pawl needs, through the
// program gh with its user's login: the pull request of a branch, a new pull
// request, the state of those that pawl opened, and whether the label that pauses
// all loops is set.
//
// It never merges, closes, comments on or edits anything, never handles a token,
// never goes through a shell, never runs in a repository, and trusts only the
// fields of an answer that it asked for.
package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	commandTimeout = time.Minute // for one command
	maxOutput      = 4 << 20     // bytes of an answer
	maxStderr      = 8 << 10
	exitLogin      = 4 // exit status of gh without a login
)

// GH runs the program gh. It holds no resources and is safe for concurrent use.
type GH struct {
	Exec    proc.Runner
	Environ []string // the user's environment, in which gh finds its login
	Program string   // empty means gh from the PATH of Environ
}

// runDecoding runs gh and decodes the single JSON value that it prints.
func (g GH) runDecoding(ctx context.Context, into any, args ...string) error {
	out, err := g.runGH(ctx, nil, args...)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(out))
	err = d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more follows the answer")
		}
	}
	if err != nil {
		return &loop.Fault{
			Exit: loop.ExitError, What: "the answer of gh " + args[0] + " is not understood", Why: err.Error(),
			Fix: "install a current gh: {1} should say 2.40 or newer", Actions: []loop.Command{loop.HostCommand("gh", "--version")}, Err: err,
		}
	}
	return nil
}

// runGH runs gh outside of every repository, so that it cannot guess one.
func (g GH) runGH(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	program := g.Program
	if program == "" {
		program = "gh"
	}
	out, stderr := &proc.Bounded{Limit: maxOutput}, &proc.Bounded{Limit: maxStderr}
	defer waiting.For(ctx, program+" "+args[0], nil)()
	res, err := g.Exec.Run(ctx, proc.Spec{
		Argv: append([]string{program}, args...), Dir: os.TempDir(), Env: g.cleanEnviron(),
		Stdin: stdin, Stdout: out, Stderr: stderr, Timeout: commandTimeout, Grace: 50 * time.Millisecond,
	})
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("gh %s: %w", args[0], context.Cause(ctx))
	case err != nil:
		return nil, &loop.Fault{
			Exit: loop.ExitMissing, What: program + " cannot be started", Why: err.Error(),
			Fix: "install gh, then {1}", Actions: []loop.Command{loop.HostCommand("gh", "auth", "login")}, Err: err,
		}
	case res.Ended != proc.Exited:
		return nil, fmt.Errorf("gh %s: it did not end by itself (%s)", args[0], res.Ended)
	case res.Exit == exitLogin:
		return nil, &loop.Fault{
			Exit: loop.ExitMissing, What: "gh has no login", Why: firstStderrLine(stderr),
			Fix: "{1}", Actions: []loop.Command{loop.HostCommand("gh", "auth", "login")},
		}
	case res.Exit != 0:
		return nil, &loop.Fault{
			Exit: loop.ExitError, What: fmt.Sprintf("gh %s ended with status %d", strings.Join(args[:min(2, len(args))], " "), res.Exit),
			Why: firstStderrLine(stderr), Fix: "see that {1} is content; if it is not, {2}",
			Actions: []loop.Command{loop.HostCommand("gh", "auth", "status"), loop.HostCommand("gh", "auth", "login")},
		}
	case out.Cut:
		return nil, fmt.Errorf("gh %s printed more than %d bytes", args[0], maxOutput)
	}
	return out.Bytes(), nil
}

// cleanEnviron returns the user's environment without variables that change gh's
// output or the repository that it uses.
func (g GH) cleanEnviron() []string {
	env := slices.DeleteFunc(slices.Clone(g.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GH_REPO", "GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE", "GH_PAGER", "PAGER", "LC_ALL", "NO_COLOR",
			"GH_PROMPT_DISABLED", "GH_NO_UPDATE_NOTIFIER":
			return true
		}
		return strings.HasPrefix(name, "GIT_")
	})
	return append(env, "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "NO_COLOR=1", "LC_ALL=C")
}

// firstStderrLine returns the first line of a program's error output, without
// escapes.
func firstStderrLine(stderr *proc.Bounded) string {
	line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	line = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return -1
		}
		return c
	}, strings.ToValidUTF8(line, "?"))
	return line[:min(len(line), 500)]
}
