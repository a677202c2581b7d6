package gate

import (
	"go/ast"
	"go/build"
	"go/build/constraint"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tree is a tree of a repository. Files are read on demand.
type Tree struct {
	Paths []string // of all regular files
	Read  func(path string) ([]byte, error)
}

// goFiles finds the tests in the files of Go packages. It parses each package
// once, and only packages that it is asked about.
type goFiles struct {
	tree    Tree
	modules map[string]string   // directory by module path
	holds   map[string][]string // files of Go by directory
	parsed  map[string]goPackage
}

// goPackage holds the tests of one directory.
type goPackage struct {
	tests map[string]bool // by name: true if go test always runs it, false if a build constraint may exclude it
	main  bool            // it has a TestMain, which decides what runs
}

func indexGoFiles(t Tree) (*goFiles, error) {
	g := &goFiles{tree: t, modules: map[string]string{}, holds: map[string][]string{}, parsed: map[string]goPackage{}}
	for _, name := range t.Paths {
		dir, file := path.Split(name)
		dir = path.Clean(dir)
		switch {
		case file == "go.mod":
			text, err := t.Read(name)
			if err != nil {
				return nil, err
			}
			g.modules[modulePath(string(text))] = dir // A module without a name has no packages.
		case strings.HasSuffix(file, ".go") && file[0] != '_' && file[0] != '.':
			g.holds[dir] = append(g.holds[dir], file)
		}
	}
	return g, nil
}

// modulePath returns the name of the module in a go.mod.
func modulePath(text string) string {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != "module" {
			continue
		}
		if quoted, err := strconv.Unquote(f[1]); err == nil {
			return quoted
		}
		return f[1]
	}
	return ""
}

// packageDir returns the directory of a package. It reports false for packages of other
// modules and for those that are generated while the gate runs.
func (g *goFiles) packageDir(pkg string) (dir string, ok bool) {
	longest := -1
	for module, at := range g.modules {
		rest, below := strings.CutPrefix(pkg, module)
		if below && (rest == "" || rest[0] == '/') && len(module) > longest {
			longest, dir = len(module), path.Join(at, rest)
		}
	}
	return dir, longest >= 0 && len(g.holds[dir]) > 0
}

// testsIn returns the tests of a directory. A file that cannot be parsed has none.
func (g *goFiles) testsIn(dir string) (goPackage, error) {
	if p, ok := g.parsed[dir]; ok {
		return p, nil
	}
	p := goPackage{tests: map[string]bool{}}
	for _, name := range g.holds[dir] {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := g.tree.Read(path.Join(dir, name))
		if err != nil {
			return p, err
		}
		p.addFile(name, text)
	}
	g.parsed[dir] = p
	return p, nil
}

func (p *goPackage) addFile(name string, text []byte) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return
	}
	always := unconditional(name, text, file)
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Type.TypeParams != nil || fn.Type.Params.NumFields() != 1 {
			continue
		}
		switch {
		case fn.Name.Name == "TestMain" && takesPointerTo(fn, "M"):
			p.main = true
		case isTest(fn.Name.Name, "Test") && takesPointerTo(fn, "T"), isTest(fn.Name.Name, "Fuzz") && takesPointerTo(fn, "F"):
			p.tests[fn.Name.Name] = p.tests[fn.Name.Name] || always
		}
	}
	for _, e := range doc.Examples(file) {
		if e.Output != "" || e.EmptyOutput { // Other examples are only compiled.
			p.tests["Example"+e.Name] = p.tests["Example"+e.Name] || always
		}
	}
}

// takesPointerTo reports whether the only parameter of a function is a *testing.T
// or the like, whatever name the package is imported with.
func takesPointerTo(fn *ast.FuncDecl, name string) bool {
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch x := star.X.(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}

// isTest is the rule of go test for names: what follows the prefix does not
// begin with a small letter.
func isTest(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	first, _ := utf8.DecodeRuneInString(rest)
	return ok && (rest == "" || !unicode.IsLower(first))
}

// unconditional reports whether go test compiles a file with any flags. A file
// with a build constraint is not unconditional, even if it is always satisfied.
func unconditional(name string, text []byte, file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		if slices.ContainsFunc(group.List, func(c *ast.Comment) bool { return constraint.IsGoBuild(c.Text) || constraint.IsPlusBuild(c.Text) }) {
			return false
		}
	}
	here := build.Default
	here.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(text))), nil }
	matches, err := here.MatchFile("", name)
	return matches && err == nil
}
