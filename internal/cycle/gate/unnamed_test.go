//go:build unix

package gate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pytest is a program that prints what the real one does, with or without the
// names of tests that passed.
const pytest = `#!/bin/sh
passed=
case " $* " in *" -rfEp "*) passed=1;; esac
printf '..%s [100%%]\n' "$1" | sed 's/-rfEp//'
if [ -n "$passed$FAILS" ]; then echo '=========================== short test summary info ============================'; fi
if [ -n "$FAILS" ]; then echo 'FAILED a.py::test_c - assert PASSED'; fi
if [ -n "$passed" ]; then printf 'PASSED a.py::test_a\nPASSED a.py::test_b[x y]\n'; fi
if [ -n "$FAILS" ]; then echo '===== 1 failed, 2 passed in 0.1s ====='; exit 1; fi
echo '===== 2 passed in 0.1s ====='
`

func TestTestsOfPytestAreNamedAndItsOutputIsAsItWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		fails  string
		names  []string
		output string
	}{
		"all pass":  {"", []string{"pytest a.py::test_a", "pytest a.py::test_b"}, ".. [100%]\n===== 2 passed in 0.1s =====\n"},
		"one fails": {"yes", []string{"pytest a.py::test_a", "pytest a.py::test_b", "pytest a.py::test_c"}, ".. [100%]\n=========================== short test summary info ============================\nFAILED a.py::test_c - assert PASSED\n===== 1 failed, 2 passed in 0.1s =====\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, "pytest")
			write(t, cmd.Dir, map[string]string{"bin/pytest": pytest})
			if err := os.Chmod(cmd.Dir+"/bin/pytest", 0o700); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd.Env, cmd.Output = []string{"PATH=" + cmd.Dir + "/bin:" + os.Getenv("PATH"), "FAILS=" + c.fails}, &out
			g := run(t, cmd)
			if diff := cmp.Diff(c.names, g.Names.Ran); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.output, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
