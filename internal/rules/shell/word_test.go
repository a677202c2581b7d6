package shell

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func TestAWordSaysWhatTheShellTakesItFor(t *testing.T) {
	for word, want := range map[string]string{
		`plain`:            "plain",
		`'a b'`:            "a b",
		`"a b"`:            "a b",
		`a\ b`:             "a b",
		`pre'fix'"ed"`:     "prefixed",
		`"a \"b\" \\ \$c"`: `a "b" \ $c`,
		`'a \"b'`:          `a \"b`,
		`$a`:               "",
		`"x$a"`:            "",
		"`a`":              "",
		`x$(a)`:            "",
	} {
		file, err := syntax.NewParser().Parse(strings.NewReader("x "+word), "")
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		call := file.Stmts[0].Cmd.(*syntax.CallExpr)
		if got := Literal(call.Args[1]); got != want {
			t.Errorf("Literal(%s) = %q, want %q", word, got, want)
		}
	}
}
