package definition

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/pattern"
)

// The definitions that people begin with must not need the YAML parser. Each of
// these tests fails if one of them does, and if it is read differently.

func TestTheExamplesOfTheDocumentsAreSimple(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := filepath.Glob("../../../docs/dev/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, dev...)
	for _, page := range append(pages, "../../../README.md") {
		n := 0
		for _, part := range strings.Split(readText(t, page), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(part, "```\n")
			if n++; !checkSimple(t, text) {
				t.Errorf("%s: not simple:\n%s", page, text)
			}
		}
		if least := map[string]int{"../../../docs/concepts.md": 1, pageOfKeys: len(knownKeys)}[filepath.ToSlash(page)]; n < least {
			t.Errorf("%s has %d examples, want %d", page, n, least)
		}
	}
}

func TestTheDefinitionsOfBenchmarksAndDemoAreSimple(t *testing.T) {
	for name, text := range map[string]string{
		"benchmark": realistic, "demo": readText(t, "../../verbs/demo/assets/repo/loops/loop.config.yaml"),
	} {
		if !checkSimple(t, text) {
			t.Errorf("%s: not simple:\n%s", name, text)
		}
	}
}

func TestNewLoopsAreSimpleForEveryPatternAndTier(t *testing.T) {
	texts := strings.Split(readText(t, "../../formats/spine/testdata/newloops.txt"), "\f\n")
	for _, text := range texts {
		if !checkSimple(t, text) {
			t.Errorf("not simple:\n%s", text)
		}
	}
	if want := 3 * len(pattern.Names()); len(texts) != want {
		t.Errorf("%d definitions, want %d", len(texts), want)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
