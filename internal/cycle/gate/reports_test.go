//go:build unix

package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// oneCase is a report of a single test.
const oneCase = `<testsuite><testcase name="a"/></testsuite>`

func TestReportsAreFoundWhereRunnersWriteThem(t *testing.T) {
	for name, found := range map[string]bool{
		"junit.xml": true, "junit-unit.xml": true, "test-results.xml": true, "report.xml": true, "TEST-a.xml": true,
		"reports/junit.xml": true, "reports/TEST-a.xml": true, "test-results/a.xml": true, "test-reports/a.xml": true, "TestResults/a.xml": true,
		"target/surefire-reports/TEST-a.xml": true, "target/failsafe-reports/TEST-a.xml": true, "target/nextest/ci/junit.xml": true,
		"build/test-results/a.xml": true, "build/test-results/test/TEST-a.xml": true,
		"module/junit.xml": true, "libs/module/junit.xml": true, "libs/module/target/surefire-reports/TEST-a.xml": true,
		"libs/module/deep/junit.xml": false, "reports/a.xml": false, "a/b/target/nextest/junit.xml": false, "build/TEST.xml": false, "junit.txt": false,
		".git/junit.xml": false, "node_modules/junit.xml": false,
	} {
		tree := fstest.MapFS{name: {Data: []byte(oneCase)}}
		if n, ok := gate.ReadJUnit(tree, nil); ok != found || ok && n != tests("junit", 1, 0, 0) {
			t.Errorf("in %s: counted %+v, %v, want %v", name, n, ok, found)
		}
	}
}

// openFiles counts what is open of a tree.
type openFiles struct {
	fs.FS
	open int
}

func (o *openFiles) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	o.open++
	return openFile{f, o}, nil
}

type openFile struct {
	fs.File
	of *openFiles
}

func (f openFile) ReadDir(n int) ([]fs.DirEntry, error) { return f.File.(fs.ReadDirFile).ReadDir(n) }

func (f openFile) Close() error {
	f.of.open--
	return f.File.Close()
}

func TestNothingStaysOpenBehindALookForReports(t *testing.T) {
	tree := &openFiles{FS: fstest.MapFS{"junit.xml": {Data: []byte(oneCase)}, "module/reports/TEST-a.xml": {Data: []byte(oneCase)}}}
	if n, ok := gate.ReadJUnit(tree, nil); !ok || n != tests("junit", 2, 0, 0) || tree.open != 0 {
		t.Errorf("counted %+v, %v, and %d files are open, want none", n, ok, tree.open)
	}
}

func TestReportsAreLookedForInSoManyFoldersAndNoMore(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 300 {
		tree[fmt.Sprintf("m%03d/junit.xml", i)] = &fstest.MapFile{Data: []byte(oneCase)}
	}
	if n := len(gate.FindReports(tree)); n != 255 { // And the root.
		t.Errorf("in 300 folders %d reports are found, want 255", n)
	}
	tree = fstest.MapFS{}
	for i := range 2001 {
		tree[fmt.Sprintf("test-results/%04d.xml", i)] = &fstest.MapFile{}
	}
	if n := len(gate.FindReports(tree)); n != 2000 {
		t.Errorf("of 2001 reports %d are found, want 2000", n)
	}
}

func TestWhatStandsInACaseIsItsVerdict(t *testing.T) {
	for text, want := range map[string]loop.TestCounts{
		"<testcase/>":                                          tests("junit", 1, 0, 0),
		"<testcase><failure/></testcase>":                      tests("junit", 0, 1, 0),
		"<testcase><error/></testcase>":                        tests("junit", 0, 1, 0),
		"<testcase><skipped/></testcase>":                      tests("junit", 0, 0, 1),
		"<testcase><disabled/></testcase>":                     tests("junit", 0, 0, 1),
		"<testcase status='notrun'/>":                          tests("junit", 0, 0, 1),
		"<testcase status='run'/>":                             tests("junit", 1, 0, 0),
		"<testcase result='notrun'/>":                          tests("junit", 1, 0, 0),
		"<testcase><system-out/></testcase>":                   tests("junit", 1, 0, 0),
		"<failure/><testcase/>":                                tests("junit", 1, 0, 0),
		"<testcase><a><error/></a></testcase>":                 tests("junit", 1, 0, 0),
		"<testcase><skipped/><failure/></testcase><testcase/>": tests("junit", 1, 1, 0),
	} {
		tree := fstest.MapFS{"junit.xml": {Data: []byte("<testsuites><testsuite>" + text + "</testsuite></testsuites>")}}
		if got := first(gate.ReadJUnit(tree, nil)); got != want {
			t.Errorf("%s counts %+v, want %+v", text, got, want)
		}
	}
}

func TestAReportIsReadToADepthAndNotBeyond(t *testing.T) {
	for depth, want := range map[int]loop.TestCounts{64: tests("junit", 1, 0, 0), 65: tests("junit", 0, 0, 0)} {
		text := "<testsuites>" + strings.Repeat("<testsuite>", depth-2) + "<testcase/>"
		if got := first(gate.ReadJUnit(fstest.MapFS{"junit.xml": {Data: []byte(text)}}, nil)); got != want {
			t.Errorf("a case at depth %d: %+v, want %+v", depth, got, want)
		}
	}
}

func TestReportsNameTheTestsThatAnOutputOnlyCounts(t *testing.T) {
	const report = `<testsuite><testcase classname="m.C" name="b adds 12 [x]"/><testcase classname="m.C" name="a"><failure/></testcase>` +
		`<testcase classname="m.C" name="c"><skipped/></testcase><testcase name="d"><skipped/><error/></testcase></testsuite>`
	all := []string{"junit  d", "junit m.C a", "junit m.C b adds ##"}
	for name, c := range map[string]struct {
		printed string
		tests   loop.TestCounts
		names   []string
	}{
		"nothing":            {"fine", tests("junit", 1, 2, 1), all},
		"as many":            {"1 passed, 2 failed in 0.1s", tests("pytest", 1, 2, 0), all},
		"another number":     {"1 passed in 0.1s", tests("pytest", 1, 0, 0), nil},
		"names, and as many": {"a.py::test_x PASSED [ 50%]\n1 passed in 0.1s", tests("pytest", 1, 0, 0), []string{"pytest a.py::test_x"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, "cp report junit.xml; cat output; exit 1")
			write(t, cmd.Dir, map[string]string{"report": report, "output": c.printed + "\n"})
			g := run(t, cmd)
			if diff := cmp.Diff(&c.tests, g.Tests); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.names, g.Names.Ran); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportsAreReadWhereThisProcessFindsThem(t *testing.T) {
	c := command(t, "cp report junit.xml")
	write(t, c.Dir, map[string]string{"report": oneCase})
	c.Files = t.TempDir() // What programs call their folder is another one here.
	if g := run(t, c); g.Tests != nil {
		t.Errorf("counted %+v of a folder that was not asked for", g.Tests)
	}
	c.Files = c.Dir
	c.Line = "cp report junit-2.xml"
	if g := run(t, c); g.Tests == nil || *g.Tests != tests("junit", 1, 0, 0) {
		t.Errorf("result = %+v, want the new report", g)
	}
}

func TestALimitThatAGateRanIntoIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		res  proc.Result
		want string
	}{
		"memory":               {proc.Result{Exit: 137, Ended: proc.Limited, Limit: proc.MemoryLimit}, "(it ran into the limit of memory)"},
		"sizes of files":       {proc.Result{Exit: 1, Ended: proc.Exited, Limit: proc.FileSizeLimit}, "(it ran into the limit of file size)"},
		"time":                 {proc.Result{Exit: 143, Ended: proc.TimedOut, Limit: proc.TimeLimit}, "(stopped after 1m0s)"},
		"a gate that passes":   {proc.Result{Exit: 0, Ended: proc.Exited, Limit: proc.ProcessesLimit}, ""},
		"a gate without limit": {proc.Result{Exit: 1, Ended: proc.Exited}, ""},
	} {
		g, err := runJob(t.Context(), on(execFunc(func() (proc.Result, error) { return c.res, nil }), command(t, "true")))
		if err != nil || g.Evidence != c.want {
			t.Errorf("%s: evidence %q, %v, want %q", name, g.Evidence, err, c.want)
		}
	}
}

func TestAFlakyGateThatCannotBeStartedAgainIsAnError(t *testing.T) {
	lost := errors.New("the host is out of processes")
	tries := 0
	c := command(t, "true")
	c.Rule = gate.Rule{Need: 1, Of: 3}
	c.Exec = execFunc(func() (proc.Result, error) {
		if tries++; tries > 1 {
			return proc.Result{}, lost
		}
		return proc.Result{Exit: 1, Ended: proc.Exited}, nil
	})
	g, err := runJob(t.Context(), c)
	if !errors.Is(err, lost) || g.Pass || tries != 2 {
		t.Errorf("Run = %+v, %v after %d tries, want the cause", g, err, tries)
	}
	c.Fresh = func(context.Context) (gate.Place, error) { return gate.Place{}, lost }
	tries = 0
	if _, err := runJob(t.Context(), c); !errors.Is(err, lost) || !strings.Contains(err.Error(), "try 2 of the verify gate") {
		t.Errorf("Run = %v, want the try that could not be made ready", err)
	}
}

func TestAGateWithoutARuleHasNoWordsForOne(t *testing.T) {
	if got := (gate.Rule{}).String(); got != "" {
		t.Errorf("the zero rule reads %q", got)
	}
}
