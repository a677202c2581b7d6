package loopspec

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of phrases in docs/specs.md")

func TestTheDocumentHasTheTableOfPhrases(t *testing.T) {
	const begin, end = "<!-- phrases: go test ./internal/loopspec -update -->\n", "<!-- end of phrases -->"
	name := filepath.Join("..", "..", "docs", "specs.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the phrases", name)
	}
	var b strings.Builder
	b.WriteString(before + begin + "\n| text | phrase | means |\n|---|---|---|\n")
	for _, p := range Phrases {
		meaning := p.Meaning
		if p.Default {
			meaning += " (the default)"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", p.Field, strings.Trim(strings.ReplaceAll(p.Text, "`", "``"), " "), meaning)
	}
	want := strings.ReplaceAll(b.String(), "| ```COMMAND``` |", "| `` `COMMAND` `` |") + "\n" + end + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/specs.md is stale; run: go test ./internal/loopspec -update")
	}
}
