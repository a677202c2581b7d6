package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const module = "github.com/pawl-run/pawl"

// source is what the rules need to know about one package.
type source struct {
	name        string
	imports     []found // import paths
	testImports []found
	dots        []found // import paths, of imports with a dot
	refs        []found // what is used of imported packages, as time.Now
	sql         []found
	inits       []found
	points      []found // names of fault points, where they are literals
}

// found is something with its place, file:line.
type found struct{ what, at string }

// read parses every package below cmd and internal, for all platforms.
func read(tree fs.FS) ([]*source, error) {
	byName := map[string]*source{}
	var all []*source
	for _, top := range []string{"cmd", "internal"} {
		err := fs.WalkDir(tree, top, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				return ignored(file)
			}
			if !strings.HasSuffix(file, ".go") {
				return nil
			}
			name := packageName(module + "/" + path.Dir(file))
			if byName[name] == nil {
				byName[name] = &source{name: name}
				all = append(all, byName[name])
			}
			return byName[name].add(tree, file)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ignored leaves out the directories that the go command leaves out.
func ignored(dir string) error {
	if base := path.Base(dir); base == "testdata" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
		return fs.SkipDir
	}
	return nil
}

// packageName is the table's name for an import path of the module, and empty
// for all others.
func packageName(importPath string) string {
	name, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return ""
	}
	return strings.TrimPrefix(name, "internal/")
}

func (s *source) add(tree fs.FS, file string) error {
	body, err := fs.ReadFile(tree, file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, body, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	at := func(n ast.Node) string {
		p := set.Position(n.Pos())
		return fmt.Sprintf("%s:%d", p.Filename, p.Line)
	}
	test := strings.HasSuffix(file, "_test.go")
	names := map[string]string{} // in this file → import path
	for _, spec := range parsed.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", at(spec), err)
		}
		if test {
			s.testImports = append(s.testImports, found{importPath, at(spec)})
			continue
		}
		s.imports = append(s.imports, found{importPath, at(spec)})
		name := localName(spec, importPath)
		names[name] = importPath
		if name == "." {
			s.dots = append(s.dots, found{importPath, at(spec)})
		}
	}
	if !test {
		s.inspect(parsed, names, at)
	}
	return nil
}

func localName(spec *ast.ImportSpec, importPath string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(importPath)
}

func (s *source) inspect(file *ast.File, names map[string]string, at func(ast.Node) string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				s.inits = append(s.inits, found{"init", at(n)})
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && names[x.Name] != "" {
				s.refs = append(s.refs, found{names[x.Name] + "." + n.Sel.Name, at(n)})
			}
		case *ast.CallExpr:
			if point, ok := pointName(n, names); ok {
				s.points = append(s.points, found{point, at(n)})
			}
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit, *ast.BinaryExpr:
			if text := literal(n.(ast.Expr)); statement.MatchString(text) {
				s.sql = append(s.sql, found{text, at(n)})
				return false
			}
		}
		return true
	})
}

// pointName is the argument of fault.New, if that is a literal.
func pointName(call *ast.CallExpr, names map[string]string) (string, bool) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != "New" || len(call.Args) != 1 {
		return "", false
	}
	x, ok := fun.X.(*ast.Ident)
	if !ok || names[x.Name] != module+"/internal/ground/fault" {
		return "", false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	return literal(lit), true
}

// statement recognises SQL. The second word, where SQL has a fixed one, keeps
// sentences out that begin with "Create" or "Delete".
var statement = regexp.MustCompile(`(?is)^\s*(` +
	`select\s.*\sfrom\s|` +
	`insert\s+(or\s+\w+\s+)?into\s|` +
	`update\s+\S+(\s+as)?(\s+\w+)?\s+set\s|` +
	`delete\s+from\s|` +
	`create\s+(temp\s+|temporary\s+|unlogged\s+)?table\s)`)

// literal is the text of a string literal, or of a sum of some in which all
// else is a question mark.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	case *ast.ParenExpr:
		return literal(e.X)
	}
	return "?"
}
