package definition

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

func TestEveryKeyHasAllThatIsSaidAboutKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Fields() {
		if seen[f.Name] || !plainKey(f.Name) {
			t.Errorf("%q is in the table twice, or is not a key", f.Name)
		}
		seen[f.Name] = true
		if f.kindText() == "" || f.More == "" || f.Example == "" {
			t.Errorf("%s: kind, paragraph or example is missing: %+v", f.Name, f)
		}
		if !strings.HasSuffix(f.Meaning, ".") || strings.Count(f.Meaning, ". ") > 0 || strings.ToUpper(f.Meaning[:1]) != f.Meaning[:1] {
			t.Errorf("%s: %q is not one sentence", f.Name, f.Meaning)
		}
		if n := utf8.RuneCountInString(f.Meaning); n > explainWidth-34 {
			t.Errorf("%s: the sentence has %d characters, and does not fit into a line of the list", f.Name, n)
		}
		if f.Default != "" && f.Absent != "" {
			t.Errorf("%s has a default and words instead of one", f.Name)
		}
		if (f.Kind == KindEnum) != (len(f.Values) > 0) && f.Kind != KindList && f.Kind != KindFlag || f.Open && f.Kind != KindEnum && f.Kind != KindList {
			t.Errorf("%s: values %q do not go with kind %s", f.Name, f.Values, f.Kind)
		}
		if f.NotYet == Refused && f.Default == "" {
			t.Errorf("%s is refused and has no default, which is all that a file may have for it", f.Name)
		}
		if f.Format && f.NotYet != "" || !f.Format && f.Required != "" {
			t.Errorf("%s: a key of the format is honoured, and pawl's own are optional", f.Name)
		}
	}
}

// severity is that of the findings about a key; empty if missing.
func severity(t *testing.T, config, key string) string {
	t.Helper()
	worst := ""
	_, findings := parse(t, config).Definition("keep-green")
	for _, f := range findings {
		if f.Key == key && worst != readiness.SeverityError {
			worst = f.Severity
		}
	}
	return worst
}

func TestAKeyThatIsAbsentIsReportedAsTheTableSays(t *testing.T) {
	want := map[string][2]string{ // at L1, at L2
		RequiredAlways:  {readiness.SeverityError, readiness.SeverityError},
		RequiredFromL2:  {"", readiness.SeverityError},
		RequiredAdvised: {readiness.SeverityWarning, readiness.SeverityWarning},
		"":              {"", ""},
	}
	for _, f := range Fields() {
		expected := want[f.Required]
		if f.Name == "land_via" {
			expected[0] = "" // At L1 nothing lands.
		}
		got := [2]string{severity(t, with(configA, f.Name, ""), f.Name), severity(t, with(configB, f.Name, ""), f.Name)}
		if f.Name != "tier" && got != expected || f.Name == "tier" && got[0] != readiness.SeverityError {
			t.Errorf("without %s the findings are %q, want %q", f.Name, got, expected)
		}
	}
}

func TestADefaultThatIsWrittenChangesNothing(t *testing.T) {
	for _, f := range Fields() {
		if f.Default == "" {
			continue
		}
		for _, config := range []string{configA, configB} {
			without, _ := parse(t, with(config, f.Name, "")).Definition("")
			written, findings := parse(t, with(config, f.Name, " "+f.Default)).Definition("")
			if diff := cmp.Diff(without.WithDefaults(), written.WithDefaults()); diff != "" || len(findings) > 0 {
				t.Errorf("%s: %s gives %+v and (-absent +written):\n%s", f.Name, f.Default, findings, diff)
			}
		}
	}
	for config, want := range map[string]int{configA: 1, configB: 3} {
		if def, _ := parse(t, config).Definition(""); def.WithDefaults().MaxIterations != want {
			t.Errorf("max_iterations is %d at %s, and the table says %s", def.WithDefaults().MaxIterations, def.Tier, "1 at L1, 3 above")
		}
	}
}

// configFor is a definition in which a key has an effect.
func configFor(f Field) string {
	if strings.HasPrefix(f.Name, "reviewer_") {
		return configB + "reviewer: It is good.\n"
	}
	return configB
}

func TestEveryExampleIsTakenAsTheTableSays(t *testing.T) {
	for _, f := range Fields() {
		want := map[string]string{Refused: readiness.SeverityError}[f.NotYet]
		if f.Example == f.Default {
			want = ""
		}
		if got := severity(t, with(configFor(f), f.Name, " "+f.Example), f.Name); got != want {
			t.Errorf("%s: finding %q, want %q", f.ExampleLine(), got, want)
		}
	}
}

func TestNumbersAreReadUpToTheirBounds(t *testing.T) {
	editors := compiled(t, configSchema)
	for key, most := range map[string]int64{"budget_tokens": 1 << 50, "budget_tokens_day": 1 << 50, "max_iterations": math.MaxInt32, "max_items": math.MaxInt32} {
		for n, want := range map[int64]string{most: "", most + 1: readiness.SeverityError} {
			if got := severity(t, with(configB, key, fmt.Sprintf(" %d", n)), key); got != want {
				t.Errorf("%s: %d: finding %q, want %q", key, n, got, want)
			}
			instance := decoded(t, setting(configJSON(t, with(configB, key, "")), key, strconv.FormatInt(n, 10)))
			if got := refuses(editors, instance, key); got != (n > most) {
				t.Errorf("%s: %d: the schema refuses it: %v, want %v", key, n, got, n > most)
			}
		}
	}
}

func TestEveryExampleThatIsHonouredIsInTheDefinition(t *testing.T) {
	for _, f := range Fields() {
		if f.NotYet != "" || f.Example == f.Default || f.Name == "worktree" { // pawl always works on a copy.
			continue
		}
		absent, _ := parse(t, with(configFor(f), f.Name, "")).Definition("")
		written, _ := parse(t, with(configFor(f), f.Name, " "+f.Example)).Definition("")
		if cmp.Equal(absent, written) {
			t.Errorf("%s: the definition is the same without it", f.ExampleLine())
		}
	}
}

func TestKeysAreFoundByTheirNameAndByOneThatIsNear(t *testing.T) {
	for _, f := range Fields() {
		if got, ok := LookupField(f.Name); !ok || got.Meaning != f.Meaning {
			t.Errorf("Lookup(%s) = %+v, %v", f.Name, got, ok)
		}
		words := strings.Split(f.Name, "_")
		for i := 1; i < len(words); i++ {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
		for _, other := range []string{f.Name, strings.ReplaceAll(f.Name, "_", "-"), strings.Join(words, "")} {
			if got := SimilarKey(other); got != f.Name {
				t.Errorf("Similar(%s) = %q, want %s", other, got, f.Name)
			}
		}
	}
	for _, name := range []string{"", "colour", "x", "Tier", "max-items"} {
		if f, ok := LookupField(name); ok {
			t.Errorf("Lookup(%q) found %s", name, f.Name)
		}
	}
	if got := SimilarKey("colour"); got != "" {
		t.Errorf("Similar(colour) = %q, want nothing", got)
	}
}

func TestTheCallerOwnsTheListOfKeys(t *testing.T) {
	Fields()[0].Name = "changed"
	if got := Fields()[0].Name; got != "name" {
		t.Errorf("the first key is %q after a caller changed its own list", got)
	}
}

func TestValuesAreKnownForKeysThatHaveThem(t *testing.T) {
	if diff := cmp.Diff([]string{loop.ProtocolSpine, "spec", "boot", "tasks", "board"}, valuesOf("protocol")); diff != "" {
		t.Errorf("protocols (-want +got):\n%s", diff)
	}
	for _, name := range []string{"goal", "colour"} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("valuesOf(%s) returned", name)
				}
			}()
			valuesOf(name)
		})
	}
}
