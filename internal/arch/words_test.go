package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// wordFields are the names of fields with texts that are made for people: of runs, iterations,
// steps and holds. A text that was copied into a variable is not seen.
var wordFields = []string{"Detail", "detail", "Subject", "subject", "Feedback"}

// readers begin the names of the functions of package strings that look into a text or take
// it apart.
var readers = []string{"Contains", "Count", "Cut", "EqualFold", "Fields", "HasPrefix", "HasSuffix", "Index", "LastIndex", "Split", "TrimPrefix", "TrimSuffix"}

// mayRead has the files that do, and why nothing is decided by it.
var mayRead = map[string]string{
	"rules/loop/cause_old.go":  "rows from before causes were stored",
	"record/store/runs.go":     "rows from before causes were stored",
	"rules/loop/cause.go":      "shortens what an agent said for the run log",
	"rules/plan/plan.go":       "quotes the first line",
	"cycle/engine/hold.go":     "the subject of a hold is a key",
	"cycle/engine/prompt.go":   "chooses the heading of what it quotes to an agent",
	"cycle/engine/question.go": "shortens what it quotes",
	"surface/cli/errors.go":    "prints the output of a gate once",
	"surface/cli/trace.go":     "prints the output of a gate once",
	"surface/cli/up.go":        "prints the first line",
}

// readWords finds where a file reads a text back that was made for people: by a function of
// strings, with a pattern, or held against a literal.
func readWords(tree fs.FS, file string) (list []found, err error) {
	body, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, body, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	add := func(n ast.Node, text ast.Expr) {
		if field := wordField(text); field != "" {
			list = append(list, found{field, fmt.Sprintf("%s:%d", file, set.Position(n.Pos()).Line)})
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				return true
			}
			of, _ := called.X.(*ast.Ident)
			if called.Sel.Name == "CauseOf" {
				list = append(list, found{called.Sel.Name, fmt.Sprintf("%s:%d", file, set.Position(n.Pos()).Line)})
			}
			isReader := func(name string) bool { return strings.HasPrefix(called.Sel.Name, name) }
			switch {
			case of != nil && of.Name == "strings" && slices.ContainsFunc(readers, isReader), strings.HasPrefix(called.Sel.Name, "Match"), strings.HasPrefix(called.Sel.Name, "Find"):
				add(n, n.Args[0])
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				if isWords(n.Y) {
					add(n, n.X)
				} else if isWords(n.X) {
					add(n, n.Y)
				}
			}
		case *ast.SwitchStmt:
			add(n, n.Tag)
		}
		return true
	})
	return list, nil
}

// wordField is the field of that kind which an expression reads; empty: none.
func wordField(text ast.Expr) (name string) {
	if text == nil {
		return ""
	}
	ast.Inspect(text, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(wordFields, s.Sel.Name) {
			name = s.Sel.Name
		}
		_, joins := n.(*ast.BinaryExpr) // It makes another text.
		return name == "" && !joins
	})
	return name
}

// isWords reports whether an expression is a literal with words in it.
func isWords(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(l.Value)
	return err == nil && text != ""
}

func TestNothingReadsBackWhatIsSaidOfAnOutcome(t *testing.T) {
	tree := os.DirFS(root)
	read := map[string]bool{}
	err := fs.WalkDir(tree, "internal", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return ignored(file)
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		list, err := readWords(tree, file)
		for _, f := range list {
			read[file] = true
			if mayRead[strings.TrimPrefix(file, "internal/")] == "" {
				t.Errorf("%s reads %s, which is for people: decide by the reason and the loop.Cause", f.at, f.what)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range mayRead {
		if !read[path.Join("internal", file)] {
			t.Errorf("%s reads no such text any more: take its line away", file)
		}
	}
}

func TestEachWayToReadASentenceIsSeen(t *testing.T) {
	for line, seen := range map[string]bool{
		`_ = strings.TrimSuffix(e.detail+more, "\n")`:            false,
		`_ = strings.Contains(v.Detail, "price")`:                true,
		`_, _, _ = strings.Cut(strings.ToLower(r.Subject), "=")`: true,
		`_ = pattern.MatchString(r.Run.Detail)`:                  true,
		`_ = h.Detail == "used up"`:                              true,
		`switch v.Detail {}`:                                     true,
		`_ = loop.CauseOf(r, subject)`:                           true,
		`_ = strings.Contains(text, v.Detail)`:                   false,
		`_ = v.Detail == ""`:                                     false,
		`_ = v.Detail + "; " + strings.Join(list, ", ")`:         false,
		`_ = strings.Contains(v.Summary, "price")`:               false,
	} {
		tree := fstest.MapFS{"a.go": {Data: []byte("package a\n\nfunc f() {\n\t" + line + "\n}\n")}}
		list, err := readWords(tree, "a.go")
		if err != nil || len(list) > 1 || (len(list) == 1) != seen {
			t.Errorf("%s: found %v, %v; want that it is seen: %v", line, list, err, seen)
		}
	}
}
