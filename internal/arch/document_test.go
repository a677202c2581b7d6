package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

func TestTheTableOfPackagesIsDrawn(t *testing.T) {
	drawn.Sections(t, filepath.Join(root, "docs", "dev", "architecture.md"), map[string]string{"packages": drawPackages(checkout(t))})
}

// drawPackages is the table in Markdown, a line for each row.
func drawPackages(packages []*source) string {
	leaves := map[string][]string{} // of each row
	for _, p := range packages {
		if r, ok := find(table, p.name); ok {
			leaves[r.name] = append(leaves[r.name], "`"+p.name+"`")
		}
	}
	var b strings.Builder
	b.WriteString("| package | what | may, unlike others |\n|---|---|---|\n")
	for _, r := range table {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(leaves[r.name], " "), r.what, permissions(r))
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
	if r.isPure() {
		all = append(all, "pure")
	}
	add("starts processes", r.exec)
	add("SQL", r.sql)
	add("reads the clock", r.clock)
	add("has an `init`", r.init)
	return strings.Join(all, "; ")
}

var cycleRow = regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \|`)

func TestTheArchitectureDocumentHasEveryPhaseInItsOrder(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(root, "docs", "dev", "architecture.md"))
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
