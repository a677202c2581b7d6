package judging

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

// shellState is what is known of one shell while its commands are followed. All
// branches count as taken, so it may be in several folders, and a variable may have
// several values.
type shellState struct {
	where    string   // for words about places: the gate, or the file
	file     string   // that it runs; empty: a line
	dirs     []string // in which it may work, from the top of the tree
	anywhere bool     // nobody knows in which
	vars     map[string][]string
	funcs    map[string]*syntax.Stmt
	called   map[string]bool
	args     []string // $1 and on; nil if they are not known
	shifts   int      // how far they may have been shifted
}

func newShell(where string) *shellState {
	return &shellState{where: where, dirs: []string{"."}, vars: map[string][]string{}, funcs: map[string]*syntax.Stmt{}, called: map[string]bool{}, args: []string{}}
}

// child is a shell that is started for a file.
func (sh *shellState) child(file string, args []string) *shellState {
	c := newShell(file)
	c.file, c.args, c.anywhere, c.dirs = file, args, sh.anywhere, slices.Clone(sh.dirs)
	c.vars = maps.Clone(sh.vars) // Some are exported; which is not worth knowing.
	return c
}

// inFolder is a shell for commands that run in another folder.
func (sh *shellState) inFolder(dir string) *shellState {
	c := *sh
	c.dirs = []string{path.Clean(dir)}
	c.anywhere = false
	return &c
}

const maxDirs = 16

// moveTo adds a folder to those in which the shell may work.
func (sh *shellState) moveTo(dir string) {
	switch {
	case strings.HasPrefix(dir, top):
		sh.addDir(path.Join(".", strings.TrimPrefix(dir, top)))
		return
	case partlyUnknown(dir) || dir == "":
		sh.anywhere = true
		return
	case path.IsAbs(dir) || dir == "-":
		return
	}
	for _, d := range slices.Clone(sh.dirs) {
		sh.addDir(path.Join(d, dir))
	}
}

func (sh *shellState) addDir(dir string) {
	switch {
	case leavesTree(dir) && dir != "." || slices.Contains(sh.dirs, dir):
	case len(sh.dirs) >= maxDirs:
		sh.anywhere = true
	default:
		sh.dirs = append(sh.dirs, dir)
	}
}

func (sh *shellState) variableValues(name string) []string {
	switch name {
	case "0", "BASH_SOURCE":
		if sh.file == "" {
			return []string{outside}
		}
		return []string{top + "/" + sh.file}
	case topName:
		return []string{top}
	case computedName:
		return []string{computed}
	case "PWD", "OLDPWD":
		return []string{sh.absolutePath(".")}
	case "@", "*":
		if sh.args == nil {
			return []string{outside}
		}
		var all []string
		for k := range sh.shifts + 1 {
			all = append(all, strings.Join(sh.args[min(k, len(sh.args)):], " "))
		}
		return all
	}
	if strings.Trim(name, "0123456789") == "" {
		n := 0
		for _, digit := range name {
			n = min(n*10+int(digit-'0'), 1000)
		}
		if sh.args == nil {
			return []string{outside}
		}
		all := []string{}
		for k := n - 1; k < min(n+sh.shifts, len(sh.args)); k++ {
			all = append(all, sh.args[k])
		}
		if len(all) == 0 {
			return []string{""}
		}
		return all
	}
	if values, ok := sh.vars[name]; ok {
		return values
	}
	return []string{outside} // Of the environment, which no file of the tree says.
}

// addValues adds values to those that a variable may have.
func (sh *shellState) addValues(name string, values []string) {
	known := sh.vars[name]
	for _, v := range values {
		if !slices.Contains(known, v) && len(known) < maxValues {
			known = append(slices.Clip(known), v)
		}
	}
	sh.vars[name] = known
}

// globs returns the files of the tree that a name may mean. An unknown part matches
// anything; a name outside of the tree matches nothing.
func (sh *shellState) globs(name string) []string {
	if len(name) > 512 || strings.ContainsAny(name, `[]{}\`+"\n") || strings.HasPrefix(name, "~") {
		return nil
	}
	dirs, anywhere := sh.dirs, sh.anywhere
	if rest, ok := strings.CutPrefix(name, top); ok {
		name, dirs, anywhere = strings.TrimPrefix(rest, "/"), []string{"."}, false
	}
	if path.IsAbs(name) {
		return nil
	}
	if at := strings.IndexAny(name, outside+computed); at >= 0 {
		if !strings.Contains(name[:at], "/") { // The folder is not known.
			_, rest, _ := strings.Cut(name[strings.LastIndexAny(name, outside+computed):], "/")
			name, dirs, anywhere = rest, nil, true
		} else {
			name = strings.NewReplacer(outside, "*", computed, "*").Replace(name)
		}
	}
	if name == "" || strings.HasSuffix(name, "/") || strings.ContainsFunc(name, unicode.IsControl) {
		return nil
	}
	var all []string
	for _, d := range dirs {
		if joined := path.Join(d, name); !leavesTree(joined) {
			all = append(all, joined)
		}
	}
	if clean := path.Clean(name); anywhere && !leavesTree(clean) && strings.Trim(clean, "*?/.") != "" {
		all = append(all, "**/"+strings.TrimPrefix(clean, "**/"))
	}
	return slices.DeleteFunc(all, func(g string) bool { return strings.Trim(g, "*?/.") == "" })
}

// followScript follows a text for the shell.
func (f *follower) followScript(sh *shellState, text string) {
	const longest = 256 << 10
	const unreadable = "it cannot be read as a text for the shell"
	if len(text) > longest {
		f.reportLost(sh.where, unreadable)
		return
	}
	file, err := shell.Parse(text)
	if err != nil {
		f.reportLost(sh.where, unreadable)
		return
	}
	f.walkNode(sh, file)
	for name, body := range sh.funcs {
		if !sh.called[name] { // By another text, or by a trap.
			sh.called[name] = true
			called := *sh
			called.args = nil
			f.walkNode(&called, body)
		}
	}
}

// feed is the standard input of a command.
type feed struct {
	from  *syntax.Stmt // another command; nil: none
	files []string     // of redirections
	text  string       // of a here-document
	any   bool
}

// walkNode follows every command of a node, in its order.
func (f *follower) walkNode(sh *shellState, node syntax.Node) {
	if f.depth++; f.depth > 4*maxDepth {
		f.depth--
		f.reportLost(sh.where, "too many files run one another")
		return
	}
	defer func() { f.depth-- }()
	feeds := map[*syntax.CallExpr]feed{}
	syntax.Walk(node, func(n syntax.Node) bool {
		if f.outOfSteps(sh.where) {
			return false
		}
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				sh.funcs[n.Name.Value] = n.Body
			}
			return false
		case *syntax.ForClause:
			if each, ok := n.Loop.(*syntax.WordIter); ok {
				f.assignLoop(sh, each)
			}
		case *syntax.DeclClause:
			f.assignVariables(sh, n.Args)
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				if call := firstReader(n.Y); call != nil {
					feeds[call] = feed{from: n.X, any: true}
				}
			}
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok {
				f.noteRedirects(sh, n.Redirs, call, feeds)
			}
		case *syntax.CallExpr:
			f.followCall(sh, n, feeds[n])
		}
		return true
	})
}

// firstReader is the command of a statement that reads its standard input first.
func firstReader(s *syntax.Stmt) *syntax.CallExpr {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return c
	case *syntax.BinaryCmd:
		return firstReader(c.X)
	case *syntax.Subshell:
		if len(c.Stmts) > 0 {
			return firstReader(c.Stmts[0])
		}
	case *syntax.Block:
		if len(c.Stmts) > 0 {
			return firstReader(c.Stmts[0])
		}
	}
	return nil
}

func (f *follower) noteRedirects(sh *shellState, redirs []*syntax.Redirect, call *syntax.CallExpr, feeds map[*syntax.CallExpr]feed) {
	for _, r := range redirs {
		if r.Op == syntax.RdrIn {
			feeds[call] = feed{files: f.expander(sh).wordValues(r.Word), any: true}
		}
		if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
			feeds[call] = feed{text: f.expander(sh).wordValues(r.Hdoc)[0], any: true}
		}
		if r.Op == syntax.WordHdoc {
			feeds[call] = feed{text: f.expander(sh).wordValues(r.Word)[0], any: true}
		}
	}
}

func (f *follower) assignLoop(sh *shellState, each *syntax.WordIter) {
	if !each.InPos.IsValid() {
		sh.addValues(each.Name.Value, sh.variableValues("@"))
		return
	}
	for _, item := range each.Items {
		for _, v := range f.expander(sh).wordValues(item) {
			sh.addValues(each.Name.Value, strings.Fields(v))
		}
	}
}

func (f *follower) assignVariables(sh *shellState, assigns []*syntax.Assign) {
	for _, a := range assigns {
		switch {
		case a.Name == nil || a.Naked && a.Value == nil:
		case a.Array != nil:
			for _, e := range a.Array.Elems {
				sh.addValues(a.Name.Value, f.expander(sh).wordValues(e.Value))
			}
		case a.Append:
			sh.addValues(a.Name.Value, combinations(sh.variableValues(a.Name.Value), f.expander(sh).wordValues(a.Value)))
		default:
			sh.addValues(a.Name.Value, f.expander(sh).wordValues(a.Value))
		}
	}
}

// followCall follows one simple command, once for each value of its words.
func (f *follower) followCall(sh *shellState, n *syntax.CallExpr, in feed) {
	f.assignVariables(sh, n.Assigns)
	if len(n.Args) == 0 {
		return
	}
	var choices [][]string
	most := 1
	for _, w := range n.Args {
		c := f.expander(sh).wordValues(w)
		choices = append(choices, c)
		most = max(most, len(c))
	}
	for i := range most {
		var words []string
		for k, c := range choices {
			value := c[min(i, len(c)-1)]
			if splitsWords(n.Args[k]) {
				words = append(words, strings.Fields(value)...)
			} else {
				words = append(words, value)
			}
		}
		f.followCommand(sh, words[:min(len(words), maxWords)], in)
	}
}

const maxWords = 1000 // of one command

// splitsWords reports whether the shell splits the value of a word into several words:
// an expansion without quotes, or the arguments of a script.
func splitsWords(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.ParamExp, *syntax.CmdSubst:
		return true
	case *syntax.DblQuoted:
		if len(p.Parts) == 1 {
			param, ok := p.Parts[0].(*syntax.ParamExp)
			return ok && param.Param != nil && param.Param.Value == "@"
		}
	}
	return false
}
