package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

func TestNestedKeysHaveTheirPlacesAndNothingIsExpanded(t *testing.T) {
	top, err := definition.ParseNested("org.yaml", []byte("\ufefforg:\r\n  chief: {agent: boss}\r\n  departments:\r\n    a:\r\n      members: [x, \"y z\"] # who\r\n  base: &anchor all\r\n  copy: *anchor\r\n  none:\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	org := top.Get("org")
	for name, c := range map[string]struct{ got, want readiness.Value }{
		"a value in braces": {org.Get("chief").Get("agent").Value, readiness.Value{Text: "boss", Line: 2, Column: 18}},
		"an anchor is text": {org.Get("base").Value, readiness.Value{Text: "&anchor all", Line: 6, Column: 9}},
		"an alias is text":  {org.Get("copy").Value, readiness.Value{Text: "*anchor", Line: 7, Column: 9}},
		"an item":           {org.Get("departments").Get("a").Get("members").Texts()[1], readiness.Value{Text: "y z", Line: 5, Column: 20}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if none := org.Get("none"); none.Text() != "" || none.Texts() != nil || none.Value.Line != 8 {
		t.Errorf("a key without a value: %+v", none)
	}
	if missing := org.Get("nothing").Get("below"); missing != nil || missing.Text() != "" || missing.Texts() != nil {
		t.Errorf("a key that is missing: %+v", missing)
	}
}

func TestAMappingInsideAFileIsADefinition(t *testing.T) {
	top, err := definition.ParseNested("MANIFEST.yaml", []byte("agent: x\nloop:\n  verify: go test ./...\n  scope:\n    - src/**\n  scope: [docs/**]\n"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := top.Get("loop").Document("MANIFEST.yaml")
	if err != nil {
		t.Fatal(err)
	}
	verify, _ := doc.Scalar("verify")
	if want := (readiness.Value{Text: "go test ./...", Line: 3, Column: 11}); verify != want {
		t.Errorf("verify = %+v, want %+v", verify, want)
	}
	taken, ok := doc.Take("scope")
	if !ok || len(taken.Items) != 1 || taken.Items[0].Text != "src/**" || taken.Differs.Line != 6 || taken.Differs.Repeats != 4 || doc.List("scope") != nil {
		t.Errorf("taken = %+v, %v; left %v", taken, ok, doc.List("scope"))
	}
	if _, ok := doc.Take("scope"); ok {
		t.Error("a key is taken twice")
	}
	if _, err := top.Get("agent").Document("MANIFEST.yaml"); err == nil {
		t.Error("text is a definition")
	}
}

func TestAFileThatIsNotNestedKeysIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, why string }{
		"a list":           {"- a\n", "not a YAML mapping"},
		"no YAML":          {"a: [\n", "not valid YAML (line 1, column 4"},
		"a conflict":       {"<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> other\n", "conflict"},
		"too deep":         {strings.Repeat("[", 1001), "nested deeper"},
		"too deep by keys": {deepKeys(70), "nested deeper"},
		"too large":        {"a: b\n" + strings.Repeat("# more\n", 40_000), "larger than 262144 bytes"},
	} {
		_, err := definition.ParseNested("org.yaml", []byte(c.text))
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUnreadable || !strings.Contains(f.Why, c.why) {
			t.Errorf("%s: %v, want %s", name, err, c.why)
		}
	}
	if top, err := definition.ParseNested("org.yaml", []byte("# nothing\n")); err != nil || !top.Map || len(top.Nodes) > 0 {
		t.Errorf("an empty file: %+v, %v", top, err)
	}
}

func deepKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "k:\n")
	}
	return b.String()
}
