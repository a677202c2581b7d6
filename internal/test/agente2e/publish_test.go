//go:build agents && linux

package agente2e_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// page is where people read what was seen.
const page = "../../../docs/dev/agent-tests.md"

var update = flag.Bool("update", false, "write what was seen into docs/dev/agent-tests.md")

// pageLock is held while the page is written: tests run side by side.
var pageLock sync.Mutex

// table collects the rows that tests saw for a table of the page. It may be used
// by several goroutines.
type table struct {
	name, head string
	keys       []string // how each row begins, in order

	mu   sync.Mutex
	rows map[string]string // by key
}

// newTable is a table between the markers of a name, which is written when the
// test ends if that is asked for.
func newTable(t *testing.T, name, head string, keys []string) *table {
	t.Helper()
	b := &table{name: name, head: head, keys: keys, rows: map[string]string{}}
	t.Cleanup(func() { b.publish(t) })
	return b
}

// add takes a row that begins with one of the keys.
func (b *table) add(row string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.keys {
		if strings.HasPrefix(row, key) {
			b.rows[key] = row
		}
	}
}

// publish replaces the rows that were seen, and leaves the others.
func (b *table) publish(t *testing.T) {
	t.Helper()
	if !*update || len(b.rows) == 0 {
		return
	}
	pageLock.Lock()
	defer pageLock.Unlock()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+b.name+" -->\n", "<!-- /"+b.name+" -->"
	before, rest, found := strings.Cut(string(text), begin)
	had, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for a table: %s%s", page, begin, end)
	}
	var rows strings.Builder
	rows.WriteString(b.head)
	for _, key := range b.keys {
		row := b.rows[key]
		for old := range strings.Lines(had) {
			if row == "" && strings.HasPrefix(old, key) {
				row = old
			}
		}
		rows.WriteString(row)
	}
	if err := os.WriteFile(page, []byte(before+begin+rows.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// subjectKeys are how the rows begin of a table with one row for each subject.
func subjectKeys() []string {
	var keys []string
	for _, s := range subjects {
		keys = append(keys, "| "+s.name+" |")
	}
	return keys
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
