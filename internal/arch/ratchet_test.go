package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/test/ratchet"
)

func TestTheProductAndItsDocumentsDoNotGrow(t *testing.T) {
	lines := 0
	for _, top := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || file == filepath.Join(root, "internal", "test")):
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			body, err := os.ReadFile(file)
			lines += bytes.Count(body, []byte("\n"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ratchet.Hold(t, ratchet.Lines, lines)

	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err, len(pages))
	}
	dev, err := filepath.Glob(filepath.Join(root, "docs", "dev", "*.md"))
	if err != nil || len(dev) == 0 {
		t.Fatal(err, len(dev))
	}
	pages = append(pages, dev...)
	readme := filepath.Join(root, "README.md")
	wide := 0
	for _, page := range append(pages, readme) {
		body, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if page == readme {
			ratchet.Hold(t, ratchet.Readme, bytes.Count(body, []byte("\n")))
		}
		code := false
		for line := range strings.Lines(string(body)) {
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if !code && !strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > 120 {
				wide++
			}
		}
	}
	ratchet.Hold(t, ratchet.Wide, wide)
}
