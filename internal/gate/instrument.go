package gate

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxScript bounds the lines that are parsed. Longer ones are no gate that a
// person wrote.
const maxScript = 16 << 10

// Instrument makes calls of go test in a line for the shell print events, so
// that they can be counted, by inserting -json after the word test. It does so
// only where nothing else reads the output and where the events replace what
// go test would have printed: not in a pipeline, a substitution, a function,
// under a redirection of standard output or an alias, and not for calls that
// run no tests or choose their output themselves. All other bytes stay as they
// are; ok says whether anything was inserted.
//
// It is for counting only. What a line may do is never decided by reading it.
func Instrument(line string) (instrumented string, ok bool) {
	s := parse(line)
	return s.instrumented, s.instrumented != line
}

// script is what was read from a line for the shell.
type script struct {
	instrumented string
	verbose      bool // an instrumented call asked for all output
	tests        bool // some command looks like a test runner
}

// parse reads a line. One that the parser does not understand stays as it is.
func parse(line string) script {
	s := script{instrumented: line}
	if len(line) > maxScript {
		return s
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return s
	}
	var at []uint
	if plainWords(file) {
		at, s.verbose = goTests(file)
	}
	for _, offset := range slices.Backward(at) {
		s.instrumented = s.instrumented[:offset] + " -json" + s.instrumented[offset:]
	}
	s.tests = runsTests(file)
	return s
}

// plainWords reports whether the words go and test mean what they say, and
// standard output stays where it is: no functions, no aliases, and no exec,
// eval or dot, which can change either.
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

// goTests lists the offsets behind the word test of the calls to instrument.
func goTests(file *syntax.File) (at []uint, verbose bool) {
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
				at = append(at, n.Args[1].End().Offset())
				verbose = verbose || asksForAll(n.Args[2:])
			}
		}
		return true
	})
	slices.Sort(at)
	return at, verbose
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

// isGoTest reports whether a call is go test in literal words, and one whose
// output is the plain report of tests.
func isGoTest(args []*syntax.Word) bool {
	if len(args) < 2 || args[0].Lit() != "go" || args[1].Lit() != "test" {
		return false
	}
	for i, name := range flags(args[2:]) {
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
	for i, name := range flags(args) {
		if (name == "v" || name == "bench" || name == "fuzz") && flagValue(args, i) != "false" {
			return true
		}
	}
	return false
}

// flags names the flag in each word, up to those for the test program.
func flags(args []*syntax.Word) []string {
	var names []string
	for _, w := range args {
		text := literal(w)
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
	if _, value, ok := strings.Cut(literal(args[i]), "="); ok {
		return value
	}
	if i+1 < len(args) {
		return literal(args[i+1])
	}
	return ""
}

// literal is the text of a word with its quotes taken off. An expansion in it
// leaves nothing.
func literal(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literal(&syntax.Word{Parts: p.Parts}))
		}
	}
	return b.String()
}

// runners are words that name a program for tests, or a target or script.
var runners = []string{
	"test", "tests", "spec", "pytest", "unittest", "jest", "vitest", "mocha", "tap", "prove", "bats", "tox", "nox",
	"rspec", "ctest", "gotestsum", "nextest", "phpunit", "karma", "cypress", "playwright",
}

// bystanders are commands whose arguments name tests without running them, the
// shell's own test among them.
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

// namesRunner looks at the last element of a path, so that a folder of tests
// among the arguments says nothing.
func namesRunner(w *syntax.Word) bool {
	text := literal(w)
	text = text[strings.LastIndexByte(text, '/')+1:]
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.ContainsFunc(words, func(s string) bool { return slices.Contains(runners, s) })
}
