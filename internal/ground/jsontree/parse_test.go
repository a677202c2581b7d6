package jsontree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testBounds = Bounds{Bytes: 1 << 20, Depth: 20}

func TestWhatIsNotStrictJSONIsRefusedAtItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"nothing":                     {"", "1:1: not JSON: unexpected end of JSON input"},
		"a text that is cut":          {"{\n  \"a\": [1,", "2:10: not JSON: unexpected end of JSON input"},
		"NaN":                         {`{"a": NaN}`, "1:7: not JSON: invalid character 'N' looking for beginning of value"},
		"text after the value":        {"{}\n{}", "2:1: not JSON: invalid character '{' after top-level value"},
		"a comma too many":            {`[1,]`, "1:4: not JSON: invalid character ']' looking for beginning of value"},
		"a name twice":                {"{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}", `2:16: the name "c" is in the object twice`},
		"a name twice by an escape":   {`{"a": 1, "\u0061": 2}`, `1:10: the name "a" is in the object twice`},
		"bytes that are not UTF-8":    {"{\"é\": \"\xff\"}", "1:8: not UTF-8: write the document in UTF-8"},
		"too deep":                    {strings.Repeat("[", 21) + strings.Repeat("]", 21), "1:21: nested more than 20 deep"},
		"too many bytes":              {`"` + strings.Repeat("x", 1<<20) + `"`, "1:1: 1048578 bytes are more than the 1048576 that are read"},
		"half of a character":         {`["\ud83d"]`, `1:2: half of a character: \ud800 to \udfff come in pairs`},
		"half of a character, a name": {`{"\udc00": 1}`, `1:2: half of a character: \ud800 to \udfff come in pairs`},
		"a NUL":                       {`["x\u0000"]`, `1:2: contains a NUL: remove \u0000`},
		"a number without a double":   {`[1e400]`, "1:2: the number is too large for most programs"},
		"a byte-order mark inside":    {"[\ufeff1]", "1:2: not JSON: invalid character 'ï' looking for beginning of value"},
	} {
		t.Run(name, func(t *testing.T) {
			v, problem := Parse([]byte(c.src), testBounds)
			if problem == nil || v != nil {
				t.Fatalf("Parse = %v, %v, want a problem", v, problem)
			}
			if problem.String() != c.want {
				t.Errorf("problem = %q, want %q", problem, c.want)
			}
		})
	}
}

func TestAReaderMayBeToldAllProblemsAtOnce(t *testing.T) {
	src := []byte(`{"a/b": ["\udc00", 1e999], "a/b": 2, "c": "\u0000"}`)
	v, problems := ParseAll(src, Bounds{Bytes: 100, Depth: 2})
	var got []string
	for _, p := range problems {
		got = append(got, p.Path.Pointer()+" "+p.String())
	}
	want := []string{
		`/a~1b/0 1:10: half of a character: \ud800 to \udfff come in pairs`, `/a~1b/1 1:20: the number is too large for most programs`,
		`/a~1b 1:28: the name "a/b" is in the object twice`, `/c 1:43: contains a NUL: remove \u0000`,
	}
	if diff := cmp.Diff(want, got); diff != "" || v == nil || len(v.Members) != 3 {
		t.Error(diff)
	}
	if _, problems := ParseAll(src, Bounds{Bytes: 100, Depth: 2, NUL: true, Twice: true}); len(problems) != 2 {
		t.Errorf("with what is allowed there are %v", problems)
	}
	if v, problems := ParseAll(src, Bounds{Bytes: 100, Depth: 1}); v != nil || len(problems) != 1 || problems[0].Path.Pointer() != "/a~1b" {
		t.Errorf("too deep: %v %v", v, problems)
	}
}

func TestATreeHasSoManyValuesAtMost(t *testing.T) {
	for most, want := range map[int]string{0: "", 5: "", 4: "1:10: has more than 4 values"} {
		v, problem := Parse([]byte(`[1, [2], 3]`), Bounds{Bytes: 100, Depth: 9, Values: most})
		if got := fmt.Sprint(problem); (want == "") != (problem == nil) || problem != nil && got != want || (v == nil) != (problem != nil) {
			t.Errorf("at most %d values: %v", most, problem)
		}
	}
}

func TestATreeKeepsNumbersOrderAndPlaces(t *testing.T) {
	src := "\ufeff{\r\n  \"z\": 1.50e+2, \"a\": [true, null, \"\\ud83d\\ude00 <\\ufffd>\"],\r\n  \"o\": {}, \"l\": []\r\n}"
	v, problem := Parse([]byte(src), testBounds)
	if problem != nil {
		t.Fatal(problem)
	}
	want := "{\n  \"z\": 1.50e+2,\n  \"a\": [\n    true,\n    null,\n    \"😀 <\ufffd>\"\n  ],\n  \"o\": {},\n  \"l\": []\n}\n"
	if diff := cmp.Diff(want, string(Encode(v))); diff != "" {
		t.Error(diff)
	}
	lines := NewLines([]byte(src))
	for pointer, place := range map[string][2]int{"": {1, 1}, "/z": {2, 8}, "/a/2": {2, 35}, "/o": {3, 8}} {
		if line, column := lines.Place(v.Find(pointer).At); line != place[0] || column != place[1] {
			t.Errorf("%q is at %d:%d, want %d:%d", pointer, line, column, place[0], place[1])
		}
	}
}

func TestATreeIsReadAndChangedByNames(t *testing.T) {
	v, _ := Parse([]byte(`{"a/b~c": [{"x": "y"}], "d": 1}`), testBounds)
	if got := v.Find(Join("", "a/b~c") + "/0/x"); got == nil || got.Text != "y" {
		t.Errorf("Find = %v", got)
	}
	for _, pointer := range []string{"/a", "/a~1b~0c/1", "/a~1b~0c/00", "/a~1b~0c/-1", "/d/x", "/d/x/y"} {
		if got := v.Find(pointer); got != nil {
			t.Errorf("Find(%q) = %v, want nothing", pointer, got)
		}
	}
	c := v.Clone()
	c.Set("d", NewText("<&>"))
	c.SetInOrder("b", NewNull(), []string{"b", "c", "d"})
	c.SetInOrder("e", NewInt(-3), []string{"d", "e"})
	c.Find("/a~1b~0c").Items[0].Remove("x")
	if got, want := string(Encode(c)), "{\n  \"a/b~c\": [\n    {}\n  ],\n  \"b\": null,\n  \"d\": \"<&>\",\n  \"e\": -3\n}\n"; got != want {
		t.Errorf("changed = %s", got)
	}
	if got := string(Encode(v)); !strings.Contains(got, `"x": "y"`) || strings.Contains(got, "null") {
		t.Errorf("the original was changed: %s", got)
	}
	var none *Value
	if none.Get("a") != nil || none.GetText("a") != "" || none.Clone() != nil || none.Find("/a") != nil {
		t.Error("no value has a value")
	}
}

func TestOrderOfNamesDoesNotCount(t *testing.T) {
	a, _ := Parse([]byte(`{"a": [1, {"x": 1, "y": 2}], "b": 2}`), testBounds)
	b, _ := Parse([]byte(`{"b": 2, "a": [1, {"y": 2, "x": 1}]}`), testBounds)
	c, _ := Parse([]byte(`{"b": 2, "a": [{"y": 2, "x": 1}, 1]}`), testBounds)
	if Compare(a, b) != 0 || Compare(a, c) == 0 || Compare(a, c) != -Compare(c, a) || Compare(nil, a) >= 0 {
		t.Errorf("Compare = %d %d", Compare(a, b), Compare(a, c))
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"", `{"a": [1, -2.50e3, true, null, "x\n\ud83d\ude00"]}`, "\ufeff{\r\n}", `{"a": 1, "a": 2}`, `["\udc00"]`, `{"\u0000": 1}`,
		"[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]", "{} {}", `{"a": NaN}`, "\xff", `[1e400]`,
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, problem := Parse(src, testBounds)
		if problem != nil {
			if problem.Line < 1 || problem.Column < 1 || problem.Message == "" || problem.Line > strings.Count(string(src), "\n")+1 {
				t.Fatalf("problem %+v", problem)
			}
			return
		}
		var want, got any
		if err := json.Unmarshal(trimMark(src), &want); err != nil {
			t.Fatalf("%q is read, and is not JSON: %v", src, err)
		}
		out := Encode(v)
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q is written as %s: %v", src, out, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", src, diff)
		}
		again, problem := Parse(out, Bounds{Bytes: 1 << 30, Depth: 20})
		if problem != nil || string(Encode(again)) != string(out) {
			t.Fatalf("%q: its form %s is not kept: %v", src, out, problem)
		}
	})
}
