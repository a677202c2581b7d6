package judging

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Marks in a value for parts that are unknown or special.
const (
	outside  = "\x01" // unknown, and no file of the tree decides it: the environment does
	computed = "\x02" // unknown, and a file of the tree may decide it
	top      = "\x03" // the top of the tree, at the beginning of a path
)

// partlyUnknown reports whether a value has parts that are known only at run time.
func partlyUnknown(value string) bool { return strings.ContainsAny(value, outside+computed) }

// expander finds the values that words of a shell may have.
type expander struct {
	*collector
	sh *shellState
}

func (f *follower) expander(sh *shellState) expander { return expander{f.collector, sh} }

// wordValues returns what a word may expand to: at least one value, at most maxValues.
func (e expander) wordValues(w *syntax.Word) []string {
	if w == nil {
		return []string{""}
	}
	return e.partValues(w.Parts)
}

func (e expander) partValues(parts []syntax.WordPart) []string {
	all := []string{""}
	for _, part := range parts {
		all = combinations(all, e.partValue(part))
	}
	return all
}

// combinations appends each of some texts to each of others.
func combinations(heads, tails []string) []string {
	var all []string
	for _, head := range heads {
		for _, tail := range tails {
			if len(all) == maxValues {
				return all
			}
			if len(head)+len(tail) > maxValue {
				head, tail = computed, ""
			}
			all = append(all, head+tail)
		}
	}
	return all
}

func (e expander) partValue(part syntax.WordPart) []string {
	switch p := part.(type) {
	case *syntax.Lit:
		return []string{strings.ReplaceAll(p.Value, `\`, "")}
	case *syntax.SglQuoted:
		return []string{p.Value}
	case *syntax.DblQuoted:
		return e.partValues(quotedParts(p.Parts))
	case *syntax.ParamExp:
		return e.paramValues(p)
	case *syntax.CmdSubst:
		return e.substitutedValues(p.Stmts)
	case *syntax.ArithmExp:
		return []string{outside}
	}
	return []string{computed}
}

var unescaped = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`")

// quotedParts returns the parts of a word in double quotes, where a backslash escapes
// fewer characters.
func quotedParts(parts []syntax.WordPart) []syntax.WordPart {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok {
			parts[i] = &syntax.SglQuoted{Value: unescaped.Replace(lit.Value)}
		}
	}
	return parts
}

func (e expander) paramValues(p *syntax.ParamExp) []string {
	if p.Param == nil || p.Length || p.Width || p.IsSet {
		return []string{outside}
	}
	if p.Excl {
		return []string{computed}
	}
	values := e.sh.variableValues(p.Param.Value)
	switch {
	case p.Exp != nil:
		return e.expandedValues(values, p.Exp)
	case p.Slice != nil || p.Repl != nil:
		return cutValues(values)
	}
	return values
}

// cutValues are values after a part of them was cut away or replaced.
func cutValues(values []string) []string {
	if slices.ContainsFunc(values, func(v string) bool { return v != outside }) {
		return []string{computed}
	}
	return []string{outside}
}

func (e expander) expandedValues(values []string, by *syntax.Expansion) []string {
	is := func(ops ...syntax.ParExpOperator) bool { return slices.Contains(ops, by.Op) }
	switch {
	case is(syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull):
		if slices.Equal(values, []string{outside}) {
			return e.wordValues(by.Word)
		}
		return values
	case is(syntax.ErrorUnset, syntax.ErrorUnsetOrNull):
		return values
	case is(syntax.AlternateUnset, syntax.AlternateUnsetOrNull):
		return append(e.wordValues(by.Word), "")
	case is(syntax.RemSmallSuffix) && slices.Equal(e.wordValues(by.Word), []string{"/*"}):
		return dirsOf(values)
	}
	return cutValues(values)
}

func dirsOf(values []string) []string {
	var dirs []string
	for _, v := range values {
		switch {
		case v == top:
			dirs = append(dirs, outside)
		case partlyUnknown(v):
			dirs = append(dirs, cutValues([]string{v})...)
		default:
			dirs = append(dirs, path.Dir(v))
		}
	}
	return dirs
}

// substitutedValues returns what a command substitution prints, if that is certain.
func (e expander) substitutedValues(stmts []*syntax.Stmt) []string {
	var words [][]string // of each command in turn, its first values
	plain := true
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				if len(n.Args) > 0 {
					words = append(words, e.firstValues(n.Args))
				}
				return false
			case *syntax.BinaryCmd:
				plain = plain && n.Op != syntax.Pipe && n.Op != syntax.PipeAll && n.Op != syntax.OrStmt
			}
			return true
		})
	}
	if len(words) == 0 {
		return []string{computed} // $(<file), for one.
	}
	last := words[len(words)-1]
	if plain {
		if value, ok := e.sh.printedPath(words); ok {
			return value
		}
	}
	if slices.ContainsFunc(words, func(w []string) bool { return !e.printsNoFile(w) }) {
		if path.Base(last[0]) != "cat" && plain {
			if globs := e.listedNames(e.sh, last); len(globs) > 0 {
				return globs
			}
		}
		return []string{computed}
	}
	return []string{outside}
}

// firstValues returns the first value of each word, which is the most likely one.
func (e expander) firstValues(args []*syntax.Word) []string {
	words := make([]string, 0, len(args))
	for _, a := range args {
		words = append(words, e.wordValues(a)[0])
	}
	return words
}

// printedPath returns what the usual commands to find a folder print.
func (sh *shellState) printedPath(words [][]string) ([]string, bool) {
	last := words[len(words)-1]
	arg := ""
	if args := slices.DeleteFunc(slices.Clone(last[1:]), func(w string) bool { return strings.HasPrefix(w, "-") }); len(args) > 0 {
		arg = args[0]
	}
	first := path.Base(last[0])
	switch {
	case len(words) == 2 && words[0][0] == "cd" && first == "pwd" && len(words[0]) > 1:
		return []string{sh.absolutePath(words[0][len(words[0])-1])}, true
	case len(words) > 1:
		return nil, false
	case first == "pwd":
		return []string{sh.absolutePath(".")}, true
	case first == "dirname":
		return dirsOf([]string{arg}), true
	case first == "basename" && !partlyUnknown(arg) && len(last) == 2:
		return []string{path.Base(arg)}, true
	case first == "realpath" || first == "readlink" || first == "greadlink":
		return []string{sh.absolutePath(arg)}, true
	case first == "git" && slices.Contains(last, "--show-toplevel"):
		return []string{top}, true
	case first == "echo" && !slices.ContainsFunc(last[1:], partlyUnknown):
		return []string{strings.Join(last[1:], " ")}, true
	}
	return nil, false
}

// absolutePath returns the path from the top of the tree, if the folder is known.
func (sh *shellState) absolutePath(name string) string {
	switch {
	case strings.HasPrefix(name, top) || path.IsAbs(name):
		return name
	case partlyUnknown(name):
		return name
	case sh.anywhere || len(sh.dirs) != 1:
		return outside + "/" + name
	}
	joined := path.Join(sh.dirs[0], name)
	if joined == "." {
		return top
	}
	if leavesTree(joined) {
		return outside
	}
	return top + "/" + joined
}

// tellers are programs that say something of the machine, of installed programs
// or of the repository's history. None of them prints what a file of the tree
// says.
var tellers = []string{
	"go", "npm", "which", "command", "type", "brew", "uname", "date", "nproc", "mktemp", "id", "whoami", "hostname", "getconf", "xcrun", "xcode-select", "rustc",
	"pkg-config", "tput", "arch", "sysctl", "env", "printenv", "java_home", "seq", "sw_vers", "lsb_release", "dpkg", "pnpm", "pyenv", "rbenv", "nvm", "pwd",
	"dirname", "basename", "git", "ps", "free", "df", "du", "true", "false", "test", "[", "tty", "stty", "sleep", "wc", "docker", "python-config", "llvm-config",
	"head", "tail", "tr", "cut", "sort", "uniq", "xargs", "grep", "sed", "awk", "echo", "printf",
}

// filters are tellers if they read their standard input and no file.
var filters = []string{"head", "tail", "tr", "cut", "sort", "uniq", "xargs", "grep", "sed", "awk", "wc"}

// printsNoFile reports whether the output of a command depends on no file of the
// tree.
func (e expander) printsNoFile(words []string) bool {
	first := path.Base(words[0])
	switch {
	case strings.Contains(words[0], "/") && !path.IsAbs(words[0]), !slices.Contains(tellers, first):
		return false
	case first == "git":
		return !slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"show", "cat-file", "grep", "config", "ls-files"}, w)
		})
	case first == "go":
		return !slices.Contains(words, "run")
	case first == "npm" || first == "pnpm":
		return !slices.ContainsFunc(words, func(w string) bool { return slices.Contains([]string{"run", "exec", "x", "pkg"}, w) })
	case slices.Contains(filters, first):
		return !slices.ContainsFunc(words[1:], func(w string) bool { return e.isFile(e.sh, w) })
	}
	return true
}

// printedBy returns what a line for the shell prints, if that is certain.
func (e expander) printedBy(line string) string {
	file, err := syntax.NewParser().Parse(strings.NewReader(quoteUnknown(line)), "")
	if err != nil {
		return computed
	}
	return strings.Join(e.substitutedValues(file.Stmts), " ")
}
