package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// compiled is a schema as validators see it. Its references lead nowhere
// outside, so that nothing is fetched.
func compiled(tb testing.TB, name string) *jsonschema.Schema {
	tb.Helper()
	body, err := Schema(name)
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		tb.Fatalf("schema %s: %v", name, err)
	}
	id := "https://pawl.run/schema/" + name + ".v1.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(id, doc); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile(id)
	if err != nil {
		tb.Fatalf("schema %s: %v", name, err)
	}
	return s
}

func decoded(tb testing.TB, text string) any {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return v
}

// places are the properties that a validator complains of, as JSON pointers. A
// property that is missing, or too many, is complained of at its own place.
func places(err error) []string {
	failed, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil
	}
	if len(failed.Causes) > 0 {
		var all []string
		for _, cause := range failed.Causes {
			all = append(all, places(cause)...)
		}
		return all
	}
	at := strings.Join(append([]string{""}, failed.InstanceLocation...), "/")
	var names []string
	switch k := failed.ErrorKind.(type) {
	case *kind.Required:
		names = k.Missing
	case *kind.AdditionalProperties:
		names = k.Properties
	default:
		return []string{at}
	}
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, at+"/"+name)
	}
	return all
}

func TestEverySchemaIsOfDraft07AndSaysWhatItIs(t *testing.T) {
	for _, name := range SchemaNames() {
		t.Run(name, func(t *testing.T) {
			s := compiled(t, name)
			if s.DraftVersion != 7 || s.ID != "https://pawl.run/schema/"+name+".v1.json" {
				t.Errorf("draft %d, id %s", s.DraftVersion, s.ID)
			}
			if s.Title == "" || s.Description == "" || len(s.Examples) == 0 {
				t.Errorf("title %q, description %q, %d examples; want all", s.Title, s.Description, len(s.Examples))
			}
			for i, example := range s.Examples {
				if err := s.Validate(example); err != nil {
					t.Errorf("example %d: %v", i, err)
				}
			}
			body, err := Schema(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasSuffix(body, []byte("}\n")) || bytes.Contains(body, []byte(`\u003c`)) {
				t.Errorf("the text has no newline at its end, or is not readable:\n%s", body)
			}
			for _, problem := range walk(decoded(t, string(body)), "") {
				t.Error(problem)
			}
		})
	}
}

func TestASchemaIsReadableJSONOrAnError(t *testing.T) {
	within := func(s schema) schema { return schema{Properties: properties{{"a<b", s}}} }
	if body, err := indentedJSON(within(schema{Description: "<&>"})); err != nil || !strings.Contains(string(body), `"a<b"`) || !strings.Contains(string(body), `"<&>"`) {
		t.Errorf("it is written as %s, %v", body, err)
	}
	for _, s := range []schema{{Const: make(chan int)}, within(schema{Const: make(chan int)})} {
		if body, err := indentedJSON(s); err == nil || !strings.Contains(err.Error(), "unsupported type: chan int") {
			t.Errorf("what has no JSON is written as %s, %v", body, err)
		}
	}
}

func TestEverySchemaThatIsWrittenHasAName(t *testing.T) {
	files, err := schemas.ReadDir("schema")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{configSchema}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".json"))
	}
	slices.Sort(names)
	if diff := cmp.Diff(slices.Sorted(slices.Values(SchemaNames())), names); diff != "" {
		t.Errorf("schemas (-named +written):\n%s", diff)
	}
}

func TestAnUnknownSchemaIsNotFound(t *testing.T) {
	for _, name := range []string{"", "Config", "config.json", "../schema/spec", "state\x1b[31m"} {
		body, err := Schema(name)
		fault, ok := errors.AsType[*loop.Fault](err)
		if !ok || body != nil || fault.Exit != loop.ExitNotFound || !errors.Is(err, loop.ErrNotFound) || !strings.Contains(fault.Advice().String(), "config, spec") {
			t.Errorf("Schema(%q) = %q, %v, want exit status 3 and the names", name, body, err)
		}
	}
}

// Keywords of draft-07, by what stands behind them.
var (
	keywordsOfSchemas  = strings.Fields("items additionalItems contains additionalProperties propertyNames not if then else")
	keywordsOfLists    = strings.Fields("allOf anyOf oneOf")
	keywordsOfNames    = strings.Fields("properties patternProperties definitions")
	keywordsOfLiterals = strings.Fields("$schema $id $ref $comment title description default examples readOnly writeOnly type enum const " +
		"multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern format contentMediaType " +
		"contentEncoding maxItems minItems uniqueItems maxProperties minProperties required")
)

// walk names every keyword that draft-07 does not have, and every property
// without a description. Conditions and negations describe nothing.
func walk(v any, at string) []string {
	s, ok := v.(map[string]any)
	if _, always := v.(bool); always {
		return nil
	}
	if !ok {
		return []string{at + " is not a schema"}
	}
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		here := at + "/" + key
		switch value := s[key]; {
		case slices.Contains(keywordsOfLiterals, key):
		case slices.Contains(keywordsOfSchemas, key):
			problems = append(problems, walk(value, here)...)
		case slices.Contains(keywordsOfLists, key):
			list, _ := value.([]any)
			if len(list) == 0 {
				problems = append(problems, here+" is not a list of schemas")
			}
			for i, one := range list {
				problems = append(problems, walk(one, fmt.Sprintf("%s/%d", here, i))...)
			}
		case slices.Contains(keywordsOfNames, key):
			problems = append(problems, walkNames(value, here)...)
		default:
			problems = append(problems, here+" is not a keyword of draft-07")
		}
	}
	return problems
}

func walkNames(v any, at string) []string {
	named, ok := v.(map[string]any)
	if !ok {
		return []string{at + " is not an object of schemas"}
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(named)) {
		here := at + "/" + name
		problems = append(problems, walk(named[name], here)...)
		s, _ := named[name].(map[string]any)
		condition := strings.Contains(at, "/if/") || strings.Contains(at, "/then/")
		if s["description"] == nil && s["$ref"] == nil && strings.HasSuffix(at, "/properties") && !condition {
			problems = append(problems, here+" has no description")
		}
	}
	return problems
}

func TestTheWalkFindsWhatIsNewerThanDraft07(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"definitions by their new name":        {`{"$defs": {}}`, "/$defs is not a keyword of draft-07"},
		"a tuple in a list of alternatives":    {`{"anyOf": [{}, {"prefixItems": []}]}`, "/anyOf/1/prefixItems is not a keyword of draft-07"},
		"properties not evaluated, in an item": {`{"items": {"unevaluatedProperties": false}}`, "/items/unevaluatedProperties is not a keyword of draft-07"},
		"dependent schemas in a definition":    {`{"definitions": {"a": {"dependentSchemas": {}}}}`, "/definitions/a/dependentSchemas is not a keyword of draft-07"},
		"an extension of an editor":            {`{"then": {"markdownDescription": ""}}`, "/then/markdownDescription is not a keyword of draft-07"},
		"a property without a description":     {`{"properties": {"a": {"type": "string"}}}`, "/properties/a has no description"},
		"a list where a schema is due":         {`{"items": []}`, "/items is not a schema"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{c.want}, walk(decoded(t, c.schema), "")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	if got := walk(decoded(t, `{"properties": {"default": {"description": "d", "enum": [{"$defs": 1}]}}, "additionalProperties": false}`), ""); got != nil {
		t.Errorf("problems %v in a schema without any", got)
	}
}

// asJSON is a value as encoding/json writes it and a validator reads it.
func asJSON(tb testing.TB, v any) any {
	tb.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return decoded(tb, string(body))
}
