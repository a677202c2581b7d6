package policy

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/shell"
)

// Rules of answers to commands that the runtime is to run, beside those of calls.
const (
	RuleIrreversible = "irreversible" // a word of Irreversible, or an option that is one in all but name
	RuleUnlisted     = "unlisted"     // neither among AutoRuns nor among the capabilities
	RuleUnclear      = "unclear"      // what it runs is not known before it runs
	RuleVariable     = "variable"     // it sets a variable that other programs obey
)

// Bounds of what is judged of one command. Beyond them it is unclear.
const (
	mostSimple = 500 // simple commands
	mostWords  = 5000
)

// JudgeCommand answers for a command that an agent wants the runtime to run: with Allow it
// is run, with Ask a human has to say yes, and otherwise it is refused. Of several simple
// commands the strictest answer counts, whatever runs them: a shell, env, xargs or find.
//
// What a program does is known from its words alone. What a script, a Makefile or a
// program of the tree does is not: the sandbox bounds it, as it bounds the agent.
func (g Guard) JudgeCommand(argv []string) Answer {
	words := make([]word, len(argv))
	size := 0
	for i, a := range argv {
		words[i].text = a
		size += len(a)
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		return Answer{Rule: RuleUnnamed, Words: "Refused: it does not say which program it runs. Name the program as the first word."}
	case hasNUL(Call{Argv: argv}):
		return Answer{Rule: RuleNUL, Words: "Refused: it has a NUL character in it. Write it again without."}
	case slices.ContainsFunc(argv, hasHidden):
		return Answer{Rule: string(CodeControlChar), Words: "Refused: it has a character in it that nobody sees. Write it again without."}
	case size > longest || len(argv) > mostWords:
		return Answer{Rule: RuleUnclear, Words: fmt.Sprintf("Refused: it has more than %d bytes or %d words. Put what is long into a file.", longest, mostWords)}
	}
	j := commandJudge{guard: g}
	j.judgeSimple(words, 0)
	return j.strictest("")
}

// hasHidden reports whether a text has characters that do not show, or that move what
// shows.
func hasHidden(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return isInvisible(c) || unicode.IsControl(c) && c != '\n' && c != '\t' })
}

// commandJudge collects what speaks against running one command.
type commandJudge struct {
	guard   Guard
	answers []Answer
	judged  int // simple commands
}

// strictness orders answers: run, ask, refuse.
func (a Answer) strictness() int {
	switch {
	case a.Allow:
		return 0
	case a.Ask:
		return 1
	}
	return 2
}

// strictest is the first of the strictest answers, without those of a rule.
func (j *commandJudge) strictest(without string) Answer {
	strict := allow(RuleRun, "It is run in the sandbox.")
	for _, a := range j.answers {
		if a.Rule != without && a.strictness() > strict.strictness() {
			strict = a
		}
	}
	return strict
}

func (j *commandJudge) add(a Answer) {
	if a.Ask && j.guard.ReportOnly {
		a = Answer{Rule: RuleReportOnly, Words: "Refused: this loop only reports, and commands that change something are not run. Say in your report what you would run."}
	}
	j.answers = append(j.answers, a)
}

func (j *commandJudge) refuse(rule, format string, args ...any) {
	j.add(Answer{Rule: rule, Words: "Refused: " + fmt.Sprintf(format, args...)})
}

func (j *commandJudge) ask(rule, what string) {
	if slices.Contains(j.guard.Denies, loop.DenyDestructive) && rule == RuleIrreversible {
		j.refuse(RuleDenied, "%s, which the loop's guardrails forbid.", what)
		return
	}
	j.add(Answer{Ask: true, Rule: rule, Words: "A person is asked: " + what + "."})
}

// unclear refuses what cannot be judged before it runs.
func (j *commandJudge) unclear(what string) {
	j.refuse(RuleUnclear, "%s. Name program and arguments in full, one command at a time.", what)
}

// judgeSimple judges one simple command.
func (j *commandJudge) judgeSimple(words []word, depth int) {
	if j.judged++; j.judged > mostSimple || depth > deepest {
		j.unclear("it runs too many commands, or too deep in one another")
		return
	}
	if words[0].open || words[0].text == "" {
		j.unclear("which program it runs is only known when it runs")
		return
	}
	words = slices.Clone(words)
	words[0].text = systemName(words[0].text)
	name := words[0].text
	if isIrreversible(path.Base(name)) {
		j.ask(RuleIrreversible, fmt.Sprintf("`%s` cannot be taken back", path.Base(name)))
	}
	switch {
	case shellsSeen[name]:
		j.judgeShell(words, depth)
	case j.judgeWrapper(words, depth):
	case name == "find":
		j.judgeFind(words, depth)
	case !isIrreversible(path.Base(name)):
		j.judgeProgram(words)
	default:
		j.judgeLeaving(words)
	}
}

// systemFolders are those whose programs are meant by their names alone.
var systemFolders = setOf("/bin", "/usr/bin", "/sbin", "/usr/sbin")

// systemName is the name of a program of the system. Any other one with a folder is
// another program.
func systemName(name string) string {
	if systemFolders[path.Dir(name)] && path.Clean(name) == name {
		return path.Base(name)
	}
	return name
}

// judgeProgram judges a command that runs no other one.
func (j *commandJudge) judgeProgram(words []word) {
	listed, args, found := findAutoRun(words)
	of := commandJudge{guard: j.guard}
	if !found || !listed.prose {
		of.judgeWords(words)
		of.judgeLeaving(words)
	}
	lifted := "" // by a capability
	if j.isCapable(words) {
		lifted = RuleUnlisted
	}
	switch {
	case j.guard.ReportOnly && !(found && listed.Reads):
		of.refuse(RuleReportOnly, "this loop only reports, and `%s` is not among the commands that only read. Say in your report what you would run.", words[0].text)
	case found:
		of.judgeArgs(listed, args)
	case slices.ContainsFunc(words, func(w word) bool { return w.glob }):
		of.unclear("what a pattern at the beginning of a word stands for may be an option: write ./ before it")
	case len(of.answers) == 0:
		of.refuse(RuleUnlisted, "`%s` is not among the commands that are run without a question. Do without; if it cannot be done so, say in your report that a person has to add it to `commands` of the loop's definition.", shownWords(words))
	}
	if a := of.strictest(lifted); !a.Allow {
		j.add(a)
	}
}

// judgeWords asks about a word that means something that cannot be taken back. Texts of
// several words are looked into.
func (j *commandJudge) judgeWords(words []word) {
	for _, w := range words[1:] {
		for _, part := range append(splitLoose(w.text), w.text) {
			if isIrreversible(part) {
				j.ask(RuleIrreversible, fmt.Sprintf("`%s` cannot be taken back", part))
			}
		}
	}
}

// judgeLeaving asks about what leaves the machine, and refuses it where the guardrails do.
func (j *commandJudge) judgeLeaving(words []word) {
	l, found := leavingWords(words)
	if !found {
		l, found, _ = leavingCommand(words, 0)
	}
	if !found {
		return
	}
	if what := j.guard.deniedBy(Call{Argv: wordTexts(words)}, l, true); what != "" {
		j.refuse(RuleDenied, "%s, which the loop's guardrails forbid.", what)
		return
	}
	j.ask(l.rule, fmt.Sprintf("`%s` %s", l.name(), l.does))
}

// isCapable reports whether a command begins with one of the capabilities, by whole words.
func (j *commandJudge) isCapable(words []word) bool {
	return slices.ContainsFunc(j.guard.Capabilities, func(prefix []string) bool {
		if len(prefix) == 0 || len(prefix) > len(words) {
			return false
		}
		for i, p := range prefix {
			if words[i].open || words[i].text != p {
				return false
			}
		}
		return true
	})
}

// gitFlags are options of git itself that change nothing of what a verb does.
var gitFlags = setOf("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs")

// findAutoRun finds the entry of a command, and its arguments.
func findAutoRun(words []word) (c AutoRun, args []word, found bool) {
	rest := words[1:]
	for words[0].text == "git" && len(rest) > 0 && gitFlags[rest[0].text] {
		rest = rest[1:]
	}
	for words[0].text == "npm" && len(rest) > 0 && (rest[0].text == "--silent" || rest[0].text == "-s") {
		rest = rest[1:]
	}
	for _, c := range AutoRuns {
		switch {
		case c.Argv[0] != words[0].text:
		case len(c.Argv) == 1:
			return c, rest, true
		case len(rest) > 0 && !rest[0].open && rest[0].text == c.Argv[1]:
			return c, rest[1:], true
		}
	}
	return AutoRun{}, nil, false
}

// judgeArgs judges the arguments of a command of the list.
func (j *commandJudge) judgeArgs(c AutoRun, args []word) {
	plain, fetched, written := 0, []string{}, c.Argv[0] != "wget"
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.open && !(c.prose && c.names == namesNone && !c.only && c.knows == ""):
			j.unclear(fmt.Sprintf("an argument of `%s` is only known when it runs", c.Argv[0]))
			return
		case w.glob && (c.only || c.Argv[0] == "git"):
			j.unclear("what a pattern at the beginning of a word stands for may be an option: write ./ before it")
			return
		case w.text == "--" && c.Argv[0] == "npm":
			return // What follows is the script's.
		case w.text == "--" && !(c.only && c.knows == ""):
			for _, rest := range args[i+1:] {
				j.judgeArg(c, rest.text, &plain, &fetched)
			}
			i = len(args)
		case len(w.text) > 1 && w.text[0] == '-' && (c.knows != "" || c.names != namesNone):
			i += j.judgeOption(c, args, i, &plain, &fetched, &written)
		default:
			j.judgeArg(c, w.text, &plain, &fetched)
		}
	}
	if c.names == namesURL && !written && len(fetched) > 0 {
		for _, u := range fetched {
			j.judgeWrite(word{text: savedAs(u)})
		}
	}
}

// judgeArg judges an argument that is no option.
func (j *commandJudge) judgeArg(c AutoRun, arg string, plain *int, fetched *[]string) {
	*plain++
	switch {
	case c.Argv[0] == "date" && !strings.HasPrefix(arg, "+"):
		j.refuse(RuleUnlisted, "`date %s` would set the clock.", arg)
	case c.names == namesAll, c.names == namesButFirst && *plain > 1:
		j.judgeRead(word{text: arg})
	case c.names == namesURL:
		*fetched = append(*fetched, arg)
		j.judgeURL(arg)
	}
}

// judgeOption judges the options in one word, and says how many words their values take
// behind it.
func (j *commandJudge) judgeOption(c AutoRun, args []word, i int, plain *int, fetched *[]string, written *bool) int {
	text := args[i].text
	var names, values []string // of each option, its value if it is in the word
	if name, value, joined := strings.Cut(text, "="); strings.HasPrefix(text, "--") {
		names, values = []string{name}, []string{value}
		if o, known := c.findOption(name); joined && known && !o.value && !o.asks && !o.never {
			known = false // As --silent=x.
		}
	} else {
		for at, letter := range text[1:] {
			names = append(names, "-"+string(letter))
			rest := text[1+at+len(string(letter)):]
			values = append(values, rest)
			if o, known := c.findOption("-" + string(letter)); known && o.value {
				break
			}
			values[len(values)-1] = ""
		}
	}
	taken := 0
	for n, name := range names {
		o, known := c.findOption(name)
		switch {
		case !known && c.only:
			j.refuse(RuleUnlisted, "the option `%s` of `%s` is not among those that are run without a question.", name, c.Argv[0])
			continue
		case !known:
			if !strings.HasPrefix(name, "--") || values[n] == "" {
				continue
			}
			if c.names == namesAll { // As --work-tree=/ of a program that has it.
				j.judgeRead(word{text: values[n]})
			}
			continue
		case o.never:
			j.refuse(RuleUnlisted, "`%s %s` is not run for an agent.", c.Argv[0], name)
		case o.asks:
			j.ask(RuleIrreversible, fmt.Sprintf("`%s %s` changes or sends something", strings.Join(c.Argv, " "), name))
		}
		if !o.value {
			continue
		}
		value := word{text: values[n]}
		if value.text == "" && !strings.Contains(text, "=") {
			if i+1 >= len(args) {
				return taken // The program will say so.
			}
			value, taken = args[i+1], 1
			if value.open {
				j.unclear(fmt.Sprintf("the value of `%s` is only known when it runs", name))
				continue
			}
		}
		if o.first {
			*plain++
		}
		*written = *written || name == "-O" || name == "--output-document"
		j.judgeValue(c, o, value, fetched)
	}
	*written = *written || text == "--spider"
	return taken
}

func (j *commandJudge) judgeValue(c AutoRun, o option, value word, fetched *[]string) {
	switch o.kind {
	case 'r':
		j.judgeRead(value)
	case 'w':
		if value.text != "-" {
			j.judgeWrite(value)
		}
	case 'u':
		*fetched = append(*fetched, value.text)
		j.judgeURL(value.text)
	case 'm':
		if m := strings.ToUpper(value.text); m != "GET" && m != "HEAD" && m != "OPTIONS" {
			j.ask(RuleUpload, fmt.Sprintf("`%s` sends a %s", c.Argv[0], m))
		}
	case 't':
		if strings.HasPrefix(value.text, "@") {
			j.refuse(RuleOutside, "`%s` would send a file.", c.Argv[0])
		}
	}
}

// savedAs is the file into which wget puts a URL.
func savedAs(address string) string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	_, name, _ := strings.Cut(rest, "/")
	if name = path.Base("/" + name); name == "/" || strings.HasSuffix(rest, "/") {
		return "index.html"
	}
	return name
}

// judgeURL judges from where something is fetched.
func (j *commandJudge) judgeURL(address string) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		j.refuse(RuleNetwork, "`%s` is not an address of http or https.", address)
		return
	}
	if slices.Contains(j.guard.Denies, loop.DenyNetwork) {
		j.refuse(RuleDenied, "it fetches from %s, and the loop's guardrails forbid the network.", u.Host)
		return
	}
	if a := j.guard.judgeFetch(u.Host); !a.Allow {
		j.add(a)
	}
}

// judgeRead judges a file that is read: one of the tree, or beside it.
func (j *commandJudge) judgeRead(w word) {
	switch {
	case w.open:
		j.unclear("which file it reads is only known when it runs")
	case w.text == "-" || w.text == "" || w.text == "{}" || w.text == "/dev/null" || w.text == "/dev/stdin":
	default:
		if strings.HasPrefix(w.text, "~") {
			j.refuse(RuleOutside, "%s is outside of the tree. Name files of the tree.", w.text)
		} else if _, folder := j.guard.locate(w.text); folder == "" {
			j.refuse(RuleOutside, "%s is outside of the tree. Name files of the tree.", w.text)
		}
	}
}

// judgeWrite judges a file that is written, as an edit of it.
func (j *commandJudge) judgeWrite(w word) {
	switch {
	case w.open || strings.ContainsAny(w.text, "*?[{"):
		j.unclear("which file it writes is only known when it runs")
	case w.text == "/dev/null" || w.text == "/dev/stdout" || w.text == "/dev/stderr":
	case strings.HasPrefix(w.text, "~"):
		j.refuse(RuleOutside, "%s is outside of the tree.", w.text)
	default:
		if a := j.guard.editOne(w.text); !a.Allow {
			j.add(a)
		}
	}
}

// judgeFind judges find: where it looks, what it runs for each file, what it writes.
func (j *commandJudge) judgeFind(words []word, depth int) {
	args := words[1:]
	for _, w := range args {
		if w.open || w.glob {
			j.unclear("an argument of `find` is only known when it runs")
			return
		}
	}
	i := 0
	for i < len(args) && slices.Contains([]string{"-H", "-L", "-P", "--"}, args[i].text) {
		i++
	}
	for ; i < len(args) && !strings.HasPrefix(args[i].text, "-") && args[i].text != "(" && args[i].text != "!"; i++ {
		j.judgeRead(args[i])
	}
	for ; i < len(args); i++ {
		switch args[i].text {
		case "-delete":
			j.ask(RuleIrreversible, "`find -delete` cannot be taken back")
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end].text != ";" && !(args[end].text == "+" && args[end-1].text == "{}") {
				end++
			}
			if end == len(args) || end == i+1 {
				j.unclear("what `find " + args[i].text + "` runs does not end with `;` or `+`")
				return
			}
			run := slices.Clone(args[i+1 : end])
			for n := range run {
				if run[n].text != "{}" && strings.Contains(run[n].text, "{}") || n == 0 && run[n].text == "{}" {
					run[n].open = true
				}
			}
			j.judgeSimple(run, depth+1)
			i = end
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i++; i < len(args) {
				j.judgeWrite(args[i])
			}
		case "-files0-from":
			if i++; i < len(args) {
				j.judgeRead(args[i])
			}
		}
	}
}

// judgeWrapper judges what stands behind a program that runs another one. It is false for
// a program that does not.
func (j *commandJudge) judgeWrapper(words []word, depth int) bool {
	if words[0].text == "env" && len(words) == 1 {
		return false
	}
	texts := wordTexts(words)
	if _, wraps := shell.Behind(texts); !wraps && !carriers[words[0].text] || words[0].text == "find" {
		return false
	}
	if j.isCapable(words) && !carriers[words[0].text] {
		return false // As flock of a definition that names it.
	}
	at, assigned, clear := shell.Through(texts)
	if !clear || slices.ContainsFunc(words[:at], func(w word) bool { return w.open || w.glob }) {
		j.unclear(fmt.Sprintf("what `%s` runs is not clear", words[0].text))
		return true
	}
	for _, a := range assigned {
		name, _, _ := strings.Cut(a, "=")
		j.judgeVariable(name)
	}
	behind := words[at:]
	switch {
	case words[0].text == "xargs" && len(behind) == 0:
		return true // It prints what it reads.
	case words[0].text == "xargs":
		j.judgeSimple(append(slices.Clone(behind), word{open: true}), depth+1)
	case len(behind) == 0 && words[0].text != "env":
		j.unclear(fmt.Sprintf("`%s` runs nothing", words[0].text))
	case len(behind) > 0:
		j.judgeSimple(behind, depth+1)
	}
	return true
}

// RunsOther reports whether a command runs what stands behind its first words, so that
// these alone say nothing. A script that a shell is to run is named by its file.
func RunsOther(words []string) bool {
	_, wraps := shell.Behind(words)
	script := shellsSeen[words[0]] && len(words) > 1 && !strings.HasPrefix(words[1], "-")
	return (wraps || carriers[words[0]]) && !script
}

// harmless are variables by which programs only choose how they print.
var harmless = setOf("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_TIME", "TZ", "CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "NODE_ENV", "TERM")

func (j *commandJudge) judgeVariable(name string) {
	if !harmless[name] {
		j.refuse(RuleVariable, "it sets the variable %s, which other programs obey.", name)
	}
}

// shellsSeen are the shells whose text is read as the shell reads it.
var shellsSeen = setOf("sh", "bash", "dash", "ash")

// judgeShell judges the text that a shell is given.
func (j *commandJudge) judgeShell(words []word, depth int) {
	text, i := false, 1
	for ; i < len(words); i++ {
		w := words[i].text
		if words[i].open {
			j.unclear("what the shell is to do is only known when it runs")
			return
		}
		if w == "--" || len(w) < 2 || w[0] != '-' && w[0] != '+' {
			break
		}
		switch letters := w[1:]; {
		case w == "--login" || w == "--noprofile" || w == "--norc" || w == "--posix":
		case strings.HasSuffix(letters, "o") && strings.Trim(letters, "celuvxo") == "" && i+1 < len(words):
			text = text || strings.Contains(letters, "c")
			i++ // The name of a setting, as pipefail.
		case strings.Trim(letters, "celuvx") == "":
			text = text || strings.Contains(letters, "c")
		default:
			j.unclear(fmt.Sprintf("the option `%s` of a shell", w))
			return
		}
	}
	if i < len(words) && words[i].text == "--" {
		i++
	}
	switch {
	case text && i < len(words) && !words[i].open:
		j.judgeText(words[i].text, depth+1)
	case j.isCapable(words):
		j.judgeProgram(words)
	default:
		j.unclear("the shell reads its commands from somewhere else")
	}
}

// judgeText judges a text for the shell: every simple command in it, at any depth.
func (j *commandJudge) judgeText(text string, depth int) {
	file, err := shell.ParseBash(text)
	if err != nil || len(text) > longest {
		j.unclear("the text for the shell cannot be read")
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			for _, r := range n.Redirs {
				j.judgeRedirect(r)
			}
			if n.Coprocess {
				j.unclear("a coprocess")
			}
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				if a.Name != nil {
					j.judgeVariable(a.Name.Value)
				}
			}
			var words []word
			for _, w := range n.Args {
				words = append(words, shellWord(w, len(words) == 0))
			}
			if len(words) > 0 {
				j.judgeSimple(words, depth)
			}
		case *syntax.ParamExp:
			if !isLookup(n) {
				j.unclear("a variable that is more than looked up")
			}
		case nil, *syntax.File, *syntax.Comment, *syntax.Redirect, *syntax.Assign, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted,
			*syntax.CmdSubst, *syntax.ProcSubst, *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.TimeClause:
		default:
			j.unclear("the text for the shell has more in it than commands, pipes and conditions")
		}
		return true
	})
}

// shellWord is wordOf with what only a shell does to a word that is no program.
func shellWord(w *syntax.Word, first bool) word {
	of := wordOf(w, first)
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			of.open = of.open || strings.ContainsAny(p.Value, "{")
		case *syntax.SglQuoted:
			of.open = of.open || p.Dollar
		case *syntax.DblQuoted:
			of.open = of.open || p.Dollar
		}
	}
	if of.text == "{}" { // Of find: braces around nothing stay as they are.
		of.open = false
	}
	return of
}

// isLookup reports whether a variable is only looked up.
func isLookup(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// judgeRedirect judges where a command reads from and writes to.
func (j *commandJudge) judgeRedirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		j.judgeRead(shellWord(r.Word, false))
		return
	case syntax.DplIn, syntax.DplOut:
		if w := shellWord(r.Word, false); w.open {
			j.unclear("where it writes is only known when it runs")
		} else if strings.Trim(w.text, "0123456789-") != "" {
			j.judgeWrite(w)
		}
		return
	}
	j.judgeWrite(shellWord(r.Word, false))
}

// shownWords are the first words of a command, for people.
func shownWords(words []word) string {
	const shown, longestShown = 2, 60
	text := strings.Join(wordTexts(words[:min(len(words), shown)]), " ")
	return strings.ToValidUTF8(text[:min(len(text), longestShown)], "")
}
