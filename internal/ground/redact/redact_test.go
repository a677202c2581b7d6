package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"iter"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// encoders are what programs do to a value. Each is written with the encoder
// that programs use, not with the code under test.
var encoders = map[string]func(string) string{
	"as it is":                func(s string) string { return s },
	"base64":                  func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 unpadded":         func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 for URLs":         func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 unpadded, URLs":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 in a query":       func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"base64 in short lines":   func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 4, "\n") },
	"base64, quoted lines":    func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 5, `\n`) },
	"hex":                     func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper hex":               func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex with colons":         func(s string) string { return wrap(hex.EncodeToString([]byte(s)), 2, ":") },
	"hex in lines":            func(s string) string { return wrap(hex.EncodeToString([]byte(s)), 60, "\n") },
	"a dump of bytes":         func(s string) string { return fmt.Sprintf("% x", s) },
	"a literal of bytes":      func(s string) string { return strings.ReplaceAll(fmt.Sprintf("%# x", s), " ", ", ")[2:] },
	"a query":                 url.QueryEscape,
	"a path":                  url.PathEscape,
	"all bytes in percent":    func(s string) string { return each(s, "%%%02x") },
	"percent twice":           func(s string) string { return url.PathEscape(url.PathEscape(s)) },
	"JSON":                    func(s string) string { return quoteJSON(s, true) },
	"JSON without HTML":       func(s string) string { return quoteJSON(s, false) },
	"JSON in JSON":            func(s string) string { return quoteJSON(quoteJSON(s, true), false) },
	"JSON in JSON in JSON":    func(s string) string { return quoteJSON(quoteJSON(quoteJSON(s, false), false), false) },
	"JSON of PHP":             func(s string) string { return strings.ReplaceAll(quoteJSON(s, false), "/", `\/`) },
	"Go":                      func(s string) string { return inside(strconv.Quote(s)) },
	"Go, ASCII":               func(s string) string { return inside(strconv.QuoteToASCII(s)) },
	"a shell's single quotes": func(s string) string { return strings.ReplaceAll(s, `'`, `'\''`) },
	"single quotes in double": func(s string) string { return strings.ReplaceAll(s, `'`, `'"'"'`) },
	"a shell's double quotes": func(s string) string {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s)
	},
	"a shell's backslashes": backslashes,
	"octal":                 func(s string) string { return each(s, `\%03o`) },
	"escaped hex":           func(s string) string { return each(s, `\x%02x`) },
	"HTML":                  html.EscapeString,
	"doubled quotes":        func(s string) string { return strings.ReplaceAll(s, `'`, `''`) },
	"text of UTF-8":         func(s string) string { return string([]rune(s)) },
	"HTML in numbers":       func(s string) string { return eachRune(s, "&#%d;") },
	"HTML in hex numbers":   func(s string) string { return eachRune(s, "&#x%x;") },
	"Rust":                  func(s string) string { return eachRune(s, `\u{%x}`) },
	"Python, long":          func(s string) string { return eachRune(s, `\U%08x`) },
	"lines of Windows":      func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
}

func wrap(s string, width int, between string) string {
	var lines []string
	for len(s) > width {
		lines, s = append(lines, s[:width]), s[width:]
	}
	return strings.Join(append(lines, s), between)
}

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func eachRune(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

func quoteJSON(s string, safe bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(safe)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return inside(strings.TrimSuffix(b.String(), "\n"))
}

func backslashes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] < 0x80 && s[i] >= ' ' && !alnum.has(s[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func wide(s string, big bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func TestEverySpellingOfAValueIsReplaced(t *testing.T) {
	values := map[string]string{
		"letters and digits": "hunter2hunter2",
		"base64 itself":      "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzzzzzzKEY=",
		"every mark":         "p4 !\"#$%&'()*+,-./:;<=>?@^_`{|}~ w0rd\\x",
		"backslashes":        `a\\b\\\n\"c`,
		"lines":              "first line\n\tsecond \"line\"\r\nthird",
		"other scripts":      "pässwörd-пароль-密码-🔑1",
		"bytes":              "\x00\x01\xff\xfe\x80secret\x7f",
		"long":               strings.Repeat("a1b2c3d4-", 200),
	}
	for kind, value := range values {
		r := New(Secret{"KEY", value})
		if got := r.Refused(); len(got) > 0 {
			t.Fatalf("%s: refused %v", kind, got)
		}
		for name, encode := range encoders {
			spelled := encode(value)
			if got, want := r.String("<"+spelled+">"), "<[redacted:KEY]>"; got != want {
				t.Errorf("%s as %s: %q, got %q, want %q", kind, name, spelled, got, want)
			}
		}
	}
}

func TestUTF16IsReplacedInEitherOrder(t *testing.T) {
	r := New(Secret{"KEY", "hunter2hunter2"})
	for _, big := range []bool{false, true} {
		spelled := wide("x hunter2hunter2 y", big)
		if got := r.String(spelled); strings.Contains(got, "h\x00u") || !strings.Contains(got, "[redacted:KEY]") {
			t.Errorf("big-endian %t: got %q", big, got)
		}
	}
}

// The digits of base64 at the edges of a value also hold bits of what stands
// beside it, so what is left is compared without the digits that touch it.
func TestBase64OfALongerTextIsReplacedAtEveryAlignment(t *testing.T) {
	const value = "s3cr3t-Value"
	r := New(Secret{"KEY", value})
	for before := range 7 {
		for after := range 7 {
			text := strings.Repeat("<", before) + value + strings.Repeat(">", after)
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
				spelled := enc.EncodeToString([]byte(text))
				got := r.String(spelled)
				left, right, ok := strings.Cut(got, "[redacted:KEY]")
				if !ok || !strings.HasPrefix(spelled, left) || !strings.HasSuffix(spelled, right) {
					t.Errorf("%d before, %d after: %s became %s", before, after, spelled, got)
				}
				if len(left) != before*8/6 || len(right) > (after*8+5)/6+2 {
					t.Errorf("%d before, %d after: %q and %q stayed of %s", before, after, left, right, spelled)
				}
			}
		}
	}
}

// A line may end anywhere. Where it ends among the first digits, those before
// the end stay: they are too few to be told from text.
func TestBase64IsReplacedWhereverItsLineEnds(t *testing.T) {
	r := New(Secret{"KEY", "s3cr3t-Value-0987654321"})
	for _, before := range []string{"", "<", "<<"} {
		whole := base64.StdEncoding.EncodeToString([]byte(before + "s3cr3t-Value-0987654321>>>"))
		for at := range len(whole) + 1 {
			spelled := whole[:at] + "\n" + whole[at:]
			got := r.String(spelled)
			left, right, ok := strings.Cut(got, "[redacted:KEY]")
			if !ok || !strings.HasPrefix(spelled, left) || !strings.HasSuffix(spelled, right) {
				t.Fatalf("%q became %q", spelled, got)
			}
			if len(left) > len(before)*8/6+len("123\n") || len(right) > len("4+\nPg==") {
				t.Errorf("%q became %q", spelled, got)
			}
		}
	}
}

func TestOverlappingValuesAreReplacedWhole(t *testing.T) {
	tests := map[string]struct {
		values []Secret
		in     string
		want   string
	}{
		"one inside another":              {[]Secret{{"IN", "cdefgh1"}, {"OUT", "abcdefgh1jk"}}, "<abcdefgh1jk>", "<[redacted:OUT]>"},
		"the longer of one beginning":     {[]Secret{{"A", "abcdef12"}, {"B", "abcdef1234"}}, "<abcdef1234>", "<[redacted:B]>"},
		"the end of one begins another":   {[]Secret{{"A", "abcdefgh1"}, {"B", "efgh1jklm"}}, "<abcdefgh1jklm>", "<[redacted:A]>"},
		"one beside another":              {[]Secret{{"A", "abcdefgh1"}, {"B", "jklmnop2"}}, "abcdefgh1jklmnop2", "[redacted:A][redacted:B]"},
		"a value that looks like a token": {[]Secret{{"GH", "ghp_0123456789abcdefghijABCDEFGHIJ012345"}}, "ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted:GH]"},
		"a value inside a URL":            {[]Secret{{"DB", "p4ssw0rd-1"}}, "postgres://u:p4ssw0rd-1@h/db", "postgres://u:[redacted:DB]@h/db"},
		"a value at the end of a token":   {[]Secret{{"V", "trailing-secret!"}}, "ghp_0123456789abcdefghijABCDEFGHIJ012345trailing-secret!.", "[redacted:github-token]."},
		"one value with two names":        {[]Secret{{"A", "abcdefgh1"}, {"B", "abcdefgh1"}}, "abcdefgh1", "[redacted:A]"},
		"a value with an end of line":     {[]Secret{{"A", "abcdefgh1\n"}}, "abcdefgh1 ", "[redacted:A] "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := New(test.values...).String(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOfBase64InTwoLinesEnoughDigitsAreNeeded(t *testing.T) {
	r := New(Secret{"KEY", "hunter2"})
	for text, want := range map[string]string{
		"aHVudGVyMg==":    "[redacted:KEY]",
		"aH\nVudGVyMg==":  "aH\n[redacted:KEY]",
		"aHV\nudGVyMg==":  "aHV\nudGVyMg==", // seven digits are found everywhere by chance
		"aHVudG\nVyMg==.": "[redacted:KEY].",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestWhatCouldBeTheEdgeOfAMarkIsCutFromAValue(t *testing.T) {
	for value, want := range map[string]string{
		"]hunter22[":      "][redacted:NAME][",
		"ME]hunter22[red": "ME][redacted:NAME][red",
		"key]hunter22":    "key][redacted:NAME]", // the end of [redacted:openai-key]
		"[hunter22]":      "[redacted:NAME]",
		"]hunt3r[":        "][redacted:NAME][",
		"]abc12[":         "[redacted:NAME]", // too little would be left
	} {
		if got := New(Secret{"NAME", value}).String(value); got != want {
			t.Errorf("%q became %q, want %q", value, got, want)
		}
	}
}

func TestALongValueIsFoundLineByLine(t *testing.T) {
	value := "header\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\nZ2fG7h8J9kLmNoPqRsTuVwXyZ0123456789abcdef\nfooter"
	r := New(Secret{"PEM", value})
	in := "  12\tMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n  13\tZ2fG7h8J9kLmNoPqRsTuVwXyZ0123456789abcdef\n"
	if got, want := r.String(in), "  12\t[redacted:PEM]\n  13\t[redacted:PEM]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for line, want := range map[string]string{
		"0123456789abcdefghijklmnopqrstuv": "[redacted:LINES]",
		"0123456789abcdefghijklmnopqrstu":  "0123456789abcdefghijklmnopqrstu",
		"01234567890123456789012345678901": "[redacted:LINES]",
		"01234567801234567801234567801234": "01234567801234567801234567801234",
	} {
		if got := New(Secret{"LINES", "hunter2\n" + line + "\nhunter3"}).String(line); got != want {
			t.Errorf("the line %q became %q, want %q", line, got, want)
		}
	}
	const sentence = "these are words of a sentence, and no line of a key"
	if got := New(Secret{"TEXT", "hunter2\n" + sentence + "\nhunter3"}).String(sentence); got != sentence {
		t.Errorf("a sentence became %q", got)
	}
}

func TestValuesThatWouldEraseTextAreRefused(t *testing.T) {
	tests := map[string]struct {
		value string
		taken bool
	}{
		"empty":                    {"", false},
		"a flag":                   {"true", false},
		"a digit":                  {"1", false},
		"five bytes":               {"a1b2c", false},
		"blanks around five bytes": {"  a1b2c \n", false},
		"one byte again and again": {"aaaaaaaaaaaaaaaa", false},
		"three bytes":              {"abcabcabcabc", false},
		"a short number":           {"128034", false},
		"a short word":             {"master", false},
		"an everyday word":         {"Production", false},
		"the mark":                 {"redacted:", false},
		"the name of a shape":      {"url-password", false},
		"a whole mark":             {"abc[redacted:X]def", false},
		"six bytes of two classes": {"a1b2c3", true},
		"eight letters":            {"swordfis", true},
		"eight digits":             {"12345678", true},
		"a value between brackets": {"]hunter22[", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := New(Secret{"NAME", test.value})
			refused := r.Refused()
			if test.taken != (len(refused) == 0) {
				t.Fatalf("refused: %v", refused)
			}
			text := "before " + test.value + " after"
			if got := r.String(text); test.taken != (got != text) {
				t.Errorf("got %q", got)
			}
			if test.taken {
				return
			}
			if refused[0].Name != "NAME" || refused[0].Reason == "" || test.value != "" && strings.Contains(refused[0].Reason, test.value) && len(test.value) > 5 && name != "the mark" {
				t.Errorf("refused %+v", refused[0])
			}
		})
	}
}

func TestEverydayWordsAreRefused(t *testing.T) {
	for value := range strings.FieldsSeq(`changeme database default defaults development disabled enabled example localhost password placeholder postgres postgresql production
		redacted security staging testing undefined username 127.0.0.1 ChangeMe aaaabbbbcccc 1234567 abcdefg private-key api-key-header [redacted:`) {
		if refused := New(Secret{"NAME", value}).Refused(); len(refused) != 1 {
			t.Errorf("%q is taken, and would be replaced everywhere", value)
		}
	}
	for value := range strings.FieldsSeq("abcdabcd changeme2 postgres1 12345678 abcdefgh a1b2c3d abcd12") {
		if refused := New(Secret{"NAME", value}).Refused(); len(refused) != 0 {
			t.Errorf("%q is refused: %+v", value, refused)
		}
	}
}

func TestAValueIsRefusedOnceHoweverManyNamesItHas(t *testing.T) {
	refused := New(Secret{"FIRST", "true"}, Secret{"SECOND", " true"}).Refused()
	if len(refused) != 1 || refused[0].Name != "FIRST" {
		t.Errorf("refused %+v, want the first alone", refused)
	}
}

func TestANameNeverGivesAValueAway(t *testing.T) {
	tests := map[string]struct {
		values []Secret
		want   string
	}{
		"the name is the value":        {[]Secret{{"hunter22", "hunter22"}}, "[redacted:secret]"},
		"the name holds another value": {[]Secret{{"X_hunter99_X", "hunter22"}, {"Y", "hunter99"}}, "[redacted:secret]"},
		"the name holds it in hex":     {[]Secret{{"68756e7465723232", "hunter22"}}, "[redacted:secret]"},
		"no name":                      {[]Secret{{"", "hunter22"}}, "[redacted:secret]"},
		"the first of two names":       {[]Secret{{"FIRST", "hunter22"}, {"SECOND", " hunter22\n"}}, "[redacted:FIRST]"},
		"a name without end":           {[]Secret{{strings.Repeat("N", 1000), "hunter22"}}, "[redacted:" + strings.Repeat("N", 64) + "]"},
		"a name with an end of line":   {[]Secret{{"A\n]B", "hunter22"}}, "[redacted:A__B]"},
		"a name of many signs":         {[]Secret{{"a.b-c_d9/e:f@Z", "hunter22"}}, "[redacted:a.b-c_d9_e_f_Z]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := New(test.values...).String("hunter22"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// secretText draws a value that New takes.
func secretValue(t *rapid.T) string {
	gen := rapid.OneOf(
		rapid.StringMatching(`[ -~]{6,60}`),
		rapid.StringMatching(`[A-Za-z0-9+/_-]{6,80}`),
		rapid.StringMatching(`[\[\]\\"'%a-c]{6,20}`),
		rapid.StringN(6, 40, 200),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 6, 60), func(b []byte) string { return string(b) }),
	)
	return gen.Filter(func(s string) bool {
		// What is cut off at a bracket stays in the text; another test shows it.
		return strings.TrimSpace(s) == s && whyRefused(s) == "" && trimMarkEdges(s, allMarks(nil)) == s
	}).Draw(t, "secret")
}

func surrounding(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.StringMatching(`[ -~\n]{0,80}`),
		rapid.StringN(0, 40, 200),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 80), func(b []byte) string { return string(b) }),
	).Draw(t, label)
}

func encodings() []string {
	var names []string
	for name := range encoders {
		names = append(names, name)
	}
	return names
}

// cut writes text in chunks of drawn sizes.
func cut(t *rapid.T, r *Redactor, text string) string {
	var out bytes.Buffer
	w := r.Writer(&out)
	for text != "" {
		n := rapid.IntRange(1, min(len(text), 50)).Draw(t, "chunk")
		if _, err := w.Write([]byte(text[:n])); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestNoSecretPassesAndNothingElseChanges(t *testing.T) {
	names := encodings()
	rapid.Check(t, func(t *rapid.T) {
		value := secretValue(t)
		encoding := rapid.SampledFrom(names).Draw(t, "encoding")
		spelled := encoders[encoding](value)
		before, after := surrounding(t, "before"), surrounding(t, "after")
		r := New(Secret{"KEY", value})

		// The bar ends and begins no spelling, so the match ends exactly there.
		got := cut(t, r, before+"|"+spelled+"|"+after)
		if strings.Contains(got, value) || strings.Contains(got, spelled) {
			t.Fatalf("%q as %s passed: %q", value, encoding, got)
		}
		if want := r.String(before+"|") + "[redacted:KEY]" + r.String("|"+after); got != want {
			t.Fatalf("%q as %s: got %q, want %q", value, encoding, got, want)
		}
	})
}

func TestRedactingTwiceIsRedactingOnce(t *testing.T) {
	names := encodings()
	rapid.Check(t, func(t *rapid.T) {
		var values []Secret
		for i := range rapid.IntRange(0, 4).Draw(t, "values") {
			values = append(values, Secret{fmt.Sprintf("K%d", i), secretValue(t)})
		}
		r := New(values...)
		once := r.String(mixture(t, values, names))
		if twice := r.String(once); twice != once {
			t.Fatalf("%s", cmp.Diff(once, twice))
		}
		if found := r.Find([]byte(once)); len(found) > 0 {
			t.Fatalf("found in redacted text: %+v in %q", found, once)
		}
	})
}

func TestChunksNeverMatter(t *testing.T) {
	names := encodings()
	rapid.Check(t, func(t *rapid.T) {
		var values []Secret
		for i := range rapid.IntRange(0, 4).Draw(t, "values") {
			values = append(values, Secret{fmt.Sprintf("K%d", i), secretValue(t)})
		}
		r := New(values...)
		text := mixture(t, values, names)
		if diff := cmp.Diff(r.String(text), cut(t, r, text)); diff != "" {
			t.Fatalf("chunks changed the text (-whole +chunks):\n%s", diff)
		}
	})
}

// mixture draws a text of values, pieces of values, shapes, pieces of shapes
// and anything else, without blanks between.
func mixture(t *rapid.T, values []Secret, names []string) string {
	var b strings.Builder
	for range rapid.IntRange(0, 12).Draw(t, "pieces") {
		piece := surrounding(t, "text")
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		switch {
		case kind == 0 && len(values) > 0:
			v := rapid.SampledFrom(values).Draw(t, "value")
			piece = encoders[rapid.SampledFrom(names).Draw(t, "encoding")](v.Value)
		case kind == 1:
			piece = rapid.SampledFrom(shaped).Draw(t, "shape")
		}
		if rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
			piece = piece[rapid.IntRange(0, len(piece)).Draw(t, "from"):]
			piece = piece[:rapid.IntRange(0, len(piece)).Draw(t, "to")]
		}
		b.WriteString(piece)
	}
	return b.String()
}

func chunks(text []byte, size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

func goroot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
