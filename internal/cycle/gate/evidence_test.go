//go:build unix

package gate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// module is a module of Go with some files, and a gate in it that finds the
// go program.
func module(t *testing.T, line string, files map[string]string) job {
	t.Helper()
	c := command(t, line)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off"}
	for _, name := range []string{"GOCACHE", "GOROOT"} {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		c.Env = append(c.Env, name+"="+strings.TrimSpace(string(out)))
	}
	write(t, c.Dir, map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n"})
	write(t, c.Dir, files)
	return c
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	twoTests = "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Log(\"quiet\") }\n\nfunc TestB(t *testing.T) {}\n"
	oneTest  = "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n"
	skipped  = "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { t.Skip() }\n"
	failing  = "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Error(\"broken\") }\n\nfunc TestB(t *testing.T) {}\n"
	leaves   = "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n\nfunc TestA(t *testing.T) {}\n"
	boasts   = "package m\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { fmt.Println(\"ALL TESTS PASSED\"); os.Exit(0) }\n"
)

func TestGoTestsThatVanishMakeTheGateFail(t *testing.T) {
	two := new(tests("go", 2, 0, 0))
	for name, c := range map[string]struct {
		line, file string
		base       *loop.TestCounts
		pass       bool
		tests      loop.TestCounts
		note       string
	}{
		"they are all there":          {"go test ./...", twoTests, two, true, tests("go", 2, 0, 0), ""},
		"one was deleted":             {"go test ./...", oneTest, two, false, tests("go", 1, 0, 0), "fewer tests reported than on the base: 1, not 2"},
		"one is skipped":              {"go test ./...", skipped, two, false, tests("go", 1, 0, 1), "fewer tests reported than on the base: 1, not 2"},
		"one fails":                   {"go test ./...", failing, two, false, tests("go", 1, 1, 0), ""},
		"one fails and nobody cares":  {"go test ./... || true", failing, nil, false, tests("go", 1, 1, 0), "its output says that 1 of 2 tests failed, in spite of exit status 0"},
		"none is left":                {"go test ./...", "package m\n", nil, false, tests("go", 0, 0, 0), "no tests reported"},
		"none has the name":           {"go test -run NoSuch ./...", twoTests, nil, false, tests("go", 0, 0, 0), "no tests reported"},
		"the program leaves early":    {"go test ./...", leaves, nil, false, tests("go", 0, 0, 0), "no tests reported"},
		"it leaves early and boasts":  {"go test ./...", boasts, two, false, tests("go", 0, 0, 0), "no tests reported"},
		"it does not compile":         {"go test ./...", "package m\n\nvar x int = \"\"\n", nil, false, tests("go", 0, 1, 0), ""},
		"only some of them are asked": {"go test -run TestA ./...", twoTests, nil, true, tests("go", 1, 0, 0), ""},
		"behind another program":      {"go vet ./... && go test -count=1 ./...", twoTests, two, true, tests("go", 2, 0, 0), ""},
		"their author wants to see":   {"go test -v ./...", twoTests, two, true, tests("go", 2, 0, 0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := module(t, c.line, map[string]string{"m_test.go": c.file})
			g := gate.Judge(run(t, cmd), c.base)
			if g.Pass != c.pass || g.Note != c.note || (g.Exit == 0) != (c.pass || c.note != "") {
				t.Errorf("pass %v, exit %d, note %q, want %v, %q", g.Pass, g.Exit, g.Note, c.pass, c.note)
			}
			if diff := cmp.Diff(&c.tests, g.Tests); diff != "" {
				t.Errorf("tests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.base, g.Base); diff != "" {
				t.Errorf("base (-want +got):\n%s", diff)
			}
			if strings.Contains(g.Evidence, `"Action"`) {
				t.Errorf("evidence is for machines: %s", g.Evidence)
			}
		})
	}
}

// took is the time in what go test prints.
var took = regexp.MustCompile(`\d+\.\d+s|\(cached\)`)

func TestWhatGoTestPrintsIsReadAsItsAuthorWroteTheLine(t *testing.T) {
	files := map[string]string{
		"m_test.go": twoTests, "fails/f_test.go": failing, "none/n.go": "package none\n", "broken/b.go": "package broken\n\nvar x int = \"\"\n",
		"broken/b_test.go": "package broken\n",
	}
	for _, line := range []string{"go test ./none .", "go test ./fails", "go test ./broken", "go test -v .", "go test -v ./fails"} {
		t.Run(line, func(t *testing.T) {
			counted := module(t, line, files)
			// A pipe keeps the line as it is written.
			raw := module(t, "("+line+") 2>&1 | cat", files)
			var got, want strings.Builder
			counted.Output, raw.Output = &got, &want
			run(t, counted)
			run(t, raw)
			w := strings.TrimSuffix(took.ReplaceAllString(want.String(), "T"), "FAIL\n")
			g := strings.TrimSuffix(took.ReplaceAllString(got.String(), "T"), "FAIL\n")
			if diff := cmp.Diff(w, g); diff != "" {
				t.Errorf("output (-as written +counted):\n%s", diff)
			}
		})
	}
}

func TestAGateThatOnlySaysThatItRanTestsCountsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		line, note string
		base       *loop.TestCounts
		pass       bool
	}{
		"a boast":                       {"echo ALL TESTS PASSED", "", nil, true},
		"a boast instead of the tests":  {"echo ALL TESTS PASSED", "fewer tests reported than on the base: none could be counted, not 2", new(tests("go", 2, 0, 0)), false},
		"a script of tests":             {"./run-tests.sh", "no test counts in its output: only the exit status counted", nil, true},
		"a pipe":                        {"sh run-tests.sh | cat", "no test counts in its output: only the exit status counted", nil, true},
		"the shell's own test":          {"test -d . && [ -e run-tests.sh ]", "", nil, true},
		"no tests at all":               {"ls tests; true", "", nil, true},
		"a file":                        {"cat tests/unit/data >/dev/null 2>&1; true", "", nil, true},
		"a line that cannot be read":    {"true #\n((", "", nil, false},
		"a gate that fails without any": {"./run-tests.sh; exit 3", "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, c.line)
			script := filepath.Join(cmd.Dir, "run-tests.sh")
			if err := os.WriteFile(script, []byte("#!/bin/sh\necho fine\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if g := gate.Judge(run(t, cmd), c.base); g.Pass != c.pass || g.Note != c.note || g.Tests != nil {
				t.Errorf("result = %+v, want pass %v, note %q and no counts", g, c.pass, c.note)
			}
		})
	}
}

func TestReportsThatAGateWritesAreCounted(t *testing.T) {
	c := command(t, "mkdir -p target/surefire-reports && cp report target/surefire-reports/TEST-a.xml")
	write(t, c.Dir, map[string]string{"report": string(report(t, "surefire.xml"))})
	if g := run(t, c); g.Tests == nil || *g.Tests != tests("junit", 2, 0, 1) || !g.Pass {
		t.Errorf("result = %+v, want the counts of the report", g)
	}
	c.Line = "true"
	if g := run(t, c); g.Tests != nil || !g.Pass {
		t.Errorf("result = %+v, want nothing of a report that was there", g)
	}
	c.Line = "echo 5 passed in 0.1s; touch -d 2020-01-01 target/surefire-reports/TEST-a.xml"
	if g := run(t, c); g.Tests == nil || *g.Tests != tests("pytest", 5, 0, 0) {
		t.Errorf("result = %+v, want what the output said, once", g)
	}
}

func TestAReportThatIsNoFileDoesNotHoldTheGateUp(t *testing.T) {
	c := command(t, "mkfifo junit.xml; mkdir report.xml; ln -s /dev/zero TEST-a.xml")
	c.Timeout = 20 * time.Second
	if g := run(t, c); g.Tests != nil || !g.Pass {
		t.Errorf("result = %+v, want a pass without counts", g)
	}
}

func TestWhoeverListensToAGateDoesNotChangeItsCounts(t *testing.T) {
	c := command(t, "head -c 300000 /dev/zero | tr '\\0' x; echo; echo 5 passed in 0.1s")
	c.Output = writerFunc(func([]byte) (int, error) { return 0, os.ErrClosed })
	if g := run(t, c); g.Tests == nil || *g.Tests != tests("pytest", 5, 0, 0) || !strings.HasSuffix(g.Evidence, "0.1s") {
		t.Errorf("result = %+v, want all of it", g)
	}
}

func TestFeedbackOfAGateThatIsNotBelievedSaysWhy(t *testing.T) {
	got := gate.Feedback(loop.GateResult{Name: "verify", Note: "no tests reported", Evidence: "ok"})
	if want := "verify failed: no tests reported:\nok"; got != want {
		t.Errorf("feedback = %q, want %q", got, want)
	}
}

func TestALineThatLooksLikeTestsIsOneThatShouldCountThem(t *testing.T) {
	for line, looks := range map[string]bool{
		"make test": true, "npm run tests": true, "rake spec": true, "pytest -q": true, "python -m unittest": true, "npx jest": true, "npx vitest run": true,
		"npx mocha": true, "npx tap": true, "prove -r": true, "bats .": true, "tox": true, "nox": true, "rspec": true, "ctest": true, "gotestsum": true,
		"cargo nextest run": true, "vendor/bin/phpunit": true, "npx karma start": true, "npx cypress run": true, "npx playwright install": true,
		"npm run test:unit": true, "./RUN-TESTS.sh": true, "make 'test'": true, "make \"test\"": true, "if true; then make test; fi": true, "true && ! make test": true,
		"test -e x": false, "[ test ]": false, "cd test": false, "ls test": false, "echo test": false, "printf test": false, "cat test": false, "grep test x": false,
		"find test": false, "rm test": false, "mkdir test": false, "cp test x": false, "mv test x": false,
		"make build": false, "true": false, "./run test/unit/data": false, "./attest.sh": false, "make testing": false, "A=test true": false, "": false,
	} {
		exec := execFunc(func() (proc.Result, error) { return proc.Result{Ended: proc.Exited}, nil })
		g, err := runJob(t.Context(), on(exec, newJob(line, gate.Input{Place: gate.Place{Dir: t.TempDir()}})))
		if err != nil || !g.Pass || (g.Note != "") != looks {
			t.Errorf("%q: note %q, %v, want one: %v", line, g.Note, err, looks)
		}
	}
}
