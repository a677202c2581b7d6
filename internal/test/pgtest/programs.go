package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// debian is where Debian has the programs of each major version, outside of PATH.
const debian = "/usr/lib/postgresql/*/bin"

var errNotInstalled = errors.New("neither " + debian + " nor PATH has initdb and postgres; " +
	"fix: sudo apt-get install postgresql (macOS: brew install postgresql@17 and put its bin in PATH)")

// programs is a directory with initdb and postgres.
type programs string

func (p programs) initdb() string   { return filepath.Join(string(p), "initdb") }
func (p programs) postgres() string { return filepath.Join(string(p), "postgres") }

// findPrograms returns the programs of the newest major version that matches the pattern,
// or else those in path.
func findPrograms(pattern, path string) (programs, error) {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL in %s: %w", pattern, err)
	}
	newest, best := programs(""), -1
	for _, dir := range dirs {
		major, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && major > best && programs(dir).isComplete() {
			newest, best = programs(dir), major
		}
	}
	if best >= 0 {
		return newest, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if p := resolveDir(dir); p.isComplete() {
			return p, nil
		}
	}
	return "", errNotInstalled
}

// resolveDir follows a link to initdb: a server finds its share directory from the real
// path of its program.
func resolveDir(dir string) programs {
	name, err := filepath.EvalSymlinks(programs(dir).initdb())
	if err != nil {
		return programs(dir)
	}
	return programs(filepath.Dir(name))
}

func (p programs) isComplete() bool {
	for _, name := range []string{p.initdb(), p.postgres()} {
		info, err := os.Stat(name)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// version returns the version of postgres, in a form for a file name.
func (p programs) version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, p.postgres(), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", p.postgres(), err)
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' {
			return r
		}
		return '-'
	}, strings.TrimSpace(string(out))), nil
}
