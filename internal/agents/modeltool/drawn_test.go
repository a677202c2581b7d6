package modeltool

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

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
	drawn.Sections(t, "../../../docs/agents.md", map[string]string{"model tools": drawModelTools()})
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
