package definition

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// lines of every kind that the reader has to cope with.
var oddLines = []string{
	"name: x", "tier: L1", "tier:L1", "tier: L1#first", "goal: Fix: the build", `goal: "C:\path"`, `goal: "a" b`,
	"goal: @x", "goal: %x", "goal: `x`", "goal: [wip] fix", "goal: [a, b]", "goal: {a: b}", "goal: |", "goal: >-",
	"  indented text", "  more: text", "scope: *", "scope:", "scope: [a, b]", "  - **", "  - a", "- b", "\t- c", "  -",
	"# comment", "", "   ", "prose without a colon", "worktree: true # yes", "verify: &a x", "verify: *a", "<<: *a",
	"guard: !tag x", "Name: y", "kill-switch: z", `"quoted": key`, `goal: "unclosed`, "goal: 'unclosed", "goal: [open",
	"}", "]", "---", "...", "%YAML 1.2", "? complex", ": value", "é: ü # ö", "goal: über # alles", "a:", "null", "~: x",
	"goal: don't", "budget_tokens: 1_000", "goal: x\tx", "goal: a  #b", "- - - x", "scope:\t- x",
}

func drawText(t *rapid.T) string {
	line := rapid.OneOf(rapid.SampledFrom(oddLines), rapid.StringOfN(rapid.RuneFrom([]rune("ab:-#'\"[]{}&*!|> \té")), 0, 12, -1))
	return strings.Join(rapid.SliceOfN(line, 0, 14).Draw(t, "lines"), "\n")
}

func TestByteOrderMarksAndCarriageReturnsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		other := "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")
		doc, err := Parse("x.yaml", []byte(text))
		same, otherErr := Parse("x.yaml", []byte(other))
		if (err == nil) != (otherErr == nil) {
			t.Fatalf("%q: %v, with CRLF %v", text, err, otherErr)
		}
		if diff := cmp.Diff(doc, same, cmp.AllowUnexported(Document{}, entry{})); diff != "" {
			t.Fatalf("%q (-LF +CRLF):\n%s", text, diff)
		}
	})
}

var (
	scriptKey   = regexp.MustCompile(`^([a-z_]+):`)
	refusedLine = regexp.MustCompile(`not valid YAML \(line \d+: |merge conflict markers in line \d`)
)

func TestWhatALineReaderAcceptsIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAccepted(t, drawText(t))
	})
}

// checkAccepted compares with the simplest line reader: every key it sees
// before a second YAML document is a key, and a text with a key is readable or has
// a line that says several things.
func checkAccepted(t rapid.TB, text string) {
	doc, err := Parse("x.yaml", []byte(text))
	if err != nil && !refusedLine.MatchString(err.Error()) {
		for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
			if scriptKey.MatchString(line) {
				t.Fatalf("%q is refused: %v", text, err)
			}
		}
	}
	if err != nil {
		return
	}
	known := map[string]bool{}
	for _, key := range doc.Keys() {
		known[key.Name] = true
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...") {
			return
		}
		if m := scriptKey.FindStringSubmatch(line); m != nil && len(m[1]) <= 64 && !known[m[1]] {
			t.Fatalf("%q: %s is not among the keys %v", text, m[1], doc.Keys())
		}
	}
}

func TestValuesStandWhereTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		doc, err := Parse("x.yaml", []byte(text))
		if err != nil {
			t.Skip("unreadable")
		}
		checkPlaces(t, text, doc)
	})
}

// checkPlaces looks up each value's first character in the source.
func checkPlaces(t rapid.TB, text string, doc *Document) {
	src := newSource([]byte(text))
	for _, e := range doc.entries {
		if !plainKey(e.key.Name) {
			continue
		}
		for _, v := range append([]readiness.Value{e.scalar}, e.items...) {
			if v.Line < 1 || v.Column < 1 || v.Line > len(src.lines) {
				t.Fatalf("%q: %s stands at %d:%d", text, e.key.Name, v.Line, v.Column)
			}
			rest := src.restOf(v.Line, v.Column)
			first, _ := utf8.DecodeRuneInString(v.Text)
			if v.Text != "" && !strings.HasPrefix(rest, string(first)) && !strings.ContainsAny(rest[:min(1, len(rest))], `"'|>`) {
				t.Fatalf("%q: %s is %q at %d:%d, where %q stands", text, e.key.Name, v.Text, v.Line, v.Column, rest)
			}
		}
	}
}

func TestBothReadersAgreeOnSimpleLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		if doc, err := Parse("x.yaml", []byte(text)); err == nil {
			checkSimpleLines(t, text, doc)
		}
	})
}

// checkSimpleLines compares the readers on unquoted values of a single line:
// neither may add, drop or change a character.
func checkSimpleLines(t rapid.TB, text string, doc *Document) {
	src := newSource([]byte(text))
	for _, e := range doc.entries {
		line := e.key.Line
		name, rest, ok := keyLine(src.lines[line-1])
		next := line
		for next < len(src.lines) && strings.Trim(src.lines[next], " \t") == "" {
			next++
		}
		more := next < len(src.lines) && (!startsText(src.lines[next]) || strings.HasPrefix(src.lines[next], "-"))
		want, skipped := lineScalar(rest, tokenKeys[name])
		if !ok || name != e.key.Name || e.key.Column != 1 || more || want == "" || strings.ContainsAny(rest[skipped:], "\"'|>[{") {
			continue
		}
		if e.scalar.Text != want {
			t.Fatalf("%q: %s is %q, want %q", text, name, e.scalar.Text, want)
		}
	}
}

func TestBothReadersAgreeOnSimpleLists(t *testing.T) {
	item := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune("ab!&*:#\t é/.-,")), 1, 8, -1), rapid.SampledFrom([]string{
		"!x", "&a", "*b", "**/*.go", "a # c", "a\tb", "null", "x,y", "-", "!", "&",
	}))
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(item, 1, 6).Draw(t, "items")
		text := "scope:\n  - " + strings.Join(items, "\n  - ") + "\n"
		doc, err := Parse("x.yaml", []byte(text+"name: x\n"))
		if err != nil {
			t.Fatal(err)
		}
		want := readKey(newSource([]byte(text)), 0)
		if diff := cmp.Diff(texts(want.items), texts(doc.List("scope"))); diff != "" {
			t.Fatalf("%q (-lines +document):\n%s", text, diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, line := range oddLines {
		f.Add("name: x\n" + line + "\n  - y\ntier: L2\n")
	}
	f.Add(configA)
	f.Add(configB)
	f.Add(strings.ReplaceAll(configB, "\n", "\r\n"))
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nname: [*b,*b]\n")
	f.Add("# c\n---\nname: x\n---\nname: [\n")
	f.Add("\x00\x01\xff\xfe")
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := Parse("x.yaml", []byte(text))
		if err != nil {
			if doc != nil {
				t.Fatal("a document beside an error")
			}
			return
		}
		if strings.Contains(doc.Notice, "\n") {
			t.Fatalf("notice %q is more than a line", doc.Notice)
		}
		if utf8.ValidString(text) && !strings.ContainsAny(text, "\r\ufeff\u0085\u2028\u2029") {
			checkAccepted(t, text)
			checkPlaces(t, text, doc)
			checkSimpleLines(t, text, doc)
		}
		_, findings := doc.Definition("x")
		for _, finding := range findings {
			if finding.Line < 1 || finding.Column < 1 || strings.Contains(finding.Message, "\n") {
				t.Fatalf("finding %+v", finding)
			}
			if out := finding.Render("x.yaml", []byte(text)); strings.Count(out, "\n") > 2 || strings.Contains(out, "\x1b") {
				t.Fatalf("rendered %q", out)
			}
		}
	})
}

func BenchmarkParseAndConvert(b *testing.B) {
	for name, text := range map[string]string{"B": configB, "lenient": strings.Replace(configB, "escalation: ", "escalation: a: ", 1)} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				doc, err := Parse("x.yaml", data)
				if err != nil {
					b.Fatal(err)
				}
				if _, findings := doc.Definition("keep-green"); len(findings) > 0 {
					b.Fatal(findings)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "configs/s")
		})
	}
}
