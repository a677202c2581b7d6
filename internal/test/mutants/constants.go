package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"
)

// typeName is how the file writes a type, if it can.
func (v *visitor) typeName(t types.Type) (string, bool) {
	if t == nil {
		return "", false
	}
	basic, ok := t.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsUntyped != 0 {
		return "", false
	}
	if _, parameter := types.Unalias(t).(*types.TypeParam); parameter {
		return "", false
	}
	if local, ok := types.Unalias(t).(*types.Named); ok && local.Obj().Pkg() == v.pkg {
		scope := v.pkg.Scope().Innermost(v.stack[len(v.stack)-1].Pos())
		if _, found := scope.LookupParent(local.Obj().Name(), v.stack[len(v.stack)-1].Pos()); found != local.Obj() {
			return "", false // another thing has the name here
		}
	}
	known := true
	name := types.TypeString(t, func(pkg *types.Package) string {
		if pkg == v.pkg {
			return ""
		}
		name, ok := v.where[pkg.Path()]
		known = known && ok && name != "_"
		return name
	})
	return name, known
}

func (v *visitor) literal(n *ast.BasicLit, around func(string, string)) {
	t, ok := v.typeName(v.info.Types[n].Type)
	value := v.info.Types[n].Value
	if !ok || value == nil {
		return
	}
	for _, alt := range alternatives(n.Value, value, v.info.Types[n].Type) {
		op := opConstant
		if alt.sql {
			op = opSQL
		}
		if id, ok := v.new(n, op, n.Value, alt.text); ok {
			around(fmt.Sprintf("%s.Pick[%s](%d, ", switchName, t, id), ", "+alt.text+")")
		}
	}
}

func (v *visitor) ident(n *ast.Ident, around func(string, string)) {
	object := v.info.Uses[n]
	if object == types.Universe.Lookup("true") || object == types.Universe.Lookup("false") {
		basic, ok := types.Unalias(v.info.Types[n].Type).(*types.Basic)
		if !ok || basic.Info()&types.IsBoolean == 0 {
			return
		}
		other := map[string]string{"true": "false", "false": "true"}[n.Name]
		if id, ok := v.new(n, opConstant, n.Name, other); ok {
			around("("+on(id)+" != ", ")")
		}
		return
	}
	c, ok := v.consts[object]
	if !ok {
		return
	}
	t, ok := v.typeName(v.info.Types[n].Type)
	if !ok || v.isBad(n.Pos()) {
		return
	}
	v.make(n, c, object)
	for i, id := range c.ids {
		around(fmt.Sprintf("%s.Pick[%s](%d, ", switchName, t, id), ", "+c.alts[i]+")")
	}
}

// make plants a constant at its first use; all further uses are the same
// mutants.
func (v *visitor) make(n *ast.Ident, c *declared, object types.Object) {
	if c.made {
		return
	}
	c.made = true
	value := v.info.Types[n].Value
	if value == nil {
		return
	}
	text := string(c.src[v.offset(c.expr.Pos()):v.offset(c.expr.End())])
	for _, alt := range alternatives("("+object.Name()+")", value, v.info.Types[n].Type) {
		op := opConstant
		if alt.sql {
			op = opSQL
		}
		after := strings.ReplaceAll(alt.text, "("+object.Name()+")", text)
		if id, ok := v.add(c.name, c.src, c.expr.Pos(), "", op, text, after); ok {
			c.ids, c.alts = append(c.ids, id), append(c.alts, alt.text)
		}
	}
}

// alternative is what a constant becomes.
type alternative struct {
	text string
	sql  bool
}

// alternatives are the neighbours of a number, or another text for a text.
// Prose has none: its words are for people, and no promise.
func alternatives(text string, value constant.Value, t types.Type) []alternative {
	basic, _ := t.Underlying().(*types.Basic)
	switch value.Kind() { //nolint:exhaustive // Go has no literal of a bool, and pawl has no complex numbers.
	case constant.Int:
		if strings.HasPrefix(text, "0o") {
			// A mode: open to everybody.
			if constant.Compare(constant.BinaryOp(value, token.OR, constant.MakeInt64(0o077)), token.NEQ, value) {
				return []alternative{{text: text + " | 0o077"}}
			}
			return nil
		}
		if strings.HasPrefix(text, "(") && t.String() == "time.Duration" {
			return []alternative{{text: text + "*2"}} // a nanosecond more is not a change
		}
		var all []alternative
		for _, step := range []string{"+", "-"} {
			op := map[string]token.Token{"+": token.ADD, "-": token.SUB}[step]
			next := constant.BinaryOp(value, op, constant.MakeInt64(1))
			low := step == "-" && (constant.Sign(value) <= 0 || strings.HasPrefix(text, "'"))
			if !low && basic != nil && fits(next, basic) {
				all = append(all, alternative{text: text + step + "1"})
			}
		}
		return all
	case constant.Float:
		return []alternative{{text: text + "+1"}}
	case constant.String:
		said := constant.StringVal(value)
		if conditions := widened(said); conditions != nil {
			var all []alternative
			for _, wide := range conditions {
				all = append(all, alternative{text: fmt.Sprintf("%q", wide), sql: true})
			}
			return all
		}
		if prose(said) {
			return nil
		}
		if said == "" {
			return []alternative{{text: `"mutant"`}}
		}
		return []alternative{{text: `""`}}
	}
	return nil
}

// fits reports whether a number is a value of the type.
func fits(n constant.Value, basic *types.Basic) bool {
	if basic.Info()&types.IsInteger == 0 {
		return basic.Info()&types.IsFloat != 0
	}
	bits := map[types.BasicKind]uint{types.Int8: 7, types.Uint8: 8, types.Int16: 15, types.Uint16: 16, types.Int32: 31, types.Uint32: 32, types.Int: 63, types.Int64: 63}[basic.Kind()]
	if bits == 0 {
		bits = 64
	}
	return constant.Sign(n) >= 0 && constant.BitLen(n) <= int(bits) || basic.Info()&types.IsUnsigned == 0 && constant.BitLen(n) <= int(bits)
}

// prose reports whether a text is made for people: words with spaces between
// or around them, or a format.
func prose(text string) bool {
	words := strings.ContainsAny(text, " \n") && strings.ContainsFunc(text, unicode.IsLetter)
	return words || slices.ContainsFunc([]string{"%s", "%d", "%w", "%v", "%q"}, func(verb string) bool { return strings.Contains(text, verb) })
}
