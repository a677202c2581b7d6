package gate_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// treeOf is a tree of some files, with a go.mod at its top.
func treeOf(files map[string]string) func() (gate.Tree, error) {
	all := map[string]string{"go.mod": "// The module.\nmodule \"example.test/m\" // here\n\ngo 1.26\n"}
	maps.Copy(all, files)
	return func() (gate.Tree, error) {
		return gate.Tree{Paths: sortedKeys(all), Read: func(path string) ([]byte, error) {
			text, ok := all[path]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}}, nil
	}
}

// testFile is a file of Go with tests.
func testFile(head string, tests ...string) string {
	var b strings.Builder
	b.WriteString(head + "package a\n\nimport \"testing\"\n\n")
	for _, name := range tests {
		fmt.Fprintf(&b, "func %s(t *testing.T) {}\n", name)
	}
	return b.String()
}

func ran(names ...string) loop.TestNames { return loop.TestNames{Ran: names} }

func TestEveryTestOfTheBaseHasToReport(t *testing.T) {
	two := map[string]string{"a/a_test.go": testFile("", "TestOne", "TestTwo")}
	one := map[string]string{"a/a_test.go": testFile("", "TestOne", "TestNew")}
	const testOne, testTwo, testNew = "go example.test/m/a.TestOne", "go example.test/m/a.TestTwo", "go example.test/m/a.TestNew"
	broken := loop.TestNames{Broken: []string{"example.test/m/a"}}
	for name, c := range map[string]struct {
		line      string
		base, now loop.TestNames
		old, new  map[string]string
		renames   bool
		want      gate.Unreported
	}{
		"all do":                             {base: ran(testOne, testTwo), now: ran(testOne, testTwo), old: two, new: two},
		"a new one does too":                 {base: ran(testOne), now: ran(testNew, testOne), old: one, new: one},
		"one does not":                       {base: ran(testOne, testTwo), now: ran(testOne), old: two, new: two, want: gate.Unreported{Missing: []string{testTwo}}},
		"one is renamed":                     {base: ran(testOne, testTwo), now: ran(testNew, testOne), old: two, new: one, renames: true, want: gate.Unreported{Gone: []string{testTwo}}},
		"tests change and one is silent":     {base: ran(testOne, testTwo), now: ran(testOne), old: two, new: two, renames: true, want: gate.Unreported{Missing: []string{testTwo}}},
		"its file is compiled no more":       {base: ran(testOne), now: ran(), old: two, new: map[string]string{"a/a_test.go": testFile("//go:build never\n\n", "TestOne")}, renames: true, want: gate.Unreported{Missing: []string{testOne}}},
		"its package is gone":                {base: ran(testOne), now: ran(), old: two, new: nil, renames: true, want: gate.Unreported{Gone: []string{testOne}}},
		"it is in no file of the base":       {base: ran("go example.test/m/a.TestMade", testOne), now: ran(testOne), old: two, new: two},
		"a package of one letter's file":     {base: ran("go example.test/m/b.TestMade"), now: ran(), old: map[string]string{"b/x.go": "package b\n"}, new: two},
		"others report in its place":         {base: ran(testOne), now: ran("go example.test/m/a.TestForged", testOne), old: two, new: two, want: gate.Unreported{Nowhere: []string{"go example.test/m/a.TestForged"}}},
		"a gate that makes tests":            {base: ran("go example.test/m/a.TestMade", testOne), now: ran("go example.test/m/a.TestMade2", testOne), old: two, new: two},
		"a package that no tree holds":       {base: ran(testOne), now: ran(testOne, "go example.test/m/made.TestX"), old: two, new: two},
		"a package of another module":        {base: ran(testOne), now: ran(testOne, "go other.test/x.TestX"), old: two, new: two},
		"the package failed on the base":     {base: broken, now: ran(testOne), old: two, new: two, want: gate.Unreported{Missing: []string{testTwo}}},
		"it failed, and all report":          {base: broken, now: ran(testOne, testTwo), old: two, new: two},
		"it failed, and the gate chooses":    {line: "go test -run One ./...", base: broken, now: ran(testOne), old: two, new: two},
		"it failed, and a file depends":      {base: broken, now: ran(testOne), new: two, old: map[string]string{"a/a_test.go": testFile("", "TestOne"), "a/b_test.go": testFile("//go:build slow\n\n", "TestTwo"), "a/c_plan9_test.go": testFile("", "TestC")}},
		"it failed, and TestMain decides":    {base: broken, now: ran(testOne), new: two, old: map[string]string{"a/a_test.go": testFile("", "TestOne", "TestTwo") + "func TestMain(m *testing.M) {}\n"}},
		"nothing has a name on the base":     {base: loop.TestNames{}, now: ran(testNew), old: two, new: one},
		"one of pytest does not":             {base: ran("pytest a.py::test_x"), now: ran("pytest a.py::test_y"), want: gate.Unreported{Missing: []string{"pytest a.py::test_x"}}},
		"one of pytest may be renamed":       {base: ran("pytest a.py::test_x"), now: ran("pytest a.py::test_y"), renames: true, want: gate.Unreported{Gone: []string{"pytest a.py::test_x"}}},
		"one of each, and go alone is there": {base: ran(testOne, "tap it adds"), now: ran(testOne), old: two, new: two, want: gate.Unreported{Missing: []string{"tap it adds"}}},
		"it ran there, and its package broke": {
			base: loop.TestNames{Ran: []string{testOne}, Broken: []string{"example.test/m/a"}}, now: ran(), old: two, new: two,
			want: gate.Unreported{Missing: []string{testOne, testTwo}},
		},
		"some vanish and others are forged": {
			base: ran(testOne, testTwo), now: ran("go example.test/m/a.TestForged", testOne), old: two, new: two,
			want: gate.Unreported{Missing: []string{testTwo}, Nowhere: []string{"go example.test/m/a.TestForged"}},
		},
		"of one kind some break, others only change": {
			base: loop.TestNames{Ran: []string{"pytest a.py::test_x"}, Broken: []string{"example.test/m/a"}}, now: ran(testOne, testTwo), old: two, new: two, renames: true,
			want: gate.Unreported{Gone: []string{"pytest a.py::test_x"}},
		},
		"others of pytest report in no file": {base: ran(testOne), now: ran(testOne, "pytest a.py::test_new"), old: two, new: two},
		"a package that only the base had":   {base: ran("go example.test/m/b.TestB"), now: ran(), old: map[string]string{"b/b_test.go": testFile("", "TestB")}, new: two, want: gate.Unreported{Missing: []string{"go example.test/m/b.TestB"}}},
		"a package that only the run had":    {base: ran("go made.test/x.TestX"), now: ran(), old: two, new: two, want: gate.Unreported{Missing: []string{"go made.test/x.TestX"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gate.Comparison{Line: c.line, Base: c.base, Now: c.now, BaseTree: treeOf(c.old), NowTree: treeOf(c.new), Tests: c.renames}.Unreported()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (got.Objection() == "") != (len(c.want.Missing)+len(c.want.Nowhere) == 0) || (got.Flag() == "") != (len(c.want.Gone) == 0) {
				t.Errorf("objection %q, flag %q", got.Objection(), got.Flag())
			}
		})
	}
}

func TestTreesAreNotReadWhereTheSameTestsReport(t *testing.T) {
	never := func() (gate.Tree, error) {
		t.Error("a tree was opened")
		return gate.Tree{}, nil
	}
	names := ran("go m.TestOne", "pytest a.py::test_x")
	if got, err := (gate.Comparison{Base: names, Now: names, BaseTree: never, NowTree: never}).Unreported(); err != nil || got.Objection() != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAListOfMissingTestsHasAnEnd(t *testing.T) {
	var u gate.Unreported
	for i := range 30 {
		u.Missing = append(u.Missing, fmt.Sprintf("go m.Test%02d", i))
	}
	u.Gone = u.Missing[:8]
	if got, want := u.Flag(), "tests of the base are renamed or gone: m.Test00, m.Test01, m.Test02, m.Test03, m.Test04, m.Test05, m.Test06, m.Test07"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := u.Objection(), "tests of the base did not report: m.Test00, m.Test01, m.Test02, m.Test03, m.Test04, m.Test05, m.Test06, m.Test07 and 22 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestALongNameIsCutAndAForgedTestIsNamed(t *testing.T) {
	u := gate.Unreported{Nowhere: []string{"go m." + strings.Repeat("x", 198), "go m." + strings.Repeat("y", 199)}}
	if got, want := u.Objection(), "tests reported that are in no file: m."+strings.Repeat("x", 198)+", m."+strings.Repeat("y", 198)+"…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// named returns the names in an output.
func named(output string) []string {
	var c gate.Counter
	//nolint:errcheck,gosec // A Counter never fails.
	c.Write([]byte(output))
	c.Counts()
	return c.Names().Ran
}

func TestTestsAreNamedWhereEachOfThemIs(t *testing.T) {
	all := outputs(t)
	for name, c := range map[string]struct {
		output string
		want   []string
	}{
		"go's events": {
			`{"Action":"pass","Package":"m","Test":"TestB"}` + "\n" + `{"Action":"pass","Package":"m","Test":"TestB/sub"}` + "\n" +
				`{"Action":"skip","Package":"m","Test":"TestC"}` + "\n" + `{"Action":"fail","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n",
			[]string{"go m.TestA", "go m.TestB"},
		},
		"go test -v": {
			"=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\nok  \tm/a\t0.1s\n=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tm/b\t(cached)\n" +
				"=== RUN   TestB\n--- FAIL: TestB (0.00s)\n=== RUN   TestC\n--- SKIP: TestC (0.00s)\nFAIL\nFAIL\tm/c\t0.1s\n",
			[]string{"go m/a.TestA", "go m/b.TestA", "go m/c.TestB"},
		},
		"go test -v without its last line": {"=== RUN   TestA\n--- PASS: TestA (0.00s)\n", nil},
		"cargo":                            {string(all["cargo-pass"]), []string{"cargo fine", "cargo outer", "cargo src/lib.rs - two", "cargo tests::passes", "cargo tests::prints"}},
		"cargo that hides some":            {"test a ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", nil},
		"pytest": {
			"a.py::test_x[a b] PASSED [ 50%]\na.py::test_x[c] PASSED [ 60%]\n[gw0] [ 80%] PASSED b.py::C::test_y\nPASSED b.py::test_z\nb.py::test_s SKIPPED [ 90%]\nb.py::test_b\n==== 4 passed, 1 skipped in 0.1s ====\n",
			[]string{"pytest a.py::test_x", "pytest b.py::C::test_y", "pytest b.py::test_z"},
		},
		"pytest that only counts": {".. [100%]\n2 passed in 0.1s\n", nil},
		"unittest": {
			"test_a (m.C.test_a) ... ok\ntest_b (m.C.test_b)\nWhat it does. ... ok\ntest_c (m.C.test_c) ... skipped 'x'\n\nRan 3 tests in 0.001s\n\nOK (skipped=1)\n",
			[]string{"unittest test_a (m.C.test_a)", "unittest test_b (m.C.test_b)"},
		},
		"TAP with diagnostics":          {"TAP version 14\n1..2\nok 1 - a\n  ---\n  ok 7 - c\n  ...\n  ok 1 - sub\nok 2 - b\n", []string{"tap a", "tap b", "tap sub"}},
		"TAP with comments":             {"1..2\nok 1 - a # time=3ms\nnot ok 2 - b # took 7\n", []string{"tap a", "tap b"}},
		"TAP of numbers":                {"1..2\nok 1 - adds 0, 5 and 9\nok 2 - 7\n", []string{"tap 7", "tap adds #, # and #"}},
		"TAP of nothing but parameters": {"1..2\nok 1 - (fast) it\nok 2 - it\n", []string{"tap it"}},
		"TAP":                           {"1..3\nok 1 - adds 12 numbers (took 3 ms)\nnot ok 2 - it\nok 3 # SKIP no\n", []string{"tap adds ## numbers", "tap it"}},
	} {
		if diff := cmp.Diff(c.want, named(c.output)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
