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

// wrappers run what stands behind them.
var wrappers = []string{"env", "exec", "command", "time", "nice", "nohup", "timeout", "xargs", "eval"}

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
		if words[0] == "cd" {
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

// programsOf lists the files that one simple command runs.
func programsOf(words []string) []string {
	for len(words) > 1 && slices.Contains(wrappers, words[0]) {
		words = words[1:]
		for len(words) > 1 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || isNumber(words[0])) {
			words = words[1:]
		}
	}
	first := words[0]
	if !slices.Contains(interpreters, path.Base(first)) {
		if strings.Contains(first, "/") {
			return inTree(first)
		}
		return nil
	}
	for i, w := range words[1:] {
		switch {
		case w == "-c" && i+2 < len(words):
			return Programs(words[i+2])
		case w == "-m" || w == "-e":
			return nil
		case w != "" && !strings.HasPrefix(w, "-"):
			return inTree(w)
		}
	}
	return nil
}

func isNumber(w string) bool {
	return strings.Trim(w, "0123456789.") == "" || w[0] <= '9' && strings.Trim(w, "0123456789.smhd") == ""
}

// inTree is the glob for a file of the tree, or nothing for any other.
func inTree(name string) []string {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, `*?[]{}\`) {
		return nil
	}
	return []string{clean}
}
