package definition

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/report"
)

func TestTheSchemasHaveTheShapeOfTheirTypes(t *testing.T) {
	for name, typ := range map[string]reflect.Type{"report": reflect.TypeFor[report.Report](), "events": reflect.TypeFor[loop.Event]()} {
		body, err := Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range misfits(typ, decoded(t, string(body)), name) {
			t.Error(problem)
		}
	}
}

// misfits are the places at which a schema is not the JSON of a Go type.
func misfits(typ reflect.Type, v any, at string) []string {
	s, _ := v.(map[string]any)
	expect := func(want string, nullable bool) []string {
		got := s["type"]
		if list, ok := got.([]any); ok && nullable && len(list) == 2 && list[1] == "null" {
			got = list[0]
		}
		if got == want || s["enum"] != nil && want == "string" {
			return nil
		}
		return []string{fmt.Sprintf("%s has type %v, want %s", at, s["type"], want)}
	}
	switch {
	case typ == reflect.TypeFor[time.Time]():
		if s["format"] != "date-time" {
			return []string{at + " is not a date-time"}
		}
		return expect("string", false)
	case typ.Kind() == reflect.Pointer:
		return misfits(typ.Elem(), v, at)
	case typ.Kind() == reflect.Struct:
		return append(expect("object", false), misfitFields(typ, s, at)...)
	case typ.Kind() == reflect.Slice:
		return append(expect("array", true), misfits(typ.Elem(), s["items"], at+"[]")...)
	case typ.Kind() == reflect.Bool:
		return expect("boolean", false)
	case typ.Kind() == reflect.Int || typ.Kind() == reflect.Int64:
		return expect("integer", false)
	case typ.Kind() == reflect.Float64:
		return expect("number", false)
	case typ.Kind() == reflect.String:
		return expect("string", false)
	}
	return []string{fmt.Sprintf("%s is a %s, which this test does not know", at, typ)}
}

func misfitFields(typ reflect.Type, s map[string]any, at string) []string {
	var problems, names []string
	all, _ := s["properties"].(map[string]any)
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		problems = append(problems, misfits(f.Type, all[name], at+"."+name)...)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(names)), slices.Sorted(maps.Keys(all))); diff != "" {
		problems = append(problems, fmt.Sprintf("fields of %s (-type +schema):\n%s", at, diff))
	}
	return problems
}

func TestAnEventAlwaysHasAllItsFields(t *testing.T) {
	var fields map[string]any
	body, err := json.Marshal(loop.Event{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	required := listed(t, "events", "required")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), slices.Sorted(slices.Values(required))); diff != "" {
		t.Errorf("fields (-written +required):\n%s", diff)
	}
}

func TestTheSchemaOfEventsKnowsEveryPhaseAndKind(t *testing.T) {
	phases := make([]string, 0, len(loop.Phases))
	for _, p := range loop.Phases {
		phases = append(phases, string(p))
	}
	if diff := cmp.Diff(phases, listed(t, "events", "properties", "phase", "enum")); diff != "" {
		t.Errorf("phases (-declared +schema):\n%s", diff)
	}
	declared := slices.Concat(eventKinds(t, "../../rules/loop"), eventKinds(t, "../../cycle/engine"))
	got := listed(t, "events", "properties", "kind", "enum")
	if diff := cmp.Diff(slices.Sorted(slices.Values(declared)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("kinds (-declared +schema):\n%s", diff)
	}
	for _, kind := range declared {
		if !strings.Contains(within(t, "events", "properties", "kind", "description").(string), kind+": ") {
			t.Errorf("the schema does not say what the kind %s is", kind)
		}
	}
}

// eventKinds are the constants of a package whose names begin with Event. The
// engine cannot be imported from here, so its source is read.
func eventKinds(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	var kinds []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Event") || len(spec.Values) != 1 {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				kind, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, kind)
			}
			return true
		})
	}
	return kinds
}

// within is what stands in a schema at a path.
func within(t *testing.T, name string, path ...string) any {
	t.Helper()
	body, err := Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	v := decoded(t, string(body))
	for _, part := range path {
		object, ok := v.(map[string]any)
		if !ok || object[part] == nil {
			t.Fatalf("schema %s has no %s in %v", name, part, path)
		}
		v = object[part]
	}
	return v
}

func listed(t *testing.T, name string, path ...string) []string {
	t.Helper()
	values, _ := within(t, name, path...).([]any)
	all := make([]string, 0, len(values))
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			t.Fatalf("%v in schema %s is not text", v, name)
		}
		all = append(all, text)
	}
	return all
}

func TestAReportIsValidExactlyWhenItIsRead(t *testing.T) {
	schema := compiled(t, "report")
	words := rapid.SampledFrom([]string{"", " ", "x", "two words", "é"})
	lists := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(words, 0, 2))
	results := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		r := report.Report{
			Outcome: rapid.SampledFrom([]report.Outcome{"", "done", "blocked", "blocked", "failed", "quiet", "escalate", "success", "Done"}).Draw(t, "outcome"),
			Summary: words.Draw(t, "summary"), Reason: words.Draw(t, "reason"), NoChange: rapid.Bool().Draw(t, "no change"),
			Items: lists.Draw(t, "items"), Pitfalls: lists.Draw(t, "pitfalls"), Memory: lists.Draw(t, "memory"), Handoff: words.Draw(t, "handoff"),
		}
		if rapid.Bool().Draw(t, "with state") {
			r.State = &report.State{Priority: lists.Draw(t, "priority"), Watch: lists.Draw(t, "watch"), Noise: lists.Draw(t, "noise")}
		}
		if rapid.Bool().Draw(t, "with confidence") {
			n := rapid.SampledFrom([]float64{-0.1, 0, 0.5, 1, 1.1}).Draw(t, "confidence")
			r.Confidence = &n
		}
		if rapid.Bool().Draw(t, "with readiness") {
			n := rapid.SampledFrom([]int{-1, 0, 50, 100, 101}).Draw(t, "readiness")
			r.Readiness = &n
		}
		if rapid.Bool().Draw(t, "with confidence") {
			r.Confidence = new(rapid.SampledFrom([]float64{-0.1, 0, 0.5, 1, 1.1}).Draw(t, "confidence"))
		}
		if rapid.Bool().Draw(t, "with a message") {
			r.Messages = []report.Message{{To: words.Draw(t, "to"), Kind: words.Draw(t, "kind"), Content: words.Draw(t, "content")}}
		}
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var instance any
		if err := json.Unmarshal(body, &instance); err != nil {
			t.Fatal(err)
		}
		_, readErr := report.Parse(body)
		if validErr := schema.Validate(instance); (validErr == nil) != (readErr == nil) {
			t.Fatalf("%s: read %v, valid %v", body, readErr, validErr)
		}
		results[readErr == nil]++
	})
	if results[true] == 0 || results[false] == 0 {
		t.Errorf("reports that were read, or not: %v; want both", results)
	}
}
