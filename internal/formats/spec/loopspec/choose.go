package loopspec

import (
	"slices"
	"strings"
	"unicode"
)

// templateWords are the words of tasks for which a template is made. The first row with
// one of them decides.
var templateWords = []struct {
	template string
	words    []string
}{
	{"coverage-ratchet", []string{"coverage", "covered", "uncovered"}},
	{"lint-debt", []string{"lint", "lints", "linter", "linters", "linting", "eslint", "golangci", "ruff", "clippy"}},
	{"type-check-debt", []string{"types", "typing", "typings", "typed", "untyped", "typecheck", "type check", "type checker", "type error", "type errors", "mypy", "pyright", "tsc"}},
	{"keep-tests-green", []string{"test", "tests", "testing", "green", "fix", "fixes", "repair", "suite"}},
	{"research-monitor", []string{"watch", "monitor", "research", "observe", "track", "digest"}},
}

// ChooseTemplate returns the id of the template that the words of a task ask for, and the
// word that decided. Without such a word it is the skeleton, whatever the task says.
func ChooseTemplate(task string) (id, word string) {
	text := plainWords(task)
	for _, row := range templateWords {
		for _, w := range row.words {
			if strings.Contains(text, " "+w+" ") {
				return row.template, w
			}
		}
	}
	return Skeleton, ""
}

// plainWords are the words of a text in lower case, with a space around each.
func plainWords(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return " " + strings.Join(words, " ") + " "
}

// Use is what a command of a project is good for in a template.
type Use string

// The uses of commands.
const (
	UseNone      Use = "" // none of them, or several at once
	UseTest      Use = "test"
	UseTypeCheck Use = "typecheck"
	UseLint      Use = "lint"
	UseCoverage  Use = "coverage"
)

var useWords = []struct {
	use   Use
	words []string
}{
	{UseTest, []string{"test", "tests", "pytest", "jest", "vitest", "rspec", "tox", "nox", "unittest"}},
	{UseTypeCheck, []string{"typecheck", "type check", "check types", "tsc", "mypy", "pyright", "vet"}},
	{UseLint, []string{"lint", "golangci", "eslint", "ruff", "flake8", "pylint", "clippy", "rubocop", "shellcheck"}},
}

// CommandUse tells from its words what a command is good for that passed as one of the gates.
// What prints the covered share alone on its last line is only known by the name of the gate.
func CommandUse(line string, gates ...string) Use {
	if strings.HasPrefix(line, countFindings) {
		return UseNone
	}
	if slices.Contains(gates, "coverage") {
		return UseCoverage
	}
	found := UseNone
	text := plainWords(line)
	for _, row := range useWords {
		if !slices.ContainsFunc(row.words, func(w string) bool { return strings.Contains(text, " "+w+" ") }) {
			continue
		}
		if found != UseNone {
			return UseNone
		}
		found = row.use
	}
	return found
}
