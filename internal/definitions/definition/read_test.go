package definition

import (
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/test/hostile"
)

func parse(tb testing.TB, text string) *Document {
	tb.Helper()
	doc, err := Parse("loop.config.yaml", []byte(text))
	if err != nil {
		tb.Fatalf("Parse(%q): %v", text, err)
	}
	return doc
}

func texts(values []readiness.Value) []string {
	var all []string
	for _, v := range values {
		all = append(all, v.Text)
	}
	return all
}

func TestScalarsAreReadAsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    string
		lenient bool
	}{
		"a hash inside quotes is text":        {`goal: "Close #7; never merge"`, "Close #7; never merge", false},
		"a comment after white space is cut":  {"goal: fix it # soon", "fix it", false},
		"a comment at the value's start":      {"goal: #7", "", false},
		"a glued hash is text":                {"goal: fix#7", "fix#7", false},
		"an apostrophe in a word":             {"goal: don't break # c", "don't break", false},
		"a literal block":                     {"goal: |\n  one\n  two\n", "one\ntwo", false},
		"a folded block":                      {"goal: >-\n  one\n  two\n", "one two", false},
		"a folded plain value":                {"goal: one\n  two\n", "one two", false},
		"single quotes":                       {"goal: 'it''s'", "it's", false},
		"a double quoted escape":              {`goal: "a\tb"`, "a\tb", false},
		"null is four letters":                {"goal: null", "null", false},
		"a tilde is a tilde":                  {"goal: ~", "~", false},
		"no is no":                            {"goal: no", "no", false},
		"True keeps its capital":              {"goal: True", "True", false},
		"a number keeps its form":             {"goal: 1e3", "1e3", false},
		"a hexadecimal number too":            {"goal: 0x1F", "0x1F", false},
		"an underscored number too":           {"goal: 200_000", "200_000", false},
		"infinity too":                        {"goal: .inf", ".inf", false},
		"a date too":                          {"goal: 2024-01-01", "2024-01-01", false},
		"what looks like a block's header":    {"goal: ||", "||", true},
		"more than ninety":                    {"goal: > 90 percent # c\nname: x", "> 90 percent", true},
		"a folded block in a bad file":        {"tier:L1\ngoal: >- # c\n  one\n  two\n", "one two", true},
		"an empty value is absent":            {"goal:", "", false},
		"empty quotes are absent":             {`goal: ""`, "", false},
		"a tag is literal":                    {"goal: !important do it # c", "!important do it", false},
		"a language tag is literal":           {"goal: !!python/object:os.system x", "!!python/object:os.system x", false},
		"an anchor is literal":                {"goal: &a do it", "&a do it", false},
		"two anchors are literal":             {"goal: &a &b do it", "&a &b do it", false},
		"an alias is literal":                 {"base: &b x\ngoal: *b", "*b", false},
		"an alias of nothing is literal":      {"goal: *never", "*never", false},
		"a tag alone is literal":              {"goal: !x", "!x", false},
		"a tag alone before a key is literal": {"goal: !x\nname: y", "!x", false},
		"an anchor alone is literal":          {"goal: &x # c\nname: y", "&x", false},
		"stars around a word are literal":     {"goal: *Never* merge", "*Never* merge", false},
		"a tagged text over lines":            {"goal: !one two\n  three\n", "!one two three", false},
		"a shell command with marks":          {"goal: a && b & c ! *.go *x", "a && b & c ! *.go *x", false},
		"an anchored block is its header":     {"goal: &a |\n  text\n", "&a |", false},
		"a merge key has no meaning":          {"defaults: &d\n  goal: x\n<<: *d\ngoal: own", "own", false},
		"a merge key adds no keys":            {"defaults: &d\n  goal: x\n<<: *d\n", "", false},
		"the first duplicate counts":          {"goal: one\ngoal: two", "one", false},
		"a flow list is its source text":      {"goal: [a,  b] # c", "[a,  b]", false},
		"a flow mapping is its source text":   {"goal: {a: b}", "{a: b}", false},
		"a flow list in another":              {"goal: [a, [b]] # ]", "[a, [b]]", false},
		"a flow list in another over lines":   {"goal: [a,\n  [b]] # ]", "[a, [b]]", false},
		"a flow list over lines":              {"goal: [\n  a,\n  b\n]", "[ a, b ]", false},
		"non-ASCII text before a flow list":   {"{é: ü, goal: [ö, ä]}", "[ö, ä]", false},
		"a block list is absent":              {"goal:\n  - a\n", "", false},
		"a block mapping is absent":           {"goal:\n  a: b\n", "", false},
		"a tab between words":                 {"goal: a\tb \t c\t# d", "a\tb \t c", false},
		"a tab before and behind the value":   {"goal:\tx\t", "x", false},
		"a tab in a flow list":                {"goal: [a\tb,\tc]", "[a\tb,\tc]", false},
		"a tab before a bracket in a text":    {"goal: don't {\t[", "don't {\t[", true},
		"a tab in the second line":            {"goal: a\n  b\tc", "a b\tc", false},
		"a byte-order mark":                   {"\ufeffgoal: x", "x", false},
		"carriage returns":                    {"goal: x\r\ntier: L1\r\n", "x", false},
		"carriage returns in a block":         {"goal: |\r\n  one\r\n  two\r\n", "one\ntwo", false},
		"a document marker":                   {"# c\n---\ngoal: x\n", "x", false},
		"a document marker and a comment":     {"--- # c\ngoal: x\n---\t# d\ngoal: [broken\n", "x", false},
		"dots that are no document end":       {"goal: x\n...y: [\n", "x", true},
		"an alias as a key":                   {"*x: y\ngoal: x\n", "x", false},
		"a directive":                         {"%YAML 1.2\n---\ngoal: x\n", "x", false},
		"only the first document":             {"goal: x\n---\ngoal: [broken\n", "x", false},
		"a document end":                      {"goal: x\n...\n: broken [\n", "x", false},
		"a quoted key":                        {`"goal": x`, "x", false},
		"a key with a space before the colon": {"goal : x", "x", false},
		"a whole file in flow style":          {"{name: n, goal: x}", "x", false},
		"text after a flow list":              {"goal: [wip] fix", "[wip] fix", true},
		"a second colon":                      {"goal: Fix: the build", "Fix: the build", true},
		"a bad escape":                        {`goal: "C:\path"`, `C:\path`, true},
		"text after the closing quote":        {`goal: "a" b`, `"a" b`, true},
		"a value that starts with at":         {"goal: @team", "@team", true},
		"a value that starts with percent":    {"goal: %d", "%d", true},
		"a value that starts with a backtick": {"goal: `x`", "`x`", true},
		"a lone star":                         {"goal: *", "*", true},
		"no space after the colon":            {"goal:do it", "do it", true},
		"a stray prose line":                  {"goal: x\nthis is prose\ntier: L1", "x", true},
		"a tab where YAML has none":           {"goal: x\nscope:\n\t- src/**", "x", true},
		"a comment in a bad file":             {"goal: Fix: it # soon", "Fix: it", true},
		"a hash in quotes in a bad file":      {"tier:L1\ngoal: \"Close #7\" # c", "Close #7", true},
		"a hash in quotes later in the value": {`goal: Say: "a # b" # c`, `Say: "a # b"`, true},
		"a hash glued to quotes in one":       {"tier:L1\ngoal: \"a\"#b", `"a"#b`, true},
		"a quote in a word in a bad file":     {"tier:L1\ngoal: a\"b # c", `a"b`, true},
		"single quotes in a bad file":         {"tier:L1\ngoal: 'x'", "x", true},
		"a block in a bad file":               {"tier:L1\ngoal: |\n  one\n  two\n", "one\ntwo", true},
		"the first duplicate in a bad file":   {"tier:L1\ngoal: one\ngoal: two", "one", true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := parse(t, c.text)
			if got, ok := doc.Scalar("goal"); got.Text != c.want || ok != (c.want != "") {
				t.Errorf("goal = %q, %v, want %q", got.Text, ok, c.want)
			}
			if lenient := strings.Contains(doc.Notice, "read line by line"); lenient != c.lenient {
				t.Errorf("notice %q, want line by line: %v", doc.Notice, c.lenient)
			}
		})
	}
}

func TestListsAreReadAsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    []string
		lenient bool
	}{
		"a flow list":                           {`scope: ["src/**"]`, []string{"src/**"}, false},
		"a flow list of a star":                 {`scope: ["*"]`, []string{"*"}, false},
		"a plain flow list":                     {"scope: [src/**, docs/**]", []string{"src/**", "docs/**"}, false},
		"a flow list over lines":                {"scope: [\n  a, # c\n  b\n]", []string{"a", "b"}, false},
		"a block list":                          {"scope:\n  - a # c\n  - 'b'\n", []string{"a", "b"}, false},
		"a block list without indentation":      {"scope:\n- a\n- b\ntier: L1", []string{"a", "b"}, false},
		"comments and blank lines between":      {"scope:\n  - a\n\n# c\n  - b\n", []string{"a", "b"}, false},
		"a scalar is a list of one":             {"scope: src/**", []string{"src/**"}, false},
		"an empty list":                         {"scope: []", nil, false},
		"nothing":                               {"scope:", nil, false},
		"empty quotes are an empty item":        {`scope: ""`, []string{""}, false},
		"an empty item":                         {"scope:\n  -\n  - a\n", []string{"", "a"}, false},
		"items are not typed":                   {"scope: [null, no, 1e3, ~]", []string{"null", "no", "1e3", "~"}, false},
		"a tag and an alias in a list":          {"scope:\n  - !x y # c\n  - *z\n", []string{"!x y", "*z"}, false},
		"a tag alone in a list":                 {"scope:\n  - !x\n  - b\n  - &c\n  - *d\n", []string{"!x", "b", "&c", "*d"}, false},
		"an alias in a flow list":               {"scope: [*a, !b, &c d, e]", []string{"*a", "!b", "&c d", "e"}, false},
		"a pair in a flow list":                 {"scope: [a: b, c]", []string{"a: b", "c"}, false},
		"a tab between flow items":              {"scope: [a,\tb]", []string{"a", "b"}, false},
		"a tab behind quotes in a flow list":    {"scope: [\"a\"\t, 'b'\t]", []string{"a", "b"}, false},
		"a tab behind a list in a list":         {"scope: [[a]\t, b]", []string{"[a]", "b"}, false},
		"a tab behind a mapping in a list":      {"scope: [{a: b}\t, c]", []string{"{a: b}", "c"}, false},
		"a tab in an item":                      {"scope:\n  -\ta\tb\n", []string{"a\tb"}, false},
		"a noncharacter":                        {"scope:\n  - !x\n  - \ufdd0\n", []string{"!x", "\ufdd0"}, true},
		"a pair in a list is its line":          {"scope:\n  - a: b\n", []string{"a: b"}, false},
		"a list in a list is its line":          {"scope:\n  - - x\n", []string{"- x"}, false},
		"a flow list in a list":                 {"scope:\n  - [a, b]\n  - {c: d}\n", []string{"[a, b]", "{c: d}"}, false},
		"an anchored list keeps its anchor":     {"scope: &s\n  - a\n", []string{"&s", "a"}, false},
		"a nested mapping has no items":         {"scope:\n  a: b\n", nil, false},
		"a lone star":                           {"scope: *", []string{"*"}, true},
		"a lone star in a list":                 {"scope:\n  - **\n  - src/**\n", []string{"**", "src/**"}, true},
		"an inline value is one more item":      {"tier:L1\nscope: a\n  - b\n", []string{"a", "b"}, true},
		"any indentation":                       {"tier:L1\nscope:\n- a\n   - b\n\t- c\n", []string{"a", "b", "c"}, true},
		"a list ends where text begins":         {"tier:L1\nscope:\n - a\nprose\n - b\n", []string{"a"}, true},
		"a comment does not end it":             {"tier:L1\nscope:\n - a\n# c\n - b\n", []string{"a", "b"}, true},
		"quotes and comments in a bad file":     {"tier:L1\nscope:\n - \"a\" # c\n - 'b'\n - c#d\n", []string{"a", "b", "c#d"}, true},
		"a flow list in a bad file":             {"tier:L1\nscope: [\"*\", b]\n", []string{"*", "b"}, true},
		"a long flow list in a bad file":        {"tier:L1\nscope: [a,\n  b]\nname: x\n", []string{"a", "b"}, true},
		"stars in a flow list":                  {"scope: [*, src/**] # c\ntier: L1\n", []string{"*", "src/**"}, true},
		"a star in a flow list over lines":      {"scope: [ # c\n  src/**, # d\n\n  *,\n]\ntier: L1\n", []string{"src/**", "*"}, true},
		"two stars alone in a flow list":        {"scope: [ ** ]\n", []string{"**"}, true},
		"stars beside quotes and braces":        {"scope: [**/*.{go,md}, \"a,b\", '*',]\n", []string{"**/*.{go,md}", "a,b", "*"}, true},
		"a dash without a space is not an item": {"tier:L1\nscope:\n - a\n -b\n", []string{"a"}, true},
		"an empty value in a bad file":          {"tier:L1\nscope:\nname: x", nil, true},
		"an empty quoted value in a bad one":    {"tier:L1\nscope: ''", []string{""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := parse(t, c.text)
			if diff := cmp.Diff(c.want, texts(doc.List("scope"))); diff != "" {
				t.Errorf("scope (-want +got):\n%s", diff)
			}
			if lenient := strings.Contains(doc.Notice, "read line by line"); lenient != c.lenient {
				t.Errorf("notice %q, want line by line: %v", doc.Notice, c.lenient)
			}
		})
	}
}

func TestTokensLoseAGluedComment(t *testing.T) {
	for _, bad := range []string{"", "stray: prose: line\n"} {
		for text, want := range map[string]string{
			"tier: L1#first": "L1", "tier: L1 # first": "L1", `tier: "L1#first"`: "L1#first", "tier: #L1": "",
			"tier: 'L1'#x": "L1",
		} {
			if got, _ := parse(t, text+"\n"+bad+"x: y\n").Scalar("tier"); got.Text != want {
				t.Errorf("%q with %q: tier = %q, want %q", text, bad, got.Text, want)
			}
		}
		for _, key := range []string{"permission_mode", "worktree", "budget_tokens"} {
			if got, _ := parse(t, key+": abc#d\n"+bad).Scalar(key); got.Text != "abc" {
				t.Errorf("%s = %q, want abc", key, got.Text)
			}
		}
		if got, _ := parse(t, "goal: abc#d\n"+bad).Scalar("goal"); got.Text != "abc#d" {
			t.Errorf("goal = %q, want abc#d", got.Text)
		}
	}
}

func TestPlacesCountCharactersFromOne(t *testing.T) {
	for _, bad := range []string{"", "stray: prose: line\n"} {
		text := "# é\nname:  x\nscope:\n  - ä\n  - \"ö\"\nflow: [é, b]\nnone:\n" + bad
		doc := parse(t, text)
		for key, want := range map[string]readiness.Value{
			"name": {Text: "x", Line: 2, Column: 8}, "flow": {Text: "[é, b]", Line: 6, Column: 7},
		} {
			if got, _ := doc.Scalar(key); got != want {
				t.Errorf("%s = %+v, want %+v", key, got, want)
			}
		}
		want := []readiness.Value{{Text: "ä", Line: 4, Column: 5}, {Text: "ö", Line: 5, Column: 5}}
		if diff := cmp.Diff(want, doc.List("scope")); diff != "" {
			t.Errorf("scope (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]readiness.Value{{Text: "é", Line: 6, Column: 8}, {Text: "b", Line: 6, Column: 11}}, doc.List("flow")); diff != "" {
			t.Errorf("flow (-want +got):\n%s", diff)
		}
		if got, ok := doc.Scalar("none"); ok || got.Line != 7 {
			t.Errorf("none = %+v, %v, want line 7 and absent", got, ok)
		}
	}
	if got, _ := parse(t, "name: a\xffb\n").Scalar("name"); got.Text != "a\ufffdb" {
		t.Errorf("a name that is not UTF-8 = %q", got.Text)
	}
	for text, want := range map[string][]readiness.Value{
		"scope: [a   \n  ]\n": {{Text: "a", Line: 1, Column: 9}}, "scope: [é, b c  \n]\n": {{Text: "é", Line: 1, Column: 9}, {Text: "b c", Line: 1, Column: 12}},
		"scope: [a  , 1    ]\n": {{Text: "a", Line: 1, Column: 9}, {Text: "1", Line: 1, Column: 14}}, "scope: [\t1]\n": {{Text: "1", Line: 1, Column: 10}},
		"scope: a\n  - b\n": {{Text: "a - b", Line: 1, Column: 8}}, "scope:\n- a\n  - b\n": {{Text: "a - b", Line: 2, Column: 3}},
		"scope: [*, 'é', src/**]\n": {{Text: "*", Line: 1, Column: 9}, {Text: "é", Line: 1, Column: 12}, {Text: "src/**", Line: 1, Column: 17}},
		"scope: [*,\n a]\n":         {{Text: "*", Line: 1, Column: 8}, {Text: "a", Line: 1, Column: 8}},
	} {
		if diff := cmp.Diff(want, parse(t, text).List("scope")); diff != "" {
			t.Errorf("places in %q (-want +got):\n%s", text, diff)
		}
	}
	empty := readiness.Value{Line: 1, Column: 6}
	if got, _ := parse(t, "tier:\n\ngoal: x\nmcp: {a: b}\n").Scalar("tier"); got != empty {
		t.Errorf("a value that is missing = %+v, want %+v", got, empty)
	}
	below := readiness.Value{Text: "a text below", Line: 2, Column: 3}
	if got, _ := parse(t, "goal:\n  a text below\n").Scalar("goal"); got != below {
		t.Errorf("goal = %+v, want %+v", got, below)
	}
}

func TestAValueHasItsOwnPlaceHoweverItsKeyIsWritten(t *testing.T) {
	for key, c := range map[string]struct {
		written string
		want    readiness.Value
	}{
		"Ab":   {`"\x41b":   value`, readiness.Value{Text: "value", Line: 2, Column: 12}},
		"it's": {`'it''s': value`, readiness.Value{Text: "value", Line: 2, Column: 10}},
		"a-b":  {`"a-b" : value`, readiness.Value{Text: "value", Line: 2, Column: 9}},
	} {
		if got, _ := parse(t, "name: x\n"+c.written+"\n").Scalar(key); got != c.want {
			t.Errorf("%s = %+v, want %+v", c.written, got, c.want)
		}
	}
}

// The YAML parser refuses some texts, or drops a key of them, of which it reads
// each key alone.
func TestAKeyIsReadWhateverComesBelowIt(t *testing.T) {
	for _, text := range []string{
		"goal: !t\n\n# c\n\nname: y\n", "goal:\n- #\n\nname: y\n", "goal:\n- x\n\n-\n\nname: y\n", "goal:\n - - x\n\n - \n\nname: y\n",
	} {
		doc := parse(t, text)
		if got, _ := doc.Scalar("name"); got.Text != "y" || doc.Notice != "" {
			t.Errorf("%q: name is %q, want y; notice %q", text, got.Text, doc.Notice)
		}
	}
}

func TestKeysListsEveryOccurrence(t *testing.T) {
	doc := parse(t, "name: a\nMy-Key: b\nname: c\n")
	want := []Key{{"name", 1, 1, 0, false}, {"My-Key", 2, 1, 0, false}, {"name", 3, 1, 1, true}}
	if diff := cmp.Diff(want, doc.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// What is not YAML and has no line that says what was meant is refused with the
// line, and a merge that is not resolved with all of its marks.
func TestParseRefusesWhatLeavesOpenWhatWasMeant(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unclosed quote":                      {"goal: \"do it\ntier: L1", "line 1"},
		"an unclosed bracket":                    {"name: x\ngoal: [do it\ntier: L1", "line 2"},
		"an unclosed brace":                      {"name: x\ngoal: {a: b\ntier: L1\n", "line 2"},
		"an unclosed bracket behind a bad line":  {"tier:L1\nscope: [a, b\nname: x\n", "line 2"},
		"a key over the text of another":         {"name: a\n  goal: b\ngoal: c", "line 2"},
		"a key below a value behind a bad line":  {"tier:L1\nname: a\n  goal: b\n", "line 3"},
		"keys of which one is less deep":         {"name: x\nmcp:\n    a: b\n  c: d\n", "line 4"},
		"a key in quotes that run over the line": {"name: \"a\ngoal: b\"\n", "line 1"},
		"a bracket without a beginning":          {"name: x\n]\ntier: L1\n", "line 2"},
		"a merge":                                {"name: x\n<<<<<<< HEAD\ntier: L1\n=======\ntier: L2\n>>>>>>> theirs\n", "merge conflict markers in lines 2, 4, 6"},
		"a merge of three":                       {"<<<<<<< a\r\ngoal: x\r\n||||||| b\r\n=======\r\ngoal: y\r\n>>>>>>> c\r\n", "merge conflict markers in lines 1, 3, 4, 6"},
		"half of a merge":                        {"name: x\n=======\ntier: L1\n", "merge conflict markers in line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.text))
			fault, ok := errors.AsType[*loop.Fault](err)
			if !ok || fault.Exit != 4 || !strings.Contains(fault.Why, c.want) || fault.Fix == "" {
				t.Fatalf("Parse = %+v, want a fault with exit status 4, %q and a fix", err, c.want)
			}
		})
	}
	for _, text := range []string{"name: x\n# =======\n", "name: x\ngoal: |\n  <<<<<<< HEAD\n", "<<: x\nname: y\n", "name: x\n# <<<<<<<<<<<<\n", "tier:L1\nmcp:\n  a: b\n  c: d\n"} {
		if _, err := Parse("x.yaml", []byte(text)); err != nil {
			t.Errorf("Parse(%q) = %v, want nil: nothing is left open there", text, err)
		}
	}
}

func TestATreeThatIsNotWhatALineReaderSeesIsNotBelieved(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\n'goal'\n: y\n":                          "line 2: a key without its colon",
		"scope:\n  \t- a\nname: z\n":                      "line 1: a list item inside another value",
		"scope: [\"a\"\t, 'b'\t, {c: d}\t, [e]\t]\n":      "line 1: a tab that YAML drops",
		"name:\n x: y\ngoal:\nz\n":                        "line 4: text without a key",
		"Name: x\nTIER: L1\n":                             "not a YAML mapping with such keys as a definition has",
		"mcp: {a: b,\nname: x}\n":                         "line 2: a key inside another value",
		"name: x\nmcp: {a: b,\nscope: [c]\n}\ngoal: it\n": "line 3: a key inside another value",
	} {
		if _, err := parseTree(newSource([]byte(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read: %v, want %q", text, err, want)
		}
	}
}

func TestAKeyBeginsWithALetterAndHasNoOtherCharactersThanWordsHave(t *testing.T) {
	for c := range byte(0x80) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		inside := letter || '0' <= c && c <= '9' || c == '-' || c == '.'
		for name, want := range map[string]bool{string(c): letter, string(c) + "a": letter, "a" + string(c): inside, "a" + string(c) + "b": inside} {
			if got, rest, ok := keyLine(name + ": x"); c != ':' && (ok != want || ok && (got != name || rest != " x")) {
				t.Errorf("the line %q begins with the key %q: %v, want %v", name+": x", got, ok, want)
			}
		}
	}
	for length, want := range map[int]bool{0: false, 1: true, 64: true, 65: false} {
		if _, _, ok := keyLine(strings.Repeat("k", length) + ":"); ok != want {
			t.Errorf("a key of %d letters: %v, want %v", length, ok, want)
		}
	}
}

func TestAnAliasIsAStarBeforeAWord(t *testing.T) {
	for c := range 0x100 {
		word := regexp.MustCompile(`[0-9A-Za-z_]`).MatchString(string(rune(c))) || c >= 0x80
		if got := isWordByte(byte(c)); got != word {
			t.Errorf("byte %#x is of a word: %v, want %v", c, got, word)
		}
	}
}

func TestParseRefusesWhatHasNoKey(t *testing.T) {
	for name, text := range map[string]string{
		"an empty file":              "",
		"white space":                " \n\t\n",
		"comments":                   "# name: x\n",
		"prose":                      "This is prose.\nNothing else.\n",
		"only capitalised keys":      "Name: x\nTIER: L1\n",
		"a list":                     "- a\n- b\n",
		"UTF-16":                     "\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00x\x00",
		"binary":                     "\x00\x01\x02\x7fELF",
		"indented keys in bad YAML":  " name: x: y\n",
		"a byte-order mark and none": "\ufeff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(text))
			fault, ok := errors.AsType[*loop.Fault](err)
			if !ok || fault.Exit != 4 {
				t.Fatalf("Parse = %v, want a fault with exit status 4", err)
			}
		})
	}
}

// Attack 127 also asks for less than 50 ms: make bench measures that.
func TestAttack127BombsAreBoundedAndNothingIsExpanded(t *testing.T) {
	const most = 64 << 20
	for name, c := range hostile.Texts() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			doc, err := Parse("x.yaml", []byte(c.Text))
			runtime.ReadMemStats(&after)
			if refused := err != nil; refused != c.Refuse {
				t.Errorf("Parse: %v, want refused: %v", err, c.Refuse)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > most && len(c.Text) < hostile.Large {
				t.Errorf("%d bytes took %d of memory, want at most %d", len(c.Text), took, most)
			}
			if err == nil {
				size := 0
				for _, e := range doc.entries {
					size += len(e.scalar.Text)
					for _, item := range e.items {
						size += len(item.Text)
					}
				}
				if size > 3*len(c.Text) {
					t.Errorf("%d bytes became %d", len(c.Text), size)
				}
			}
			t.Logf("%d bytes took %d of memory", len(c.Text), after.TotalAlloc-before.TotalAlloc)
		})
	}
}

func TestConflictWordsNameNineLinesAtMost(t *testing.T) {
	lines := []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	const nine = "merge conflict markers in lines 1, 2, 3, 4, 5, 6, 7, 8, 9"
	if got := ConflictWords(lines); got != nine {
		t.Errorf("%q, want %q", got, nine)
	}
	if got := ConflictWords(append(lines, 10)); got != nine+", …" {
		t.Errorf("%q, want %q and that there are more", got, nine)
	}
}
