package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheFirstWordIsTheProgramOrNothing(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"a program":                   {"go test ./...", "go"},
		"space around it":             {"  \n go\ttest", "go"},
		"signs in its name":           {"clang++-18.1_x -c", "clang++-18.1_x"},
		"a variable":                  {"CI=1 npm test", "npm"},
		"an empty variable":           {"CI= npm test", "npm"},
		"several":                     {"A=1 B=x=y,z npm", "npm"},
		"only variables":              {"A=1 B=2", ""},
		"a value in quotes":           {`A="x y z" npm`, ""},
		"a value in quotes, one word": {`A="x" npm`, ""},
		"a value of a command":        {"A=$(b c d) npm", ""},
		"a value of backquotes":       {"A=`b c d` npm", ""},
		"a value with an escape":      {`A=x\ y npm`, ""},
		"a path":                      {"./x y", ""},
		"an absolute path":            {"/bin/sh", ""},
		"a path with a folder":        {"a/b c", ""},
		"a subshell":                  {"(cd x && y)", ""},
		"a semicolon":                 {"a; b", ""},
		"quotes":                      {"'a' b", ""},
		"a pipe":                      {"a|b", ""},
		"a function":                  {"f () { :; }; f", ""},
		"a function without a space":  {"f() { :; }; f", ""},
		"a home":                      {"~/x", ""},
		"other letters":               {"prüfe x", ""},
		"nothing":                     {"", ""},
		"an equals sign alone":        {"= x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := firstWord(c.line); got != c.want {
				t.Errorf("firstWord(%q) = %q, want %q", c.line, got, c.want)
			}
		})
	}
}

func TestTheFirstWordIsAlwaysAPlainWordOfTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(
			rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("ab =/'\"\\$(`);-.\n\t"))),
		).Draw(t, "line")
		got := firstWord(line)
		if strings.ContainsAny(got, "/'\"\\$`();|&<>= \t\n") {
			t.Fatalf("firstWord(%q) = %q", line, got)
		}
		if got != "" && !slices.Contains(strings.Fields(line), got) {
			t.Fatalf("firstWord(%q) = %q, which is not a word of it", line, got)
		}
	})
}

func TestARepairHasOneNameForOneCommandAndScope(t *testing.T) {
	if a, b := untilName("go test", []string{"a", "b"}), untilName("go test", []string{"a", "b"}); a != b {
		t.Errorf("names %s and %s differ", a, b)
	}
	// Runs are found by this name, so that another version must make it, too.
	if got := untilName("go test ./...", []string{"**/*"}); got != "until-14mzv9i" {
		t.Errorf("name = %s", got)
	}
	seen := map[string]string{}
	for _, c := range []struct {
		command string
		scope   []string
	}{
		{"go test", nil},
		{"go test ", nil},
		{"go test", []string{"a"}},
		{"go test", []string{"a", "b"}},
		{"go test", []string{"b", "a"}},
		{"go test", []string{"ab"}},
		{"go", []string{"test", "a"}},
		{"go test a", nil},
	} {
		name, what := untilName(c.command, c.scope), fmt.Sprintf("%q", c)
		if seen[name] != "" {
			t.Errorf("%s and %s are both %s", what, seen[name], name)
		}
		seen[name] = what
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%s is not a name for a branch", name)
		}
	}
}
