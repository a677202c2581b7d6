package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

func writes(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesThatMatchAreFoundAndNothingOfGitOrPawl(t *testing.T) {
	root := t.TempDir()
	writes(t, root, map[string]string{
		"src/a.go": "1", "src/deep/b.go": "1", "src/c.txt": "1", "docs/x.md": "1", "a.go": "1",
		".git/HEAD": "1", "src/.git/x.go": "1", ".loops/x/STATE.md": "1", "vendor/.loops/a.go": "1",
	})
	if err := os.Symlink("/", filepath.Join(root, "src/link.go")); err != nil {
		t.Fatal(err)
	}
	for globs, want := range map[string][]string{
		"src/**":                {"src/a.go", "src/c.txt", "src/deep/b.go", "src/link.go"},
		"**/*.go":               {"a.go", "src/a.go", "src/deep/b.go", "src/link.go"},
		"src/*.go":              {"src/a.go", "src/link.go"},
		"{src,docs}/*.{md,txt}": {"docs/x.md", "src/c.txt"},
		"src":                   {"src/a.go", "src/c.txt", "src/deep/b.go", "src/link.go"},
		"./docs/x.md":           {"docs/x.md"},
		"none/**":               nil,
		".git/**":               nil,
		".loops/**":             nil,
		"docs/x.md src/*.go":    {"docs/x.md", "src/a.go", "src/link.go"},
	} {
		found, err := scan(root, strings.Fields(globs))
		if got := slices.Sorted(maps.Keys(found.files)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s finds %q, %v, want %q", globs, got, err, want)
		}
	}
}

func TestACheckoutThatIsGoneIsNotOneWithoutFiles(t *testing.T) {
	if _, err := scan(t.TempDir(), []string{"src/**"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is looked at with %v, want an error", err)
	}
}

func TestASearchBeginsWhereAMatchCanBe(t *testing.T) {
	for globs, want := range map[string][]string{
		"src/**": {"src"}, "src/a/*.go src/b.go": {"src"}, "a/b/c.go a/b/**": {"a/b"}, "**/*.go src/**": {""}, "x.go": {""}, "src ab/c abc/d/*": {""},
		"ab/c* abc/d/*": {"ab", "abc/d"}, "{a,b/c}/*.md": {"a", "b/c"}, `a\[b/c/*`: {""},
	} {
		if got := startsOf(strings.Fields(globs)); !slices.Equal(got, want) {
			t.Errorf("%s begins in %q, want %q", globs, got, want)
		}
	}
}

// Whatever a glob is, a file that it covers is found from where the search begins.
func FuzzASearchMissesNoMatch(f *testing.F) {
	for _, glob := range []string{"src/**", "{a,b}/c/*.md", "**", "a/./b", "src/", "./a", `a\*b/c`, "[a]/b", "a/b"} {
		f.Add(glob, "a/b/c.md")
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		if !utf8.ValidString(glob) || !utf8.ValidString(name) { // A definition is text.
			return
		}
		if name == "" || name != filepath.ToSlash(filepath.Clean(name)) || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") || name == ".." || !policy.Covers(glob, name) {
			return
		}
		starts := startsOf([]string{glob})
		if !slices.ContainsFunc(starts, func(s string) bool {
			return s == "" || name == s || strings.HasPrefix(name, filepath.ToSlash(filepath.Clean(s))+"/")
		}) {
			t.Errorf("%q covers %q, and the search begins in %q", glob, name, starts)
		}
	})
}

func TestWhatChangedIsSaid(t *testing.T) {
	at := func(n int64) stamp { return stamp{size: 1, changed: n} }
	before := files{"a": at(1), "b": at(1), "c": at(1)}
	after := files{"a": at(1), "b": at(2), "d": at(1)}
	if got, want := after.changes(before), "changed b\ncreated d\nremoved c"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if before.digest() == after.digest() || before.digest() != maps.Clone(before).digest() {
		t.Error("the digest does not tell")
	}
}

func TestRefsThatMovedAreSaid(t *testing.T) {
	tips := map[string]string{"refs/heads/a": "1", "refs/heads/b": "2"}
	first := movedRefs("", false, tips)
	if !first.quiet || first.now != "refs/heads/a 1\nrefs/heads/b 2" {
		t.Errorf("at first it is %+v", first)
	}
	if again := movedRefs(first.now, true, tips); again.now != first.now {
		t.Errorf("unchanged it is %+v", again)
	}
	moved := movedRefs(first.now, true, map[string]string{"refs/heads/b": "3", "refs/heads/c": "1"})
	want := seen{
		before: first.now, known: true, now: "refs/heads/b 3\nrefs/heads/c 1",
		payload: "refs/heads/a is gone; it was 1\nrefs/heads/b moved: 2..3\nrefs/heads/c is new: 1",
	}
	if diff := cmp.Diff(want, moved, cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
	if gone := movedRefs(first.now, true, nil); gone.now != "" || gone.quiet {
		t.Errorf("without any it is %+v", gone)
	}
}

func TestACommandIsAnEventWhenItSucceedsAndDidNotOrSaysSomethingElse(t *testing.T) {
	state, known := "", false
	var fired []string
	for _, a := range []Answer{{"no", 1}, {"one", 0}, {"one", 0}, {"two", 0}, {"", 7}, {"two", 0}, {"", 0}, {"", 0}} {
		s := answered(state, known, a)
		if s.now != state && !s.quiet {
			fired = append(fired, s.payload)
		}
		state, known = s.now, true
	}
	if want := []string{"one", "two", "two", ""}; !slices.Equal(fired, want) {
		t.Errorf("it fired with %q, want %q", fired, want)
	}
	if s := answered("", false, Answer{"ready", 0}); s.quiet || s.payload != "ready" {
		t.Errorf("at first it is %+v", s)
	}
}

func TestPayloadsAreBoundedAndHaveEachLineOnce(t *testing.T) {
	if got := joinLines("a\nb", "b\nc"); got != "a\nb\nc" {
		t.Errorf("joined they are %q", got)
	}
	if got := joinLines("", "a"); got != "a" {
		t.Errorf("nothing and a line are %q", got)
	}
	var long strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&long, "changed file %d\n", i)
	}
	got := bound(long.String())
	if len(got) > mostPayload+len(cut) || !strings.HasSuffix(got, "\n[…]") || bound(got) != got {
		t.Errorf("it has %d bytes and ends with %q", len(got), got[len(got)-20:])
	}
	more := joinLines(got, "one more")
	if len(more) > mostPayload+len(cut)+20 || strings.Count(more, "[…]") != 1 {
		t.Errorf("with one more line it has %d bytes and ends with %q", len(more), more[len(more)-30:])
	}
}

func TestSecretsOfWebhooksAreInAVariableOrAFile(t *testing.T) {
	home := t.TempDir()
	const good = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	writes(t, home, map[string]string{"webhooks/file.key": good + "\n", "webhooks/bad.key": "secret", "webhooks/both.key": "bad"})
	s := Secrets{Home: home, Environ: []string{"PAWL_WEBHOOK_ENV_ONE=" + good, "PAWL_WEBHOOK_BOTH=" + good, "PAWL_WEBHOOK_FILE= "}}
	for name, want := range map[string]string{"file": "", "env-one": "", "both": "", "bad": "bad.key: it has to be whsec_", "none": "neither PAWL_WEBHOOK_NONE nor "} {
		_, err := s.Key(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err != nil && strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
