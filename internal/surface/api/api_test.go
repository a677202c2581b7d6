package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
)

func TestEveryVerbIsInTheTableOnceAndSaysWhatItDoes(t *testing.T) {
	made := 0
	for _, name := range []string{"verbs.go", "specs.go", "boots.go", "orgs.go", "boards.go", "look.go", "accept.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		makers := []string{"read", "write", "switchOff", "readStore", "writeStore", "stopStore"}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && slices.Contains(makers, f.Name) {
					made++
				}
			}
			return true
		})
	}
	seen := map[string]bool{}
	for _, v := range api.Verbs() {
		if seen[v.Name] {
			t.Errorf("%s is listed twice", v.Name)
		}
		seen[v.Name] = true
		if noun, verb, _ := strings.Cut(v.Name, "."); noun == "" || verb == "" || v.Does == "" {
			t.Errorf("%q does %q", v.Name, v.Does)
		}
	}
	if made != len(seen) {
		t.Errorf("%d verbs are made and %d are listed", made, len(seen))
	}
}

func TestTheOpenAPIDescribesEveryVerbWithSchemasThatCompile(t *testing.T) {
	body, err := json.Marshal(api.OpenAPI("1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	top := doc.(map[string]any)
	paths := top["paths"].(map[string]any)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	for name := range top["components"].(map[string]any)["schemas"].(map[string]any) {
		if _, err := c.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	for _, v := range api.Verbs() {
		operations, ok := paths[v.Path()].(map[string]any)
		if !ok {
			t.Errorf("%s is not described", v.Name)
			continue
		}
		if _, gets := operations["get"]; gets && v.Writes {
			t.Errorf("%s changes something by GET", v.Name)
		}
	}
}

func TestAnErrorIsTheSameAfterItTravelled(t *testing.T) {
	stop := loop.PawlCommand("stop", "a#1")
	for name, err := range map[string]error{
		"a fault":              &loop.Fault{Exit: loop.ExitRefused, What: "w", Why: "y", Fix: "do {1}", Actions: []loop.Command{stop}},
		"nothing found":        fmt.Errorf("look: %w", loop.ErrNotFound),
		"answered":             &loop.AnsweredError{Approval: loop.Approval{State: loop.ApprovalApproved, By: "Ada", From: "cli"}},
		"a run of another one": &loop.HeldError{Run: "a#1", Holder: loop.Holder{PID: 7, Host: "h"}},
		"a lost lease":         fmt.Errorf("run: %w", loop.ErrLeaseLost),
		"anything else":        errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			body, marshalErr := json.Marshal(api.ProblemOf(err))
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			var p api.Problem
			if err := json.Unmarshal(body, &p); err != nil {
				t.Fatal(err)
			}
			want, got := api.Explain(err), api.Explain(p.Err())
			want.Err, got.Err = nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after the way (-want +got):\n%s", diff)
			}
			for _, is := range []error{loop.ErrNotFound, loop.ErrAnswered, loop.ErrLeaseLost} {
				if errors.Is(err, is) != errors.Is(p.Err(), is) {
					t.Errorf("it is %q before: %v, after: %v", is, errors.Is(err, is), errors.Is(p.Err(), is))
				}
			}
			if p.Status < 400 {
				t.Errorf("HTTP status %d", p.Status)
			}
		})
	}
}
