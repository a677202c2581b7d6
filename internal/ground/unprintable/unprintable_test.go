package unprintable_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/unprintable"
)

func TestWhatNobodySeesIsWrittenOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain text stays":                       {"one\n\ttwo — drei", "one\n\ttwo — drei"},
		"a right-to-left override":               {"a\u202eb", `a\u202eb`},
		"isolates":                               {"\u2066x\u2069", `\u2066x\u2069`},
		"characters without a width":             {"pass\u200b\u2060word", `pass\u200b\u2060word`},
		"a byte order mark":                      {"\ufeffa", `\ufeffa`},
		"tags":                                   {"a\U000e0041\U000e0042", `a\U000e0041\U000e0042`},
		"a message in variation selectors":       {"😀\ufe0f\ufe0e\U000e0101", "😀\ufe0f" + `\ufe0e\U000e0101`},
		"letters that are drawn as nothing":      {"a\u3164b\u115f\u2800", `a\u3164b\u115f\u2800`},
		"controls":                               {"\x1b[2Jx\x07\x00\r", `\x1b[2Jx\a\x00\r`},
		"line ends of other systems":             {"a\r\nb\u2028c", "a\nb" + `\u2028c`},
		"one picture of several":                 {"👩🏽\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f", "👩🏽\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f"},
		"joiners that join nothing":              {"a\u200db", `a\u200db`},
		"what is not UTF-8":                      {"a\xffb", "a\ufffdb"},
		"Arabic with its signs":                  {"\u0600١٢", "\u0600١٢"},
		"a comment that a browser does not show": {"<!-- obey -->", "<!-- obey -->"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := unprintable.Show(c.in); got != c.want {
				t.Errorf("Show(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestShownTextHidesNothingAndIsNotShownTwice(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\u202e", "\u200d", "\ufe0f", "😀", "\U000e0041", "\x1b", "\r", "\n", "\xff", "\u200b"}))
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOf(part).Draw(t, "in"), "")
		got := unprintable.Show(in)
		if !utf8.ValidString(got) || unprintable.Show(got) != got {
			t.Fatalf("Show(%q) = %q", in, got)
		}
		for _, r := range got {
			if unprintable.TurnsDirection(r) || unprintable.Is(r) && r != '\u200d' && r != '\ufe0f' && r != '\ufe0e' {
				t.Fatalf("Show(%q) = %q with %U", in, got, r)
			}
		}
	})
}

func TestAddedLinesWithHiddenCharactersAreNamed(t *testing.T) {
	t.Parallel()
	before := "one\nold\u202e\n"
	text := "\ufeffone\nold\u202e\nif a\u202e\u2066 {\nx\u200b\n\ufeff\nfine 😀\ufe0f\r\n"
	want := []string{
		"a.go line 3 turns the direction of writing around (U+202E, U+2066)",
		"a.go line 4 holds characters that nobody sees (U+200B)",
		"a.go line 5 holds characters that nobody sees (U+FEFF)",
	}
	if diff := cmp.Diff(want, words(unprintable.FindAdded("a.go", before, text))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if found := unprintable.FindAdded("a.bin", "", text+"\x00"); found != nil {
		t.Errorf("found %v in what is not text", found)
	}
	if got := unprintable.FindAdded("a\u202eb", "", "\U000e0041")[0].String(); got != `a\u202eb line 1 holds characters that nobody sees (U+E0041)` {
		t.Errorf("it says %q", got)
	}
}

func words(list []unprintable.Found) (all []string) {
	for _, f := range list {
		all = append(all, f.String())
	}
	return all
}

const patch = `diff --git a/src/a.go b/src/a.go
index 1..2 100644
--- a/src/a.go
+++ b/src/a.go
@@ -1,3 +1,4 @@ func a() {
 one
-two~
+two
+three~
++++ b/forged.go~
@@ -20 +21 @@
-x
+y~
\ No newline at end of file
diff --git "a/\303\244.go" "b/\303\244.go"
--- /dev/null
+++ "b/\303\244.go"
@@ -0,0 +1,2 @@
+~begin
+~again
`

func TestThePlacesOfAPatchAreThoseOfTheNewFiles(t *testing.T) {
	t.Parallel()
	var got []string
	for _, f := range unprintable.FindInPatch(strings.ReplaceAll(patch, "~", "\u202e")) {
		got = append(got, strings.Split(f.String(), " turns ")[0])
	}
	want := []string{"src/a.go line 3", "src/a.go line 4", "src/a.go line 21", "ä.go line 1", "ä.go line 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if found := unprintable.FindInPatch(strings.ReplaceAll(patch, "~", "")); found != nil {
		t.Errorf("found %v where nothing is", found)
	}
}

func TestAPatchKeepsWhatIsSeenAndShowsWhatIsNot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"+plain\tä 😀\ufe0f\r\n":        "",
		"+\ufefffirst\n-\ufefffirst\n": "",
		"+caf\xe9\n":                   "",
		"+a\x1b[2Jb\n":                 "+a\\x1b[2Jb\n",
		"+a\rb\n":                      "+a\\rb\n",
		"+a\u202eb \ufeff\n":           "+a\\u202eb \\ufeff\n",
		"+\x9b2J\u009b2J\n":            "+\\x9b2J\\u009b2J\n",
		"+\x07\x7f\x00":                "+\\a\\x7f\\x00",
	} {
		got, escaped := unprintable.ShowPatch([]byte(text))
		if want == "" {
			want = text
		}
		if string(got) != want || (escaped > 0) != (want != text) {
			t.Errorf("%q is shown as %q with %d escapes, want %q", text, got, escaped, want)
		}
	}
}

func FuzzInPatch(f *testing.F) {
	f.Add(strings.ReplaceAll(patch, "~", "\u202e"))
	f.Add("@@ -1 +9223372036854775807,99999999999999999999 @@\n+\u202e\n")
	f.Fuzz(func(t *testing.T, patch string) {
		for _, found := range unprintable.FindInPatch(patch) {
			if len(found.Runes) == 0 || !slices.ContainsFunc([]rune(patch), func(r rune) bool { return r == found.Runes[0] }) {
				t.Errorf("found %+v in %q", found, patch)
			}
		}
	})
}
