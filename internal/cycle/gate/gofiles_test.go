package gate_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// kinds has a function of each kind that go test takes for a test, or does not.
const kinds = `package a

import (
	"testing"
	. "testing"
)

//go:build never

func Test(t *testing.T) {}
func TestOne(t *testing.T) {}
func Test_two(t *testing.T) {}
func TestÜber(t *testing.T) {}
func TestDot(t *T) {}
func FuzzIt(f *testing.F) {}

func Testify(t *testing.T) {}
func Checks(t *testing.T) {}
func TestNothing() {}
func TestMore(t *testing.T, n int) {}
func TestValue(t testing.T) {}
func TestList(t *[]int) {}
func TestOther(m *testing.M) {}
func FuzzNot(t *testing.T) {}
func TestFuzz(f *testing.F) {}
func TestGeneric[P any](t *testing.T) {}
func (x kind) TestMethod(t *testing.T) {}
func BenchmarkIt(b *testing.B) {}

type kind int

func ExampleSays() {
	// Output: x
}

func ExampleIsSilent() {
	// Output:
}

func ExampleIsCompiled() {}
`

func TestTheTestsOfAFileAreThoseThatGoTestRuns(t *testing.T) {
	const pkg = "example.test/m/a"
	all := []string{"go example.test/m/a.ExampleIsSilent", "go example.test/m/a.ExampleSays", "go example.test/m/a.FuzzIt", "go example.test/m/a.Test", "go example.test/m/a.TestDot", "go example.test/m/a.TestOne", "go example.test/m/a.Test_two", "go example.test/m/a.TestÜber"}
	one := []string{"go example.test/m/a.TestOne"}
	for name, c := range map[string]struct {
		line, pkg string
		files     map[string]string
		want      []string
	}{
		"each kind":                          {pkg: pkg, files: map[string]string{"a/a_test.go": kinds}, want: all},
		"only files of tests":                {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestOne"), "a/b.go": testFile("", "TestTwo"), "a/c_test.txt": testFile("", "TestThree")}, want: one},
		"files that go leaves out":           {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestOne"), "a/_b_test.go": testFile("", "TestTwo"), "a/.c_test.go": testFile("", "TestThree")}, want: one},
		"a file that cannot be parsed":       {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestOne"), "a/b_test.go": "package a\nfunc TestTwo(t *testing.T) {"}, want: one},
		"a condition as it was written once": {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestOne"), "a/b_test.go": testFile("// +build linux\n\n", "TestTwo")}, want: one},
		"a comment above is not a condition": {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("// What it tests.\n\n", "TestOne")}, want: one},
		"one condition, and in any case":     {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestOne"), "a/b_test.go": testFile("//go:build slow\n\n", "TestOne")}, want: one},
		"in any case, and one condition":     {pkg: pkg, files: map[string]string{"a/b_test.go": testFile("", "TestOne"), "a/a_test.go": testFile("//go:build slow\n\n", "TestOne")}, want: one},
		"a TestMain that is a test":          {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestMain")}, want: []string{"go example.test/m/a.TestMain"}},
		"an example under a condition":       {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("//go:build slow\n\n") + "func ExampleX() {\n\t// Output: x\n}\n"}},
		"the package at the top":             {pkg: "example.test/m", files: map[string]string{"a_test.go": testFile("", "TestOne")}, want: []string{"go example.test/m.TestOne"}},
		"a module whose name only begins so": {pkg: "example.test/mx", files: map[string]string{"x/a_test.go": testFile("", "TestOne"), "a_test.go": testFile("", "TestOne")}},
		"a module without a name":            {pkg: pkg, files: map[string]string{"a/a_test.go": testFile("", "TestOne"), "b/go.mod": "go 1.26\n", "b/example.test/m/a/a_test.go": testFile("", "TestTwo")}, want: one},
		"a package without files":            {pkg: "example.test/m/b", files: map[string]string{"a/a_test.go": testFile("", "TestOne")}},
		"a module in a module": {
			pkg:   "example.test/m/a",
			files: map[string]string{"a/a_test.go": testFile("", "TestOuter"), "other/go.mod": "go 1.26\nmodule example.test/m/a // Moved.\n", "other/a_test.go": testFile("", "TestOne")},
			want:  one,
		},
		"a line that runs some":        {line: "go test -run One ./...", pkg: pkg, files: map[string]string{"a/a_test.go": kinds}},
		"a line that skips some":       {line: "go test -skip=One ./...", pkg: pkg, files: map[string]string{"a/a_test.go": kinds}},
		"a line that lists some":       {line: "go vet && go test -list .", pkg: pkg, files: map[string]string{"a/a_test.go": kinds}},
		"a line that cannot be read":   {line: "go test && (", pkg: pkg, files: map[string]string{"a/a_test.go": kinds}},
		"a line that runs all of them": {line: "go test -race ./... && echo run", pkg: pkg, files: map[string]string{"a/a_test.go": kinds}, want: all},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := gate.Comparison{Line: c.line, Base: loop.TestNames{Broken: []string{c.pkg}}, BaseTree: treeOf(c.files), NowTree: treeOf(c.files)}.Unreported()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(gate.Unreported{Missing: c.want}, u); diff != "" {
				t.Errorf("expected tests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATreeThatCannotBeReadIsNoPass(t *testing.T) {
	files := map[string]string{"a/a_test.go": testFile("", "TestOne"), "b/b_test.go": testFile("", "TestTwo"), "c/c_test.go": testFile("", "TestThree")}
	lost := errors.New("the object store is gone")
	// What is missing is looked up in a, what broke in b, and what is new in c.
	c := gate.Comparison{
		Base: loop.TestNames{Ran: []string{"go example.test/m/a.TestOne"}, Broken: []string{"example.test/m/b"}}, Now: ran("go example.test/m/c.TestNew"),
	}
	for name, broken := range map[string][2]string{
		"the base cannot be opened":                 {"open", ""},
		"the candidate cannot be opened":            {"", "open"},
		"the base's module":                         {"go.mod", ""},
		"the candidate's module":                    {"", "go.mod"},
		"the base's tests of what is missing":       {"a/a_test.go", ""},
		"the candidate's tests of what is missing":  {"", "a/a_test.go"},
		"the base's tests of what failed there":     {"b/b_test.go", ""},
		"the candidate's tests of what else is new": {"", "c/c_test.go"},
	} {
		t.Run(name, func(t *testing.T) {
			without := func(path string) func() (gate.Tree, error) {
				return func() (gate.Tree, error) {
					tree, err := treeOf(files)()
					if err != nil || path == "open" {
						return tree, lost
					}
					read := tree.Read
					tree.Read = func(p string) ([]byte, error) {
						if p == path {
							return nil, lost
						}
						return read(p)
					}
					return tree, nil
				}
			}
			c := c
			c.BaseTree, c.NowTree = without(broken[0]), without(broken[1])
			if u, err := c.Unreported(); !errors.Is(err, lost) {
				t.Errorf("Unreported = %+v, %v, want %v", u, err, lost)
			}
		})
	}
	t.Run("the base's tests of what is gone", func(t *testing.T) {
		tree := func() (gate.Tree, error) {
			t, err := treeOf(files)()
			read := t.Read
			t.Read = func(p string) ([]byte, error) {
				if p == "a/a_test.go" {
					return nil, lost
				}
				return read(p)
			}
			return t, err
		}
		c := gate.Comparison{Base: ran("go example.test/m/a.TestOne"), BaseTree: tree, NowTree: treeOf(nil)}
		if u, err := c.Unreported(); !errors.Is(err, lost) {
			t.Errorf("Unreported = %+v, %v, want %v", u, err, lost)
		}
	})
	t.Run("the base's tests of what ran there", func(t *testing.T) {
		tree := maps.Clone(files)
		c := gate.Comparison{Base: ran("go example.test/m/a.TestOne"), Now: ran("go example.test/m/a.TestOne", "go example.test/m/c.TestForged"), NowTree: treeOf(tree)}
		c.BaseTree = func() (gate.Tree, error) {
			t, err := treeOf(tree)()
			read := t.Read
			t.Read = func(p string) ([]byte, error) {
				if p == "a/a_test.go" {
					return nil, lost
				}
				return read(p)
			}
			return t, err
		}
		if u, err := c.Unreported(); !errors.Is(err, lost) {
			t.Errorf("Unreported = %+v, %v, want %v", u, err, lost)
		}
	})
}
