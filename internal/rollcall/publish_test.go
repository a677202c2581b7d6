//go:build agents && linux

package rollcall_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// page is where people read what was seen.
const page = "../../docs/agents.md"

var update = flag.Bool("update", false, "write what was seen into docs/agents.md")

// publish puts rows of a table between the markers of a name on the page, if that
// is asked for. Rows that begin with the same cells are replaced, those of others
// stay, in the order of keys.
func publish(t *testing.T, name, head string, keys []string, rows map[string]string) {
	t.Helper()
	if !*update || len(rows) == 0 {
		return
	}
	text, err := os.ReadFile(page)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte("# Agents\n\n<!-- rollcall -->\n<!-- /rollcall -->\n\n<!-- matrix -->\n<!-- /matrix -->\n"), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(string(text), begin)
	had, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for a table: %s%s", page, begin, end)
	}
	var table strings.Builder
	table.WriteString(head)
	for _, key := range keys {
		row := rows[key]
		for old := range strings.Lines(had) {
			if row == "" && strings.HasPrefix(old, key) {
				row = old
			}
		}
		table.WriteString(row)
	}
	if err := os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// line is a row of a table.
func line(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// restless is what differs from one time to the next.
var restless = regexp.MustCompile(`127\.0\.0\.1:\d+|\d{4}-\d\d-\d\d[T ][\d:.]+(Z| UTC)?|process \d+|\b[\d.]+m?s\b|req_\w+`)

// calm is a text without what differs from one time to the next.
func calm(text string) string {
	return restless.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "127."):
			return "HOST"
		case strings.HasPrefix(s, "process"):
			return "process PID"
		case strings.HasPrefix(s, "20"):
			return "TIME"
		case strings.HasPrefix(s, "req_"):
			return "ID"
		}
		return "…"
	})
}
