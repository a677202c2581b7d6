package toolchain

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
)

// chooseFile returns the file that answers where there is no manager to ask: the program
// of a snap, the toolchain that go.mod asks for, or the program that the user's own
// script starts.
func (r *resolver) chooseFile(ctx context.Context, prog probe.Program) (string, error) {
	path := prog.Path
	switch {
	case r.ofProject(prog.Word):
		return path, nil
	case isGoWord(prog.Word):
		return r.chooseGoFile(r.fileOfSnap(path))
	case filepath.Base(withoutLinks(path)) == "snap" && filepath.Base(path) != "snap":
		if found := r.fileOfSnap(path); found != path {
			return found, nil
		}
		return "", r.newFault(prog.Word, path+" is a snap, which only the daemon of snaps can start", "install "+prog.Word+" in another way, and put it before "+filepath.Dir(path)+" in PATH")
	case r.isWrapper(prog):
		exe, err := r.answeringProgram(ctx, path)
		if err != nil {
			return "", r.newFault(prog.Word, path+" is a script that does not say which program it starts: "+err.Error(),
				"put the directory of the real "+prog.Word+" before "+filepath.Dir(path)+" in PATH")
		}
		_, err = r.followFile(ctx, exe)
		return path, err
	}
	return path, nil
}

func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// fileOfSnap returns the file of a snap's program that runs without the daemon, or path if
// there is none.
func (r *resolver) fileOfSnap(path string) string {
	dir, name := filepath.Split(path)
	if filepath.Base(withoutLinks(path)) != "snap" || filepath.Base(dir) != "bin" {
		return path
	}
	top := filepath.Dir(filepath.Clean(dir))
	for _, sub := range []string{"bin", "usr/bin", "."} {
		if found := filepath.Join(top, name, "current", sub, name); isThere(found) {
			return found
		}
	}
	return path
}

var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"}

// isWrapper reports whether a program is a single shell script that may be asked for
// its version.
func (r *resolver) isWrapper(prog probe.Program) bool {
	real := withoutLinks(prog.Path)
	if r.area.isVisible(real) || prog.Shim != "" || !probe.AnswersVersion(prog.Word) || environmentOf(real) != "" || r.installationOf(real).rest != "" {
		return false
	}
	head, err := headOf(real)
	if err != nil || !strings.HasPrefix(head, "#!") || longInterpreter.MatchString(head) {
		return false
	}
	program, word := interpreterOf(head)
	return slices.Contains(shells, filepath.Base(program)) || slices.Contains(shells, word)
}
