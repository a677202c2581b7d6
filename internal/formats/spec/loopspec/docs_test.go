package loopspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

func TestTheTableOfPhrasesIsDrawn(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| text | phrase | means |\n|---|---|---|\n")
	for _, p := range Phrases {
		meaning := p.Meaning
		if p.Default {
			meaning += " (the default)"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", p.Field, strings.Trim(strings.ReplaceAll(p.Text, "`", "``"), " "), meaning)
	}
	table := strings.ReplaceAll(b.String(), "| ```COMMAND``` |", "| `` `COMMAND` `` |") + "\n"
	drawn.Sections(t, "../../../../docs/specs.md", map[string]string{"phrases": table})
}
