package draft07

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// suite returns the folder of the official tests of the draft 07. Another module that
// pawl needs carries them.
func suite(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/google/jsonschema-go/jsonschema").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata", "draft7")
}

func TestTheOfficialTestsOfTheDraftPass(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(suite(t), "*.json"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	asked := 0
	for _, file := range files {
		name := filepath.Base(file)
		if name == "refRemote.json" { // a schema elsewhere is refused
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		if err := json.Unmarshal(src, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			set, problems := Compile(map[string][]byte{"schema.json": g.Schema})
			if len(problems) > 0 {
				t.Errorf("%s: %s: %v", name, g.Description, problems)
				continue
			}
			for _, one := range g.Tests {
				// Formats may be asserted or not; pawl asserts dates and times.
				if name == "format.json" && strings.Contains(one.Description, "only an annotation") && formats[formatOf(g.Schema)] != nil {
					continue
				}
				doc, problem := jsontree.Parse(one.Data, bounds)
				if problem != nil {
					t.Errorf("%s: %s: %s: %v", name, g.Description, one.Description, problem)
					continue
				}
				found := set.Validate("schema.json", doc, one.Data)
				if (len(found) == 0) != one.Valid {
					t.Errorf("%s: %s: %s: %v, want valid %v", name, g.Description, one.Description, found, one.Valid)
				}
				for _, f := range found {
					if f.Line < 1 || f.Column < 1 || f.Keyword == "" || f.Message == "" {
						t.Errorf("%s: %s: %s: finding %+v", name, g.Description, one.Description, f)
					}
				}
				asked++
			}
		}
	}
	if asked < 700 {
		t.Errorf("%d tests were found, want more than 700", asked)
	}
}

func formatOf(schema []byte) string {
	var s struct{ Format string }
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	return s.Format
}
