package gate_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
)

func TestTestsThatFailedAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   []string
	}{
		"go test -json": {
			`{"Action":"run","Package":"m/a","Test":"TestOne"}` + "\n" + `{"Action":"fail","Package":"m/a","Test":"TestOne"}` + "\n" +
				`{"Action":"fail","Package":"m/a","Test":"TestOne/sub"}` + "\n" + `{"Action":"pass","Package":"m/a","Test":"TestTwo"}` + "\n" +
				`{"Action":"fail","Package":"m/a"}` + "\n", []string{"go m/a.TestOne"},
		},
		"go test -v":  {"=== RUN   TestOne\n--- FAIL: TestOne (0.00s)\n=== RUN   TestTwo\n--- PASS: TestTwo (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n", []string{"go m/a.TestOne"}},
		"cargo":       {"running 2 tests\ntest a::one ... FAILED\ntest a::two ... ok\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n", []string{"cargo a::one"}},
		"pytest -v":   {"tests/a.py::test_one FAILED [ 50%]\ntests/a.py::test_two PASSED [100%]\n=== 1 failed, 1 passed in 0.1s ===\n", []string{"pytest tests/a.py::test_one"}},
		"pytest":      {"FAILED tests/a.py::test_one - AssertionError\n=== 1 failed, 1 passed in 0.1s ===\n", []string{"pytest tests/a.py::test_one"}},
		"unittest -v": {"test_one (m.T.test_one) ... FAIL\ntest_two (m.T.test_two) ... ok\n\nRan 2 tests in 0.1s\n\nFAILED (failures=1)\n", []string{"unittest test_one (m.T.test_one)"}},
		"TAP":         {"TAP version 13\n1..3\nnot ok 1 - one\nok 2 - two\nnot ok 3 - three # TODO later\n", []string{"tap one"}},
		"all pass":    {"tests/a.py::test_two PASSED [100%]\n=== 1 passed in 0.1s ===\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var counter gate.Counter
			if _, err := io.WriteString(&counter, c.output); err != nil {
				t.Fatal(err)
			}
			counter.Counts()
			if diff := cmp.Diff(c.want, counter.Names().Failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		})
	}
}
