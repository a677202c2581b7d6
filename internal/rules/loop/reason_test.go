package loop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

func TestEveryReasonHasASentence(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range []string{"reason.go", "failure.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, _ := spec.Type.(*ast.Ident)
			code, _ := spec.Values[0].(*ast.BasicLit)
			if kind == nil || code == nil || kind.Name != "Reason" && kind.Name != "FailureClass" {
				return true
			}
			text, err := strconv.Unquote(code.Value)
			if err != nil {
				t.Fatal(err)
			}
			found++
			if Reason(text).Sentence() == "" {
				t.Errorf("the reason %s has no sentence", text)
			}
			return true
		})
	}
	if found != len(sentences) {
		t.Errorf("%d constants and %d sentences", found, len(sentences))
	}
}

func TestAReasonSaysWhatItsDetailDoesNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r            Reason
		detail, want string
	}{
		{ReasonGatesPass, "", "all gates pass"},
		{ReasonAgentExit, "it ended with 3", "it ended with 3"},
		{ReasonAgentBlocked, "no token", "the agent is blocked: no token"},
		{"", "", ""},
	} {
		if got := c.r.Explain(c.detail); got != c.want {
			t.Errorf("%q.Because(%q) = %q, want %q", c.r, c.detail, got, c.want)
		}
	}
}
