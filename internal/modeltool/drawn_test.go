package modeltool

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
)

var update = flag.Bool("update", false, "rewrite the table of model_tools in docs/agents.md")

// byHand are ways to ask for something that stand in no table: parts of content.
var byHand = map[loop.ModelTool][3]string{
	loop.ToolWebSearch: {"", "models that search by themselves", ""},
	loop.ToolURLs: {
		"`source.type: url`", "`image_url`, `file_url`, `file_data` and the like, unless it is `data:`", "`fileData.fileUri`",
	},
	loop.ToolFiles:  {"`source.type: file`", "`file_id`", "`fileData.fileUri` at the vendor"},
	loop.ToolStored: {"", "`item_reference`, `@preset/` models", "`cachedContent`"},
}

func TestTheTableOfModelToolsIsDrawn(t *testing.T) {
	const page, begin = "../../docs/agents.md", "<!-- model tools: drawn by: go test ./internal/modeltool -run Drawn -update -->\n"
	const end = "<!-- end of model tools -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	got, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has lost the marks of its table of model tools", page)
	}
	want := drawModelTools()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of model tools is stale; run: go test ./internal/modeltool -run Drawn -update\n(-table +document)\n%s", diff)
	}
}

func drawModelTools() string {
	var b strings.Builder
	b.WriteString("| `model_tools` | Anthropic Messages | OpenAI Chat and Responses | Gemini |\n|---|---|---|---|\n")
	for _, tool := range loop.ModelTools() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", tool,
			words(tool, byHand[tool][0], messagesTools, Messages.fields),
			words(tool, byHand[tool][1], openAITools, Chat.fields, Responses.fields),
			words(tool, byHand[tool][2], geminiTools))
	}
	return b.String()
}

// words are the names in tables that stand for a tool. A name that is only another
// spelling of one before it is left out.
func words(tool loop.ModelTool, more string, tables ...map[string]loop.ModelTool) string {
	var all []string
	seen := map[string]bool{}
	for _, table := range tables {
		names := slices.SortedFunc(maps.Keys(table), func(a, b string) int { return strings.Compare(foldName(a)+a, foldName(b)+b) })
		for _, name := range names {
			if table[name] == tool && !seen[foldName(name)] {
				all, seen[foldName(name)] = append(all, "`"+name+"`"), true
			}
		}
	}
	if more != "" {
		all = append(all, more)
	}
	if len(all) == 0 {
		return "–"
	}
	return strings.Join(all, ", ")
}
