// Sampled names the tests that try only a sample in `make test`, for `make test-rest`:
// a first line with their packages, and a second with a pattern for -run. These are
// the tests that ask package sample how much to try, directly or by functions of
// their package.
//
// It reads names and no types: of two functions of one package that share a name,
// both are taken to ask. It runs no test.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	if err := printSampled(os.DirFS("."), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sampled:", err)
		os.Exit(1)
	}
}

func printSampled(module fs.FS, out io.Writer) error {
	found, err := sampledTests(module)
	if err != nil {
		return err
	}
	var packages, tests []string
	for name, in := range found {
		packages, tests = append(packages, "./"+name), append(tests, in...)
	}
	if len(tests) == 0 {
		return errors.New("no test below internal/ asks package sample how much to try; run it in the root of the module")
	}
	slices.Sort(packages)
	slices.Sort(tests)
	_, err = fmt.Fprintf(out, "%s\n^(%s)$\n", strings.Join(packages, " "), strings.Join(slices.Compact(tests), "|"))
	return err
}

// asks are the functions of package sample that say how much to try.
var asks = []string{"All", "Size", "Checks", "SameChecks"}

const samplePackage = "github.com/pawl-run/pawl/internal/test/sample"

// sampledTests are the names of the tests, by the path of their package.
func sampledTests(module fs.FS) (map[string][]string, error) {
	named := map[string]map[string][]string{} // by package and function: the names that it uses
	files := token.NewFileSet()
	err := fs.WalkDir(module, "internal", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in := path.Dir(name)
		if named[in] == nil {
			named[in] = map[string][]string{}
		}
		recordNames(file, named[in])
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for in, functions := range named {
		asking := slices.Clone(functions[askingName])
		for i := 0; i < len(asking); i++ {
			for function, uses := range functions {
				if slices.Contains(uses, asking[i]) && !slices.Contains(asking, function) {
					asking = append(asking, function)
				}
			}
		}
		if tests := slices.DeleteFunc(asking, func(name string) bool { return !strings.HasPrefix(name, "Test") || name == "TestMain" }); len(tests) > 0 {
			found[in] = tests
		}
	}
	return found, nil
}

// askingName has the functions that call package sample. No function has it.
const askingName = ""

// recordNames records, for each function and variable of a file, what names it uses.
func recordNames(file *ast.File, functions map[string][]string) {
	imports := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+samplePackage+`"` })
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			recordUses(f.Name.Name, f.Body, imports, functions)
			continue
		}
		for _, spec := range decl.(*ast.GenDecl).Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					recordUses(name.Name, v, imports, functions)
				}
			}
		}
	}
}

func recordUses(name string, within ast.Node, imports bool, functions map[string][]string) {
	ast.Inspect(within, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && imports && x.Name == "sample" && slices.Contains(asks, n.Sel.Name) {
				functions[askingName] = append(functions[askingName], name)
			}
		case *ast.Ident:
			functions[name] = append(functions[name], n.Name)
		}
		return true
	})
}
