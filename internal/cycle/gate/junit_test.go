package gate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func report(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "junit", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestTheCasesOfJUnitReportsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // path: what is in it
		want  loop.TestCounts
	}{
		"pytest":             {map[string]string{"junit.xml": "pytest.xml"}, tests("junit", 1, 2, 2)},
		"surefire":           {map[string]string{"target/surefire-reports/TEST-com.example.FirstTest.xml": "surefire.xml"}, tests("junit", 2, 0, 1)},
		"nested suites":      {map[string]string{"reports/junit.xml": "nested.xml"}, tests("junit", 1, 1, 1)},
		"gradle's modules":   {map[string]string{"a/build/test-results/test/TEST-A.xml": "surefire.xml", "x/b/build/test-results/test/TEST-B.xml": "nested.xml"}, tests("junit", 3, 1, 2)},
		"other places":       {map[string]string{"docs/pages/deep/junit.xml": "pytest.xml", "notes.xml": "pytest.xml", ".cache/junit.xml": "pytest.xml"}, loop.TestCounts{}},
		"packages of others": {map[string]string{"node_modules/x/junit.xml": "pytest.xml"}, loop.TestCounts{}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for path, file := range c.files {
				tree[path] = &fstest.MapFile{Data: report(t, file)}
			}
			got, ok := gate.ReadJUnit(tree, nil)
			if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want.Format != "") {
				t.Errorf("counted %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestReportsFromBeforeTheGateCountNothing(t *testing.T) {
	then := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tree := fstest.MapFS{
		"junit.xml":          {Data: report(t, "pytest.xml"), ModTime: then},
		"test-results/a.xml": {Data: report(t, "nested.xml"), ModTime: then},
	}
	earlier := gate.FindReports(tree)
	if n, ok := gate.ReadJUnit(tree, earlier); ok {
		t.Errorf("old reports counted %+v", n)
	}
	tree["test-results/a.xml"].ModTime = then.Add(time.Nanosecond)
	if got, want := first(gate.ReadJUnit(tree, earlier)), tests("junit", 1, 1, 1); got != want {
		t.Errorf("one was rewritten: %+v, want %+v", got, want)
	}
}

func TestWhatIsNoReportOfTestsIsNotCounted(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                      "",
		"no XML":                     "PASS\n",
		"another document":           "<project><testcase name='a'/></project>",
		"a case without a suite":     "<testcase name='a'/>",
		"a page":                     "<!DOCTYPE html><html><testcase/></html>",
		"another encoding":           "<?xml version='1.0' encoding='EBCDIC'?><testsuite><testcase/></testsuite>",
		"an end without a beginning": "</testsuite>",
	} {
		t.Run(name, func(t *testing.T) {
			if n, ok := gate.ReadJUnit(fstest.MapFS{"junit.xml": {Data: []byte(text)}}, nil); ok {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

func TestABrokenReportCountsUpToWhereItBreaks(t *testing.T) {
	const good = "<testsuite><testcase name='a'/><testcase name='b'><failure/></testcase>"
	for name, rest := range map[string]string{
		"it ends":                "<testcase name='c'>",
		"the tags are mixed":     "<testcase name='c'></testsuite>",
		"an entity":              "<testcase name='&lol;'/>",
		"nested without end":     strings.Repeat("<a>", 1<<20),
		"attributes for ever":    "<testcase " + strings.Repeat(`a="" `, 1<<20) + "/>",
		"a text without end":     "<system-out>" + strings.Repeat("x", 3<<20) + "</system-out><testcase/></testsuite>",
		"another root behind":    "</testsuite><testsuite><testcase",
		"it is cut in a word":    "<testca",
		"a NUL":                  "\x00<testcase/>",
		"bytes that are no text": "\xff\xfe<testcase/>",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, ok := gate.ReadJUnit(fstest.MapFS{"junit.xml": {Data: []byte(good + rest)}}, nil)
			runtime.ReadMemStats(&after)
			if want := tests("junit", 1, 1, 0); got != want || !ok {
				t.Errorf("counted %+v, %v, want %+v", got, ok, want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
				t.Errorf("it took %d MB", took>>20)
			}
		})
	}
}

func TestEntitiesOfAReportAreNeverExpanded(t *testing.T) {
	const bomb = `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "<testcase/><testcase/>"><!ENTITY b SYSTEM "file:///etc/passwd">]>
<testsuite><testcase/>&a;&b;</testsuite>`
	if got, want := first(gate.ReadJUnit(fstest.MapFS{"junit.xml": {Data: []byte(bomb)}}, nil)), tests("junit", 1, 0, 0); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestLinksAreNotFollowedToReports(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "junit.xml"), report(t, "pytest.xml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"junit.xml": filepath.Join(outside, "junit.xml"), "reports": outside, "module": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if n, ok := gate.ReadJUnit(root.FS(), nil); ok {
		t.Errorf("counted %+v", n)
	}
}

func BenchmarkFindReports(b *testing.B) {
	tree := b.TempDir()
	for i := range 200 {
		if err := os.MkdirAll(filepath.Join(tree, "d"+string(rune('a'+i%20)), "m"+string(rune('a'+i/20)), "src"), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	fsys := os.DirFS(tree)
	for b.Loop() {
		gate.FindReports(fsys)
	}
}

func FuzzReadJUnit(f *testing.F) {
	for _, name := range []string{"pytest.xml", "surefire.xml", "nested.xml"} {
		f.Add(report(f, name))
	}
	f.Add([]byte("<testsuite><testcase><failure></testcase>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := fstest.MapFS{"junit.xml": {Data: data}}
		got, ok := gate.ReadJUnit(tree, nil)
		if cases := bytes.Count(data, []byte("testcase")); got.Passed+got.Failed+got.Skipped > cases || !ok && got.Ran() > 0 {
			t.Fatalf("counted %+v, %v, of %d words", got, ok, cases)
		}
		if again, ok2 := gate.ReadJUnit(tree, nil); again != got || ok2 != ok {
			t.Fatalf("%+v, then %+v", got, again)
		}
	})
}
