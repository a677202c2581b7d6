package definition

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

const pageOfKeys = "../../../docs/config.md"

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

func TestTheTablesOfKeysAreDrawn(t *testing.T) {
	drawn.Sections(t, pageOfKeys, map[string]string{
		"keys of the format":  drawFormat(),
		"pawl's own keys":     drawOwn(),
		"keys refused":        drawLater(),
		"more about each key": drawMore(),
	})
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
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n```yaml\n%s\n```\n", f.Name, drawn.Wrap(escaped(f.Meaning)+" "+escaped(f.More)), f.ExampleLine())
	}
	return b.String()
}

// escaped keeps Markdown from reading more into a text than there is.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "<", `\<`, "|", `\|`, "`", "\\`", "[", `\[`).Replace(text)
}
