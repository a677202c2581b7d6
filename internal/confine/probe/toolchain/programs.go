package toolchain

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

// maxLine bounds the text that is parsed, and maxNested how deep one line is inside
// another, as in sh -c.
const (
	maxLine   = 64 << 10
	maxNested = 4
)

// builtins are the commands that a shell runs by itself.
var builtins = strings.Fields(`. : [ [[ alias bg break builtin cd command continue declare dirs disown echo eval exec exit export
	false fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readonly return set shift
	shopt source test times trap true type typeset ulimit umask unalias unset wait time`)

var lineShells = []string{"sh", "bash", "dash", "ksh", "zsh", "ash"}

// Programs lists the programs that a line for the shell starts, in the order of the
// line: names to look up in PATH, and paths relative to the directory of the line. It
// leaves out builtins, names that are known only when the line runs, and relative
// paths after a cd to such a name. It lists nothing if the line cannot be parsed.
//
// Use it to find what to show, never to decide that a line is safe.
func Programs(line string) []string {
	p := &programs{functions: map[string]bool{}}
	p.addLine(line, ".", 0)
	return withoutRepeats(slices.DeleteFunc(p.found, func(word string) bool { return p.functions[word] }))
}

type programs struct {
	found     []string
	functions map[string]bool // the functions that the line declares
}

// addLine adds the programs of a line that starts in dir. If dir is empty, it is known
// only when the line runs.
func (p *programs) addLine(text, dir string, depth int) {
	if len(text) > maxLine || depth > maxNested {
		return
	}
	for _, variant := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
		if err == nil {
			p.addNode(file, dir, depth)
			return
		}
	}
}

// addNode visits a part of a line that one shell runs.
func (p *programs) addNode(top syntax.Node, dir string, depth int) {
	syntax.Walk(top, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				p.functions[n.Name.Value] = true
			}
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			// A cd inside does not change the directory outside.
			if n != top {
				p.addNode(n, dir, depth)
				return false
			}
		case *syntax.CallExpr:
			words := make([]string, len(n.Args))
			for i, w := range n.Args {
				words[i] = shell.Literal(w)
			}
			dir = p.addCall(words, dir, depth)
		}
		return true
	})
}

// addCall adds the programs of a simple command, and returns the directory in
// which the next one runs.
func (p *programs) addCall(words []string, dir string, depth int) string {
	for behind, ok := shell.Behind(words); ok; behind, ok = shell.Behind(words) {
		p.addName(words[0], dir)
		words = behind
	}
	if len(words) == 0 {
		return dir
	}
	switch name := words[0]; {
	case name == "cd" || name == "pushd" || name == "popd":
		return dirAfterCD(dir, words[1:])
	case name == "eval":
		p.addLine(strings.Join(words[1:], " "), dir, depth+1)
	case slices.Contains(lineShells, path.Base(name)):
		p.addName(name, dir)
		if text := commandText(words[1:]); text != "" {
			p.addLine(text, dir, depth+1)
		}
	default:
		p.addName(name, dir)
	}
	return dir
}

// addName adds a name if it can be looked up.
func (p *programs) addName(name, dir string) {
	switch {
	case name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "~") || slices.Contains(builtins, name):
		return
	case strings.ContainsAny(name, "*?[]{}$`\n\x00") || strings.HasSuffix(name, "/"):
		return
	case strings.Contains(name, "/") && !path.IsAbs(name):
		if dir == "" {
			return
		}
		if name = path.Join(dir, name); !strings.Contains(name, "/") {
			name = "./" + name
		}
	}
	p.found = append(p.found, name)
}

// dirAfterCD returns the directory after a cd, or an empty string if it is known only
// when the line runs.
func dirAfterCD(dir string, args []string) string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) != 1 || args[0] == "" || strings.ContainsAny(args[0], "~$*?[") || strings.HasPrefix(args[0], "-") {
		return ""
	}
	if path.IsAbs(args[0]) {
		return path.Clean(args[0])
	}
	if dir == "" {
		return ""
	}
	return path.Join(dir, args[0])
}

// commandText returns the line after the -c of a shell, or an empty string.
func commandText(args []string) string {
	for i, w := range args {
		if !strings.HasPrefix(w, "-") {
			return ""
		}
		if !strings.HasPrefix(w, "--") && strings.Contains(w, "c") && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
