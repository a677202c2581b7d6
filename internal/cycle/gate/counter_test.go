package gate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// count returns what is counted in an output that comes in one piece.
func count(output []byte) (loop.TestCounts, bool) {
	var c gate.Counter
	//nolint:errcheck,gosec // A Counter never fails.
	c.Write(output)
	return c.Counts()
}

// outputs reads what tools printed, by the name of the file.
func outputs(tb testing.TB) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/count/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no outputs: %v", err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".txt")] = b
	}
	return all
}

func tests(format string, passed, failed, skipped int) loop.TestCounts {
	return loop.TestCounts{Format: format, Passed: passed, Failed: failed, Skipped: skipped}
}

func TestTheOutputOfEachRunnerIsCounted(t *testing.T) {
	want := map[string]loop.TestCounts{
		"cargo-fail":          tests("cargo", 4, 1, 1),
		"cargo-nextest":       tests("cargo", 3, 2, 1),
		"cargo-pass":          tests("cargo", 5, 0, 1),
		"dotnet-terminal":     tests("dotnet", 3, 0, 1),
		"dotnet-vstest":       tests("dotnet", 4, 1, 1),
		"go-json":             tests("go", 7, 4, 1),
		"go-no-test-files":    tests("go", 0, 0, 0),
		"go-nothing-run":      tests("go", 0, 0, 0),
		"go-plain":            {},
		"go-verbose":          tests("go", 7, 3, 1),
		"jest-fail":           tests("jest", 2, 1, 2),
		"jest-none":           tests("jest", 0, 0, 0),
		"jest-suite":          tests("jest", 2, 1, 0),
		"maven-modules":       tests("maven", 4, 2, 3),
		"maven-none":          tests("maven", 0, 0, 0),
		"maven-old":           tests("maven", 3, 0, 0),
		"mocha-fail":          tests("mocha", 1, 1, 1),
		"mocha-none":          tests("mocha", 0, 0, 0),
		"node-none":           tests("node", 0, 0, 0),
		"node-spec":           tests("node", 3, 1, 2),
		"node-tap":            tests("node", 3, 1, 2),
		"node-tap-pass":       tests("node", 2, 0, 1),
		"pytest-all":          tests("pytest", 3, 2, 2),
		"pytest-colour":       tests("pytest", 3, 0, 0),
		"pytest-deselected":   tests("pytest", 0, 0, 0),
		"pytest-none":         tests("pytest", 0, 0, 0),
		"pytest-old":          tests("pytest", 2, 1, 0),
		"pytest-quiet":        tests("pytest", 2, 0, 1),
		"tap-bail-out":        tests("tap", 1, 1, 0),
		"tap-perl":            tests("tap", 4, 1, 2),
		"tap-perl-none":       tests("tap", 0, 0, 0),
		"tap-perl-short":      tests("tap", 2, 1, 0),
		"tap-perl-two":        tests("tap", 6, 2, 2),
		"tap14":               tests("tap", 3, 1, 2),
		"unittest-fail":       tests("unittest", 1, 3, 2),
		"unittest-none":       tests("unittest", 0, 0, 0),
		"unittest-none-312":   tests("unittest", 0, 0, 0),
		"unittest-skip":       tests("unittest", 1, 0, 2),
		"unittest-unexpected": tests("unittest", 1, 1, 0),
		"vitest-colour":       tests("vitest", 2, 0, 0),
		"vitest-fail":         tests("vitest", 3, 1, 1),
		"vitest-none":         tests("vitest", 0, 0, 0),
		"vitest-suite":        tests("vitest", 0, 1, 0),
	}
	got := map[string]loop.TestCounts{}
	for name, output := range outputs(t) {
		n, ok := count(output)
		if ok != (n.Format != "") {
			t.Errorf("%s: counts %+v, %v", name, n, ok)
		}
		got[name] = n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestTheSameOutputCountsTheSameInWhateverPiecesItComes(t *testing.T) {
	all := outputs(t)
	rapid.Check(t, func(t *rapid.T) {
		var output []byte
		for range rapid.IntRange(1, 3).Draw(t, "outputs") {
			output = append(output, all[rapid.SampledFrom(sortedKeys(all)).Draw(t, "output")]...)
		}
		want, wantOK := count(output)
		var c gate.Counter
		for rest := output; len(rest) > 0; {
			piece := rest[:min(len(rest), rapid.IntRange(1, 400).Draw(t, "piece"))]
			if n, err := c.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			rest = rest[len(piece):]
		}
		if got, ok := c.Counts(); got != want || ok != wantOK {
			t.Fatalf("in pieces %+v %v, in one %+v %v", got, ok, want, wantOK)
		}
	})
}

func TestRunnersInOneGateAddUp(t *testing.T) {
	all := outputs(t)
	for name, c := range map[string]struct {
		parts []string
		want  loop.TestCounts
	}{
		"go and node":               {[]string{"go-json", "node-spec"}, tests("go+node", 10, 5, 3)},
		"the same one twice":        {[]string{"pytest-quiet", "pytest-quiet"}, tests("pytest", 4, 0, 2)},
		"TAP, then node's TAP":      {[]string{"tap14", "node-tap"}, tests("node+tap", 6, 2, 4)},
		"TAP, then node's spec":     {[]string{"tap14", "node-spec"}, tests("node+tap", 6, 2, 4)},
		"node's TAP, then TAP":      {[]string{"node-tap", "tap-perl"}, tests("node+tap", 7, 2, 4)},
		"one that ran nothing":      {[]string{"go-json", "mocha-none"}, tests("go+mocha", 7, 4, 1)},
		"three, in whatever order":  {[]string{"maven-old", "jest-fail", "unittest-skip"}, tests("unittest+jest+maven", 6, 1, 4)},
		"one whose words say a bit": {[]string{"go-plain", "cargo-pass"}, tests("cargo", 5, 0, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var output []byte
			for _, p := range c.parts {
				output = append(output, all[p]...)
			}
			if got, _ := count(output); got != c.want {
				t.Errorf("counts = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestWordsThatNoRunnerSaysCountNothing(t *testing.T) {
	for name, output := range map[string]string{
		"nothing":                         "",
		"a boast":                         "ALL TESTS PASSED\n100% green, 42 tests passed\nPASS\nOK\n",
		"a marker of completion":          "<promise>DONE</promise>\nexit status 0\n",
		"packages of go test":             "ok  \texample.test/m\t0.01s\n?   \texample.test/n\t[no test files]\n",
		"failures of go test alone":       "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\texample.test/m\t0.01s\n",
		"other JSON":                      `{"Action":"deploy","Package":"x"}` + "\n" + `{"Action":"pass"}` + "\n",
		"events of a build":               `{"ImportPath":"x","Action":"build-output","Output":"# x\n"}` + "\n",
		"an event that is cut":            `{"Action":"pass","Package":"m","Test":"T"` + "\n",
		"points without a plan":           "ok 1\nok 2\nnot ok 3\n",
		"a plan without points":           "1..4\n",
		"a range in a sentence":           "1..4 are done\n",
		"prose that begins like a point":  "1..2\nok then\nokay 1\n",
		"a ruby range of dots":            "1...3\nok 1\n",
		"half a block of node":            "# tests 3\n# pass 3\n",
		"a block of node with a gap":      "# tests 3\n# pass 3\nsomething\n# duration_ms 1\n",
		"unittest that did not end":       "Ran 3 tests in 0.001s\n\n",
		"unittest, and something else":    "Ran 3 tests in 0.001s\n\nOKAY\n",
		"a linter's warnings":             "2 warnings in 0.3s\n",
		"a build's time":                  "compiled 3 modules in 0.3s\n",
		"a collection of pytest":          "5 tests collected in 0.01s\n",
		"a number too long to be one":     "99999999999999999999 passed in 0.01s\n",
		"a negative number":               "-3 passed in 0.01s\n",
		"jest without a total":            "Tests:       2 passed\n",
		"vitest's words alone":            "2 passed (2)\n",
		"vitest without a total":          "      Tests  2 passed\n",
		"mocha without a time":            "  3 passing\n",
		"mocha's failures alone":          "  2 failing\n",
		"a class of maven":                "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in X\n",
		"JUnit's text, which has no skip": "Tests run: 3,  Failures: 1\n",
		"cargo with an unknown word":      "test result: ok. 3 passed; 2 invented\n",
		"a test of cargo named like it":   "test result: ok. 5 passed; finished in x ... ok\n",
		"maven's skipped alone":           "[INFO] Skipped: 3\n",
		"nextest without its summary":     "     3 tests run: 3 passed, 0 skipped\n",
		"a summary behind a prefix":       "web:test: Tests:       2 passed, 2 total\n",
	} {
		t.Run(name, func(t *testing.T) {
			if n, ok := count([]byte(output)); ok {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

func TestWhatATestOfGoPrintsIsNoResult(t *testing.T) {
	output := `{"Action":"output","Package":"m","Test":"TestA","Output":"5 passed in 0.01s\n"}
{"Action":"output","Package":"m","Test":"TestA","Output":"{\"Action\":\"pass\",\"Package\":\"m\",\"Test\":\"TestB\"}\n"}
{"Action":"pass","Package":"m","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"m","Elapsed":0}
`
	if got, want := first(count([]byte(output))), tests("go", 1, 0, 0); got != want {
		t.Errorf("counts = %+v, want %+v", got, want)
	}
}

func TestALineThatNeverEndsTakesLittleMemory(t *testing.T) {
	var c gate.Counter
	piece := bytes.Repeat([]byte("x"), 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 {
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("64 MB in one line took %d bytes", took)
	}
	if _, err := c.Write([]byte("\n1 passed in 0.1s\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := first(c.Counts()), tests("pytest", 1, 0, 0); got != want {
		t.Errorf("after it %+v, want %+v", got, want)
	}
}

func BenchmarkCounter(b *testing.B) {
	for name, output := range outputs(b) {
		if name != "go-json" && name != "cargo-fail" {
			continue
		}
		output = bytes.Repeat(output, 100)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(output)))
			for b.Loop() {
				count(output)
			}
		})
	}
}

func FuzzCounter(f *testing.F) {
	for _, output := range outputs(f) {
		f.Add(output, 7)
	}
	f.Add([]byte("\x1b]0;title\x1b\\\x1b[1m3 passed\x1b[0m in 0.1s\rOK"), 1)
	f.Fuzz(func(t *testing.T, output []byte, size int) {
		want, ok := count(output)
		if want.Passed < 0 || want.Failed < 0 || want.Skipped < 0 || !ok && want != (loop.TestCounts{}) {
			t.Fatalf("counts = %+v, %v", want, ok)
		}
		if size < 1 {
			return
		}
		var c gate.Counter
		for rest := output; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if _, err := c.Write(rest[:min(size, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := c.Counts(); got != want {
			t.Fatalf("in pieces of %d: %+v, in one: %+v", size, got, want)
		}
	})
}

func first[T any](v T, _ bool) T { return v }
