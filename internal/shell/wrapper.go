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
}

var wrappers = map[string]wrapper{
	"builtin":  {},
	"chronic":  {},
	"chrt":     {valued: "-T -P -D --sched-runtime --sched-period --sched-deadline", skipped: 1},
	"command":  {},
	"doas":     {valued: "-u -C"},
	"env":      {valued: "-u -C --unset --chdir"},
	"exec":     {valued: "-a"},
	"flock":    {valued: "-w -E --timeout --conflict-exit-code", skipped: 1},
	"ionice":   {valued: "-c -n --class --classdata"},
	"nice":     {valued: "-n --adjustment"},
	"nohup":    {},
	"setarch":  {},
	"setsid":   {},
	"stdbuf":   {valued: "-i -o -e --input --output --error"},
	"sudo":     {valued: "-u -g -C -D -h -p -r -t -T -U --user --group --chdir --host --prompt"},
	"taskset":  {skipped: 1},
	"time":     {valued: "-f -o --format --output"},
	"timeout":  {valued: "-k -s --kill-after --signal", skipped: 1},
	"unbuffer": {},
	"unshare":  {valued: "-S -G -R -w --setuid --setgid --root --wd"},
	"xargs": {valued: "-n -P -I -L -d -a -s -E --max-args --max-procs --max-lines --delimiter --arg-file --max-chars " +
		"--process-slot-var"},
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
