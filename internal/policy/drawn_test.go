package policy

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table of commands in docs/report.md")

func TestTheTableOfCommandsIsDrawn(t *testing.T) {
	const page, begin = "../../docs/report.md", "<!-- commands: drawn by: go test ./internal/policy -run Drawn -update -->\n"
	const end = "<!-- end of commands -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	got, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has lost the marks of its table of commands", page)
	}
	want := drawCommands()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of commands is stale; run: go test ./internal/policy -run Drawn -update\n(-table +document)\n%s", diff)
	}
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
	fmt.Fprintf(&b, "\nWords that need a person: `%s`.\n", strings.Join(Irreversible, "` `"))
	return b.String()
}
