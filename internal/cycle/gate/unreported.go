package gate

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Comparison compares the reports of one gate on two trees. The trees are opened
// only if names differ.
type Comparison struct {
	Line string // of the gate
	Base loop.TestNames
	Now  loop.TestNames

	BaseTree func() (Tree, error)
	NowTree  func() (Tree, error)

	// Tests says that the change touches files of tests, which the scope has to
	// name for that. Tests may then be renamed or gone.
	Tests bool
}

// Unreported are the differences between the tests that were expected and those
// that reported. Each list is sorted.
type Unreported struct {
	Missing []string // expected, not renamed or removed by the change, but not reported
	Gone    []string // on the base, and renamed or removed by the change
	Nowhere []string // reported, but in no file of the tree
}

// Unreported compares names. What is expected comes from the base: the tests
// that reported there and, of Go packages that failed there, what their files
// hold. Tests of Go are looked up in the files of both trees, which are parsed
// and never run; of other tests a change that touches no file of tests has
// renamed none.
func (c Comparison) Unreported() (Unreported, error) {
	var u Unreported
	if len(c.Base.Ran) == 0 && len(c.Base.Broken) == 0 {
		return u, nil
	}
	missing, fresh := namesWithout(c.Base.Ran, c.Now.Ran), namesWithout(c.Now.Ran, c.Base.Ran)
	if !anyGo(missing) && !anyGo(fresh) && len(c.Base.Broken) == 0 {
		u.addMissing(missing, c.Tests)
		return u, nil
	}
	files := &bothTrees{c: c}
	if err := files.openTrees(); err != nil {
		return u, err
	}
	more, err := files.testsOfBroken()
	if err != nil {
		return u, err
	}
	u.addMissing(slices.DeleteFunc(slices.Clone(missing), isGo), c.Tests)
	for _, name := range namesWithout(append(slices.DeleteFunc(missing, notGo), more...), c.Now.Ran) {
		if err := files.classifyMissing(name, &u); err != nil {
			return u, err
		}
	}
	if u.Nowhere, err = files.madeUpTests(slices.DeleteFunc(fresh, notGo)); err != nil {
		return u, err
	}
	for _, list := range []*[]string{&u.Missing, &u.Gone} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return u, nil
}

// addMissing adds tests that did not report to Gone if they may be renamed, else to
// Missing.
func (u *Unreported) addMissing(missing []string, renamed bool) {
	if renamed {
		u.Gone = append(u.Gone, missing...)
	} else {
		u.Missing = append(u.Missing, missing...)
	}
}

// Objection returns why a gate with such reports has not passed; empty if they
// are no reason.
func (u Unreported) Objection() string {
	switch {
	case len(u.Missing) > 0:
		return "tests of the base did not report: " + listNames(u.Missing)
	case len(u.Nowhere) > 0:
		return "tests reported that are in no file: " + listNames(u.Nowhere)
	}
	return ""
}

// Flag returns what people are told about tests that the change renamed or
// removed; empty if there are none.
func (u Unreported) Flag() string {
	if len(u.Gone) == 0 {
		return ""
	}
	return "tests of the base are renamed or gone: " + listNames(u.Gone)
}

// listNames writes some names without their formats, and counts the others.
func listNames(names []string) string {
	const most = 8
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		_, name, _ = strings.Cut(name, " ")
		if len(name) > 200 {
			name = strings.ToValidUTF8(name[:200], "") + "…"
		}
		shown = append(shown, name)
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// namesWithout returns the elements of list that are not in others.
func namesWithout(list, others []string) []string {
	had := make(map[string]struct{}, len(others))
	for _, s := range others {
		had[s] = struct{}{}
	}
	var left []string
	for _, s := range list {
		if _, ok := had[s]; !ok {
			left = append(left, s)
		}
	}
	return left
}

func isGo(name string) bool          { return strings.HasPrefix(name, "go ") }
func notGo(name string) bool         { return !isGo(name) }
func anyGo(names []string) bool      { return slices.ContainsFunc(names, isGo) }
func goName(pkg, test string) string { return "go " + pkg + "." + test }

// splitGo returns the package and the test of a name.
func splitGo(name string) (pkg, test string) {
	name = strings.TrimPrefix(name, "go ")
	i := strings.LastIndexByte(name, '.')
	return name[:i], name[i+1:]
}

// bothTrees looks tests up in the files of the base and of the candidate.
type bothTrees struct {
	c         Comparison
	base, now *goFiles
}

func (b *bothTrees) openTrees() error {
	for _, side := range []struct {
		tree func() (Tree, error)
		to   **goFiles
	}{{b.c.BaseTree, &b.base}, {b.c.NowTree, &b.now}} {
		tree, err := side.tree()
		if err != nil {
			return err
		}
		if *side.to, err = indexGoFiles(tree); err != nil {
			return err
		}
	}
	return nil
}

// testsOfBroken returns the tests in the files of packages that failed on the base: the
// output there may not name all of them. A test that a flag of the gate, a TestMain or a
// condition in a file may leave out is not expected.
func (b *bothTrees) testsOfBroken() ([]string, error) {
	if choosesTests(b.c.Line) {
		return nil, nil
	}
	var names []string
	for _, pkg := range b.c.Base.Broken {
		dir, ok := b.base.packageDir(pkg)
		if !ok {
			continue
		}
		p, err := b.base.testsIn(dir)
		if err != nil {
			return nil, err
		}
		for test, always := range p.tests {
			if always && !p.main {
				names = append(names, goName(pkg, test))
			}
		}
	}
	return names, nil
}

// classifyMissing adds a test of the base that did not report to u. A test that is in no
// file of the base is not expected: it was made while the gate ran, or made up.
func (b *bothTrees) classifyMissing(name string, u *Unreported) error {
	pkg, test := splitGo(name)
	if dir, ok := b.base.packageDir(pkg); ok {
		p, err := b.base.testsIn(dir)
		if err != nil {
			return err
		}
		if _, ok := p.tests[test]; !ok {
			return nil
		}
	}
	there := false
	if dir, ok := b.now.packageDir(pkg); ok {
		p, err := b.now.testsIn(dir)
		if err != nil {
			return err
		}
		_, there = p.tests[test]
	}
	u.addMissing([]string{name}, !there && b.c.Tests)
	return nil
}

// madeUpTests returns the reported tests that are in no file of the candidate. If the base
// had such tests too, there are none: then the gate generates tests while it runs.
func (b *bothTrees) madeUpTests(fresh []string) ([]string, error) {
	made, err := testsInNoFile(b.now, fresh)
	if err != nil || len(made) == 0 {
		return nil, err
	}
	before, err := testsInNoFile(b.base, slices.DeleteFunc(slices.Clone(b.c.Base.Ran), notGo))
	if err != nil || len(before) > 0 {
		return nil, err
	}
	return made, nil
}

// testsInNoFile returns the names of tests that are in no file of their package.
func testsInNoFile(files *goFiles, names []string) (list []string, err error) {
	for _, name := range names {
		pkg, test := splitGo(name)
		dir, ok := files.packageDir(pkg)
		if !ok {
			continue
		}
		p, err := files.testsIn(dir)
		if err != nil {
			return nil, err
		}
		if _, ok := p.tests[test]; !ok {
			list = append(list, name)
		}
	}
	return list, nil
}

// choosesTests reports whether a line may run some tests of a package and not
// others, or cannot be read.
func choosesTests(line string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return true
	}
	chooses := false
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if ok {
			for _, name := range flagNames(call.Args) {
				chooses = chooses || name == "run" || name == "skip" || name == "list"
			}
		}
		return !chooses
	})
	return chooses
}
