package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namesFormat has the files outside of internal/formats that ask which format a loop has, and
// why they do. What is asked of all formats belongs into format.Format; the list only shrinks.
var namesFormat = map[string]string{
	"cycle/engine/admitrow.go":                "only the memory of boot is pushed by a row",
	"cycle/engine/ask.go":                     "a no on a board counts for the task, whoever has it",
	"cycle/engine/inside.go":                  "an agent of a board writes in its own name",
	"definitions/definition/convert.go":       "keys that only some formats have",
	"definitions/definition/convert_lists.go": "keys that only some formats have",
	"definitions/definition/fields_own.go":    "the values of the key protocol",
	"definitions/definition/place.go":         "the folder that two formats share",
	"record/accepted/item.go":                 "what boot does beyond its definition",
	"record/store/specs.go":                   "a query about specs",
	"record/store/work.go":                    "a query about boards",
	"rules/loop/definition.go":                "defaults of the key protocol",
	"rules/loop/loop.go":                      "the names",
	"surface/cli/sim.go":                      "each simulator has its own flags",
	"surface/cli/sim_board.go":                "each simulator has its own flags",
	"surface/mcp/resources.go":                "the definition of a spec is its document",
	"verbs/lookup/spec.go":                    "the life of a spec in ls and show",
	"verbs/notify/matter.go":                  "what boot has pushed",
	"verbs/runs/actuals.go":                   "estimates are those of .loops",
}

func TestOnlyTheListedFilesAskWhichFormatALoopHas(t *testing.T) {
	asks := regexp.MustCompile(`\bProtocol(Spine|Spec|Boot|Tasks|Board)\b`)
	tree := os.DirFS(filepath.Join(root, "internal"))
	found := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "formats/") || strings.HasPrefix(file, "test/") {
			return err
		}
		body, err := fs.ReadFile(tree, file)
		if asks.Match(body) {
			found[file] = true
			if namesFormat[file] == "" {
				t.Errorf("internal/%s asks which format a loop has: ask format.Format, or say it in the list", file)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range namesFormat {
		if !found[file] {
			t.Errorf("internal/%s asks for no format any more: take its line away", file)
		}
	}
}
