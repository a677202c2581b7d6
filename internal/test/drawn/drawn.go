// Package drawn keeps files, and sections of documents, as the code draws them. It
// registers the flag -update of the tests that import it: with it, what is stale is
// written and not reported. make generate runs them so, and finds them by their names,
// which contain Drawn, or DrawnSlowly if they take minutes.
package drawn

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the tests draw, instead of comparing with it")

// Updates reports whether the tests were run with -update.
func Updates() bool { return *update }

// command is what rewrites what a test draws.
func command(tb testing.TB) string {
	tb.Helper()
	switch {
	case strings.Contains(tb.Name(), "DrawnSlowly"):
		return "make generate ALL=1"
	case !strings.Contains(tb.Name(), "Drawn"):
		tb.Fatalf("%s draws, so its name has to contain Drawn: make generate finds it by that", tb.Name())
	}
	return "make generate"
}

// File compares a file with what it should be.
func File(tb testing.TB, name, want string) {
	tb.Helper()
	redraw := command(tb)
	if *update {
		write(tb, name, want)
		return
	}
	if diff := cmp.Diff(read(tb, name), want); diff != "" {
		tb.Errorf("%s is stale; if the change is meant, run: %s (-file +now)\n%s", name, redraw, diff)
	}
}

// Sections compares sections of a document with what they should be, by their names. The
// section NAME is between a line that begins with <!-- NAME: and one that is
// <!-- end of NAME -->.
func Sections(tb testing.TB, page string, want map[string]string) {
	tb.Helper()
	redraw := command(tb)
	text := read(tb, page)
	for name, section := range want {
		marks := regexp.MustCompile(`(?ms)^(<!-- ` + regexp.QuoteMeta(name) + `:[^\n]*-->\n)(.*?)^(<!-- end of ` + regexp.QuoteMeta(name) + ` -->$)`)
		at := marks.FindStringSubmatchIndex(text)
		if at == nil {
			tb.Fatalf("%s has lost the marks of its section: <!-- %s: … --> and <!-- end of %s -->", page, name, name)
		}
		if diff := cmp.Diff(text[at[4]:at[5]], section); diff != "" && !*update {
			tb.Errorf("%s: %s is stale; if the change is meant, run: %s (-document +now)\n%s", page, name, redraw, diff)
		}
		text = text[:at[4]] + section + text[at[5]:]
	}
	if *update {
		write(tb, page, text)
	}
}

// startsBlock is a word that Markdown would take for more than a word at the begin of a line.
var startsBlock = regexp.MustCompile(`^(>.*|[-+*=]+|#{1,6}|\d+[.)])$`)

// Wrap breaks a paragraph of Markdown into lines of at most 120 columns.
func Wrap(paragraph string) string {
	var parts []string // what is never broken
	for word := range strings.FieldsSeq(paragraph) {
		if len(parts) > 0 && startsBlock.MatchString(word) {
			parts[len(parts)-1] += " " + word
			continue
		}
		parts = append(parts, word)
	}
	var b strings.Builder
	width := 0
	for i, part := range parts {
		n := utf8.RuneCountInString(part)
		switch {
		case i == 0:
			width = n
		case width+1+n > 120:
			b.WriteByte('\n')
			width = n
		default:
			b.WriteByte(' ')
			width += 1 + n
		}
		b.WriteString(part)
	}
	return b.String()
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}
