package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

func TestTheTableOfCommandsIsDrawn(t *testing.T) {
	drawn.Sections(t, "../../../docs/report.md", map[string]string{"commands": drawCommands()})
}

func drawCommands() string {
	var b strings.Builder
	b.WriteString("| run without a question | also where a loop only reports | |\n|---|---|---|\n")
	var plain [2][]string
	for _, c := range AutoRuns {
		name := "`" + strings.Join(c.Argv, " ") + "`"
		at, reads := 0, "no"
		if c.Reads {
			at, reads = 1, "yes"
		}
		if c.Note == "" {
			plain[at] = append(plain[at], name)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, reads, c.Note)
	}
	for at, reads := range []string{"no", "yes"} {
		if len(plain[at]) > 0 {
			fmt.Fprintf(&b, "| %s | %s | |\n", strings.Join(plain[at], " "), reads)
		}
	}
	b.WriteString("\n" + drawn.Wrap("Words that need a person: `"+strings.Join(Irreversible, "` `")+"`.") + "\n")
	return b.String()
}
