package arch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
)

var update = flag.Bool("update", false, "rewrite what is drawn in docs/")

const (
	tableBegins = "<!-- packages: drawn from internal/arch/table_test.go by: go test ./internal/arch -update -->\n"
	tableEnds   = "<!-- end of packages -->\n"
	mapBegins   = "<!-- map: drawn from internal/arch/map_test.go by: go test ./internal/arch -update -->\n"
	mapEnds     = "<!-- end of map -->\n"
)

func TestTheArchitectureDocumentHasThisTable(t *testing.T) {
	compareSection(t, "architecture.md", tableBegins, tableEnds, drawn(checkout(t)))
}

// compareSection compares what is between two marks of a document with what the
// source says, or writes it there with -update.
func compareSection(t *testing.T, document, begins, ends, want string) {
	t.Helper()
	name := filepath.Join(root, "docs", document)
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(body), begins)
	got, after, ended := strings.Cut(rest, ends)
	if !begun || !ended {
		t.Fatalf("docs/%s has lost these marks:\n%s%s", document, begins, ends)
	}
	if *update {
		if err := os.WriteFile(name, []byte(before+begins+want+ends+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/%s is stale; run: go test ./internal/arch -update\n(-source +document)\n%s", document, diff)
	}
}

// drawn is the table in Markdown, with the packages that exist marked.
func drawn(packages []*source) string {
	leaves := map[string][]string{} // of each row
	for _, p := range packages {
		if r, ok := find(table, p.name); ok {
			leaves[r.name] = append(leaves[r.name], p.name)
		}
	}
	var b strings.Builder
	b.WriteString("| level | package | what | may, unlike others | exists |\n|--:|---|---|---|---|\n")
	for _, r := range table {
		exists := "–"
		if found := leaves[r.name]; len(found) > 0 {
			exists = "yes"
			if strings.HasSuffix(r.name, "/*") {
				exists = strings.Join(found, ", ")
			}
		}
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s |\n", r.level, r.name, r.what, permissions(r), exists)
	}
	return b.String()
}

func permissions(r row) string {
	var all []string
	add := func(what string, reason string) {
		if reason != "" {
			all = append(all, what+": "+reason)
		}
	}
	if r.pure {
		all = append(all, "pure")
	}
	add("starts processes", r.exec)
	add("SQL", r.sql)
	add("reads the clock", r.clock)
	add("has an `init`", r.init)
	if r.tests {
		all = append(all, "imported by tests only")
	}
	if len(r.may) > 0 {
		all = append(all, "imports `"+strings.Join(r.may, "`, `")+"`")
	}
	return strings.Join(all, "; ")
}

var cycleRow = regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \|`)

func TestTheArchitectureDocumentHasEveryPhaseInItsOrder(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []loop.Phase
	for _, match := range cycleRow.FindAllStringSubmatch(string(body), -1) {
		got = append(got, loop.Phase(match[1]))
	}
	if diff := cmp.Diff(loop.Phases, got); diff != "" {
		t.Errorf("phases of the cycle (-loop.Phases +document):\n%s", diff)
	}
}
