package judging

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

// moreWrappers are programs that run the command in their arguments, and that package
// shell does not know. The text lists their options that take the next word.
var moreWrappers = map[string]string{
	"cross-env": "", "cross-env-shell": "", "dotenv": "-e -c -f", "env-cmd": "-f -e", "c8": "-r --reporter -o", "nyc": "-r --reporter", "busybox": "", "catchsegv": "",
	"valgrind": "", "strace": "-e -o -p -s", "gtimeout": "-k -s", "retry": "-n -t", "ccache": "", "sccache": "", "direnv": "", "op": "", "doppler": "", "poe": "",
	"dbus-run-session": "", "fakeroot": "", "eatmydata": "", "nsenter": "", "systemd-run": "-p -u", "!": "", "then": "", "do": "", "else": "", "parallel": "-j -n -N",
	"rtk": "", "ts": "", "script": "-c", "watch": "-n -d", "bwrap": "", "firejail": "", "setpriv": "", "runuser": "-u -g", "su": "-c",
}

// wordsBehind returns the command in the arguments of a program that runs another
// command, such as env or timeout.
func (f *follower) wordsBehind(sh *shellState, words []string) ([]string, bool) {
	if behind, ok := shell.Behind(words); ok {
		return behind, true
	}
	valued, ok := moreWrappers[path.Base(words[0])]
	if !ok || path.Base(words[0]) == "poe" {
		return nil, false
	}
	args := words[1:]
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "--":
			return args[i+1:], true
		case strings.HasPrefix(w, "-"):
			if slices.Contains(strings.Fields(valued), w) {
				i++
			}
		case w == "exec" || w == "run":
		case strings.Contains(w, "=") && !strings.Contains(w, "/"):
		default:
			return args[i:], true
		}
	}
	return nil, true
}

// followWrapped follows the command of a wrapper, in the folder that an option names.
func (f *follower) followWrapped(sh *shellState, words, behind []string, in feed) {
	if len(behind) == 0 {
		return
	}
	own := words[:max(0, len(words)-len(behind))]
	inner := sh
	for i, w := range own {
		_, value, long := strings.Cut(w, "=")
		switch {
		case path.Base(words[0]) == "flock":
		case (w == "-C" || w == "-D" || w == "--chdir" || w == "--wd") && i+1 < len(own):
			inner = sh.movedTo(own[i+1])
		case long && (strings.HasPrefix(w, "--chdir=") || strings.HasPrefix(w, "--wd=")):
			inner = sh.movedTo(value)
		case strings.HasPrefix(w, "-C") && len(w) > 2:
			inner = sh.movedTo(w[2:])
		}
	}
	if path.Base(words[0]) == "xargs" || path.Base(words[0]) == "parallel" {
		f.followXargs(inner, behind, in)
		return
	}
	f.followCommand(inner, behind, in)
}

// movedTo returns the shell for a command that may run in one more folder.
func (sh *shellState) movedTo(dir string) *shellState {
	c := *sh
	c.dirs = slices.Clone(sh.dirs)
	c.moveTo(dir)
	return &c
}

// followXargs follows a command that gets words from standard input.
func (f *follower) followXargs(sh *shellState, behind []string, in feed) {
	var names []string // that it reads, as globs, if another command lists them
	if in.from != nil {
		syntax.Walk(in.from, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			names = append(names, f.listedNames(sh, f.expander(sh).firstValues(call.Args))...)
			return false
		})
	}
	base := path.Base(behind[0])
	_, _, known := interpreterOf(behind[0])
	switch {
	case slices.Contains(behind, "{}") || slices.Contains(behind, "%"):
		for _, name := range names {
			words := slices.Clone(behind)
			for i, w := range words {
				words[i] = strings.ReplaceAll(w, "{}", name)
			}
			f.followCommand(sh, words, feed{})
		}
	case len(names) > 0:
		f.followCommand(sh, append(slices.Clone(behind), names...), feed{})
		for _, name := range names[1:] {
			f.followCommand(sh, append(slices.Clone(behind), name), feed{})
		}
	case len(behind) == 1 && in.any && (slices.Contains(shells, base) || known && !slices.Contains(inlineOnly, base)):
		f.reportLost(sh.where, "the names of what "+base+" runs are computed")
	default:
		f.followCommand(sh, behind, feed{})
	}
}

// anyFolder is a pattern of git's, in which a star stands for folders too.
func anyFolder(pattern string) string {
	if rest, ok := strings.CutPrefix(pattern, "*"); ok && !strings.Contains(rest, "/") {
		return "**/*" + rest
	}
	return pattern
}

// filesFound returns the files that find finds, as globs.
func filesFound(args []string) []string {
	var dirs, patterns []string
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case (w == "-name" || w == "-iname") && i+1 < len(args):
			patterns = append(patterns, args[i+1])
			i++
		case (w == "-path" || w == "-ipath" || w == "-wholename") && i+1 < len(args):
			i++
		case strings.HasPrefix(w, "-") || w == "(" || w == "!":
			if len(dirs) == 0 {
				dirs = append(dirs, ".")
			}
		case len(patterns) == 0 && !slices.ContainsFunc(args[:i], func(w string) bool { return strings.HasPrefix(w, "-") }):
			dirs = append(dirs, w)
		}
	}
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	var globs []string
	for _, dir := range dirs {
		for _, p := range patterns {
			globs = append(globs, path.Join(dir, "**", p))
		}
	}
	return globs
}

// followFind follows the commands that find runs.
func (f *follower) followFind(sh *shellState, args []string) {
	for i, w := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w) {
			continue
		}
		var words []string
		for _, w := range args[i+1:] {
			if w == ";" || w == "+" {
				break
			}
			words = append(words, w)
		}
		for _, name := range filesFound(args[:i]) {
			if !slices.Contains(words, "{}") {
				f.followCommand(sh, words, feed{})
				break
			}
			named := slices.Clone(words)
			for k, w := range named {
				named[k] = strings.ReplaceAll(w, "{}", name)
			}
			f.followCommand(sh, named, feed{})
		}
	}
}
