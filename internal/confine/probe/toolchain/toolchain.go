// Package toolchain finds out what must be visible so that one program runs in
// a file system of which only the system's own directories are there: the file
// behind every shim and link, the installation that it belongs to, its
// interpreter, its libraries, and the caches of packages that may be shown
// beside them.
//
// It never writes, never asks a network, never runs code of the project, and
// never names a home directory as a whole, nor a directory in which credentials
// are known to lie. It reads nothing of a credential. What it starts are the
// managers of versions, to ask what stands behind a shim, and, outside of the
// system's directories, programs that are known to tell their version and do
// nothing else, to ask for that.
package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Toolchain is what must be visible, read-only and at its own path, so that one
// program runs.
type Toolchain struct {
	Program string // as the line names it: python3
	Path    string // the file behind every shim and link; empty for a file of the project that is not there yet
	Shim    string // the manager that chose it: pyenv rustup …; or empty

	// Bind are absolute files and directories outside of the system's own, sorted,
	// none below another. One that is a link stands for what it leads to, shown at
	// the place of the link.
	Bind []string

	PathDirs []string // for PATH, in this order, absolute and without links
	Env      []string // NAME=VALUE without which it does not find itself
	Version  string   // or empty: a program of the system is not asked
	Digest   string   // changes with the installation: path, size, time and version of each file that runs
}

// Resolve finds program as a shell would that stands in dir with the environment
// env, except that relative entries of PATH do not count, and everything that
// it needs. A program of the system starts no process; a manager of versions has
// 15 seconds to answer. A program with a slash below dir is a file of the
// project: only the interpreter that it names is resolved, and if it is not
// there nothing is, because the set-up may make it.
//
// The error is a *loop.Fault with the fix.
func Resolve(ctx context.Context, exec proc.Runner, env []string, dir, program string) (Toolchain, error) {
	home := proc.LookupVariable(env, "HOME")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Toolchain{}, fmt.Errorf("resolve %s in %s: %w", program, dir, err)
	}
	r := &resolver{
		prober: probe.Prober{Exec: exec, Environ: env, Home: home},
		env:    env, dir: abs, area: newArea(home, abs), seen: map[string]bool{},
		out: Toolchain{Program: program},
	}
	if err := r.resolveWord(ctx, program); err != nil {
		return Toolchain{}, err
	}
	return r.finish()
}

// resolver collects what one program needs.
type resolver struct {
	prober probe.Prober
	env    []string
	dir    string
	area   area

	out   Toolchain
	binds []string
	files []string        // the files that run, for the digest
	seen  map[string]bool // the words and files that were followed
}

// resolveWord resolves a word and the programs that it implies. The first word is the
// program of the toolchain.
func (r *resolver) resolveWord(ctx context.Context, word string) error {
	if r.seen["word:"+word] {
		return nil
	}
	r.seen["word:"+word] = true
	if r.ofProject(word) && !isThere(filepath.Join(r.dir, word)) {
		return nil
	}
	prog := r.prober.RealProgram(ctx, r.dir, word)
	if !prog.OK {
		return r.newFault(word, prog.Problem, prog.Fix)
	}
	entry, err := r.chooseFile(ctx, prog)
	if err != nil {
		return err
	}
	// This comes before follow, so that this directory is the first in PATH.
	real := withoutLinks(entry)
	if !r.ofProject(word) {
		r.addPathDir(entry, real)
	}
	if word == r.out.Program {
		r.out.Path, r.out.Shim = real, prog.Shim
	}
	if _, err = r.followFile(ctx, entry); err != nil {
		return err
	}
	if word == r.out.Program {
		r.out.Version = r.versionOf(ctx, word, entry, real)
	}
	return r.addImplied(ctx, needed{word: word, entry: entry, real: real, shim: prog.Shim})
}

// ofProject reports whether a word is a path below the project.
func (r *resolver) ofProject(word string) bool {
	return strings.ContainsRune(word, '/') && !filepath.IsAbs(word) && filepath.IsLocal(filepath.FromSlash(word))
}

// finish returns what was collected. It is an error if that would show a home or a
// credential.
func (r *resolver) finish() (Toolchain, error) {
	out := r.out
	out.Bind = withoutNested(r.binds)
	for _, path := range out.Bind {
		if r.area.tooWide(path) || isSecret(path) {
			return Toolchain{}, r.newFault(out.Program, "it needs "+path+", which is too much to show to a confined program",
				"install "+out.Program+" in a directory of its own, or for the whole system")
		}
	}
	out.PathDirs = withoutRepeats(out.PathDirs)
	slices.Sort(out.Env)
	out.Env = slices.Compact(out.Env)
	// The digest tells two installations apart without reading them.
	h := sha256.New()
	for _, path := range withoutRepeats(r.files) {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(h, "%q gone\n", path)
			continue
		}
		fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	fmt.Fprintf(h, "%q %q %q %q\n", out.Version, out.Bind, out.PathDirs, out.Env)
	out.Digest = hex.EncodeToString(h.Sum(nil))
	return out, nil
}

// versionOf returns the version that Go's installation names, or that the program
// prints. A program of the system is not asked.
func (r *resolver) versionOf(ctx context.Context, word, entry, real string) string {
	if isGoWord(word) {
		return strings.TrimPrefix(goVersion(rootOf(real)), "go")
	}
	if r.area.isVisible(real) || r.area.isVisible(entry) {
		return ""
	}
	return r.prober.AskVersion(ctx, word, entry)
}

// addPathDir adds the directory of the program to PATH. For a toolchain, which finds
// its parts by its own directory, that is the directory of the file. For others it is
// that of the link, because the file may have programs beside it that nobody asked
// for, as in an environment of its own.
func (r *resolver) addPathDir(entry, real string) {
	dir := filepath.Dir(entry)
	if filepath.Base(entry) == filepath.Base(real) && !r.area.isVisible(real) && environmentOf(real) == "" && isToolchain(rootOf(real)) {
		dir = filepath.Dir(real)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	r.out.PathDirs = append(r.out.PathDirs, dir)
	// The file itself is there under the real name of its directory, too.
	if at := filepath.Join(dir, filepath.Base(entry)); !r.area.isVisible(at) {
		r.binds = append(r.binds, at)
	}
}

func (r *resolver) addVariable(name, value string) {
	r.out.Env = append(r.out.Env, name+"="+value)
}

// newFault returns the error for a word that cannot be resolved.
func (r *resolver) newFault(word, why, fix string) error {
	what := "resolve " + word
	if word != r.out.Program {
		what += ", which " + r.out.Program + " needs"
	}
	return &loop.Fault{Exit: loop.ExitMissing, What: what, Why: why, Fix: fix}
}

// withoutRepeats returns list without repeated elements.
func withoutRepeats(list []string) []string {
	var all []string
	for _, e := range list {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
