package gate

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/shell"
)

// interpreters run the first file that they are given.
var interpreters = []string{
	"sh", "bash", "dash", "ksh", "zsh", "ash", ".", "source", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua", "Rscript",
}

var shells = []string{"sh", "bash", "dash", "ksh", "zsh", "ash"}

// Programs lists, as globs relative to the top of the tree, the files of the
// tree that a line for the shell runs: whoever changes one of them changes the
// verdict. Programs that are found by PATH, and names that only the shell knows
// when it runs, are not in the list; of a line that the parser does not
// understand nothing is.
//
// It is for protecting more than a definition lists, never for deciding that a
// line is safe.
func Programs(line string) []string {
	if len(line) > maxScript {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	var globs []string
	prefix := ""
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		words := make([]string, len(call.Args))
		for i, w := range call.Args {
			words[i] = shell.Literal(w)
		}
		if moves(words) {
			prefix = "**/" // From here on a relative name may mean a file in any folder.
		}
		for _, p := range programsOf(words) {
			globs = append(globs, prefix+p)
		}
		return true
	})
	slices.Sort(globs)
	return slices.Compact(globs)
}

// moves reports whether a simple command, or what stands behind it, may work in
// another directory.
func moves(words []string) bool {
	behind, ok := shell.Behind(words)
	if !ok {
		return words[0] == "cd" || words[0] == "pushd"
	}
	own := words[:len(words)-len(behind)]
	if len(behind) > len(words) {
		own = words // A word held several.
	}
	return slices.ContainsFunc(own, func(w string) bool {
		return strings.HasPrefix(w, "-C") || strings.HasPrefix(w, "--chdir") || strings.HasPrefix(w, "--wd") || w == "-D"
	}) || len(behind) > 0 && moves(behind)
}

// programsOf lists the files that one simple command runs.
func programsOf(words []string) []string {
	behind, ok := shell.Behind(words)
	first := words[0]
	switch {
	case ok && len(behind) > 0:
		return append(ownOf(first), programsOf(behind)...)
	case first == "eval":
		return Programs(strings.Join(words[1:], " "))
	case !slices.Contains(interpreters, path.Base(first)):
		return ownOf(first)
	}
	return append(ownOf(first), scriptOf(path.Base(first), words[1:])...)
}

// ownOf is the program itself, if it is named by its path.
func ownOf(program string) []string {
	if strings.Contains(program, "/") {
		return inTree(program)
	}
	return nil
}

// scriptOf lists what an interpreter runs that gets some arguments.
func scriptOf(interpreter string, args []string) []string {
	isShell := slices.Contains(shells, interpreter)
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case (w == "-c" || isShell && isLetters(w) && strings.Contains(w, "c")) && i+1 < len(args):
			return Programs(args[i+1])
		case w == "-m" || !isShell && w == "-e":
			return nil
		case isShell && (isLetters(w) || strings.HasPrefix(w, "+")) && strings.HasSuffix(strings.ToLower(w), "o"):
			i++ // The name of an option of the shell.
		case w == "" || strings.HasPrefix(w, "-") || isShell && strings.HasPrefix(w, "+"):
		default:
			return inTree(w)
		}
	}
	return nil
}

// isLetters tells options of one letter each from a long one.
func isLetters(w string) bool { return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") }

// inTree is the glob for a file of the tree, or nothing for any other.
func inTree(name string) []string {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, `*?[]{}\`) {
		return nil
	}
	return []string{clean}
}
