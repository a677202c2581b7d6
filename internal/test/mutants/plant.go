package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// switchPath is imported by every copy of a source with mutants, under a name
// that no source uses.
const (
	switchPath = "github.com/pawl-run/pawl/internal/test/mutants/mutant"
	switchName = "pawlmutant"
	// It goes behind the package clause, so that no line moves.
	importSwitch = "; import " + switchName + " \"" + switchPath + "\""
)

// The operators, as they are printed and as a list of argued survivors names
// them.
const (
	opDelete   = "delete"
	opError    = "drop error"
	opNegate   = "negate"
	opShift    = "shift"
	opConstant = "constant"
	opSQL      = "widen SQL"
)

// bug is one mutant: a small change that some test should notice.
type bug struct {
	ID     int    // what turns it on; from 1, in the order of the sources
	Group  string // the named package that it counts for
	File   string // below the top of the checkout
	Line   int
	Func   string // empty outside of functions
	Op     string
	Before string
	After  string
	Text   string // the line, trimmed
	Nth    int    // among those with the same file, function, operator, text and after; from 0
}

// key identifies a mutant across changes of other lines.
func (m bug) key() string {
	return strings.Join([]string{m.File, m.Func, m.Op, m.Text, m.After, fmt.Sprint(m.Nth)}, "\x00")
}

// planter writes the mutants of one package into copies of its files.
type planter struct {
	fset   *token.FileSet
	info   *types.Info
	pkg    *types.Package
	group  string
	base   int             // the ID before the first one
	bad    map[string]bool // file:line where a mutant does not compile
	left   int             // how many were left out for that
	found  []bug
	nths   map[string]int
	consts map[types.Object]*declared

	// Of the file at hand.
	name  string
	src   []byte
	file  *ast.File
	edits *edits
	where map[string]string // import path → name in the file
}

// declared is a constant that is changed where it is used, because its
// declaration has to stay constant.
type declared struct {
	spec *ast.ValueSpec
	name string
	src  []byte
	expr ast.Expr
	made bool
	ids  []int
	alts []string
}

// wrapped is text to put around a node.
type wrapped struct{ before, after string }

// declare notes the constants of a file, before any file is planted.
func (p *planter) declare(name string, src []byte, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, ident := range spec.Names {
			c, ok := p.info.Defs[ident].(*types.Const)
			if !ok || i >= len(spec.Values) || p.mentions(spec.Values[i], "iota") {
				continue
			}
			p.consts[c] = &declared{spec: spec, name: name, src: src, expr: spec.Values[i]}
		}
		return true
	})
}

func (p *planter) mentions(e ast.Expr, universe string) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && ident.Name == universe && p.info.Uses[ident] == types.Universe.Lookup(universe) {
			found = true
		}
		return true
	})
	return found
}

// plant returns the copy of a file.
func (p *planter) plant(name string, src []byte, file *ast.File) []byte {
	p.name, p.src, p.file = name, src, file
	p.edits = &edits{opens: map[int]string{}, closes: map[int]string{}}
	p.where = map[string]string{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		for _, imported := range p.pkg.Imports() {
			if imported.Path() == path {
				p.where[path] = imported.Name()
			}
		}
		if spec.Name != nil {
			p.where[path] = spec.Name.Name
		}
	}
	before := len(p.found)
	v := &visitor{planter: p, wraps: map[ast.Node][]wrapped{}}
	ast.Inspect(file, v.visit)
	used := len(p.found) > before || strings.Contains(fmt.Sprint(p.edits.opens), switchName+".")
	if !used {
		return src
	}
	p.edits.closes[p.offset(file.Name.End())] += importSwitch
	return p.edits.apply(src)
}

func (p *planter) offset(pos token.Pos) int { return p.fset.Position(pos).Offset }

func (p *planter) text(n ast.Node) string {
	return string(p.src[p.offset(n.Pos()):p.offset(n.End())])
}

// short is one line of a text for a report.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:97]) + "..."
	}
	return text
}

func lineAt(src []byte, offset int) string {
	start := strings.LastIndexByte(string(src[:offset]), '\n') + 1
	end := strings.IndexByte(string(src[start:]), '\n')
	if end < 0 {
		end = len(src) - start
	}
	return strings.TrimSpace(string(src[start : start+end]))
}

// add makes a mutant, and returns false if it is one of those that do not
// compile.
func (p *planter) add(file string, src []byte, pos token.Pos, function, op, before, after string) (int, bool) {
	at := p.fset.Position(pos)
	m := bug{
		Group: p.group, File: file, Line: at.Line, Func: function, Op: op,
		Before: short(before), After: short(after), Text: lineAt(src, at.Offset),
	}
	key := m.key()
	m.Nth = p.nths[key]
	p.nths[key]++
	if p.isBad(pos) {
		p.left++
		return 0, false
	}
	m.ID = p.base + len(p.found) + 1
	p.found = append(p.found, m)
	return m.ID, true
}

// isBad reports whether nothing compiles on the line.
func (p *planter) isBad(pos token.Pos) bool {
	at := p.fset.Position(pos)
	return p.bad[fmt.Sprintf("%s:%d", at.Filename, at.Line)]
}

// edits are insertions and replacements by offset. What closes at an offset
// stands before what opens there.
type edits struct {
	opens, closes map[int]string
	swaps         []swap
}

// swap replaces the text from from to to.
type swap struct {
	from, to int
	text     string
}

func (e *edits) apply(src []byte) []byte {
	var out []byte
	swaps := map[int]swap{}
	for _, s := range e.swaps {
		swaps[s.from] = s
	}
	for i := 0; i <= len(src); {
		out = append(out, e.closes[i]...)
		out = append(out, e.opens[i]...)
		if s, ok := swaps[i]; ok {
			out = append(out, s.text...)
			i = s.to
			continue
		}
		if i < len(src) {
			out = append(out, src[i])
		}
		i++
	}
	return out
}
