package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
)

var testName = regexp.MustCompile(`^(Test|Fuzz)($|[^a-z])`)

// beginTests returns the names of the tests of a source, and a copy in which
// each begins a record of its own. While they are recorded one runs after the
// other. The first has the number first.
func beginTests(name string, src []byte, first int) ([]string, []byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	offset := func(pos token.Pos) int { return fset.Position(pos).Offset }
	e := &edits{opens: map[int]string{}, closes: map[int]string{}}
	var names []string
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if fn.Recv == nil && testName.MatchString(fn.Name.Name) && fn.Name.Name != "TestMain" {
			e.opens[offset(fn.Body.Lbrace)+1] = fmt.Sprintf(" %s.Begin(%d);", switchName, first+len(names))
			names = append(names, fn.Name.Name)
		}
		// Tests that are called by another one stay parallel: they are recorded
		// together.
		for _, s := range fn.Body.List {
			if expr, ok := s.(*ast.ExprStmt); ok && isParallel(expr.X) {
				e.opens[offset(s.Pos())] += "if !" + switchName + ".Recording() { "
				e.closes[offset(s.End())] += " }"
			}
		}
	}
	if len(e.opens) == 0 {
		return nil, src, nil
	}
	e.closes[offset(file.Name.End())] += importSwitch
	return names, e.apply(src), nil
}

func isParallel(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Parallel"
}
