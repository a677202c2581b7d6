package shell

import (
	"path"
	"slices"
	"strings"
)

// wrapper runs what stands behind it, behind options and first arguments.
type wrapper struct {
	valued  string // options that take the next word
	skipped int    // arguments before the program
	sees    string // options with which Through sees through it, those with a value with a colon; empty: it does not
	assigns bool   // NAME=VALUE may stand before the program
}

var wrappers = map[string]wrapper{
	"builtin":  {sees: "--"},
	"chronic":  {sees: "--"},
	"chrt":     {valued: "-T -P -D --sched-runtime --sched-period --sched-deadline", skipped: 1},
	"command":  {sees: "-- -p -v -V"},
	"doas":     {valued: "-u -C"},
	"env":      {valued: "-u -C --unset --chdir", sees: "-- -i --ignore-environment -u: --unset:", assigns: true},
	"exec":     {valued: "-a", sees: "--"},
	"flock":    {valued: "-w -E --timeout --conflict-exit-code", skipped: 1},
	"ionice":   {valued: "-c -n --class --classdata", sees: "-- -c: -n: -t"},
	"nice":     {valued: "-n --adjustment", sees: "-- -n: --adjustment:"},
	"nohup":    {sees: "--"},
	"setarch":  {},
	"setsid":   {sees: "-- -w --wait"},
	"stdbuf":   {valued: "-i -o -e --input --output --error", sees: "-- -i: -o: -e: --input: --output: --error:"},
	"sudo":     {valued: "-u -g -C -D -h -p -r -t -T -U --user --group --chdir --host --prompt", sees: "-- -n -H -E -u: -g: --user: --group:", assigns: true},
	"taskset":  {skipped: 1},
	"time":     {valued: "-f -o --format --output", sees: "-- -p -v -f: --format:"},
	"timeout":  {valued: "-k -s --kill-after --signal", skipped: 1, sees: "-- -k: -s: -v --kill-after: --signal: --foreground --preserve-status --verbose"},
	"unbuffer": {},
	"unshare":  {valued: "-S -G -R -w --setuid --setgid --root --wd"},
	"xargs": {
		valued: "-n -P -I -L -d -a -s -E --max-args --max-procs --max-lines --delimiter --arg-file --max-chars --process-slot-var",
		sees:   "-- -0 -r -t -x -n: -P: -L: -d: -s: -E: --null --no-run-if-empty --verbose --max-args: --max-procs: --max-lines: --delimiter: --max-chars:",
	},
	"xvfb-run": {valued: "-s -n -e -f -p -w --server-args --server-num --error-file --auth-file --wait"},
}

// Behind are the words of the command that a simple command runs behind its
// first word: those behind nice, env, timeout and the like, with the options
// and arguments of these. It is not ok of a first word that runs nothing that
// stands behind it. Words that only the shell knows are empty, and are taken for
// options.
func Behind(words []string) (behind []string, ok bool) {
	if len(words) == 0 {
		return nil, false
	}
	w, ok := wrappers[path.Base(words[0])]
	if !ok {
		return nil, false
	}
	return w.behind(words[1:]), true
}

func (w wrapper) behind(words []string) []string {
	valued, skipped := strings.Fields(w.valued), w.skipped
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case (word == "-S" || word == "--split-string") && !slices.Contains(valued, word) && i+1 < len(words):
			// Of env: the next word holds several.
			words = append(strings.Fields(words[i+1]), words[i+2:]...)
			i = -1
		case strings.HasPrefix(word, "-"):
			if takesNext(valued, word) {
				i++
			}
		case word == "" || isNumber(word):
			skipped = max(0, skipped-1)
		case strings.Contains(word, "="):
		case skipped > 0:
			skipped--
		default:
			return words[i:]
		}
	}
	return nil
}

// takesNext reports whether the value of an option stands in the next word: that
// of a long one, or of the last of several letters.
func takesNext(valued []string, word string) bool {
	if strings.HasPrefix(word, "--") {
		return slices.Contains(valued, word)
	}
	for i, letter := range word[1:] {
		if slices.Contains(valued, "-"+string(letter)) {
			return i+2 == len(word) // Otherwise its value is the rest of the word.
		}
	}
	return false
}

// isNumber tells a number or a time, which no program is named.
func isNumber(word string) bool {
	return strings.Trim(word, "0123456789.") == "" || word[0] <= '9' && strings.Trim(word, "0123456789.smhd") == ""
}

// Through is Behind for whoever must not be deceived: the number of the word at
// which the command begins that a simple command runs, with what is assigned
// before it. It is not clear what of a first word that runs nothing, or with an
// option that may do something else. At is the number of words if nothing is run.
func Through(words []string) (at int, assigned []string, clear bool) {
	if len(words) == 0 || wrappers[words[0]].sees == "" {
		return 0, nil, false
	}
	w := wrappers[words[0]]
	sees, skipped, options := strings.Fields(w.sees), w.skipped, true
	for at = 1; at < len(words); at++ {
		switch word := words[at]; {
		case options && word == "--":
			options = false
		case options && strings.HasPrefix(word, "-") && word != "-":
			takes, known := seesOption(sees, word)
			if !known && (words[0] != "nice" || !isNumber(word[1:])) {
				return 0, nil, false
			}
			if takes {
				at++
			}
		case w.assigns && strings.Contains(word, "="):
			options = false
			assigned = append(assigned, word)
		case skipped > 0:
			options, skipped = false, skipped-1
		default:
			return at, assigned, true
		}
	}
	if at > len(words) {
		return 0, nil, false // The value of the last option is missing.
	}
	return at, assigned, true
}

// seesOption reports whether all options of a word are among those that are known, and
// whether the next word is the value of the last one.
func seesOption(known []string, word string) (takesNext, ok bool) {
	if name, _, valued := strings.Cut(word, "="); strings.HasPrefix(word, "--") {
		return !valued && slices.Contains(known, name+":"), slices.Contains(known, name+":") || !valued && slices.Contains(known, name)
	}
	for i, letter := range word[1:] {
		if slices.Contains(known, "-"+string(letter)+":") {
			return i+1+len(string(letter)) == len(word), true // Otherwise its value is the rest of the word.
		}
		if !slices.Contains(known, "-"+string(letter)) {
			return false, false
		}
	}
	return false, true
}
