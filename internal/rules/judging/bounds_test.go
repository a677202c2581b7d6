package judging

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Files of the base may be an agent's of long ago, so none may take the time or
// the memory of whoever reads it.
func TestHostileFilesAreReadInBoundedTime(t *testing.T) {
	var makefile strings.Builder
	for i := range 40 {
		fmt.Fprintf(&makefile, "v%d = $(v%d)$(v%d)$(call v%d,$(v%d))\n", i, i+1, i+1, i+1, i+1)
	}
	makefile.WriteString("t: ; $(v0)\n")
	var chain strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&chain, "t%d: t%d u%d\n\tsh x%d.sh\n", i, i+1, i+1, i)
	}
	for name, c := range map[string]struct {
		line string
		tree files
	}{
		"a function that calls itself twice": {`f() { f "$@" x; f y "$@"; }; f a`, nil},
		"a value that doubles":               {"x=ab;" + strings.Repeat("x=$x$x;", 60) + "$x", nil},
		"many values":                        {"for a in 1 2 3 4 5 6 7 8 9; do for b in 1 2 3 4 5 6 7 8 9; do for c in 1 2 3 4 5 6 7 8; do sh $a/$b/$c $a$b$c$a$b$c; done; done; done", nil},
		"variables of make that double":      {"make t", files{"Makefile": makefile.String()}},
		"a long chain of targets":            {"make t0", files{"Makefile": chain.String()}},
		"makefiles that include one another": {"make", files{"Makefile": "include a.mk\n", "a.mk": "include Makefile a.mk\nt: ; make\n"}},
		"scripts that run one another":       {"sh a", files{"a": "sh b $1x; sh b y$1; sh b $1$1", "b": "sh a $1z; . ./a; sh a $1"}},
		"deep brackets":                      {strings.Repeat("(", 5000) + strings.Repeat("$(", 5000), nil},
		"nested substitutions":               {strings.Repeat("$(echo ", 200) + strings.Repeat(")", 200), nil},
		"xargs of many":                      {"cat list | xargs -n1 sh", files{"list": strings.Repeat("x.sh ", 100_000)}},
		"eval of eval":                       {strings.Repeat("eval ", 3000) + "true", nil},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan Judges, 1)
			go func() { done <- Follow(c.tree, "verify", c.line) }()
			select {
			case got := <-done:
				if len(got.Programs) > 20_000 || len(got.Lost) > 20 {
					t.Errorf("%d programs, %d places", len(got.Programs), len(got.Lost))
				}
			case <-time.After(5 * time.Minute): // It takes well below a second.
				t.Fatal("it does not end")
			}
		})
	}
}
