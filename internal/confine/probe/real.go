package probe

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
)

// maxShims is how many shims may lead to each other.
const maxShims = 4

// RealProgram finds word as FindProgram does, and if it is a shim, asks the shim's
// manager in dir for the program. Path is then what the manager names, which may be
// a link, and Shim is the manager, or the first of several. Nothing is run for a
// word that is not a shim, nor for a shim whose manager cannot be asked. Version
// stays empty. It blocks for at most 15 seconds per manager.
func (p Prober) RealProgram(ctx context.Context, dir, word string) Program {
	prog := p.locateWord(dir, word)
	for range maxShims {
		if prog.Problem != "" {
			return prog
		}
		s := p.shimOf(prog.Path)
		if s == nil || liesInside(dir, prog.Path) && !s.ownsFile(p, prog.Path) {
			prog.OK = true
			return prog
		}
		prog.Shim = cmp.Or(prog.Shim, s.name)
		if !s.managed {
			prog.OK = true
			return prog
		}
		p.followShim(ctx, &prog, dir, s)
	}
	prog.OK = prog.Problem == ""
	if s := p.shimOf(prog.Path); prog.OK && s != nil && s.managed {
		prog.OK, prog.Problem = false, prog.Word+" is a shim that leads to nothing but shims"
		prog.Fix = "put the directory of the " + prog.Word + " that is meant before the others in PATH"
	}
	return prog
}

// followShim sets the path of the program to the file that the manager names.
func (p Prober) followShim(ctx context.Context, prog *Program, dir string, s *shim) {
	q, ok := p.managerQuestion(prog, dir, s)
	if !ok {
		return
	}
	out, errs, why := p.runQuestion(ctx, q)
	if why != "" {
		p.explainRefusal(prog, q, errs+"\n"+out, why)
		return
	}
	named := ""
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); filepath.IsAbs(line) {
			named = line
		}
	}
	switch {
	case named == "":
		prog.Problem = s.name + " does not say what " + prog.Word + " stands for"
		prog.Fix = s.fixFor(filepath.Base(prog.Word), out)
	case checkExecutable(named) != nil:
		prog.Problem = s.name + " names " + named + ", which is not there"
		prog.Fix = s.fixFor(filepath.Base(prog.Word), out)
	default:
		prog.Path = named
	}
}

// AskVersion asks a program for its version, outside of any project. It returns an
// empty string if AnswersVersion is false for word, without running it, or if there
// is no answer. It blocks for at most 15 seconds.
func (p Prober) AskVersion(ctx context.Context, word, path string) string {
	tool, ok := tools[word]
	if !ok {
		return ""
	}
	prog := Program{Word: word, Path: path}
	p.fillVersion(ctx, &prog, question{dir: p.neutralDir(), argv: append([]string{path}, tool.args...), limit: askTools})
	return prog.Version
}

// AnswerOf runs a command that only prints something, in OfflineEnviron, and returns
// its standard output. If it fails, why is not empty. It blocks for at most 15
// seconds.
func (p Prober) AnswerOf(ctx context.Context, dir string, argv ...string) (said, why string) {
	out, errs, why := p.runQuestion(ctx, question{dir: dir, argv: argv, limit: askTools})
	if why != "" {
		return "", cmp.Or(firstLine(errs+"\n"+out), why)
	}
	return out, ""
}

// AnswersVersion reports whether a program of this name is known to print its
// version, when asked, and to do nothing else.
func AnswersVersion(word string) bool {
	_, ok := tools[word]
	return ok
}
