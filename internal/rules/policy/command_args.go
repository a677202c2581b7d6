package policy

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// judgeArgs judges the arguments of a command of the list.
func (j *commandJudge) judgeArgs(c AutoRun, args []word) {
	if c.Argv[0] == "npm" && slices.ContainsFunc(args, func(w word) bool { return strings.ContainsAny(w.text, "$`") }) {
		j.unclear("npm gives its arguments to a shell, and some of its versions let that expand them")
	}
	plain, fetched, written := 0, []string{}, c.Argv[0] != "wget"
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.open && (!c.prose || c.names != namesNone || c.knows != ""):
			j.unclear(fmt.Sprintf("an argument of `%s` is only known when it runs", c.Argv[0]))
			return
		case w.glob && (c.only || c.Argv[0] == "git"):
			j.unclear("what a pattern at the beginning of a word stands for may be an option: write ./ before it")
			return
		case w.text == "--" && c.Argv[0] == "npm":
			return // What follows is the script's.
		case w.text == "--":
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
	text, flagged := args[i].text, false
	var names, values []string // of each option, its value if it is in the word
	if name, value, joined := strings.Cut(text, "="); strings.HasPrefix(text, "--") {
		names, values = []string{name}, []string{value}
		flagged = joined // As --silent=x.
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
		known = known && (o.value || o.asks || o.never || !flagged)
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
