package draft07

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	oracle "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

func parse(t *testing.T, text string) *jsontree.Value {
	t.Helper()
	v, problem := jsontree.Parse([]byte(text), bounds)
	if problem != nil {
		t.Fatal(problem)
	}
	return v
}

func TestEveryFaultIsNamedWithItsPointerAndItsPlace(t *testing.T) {
	set, problems := Compile(map[string][]byte{"s.json": []byte(`{
		"type": "object", "required": ["version", "tasks"], "additionalProperties": false,
		"properties": {
			"version": {"type": "string", "pattern": "^\\d+$"},
			"at": {"format": "date-time"},
			"n": {"type": "integer", "minimum": 1, "multipleOf": 2},
			"tasks": {"type": "array", "items": {"required": ["id"], "properties": {"id": {"type": "string"}, "p": {"enum": ["high", "low", 3]}}}}
		}}`)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	src := `{
  "at": "yesterday", "n": 0.5,
  "tasks": [
    {"id": 7, "p": "wip"},
    {}
  ], "_comment": "x",
  "a/b": 1
}`
	var got []string
	for _, f := range set.Validate("s.json", parse(t, src), []byte(src)) {
		got = append(got, f.String()+" ("+f.Keyword+" "+f.Name+")")
	}
	want := []string{
		`1:1: "version" is missing (required version)`,
		`2:9: /at: "yesterday" is not a date-time (format )`,
		`2:27: /n: 0.5 is not at least 1 (minimum )`,
		`2:27: /n: 0.5 is not a multiple of 2 (multipleOf )`,
		`2:27: /n: is number, not integer (type )`,
		`4:12: /tasks/0/id: is number, not string (type )`,
		`4:20: /tasks/0/p: "wip" is not one of "high", "low", 3 (enum )`,
		`5:5: /tasks/1: "id" is missing (required id)`,
		`6:6: /_comment: the name "_comment" is not allowed here (additionalProperties _comment)`,
		`7:3: /a~1b: the name "a/b" is not allowed here (additionalProperties a/b)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestASchemaThatCannotBeUsedIsRefusedAtItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want []string
	}{
		"not JSON":                     {`{"type": }`, []string{`schemas/a.json:1:10: not JSON: invalid character '}' looking for beginning of value`}},
		"another draft":                {`{"$schema": "https://json-schema.org/draft/2020-12/schema"}`, []string{`schemas/a.json:1:13: is a schema of https://json-schema.org/draft/2020-12/schema, not of the draft 07`}},
		"two faults of the metaschema": {"{\"type\": \"text\",\n\"required\": \"id\"}", []string{`schemas/a.json:1:10: /type: fits none of 2 alternatives`, `schemas/a.json:2:13: /required: is string, not array`}},
		"a $ref to the network":        {`{"items": {"$ref": "https://example.com/x.json"}}`, []string{`schemas/a.json:1:20: /items: the $ref "https://example.com/x.json" leads out of the schemas of the boot repository`}},
		"a $ref to a file":             {`{"$ref": "file:///etc/passwd"}`, []string{`schemas/a.json:1:10: the $ref "file:///etc/passwd" leads out of the schemas of the boot repository`}},
		"a $ref above the repository":  {`{"$ref": "../../x.json"}`, []string{`schemas/a.json:1:10: the $ref "../../x.json" leads out of the schemas of the boot repository`}},
		"a $ref to nothing":            {`{"$ref": "#/definitions/x"}`, []string{`schemas/a.json:1:10: the $ref "#/definitions/x" names nothing`}},
		"a $ref to a text":             {`{"title": "x", "not": {"$ref": "#/title"}}`, []string{`schemas/a.json:1:32: /not: the $ref "#/title" names text, not a schema`}},
		"a pattern of another engine":  {`{"pattern": "(?=x)"}`, []string{"schemas/a.json:1:13: the pattern cannot be used: invalid or unsupported Perl syntax: `(?=`"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, problems := Compile(map[string][]byte{"schemas/a.json": []byte(c.src)})
			if set != nil {
				t.Error("there is a set")
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAReferenceLeadsToOtherFilesOfTheSet(t *testing.T) {
	set, problems := Compile(map[string][]byte{
		"schemas/state.json":       []byte(`{"properties": {"task": {"$ref": "parts/task.json#/definitions/task"}, "schema": {"$ref": "http://json-schema.org/draft-07/schema#"}}}`),
		"schemas/parts/task.json":  []byte(`{"$id": "https://example.com/task.json", "definitions": {"task": {"$ref": "https://example.com/other.json"}}}`),
		"schemas/parts/other.json": []byte(`{"$id": "https://example.com/other.json", "type": "string"}`),
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for src, want := range map[string]int{`{"task": "x", "schema": {"type": "null"}}`: 0, `{"task": 1}`: 1, `{"schema": {"type": "none", "minItems": -1}}`: 2} {
		if got := set.Validate("schemas/state.json", parse(t, src), []byte(src)); len(got) != want {
			t.Errorf("%s: %v, want %d findings", src, got, want)
		}
	}
	if !set.Has("schemas/state.json") || set.Has("state.json") {
		t.Error("the set has its files under their names")
	}
}

func TestASchemaIsJudgedInBoundedTime(t *testing.T) {
	// Without a memory of what was judged this is two to the power of fifty.
	var b strings.Builder
	b.WriteString(`{"definitions": {"d50": {"type": "string"}`)
	for i := range 50 {
		fmt.Fprintf(&b, `, "d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}`, i, i+1, i+1)
	}
	b.WriteString(`}, "$comment": "x", "anyOf": [{"$ref": "#/definitions/d0"}, {"$ref": "#"}]}`)
	set, problems := Compile(map[string][]byte{"s": []byte(b.String())})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	set.Validate("s", parse(t, `1`), nil)
	// Nor does a number with a large exponent fill the memory.
	set, _ = Compile(map[string][]byte{"s": []byte(`{"minimum": 1e-300, "multipleOf": 1e-300, "type": "integer"}`)})
	set.Validate("s", parse(t, `1e300`), nil)
	set.Validate("s", parse(t, `0e99999999999`), nil)
	// A document of nothing but faults is not told all of them.
	set, _ = Compile(map[string][]byte{"s": []byte(`{"items": false}`)})
	found := set.Validate("s", parse(t, "[0"+strings.Repeat(",0", 5000)+"]"), nil)
	if len(found) != mostFindings+1 || found[mostFindings].Message != "and more" {
		t.Errorf("%d findings, the last is %v", len(found), found[len(found)-1])
	}
}

func TestWhatIsAtTheEdgeOfABound(t *testing.T) {
	long := strings.Repeat("é", 41)
	for name, c := range map[string]struct{ schema, doc, want string }{
		"a text that is just short enough to be shown": {`{"type": "null", "const": 1}`, `"` + long[2:] + `"`, `"` + long[2:] + `" is not 1`},
		"a text that is cut":                           {`{"const": 1}`, `"` + long + `"`, `"` + long[2:] + `…" is not 1`},
		"a minimum that nothing reaches":               {`{"minLength": 1e300}`, `"x"`, "has 1 characters, not at least 1e300"},
		"a maximum that nothing reaches":               {`{"maxItems": 1e300}`, `[1]`, ""},
		"as many as may be":                            {`{"maxItems": 1, "minItems": 1}`, `[1]`, ""},
		"a number with too many digits to compare":     {`{"minimum": 0}`, `1e-5000`, "1e-5000 is not at least 0"},
		"one with just so many":                        {`{"minimum": 0}`, `1e-1000`, ""},
		"a list is not an object":                      {`{"enum": [{}]}`, `[]`, "a list is not one of an object"},
	} {
		set, problems := Compile(map[string][]byte{"s": []byte(c.schema)})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		found, got := set.Validate("s", parse(t, c.doc), nil), ""
		if len(found) > 0 {
			got = found[0].Message
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTimesAreThoseOfRFC3339(t *testing.T) {
	for text, want := range map[string]bool{
		"2026-01-31T10:00:00Z": true, "2026-01-31t10:00:00.123z": true, "2026-01-31T10:00:00+02:00": true, "2016-12-31T23:59:60Z": true,
		"2016-12-31T15:59:60-08:00": true,
		"2026-01-31":                false, "2026-02-30T10:00:00Z": false, "2026-01-31 10:00:00Z": false, "2026-01-31T10:00:00": false,
		"2026-01-31T1:00:00Z": false, "2026-01-31T10:00:00,5Z": false, "2026-01-31T25:00:00Z": false, "2026-01-31T12:00:60Z": false, "": false,
		"2026-01-31T10:00:00Zx": false, "２026-01-31T10:00:00Z": false,
	} {
		if at, got := ParseTime(text); got != want || got && at.Year() < 2016 {
			t.Errorf("ParseTime(%q) = %v %v, want %v", text, at, got, want)
		}
	}
	for text, want := range map[string]bool{"2026-02-28": true, "2026-02-29": false, "28.2.2026": false} {
		if formats["date"](text) != want {
			t.Errorf("%q is a date: %v", text, !want)
		}
	}
}

// drawSchema draws a schema, and drawValue a value that it may fit. Only a schema of a part of the document (inside) refers to the whole one:
// validators differ in what a schema says that asks itself about the same value.
func drawSchema(t *rapid.T, depth int, inside bool) string {
	var parts []string
	add := func(keyword string, value func() string) {
		if rapid.IntRange(0, 5).Draw(t, "has "+keyword) == 0 {
			parts = append(parts, fmt.Sprintf("%q: %s", keyword, value()))
		}
	}
	schemaOf := func(inside bool) string {
		if depth > 0 {
			return drawSchema(t, depth-1, inside)
		}
		leaves := []string{"true", "false", "{}", `{"type": "string"}`, `{"$ref": "#/definitions/d"}`}
		if inside {
			leaves = append(leaves, `{"$ref": "#"}`)
		}
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	same := func() string { return schemaOf(inside) }
	below := func() string { return schemaOf(true) }
	number := func() string {
		return rapid.SampledFrom([]string{"0", "1", "2", "2.0", "0.5", "-1", "3"}).Draw(t, "number")
	}
	count := func() string { return rapid.SampledFrom([]string{"0", "1", "2", "2.0"}).Draw(t, "count") }
	list := func(of func() string) string { return "[" + of() + ", " + of() + "]" }
	named := func() string { return fmt.Sprintf(`{"a": %s, "b": %s}`, below(), below()) }
	add("type", func() string {
		return rapid.SampledFrom([]string{`"object"`, `"array"`, `"string"`, `"integer"`, `["number", "null"]`, `["boolean", "object"]`}).Draw(t, "type")
	})
	for _, keyword := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		add(keyword, number)
	}
	add("multipleOf", func() string { return rapid.SampledFrom([]string{"1", "0.5", "2"}).Draw(t, "step") })
	for _, keyword := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		add(keyword, count)
	}
	add("pattern", func() string { return rapid.SampledFrom([]string{`"^a"`, `"b$"`, `"\\d"`}).Draw(t, "pattern") })
	add("enum", func() string { return "[" + drawValue(t, 1) + ", " + drawValue(t, 1) + ", 1.0]" })
	add("const", func() string { return drawValue(t, 1) })
	add("uniqueItems", func() string { return "true" })
	add("required", func() string { return `["a"]` })
	for _, keyword := range []string{"contains", "additionalItems", "additionalProperties", "propertyNames"} {
		add(keyword, below)
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		add(keyword, same)
	}
	add("items", func() string {
		if rapid.Bool().Draw(t, "tuple") {
			return list(below)
		}
		return below()
	})
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		add(keyword, func() string { return list(same) })
	}
	add("properties", named)
	add("patternProperties", func() string { return fmt.Sprintf(`{"^a": %s, "c": %s}`, below(), below()) })
	add("dependencies", func() string { return fmt.Sprintf(`{"a": ["b"], "b": %s}`, same()) })
	return "{" + strings.Join(parts, ", ") + "}"
}

func drawValue(t *rapid.T, depth int) string {
	leaves := []string{"0", "1", "1.0", "2", "0.5", "-1", "null", "true", "false", `"a"`, `"ab"`, `"é1"`, `""`, "[]", "{}"}
	if depth > 0 {
		switch rapid.IntRange(0, 3).Draw(t, "nested") {
		case 0:
			return "[" + drawValue(t, depth-1) + ", " + drawValue(t, depth-1) + "]"
		case 1:
			return fmt.Sprintf(`{"a": %s, "b": %s}`, drawValue(t, depth-1), drawValue(t, depth-1))
		case 2:
			return fmt.Sprintf(`{"ac": %s, "c": %s}`, drawValue(t, depth-1), drawValue(t, depth-1))
		}
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

func TestAnotherValidatorSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := drawSchema(t, 2, false)
		schema = strings.TrimSuffix(schema, "}")
		if schema != "{" {
			schema += ", "
		}
		schema += fmt.Sprintf(`"definitions": {"d": %s}}`, rapid.SampledFrom([]string{`{"type": "integer"}`, `{"minLength": 2}`, "true"}).Draw(t, "definition"))
		doc := drawValue(t, 3)

		decoded, err := oracle.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		c := oracle.NewCompiler()
		c.DefaultDraft(oracle.Draft7)
		c.AssertFormat()
		if err := c.AddResource("mem:///s.json", decoded); err != nil {
			t.Fatal(err)
		}
		other, err := c.Compile("mem:///s.json")
		if err != nil {
			t.Skip("the other validator refuses a schema that refers to itself")
		}
		value, err := oracle.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		want := other.Validate(value)
		if want != nil && strings.Contains(fmt.Sprintf("%#v", want), "InfiniteLoop") {
			t.Skip("likewise")
		}
		set, problems := Compile(map[string][]byte{"s.json": []byte(schema)})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		v, problem := jsontree.Parse([]byte(doc), bounds)
		if problem != nil {
			t.Fatal(problem)
		}
		if found := set.Validate("s.json", v, []byte(doc)); (len(found) == 0) != (want == nil) {
			t.Fatalf("schema %s\nvalue %s\nfindings %v\nthe other says %v", schema, doc, found, want)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, src := range []string{
		`{"type": "object", "properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"pattern": "^a"}}}`,
		`{"$id": "https://example.com/a", "items": [{"$id": "#b"}, {"$ref": "#b"}], "additionalItems": {"$ref": "http://json-schema.org/draft-07/schema"}}`,
		`{"$ref": "#"}`, `true`, `[]`, `{"$ref": "%zz"}`, `{"dependencies": {"a": {"$ref": "#/dependencies/b"}, "b": ["a"]}}`,
		`{"if": {"const": 1e300}, "then": {"multipleOf": 1e-300}, "else": {"minLength": 1e400}}`,
	} {
		f.Add([]byte(src), []byte(`{"a": [1, "x", {"b": null}]}`))
	}
	f.Fuzz(func(t *testing.T, schema, doc []byte) {
		set, problems := Compile(map[string][]byte{"s.json": schema})
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Fatalf("problem %+v", p)
			}
		}
		if (set == nil) != (len(problems) > 0) {
			t.Fatalf("a set and %v", problems)
		}
		v, problem := jsontree.Parse(doc, bounds)
		if set == nil || problem != nil {
			return
		}
		for _, found := range set.Validate("s.json", v, doc) {
			if found.Line < 1 || found.Column < 1 || found.Message == "" {
				t.Fatalf("finding %+v", found)
			}
		}
	})
}
