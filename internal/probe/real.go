package probe

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
)

// maxShims bounds how many managers may stand behind each other.
const maxShims = 4

// Real finds word as Program does, and goes on to what stands behind a shim of
// it in dir: Path is then the program that the manager names, which may be a
// link, and Shim the manager, the first if there are several. Nothing is run
// for a word that is not a shim, nor for a shim whose manager cannot be asked.
// Version stays empty. It blocks for at most 15 seconds per manager.
func (p Prober) Real(ctx context.Context, dir, word string) Program {
	prog := p.locate(dir, word)
	for range maxShims {
		if prog.Problem != "" {
			return prog
		}
		s := p.shim(prog.Path)
		if s == nil || inside(dir, prog.Path) && !s.owns(p, prog.Path) {
			prog.OK = true
			return prog
		}
		prog.Shim = cmp.Or(prog.Shim, s.name)
		if !s.managed {
			prog.OK = true
			return prog
		}
		p.behind(ctx, &prog, dir, s)
	}
	prog.OK = prog.Problem == ""
	if s := p.shim(prog.Path); prog.OK && s != nil && s.managed {
		prog.OK, prog.Problem = false, prog.Word+" is a shim that leads to nothing but shims"
		prog.Fix = "put the directory of the " + prog.Word + " that is meant before the others in PATH"
	}
	return prog
}

// behind makes the file that a manager names the path of the program.
func (p Prober) behind(ctx context.Context, prog *Program, dir string, s *shim) {
	q, ok := p.managerQuestion(prog, dir, s)
	if !ok {
		return
	}
	out, errs, why := p.run(ctx, q)
	if why != "" {
		p.refused(prog, q, errs+"\n"+out, why)
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
		prog.Fix = s.fix(filepath.Base(prog.Word), out)
	case executable(named) != nil:
		prog.Problem = s.name + " names " + named + ", which is not there"
		prog.Fix = s.fix(filepath.Base(prog.Word), out)
	default:
		prog.Path = named
	}
}

// Version asks a program for its version, outside of any project. It is empty
// for a word that is not known to answer and do nothing else, and for one that
// does not answer. It blocks for at most 15 seconds.
func (p Prober) Version(ctx context.Context, word, path string) string {
	tool, ok := tools[word]
	if !ok {
		return ""
	}
	prog := Program{Word: word, Path: path}
	p.ask(ctx, &prog, question{dir: p.neutral(), argv: append([]string{path}, tool.args...), limit: askTools})
	return prog.Version
}

// Answer runs a program that only answers, with what keeps it from fetching
// anything, and returns what it writes to its standard output. If that does not
// count, why says so. It blocks for at most 15 seconds.
func (p Prober) Answer(ctx context.Context, dir string, argv ...string) (said, why string) {
	out, errs, why := p.run(ctx, question{dir: dir, argv: argv, limit: askTools})
	if why != "" {
		return "", cmp.Or(firstLine(errs+"\n"+out), why)
	}
	return out, ""
}

// Answers reports whether a program of this name is known to answer the
// question for its version and to do nothing else.
func Answers(word string) bool {
	_, ok := tools[word]
	return ok
}
