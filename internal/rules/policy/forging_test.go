package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

func file(text string) policy.File {
	return policy.File{Mode: 0o100644, Size: int64(len(text)), Text: text}
}

func TestLinesByWhichCodeCanReportForItsTestsArePointedOut(t *testing.T) {
	const ends, early, stream, words = "it can end the process", "it runs before the tests", "it writes to the stream of the runner", "it holds words of a runner"
	for _, c := range []struct{ path, line, want string }{
		{"a.go", "func init() {", early},
		{"a.go", "\tos.Exit(0)", ends},
		{"a.go", "\truntime.Goexit()", ends},
		{"a.go", "\tsyscall.Write(1, b)", stream},
		{"a.go", "\tfmt.Print(\"\\x16--- PASS: TestA (0.00s)\\n\")", words},
		{"a.go", "\tfmt.Print(\"\x16\")", words},
		{"a.go", "\tf, _ := os.Create(\"/proc/self/fd/1\")", stream},
		{"a.go", "\tf, _ := os.Create(fmt.Sprintf(\"/proc/%d/fd/1\", os.Getppid()))", stream},
		{"a.go", "\tfmt.Println(`{\"Action\":\"pass\"}`)", words},
		{"a.go", "func initialise() {", ""},
		{"a.go", "\treturn exitCode(err)", ""},
		{"a.py", "    os._exit(0)", ends},
		{"a.py", "from os import _exit", ends},
		{"a.py", "atexit.register(done)", ends},
		{"a.py", "print('5 passed in 0.1s')", words},
		{"a.py", "os.write(1, b'x')", stream},
		{"a.py", "self.exit_code = 3", ""},
		{"a.ts", "process.exit(0)", ends},
		{"a.js", "console.log('ok 1 - adds')", words},
		{"a.js", "console.log('look ok 1 time')", ""},
		{"A.java", "System.exit(0);", ends},
		{"a.rs", "std::process::exit(0);", ends},
		{"a.rs", "println!(\"test result: ok. 3 passed\");", words},
		{"a.c", "__attribute__((constructor)) static void f(void) {", ends},
		{"a.rb", "at_exit { puts 'x' }", ends},
		{"a.rb", "existing = 1", ""},
		{"a.md", "call os.Exit(0)", ""},
		{"a_test.go", "func init() {", ""},
		{"tests/test_a.py", "os._exit(0)", ""},
	} {
		found, n := policy.Suspects([]policy.Change{{Path: c.path, Old: file("one\n"), New: file("one\n" + c.line + "\n")}}, 5)
		want := []policy.Suspect{{Path: c.path, Line: 2, What: c.want, Text: strings.TrimSpace(c.line)}}
		if c.want == "" {
			want = nil
		}
		if diff := cmp.Diff(want, found); diff != "" || n != len(want) {
			t.Errorf("%s: %q: %d (-want +got):\n%s", c.path, c.line, n, diff)
		}
	}
}

func TestOnlyAddedLinesArePointedOutAndOnlySoMany(t *testing.T) {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "\tos.Exit(%d)\n", i)
	}
	old := "\tos.Exit(3)\n"
	found, n := policy.Suspects([]policy.Change{{Path: "gone.go", Old: file(b.String())}, {Path: "a.go", Old: file(old), New: file(b.String())}}, 4)
	if n != 29 || len(found) != 4 || slices.ContainsFunc(found, func(s policy.Suspect) bool { return s.Line == 4 }) {
		t.Errorf("%d lines, of which %+v", n, found)
	}
}

func TestATestMayBeRenamedWhereTheChangeTouchesFilesOfTests(t *testing.T) {
	for path, want := range map[string]bool{
		"src/a_test.go": true, "tests/data.txt": true, "conftest.py": true, "src/a.go": false, "go.sum": false, "Makefile": false, "src/plain.rs": false,
	} {
		if got := policy.Testing(policy.Change{Path: path, Old: file("x"), New: file("y")}); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if !policy.Testing(policy.Change{Path: "src/lib.rs", Old: file("#[cfg(test)]\nmod tests {}\n"), New: file("")}) {
		t.Error("a file of Rust with tests in it is not a file of tests")
	}
}
