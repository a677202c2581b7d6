package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
)

// program is a Spec whose program was looked up.
type program struct {
	path string // for exec: absolute, or with a slash and relative to dir
	dir  string
	argv []string
	env  []string // never nil, which package os would take for its own environment
	tag  string

	guard *Guard

	extra []*os.File
	stage string // empty: proc's own
	cell  bool

	limits Limits
	group  *cgroup.Group // nil: the program has no control group
}

// takeUnresolved leaves the lookup of the program to the stage that starts it.
func takeUnresolved(s Spec) (program, error) {
	if err := s.check(); err != nil {
		return program{}, err
	}
	return newProgram(s, s.Argv[0]), nil
}

func newProgram(s Spec, path string) program {
	return program{
		path: path, dir: s.Dir, argv: s.Argv, env: append([]string{}, s.Env...), tag: s.Tag, guard: s.Guard, extra: s.Extra, limits: s.Limits,
	}
}

// resolveProgram looks up the program of s. Its errors match exec.ErrNotFound for a
// name that is in no directory of PATH, and otherwise fs.ErrNotExist or
// fs.ErrPermission.
func resolveProgram(s Spec) (program, error) {
	if err := s.check(); err != nil {
		return program{}, err
	}
	if err := checkDir(s.Dir); err != nil {
		return program{}, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	path, err := findProgram(s)
	if err != nil {
		return program{}, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	return newProgram(s, path), nil
}

// checkDir checks the working directory, because exec reports a missing directory and
// a missing program by the same error.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return fmt.Errorf("enter the working directory: %w", err)
	}
	return nil
}

func findProgram(s Spec) (string, error) {
	name := s.Argv[0]
	if !hasSeparator(name) {
		return SearchPath(name, LookupVariable(s.Env, "PATH"))
	}
	seen := name
	if !filepath.IsAbs(name) {
		seen = filepath.Join(s.Dir, name)
	}
	return name, checkExecutable(seen)
}

// SearchPath looks up a name without a separator in the absolute directories of path.
func SearchPath(name, path string) (string, error) {
	missing := exec.ErrNotFound
	for _, dir := range PathDirs(path) {
		found := filepath.Join(dir, name)
		err := checkExecutable(found)
		if err == nil {
			return found, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			missing = err
		}
	}
	return "", &exec.Error{Name: name, Err: missing}
}

// execError explains err, which exec returned for p. The file was there a moment ago,
// so ENOENT means that the interpreter in its first line is missing.
func execError(p program, err error) error {
	failed := &fs.PathError{Op: "exec", Path: p.path, Err: err}
	if errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("start %s: the interpreter of the program is missing: %w", p.argv[0], failed)
	}
	return fmt.Errorf("start %s: %w", p.argv[0], failed)
}
