package definition

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/test/sample"
)

// checkSimple compares what is read from the lines of a key with what the YAML
// parser makes of them, and all keys with what it makes of the whole text: they
// must give the same entries, from which the rest of a Document follows. It
// reports whether the text was simple: no line of it was given to the parser.
func checkSimple(t rapid.TB, text string) bool {
	t.Helper()
	src := newSource([]byte(text))
	if len(text) > MaxBytes || src.isBomb() {
		return false
	}
	read, err := readYAML(src)
	if err != nil {
		return false
	}
	src = firstDocument(src)
	// The parser refuses some texts of which it takes each key.
	if whole, err := parseTree(src); err == nil && !reflect.DeepEqual(whole, read) {
		t.Fatalf("%q (-parser +read):\n%s", text, cmp.Diff(whole, read, cmp.AllowUnexported(entry{})))
	}
	starts, simple := keyStarts(src)
	for i := 0; i+1 < len(starts); i++ {
		line, ok := readSimple(src, starts[i], starts[i+1])
		if simple = simple && ok; !ok {
			continue
		}
		parsed, err := parsePart(src, starts[i], starts[i+1])
		if err != nil {
			t.Fatalf("%q is read in line %d, but the YAML parser says: %v", text, starts[i]+1, err)
		}
		if !reflect.DeepEqual(parsed, line) {
			t.Fatalf("%q (-parser +read):\n%s", text, cmp.Diff(parsed, line, cmp.AllowUnexported(entry{})))
		}
	}
	return simple
}

// Pieces of simple definitions, and of what looks like one but is not.
var (
	simpleKeys = []string{
		"name", "tier", "goal", "scope", "verify", "budget_tokens", "worktree", "on", "null", "true", "_", "y", "x_y", "a",
	}
	notSimpleKeys = []string{
		"Name", "kill-switch", "a1", `"q"`, "'q'", "<<", "~", "? a", "- a", "", "é", strings.Repeat("k", 65),
	}
	notSimpleColons = []string{":", " : ", ":\t", " "}
	simpleValues    = []string{
		"x", "L2", "200000", "1_000", "0x1F", "0o7", "1e3", "1.5", ".5", ".inf", ".nan", "null", "Null", "true", "no", "2024-01-01",
		"12:30", "1:2:3", "12 30", "007", "a", "0", "go test ./...", "go vet ./... && go build ./...", "a && b & c ! *.go *x", "a | b > c",
		"don't", "it's 'x'", "a, b", "a [b] {c}", "fix#7", "a # c", "a:b", "a :b", "http://x/y?z=1", `a\b`, "a  b", `"x"`, `"a # b"`,
		`"a: b"`, `" a "`, `"it's"`, `"*/15 8-18 * * 1-5"`, "'a # b'", `'"'`, "'!x &y *z'", `"a: !"`,
	}
	simpleLists = []string{
		`["a", "b"]`, "[a, b]", "[src/**, docs/*.md]",
		`[ "a" , b ]`, "[a,b]", `["a]", b]`, "[1, 2.5, 0x1]", "[1 , 2 ]",
	}
	// Most of these are not simple.
	notSimpleValues = []string{
		"+1", "~", "1 #", "-1", "-x", "--", "---", "...", "..", ".", "cat <<EOF", "a <<", "a << :x", "a <<:", "a <<: b", "$ <<:b", "L1#x", "a #c", "a: b", "a:", "a ::", `a\`,
		`"  "`, `""`, `"a\tb"`, `"a" b`, `"a"#c`, `"a" # c`, `"a`, `"[a]"`, `"a: &b"`, `"- x"`, `"---"`, `"%"`, `"@"`, "'x'", "''", "'it''s'", `'a\b'`, "'a' b",
		"[a,]", "[]", "[ ]", "[,a]", "[a b]", "[a:b]", "[a: b]", "[a#b]", `["a,b", 'c']`, `["*"]`, "[*]", "[null, ~]", "[a] b", "[a] # c", "[a]#c", "[[a]]",
		"[a", `["!x", " &y"]`, `[ 'a  b' ]`, "[-a]", "[a-b, -]", "[...]", "[.inf, .5]", "[$A, /b]", `["" , a]`, `["é", a]`, "[é, a]", `["a"b]`, `["a" b]`,
		"|", ">-", "| # c", "||", "@x", "%d", "`x`", "&a", "&a x", "*a", "!t", "!t x", "?", "? x", "-", "- x", "{a: b}", "]", "}", ",", ":", "#", "# c",
		"(a)", "$X", "/bin/sh", "_x", "=", "= x", "^a", "é", "aé", "a – b", `"ü – ö"`,
		"a\u00a0b", "a\u0085b", "a\u2028b", "a\ufeffb", "a\ufdd1b", "a\x00b", "a\x7fb", "a\tb", "\ta",
	}
	simpleTails    = []string{"", "", "", " ", "   ", " # c", "  # - x: y"}
	notSimpleTails = []string{"#c", " #", "\t", "\t# c", "\r", " \\"}
	simpleLines    = []string{
		"", "", " ", "   ", "# c", "#", "  # c", "   # - x", "# a: b", "#\\", "# é", "# yaml-language-server: $schema=https://x/y.json",
	}
	notSimpleLines = []string{
		"\t", "\t# c",
		"---", "...", "%YAML 1.2", "text", "  text", "  a: b", "]", "\ufeff", "- x", "-", " -", "  -  ", "  - - x", "  -\tx", "  -x", "   - x",
	}
)

// simpleDraw draws texts of simple lines, among them as many odd ones as it is told.
type simpleDraw struct {
	t   *rapid.T
	odd int // in a hundred
}

func drawNearlySimple(t *rapid.T) string {
	d := simpleDraw{t, rapid.SampledFrom([]int{0, 3, 10, 30}).Draw(t, "odd")}
	var b strings.Builder
	for range rapid.IntRange(1, 6).Draw(t, "entries") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			b.WriteString(d.one(simpleLines, notSimpleLines))
		case 1:
			d.list(&b)
		default:
			b.WriteString(d.key() + d.value(slices.Concat(simpleValues, simpleLists)) + d.tail())
		}
		b.WriteString(d.one([]string{"\n", "\n\n", "\r\n"}, []string{" "}))
	}
	if rapid.Bool().Draw(t, "no last line end") {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}

func (d simpleDraw) list(b *strings.Builder) {
	b.WriteString(strings.TrimSuffix(d.key(), " ") + d.tail())
	indent := rapid.SampledFrom([]string{"", " ", "  ", "    "}).Draw(d.t, "indent")
	for range rapid.IntRange(1, 4).Draw(d.t, "items") {
		if rapid.IntRange(0, 4).Draw(d.t, "between") == 0 {
			b.WriteString("\n" + d.one(simpleLines, notSimpleLines))
		}
		b.WriteString("\n" + indent + d.one([]string{"- ", "-  "}, []string{"-", "-\t", " - ", "- - "}) + d.value(simpleValues) + d.tail())
	}
}

func (d simpleDraw) key() string {
	return d.one(simpleKeys, notSimpleKeys) + d.one([]string{": ", ":   "}, notSimpleColons)
}

func (d simpleDraw) tail() string { return d.one(simpleTails, notSimpleTails) }

func (d simpleDraw) value(usual []string) string {
	own := rapid.StringOfN(rapid.RuneFrom([]rune(`ab01 .,:#-_*&!'"[]{}<>|\%/$~?+=é`)), 0, 10, -1)
	if rapid.IntRange(0, 19).Draw(d.t, "quoted") == 19 {
		return d.one([]string{`"`, "'"}, []string{""}) + own.Draw(d.t, "value") + d.one([]string{`"`, "'"}, []string{""})
	}
	if rapid.IntRange(0, 19).Draw(d.t, "begun") == 19 {
		return d.one([]string{"a", "1", ".", "/", "$", "_"}, []string{""}) + own.Draw(d.t, "value")
	}
	return d.one(usual, notSimpleValues)
}

// one is one of the usual strings, or an odd one.
func (d simpleDraw) one(usual, odd []string) string {
	if rapid.IntRange(0, 99).Draw(d.t, "even") >= 100-d.odd {
		return rapid.SampledFrom(odd).Draw(d.t, "odd one")
	}
	return rapid.SampledFrom(usual).Draw(d.t, "usual")
}

func TestWhatIsSimpleIsReadAsTheParserReadsIt(t *testing.T) {
	taken, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all++
		if checkSimple(t, drawNearlySimple(t)) {
			taken++
		}
	})
	if taken*10 < all {
		t.Errorf("%d of %d texts are simple: the draws prove too little", taken, all)
	}
	t.Logf("%d of %d texts are simple", taken, all)
}

// Each value alone, so that none hides behind another that is not simple.
func TestEachSimpleValueIsReadAsTheParserReadsIt(t *testing.T) {
	taken := 0
	for _, value := range slices.Concat(simpleValues, simpleLists, notSimpleValues) {
		for _, tail := range slices.Concat(simpleTails, notSimpleTails) {
			for i, around := range [][2]string{
				{"", ""}, {"", "\n"}, {"# c\n", "\n# c\n"}, {"\n", "\n\nname: y\n"}, {"a: b\n", "\n  # c\nname: y\n"}, {"a: 'b'\n", "\n- x\n"}, {"s:\n  - x\n", "\n    \nname: y"},
			} {
				for j, before := range []string{"goal: ", "goal:   ", "tier: ", "s:\n- ", "s: # c\n  - ", "s:\n  -   ", "s:\n\n# c\n  - q\n  # c\n  - ", "s:\n # c\n    - 1 \n\n    - "} {
					if !sample.All() && i > 0 && j > 0 { // A sample: each place for the value, and what may be around it, but not both at once.
						continue
					}
					if checkSimple(t, around[0]+before+value+tail+around[1]) {
						taken++
					}
				}
			}
		}
	}
	if taken < sample.Size(1400, 5000) {
		t.Errorf("only %d texts are simple", taken)
	}
	t.Logf("%d texts are simple", taken)
}

func TestWhatIsLeftToTheYAMLParser(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, text := range map[string]string{
		"nothing":                        "",
		"only comments":                  "# c\n",
		"a tab":                          "goal: a\tb\n",
		"a control character":            "goal: a\x01b\n",
		"a deleted character":            "goal: a\x7fb\n",
		"a key behind a space":           " goal: x\n",
		"a comment glued to quotes":      "goal: \"a\"#c\n",
		"a comment glued to a list":      "goal: [a]#c\n",
		"a comment glued to a colon":     "scope:#c\n  - a\n",
		"a character of the parser's":    "goal: a\ufdd0b\n",
		"no space after the colon":       "goal:x\n",
		"a space before the colon":       "goal : x\n",
		"a key in quotes":                "\"goal\": x\n",
		"a key with a capital":           "Goal: x\n",
		"a key below another":            "goal: a\n  more: b\n",
		"a value over lines":             "goal: a\n  b\n",
		"a block":                        "goal: |\n  a\n",
		"an anchor":                      "goal: &a x\n",
		"an alias":                       "goal: *a\n",
		"a tag":                          "goal: !x y\n",
		"a flow mapping":                 "goal: {a: b}\n",
		"a second colon":                 "goal: Fix: it\n",
		"a colon at the end":             "goal: a:\n",
		"an escape":                      `goal: "a\tb"`,
		"a doubled quote":                "goal: 'it''s'\n",
		"text behind quotes":             `goal: "a" b`,
		"an open quote":                  "goal: \"a\n",
		"an empty value":                 "goal:\nname: x\n",
		"an empty value at the end":      "name: x\ngoal:\n",
		"empty quotes":                   "goal: \"\"\n",
		"a glued comment":                "tier: L1#first\n",
		"an empty item":                  "scope:\n  -\n  - a\n",
		"a list in a list":               "scope:\n  - - a\n",
		"items that are not in a column": "scope:\n  - a\n - b\n",
		"an item below a value":          "scope: a\n  - b\n",
		"an item without a key":          "- a\n",
		"an empty flow list":             "scope: []\n",
		"a comma behind the last item":   "scope: [a,]\n",
		"a star in a flow list":          "scope: [*]\n",
		"a colon in a flow list":         "scope: [a:b]\n",
		"a flow list over lines":         "scope: [a,\n  b]\n",
		"a flow list in another":         "scope: [[a]]\n",
		"text behind a flow list":        "goal: [wip] fix\n",
		"a directive":                    "%YAML 1.2\n---\ngoal: x\n",
		"prose":                          "goal: x\nprose\n",
		"too long a line":                "goal: x\n# " + long + "\n",
		"too long a text":                "goal: x\n" + strings.Repeat("# c\n", maxTreeBytes/4),
		"too many empty lines":           "goal: x\n" + strings.Repeat("\n", maxBlank+1) + "name: y\n",
		"too many items":                 "scope:\n" + strings.Repeat("- a\n", maxItems+1),
		"too many flow items":            strings.Repeat("scope: [a"+strings.Repeat(",a", 500)+"]\n", 4),
	} {
		t.Run(name, func(t *testing.T) {
			if checkSimple(t, text) {
				t.Errorf("%q was read without the YAML parser", text)
			}
		})
	}
}

func TestWhatIsAtTheLimitsIsReadWithoutTheParser(t *testing.T) {
	for name, text := range map[string]string{
		"the longest line":      "goal: x\n# " + strings.Repeat("x", maxLine-2) + "\n",
		"the longest text":      "goal: x\n" + strings.Repeat("# c\n", maxTreeBytes/4-2),
		"the most empty lines":  "goal: x\n" + strings.Repeat("\n", maxBlank) + "name: y\n",
		"the most items":        "scope:\n" + strings.Repeat("- a\n", maxItems),
		"the most flow items":   strings.Repeat("scope: [a"+strings.Repeat(",a", maxItems/4-1)+"]\n", 4),
		"a mark at the start":   "\ufeffgoal: x\n",
		"carriage returns":      "goal: x\r\nscope:\r\n  - a\r\n",
		"the same key again":    "goal: x\ngoal: y\n",
		"a document's start":    "---\ngoal: x\n",
		"a document's end":      "goal: x\n...\n",
		"a here document":       "verify: cat <<EOF\n",
		"comments of all kinds": "# c\ngoal: x # c\n  # c\nscope: # c\n# c\n  - a # c\n  # c\n\n  - b\n",
	} {
		t.Run(name, func(t *testing.T) {
			if !checkSimple(t, text) {
				t.Errorf("%.60q was left to the YAML parser", text)
			}
		})
	}
}

func FuzzSimple(f *testing.F) {
	for _, value := range slices.Concat(simpleValues, simpleLists, notSimpleValues) {
		f.Add("name: x\ngoal: " + value + " # c\nscope:\n  - " + value + "\n\n# c\n  - y")
	}
	for _, line := range slices.Concat(simpleLines, notSimpleLines, oddLines) {
		f.Add("name: x\n" + line + "\ntier: L2\nscope:\n" + line + "\n  - a\n" + line + "\n  - b\n")
	}
	f.Add(realistic)
	f.Add(configA)
	f.Add(configB)
	f.Fuzz(func(t *testing.T, text string) { checkSimple(t, text) })
}
