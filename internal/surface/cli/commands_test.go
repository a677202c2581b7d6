package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/surface/api"
)

// spelledOut are the files outside of this package that write a command of pawl as
// text, each with its reason. Everything else hands out a loop.Command.
var spelledOut = map[string]string{
	"formats/boot/bootlink/link.go":           "a finding, on one line with its place",
	"formats/boot/bootstate/migrate.go":       "a finding, on one line with its place",
	"formats/boot/boots/begin.go":             "a comment in the file that boot init writes",
	"formats/boot/boots/check.go":             "a finding, on one line with its place",
	"definitions/definition/fields_format.go": "the reference of the keys, for explain and docs/config.md",
	"definitions/definition/fields_own.go":    "the reference of the keys, for explain and docs/config.md",
	"definitions/definition/explain.go":       "the reference of the keys, for explain and docs/config.md",
	"definitions/definition/schema_config.go": "the description in a JSON schema, which editors show",
	"cycle/engine/switches.go":                "the name of the store's switch, which rows keep",
	"rules/loop/stored_switch.go":             "the names of the store's switches, which rows keep",
	"rules/loop/cause_old.go":                 "reads the name of the store's switch in old rows",
	"rules/loop/killswitch.go":                "the name of the store's switch, which scripts match",
	"verbs/loops/switch.go":                   "the text of a file, which says who made it",
	"verbs/demo/demo.go":                      "the author of the demo's commits",
	"definitions/definition/drivers.go":       "a sentence in which pawl runs a program",
	"rules/invariant/invariant.go":            "the fix of an error in an expression, in one line with it",
	"verbs/setup/init.go":                     "a sentence in which pawl runs gates",
	"verbs/setup/initiation.go":               "a list of what is missing for a loop, in the form pawl.init/v1",
}

// handedOut is one source file that may hand out commands.
type handedOut struct {
	t     *testing.T
	root  *cobra.Command
	files *token.FileSet
	file  *ast.File
	verbs map[string]string // of the variables that hold a command
	seen  int
}

// TestCommandsThatAreHandedOutExist looks at every loop.Command in the sources: its
// verb is one of the command line, takes that many arguments and has these flags,
// and the text around it has a place for it.
func TestCommandsThatAreHandedOutExist(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&app{})
	var names []string
	for _, c := range root.Commands() {
		names = append(names, regexp.QuoteMeta(c.Name()))
	}
	spelled := regexp.MustCompile(`\bpawl (` + strings.Join(names, "|") + `)\b`)
	used, commands := map[string]bool{}, 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
		if err == nil && d.IsDir() && slices.Contains([]string{"cli", "test", "arch", "bench", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		s := handedOut{t: t, root: root, files: token.NewFileSet(), verbs: map[string]string{}}
		if s.file, err = parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution); err != nil {
			return err
		}
		ast.Inspect(s.file, s.findVariables)
		ast.Inspect(s.file, s.check)
		commands += s.seen
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || !spelled.MatchString(lit.Value) {
				return true
			}
			if used[name] = true; spelledOut[name] == "" {
				t.Errorf("%s: %s: hand out loop.PawlCommand, or say in spelledOut why not", s.files.Position(lit.Pos()), lit.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if commands < 60 {
		t.Errorf("only %d commands were found", commands)
	}
	for name := range spelledOut {
		if !used[name] {
			t.Errorf("%s spells out no command any more", name)
		}
	}
}

// findVariables records which variables hold which command.
func (s *handedOut) findVariables(n ast.Node) bool {
	var names []*ast.Ident
	var values []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			id, _ := left.(*ast.Ident)
			names = append(names, id)
		}
		values = n.Rhs
	case *ast.ValueSpec:
		names, values = n.Names, n.Values
	}
	for i, v := range values {
		if len(names) == len(values) && names[i] != nil {
			if verb := s.verb(v); verb != "" {
				s.verbs[names[i].Name] = verb
			}
		}
	}
	return true
}

// verb is that of an expression which makes a command of pawl.
func (s *handedOut) verb(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return s.verbs[id.Name]
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	switch {
	case !ok:
		return ""
	case isNamed(fun, "loop", "PawlCommand"):
		return literal(call.Args[0])
	case fun.Sel.Name == "WithFlag" || fun.Sel.Name == "WithBlanks":
		return s.verb(fun.X)
	}
	return ""
}

// check judges one expression.
func (s *handedOut) check(n ast.Node) bool {
	if fault, ok := n.(*ast.CompositeLit); ok {
		s.checkFault(fault)
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	at := s.files.Position(call.Pos())
	switch {
	case isNamed(fun, "loop", "Advise") && !call.Ellipsis.IsValid():
		s.checkPlaces(call.Args[0], len(call.Args)-1)
	case isNamed(fun, "loop", "PawlCommand"):
		if fact, is := call.Args[0].(*ast.SelectorExpr); is && fact.Sel.Name == "Command" && strings.HasSuffix(at.Filename, "verbs/verb/roles.go") {
			return true // That of a verb: TestEachCommandOfAVerbExists holds each against what there is.
		}
		s.seen++
		cmd := s.command(literal(call.Args[0]))
		if cmd == nil {
			s.t.Errorf("%s: pawl has no command %q", at, literal(call.Args[0]))
			return true
		}
		// Without arguments a sentence only names the command.
		if args := make([]string, len(call.Args)-1); len(args) > 0 && !call.Ellipsis.IsValid() && cmd.ValidateArgs(args) != nil {
			s.t.Errorf("%s: %s does not take %d arguments", at, cmd.CommandPath(), len(args))
		}
	case fun.Sel.Name == "WithFlag" && s.verb(fun.X) != "":
		cmd := s.command(s.verb(fun.X))
		name := literal(call.Args[0])
		flag := cmd.Flag(name)
		switch {
		case flag == nil:
			s.t.Errorf("%s: %s has no flag --%s", at, cmd.CommandPath(), name)
		case (len(call.Args) == 1) == (flag.NoOptDefVal == ""):
			s.t.Errorf("%s: --%s of %s: with or without a value?", at, name, cmd.CommandPath())
		}
	}
	return true
}

// checkFault compares the fix of a fault with its actions.
func (s *handedOut) checkFault(fault *ast.CompositeLit) {
	var fix ast.Expr
	actions := 0
	for _, e := range fault.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		key, _ := kv.Key.(*ast.Ident)
		switch {
		case key == nil:
			return
		case key.Name == "Fix":
			fix = kv.Value
		case key.Name == "Actions":
			list, ok := kv.Value.(*ast.CompositeLit)
			if !ok {
				return
			}
			actions = len(list.Elts)
		}
	}
	if fix != nil {
		s.checkPlaces(fix, actions)
	}
}

var placeOf = lazyregexp.New(`\{(\d+)\}`)

// checkPlaces compares the places in a text, as far as it is written there, with
// the number of commands.
func (s *handedOut) checkPlaces(text ast.Expr, commands int) {
	whole, written := true, ""
	ast.Inspect(text, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			written += literal(n)
		case *ast.Ident:
			whole = false
		}
		return true
	})
	var places []int
	for _, m := range placeOf.FindAllStringSubmatch(written, -1) {
		n, _ := strconv.Atoi(m[1])
		places = append(places, n)
	}
	slices.Sort(places)
	places = slices.Compact(places)
	last := 0
	if len(places) > 0 {
		last = places[len(places)-1]
	}
	if last > commands || len(places) != last || whole && last != commands {
		s.t.Errorf("%s: %q has places %v for %d commands", s.files.Position(text.Pos()), written, places, commands)
	}
}

// TestEachCommandOfAVerbExists holds what the verbs and their tools call their commands against
// the command line.
func TestEachCommandOfAVerbExists(t *testing.T) {
	t.Parallel()
	s := handedOut{t: t, root: newRootCommand(&app{})}
	commands := map[string][]string{}
	for _, v := range api.Verbs() {
		commands[v.Name] = []string{v.Command}
	}
	for _, tool := range api.Tools() {
		commands[tool.Name] = append(slices.Clone(tool.Also), tool.Command)
	}
	named := 0
	for of, list := range commands {
		for _, command := range list {
			if command == "" {
				continue
			}
			named++
			if i := strings.IndexFunc(command, unicode.IsUpper); i >= 0 {
				command = command[:i] // Without arguments.
			}
			if s.command(command) == nil {
				t.Errorf("%s: pawl has no command %q", of, command)
			}
		}
	}
	if named < 60 {
		t.Errorf("only %d commands are named", named)
	}
}

// command is the one with this name, or nil.
func (s *handedOut) command(verb string) *cobra.Command {
	cmd, rest, err := s.root.Find(strings.Fields(verb))
	if err != nil || len(rest) > 0 || cmd == s.root {
		return nil
	}
	return cmd
}

func isNamed(e *ast.SelectorExpr, pkg, name string) bool {
	id, ok := e.X.(*ast.Ident)
	return ok && id.Name == pkg && e.Sel.Name == name
}

// literal is the value of a text, or nothing if it is not a literal.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(lit.Value)
	return text
}
