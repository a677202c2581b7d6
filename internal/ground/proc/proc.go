// Package proc starts, limits and kills programs and everything that they start. It
// is the only package that executes anything: agents, gates, sense commands and git
// are run by it.
//
// [Tree] is for programs that are not trusted to end: when its Run returns, no
// descendant is left, whatever it did to detach itself, and the same holds when
// pawl itself is killed. How far a host can guarantee that, Tree.Method says.
// [Plain] is for short programs that pawl knows, such as git: it costs no more than
// an exec, and kills only a process group, which a descendant can leave.
//
// It never passes on pawl's environment, never runs a shell unless a caller names
// one, never confines what a program may read, write or connect to, and never
// decides whether something may run.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Spec says what to start and with which limits.
type Spec struct {
	// Argv is the program and its arguments. A first element without a slash is
	// looked up in the PATH of Env, never in that of pawl, and relative or empty
	// entries of PATH are ignored. One with a slash is relative to Dir.
	Argv []string

	// Dir is the working directory. Empty means that of pawl.
	Dir string

	// Env is the complete environment, NAME=VALUE each.
	Env []string

	// Stdin is copied to the program's standard input, which is closed at the end
	// of Stdin; nil is /dev/null. An *os.File is handed over without a copy. If the
	// program ends while a Read of any other reader blocks, Run waits at most a
	// tenth of a second and then leaves the goroutine behind: close a pipe that is
	// used as Stdin.
	Stdin io.Reader

	// Stdout and Stderr receive what the program writes; nil discards it. An
	// *os.File is handed over without a copy. Any other writer is called from one
	// goroutine at a time, even if both are the same writer, and never after Run
	// has returned. A slow writer slows the program down and loses nothing, but
	// must return eventually. After its first error a writer is not called again,
	// and further output is read and dropped without the program noticing.
	Stdout, Stderr io.Writer

	// Extra are files for the stage that Tree.Stage names. Run does not close them.
	Extra []*os.File

	// Timeout limits the time from the call of Run. Zero means no limit.
	Timeout time.Duration

	// Grace is how long the program may run after the SIGTERM that it gets on
	// timeout and cancellation, before everything is killed. Zero means that it is
	// killed at once.
	Grace time.Duration

	// Limits limit what the program and everything that it starts use.
	Limits Limits

	// Tag is an entry of Env by which KillTagged finds survivors. It must be unique
	// to the programs that have to die together. Empty means no tag.
	Tag string

	// Guard, if it holds Tag, kills the tree when this process is stopped for too long.
	// Nil means that nobody does.
	Guard *Guard
}

// Runner starts a program and waits for its end. Unless it is Plain or Foreground,
// the program's whole process tree is dead when Run returns.
type Runner interface {
	Run(ctx context.Context, s Spec) (Result, error)
}

// Result says how a program ended.
type Result struct {
	Exit  int           // exit status, 128 + number of the signal, or -1 if it did not start
	Ended Ended         // why it ended
	Limit Limit         // the limit that ended it or, if it failed by itself, that it had hit
	Took  time.Duration // from its start, without the set-up before, until everything was dead and all output passed on
}

// Ended says why a program is no longer running.
type Ended string

// The ways to end. A program that ends by itself within its grace period still
// counts as timed out or canceled, with its own exit status.
const (
	Exited     Ended = "exit"
	Signaled   Ended = "signal"      // by a signal that Run did not send
	TimedOut   Ended = "timeout"     // Spec.Timeout
	Limited    Ended = "limit"       // Spec.Limits; without grace, and also if the program ended before it was killed
	Canceled   Ended = "canceled"    // the context ended, by its own deadline or otherwise
	NotStarted Ended = "not_started" // always with an error
)

// Method is the way in which a tree of processes is held together.
type Method string

// The methods, from the strongest to the weakest.
const (
	// PIDNamespace is a PID namespace. The kernel kills what is left in it.
	PIDNamespace Method = "pidns"
	// CGroup is a control group of version 2, which the kernel kills as a whole, with
	// a supervisor that adopts orphans. Privileged programs can leave the group and
	// are then killed as by Subreaper.
	CGroup Method = "cgroup"
	// Subreaper is a supervisor that adopts orphans and kills until none is left.
	// A tree that kills its own supervisor is found again only by Spec.Tag, and one
	// that keeps forking into new sessions can escape it.
	Subreaper Method = "subreaper"
	// Group is a process group, or on Windows the process alone. A descendant
	// that starts a session of its own survives.
	Group Method = "group"
)

// check refuses what no system could start. It is called before anything is opened.
func (s Spec) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("start a program: no program named")
	}
	for _, list := range [][]string{s.Argv, s.Env, {s.Dir}} {
		if slices.ContainsFunc(list, hasNUL) {
			return fmt.Errorf("start %s: an argument, variable or directory holds a NUL byte", s.Argv[0])
		}
	}
	if l := s.Limits; min(int64(l.Processes), l.Memory, l.Output, l.FileBytes) < 0 {
		return fmt.Errorf("start %s: a limit is negative", s.Argv[0])
	}
	if s.Tag == "" {
		return nil
	}
	if !isTag(s.Tag) {
		return fmt.Errorf("start %s: tag %q is not NAME=VALUE", s.Argv[0], s.Tag)
	}
	if !slices.Contains(s.Env, s.Tag) {
		return fmt.Errorf("start %s: tag %q is not in the environment", s.Argv[0], s.Tag)
	}
	return nil
}

// isTag reports whether tag is NAME=VALUE with neither empty.
func isTag(tag string) bool {
	name, value, _ := strings.Cut(tag, "=")
	return name != "" && value != "" && !hasNUL(tag)
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }
