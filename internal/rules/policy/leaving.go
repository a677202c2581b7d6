package policy

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// leavingLine finds what leaves the machine in a line for a shell. Where the
// line is not understood, the words that would be asked about are enough.
func leavingLine(line string) (leaving, bool) { return leavingText(line, 0) }

// leavingArgv is leavingLine for a program without a shell.
func leavingArgv(argv []string) (leaving, bool) {
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i].text = a
	}
	l, found, _ := leavingCommand(words, 0)
	return l, found
}

func leavingText(text string, depth int) (leaving, bool) {
	s := readScript(text, depth)
	unclear, reads := s.unclear, false
	for _, c := range s.commands {
		l, found, opaque := leavingCommand(c, depth)
		if found {
			return l, true
		}
		unclear = unclear || opaque
		reads = reads || readsScript(c)
	}
	for _, here := range s.here {
		if l, found := leavingText(here, depth+1); found && (reads || strings.Contains(here, "$(")) {
			return l, true
		}
	}
	if unclear || reads && strings.Contains(text, "|") {
		return leavingLoose(text)
	}
	return leaving{}, false
}

// readsScript reports a shell that gets its line from standard input.
func readsScript(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return shells[path.Base(w.text)] })
}

// leavingCommand looks at one command. Opaque means that it cannot be told
// which one it is.
func leavingCommand(words []word, depth int) (l leaving, found, opaque bool) {
	for len(words) > 0 && (grammar[words[0].text] || isAssignment(words[0].text)) {
		words = words[1:]
	}
	if len(words) == 0 {
		return leaving{}, false, false
	}
	if words[0].open {
		return leaving{}, false, true
	}
	if l, found := leavingWords(words); found {
		return l, true, false
	}
	switch name := path.Base(words[0].text); {
	case carriers[name]:
		return leavingCarried(words[1:], depth)
	case interpreters.MatchString(name):
		l, found := leavingLoose(joinWords(words[1:]))
		return l, found, false
	default:
		return leaving{}, false, len(leavings[name]) > 0 && len(words) > 1 && words[1].open
	}
}

// mostCarried is how many words of a command are tried as the first of another.
// More of them are only searched for words.
const mostCarried = 256

// leavingCarried looks at what a command runs that runs others: from each of
// its words on, for its options are its own, and in each of its words.
func leavingCarried(words []word, depth int) (leaving, bool, bool) {
	opaque := len(words) > mostCarried
	for i, w := range words[:min(len(words), mostCarried)] {
		if l, found := leavingWords(words[i:]); found {
			return l, true, false
		}
		if strings.ContainsAny(w.text, " \t\n;|&$`(") {
			if l, found := leavingText(w.text, depth+1); found {
				return l, true, false
			}
		}
		opaque = opaque || w.open || interpreters.MatchString(path.Base(w.text))
	}
	return leaving{}, false, opaque
}

// leavingWords compares a command with what is known to leave.
func leavingWords(words []word) (leaving, bool) {
	args := wordTexts(words[1:])
	for _, l := range leavings[path.Base(words[0].text)] {
		if l.matchesArgs(args) {
			return l, true
		}
	}
	return leaving{}, false
}

func (l leaving) matchesArgs(args []string) bool {
	switch l.program {
	case "gh", "glab", "hub", "tea":
		return forgeWrites(args)
	case "curl", "wget", "http", "https", "xh":
		return isUpload(l.program, args)
	case "rsync", "scp", "rclone":
		return slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, ":") && a[0] != '-' && a[0] != '/' && a[0] != '.' })
	case "docker":
		if len(args) > 1 && (args[0] == "build" || args[0] == "buildx") && slices.Contains(args, "--push") {
			return true
		}
	case "git":
		args = gitVerb(args)
	}
	if l.verb == "" {
		return slices.ContainsFunc(args, func(a string) bool { return a != "-V" && a != "--version" && a != "--help" && a != "help" })
	}
	return beginsWith(args, strings.Fields(l.verb), l.program != "git")
}

// beginsWith reports whether the arguments that are no options begin with a verb.
// Where options come first, the value of one may come before the verb.
func beginsWith(args, verb []string, valued bool) bool {
	if len(args) >= len(verb) && slices.Equal(args[:len(verb)], verb) {
		return true
	}
	first := len(args) > 0 && strings.HasPrefix(args[0], "-")
	plain := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	for skip := 0; skip <= 1 && len(plain) >= skip+len(verb); skip++ {
		if slices.Equal(plain[skip:skip+len(verb)], verb) {
			return true
		}
		if !first || !valued {
			break
		}
	}
	return false
}

// gitVerb leaves git's own options out. A name that it is told to give to
// something else counts as that.
func gitVerb(args []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		n := 1
		switch args[0] {
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix":
			n = min(2, len(args))
		}
		if value := strings.ToLower(args[n-1]); strings.HasPrefix(value, "alias.") {
			_, meaning, _ := strings.Cut(value, "=")
			return strings.Fields(strings.TrimPrefix(meaning, "!git "))
		}
		args = args[n:]
	}
	return args
}

// forgeReads are verbs of the programs of forges that change nothing.
var forgeReads = setOf("view", "list", "ls", "status", "diff", "checks", "checkout", "download", "clone", "watch", "verify", "help", "search", "completion", "version",
	"show", "trace", "get", "token", "set-default", "repos", "issues", "prs", "commits", "code")

func forgeWrites(args []string) bool {
	plain := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	switch {
	case len(plain) == 0 || forgeReads[plain[0]] || plain[0] == "auth" || plain[0] == "config":
		return false
	case plain[0] == "api":
		return hasWriteOption(args, "-X", "--method", "-f", "--raw-field", "-F", "--field", "--input")
	}
	return len(plain) < 2 || !forgeReads[plain[1]] && (len(plain) < 3 || !strings.HasPrefix(args[0], "-") || !forgeReads[plain[2]])
}

// isUpload reports whether a request writes to a host other than this machine.
func isUpload(program string, args []string) bool {
	if len(args) == 0 || onlyLoopback(args) {
		return false
	}
	switch program {
	case "curl":
		return !slices.Contains(args, "-G") && !slices.Contains(args, "--get") &&
			hasWriteOption(args, "-X", "--request", "-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii", "-F", "--form", "--form-string", "-T", "--upload-file", "--json")
	case "wget":
		return hasWriteOption(args, "--method", "", "--post-data", "--post-file", "--body-data", "--body-file")
	}
	return slices.ContainsFunc(args, func(a string) bool {
		return writeMethods[strings.ToUpper(a)] || !strings.HasPrefix(a, "-") && isAssignment(a)
	})
}

var writeMethods = setOf("POST", "PUT", "PATCH", "DELETE")

// clusters are options of one letter in a row, the last perhaps with a value.
var clusters = lazyregexp.New(`^-[a-zA-Z]*?([XdFTf])(.*)$`)

// hasWriteOption reports whether one of the options sends something, or a method that
// does is named. The first two options name the method.
func hasWriteOption(args []string, options ...string) bool {
	for i, a := range args {
		name, value, joined := strings.Cut(a, "=")
		if m := clusters.FindStringSubmatch(a); m != nil && !strings.HasPrefix(a, "--") {
			name, value, joined = "-"+m[1], m[2], m[2] != ""
		}
		at := slices.Index(options, name)
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if at >= 2 || at >= 0 && writeMethods[strings.ToUpper(value)] {
			return true
		}
	}
	return false
}

// onlyLoopback reports whether the arguments name hosts, and all are the
// machine itself.
func onlyLoopback(args []string) bool {
	any := false
	for _, a := range args {
		var host string
		if u, err := url.Parse(a); err == nil && u.Host != "" {
			host = u.Host
		} else if strings.Contains(a, "://") {
			return false
		} else {
			host, _, _ = strings.Cut(a, "/")
		}
		switch {
		case host == "" || host[0] == '-' || host[0] == '@':
		case isLoopback(host):
			any = true
		case strings.Contains(a, "://") || hostLike.MatchString(a):
			return false
		}
	}
	return any
}

// hostLike is an argument that would be taken for a URL without its beginning.
var hostLike = lazyregexp.New(`^[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*\.[a-zA-Z]{2,}(:[0-9]+)?/`)

// leavingLoose finds the words of something that leaves, in any order and with
// anything between them.
func leavingLoose(text string) (leaving, bool) {
	words := strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' })
	all, seen := setOf(words...), map[string]bool{}
	for i, w := range words {
		if seen[w] {
			continue
		}
		seen[w] = true
		for _, l := range leavings[w] {
			if l.matchesWords(all, words[i+1:]) {
				return l, true
			}
		}
	}
	return leaving{}, false
}

// matchesWords is matchesArgs for a text whose words are known and not their
// order: all words, and those after the program.
func (l leaving) matchesWords(all map[string]bool, rest []string) bool {
	switch l.rule {
	case RuleUpload:
		return slices.ContainsFunc(rest, func(a string) bool {
			return writeMethods[a] || a == "-d" || strings.HasPrefix(a, "--data") || a == "-F" || a == "-T" || a == "--json"
		})
	case RuleForge:
		return l.program == "gh" && l.matchesArgs(rest)
	}
	if l.verb == "" {
		return l.rule != RulePush && len(rest) > 0 // The names of programs that send mail are everyday words.
	}
	return !slices.ContainsFunc(strings.Fields(l.verb), func(part string) bool { return !all[part] })
}

// isAssignment reports whether a text is NAME=VALUE, as before a command.
func isAssignment(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+") == "" && (name[0] < '0' || name[0] > '9')
}

func wordTexts(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return all
}

func joinWords(words []word) string { return strings.Join(wordTexts(words), " ") }
