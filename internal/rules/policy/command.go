package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
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
	return g.unlessRejected(argv, j.strictest(""))
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
	case j.guard.ReportOnly && (!found || !listed.Reads):
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

// shownWords are the first words of a command, for people.
func shownWords(words []word) string {
	const shown, longestShown = 2, 60
	text := strings.Join(wordTexts(words[:min(len(words), shown)]), " ")
	return strings.ToValidUTF8(text[:min(len(text), longestShown)], "")
}
