package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

func TestTheArchitectureDocumentHasThisTable(t *testing.T) {
	drawn.Sections(t, filepath.Join(root, "docs", "architecture.md"), map[string]string{"packages": drawPackages(checkout(t))})
}

// drawPackages is the table in Markdown, with the packages that exist marked.
func drawPackages(packages []*source) string {
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
