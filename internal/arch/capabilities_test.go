package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// foreignMethods are methods of types of other modules, which have no interface here.
var foreignMethods = []string{"Unwrap", "CloseWrite"}

// unnamedCapabilities finds type assertions to interfaces without a name: what is asked for is
// found by nobody who reads the type, and a method that is misspelt is never called.
func unnamedCapabilities(tree fs.FS, file string) (list []found, err error) {
	body, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, body, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	ask := func(at ast.Node, asked ast.Expr) {
		unnamed, is := asked.(*ast.InterfaceType)
		if !is {
			return
		}
		for _, method := range unnamed.Methods.List {
			if len(method.Names) > 0 && !slices.Contains(foreignMethods, method.Names[0].Name) {
				list = append(list, found{method.Names[0].Name, fmt.Sprintf("%s:%d", file, set.Position(at.Pos()).Line)})
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			ask(n, n.Type)
		case *ast.CaseClause:
			for _, asked := range n.List {
				ask(n, asked)
			}
		}
		return true
	})
	return list, nil
}

func TestWhatATypeMayDoBesideIsANamedInterface(t *testing.T) {
	tree := os.DirFS(filepath.Join(root, "internal"))
	err := fs.WalkDir(tree, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			return err
		}
		list, err := unnamedCapabilities(tree, file)
		for _, f := range list {
			t.Errorf("%s: the method %s is asked for without a name: declare an interface, as internal/cycle/engine/capabilities.go does, and assert it where it is implemented", f.at, f.what)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	planted := fstest.MapFS{"x.go": {Data: []byte("package x\nfunc f(s any) { _ = s.(interface{ Refresh() error }) }\nfunc g(s any) {\n\tswitch s.(type) {\n\tcase interface{ Notes() []string }:\n\t}\n}\n")}}
	if list, err := unnamedCapabilities(planted, "x.go"); err != nil || len(list) != 2 || list[0].at != "x.go:2" || list[1].at != "x.go:5" {
		t.Errorf("found %v, %v", list, err)
	}
}
