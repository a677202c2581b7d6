package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchor is the name that a heading has in a link.
func anchor(heading string) string {
	text := linkText.ReplaceAllString(strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#"))), "$1")
	return strings.ReplaceAll(notAnchor.ReplaceAllString(text, ""), " ", "-")
}

// brokenLinks are the links of pages that lead to no file of the tree, or to no heading
// of a page.
func brokenLinks(tree fs.FS, pages []string) (broken []string, err error) {
	for _, page := range pages {
		body, err := fs.ReadFile(tree, page)
		if err != nil {
			return nil, err
		}
		for _, m := range linkTarget.FindAllStringSubmatch(string(body), -1) {
			target, at, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			text, err := fs.ReadFile(tree, file)
			lines := strings.Split(string(text), "\n")
			switch {
			case err != nil:
				broken = append(broken, fmt.Sprintf("%s: there is no %s", page, m[1]))
			case at != "" && !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#") && anchor(l) == at }):
				broken = append(broken, fmt.Sprintf("%s: no heading of %s is %s", page, file, at))
			}
		}
	}
	return broken, nil
}

func TestEveryLinkOfADocumentLeadsSomewhere(t *testing.T) {
	tree := os.DirFS(root)
	pages, err := fs.Glob(tree, "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fs.Glob(tree, "docs/dev/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, dev...)
	broken, err := brokenLinks(tree, append(pages, "README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, sentence := range broken {
		t.Error(sentence)
	}
}

func TestEveryPageIsInTheIndex(t *testing.T) {
	tree := os.DirFS(filepath.Join(root, "docs"))
	index, err := fs.ReadFile(tree, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "dev/*.md"} {
		pages, err := fs.Glob(tree, pattern)
		if err != nil || len(pages) == 0 {
			t.Fatal(pattern, err)
		}
		for _, page := range pages {
			if page != "README.md" && !strings.Contains(string(index), "]("+page+"): ") {
				t.Errorf("docs/README.md does not say which question %s answers", page)
			}
		}
	}
}

func TestABrokenLinkIsFound(t *testing.T) {
	tree := fstest.MapFS{
		"README.md": {Data: []byte("[a](docs/a.md#the-first-one) [b](docs/b.md) [c](docs/a.md#none) [d](#here) [e](https://example.org/x)\n")},
		"docs/a.md": {Data: []byte("# The `first` [one](b.md)\n")},
	}
	broken, err := brokenLinks(tree, []string{"README.md"})
	want := []string{"README.md: there is no docs/b.md", "README.md: no heading of docs/a.md is none", "README.md: no heading of README.md is here"}
	if err != nil || !slices.Equal(broken, want) {
		t.Errorf("broken = %q, %v, want %q", broken, err, want)
	}
}
