package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

var attackName = regexp.MustCompile(`^TestAttack(\d{3})[A-Z]`)

// testsOf returns the tests below internal/, as package and name, sorted.
func testsOf(tree fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(tree, "internal", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return ignored(file)
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		body, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, body, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names = append(names, strings.TrimPrefix(path.Dir(file), "internal/")+"."+f.Name.Name)
			}
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// shown are the tests of each attack.
func shown(tests []string) (byID map[int][]string, wrong []string) {
	byID = map[int][]string{}
	for _, name := range tests {
		_, base, _ := strings.Cut(name, ".")
		if !strings.HasPrefix(base, "TestAttack") {
			continue
		}
		m := attackName.FindStringSubmatch(base)
		if m == nil {
			wrong = append(wrong, name+": the name of an attack's test is TestAttack, three digits and a sentence")
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil {
			panic(err)
		}
		byID[id] = append(byID[id], name)
	}
	return byID, wrong
}

// unproven returns a sentence for each place at which the list of attacks and
// the tests disagree.
func unproven(sections []section, tests []string) []string {
	byID, wrong := shown(tests)
	known := map[int]bool{}
	for _, s := range sections {
		for _, a := range s.attacks {
			switch {
			case known[a.id]:
				wrong = append(wrong, fmt.Sprintf("attack %d stands twice in the list", a.id))
			case len(byID[a.id]) == 0 && a.due == "":
				wrong = append(wrong, fmt.Sprintf("attack %d (%s) has no test: write TestAttack%03d…, or say what it is due with", a.id, a.words, a.id))
			case len(byID[a.id]) > 0 && a.due != "":
				wrong = append(wrong, fmt.Sprintf("attack %d is listed as due with %s and is tested by %s: take the due away", a.id, a.due, strings.Join(byID[a.id], ", ")))
			}
			known[a.id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if !known[id] {
			wrong = append(wrong, fmt.Sprintf("%s: there is no attack %d in the list", byID[id][0], id))
		}
	}
	return wrong
}

// drawAttacks is the table in Markdown.
func drawAttacks(sections []section, tests []string) string {
	byID, _ := shown(tests)
	var b strings.Builder
	b.WriteString("| id | attack | tests | state |\n|--:|---|---|---|\n")
	for i, s := range sections {
		fmt.Fprintf(&b, "| | **%c. %s** | | |\n", 'A'+i, s.name)
		for _, a := range s.attacks {
			var cells []string
			for _, name := range byID[a.id] {
				cells = append(cells, "`"+name+"`")
			}
			state := "tested"
			if a.due != "" {
				state = "due with " + a.due
			}
			fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", a.id, a.words, strings.Join(cells, "<br>"), state)
		}
	}
	return b.String()
}

func testsOfCheckout(t *testing.T) []string {
	t.Helper()
	tests, err := testsOf(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func TestEveryAttackIsTestedOrDue(t *testing.T) {
	for _, sentence := range unproven(attacks, testsOfCheckout(t)) {
		t.Error(sentence)
	}
}

func TestTheTableOfAttackTestsIsDrawn(t *testing.T) {
	drawn.Sections(t, filepath.Join(root, "docs", "dev", "attack-tests.md"), map[string]string{"attacks": drawAttacks(attacks, testsOfCheckout(t))})
}

var (
	promise  = regexp.MustCompile(`(?m)^- \[([^\]]+)\]\(#([^)]+)\)`)
	testName = regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z0-9]+)`")
)

func TestEachGuaranteeHasEvidenceThatExists(t *testing.T) {
	read := func(name ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{root, "docs"}, name...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	evidence, tests := read("dev", "guarantees-evidence.md"), testsOfCheckout(t)
	byID, _ := shown(tests)
	promises := promise.FindAllStringSubmatch(read("guarantees.md"), -1)
	if len(promises) < 20 {
		t.Errorf("docs/guarantees.md has only %d promises", len(promises))
	}
	for _, p := range promises {
		row := regexp.MustCompile(`(?m)^\| \[` + regexp.QuoteMeta(p[1]) + `\]\(\.\./guarantees\.md#` + p[2] + `\) \| ([0-9, ]*)\| (.*)\|$`).FindStringSubmatch(evidence)
		if row == nil {
			t.Errorf("docs/dev/guarantees-evidence.md has no row for %q", p[1])
			continue
		}
		if strings.TrimSpace(row[1]+row[2]) == "" {
			t.Errorf("%q has no evidence", p[1])
		}
		for _, number := range strings.FieldsFunc(row[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if id, err := strconv.Atoi(number); err != nil || len(byID[id]) == 0 {
				t.Errorf("%q: no test of attack %s", p[1], number)
			}
		}
		for _, name := range testName.FindAllStringSubmatch(row[2], -1) {
			if !slices.Contains(tests, name[1]) {
				t.Errorf("%q: there is no test %s", p[1], name[1])
			}
		}
	}
}

// TestTheListOfAttacksIsHeldAgainstTheTests feeds the checker trees that are
// wrong in one way each: a rule that never fails would prove nothing.
func TestTheListOfAttacksIsHeldAgainstTheTests(t *testing.T) {
	const tested = "func TestAttack001AFileIsRefused(t *testing.T) {}\n"
	list := []section{{"One", []attack{{id: 1, words: "a file"}, {id: 2, words: "a link", due: "the sandbox"}}}}
	for name, c := range map[string]struct{ body, want string }{
		"all is as it is listed":     {tested, ""},
		"a method is not a test":     {tested + "func (x T) TestAttack002ALink() {}\n", ""},
		"an attack has no test":      {"func TestOther(t *testing.T) {}\n", "attack 1 (a file) has no test: write TestAttack001"},
		"one that is due has a test": {tested + "func TestAttack002ALinkIsRefused(t *testing.T) {}\n", "attack 2 is listed as due with the sandbox and is tested by x.TestAttack002"},
		"a test of an unknown id":    {tested + "func TestAttack003ADeviceIsRefused(t *testing.T) {}\n", "x.TestAttack003ADeviceIsRefused: there is no attack 3"},
		"an id of two digits":        {tested + "func TestAttack03ADevice(t *testing.T) {}\n", "x.TestAttack03ADevice: the name of an attack's test is"},
	} {
		t.Run(name, func(t *testing.T) {
			tests, err := testsOf(fstest.MapFS{"internal/x/x_test.go": {Data: []byte("package x\n" + c.body)}})
			if err != nil {
				t.Fatal(err)
			}
			got := unproven(list, tests)
			if c.want == "" && len(got) == 0 {
				return
			}
			if c.want == "" || len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("said %q, want one sentence with %q", got, c.want)
			}
		})
	}
	twice := append(slices.Clone(list), list...)
	if got := unproven(twice, []string{"x.TestAttack001A"}); len(got) != 2 || !strings.Contains(got[0], "twice") {
		t.Errorf("said %q, want that both stand twice", got)
	}
}
