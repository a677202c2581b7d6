package shell

import (
	"strings"
	"testing"
)

func TestParseReadsWhatAShellWouldRun(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		stmts int
		fails bool
	}{
		"nothing":                       {"", 0, false},
		"two lines":                     {"a\nb", 2, false},
		"bash":                          {"[[ -n a ]] && diff <(a) <(b)", 1, false},
		"a line before a syntax error":  {"a\n)", 1, true},
		"a here-document without end":   {"a\nb <<X\nc", 2, false},
		"two of them":                   {"a <<X <<'Y z'\nc", 1, false},
		"many of them":                  {"a" + strings.Repeat(" <<X", maxUnended+1) + "\nc", 0, true},
		"an error in a substitution":    {"a; mail $((", 1, true},
		"an open quote":                 {"a; mail \"", 1, true},
		"as many brackets as may be":    {strings.Repeat("$(", maxOpen) + "a" + strings.Repeat(")", maxOpen), 1, false},
		"more brackets":                 {strings.Repeat("$(", maxOpen+1) + "a" + strings.Repeat(")", maxOpen+1), 0, true},
		"many brackets one after other": {strings.Repeat("$(a) ", 10*maxOpen), 1, false},
	} {
		file, err := Parse(c.text)
		if len(file.Stmts) != c.stmts || (err != nil) != c.fails {
			t.Errorf("%s: %d statements, %v, want %d, and an error: %v", name, len(file.Stmts), err, c.stmts, c.fails)
		}
	}
}
