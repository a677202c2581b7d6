package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/test/drawn"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// makers make verbs.
var makers = regexp.MustCompile(`^(Read|Write|SwitchOff|ReadStore|WriteStore|StopStore)$`)

// madeVerbs counts the places in the product that make a verb, whichever package they are in.
func madeVerbs(t *testing.T) (n int) {
	t.Helper()
	const itself = "verbs/verb"
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, 0)
		if err != nil {
			return err
		}
		within := path.Dir(name) == itself
		imports := func(i *ast.ImportSpec) bool {
			return strings.HasSuffix(strings.Trim(i.Path.Value, `"`), "/internal/"+itself)
		}
		if !within && !slices.ContainsFunc(file.Imports, imports) {
			return nil
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if !is {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.Ident:
				if within && makers.MatchString(f.Name) {
					n++
				}
			case *ast.SelectorExpr:
				if of, is := f.X.(*ast.Ident); is && of.Name == "verb" && makers.MatchString(f.Sel.Name) {
					n++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryVerbIsInTheTableOnceWithAllItsFacts(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range api.Verbs() {
		if seen[v.Name] {
			t.Errorf("%s is listed twice", v.Name)
		}
		seen[v.Name] = true
		for what, wrong := range contradictions(v) {
			if wrong {
				t.Errorf("%s: %s", v.Name, what)
			}
		}
		on := map[bool]reflect.Type{true: reflect.TypeFor[*api.Workspace](), false: reflect.TypeFor[*api.Store]()}[v.InWorkspace]
		if !on.AssignableTo(v.On) {
			t.Errorf("%s needs a %s, and gets a %s", v.Name, v.On, on)
		}
	}
	if made := madeVerbs(t); made != len(seen) {
		t.Errorf("%d verbs are made and %d are listed", made, len(seen))
	}
}

// contradictions are facts that may be missing, and facts that may say nothing of such a verb.
func contradictions(v verb.Info) map[string]bool {
	noun, does, _ := strings.Cut(v.Name, ".")
	isRun := v.Out == api.StartRun.Out || v.Out == api.FireRun.Out
	return map[string]bool{
		"it needs no workspace, and has a rule for posting in one":             !v.InWorkspace && v.PostRefusal != nil,
		"its name is not NOUN.VERB, or it does not say what it does":           noun == "" || does == "" || v.Does == "",
		"it writes, and has no command":                                        v.Writes && v.Command == "",
		"it writes and does not say how it is done once, or it reads and does": v.Writes != (v.Once != 0),
		"it writes, and has a rule for reading":                                v.Writes && (v.ReadRefusal != nil || v.Hidden != ""),
		"it reads, and has a rule for writing":                                 !v.Writes && (v.AgentRefusal != nil || v.PostRefusal != nil || v.PostLimit != ""),
		"an agent inside a run may ask for it, and other agents may not":       v.PostRefusal != nil && v.AgentRefusal == nil || v.ReadRefusal != nil && v.Hidden != "",
		"agents may not ask for it, and have a tool":                           v.AsTool() != nil && v.RefusesAgents() != "",
		"it has a tool, and a reason why not":                                  v.AsTool() != nil && v.WhyNoTool != "",
		"Once is ByRun, but its result is not a run":                           v.Once == verb.ByRun && !isRun,
		"it has Needs without Twin, or Twin without Needs":                     (v.Needs == "") != (v.Twin == ""),
	}
}

// Programs of others are written against the names of the schemas.
func TestTheNamesOfSchemasAreDrawn(t *testing.T) {
	document := api.OpenAPI("1.2.3")
	body, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(doc.Components.Schemas))
	drawn.File(t, "testdata/schemas.txt", strings.Join(names, "\n")+"\n")
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
			body, marshalErr := json.Marshal(verb.ProblemOf(err))
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			var p verb.Problem
			if err := json.Unmarshal(body, &p); err != nil {
				t.Fatal(err)
			}
			want, got := verb.Explain(err), verb.Explain(p.Err())
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
