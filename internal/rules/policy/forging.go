package policy

import (
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// Testing reports whether a change touches a file of tests or their
// configuration, also one that holds tests beside what they test, as is usual
// in Rust. Such a change may rename tests.
func Testing(c Change) bool {
	return ofTests(c.Path) || path.Ext(c.Path) == ".rs" && strings.Contains(c.Old.Text, "#[cfg(test)]")
}

func ofTests(name string) bool {
	for _, g := range guardsOf(name) {
		if g.group == "tests" || g.group == "test_config" {
			return true
		}
	}
	return false
}

// Suspect is an added line by which code under test can end its tests early or
// speak for their runner. Most such lines are honest: it is for a person to
// look at.
type Suspect struct {
	Path string
	Line int    // from 1
	What string // it does, in words
	Text string
}

// forger is a kind of lines of some languages.
type forger struct {
	what string
	exts string // with a space around each; empty: all of sources
	find *lazyregexp.Regexp
}

// sources are the languages whose lines are looked at.
const sources = " .go .py .js .mjs .cjs .ts .mts .cts .jsx .tsx .rs .java .kt .kts .scala .groovy .c .cc .cpp .cxx .h .hpp .m .cs .rb .php .swift .ex .exs .lua .pl .pm "

// forging is a list of usual ways. Who wants to hide one can.
var forging = []forger{
	{"it runs before the tests", " .go ", lazyregexp.New(`^\s*func\s+init\s*\(\s*\)|go:linkname|^\s*import\s+"C"`)},
	{"it can end the process", " .go ", lazyregexp.New(`\b(?:os|syscall|unix)\.Exit\s*\(|\bruntime\.Goexit\s*\(|\b(?:syscall|unix)\.(?:Kill|Exec|RawSyscall6?|Syscall[69]?)\s*\(`)},
	{"it can end the process", " .py ", lazyregexp.New(`\bos\.(?:_exit|abort|kill|exec[lv]p?e?)\s*\(|\bsys\.exit\s*\(|\bSystemExit\b|\batexit\b|(?:^|[;:])\s*(?:exit|quit)\s*\(|\bfrom\s+os\s+import\b.*\b_exit\b`)},
	{"it can end the process", " .js .mjs .cjs .ts .mts .cts .jsx .tsx ", lazyregexp.New(`\bprocess\s*\.\s*(?:exit|reallyExit|abort|kill)\b|\bprocess\.(?:on|once)\s*\(\s*.(?:exit|beforeExit)\b|\bDeno\.exit\b`)},
	{"it can end the process", " .java .kt .kts .scala .groovy ", lazyregexp.New(`\bSystem\.exit\s*\(|\.halt\s*\(|\bexitProcess\s*\(|\baddShutdownHook\b`)},
	{"it can end the process", " .rs ", lazyregexp.New(`\bprocess::(?:exit|abort)\b|\blibc::(?:_?exit|abort|kill|atexit)\b|#\[ctor`)},
	{"it can end the process", " .c .cc .cpp .cxx .h .hpp .m .swift .php .lua .pl .pm ", lazyregexp.New(`\b(?:_?exit|_Exit|quick_exit|at_quick_exit|atexit|abort)\s*\(|\bconstructor\b`)},
	{"it can end the process", " .cs ", lazyregexp.New(`\bEnvironment\.(?:Exit|FailFast)\b|\bProcessExit\b`)},
	{"it can end the process", " .rb ", lazyregexp.New(`(?:^|[;\s])(?:exit!?|abort|at_exit)(?:[\s({]|$)|\bProcess\.(?:exit|kill)\b`)},
	{"it can end the process", " .ex .exs ", lazyregexp.New(`\bSystem\.(?:halt|stop)\b`)},
	{"it writes to the stream of the runner", " .go ", lazyregexp.New(`\b(?:syscall|unix)\.(?:Write|Dup[23]?)\s*\(|\bos\.NewFile\s*\(`)},
	{"it writes to the stream of the runner", " .py ", lazyregexp.New(`\bos\.(?:write|dup2?|fdopen)\s*\(|\bsys\.__std(?:out|err)__`)},
	{"it writes to the stream of the runner", " .js .mjs .cjs .ts .mts .cts .jsx .tsx ", lazyregexp.New(`\bwriteSync\s*\(\s*[12]\b|\bprocess\.std(?:out|err)\b`)},
	{"it writes to the stream of the runner", " .java .kt .kts .scala .groovy ", lazyregexp.New(`\bSystem\.set(?:Out|Err)\b|\bFileDescriptor\.(?:out|err)\b`)},
	{"it writes to the stream of the runner", " .rs .c .cc .cpp .cxx .h .hpp .m ", lazyregexp.New(`\b(?:libc::)?write\s*\(\s*[12]\s*,|\bfrom_raw_fd\s*\(|\bdup2\s*\(`)},
	{"it writes to the stream of the runner", "", lazyregexp.New(`/dev/(?:stdout|stderr|fd/|tty)|/proc/[^\s"']*/?fd\b`)},
	{
		"it holds words of a runner", "",
		lazyregexp.New(`--- (?:PASS|FAIL|SKIP)|=== RUN|\\x16|\\u0016|\\026|##teamcity|["'` + "`" + `](?:not )?ok (?:\d|%|\$|\{)|\bTAP version\b|\btest result: |\d+ (?:passed|passing)\b|["'` + "`" + `\\]+Action["'` + "`" + `\\]+\s*:`),
	},
}

// Suspects are the lines that a change adds outside of files of tests, and by
// which counts of tests can be forged: at most so many, and how many there are.
func Suspects(changes []Change, most int) (first []Suspect, all int) {
	for _, c := range changes {
		ext := " " + strings.ToLower(path.Ext(c.Path)) + " "
		if !c.New.exists() || !strings.Contains(sources, ext) || ofTests(c.Path) {
			continue
		}
		had := map[string]bool{}
		for line := range strings.Lines(c.Old.Text) {
			had[line] = true
		}
		n := 0
		for line := range strings.Lines(c.New.Text) {
			if n++; had[line] {
				continue
			}
			what := suspectOf(ext, line)
			if what == "" {
				continue
			}
			if all++; len(first) < most {
				first = append(first, Suspect{c.Path, n, what, strings.TrimSpace(line)})
			}
		}
	}
	return first, all
}

// longestLine bounds what is looked at of one line.
const longestLine = 64 << 10

func suspectOf(ext, line string) string {
	line = line[:min(len(line), longestLine)]
	if strings.ContainsRune(line, '\x16') {
		return "it holds words of a runner"
	}
	for _, f := range forging {
		if (f.exts == "" || strings.Contains(f.exts, ext)) && f.find.MatchString(line) {
			return f.what
		}
	}
	return ""
}
