// Package demo makes the repository of `pawl demo`: a small Go module with a
// failing test, and a loop whose scripted agent repairs it at the second try.
//
// It writes only below the folder that it is given, needs no network and no
// key, and runs nothing but git. It does not run the loop.
package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Loop is the name of the loop of the demo.
const Loop = "keep-tests-green"

//go:embed assets
var assets embed.FS

// Place is where a demo has been made.
type Place struct {
	Repo string // the checkout
	Home string // of pawl, so that nothing of the user's own is touched
}

// Make makes the demo in dir/repo and dir/home, neither of which may exist.
// Environ is that of the process; git and go are looked up in its PATH. Every
// refusal is a *loop.Fault, and leaves nothing behind.
func Make(ctx context.Context, dir string, environ []string) (Place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Place{}, err
	}
	p := Place{Repo: filepath.Join(dir, "repo"), Home: filepath.Join(dir, "home")}
	if err := needs(ctx, environ); err != nil {
		return p, err
	}
	for _, taken := range []string{p.Repo, p.Home} {
		if _, err := os.Lstat(taken); err == nil {
			return p, &loop.Fault{
				Exit: loop.ExitMissing, What: "make the demo in " + dir, Why: taken + " exists already",
				Fix: "name another folder: {1}", Actions: []loop.Command{loop.PawlCommand("demo").WithFlag("dir", "DIR").WithBlanks("DIR")},
			}
		}
	}
	if err := p.write(); err != nil {
		return p, err
	}
	return p, p.commit(ctx, environ)
}

// needs refuses a host without the programs that the demo shows.
func needs(ctx context.Context, environ []string) error {
	for _, name := range []string{"git", "go"} {
		_, err := run(ctx, "", environ, name, "version")
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "the demo needs the program " + name, Why: err.Error(), Err: err,
			Fix: "install " + name + " and put it on PATH; or run a loop on a repository of yours: {1}", Actions: []loop.Command{loop.PawlCommand("run").WithFlag("until", "go test ./...").WithBlanks("go test ./...")},
		}
	}
	return nil
}

// write copies the assets. Names of Go and git end with .txt among the assets,
// because their own would mean something to the tools that build pawl.
func (p Place) write() error {
	return fs.WalkDir(assets, "assets/repo", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		file := filepath.Join(p.Repo, filepath.FromSlash(destination(strings.TrimPrefix(name, "assets/repo/"))))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return writeFault(p.Repo, err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return writeFault(p.Repo, err)
		}
		return nil
	})
}

func destination(name string) string {
	name = strings.TrimSuffix(name, ".txt")
	if rest, ok := strings.CutPrefix(name, "loops/"); ok {
		return path.Join(".loops", Loop, rest)
	}
	if name == "gitignore" {
		return ".gitignore"
	}
	return name
}

func writeFault(dir string, err error) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: "make the demo in " + dir, Why: err.Error(), Err: err,
		Fix: "name a folder that can be written: {1}", Actions: []loop.Command{loop.PawlCommand("demo").WithFlag("dir", "DIR").WithBlanks("DIR")},
	}
}

// commit makes the repository. Neither the user's configuration nor their name
// is used.
func (p Place) commit(ctx context.Context, environ []string) error {
	for _, args := range [][]string{
		{"init", "-q", "--template="},
		{"symbolic-ref", "HEAD", "refs/heads/main"},
		{"add", "-A"},
		{"commit", "-q", "-m", "A package for addresses, with a test that fails"},
	} {
		if _, err := run(ctx, p.Repo, environ, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program with a clean environment and returns what it printed.
func run(ctx context.Context, dir string, environ []string, name string, args ...string) (string, error) {
	out := proc.NewRing(4<<10, 4<<10)
	res, err := proc.Plain{}.Run(ctx, proc.Spec{
		Argv: append([]string{name}, args...), Dir: dir, Env: clean(environ), Stdout: out, Stderr: out,
	})
	if err != nil {
		return "", err
	}
	if res.Ended != proc.Exited || res.Exit != 0 {
		return "", fmt.Errorf("%s %s: exit status %d: %s", name, strings.Join(args, " "), res.Exit, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}

// clean is the environment of git and go: where programs and caches are, and
// an author who is nobody.
func clean(environ []string) []string {
	env := []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GOTOOLCHAIN=local",
		"GIT_AUTHOR_NAME=pawl demo", "GIT_AUTHOR_EMAIL=demo@pawl.invalid", "GIT_COMMITTER_NAME=pawl demo", "GIT_COMMITTER_EMAIL=demo@pawl.invalid",
	}
	for _, kv := range environ {
		for _, name := range []string{"PATH", "HOME", "TMPDIR", "SystemRoot"} {
			if strings.HasPrefix(kv, name+"=") {
				env = append(env, kv)
			}
		}
	}
	return env
}
