package drawn

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// said is a test that notes that it was told of an error.
type said struct {
	testing.TB
	failed bool
	name   string // by default one of a test that may draw
}

// Name is the name of the test.
func (s *said) Name() string { return cmp.Or(s.name, "TestAPageIsDrawn") }

func (s *said) Errorf(string, ...any) { s.failed = true }

// Fatalf ends the call, as that of a test does.
func (s *said) Fatalf(string, ...any) { s.failed = true; panic(s) }

func failed(t *testing.T, check func(*said)) bool {
	t.Helper()
	s := &said{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(s) {
				panic(r)
			}
		}()
		check(s)
	}()
	return s.failed
}

const page = "# A page\n<!-- first: drawn -->\none\n<!-- end of first -->\nbetween\n<!-- last: drawn -->\n<!-- end of last -->\n"

func TestAStaleSectionIsReportedAndWrittenWithUpdate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	write(t, name, page)
	for _, c := range []struct {
		name  string
		want  map[string]string
		fails bool
	}{
		{"as it is", map[string]string{"first": "one\n", "last": ""}, false},
		{"another text", map[string]string{"first": "two\n"}, true},
		{"a text where there was nothing", map[string]string{"last": "$1\n"}, true},
		{"no such section", map[string]string{"second": ""}, true},
	} {
		if got := failed(t, func(s *said) { Sections(s, name, c.want) }); got != c.fails {
			t.Errorf("%s: failed = %v, want %v", c.name, got, c.fails)
		}
	}
	t.Cleanup(func() { *update = false })
	*update = true
	Sections(&said{TB: t}, name, map[string]string{"first": "two\nthree\n", "last": "$1\n"})
	want := "# A page\n<!-- first: drawn -->\ntwo\nthree\n<!-- end of first -->\nbetween\n<!-- last: drawn -->\n$1\n<!-- end of last -->\n"
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("the page is %q, %v; want %q", got, err, want)
	}
}

func TestAStaleFileIsReportedAndWrittenWithUpdate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	write(t, name, "one")
	if failed(t, func(s *said) { File(s, name, "one") }) || !failed(t, func(s *said) { File(s, name, "two") }) {
		t.Error("only the second of both files is stale")
	}
	t.Cleanup(func() { *update = false })
	*update = true
	File(&said{TB: t}, name, "two")
	if got := read(t, name); got != "two" {
		t.Errorf("the file is %q, want what was drawn", got)
	}
}

func TestATestThatDrawsHasANameThatMakeGenerateFinds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	write(t, name, "one")
	for test, fails := range map[string]bool{"TestAFileIsDrawn": false, "TestFilesDrawnSlowly/each": false, "TestAFileIsAsItShouldBe": true} {
		if got := failed(t, func(s *said) { s.name = test; File(s, name, "one") }); got != fails {
			t.Errorf("%s: failed = %v, want %v", test, got, fails)
		}
	}
}

func TestAParagraphIsWrappedWhereMarkdownReadsTheSame(t *testing.T) {
	word := strings.Repeat("w", 59)
	for text, want := range map[string]string{
		"":                                     "",
		"a few  words\nof it":                  "a few words of it",
		word + " " + word + "w":                word + " " + word + "w",
		word + " " + word + "ww":               word + "\n" + word + "ww",
		word + " and " + word + " >= 3":        word + " and\n" + word + " >= 3",
		word + " or " + word[:55] + " - 1. go": word + " or\n" + word[:55] + " - 1. go",
		"é" + word + " " + word:                "é" + word + " " + word,
	} {
		if got := Wrap(text); got != want {
			t.Errorf("%q is wrapped to %q, want %q", text, got, want)
		}
	}
}
