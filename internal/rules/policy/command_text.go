package policy

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

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
	if len(args) > 0 && (strings.HasPrefix(args[0].text, "-D") || strings.HasPrefix(args[0].text, "-O") || args[0].text == "-f") {
		j.unclear(fmt.Sprintf("the option `%s` of find before its folders", args[0].text))
	}
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
			for end < len(args) && args[end].text != ";" && (args[end].text != "+" || args[end-1].text != "{}") {
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
	if packageRunners[words[0].text] || j.isCapable(words) && !carriers[words[0].text] {
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

// packageRunners run a program of a package by its name, which is a part of what a
// capability names.
var packageRunners = setOf("npx", "pnpx", "bunx", "uvx", "pipx")

// RunsOther reports whether a command runs what stands behind its first words, so that
// these alone say nothing. A script that a shell is to run is named by its file.
func RunsOther(words []string) bool {
	_, wraps := shell.Behind(words)
	script := shellsSeen[words[0]] && len(words) > 1 && !strings.HasPrefix(words[1], "-")
	return (wraps || carriers[words[0]]) && !script && (!packageRunners[words[0]] || len(words) == 1)
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
		case strings.Trim(letters, "celuvx") == "" && (w[0] == '-' || !strings.Contains(letters, "c")):
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
	w := shellWord(r.Word, false)
	number := !w.open && strings.Trim(w.text, "0123456789-") == ""
	switch op := r.Op; {
	case op == syntax.Hdoc, op == syntax.DashHdoc, op == syntax.WordHdoc:
	case op == syntax.RdrIn:
		j.judgeRead(w)
	case (op == syntax.DplIn || op == syntax.DplOut) && number: // As 2>&1.
	default:
		j.judgeWrite(w)
	}
}
