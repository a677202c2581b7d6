package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestATestIsNamedIfItAsksHowMuchToTry(t *testing.T) {
	const imports = "package a_test\nimport (\n\"testing\"\n\"" + samplePackage + "\"\n)\n"
	module := fstest.MapFS{
		"internal/a/a_test.go": {Data: []byte(imports + `
func TestA(t *testing.T) { sample.Checks(t, 3) }
func TestB(t *testing.T) { for range count() {} }
func TestC(t *testing.T) { rows[0].run(t) }
func TestTables(t *testing.T) { sample.TablesFile() }
func TestMain(m *testing.M) { sample.All() }
func count() int { return sample.Size(1, 2) }
type row struct{}
func (row) run(t *testing.T) { count() }
var steps = []func() int{count}
`)},
		"internal/a/other_test.go": {Data: []byte("package a_test\nfunc TestD(t *testing.T) { steps[0]() }\nfunc TestPlain(t *testing.T) { sample := row{}; sample.All() }\n")},
		"internal/b/b_test.go":     {Data: []byte("package b\nfunc TestE(t *testing.T) { count() }\nfunc count() {}\n")},
		"internal/a/a.go":          {Data: []byte("not read")},
	}
	got, err := sampledTests(module)
	for _, names := range got {
		slices.Sort(names)
	}
	if diff := cmp.Diff(map[string][]string{"internal/a": {"TestA", "TestB", "TestC", "TestD"}}, got); diff != "" || err != nil {
		t.Errorf("sampledTests = %v (-want +got):\n%s", err, diff)
	}
}

func TestNoTestIsAnError(t *testing.T) {
	var out strings.Builder
	err := printSampled(fstest.MapFS{"internal/a/a_test.go": {Data: []byte("package a\n")}}, &out)
	if err == nil || out.Len() > 0 {
		t.Errorf("printSampled = %v, and printed %q", err, out.String())
	}
	if err := printSampled(fstest.MapFS{"go.mod": {}}, &out); err == nil {
		t.Error("it works outside of a module")
	}
}

// The Makefile takes both lines as they are.
func TestEachPackageThatSamplesIsInTheFirstLineAndItsTestsInTheSecond(t *testing.T) {
	var out strings.Builder
	if err := printSampled(os.DirFS("../../.."), &out); err != nil {
		t.Fatal(err)
	}
	packages, pattern, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, name := range []string{"./internal/surface/compose", "./internal/cycle/engine", "./internal/git", "./internal/record/store"} {
		if !slices.Contains(strings.Fields(packages), name) {
			t.Errorf("%s is missing in %q", name, packages)
		}
	}
	tests := strings.Split(strings.TrimSuffix(strings.TrimPrefix(pattern, "^("), ")$"), "|")
	for _, name := range []string{
		"TestKilledAtAnyPointTheNextCommandPutsItRight", "TestFromAnyStateRecoveryLeadsToALoopThatRuns",
		"TestATroubleInARunIsToldAndCostsNothing", "TestASuspendedMachineLosesNothingAndMovesNothingTwice",
	} {
		if !slices.Contains(tests, name) {
			t.Errorf("%s is missing in %q", name, pattern)
		}
	}
}
