package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// visitor walks one file.
type visitor struct {
	*planter
	stack []ast.Node
	after []string // what closes the nodes of the stack
	wraps map[ast.Node][]wrapped
}

func (v *visitor) visit(n ast.Node) bool {
	if n == nil {
		last := len(v.stack) - 1
		if text := v.after[last]; text != "" {
			v.edits.closes[v.offset(v.stack[last].End())] += text
		}
		v.stack, v.after = v.stack[:last], v.after[:last]
		return true
	}
	if v.constantOnly(n) {
		// It keeps what is put around it, and nothing in it is changed.
		for _, w := range v.wraps[n] {
			v.edits.opens[v.offset(n.Pos())] += w.before
			v.edits.closes[v.offset(n.End())] = w.after + v.edits.closes[v.offset(n.End())]
		}
		return false
	}
	closing := ""
	around := func(before, after string) {
		v.edits.opens[v.offset(n.Pos())] += before
		closing = after + closing
	}
	for _, w := range v.wraps[n] {
		around(w.before, w.after)
	}
	v.stack, v.after = append(v.stack, n), append(v.after, "")
	v.operators(n, around)
	v.after[len(v.after)-1] = closing
	return true
}

// constantOnly reports whether a node has to stay as it is: the compiler wants
// a constant there, or it holds words that only people read.
func (v *visitor) constantOnly(n ast.Node) bool {
	var parent ast.Node
	if len(v.stack) > 0 {
		parent = v.stack[len(v.stack)-1]
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.VAR
	case *ast.Ident, *ast.BasicLit:
		if field, ok := parent.(*ast.Field); ok && field.Tag == n {
			return true
		}
	case *ast.CallExpr:
		if name := v.callee(n); name == "panic" || strings.HasPrefix(name, "errors.New") || strings.HasSuffix(name, "/fault.New") || strings.HasPrefix(name, "log/slog.") || strings.HasPrefix(name, "unsafe.") {
			return true
		}
	}
	switch parent := parent.(type) {
	case *ast.ArrayType:
		return parent.Len == n
	case *ast.CallExpr:
		// A capacity changes nothing but the speed.
		return v.callee(parent) == "make" && len(parent.Args) == 3 && parent.Args[2] == n
	case *ast.ReturnStmt:
		return v.besideFailure(n, parent)
	case *ast.KeyValueExpr:
		if parent.Key != n || len(v.stack) < 2 {
			return false
		}
		literal, ok := v.stack[len(v.stack)-2].(*ast.CompositeLit)
		if !ok || v.info.Types[literal].Type == nil {
			return false
		}
		switch v.info.Types[literal].Type.Underlying().(type) {
		case *types.Map:
			return false
		default:
			return true
		}
	}
	return false
}

// besideFailure reports whether a constant is returned together with an error or
// with false: nobody reads it then.
func (v *visitor) besideFailure(n ast.Node, parent *ast.ReturnStmt) bool {
	e, ok := n.(ast.Expr)
	last := parent.Results[len(parent.Results)-1]
	if !ok || e == last || v.info.Types[e].Value == nil {
		return false
	}
	_, sig := v.function()
	if sig == nil || sig.Results().Len() != len(parent.Results) {
		return false
	}
	if value := v.info.Types[last].Value; value != nil {
		return value.Kind() == constant.Bool && !constant.BoolVal(value)
	}
	isError := types.Identical(sig.Results().At(len(parent.Results)-1).Type(), types.Universe.Lookup("error").Type())
	return isError && !v.info.Types[last].IsNil() && v.fails(last)
}

// fails reports whether an error that is returned is one for sure: it is made
// on the spot, or a variable that was compared with nil around the return.
func (v *visitor) fails(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		return v.callee(e) == "fmt.Errorf" || v.callee(e) == "errors.New"
	case *ast.UnaryExpr, *ast.CompositeLit:
		return true
	case *ast.Ident:
		for _, n := range v.stack {
			if check, ok := n.(*ast.IfStmt); ok && strings.Contains(v.text(check.Cond), e.Name+" != nil") {
				return true
			}
		}
	}
	return false
}

// callee is the function of a call, as path.Name or path.Type.Name.
func (v *visitor) callee(call *ast.CallExpr) string {
	var ident *ast.Ident
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		ident = fun
	case *ast.SelectorExpr:
		ident = fun.Sel
	default:
		return ""
	}
	switch object := v.info.Uses[ident].(type) {
	case *types.Func:
		return object.FullName()
	case *types.Builtin:
		return object.Name()
	}
	return ""
}

// function is the name of the enclosing function, and the innermost signature.
func (v *visitor) function() (string, *types.Signature) {
	name, sig := "", (*types.Signature)(nil)
	for _, n := range v.stack {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name = n.Name.Name
			if n.Recv != nil && len(n.Recv.List) == 1 {
				name = "(" + v.text(n.Recv.List[0].Type) + ")." + name
			}
			if object := v.info.Defs[n.Name]; object != nil {
				sig, _ = object.Type().(*types.Signature)
			}
		case *ast.FuncLit:
			sig, _ = v.info.Types[n].Type.(*types.Signature)
		}
	}
	return name, sig
}

func (v *visitor) new(n ast.Node, op, before, after string) (int, bool) {
	name, _ := v.function()
	return v.add(v.name, v.src, n.Pos(), name, op, before, after)
}

func on(id int) string { return fmt.Sprintf("%s.On(%d)", switchName, id) }

func (v *visitor) operators(n ast.Node, around func(string, string)) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		v.statements(n.List)
	case *ast.CaseClause:
		v.statements(n.Body)
		if s, ok := v.stack[len(v.stack)-3].(*ast.SwitchStmt); ok && s.Tag == nil {
			for _, e := range n.List {
				v.negate(e)
			}
		}
	case *ast.CommClause:
		v.statements(n.Body)
	case *ast.IfStmt:
		v.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			v.negate(n.Cond)
		}
	case *ast.ReturnStmt:
		v.returned(n)
	case *ast.BinaryExpr:
		v.shift(n, around)
	case *ast.BasicLit:
		v.literal(n, around)
	case *ast.Ident:
		v.ident(n, around)
	}
}

// statements plants the deletion of each statement of a list. None is moved
// out of its list, so what follows still compiles.
func (v *visitor) statements(list []ast.Stmt) {
	for _, s := range list {
		if !v.deletable(s) {
			continue
		}
		id, ok := v.new(s, opDelete, v.text(s), "(nothing)")
		check, isIf := s.(*ast.IfStmt)
		switch {
		case !ok:
		case isIf && check.Init == nil && v.plainBool(check.Cond) && v.onlyLooks(check.Cond):
			// To delete it makes a difference only where the condition holds.
			v.wraps[check.Cond] = append(v.wraps[check.Cond], wrapped{"(", ") && !" + on(id)})
		default:
			v.wraps[s] = append(v.wraps[s], wrapped{"if !" + on(id) + " { ", " }"})
		}
	}
}

// onlyLooks reports whether to evaluate an expression changes nothing.
func (v *visitor) onlyLooks(e ast.Expr) bool {
	looks := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := v.callee(n)
			of, _, _ := strings.Cut(name, ".")
			looks = looks && (slices.Contains([]string{"errors.Is", "slices.Contains", "len"}, name) || of == "strings")
		case *ast.UnaryExpr:
			looks = looks && n.Op != token.ARROW
		case *ast.FuncLit:
			looks = false
		}
		return looks
	})
	return looks
}

func (v *visitor) deletable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && v.callee(call) != "panic" && !strings.HasPrefix(v.callee(call), "(*log/slog.")
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return false
		}
		// `_ = x` does nothing, if it does not call.
		blank, calls := true, false
		for _, left := range s.Lhs {
			ident, ok := left.(*ast.Ident)
			blank = blank && ok && ident.Name == "_"
		}
		for _, right := range s.Rhs {
			_, call := right.(*ast.CallExpr)
			calls = calls || call
		}
		return !blank || calls
	case *ast.DeferStmt:
		return !v.givesBack(s.Call)
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.RangeStmt:
		return true
	case *ast.IfStmt:
		return s.Else == nil
	case *ast.ForStmt:
		return s.Cond != nil
	case *ast.BranchStmt:
		return (s.Tok == token.BREAK || s.Tok == token.CONTINUE) && !v.lastOfLoop(s)
	case *ast.ReturnStmt:
		return len(s.Results) == 0 && !v.lastOfFunction(s)
	}
	return false
}

// givesBack reports whether a deferred call only frees what a context or a
// timer holds: a test could notice it by the memory alone.
func (v *visitor) givesBack(call *ast.CallExpr) bool {
	switch name := v.callee(call); name {
	case "(*time.Timer).Stop", "(*time.Ticker).Stop":
		return true
	}
	t := v.info.Types[call.Fun].Type
	return t != nil && (t.String() == "context.CancelFunc" || t.String() == "context.CancelCauseFunc")
}

// lastOfLoop reports whether a branch stands where the loop goes on, or the
// switch ends, without it.
func (v *visitor) lastOfLoop(s *ast.BranchStmt) bool {
	block, ok := v.stack[len(v.stack)-1].(*ast.BlockStmt)
	if !ok || block.List[len(block.List)-1] != s || s.Tok != token.CONTINUE {
		return false
	}
	switch v.stack[len(v.stack)-2].(type) {
	case *ast.ForStmt, *ast.RangeStmt:
		return true
	}
	return false
}

func (v *visitor) lastOfFunction(s *ast.ReturnStmt) bool {
	block, ok := v.stack[len(v.stack)-1].(*ast.BlockStmt)
	if !ok || block.List[len(block.List)-1] != s {
		return false
	}
	switch v.stack[len(v.stack)-2].(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

// plainBool reports whether an expression can be compared with a bool.
func (v *visitor) plainBool(e ast.Expr) bool {
	t := v.info.Types[e]
	if t.Type == nil || t.Value != nil {
		return false
	}
	basic, ok := types.Unalias(t.Type).(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// negate plants the contrary of a condition. One that compares for equality
// is negated as a comparison.
func (v *visitor) negate(e ast.Expr) {
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) || !v.plainBool(e) {
		return
	}
	if id, ok := v.new(e, opNegate, v.text(e), "!("+v.text(e)+")"); ok {
		v.wraps[e] = append(v.wraps[e], wrapped{"(" + on(id) + " != (", "))"})
	}
}

// returned plants nil for the error of a return, and the contrary of a truth.
func (v *visitor) returned(n *ast.ReturnStmt) {
	_, sig := v.function()
	if sig == nil || len(n.Results) == 0 || sig.Results().Len() != len(n.Results) {
		return
	}
	for i, e := range n.Results {
		result := sig.Results().At(i).Type()
		if types.Identical(result, types.Typ[types.Bool]) {
			if b, ok := ast.Unparen(e).(*ast.BinaryExpr); !ok || b.Op == token.LAND || b.Op == token.LOR {
				v.negate(e)
			}
		}
		if i < len(n.Results)-1 || !types.Identical(result, types.Universe.Lookup("error").Type()) {
			continue
		}
		if v.info.Types[e].IsNil() {
			continue
		}
		if id, ok := v.new(e, opError, v.text(n), strings.TrimSuffix(v.text(n), v.text(e))+"nil"); ok {
			v.wraps[e] = append(v.wraps[e], wrapped{fmt.Sprintf("%s.Err(%d, ", switchName, id), ")"})
		}
	}
}

// shift plants a neighbour of a comparison or of a junction.
func (v *visitor) shift(n *ast.BinaryExpr, around func(string, string)) {
	if !v.plainBool(n) {
		return
	}
	neighbour := map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	}[n.Op]
	if neighbour == token.ILLEGAL {
		return
	}
	function, compared := map[token.Token]string{
		token.LSS: "Less", token.LEQ: "LessEqual", token.GTR: "More", token.GEQ: "MoreEqual",
	}[n.Op]
	if compared && (!v.ordered(n.X) || !v.ordered(n.Y)) {
		return
	}
	x, y := v.text(n.X), v.text(n.Y)
	id, ok := v.new(n, opShift, v.text(n), x+" "+neighbour.String()+" "+y)
	if !ok {
		return
	}
	switch {
	case compared:
		around(fmt.Sprintf("%s.%s(%d, ", switchName, function, id), ")")
		from := v.offset(n.OpPos)
		v.edits.swaps = append(v.edits.swaps, swap{from, from + len(n.Op.String()), ","})
	case n.Op == token.EQL || n.Op == token.NEQ:
		around("("+on(id)+" != (", "))")
	default:
		// By De Morgan, so that no operand is written twice.
		around("((", ") != "+on(id)+")")
		for _, e := range []ast.Expr{n.X, n.Y} {
			v.wraps[e] = append(v.wraps[e], wrapped{"(" + on(id) + " != (", "))"})
		}
	}
}

// ordered reports whether a generic function can compare the operand.
func (v *visitor) ordered(e ast.Expr) bool {
	t := v.info.Types[e].Type
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsOrdered != 0
}
