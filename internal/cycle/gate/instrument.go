package gate

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxScript bounds the length of lines that are parsed. People do not write
// longer gates.
const maxScript = 16 << 10

// Instrument makes calls of go test in a line for the shell print events, so
// that they can be counted, by inserting -json after the word test, and calls
// of pytest name the tests that passed, by inserting -rfEp. It does so only
// where nothing else reads the output and where what is added can be taken out
// again: not in a pipeline, a substitution, a function, under a redirection of
// standard output or an alias, and not for calls that run no tests or choose
// their output themselves. All other bytes stay as they are; ok says whether
// anything was inserted.
//
// It is for counting only. What a line may do is never decided by reading it.
func Instrument(line string) (instrumented string, ok bool) {
	s := parseLine(line)
	return s.instrumented, s.instrumented != line
}

// script is what was parsed from a line for the shell.
type script struct {
	instrumented string
	golang       bool // calls of go test are instrumented
	pytest       bool // calls of pytest are
	verbose      bool // an instrumented call of go test asked for all output
	tests        bool // some command looks like a test runner
}

// parseLine parses a line. A line that the parser does not understand stays
// unchanged.
func parseLine(line string) script {
	s := script{instrumented: line}
	if len(line) > maxScript {
		return s
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return s
	}
	var at []insertion
	if plainWords(file) {
		at, s.verbose = flagInsertions(file)
	}
	for _, i := range slices.Backward(at) {
		s.instrumented = s.instrumented[:i.offset] + i.flag + s.instrumented[i.offset:]
		s.golang, s.pytest = s.golang || i.flag == goFlag, s.pytest || i.flag == pytestFlag
	}
	s.tests = runsTests(file)
	return s
}

// plainWords reports whether the words go and test have their usual meaning and
// standard output is not redirected: there are no functions, no aliases, and no
// exec, eval or dot, which can change either.
func plainWords(file *syntax.File) bool {
	fine := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			fine = false
		case *syntax.CallExpr:
			if len(n.Args) > 0 && slices.Contains([]string{"alias", "exec", "eval", ".", "source"}, n.Args[0].Lit()) {
				fine = false
			}
		}
		return fine
	})
	return fine
}

// insertion is a flag that makes a call countable.
type insertion struct {
	offset uint // in the line
	flag   string
}

const (
	goFlag     = " -json"
	pytestFlag = " -rfEp" // the default summary of pytest, plus the tests that passed
)

// flagInsertions lists the flags to insert, in the order of the line.
func flagInsertions(file *syntax.File) (at []insertion, verbose bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			return !slices.ContainsFunc(n.Redirs, redirectsOutput)
		case *syntax.BinaryCmd:
			return n.Op != syntax.Pipe && n.Op != syntax.PipeAll
		case *syntax.Word, *syntax.Redirect, *syntax.Assign:
			return false
		case *syntax.CallExpr:
			if isGoTest(n.Args) {
				at = append(at, insertion{n.Args[1].End().Offset(), goFlag})
				verbose = verbose || asksForAll(n.Args[2:])
			}
			if i := pytestWord(n.Args); i >= 0 && !choosesSummary(n.Args[i+1:]) {
				at = append(at, insertion{n.Args[i].End().Offset(), pytestFlag})
			}
		}
		return true
	})
	slices.SortFunc(at, func(a, b insertion) int { return cmp.Compare(a.offset, b.offset) })
	return at, verbose
}

// pytestWord returns the index of the word pytest in a call of it: by its name,
// as a Python module, or after a program that prepares its environment. It is -1
// for any other call.
func pytestWord(args []*syntax.Word) int {
	i := 0
	if len(args) > 2 && slices.Contains([]string{"uv", "poetry", "pdm", "pipenv", "hatch", "rye"}, args[0].Lit()) && args[1].Lit() == "run" {
		i = 2
	}
	if len(args) > i+2 && (args[i].Lit() == "python" || args[i].Lit() == "python3") && args[i+1].Lit() == "-m" {
		i += 2
	}
	if i < len(args) && args[i].Lit() == "pytest" {
		return i
	}
	return -1
}

// choosesSummary reports whether a call of pytest selects what its summary shows,
// or runs no tests.
func choosesSummary(args []*syntax.Word) bool {
	for _, w := range args {
		text := literalText(w)
		if strings.HasPrefix(text, "-r") || slices.Contains([]string{"--no-summary", "--collect-only", "--co", "--help", "-h", "--version", "-V", "--fixtures", "--markers"}, text) {
			return true
		}
	}
	return false
}

// inputs are the redirections that leave standard output alone, unless they
// name it.
var inputs = []syntax.RedirOperator{syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc}

func redirectsOutput(r *syntax.Redirect) bool {
	if r.N != nil {
		return r.N.Value == "1"
	}
	return !slices.Contains(inputs, r.Op)
}

// isGoTest reports whether a call is literally go test with its plain output.
func isGoTest(args []*syntax.Word) bool {
	if len(args) < 2 || args[0].Lit() != "go" || args[1].Lit() != "test" {
		return false
	}
	for i, name := range flagNames(args[2:]) {
		switch name {
		case "json", "c", "n", "exec", "list", "h", "help":
			return false
		case "run":
			// "^$" runs no tests: the call is for compiling or benchmarks.
			if value := flagValue(args[2:], i); value == "^$" || value == "$^" {
				return false
			}
		}
	}
	return true
}

// asksForAll reports whether go test would print more than failures.
func asksForAll(args []*syntax.Word) bool {
	for i, name := range flagNames(args) {
		if (name == "v" || name == "bench" || name == "fuzz") && flagValue(args, i) != "false" {
			return true
		}
	}
	return false
}

// flagNames returns the name of the flag in each word, up to the flags for the
// test program.
func flagNames(args []*syntax.Word) []string {
	var names []string
	for _, w := range args {
		text := literalText(w)
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "-"), "=")
		name = strings.TrimPrefix(name, "test.")
		if name == "args" && strings.HasPrefix(text, "-") {
			return names
		}
		if !strings.HasPrefix(text, "-") {
			name = ""
		}
		names = append(names, name)
	}
	return names
}

// flagValue returns what follows the equals sign of a flag or, without one,
// the next word.
func flagValue(args []*syntax.Word, i int) string {
	if _, value, ok := strings.Cut(literalText(args[i]), "="); ok {
		return value
	}
	if i+1 < len(args) {
		return literalText(args[i+1])
	}
	return ""
}

// literalText returns the text of a word without its quotes and expansions.
func literalText(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literalText(&syntax.Word{Parts: p.Parts}))
		}
	}
	return b.String()
}

// runners are words that name a test program, or a target or script that runs
// tests.
var runners = []string{
	"test", "tests", "spec", "pytest", "unittest", "jest", "vitest", "mocha", "tap", "prove", "bats", "tox", "nox",
	"rspec", "ctest", "gotestsum", "nextest", "phpunit", "karma", "cypress", "playwright",
}

// bystanders are commands whose arguments may name tests without running them,
// including the shell's own test.
var bystanders = []string{"test", "[", "cd", "ls", "echo", "printf", "cat", "grep", "find", "rm", "mkdir", "cp", "mv"}

// runsTests reports whether a command of the line looks like one that runs
// tests.
func runsTests(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 && !slices.Contains(bystanders, call.Args[0].Lit()) {
			found = found || slices.ContainsFunc(call.Args, namesRunner)
		}
		return !found
	})
	return found
}

// namesRunner looks at the last element of a path only, so that a folder of tests
// among the arguments does not count.
func namesRunner(w *syntax.Word) bool {
	text := literalText(w)
	text = text[strings.LastIndexByte(text, '/')+1:]
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.ContainsFunc(words, func(s string) bool { return slices.Contains(runners, s) })
}
