package judging

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

var shells = []string{"sh", "bash", "dash", "ksh", "mksh", "zsh", "ash", "busybox", "rbash"}

// interpreter says how a program finds the file that it runs.
type interpreter struct {
	inline string // options behind which the program itself stands
	module string // the option behind which a module stands
	loads  string // options that load a file first
	valued string // other options that take the next word
	skip   string // first words that stand before the file
	imports
}

var interpreters = map[string]interpreter{
	"python": {inline: "-c", module: "-m", valued: "-W -X --check-hash-based-pycs", imports: pythonImports},
	"node": {
		inline: "-e --eval -p --print -pe", loads: "-r --require --import --loader --experimental-loader --env-file", valued: "-C --conditions --title --input-type",
		skip: "inspect", imports: scriptImports,
	},
	"tsx":        {inline: "-e --eval -p --print", loads: "-r --require --import --tsconfig", skip: "watch", imports: scriptImports},
	"ts-node":    {inline: "-e --eval -p --print", loads: "-r --require", valued: "-P --project -O --compiler-options", imports: scriptImports},
	"babel-node": {inline: "-e --eval -p --print", loads: "-r --require --config-file", valued: "-x --extensions", imports: scriptImports},
	"vite-node":  {loads: "-c --config --import", imports: scriptImports},
	"esno":       {imports: scriptImports},
	"jiti":       {imports: scriptImports},
	"deno":       {inline: "-e", loads: "-c --config --import-map --preload --env-file", skip: "run", imports: scriptImports},
	"bun":        {inline: "-e --eval -p --print", loads: "-r --preload -c --config --import", skip: "run", imports: scriptImports},
	"ruby":       {inline: "-e", loads: "-r", valued: "-I -C -E -x", imports: rubyImports},
	"jruby":      {inline: "-e", loads: "-r", valued: "-I -C", imports: rubyImports},
	"perl":       {inline: "-e -E", valued: "-I", imports: imports{}},
	"php":        {inline: "-r", loads: "-c", valued: "-d", skip: "-f"},
	"lua":        {inline: "-e", valued: "-l"},
	"luajit":     {inline: "-e", valued: "-l"},
	"Rscript":    {inline: "-e"},
	"julia":      {inline: "-e -E --eval", loads: "-L --load", valued: "-p -t --threads"},
	"elixir":     {inline: "-e --eval", loads: "-r", valued: "-pa -S"},
	"escript":    {},
	"groovy":     {inline: "-e", valued: "-cp --classpath"},
	"kotlin":     {valued: "-cp -classpath"},
	"swift":      {},
	"scala":      {inline: "-e", valued: "-cp"},
	"pwsh":       {inline: "-Command -c", valued: "-ExecutionPolicy", skip: "-File -f"},
	"expect":     {inline: "-c", skip: "-f"},
	"tclsh":      {},
	"guile":      {inline: "-c", skip: "-s -e"},
	"awk":        {loads: "-f --file"},
	"gawk":       {loads: "-f --file"},
	"sed":        {loads: "-f --file"},
	"jq":         {loads: "-f --from-file"},
}

// inlineOnly are interpreters whose first argument is a program and no file.
var inlineOnly = []string{"awk", "gawk", "sed", "jq"}

// interpreterOf finds an interpreter by a name that may end in a version.
func interpreterOf(program string) (interpreter, string, bool) {
	base := strings.TrimSuffix(path.Base(program), ".exe")
	if i, ok := interpreters[base]; ok {
		return i, base, true
	}
	bare := strings.TrimRight(base, "0123456789.-")
	if bare == "pypy" {
		bare = "python"
	}
	i, ok := interpreters[bare]
	return i, bare, ok
}

// followCommand follows a simple command whose words are known as far as they can be.
func (f *follower) followCommand(sh *shellState, words []string, in feed) {
	for len(words) > 0 && words[0] == "" {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	if f.outOfSteps(sh.where) {
		return
	}
	first := words[0]
	if strings.ContainsAny(first, outside+computed) && len(sh.globs(first)) == 0 {
		f.followUnknown(sh, words)
		return
	}
	if body, ok := sh.funcs[first]; ok {
		f.followFunction(sh, first, body, words[1:])
		return
	}
	if behind, ok := f.wordsBehind(sh, words); ok {
		f.protectProgram(sh, first)
		f.followWrapped(sh, words, behind, in)
		return
	}
	base := path.Base(first)
	switch base {
	case "cd", "pushd":
		if len(words) > 1 {
			sh.moveTo(words[len(words)-1])
		}
		return
	case "eval":
		f.followLine(sh, strings.Join(words[1:], " "))
		return
	case "trap":
		if len(words) > 2 {
			f.followLine(sh, words[1])
		}
		return
	case "shift":
		sh.shifts = min(sh.shifts+1, maxValues)
		return
	case "read", "mapfile", "readarray":
		for _, name := range argsOnly(words[1:], "-p -d -n -t -u -i -N -s -O") {
			sh.addValues(name, []string{computed})
		}
		return
	case "set":
		if i := slices.Index(words, "--"); i > 0 {
			sh.args = words[i+1:]
		}
		return
	case "find":
		f.followFind(sh, words[1:])
		return
	case ".", "source":
		if first == base && len(words) > 1 {
			f.followSourced(sh, words[1], words[2:])
			return
		}
	}
	if slices.Contains(shells, base) {
		f.protectProgram(sh, first)
		f.followShell(sh, words[1:], in)
		return
	}
	if f.followProgram(sh, base, words[1:], in) {
		f.protectProgram(sh, first)
		return
	}
	if i, name, ok := interpreterOf(first); ok {
		f.protectProgram(sh, first)
		f.followInterpreter(sh, i, name, words[1:], in)
		return
	}
	f.protectArguments(sh, base, words[1:])
	if strings.Contains(first, "/") {
		f.followFile(sh, first, words[1:], "")
		return
	}
	node{f}.followBin(sh, first, words[1:])
}

// followUnknown follows a command whose program is known only when it runs. If
// the environment says it, no file of the tree does; one of its arguments may
// still be a script.
func (f *follower) followUnknown(sh *shellState, words []string) {
	if strings.Contains(words[0], computed) {
		f.reportLost(sh.where, "what it runs is computed")
		return
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") {
			continue
		}
		if slices.Contains([]string{".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"}, path.Ext(w)) && f.isFile(sh, w) {
			f.followFile(sh, w, nil, "")
		}
		return
	}
}

// followFunction follows the body of a function of the shell.
func (f *follower) followFunction(sh *shellState, name string, body *syntax.Stmt, args []string) {
	sh.called[name] = true
	if !f.firstTime("function", sh.where, name, strings.Join(args, "\x00"), strings.Join(sh.dirs, ":")) {
		return
	}
	before, shifts := sh.args, sh.shifts
	sh.args, sh.shifts = args, 0
	f.walkNode(sh, body)
	sh.args, sh.shifts = before, shifts
}

// followLine follows a text that a command is given as an argument.
func (f *follower) followLine(sh *shellState, text string) {
	if strings.Contains(text, computed) {
		f.reportLost(sh.where, "a text that it runs is computed")
		return
	}
	f.followRecipeLine(sh, text)
}

// followRecipeLine follows a text of which parts may be unknown: as a rule they are
// arguments, and what they are shows where they are used.
func (f *follower) followRecipeLine(sh *shellState, text string) {
	if strings.Trim(text, outside+" ;\n\t") != "" && f.firstTime("line", sh.where, strings.Join(sh.dirs, ":"), text) {
		f.followScript(sh, quoteUnknown(text))
	}
}

// Variables for parts of texts that are put together.
const (
	topName      = "_pawl_top"
	computedName = "_pawl_computed"
)

// quoteUnknown writes the unknown parts of a text as variables that are not set.
func quoteUnknown(text string) string {
	return strings.NewReplacer(outside, "${_}", top, "${"+topName+"}", computed, "${"+computedName+"}").Replace(text)
}

// followSourced follows a file that the shell runs in its own process.
func (f *follower) followSourced(sh *shellState, name string, args []string) {
	globs := sh.globs(name)
	if len(globs) == 0 && strings.Contains(name, computed) {
		f.reportLost(sh.where, "the name of a file that it reads is computed")
	}
	for _, file := range f.protectFiles(globs) {
		content, there := f.readText(sh.where, file)
		if !there || !f.firstTime("source", sh.where, file) {
			continue
		}
		where, self, before := sh.where, sh.file, sh.args
		sh.where, sh.file = file, file
		if len(args) > 0 {
			sh.args = args
		}
		f.withinDepth(file, func() { f.followScript(sh, content) })
		sh.where, sh.file, sh.args = where, self, before
	}
}

// followShell follows what a shell with these arguments runs.
func (f *follower) followShell(sh *shellState, args []string, in feed) {
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case slices.Contains(shells, w) && i == 0: // Of busybox.
		case isLetters(w) && strings.Contains(w, "c") && i+1 < len(args):
			inner := *sh
			inner.args = nil
			if len(args) > i+2 {
				inner.args = args[i+3:]
			}
			f.followLine(&inner, args[i+1])
			return
		case isLetters(w) && strings.Contains(w, "n") && !strings.HasSuffix(w, "o"):
			return // It only parses.
		case isLetters(w) && strings.Contains(w, "s"):
			f.followInput(sh, in)
			return
		case (isLetters(w) || strings.HasPrefix(w, "+")) && strings.HasSuffix(strings.ToLower(w), "o"):
			i++ // The name of an option of the shell.
		case (w == "--rcfile" || w == "--init-file") && i+1 < len(args):
			f.followFile(sh, args[i+1], nil, "sh")
			i++
		case w == "" || strings.HasPrefix(w, "-") && w != "-" || strings.HasPrefix(w, "+"):
		case w == "-":
			f.followInput(sh, in)
			return
		default:
			f.followFile(sh, w, args[i+1:], "sh")
			return
		}
	}
	f.followInput(sh, in)
}

// isLetters tells options of one letter each from a long one.
func isLetters(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && len(w) > 1
}

// downloads print what comes from elsewhere, which no scope holds.
var downloads = []string{"curl", "wget", "fetch", "gh", "aws", "ssh", "kubectl"}

// followInput follows what a shell reads from its standard input.
func (f *follower) followInput(sh *shellState, in feed) {
	if !in.any {
		return
	}
	for _, name := range in.files {
		f.followFile(sh, name, nil, "sh")
	}
	if in.text != "" {
		f.followLine(sh, in.text)
	}
	if in.from == nil {
		return
	}
	certain := false
	syntax.Walk(in.from, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		words := f.expander(sh).firstValues(call.Args)
		switch first := path.Base(words[0]); {
		case first == "echo" || first == "printf":
			certain = true
			f.followLine(sh, strings.Join(words[1:], " "))
		case slices.Contains(downloads, first) || strings.Contains(words[0], "/"):
			certain = true // The program is protected where it is run.
		default:
			for _, w := range words[1:] {
				if f.isFile(sh, w) {
					certain = true
					f.followFile(sh, w, nil, "sh")
				}
			}
		}
		return true
	})
	if !certain {
		f.reportLost(sh.where, "a shell runs what another program prints")
	}
}

// followInterpreter follows what an interpreter runs that gets some arguments.
func (f *follower) followInterpreter(sh *shellState, i interpreter, name string, args []string, in feed) {
	has := func(list, w string) bool { return slices.Contains(strings.Fields(list), w) }
	inline := slices.Contains(inlineOnly, name)
	for k := 0; k < len(args); k++ {
		option, value, long := strings.Cut(args[k], "=")
		switch w := args[k]; {
		case has(i.skip, w):
		case has(i.inline, w):
			return
		case i.module != "" && w == i.module && k+1 < len(args):
			python{f}.followModule(sh, args[k+1], args[k+2:])
			return
		case i.module != "" && strings.HasPrefix(w, i.module) && isLetters(w):
			python{f}.followModule(sh, w[len(i.module):], args[k+1:])
			return
		case has(i.loads, w) && k+1 < len(args):
			f.protectLoaded(sh, args[k+1])
			k++
		case long && has(i.loads, option):
			f.protectLoaded(sh, value)
		case has(i.valued, w):
			k++
		case name == "node" && w == "--test":
			f.protectTestFiles(sh, args[k+1:])
			return
		case w == "" || strings.HasPrefix(w, "-"):
		case inline:
			return
		default:
			f.followFile(sh, w, args[k+1:], name)
			return
		}
	}
	for _, file := range in.files {
		f.followFile(sh, file, nil, name)
	}
	if in.from == nil || inline {
		return
	}
	if call, ok := in.from.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
		f.listedNames(sh, f.expander(sh).firstValues(call.Args)) // cat x | python: listing cat's files protects them.
	}
}

// followFile follows a file that is run. By is the program that runs it; if empty, its
// first line tells.
func (f *follower) followFile(sh *shellState, name string, args []string, by string) {
	globs := sh.globs(name)
	if len(globs) == 0 && strings.Contains(name, computed) {
		f.reportLost(sh.where, "the name of a file that it runs is computed")
	}
	for _, file := range f.protectFiles(globs) {
		content, there := f.readText(sh.where, file)
		if !there || strings.Contains(content, "\x00") {
			continue
		}
		how := by
		if how == "" {
			how = firstLine(file, content)
		}
		if !f.firstTime("run", file, how, strings.Join(sh.dirs, ":"), strings.Join(args, "\x00")) {
			continue
		}
		f.withinDepth(file, func() {
			i, _, interpreted := interpreterOf(how)
			switch {
			case slices.Contains(shells, how):
				f.followScript(sh.child(file, args), content)
			case path.Base(how) == "make":
				f.followMakefile(sh.child(file, nil), file, args, nil)
			case interpreted:
				f.noteImports(file, content, i.imports)
			}
		})
	}
}

// firstLine returns the program that runs a file: the one that its first line names,
// else the usual one for its ending.
func firstLine(file, content string) string {
	line, _, _ := strings.Cut(content, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		switch path.Ext(file) {
		case ".py":
			return "python"
		case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts":
			return "node"
		case ".rb":
			return "ruby"
		case "", ".sh", ".bash", ".ksh":
			return "sh"
		}
		return ""
	}
	if behind, ok := shell.Behind(words); ok && len(behind) > 0 {
		return path.Base(behind[0])
	}
	return path.Base(words[0])
}
