package output

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCleanTakesOutWhatATerminalObeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain text stays":                 {"one\n\ttwo", "one\n\ttwo"},
		"letters of all languages stay":    {"héllo 世界 ✓", "héllo 世界 ✓"},
		"colours go":                       {"\x1b[1;31mred\x1b[0m", "red"},
		"cursor moves go":                  {"a\x1b[2J\x1b[Hb", "ab"},
		"a title goes with its text":       {"a\x1b]0;evil\x07b", "ab"},
		"a title ended by ST goes":         {"a\x1b]0;evil\x1b\\b", "ab"},
		"a link keeps its words":           {"\x1b]8;;http://x\x07word\x1b]8;;\x07", "word"},
		"an unended title ends with lines": {"a\x1b]0;evil\nb", "a\nb"},
		"C1 controls go":                   {"a\u009b31mb\u0085c", "abc"},
		"raw C1 bytes are no text":         {"a\x9b31m", "a\uFFFD31m"},
		"a bell and a backspace go":        {"pass\b\b\b\bfail\x07", "passfail"},
		"a carriage return hides nothing":  {"fail\rpass", "fail\npass"},
		"line ends of Windows stay lines":  {"a\r\nb", "a\nb"},
		"writing is not turned around":     {"a\u202eb\u2066c", "abc"},
		"what is not UTF-8 is marked":      {"a\xffb", "a\uFFFDb"},
		"a lone escape goes":               {"a\x1b", "a"},
		"a charset switch goes":            {"\x1b(0lqk", "lqk"},
		"no character is invisible":        {"a\u200bb\U000e0041c", `a\u200bb\U000e0041c`},
		"pictures stay":                    {"✔\ufe0f 👩\u200d💻", "✔\ufe0f 👩\u200d💻"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(c.in); got != c.want {
				t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestNothingIsLeftThatATerminalObeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b", "[", "]", "0;x", "\x07", "\x9b", "\u009b", "\r", "\n", "\u202e", "m", "\x1b\\"}))
		in := strings.Join(rapid.SliceOf(part).Draw(t, "in"), "")
		checkClean(t, in)
	})
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[31mred", "\x1b]0;t\x07", "\u009b1m", "\x9b", "a\rb", "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) { checkClean(t, in) })
}

func checkClean(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, in string,
) {
	t.Helper()
	got := Clean(in)
	if !utf8.ValidString(got) {
		t.Fatalf("Clean(%q) = %q is not UTF-8", in, got)
	}
	for _, r := range got {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			t.Fatalf("Clean(%q) = %q still has %U", in, got, r)
		}
	}
	if again := Clean(got); again != got {
		t.Fatalf("Clean is not idempotent: %q, then %q", got, again)
	}
}
