//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/mutants/mutant"
)

// exports are what the sources of the tests import, compiled once.
var exports = sync.OnceValues(func() (map[string]string, error) {
	packages, err := listPackages(context.Background(), filepath.Join("..", "..", ".."), "-export", "-deps", "context", "errors", "fmt", "time", "strings", "syscall", switchPath)
	all := map[string]string{}
	for _, p := range packages {
		all[p.ImportPath] = p.Export
	}
	return all, err
})

// grow plants every mutant into one source of a package main.
func grow(t *testing.T, source string) ([]bug, string) {
	t.Helper()
	known, err := exports()
	if err != nil {
		t.Fatal(err)
	}
	all := &planted{files: map[string][]byte{}}
	if err := all.plantPackage("/top", "main", "plan", map[string][]byte{"/top/x.go": []byte(source)}, known); err != nil {
		t.Fatal(err)
	}
	if all.broken > 0 {
		t.Errorf("%d places do not compile", all.broken)
	}
	return all.mutants, string(all.files["/top/x.go"])
}

// build builds copies as a program that keeps its records in a directory.
func build(t *testing.T, records string, copies ...string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for i, copied := range copies {
		name := fmt.Sprintf("x%d.go", i)
		// Below the module, because only the module may import what is internal.
		replace[filepath.Join(root, "internal", "test", "mutants", "grown", name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(copied), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "x")
	if err := os.WriteFile(list, body, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "-ldflags", "-X "+switchPath+".dir="+records, "-o", program, "./internal/test/mutants/grown")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s\n%s", err, out, strings.Join(copies, "\n"))
	}
	return program
}

// runWith runs a program behind a limit and returns what it prints.
func runWith(t *testing.T, program string, limit uint64) string {
	t.Helper()
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{} // a child with a clean environment knows its mutant too
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := staged(cmd, run{File: program, Dir: t.TempDir(), Limit: limit}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		return "failed"
	}
	return strings.TrimSpace(said.String())
}

func TestEachOperatorChangesWhatTheCodeDoesAndOnlyThat(t *testing.T) {
	// want is what the program prints with each mutant, by "operator: after".
	cases := map[string]struct {
		source string
		normal string
		want   map[string]string
	}{
		"a call and an assignment are deleted": {
			`func main() { x := 2; x = f(); g(); print(x) }
func f() int { return 7 }
func g() { print("g") }`,
			"g7",
			map[string]string{
				"delete: x = f()": "g2", "delete: g()": "7", "delete: print(x)": "g", `delete: print("g")`: "7",
				"constant: 2 -> 2+1": "g7", "constant: 2 -> 2-1": "g7", "constant: 7 -> 7+1": "g8", "constant: 7 -> 7-1": "g6", `constant: "g" -> ""`: "7",
			},
		},
		"a check is deleted, negated and shifted": {
			`func main() { if n := 3; n > 3 { print("big") }; print(".") }`,
			".",
			map[string]string{
				`delete: if n := 3; n > 3 { print("big") }`: ".", `delete: print("big")`: ".", `delete: print(".")`: "",
				"negate: n > 3 -> !(n > 3)": "big.", "shift: n > 3 -> n >= 3": "big.",
				"constant: 3 -> 3+1": ".|big.", "constant: 3 -> 3-1": ".|big.", `constant: "big" -> ""`: ".", `constant: "." -> ""`: "",
			},
		},
		"a junction becomes the other one, and no operand is asked twice": {
			`func yes() bool { print("y"); return true }
func no() bool { print("n"); return false }
func main() { if yes() && no() { print("!") } }`,
			"yn",
			map[string]string{
				"shift: yes() && no() -> yes() || no()":     "y!",
				"negate: yes() && no() -> !(yes() && no())": "yn!",
				`delete: if yes() && no() { print("!") }`:   "",
				`delete: print("y")`:                        "n", `delete: print("n")`: "y", `delete: print("!")`: "yn",
				"constant: true -> false": "y", "constant: false -> true": "yn!",
				`constant: "y" -> ""`: "n", `constant: "n" -> ""`: "y", `constant: "!" -> ""`: "yn",
			},
		},
		"an error is dropped": {
			`import "errors"
var bad = errors.New("bad")
func f() (int, error) { return 1, bad }
func g() error { return errors.New("made on the spot") }
func main() { _, err := f(); print(err == nil); print(g() == nil) }`,
			"falsefalse",
			map[string]string{
				"drop error: return 1, bad -> return 1, nil":                      "truefalse",
				`drop error: return errors.New("made on the spot") -> return nil`: "falsetrue",
				"shift: err == nil -> err != nil":                                 "truefalse",
				"constant: 1 -> 1+1":                                              "falsefalse", "constant: 1 -> 1-1": "falsefalse",
				"delete: print(err == nil)": "false",
			},
		},
		"a constant is changed at every use": {
			`import "time"
const wait = 2 * time.Millisecond
func main() { var a [wait]int; _ = a; print(wait == 4*time.Millisecond, " ", int64(wait)) }`,
			"false 2000000",
			map[string]string{
				"constant: 2 * time.Millisecond -> 2 * time.Millisecond*2": "true 4000000",
			},
		},
		"the way out of a loop is deleted": {
			`func main() { for i := range 4 { if i == 1 { continue }; if i == 3 { break }; print(i) } }`,
			"02",
			map[string]string{"delete: continue": "012", "delete: break": "023", "shift: i == 1 -> i != 1": "1", "shift: i == 3 -> i != 3": ""},
		},
		"what is deferred is deleted, and so is a bare return": {
			`func f(x bool) { defer print("d"); if x { return }; print("f") }
func main() { f(true) }`,
			"d",
			map[string]string{`delete: defer print("d")`: "", "delete: return": "fd", "constant: true -> false": "fd", "delete: f(true)": ""},
		},
		"a condition of SQL holds always": {
			"func main() { q := `UPDATE runs SET state = $1 WHERE id = $2 AND fence = $3`; print(len(q)) }",
			"55",
			map[string]string{
				"widen SQL: `UPDATE runs SET state = $1 WHERE id = $2 AND fence = $3` -> \"UPDATE runs SET state = $1 WHERE (id = $2 OR 1=1) AND fence = $3\"": "64",
				"widen SQL: `UPDATE runs SET state = $1 WHERE id = $2 AND fence = $3` -> \"UPDATE runs SET state = $1 WHERE id = $2 AND (fence = $3 OR 1=1)\"": "64",
			},
		},
		"a mode is opened to everybody": {
			`func main() { mode := 0o600; print(mode) }`,
			"384",
			map[string]string{"constant: 0o600 -> 0o600 | 0o077": "447"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mutants, copied := grow(t, "package main\n"+c.source+"\n")
			program := build(t, "", copied)
			if normal := runWith(t, program, mutant.LimitOf(0)); normal != c.normal {
				t.Errorf("without a mutant it says %q, want %q", normal, c.normal)
			}
			got := map[string][]string{}
			for _, m := range mutants {
				name := m.Op + ": " + m.Before
				if m.Op != opDelete {
					name += " -> " + m.After
				}
				got[name] = append(got[name], runWith(t, program, mutant.LimitOf(m.ID)))
			}
			for name, want := range c.want {
				if slices.Sort(got[name]); strings.Join(got[name], "|") != want {
					t.Errorf("%s: says %q, want %q", name, strings.Join(got[name], "|"), want)
				}
			}
			if t.Failed() {
				t.Logf("%q\n%s", got, copied)
			}
		})
	}
}

func TestARecordHasWhatWasReachedWhateverEndsTheProcess(t *testing.T) {
	mutants, copied := grow(t, `package main
import "syscall"
func main() {
	no := 1
	if len("ab") == no { print("never") }
	if no == 2 { print("not reached") }
	syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	print("nor this")
}
`)
	body := recordOf(t, copied)
	for _, m := range mutants {
		inside := strings.Contains(m.Before, "print(") || strings.HasPrefix(m.Before, `"n`)
		if reached := body[m.ID] == 1; reached == inside {
			t.Errorf("%s %s: reached = %v", m.Op, m.Before, reached)
		}
	}
}

// A test in which a mutant changes no value need not be run with it.
func TestWhatMakesNoDifferenceIsNotReached(t *testing.T) {
	mutants, copied := grow(t, `package main
import ("errors"; "syscall")
func f(err error) error { return err }
func g() bool { return false }
func main() {
	three := 3
	f(nil)
	f(f(errors.New("a")))
	if three > 3 { print("no") }
	if three > 4 { print("no") }
	if three >= 3 { print("yes") }
	if three >= 2 { print("yes") }
	if three < 3 { print("no") }
	if three <= 3 { print("yes") }
	if three <= 4 { print("yes") }
	if g() { print("no") }
	syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
}
`)
	body := recordOf(t, copied)
	got := map[string]bool{}
	for _, m := range mutants {
		if m.Op == opShift || m.Op == opError || m.Op == opNegate || m.Op == opDelete && strings.HasPrefix(m.Before, "if") {
			got[m.Op+" "+m.Before] = body[m.ID] == 1
		}
	}
	want := map[string]bool{
		"drop error return err": true, "negate g()": true, `delete if g() { print("no") }`: true, // g could do something
		"shift three > 3": true, "shift three > 4": false, "shift three >= 3": true, "shift three >= 2": false,
		"shift three < 3": true, "shift three <= 3": true, "shift three <= 4": false,
		`delete if three > 3 { print("no") }`: false, `delete if three > 4 { print("no") }`: false,
		`delete if three >= 3 { print("yes") }`: true, `delete if three >= 2 { print("yes") }`: true,
		`delete if three < 3 { print("no") }`: false, `delete if three <= 3 { print("yes") }`: true, `delete if three <= 4 { print("yes") }`: true,
	}
	for _, compared := range []string{"> 3", "> 4", ">= 3", ">= 2", "< 3", "<= 3", "<= 4"} {
		want["negate three "+compared] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reached (-want +got):\n%s", diff)
	}
	_, none := grow(t, `package main
import "syscall"
func f(err error) error { return err }
func main() { _ = f(nil); syscall.Kill(syscall.Getpid(), syscall.SIGKILL) }
`)
	if body := recordOf(t, none); body[1] != 0 {
		t.Error("to drop an error that is nil was noted")
	}
}

// recordOf runs a copy that kills itself, and returns what it noted.
func recordOf(t *testing.T, copied string) []byte {
	t.Helper()
	records := t.TempDir()
	name := filepath.Join(records, "5")
	if err := os.WriteFile(name, make([]byte, mutant.Capacity), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), build(t, records, copied))
	if err := staged(cmd, run{File: cmd.Path, Dir: records, Limit: mutant.RecordOf(5), Writable: []string{records}}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err == nil {
		t.Error("it ended well and was to be killed")
	}
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestEachTestHasARecordOfItsOwnWithItsChildren(t *testing.T) {
	mutants, code := grow(t, `package main
func always() { print("m") }
func inA() { print("a") }
func inB() { print("b") }
func inChild() { print("c") }
`)
	names, tests, err := beginTests("x_test.go", []byte(`package main
import ("os"; "os/exec")
func main() {
	always()
	if len(os.Args) > 1 { inChild() }
	TestA(serial{})
	if len(os.Args) == 1 { TestB(serial{}) }
}
type serial struct{}
func (serial) Parallel() { panic("not while tests are recorded") }
func TestA(t serial) { t.Parallel(); inA() }
func TestB(t serial) { t.Parallel(); inB(); inAChild() }
func inAChild() {
	cmd := exec.Command(os.Args[0], "child")
	cmd.Stderr = os.Stderr
	if cmd.Run() != nil { panic("the child failed") }
}
func TestMain() {}
`), 0)
	if err != nil || !slices.Equal(names, []string{"TestA", "TestB"}) {
		t.Fatalf("beginTests finds %v, %v", names, err)
	}
	records := t.TempDir()
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(records, fmt.Sprint(i)), make([]byte, mutant.Capacity), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), build(t, records, code, string(tests)))
	if err := staged(cmd, run{File: cmd.Path, Dir: records, Limit: mutant.RecordOf(0), Writable: []string{records}}); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "mabmca" {
		t.Fatalf("the program says %q, %v", out, err)
	}
	for i, want := range []string{"m", "a", "mabc"} {
		body, err := os.ReadFile(filepath.Join(records, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, m := range mutants {
			if text, said := strings.CutPrefix(m.Before, `print("`); said && body[m.ID] == 1 {
				got.WriteString(text[:1])
			}
		}
		if got.String() != want {
			t.Errorf("record %d has what prints %q, want %q", i, got.String(), want)
		}
	}
}

func TestWordsAndWhatTheCompilerWantsConstantAreLeftAlone(t *testing.T) {
	mutants, _ := grow(t, `package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

type kind int

const (
	one kind = iota
	two
)

type tagged struct {
	Field [4]int `+"`json:\"field\"`"+`
}

var table = [...]string{one: "", 2: ""}

func main() {
	var kind = errors.New("bad")
	fmt.Println(fmt.Errorf("read the file: %w", kind), tagged{}, table, two)
	panic("never")
}

func value() (string, int, bool, error) {
	_, cancel := context.WithCancel(context.TODO())
	defer cancel()
	defer time.NewTimer(time.Second).Stop()
	return "", 0, false, fmt.Errorf("a list of %d", cap(make([]int, len(table), 8)))
}
`)
	var got []string
	for _, m := range mutants {
		got = append(got, m.Op+": "+m.Before)
	}
	want := []string{`constant: ""`, `constant: ""`, `delete: fmt.Println(fmt.Errorf("read the file: %w", kind), tagged{}, table, two)`, `drop error: return "", 0, false, fmt.Errorf("a list of %d", cap(make([]int, len(table), 8)))`}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("planted %q, want %q", got, want)
	}
}

func TestACopyKeepsItsLines(t *testing.T) {
	const source = "package main\n\nfunc main() {\n\tif true ||\n\t\tfalse {\n\t\tprintln(`a\nb`)\n\t}\n}\n"
	_, copied := grow(t, source)
	if got, want := strings.Count(copied, "\n"), strings.Count(source, "\n"); got != want {
		t.Errorf("the copy has %d lines, want %d:\n%s", got, want, copied)
	}
}

func TestAPlaceThatDoesNotCompileIsLeftOutAndTheRestIsPlanted(t *testing.T) {
	known, err := exports()
	if err != nil {
		t.Fatal(err)
	}
	// The name of the basic type is taken where the constant would need it.
	const source = "package main\n\nfunc main() {\n\tstring := 1\n\tprintln(\"a\")\n\tprintln(string)\n}\n"
	all := &planted{files: map[string][]byte{}}
	if err := all.plantPackage("/top", "main", "plan", map[string][]byte{"/top/x.go": []byte(source)}, known); err != nil {
		t.Fatal(err)
	}
	if all.broken == 0 || len(all.mutants) < 3 {
		t.Errorf("%d left out and %d planted, want some of both", all.broken, len(all.mutants))
	}
}

func TestPackagesThatCannotBeListedAreToldInTheWordsOfGo(t *testing.T) {
	_, err := listPackages(t.Context(), t.TempDir(), "./none")
	if err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("listPackages = %v, want what go said", err)
	}
}

func TestEverySourceCanBePlantedAndEveryArgumentMeetsAMutant(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	all, err := plantAll(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, m := range all.mutants {
		of[m.Group]++
	}
	for _, group := range named {
		if of[group] < 100 {
			t.Errorf("%s has %d mutants; is it still where it was?", group, of[group])
		}
	}
	if all.broken > len(all.mutants)/100 {
		t.Errorf("%d places do not compile, which is more than one of a hundred", all.broken)
	}
	arguments, err := readArguments(arguedText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := argue(arguments, all.mutants); err != nil {
		t.Error(err)
	}
}

// A helper that makes its caller parallel would mix the records of tests.
func TestWhatTestsCallIsBegunLikeThem(t *testing.T) {
	for want, all := range map[bool][]listed{
		true:  {{ImportPath: module + "/internal/test/verbtest"}, {ImportPath: module + "/internal/test/modelcalls"}},
		false: {{ImportPath: module + "/internal/store"}, {ImportPath: module + "/internal/test/verbtest.test"}, {ImportPath: module + "/internal/test/verbtest", ForTest: "x"}},
	} {
		for _, p := range all {
			if p.helpsTests() != want {
				t.Errorf("%+v helps tests: %v, want %v", p, !want, want)
			}
		}
	}
	names, guarded, err := beginTests("x.go", []byte("package x\nfunc OnBoth(t T) { t.Parallel(); t.Run() }\n"), 0)
	if err != nil || names != nil || !strings.Contains(string(guarded), "Recording() { t.Parallel() }") {
		t.Errorf("a helper is built as %v, %q, %v", names, guarded, err)
	}
}
