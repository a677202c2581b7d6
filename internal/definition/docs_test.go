package definition

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/config.md from the table of keys")

const pageOfKeys = "../../docs/config.md"

func TestThePageOfKeysNamesEveryKnownKey(t *testing.T) {
	page, err := os.ReadFile(pageOfKeys)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range knownKeys {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/config.md does not name the key %s", key)
		}
	}
}

func TestThePageOfKeysHasTheseTables(t *testing.T) {
	page, err := os.ReadFile(pageOfKeys)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, want := range map[string]string{
		"keys of the format":  drawFormat(),
		"pawl's own keys":     drawOwn(),
		"keys refused":        drawLater(),
		"more about each key": drawMore(),
	} {
		begin := "<!-- " + name + ": drawn from internal/definition/fields.go by: go test ./internal/definition -update -->\n"
		before, rest, begins := strings.Cut(text, begin)
		got, after, ends := strings.Cut(rest, "<!-- end of "+name+" -->\n")
		if !begins || !ends {
			t.Fatalf("docs/config.md has lost the marks of %q", name)
		}
		if diff := cmp.Diff(want, got); diff != "" && !*update {
			t.Errorf("%s are stale in docs/config.md; run: go test ./internal/definition -update\n(-table +document)\n%s", name, diff)
		}
		text = before + begin + want + "<!-- end of " + name + " -->\n" + after
	}
	if *update {
		if err := os.WriteFile(pageOfKeys, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func drawFormat() string {
	return drawTable("needed", func(f Field) bool { return f.Format }, func(f Field) string { return f.Required })
}

func drawOwn() string {
	return drawTable("default", func(f Field) bool { return !f.Format && f.NotYet == "" }, defaultCell)
}

func drawLater() string {
	return drawTable("default", func(f Field) bool { return f.NotYet == Refused }, defaultCell)
}

// drawTable is a table of some keys, with one column that is theirs.
func drawTable(column string, holds func(Field) bool, cell func(Field) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| key | %s | kind | meaning |\n|---|---|---|---|\n", column)
	for _, f := range Fields() {
		if holds(f) {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", f.Name, f.Name, cell(f), kindCell(f), escaped(f.Meaning))
		}
	}
	return b.String()
}

func defaultCell(f Field) string {
	if f.Default != "" {
		return "`" + f.Default + "`"
	}
	return escaped(f.Absent)
}

func kindCell(f Field) string {
	if len(f.Values) == 0 {
		return string(f.Kind)
	}
	cell := "`" + strings.Join(f.Values, "` `") + "`"
	if f.Open {
		cell += " or another"
	}
	return cell
}

func drawMore() string {
	var b strings.Builder
	for _, f := range Fields() {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s %s\n\n```yaml\n%s\n```\n", f.Name, escaped(f.Meaning), escaped(f.More), f.ExampleLine())
	}
	return b.String()
}

// escaped keeps Markdown from reading more into a text than there is.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "<", `\<`, "|", `\|`, "`", "\\`", "[", `\[`).Replace(text)
}
