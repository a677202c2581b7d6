package definition

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// configJSON is a definition as an editor's YAML reader hands it to a
// validator.
func configJSON(tb testing.TB, text string) string {
	tb.Helper()
	var v map[string]any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	body, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(body)
}

func TestCompleteDefinitionsAreValid(t *testing.T) {
	concepts, err := os.ReadFile("../../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(concepts), "```yaml\n")
	fromConcepts, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/concepts.md has lost its example of a definition")
	}
	fromDemo, err := os.ReadFile("../../verbs/demo/assets/repo/loops/loop.config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var full strings.Builder
	for _, f := range Fields() {
		switch {
		case f.NotYet == "":
			full.WriteString(f.ExampleLine() + "\n")
		case f.Default != "":
			full.WriteString(f.Name + ": " + f.Default + "\n")
		default:
			full.WriteString(f.Name + ": []\n")
		}
	}
	schema := compiled(t, configSchema)
	for name, text := range map[string]string{
		"a complete one of L1":             configA,
		"a complete one of L2":             configB,
		"that of the page of concepts":     fromConcepts,
		"that of the demo":                 string(fromDemo),
		"one with every key":               full.String(),
		"one glob instead of a list":       with(configA, "scope", " src/**"),
		"a budget in quotes":               with(configA, "budget_tokens", ` "200000"`),
		"a worktree in quotes":             with(configB, "worktree", ` "true"`),
		"no worktree at L1":                with(configA, "worktree", " no"),
		"gates that YAML takes for truths": with(with(configB, "verify", " true"), "guard", " true"),
		"a branch that is a number":        with(configA, "base", " 1.0"),
		"a pattern of one's own":           with(configA, "pattern", " mine"),
		"a name of who lands":              with(configB, "land_via", " fleet-ops"),
		"cron":                             with(configA, "cadence", ` "*/15 9-17 * * 1-5"`),
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := parse(t, text).Definition("")
			for _, f := range findings {
				if f.Severity == readiness.SeverityError {
					t.Errorf("the definition itself is refused: %+v", f)
				}
			}
			if err := schema.Validate(decoded(t, configJSON(t, text))); err != nil {
				t.Errorf("%s\n%v", text, err)
			}
		})
	}
}

// refuses reports whether a validator complains of one key.
func refuses(schema *jsonschema.Schema, instance any, key string) bool {
	return slices.ContainsFunc(places(schema.Validate(instance)), func(at string) bool {
		return at == "/"+key || strings.HasPrefix(at, "/"+key+"/")
	})
}

// TestTheSchemaAndTheReaderAgreeOnValues holds for every key whose values can
// be told one by one, at each tier, and every value that any key may have.
func TestTheSchemaAndTheReaderAgreeOnValues(t *testing.T) {
	words := []string{"default", "L4", "l1", "yes", "True", "TRUE", "colour", "command ", "none,", "1.5", "-1", "+3", "0", "00", "007", "7", "2147483647", "2e5", "200_000", "x-1", "[]"}
	for _, f := range Fields() {
		words = append(words, f.Values...)
		words = append(words, f.Default)
		if f.NotYet == Refused {
			words = append(words, "x"+f.Default, f.Default+"x")
		}
	}
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "" })
	configs := map[string]string{"L1": configA, "L2": configB, "L3": with(configB, "tier", " L3")}
	schema := compiled(t, configSchema)
	accepted := map[string]int{}
	for _, f := range Fields() {
		switch f.Kind {
		case KindEnum, KindFlag, KindCount, KindAmount:
		case KindText, KindCommand, KindCadence, KindGlobs, KindList, KindDuration, KindSize:
			if f.NotYet == "" {
				continue // Their texts are without number; the next test samples them.
			}
		}
		for tier, config := range configs {
			base := configJSON(t, with(config, f.Name, ""))
			for _, word := range words {
				value, err := json.Marshal(word)
				if err != nil {
					t.Fatal(err)
				}
				want := severity(t, with(config, f.Name, " "+string(value)), f.Name) == readiness.SeverityError
				if word == "[]" && f.NotYet == Refused {
					value = []byte("[]") // The text of an empty list is an empty list.
				}
				if got := refuses(schema, decoded(t, setting(base, f.Name, string(value))), f.Name); got != want {
					t.Errorf("%s: %s at %s: the schema refuses it %v, the reader %v", f.Name, value, tier, got, want)
				}
				if !want {
					accepted[f.Name]++
				}
			}
		}
	}
	for _, f := range Fields() {
		if f.Kind == KindEnum && accepted[f.Name] == 0 && f.Name != "auth" {
			t.Errorf("no value of %s was accepted, so that nothing was compared", f.Name)
		}
	}
}

// drawnValues are values as people write them, good and bad.
var drawnValues = []string{
	"src/**", `["src/**", "docs/*.md"]`, "\n  - src/**\n  - '**/*.go'", `["*"]`, `"**"`, `"./"`, `[".*"]`, `["src/..a"]`, `["../x"]`, `["a/../b"]`,
	"[2024, a]", "true", "false", "1.0", "7", "CI", "[CI, GOFLAGS]", "[CI=1]", "[true]", "10m", "1h30m", "2d", "1w2d3h", "1.5h", ".5h", "1d1w", "0s",
	"600", "5 minutes", "999w", "1h", `"*/5 * * * *"`, `"0 9 * * 1-5"`, `"@daily"`, "sometimes", "go test ./...", `"CI=1 npm test"`, "main",
	"none", "L1", "L2", "plan", "escalate", "command", "fixer", `"<fill: it>"`, "human", "2147483648", "200000",
	`"a: b # c"`, "é", "\n  a: b", "|\n  two\n  lines", "[a, b]", "-5m", `"1 h"`, "1µs", "~x",
}

func TestTheSchemaRefusesNothingThatTheReaderAccepts(t *testing.T) {
	schema := compiled(t, configSchema)
	names := knownKeys
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		config := rapid.SampledFrom([]string{configA, configB}).Draw(t, "config")
		for range 3 {
			key := rapid.SampledFrom(names).Draw(t, "key")
			config = with(config, key, " "+rapid.SampledFrom(drawnValues).Draw(t, "value"))
		}
		var v map[string]any
		if err := yaml.Unmarshal([]byte(config), &v); err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse("x.yaml", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		_, findings := doc.Definition("")
		for _, key := range names {
			field, _ := LookupField(key)
			wrong := func(f readiness.Finding) bool { return f.Key == key }
			if slices.ContainsFunc(findings, wrong) || collection(v[key]) && !takesList(field) {
				continue
			}
			taken++
			if refuses(schema, instance, key) {
				t.Fatalf("%s\nthe reader accepts %s, the schema says: %v", config, key, schema.Validate(instance))
			}
		}
	})
	if taken == 0 {
		t.Error("nothing was accepted")
	}
}

func collection(v any) bool {
	kind := reflect.ValueOf(v).Kind()
	return kind == reflect.Slice || kind == reflect.Map
}

func takesList(f Field) bool {
	return f.Kind == KindList || f.Kind == KindGlobs || f.NotYet != ""
}

func TestEditorsAreOfferedEveryValue(t *testing.T) {
	body, err := Schema(configSchema)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := decoded(t, string(body)).(map[string]any)
	all, _ := root["properties"].(map[string]any)
	if len(all) != len(Fields()) {
		t.Errorf("%d properties for %d keys", len(all), len(Fields()))
	}
	for _, f := range Fields() {
		s, _ := all[f.Name].(map[string]any)
		description, _ := s["description"].(string)
		if !strings.HasPrefix(description, f.Meaning) || !strings.Contains(description, f.Fallback()) {
			t.Errorf("%s is described as %q", f.Name, description)
		}
		if f.NotYet != Refused {
			want, err := json.Marshal([]any{f.yamlValue(f.Example)})
			if err != nil {
				t.Fatal(err)
			}
			if got := s["examples"]; !reflect.DeepEqual(got, decoded(t, string(want))) {
				t.Errorf("examples of %s = %v, want %s", f.Name, got, want)
			}
		}
		offered := offers(s)
		for _, value := range f.Values {
			if f.NotYet == Refused && value != f.Default {
				if slices.Contains(offered, value) {
					t.Errorf("%s: %s is offered and would be refused", f.Name, value)
				}
				continue
			}
			if !slices.Contains(offered, value) {
				t.Errorf("%s: %s is not offered, only %q", f.Name, value, offered)
			}
		}
	}
}

// offers are the values that an editor finds in a schema, at any depth.
func offers(v any) []string {
	var all []string
	switch s := v.(type) {
	case map[string]any:
		list, _ := s["enum"].([]any)
		for _, value := range append(list, s["const"]) {
			if text, ok := value.(string); ok {
				all = append(all, text)
			}
		}
		for _, inner := range s {
			all = append(all, offers(inner)...)
		}
	case []any:
		for _, inner := range s {
			all = append(all, offers(inner)...)
		}
	}
	return all
}
