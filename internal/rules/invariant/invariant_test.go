package invariant_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/invariant"
)

// files is a tree with what its files hold.
type files map[string]string

func (f files) Read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (f files) Names() ([]string, error) { return slices.Sorted(maps.Keys(f)), nil }

// sample is a change with what it is about.
func sample() invariant.Inputs {
	return invariant.Inputs{
		Tree: files{
			"README.md": "read me\n", "go.mod": "module x\n", "src/a.go": "package a\n", "src/a_test.go": "package a\n",
			"cov.json": `{"total": 81.5, "branches": 70, "packages": {"a": {"missed": 3}, "b": {"missed": 9}}, "none": null}`,
			"app.yaml": "version: 1.2.3\nreplicas: 2\n",
		},
		Base: files{
			"README.md": "read me\n", "go.mod": "module x\n", "src/a.go": "package b\n", "old.go": "package old\n",
			"cov.json": `{"total": 80}`, "app.yaml": "version: 1.2.3\nreplicas: 1\n",
		},
		Diff:        invariant.Diff{Files: 2, Added: 40, Removed: 7, Paths: []string{"src/a.go", "src/a_test.go"}},
		Outputs:     map[string]string{"verify": "ok x 0.1s\n", "lint": "warning: long line\n", "size": "size=4000\n", "cover": "x\n81.5\n", "debt": "3\n"},
		BaseOutputs: map[string]string{"lint": "warning: long line\nwarning: no comment\n", "cover": "80\n", "debt": "3\n"},
		Iteration:   2, Tokens: 1234,
	}
}

func eval(t *testing.T, check string, in invariant.Inputs) (bool, string, error) {
	t.Helper()
	p, err := invariant.Compile(check)
	if err != nil {
		t.Fatalf("Compile(%q) = %v", check, err)
	}
	return p.Eval(t.Context(), in)
}

func TestEveryNameHasAMeaningAndAnExampleThatHolds(t *testing.T) {
	for _, n := range invariant.Names() {
		if n.Meaning == "" {
			t.Errorf("%s has no meaning", n.Name)
		}
		holds, why, err := eval(t, n.Example, sample())
		if err != nil || !holds {
			t.Errorf("the example of %s, %s = %v %q %v, want true", n.Name, n.Example, holds, why, err)
		}
		word := strings.Fields(strings.ReplaceAll(n.Name, "base.", ""))[0]
		if !strings.Contains(n.Example, word) {
			t.Errorf("the example of %s does not show it: %s", n.Name, n.Example)
		}
	}
}

func TestAnInvariantIsTrueOrSaysWhatItCompared(t *testing.T) {
	for check, want := range map[string]string{ // why; empty: it holds
		"diff.files <= 3":                                              "",
		"`diff.files <= 1` is the limit":                               "diff.files is 2, and must be <= 1",
		"Small: `diff.added <= 100`.":                                  "",
		"diff.files <= 3 and tokens < 99":                              "tokens is 1234, and must be < 99",
		"diff.files > 3 or diff.added < diff.removed":                  "diff.files is 2, and must be > 3; and diff.added is 40, and must be < diff.removed, which is 7",
		"not (diff.files == 2)":                                        "(diff.files == 2) is true, and must not be",
		`json("cov.json").total >= 90`:                                 `json("cov.json").total is 81.5, and must be >= 90`,
		`base.json("cov.json").total > json("cov.json").total`:         `base.json("cov.json").total is 80, and must be > json("cov.json").total, which is 81.5`,
		`json("cov.json").total * 2 == 163`:                            "",
		`json("cov.json")?.wrong?.deeper == nil`:                       "",
		`(json("cov.json")?.wrong ?? 5) > 9`:                           `(json("cov.json")?.wrong ?? 5) is 5, and must be > 9`,
		`json("cov.json")?.wrong.deeper == nil`:                        "",
		`4611686018427387904 * 4 > 1 and -4611686018427387904 * 4 < 1`: "",
		`all([1, "a"], # > 1)`:                                         `all([1, "a"], # > 1) is false: # is 1: # is 1, and must be > 1`,
		"`float(trim(last(split(trim(output(\"cover\")), \"\\n\")))) > float(trim(last(split(trim(base.output(\"cover\")), \"\\n\"))))`": "",
		`int(trim(output("debt"))) < int(trim(base.output("debt"))) || int(trim(output("debt"))) == 0`:                                   `int(trim(output("debt"))) is 3, and must be < int(trim(base.output("debt"))), which is 3; and int(trim(output("debt"))) is 3, and must be == 0`,
		`json("cov.json").none == nil`:                 "",
		`all(diff.paths, # endsWith "_test.go")`:       `all(diff.paths, # endsWith "_test.go") is false: # is "src/a.go": # is "src/a.go", and must end with "_test.go"`,
		`none(diff.paths, # startsWith "src/")`:        `none(diff.paths, # startsWith "src/") is false: # is "src/a.go"`,
		`"go.sum" in files`:                            `"go.sum", and must be in files, which is a list of 6`,
		`"go.mod" not in files`:                        `"go.mod", and must not be in files, which is a list of 6`,
		`output("verify") contains "FAIL"`:             `output("verify") is "ok x 0.1s\n", and must contain "FAIL"`,
		`output("verify") matches "^no"`:               `output("verify") is "ok x 0.1s\n", and must match "^no"`,
		`diff.files > 1 ? diff.added < 9 : true`:       "diff.files > 1 is true: diff.added is 40, and must be < 9",
		`any(files, # == "x")`:                         `any(files, # == "x") is false`,
		`json("cov.json")?.ok ?? false`:                `json("cov.json")?.ok ?? false is false`,
		"true":                                         "",
		"false":                                        "false is false",
		"1 < diff.files < 2":                           "diff.files is 2, and must be < 2",
		`diff["files"] == 2`:                           "",
		`diff.paths[-1] == "src/a_test.go"`:            "",
		`[1, "a", nil, [2.0]] == [1.0, "a", nil, [2]]`: "",
		`json("cov.json") == base.json("cov.json")`:    `json("cov.json") is an object with 4 names, and must be == base.json("cov.json"), which is an object with 1 names`,
		"9007199254740993 == 9007199254740992":         "9007199254740993, and must be == 9007199254740992",
		"-7 % 2 == -1 and 7 / 2 == 3.5 and +1 == 1":    "",
	} {
		holds, why, err := eval(t, check, sample())
		if err != nil || holds != (want == "") || why != want {
			t.Errorf("%s = %v, %v\n got %s\nwant %s", check, holds, err, why, want)
		}
	}
}

func TestObjectsAreEqualIfTheirNamesAndValuesAre(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a": 1, "b": {"c": [2.0]}}`:         true,
		`{"b": {"c": [2]}, "a": 1}`:           true,
		`{"a": 1, "b": {"c": [3]}}`:           false,
		`{"a": 2, "b": {"c": [2]}}`:           false,
		`{"a": 1, "x": {"c": [2]}}`:           false,
		`{"a": 1}`:                            false,
		`{"a": 1, "b": {"c": [2]}, "c": nil}`: false,
		`[1, 2]`:                              false,
	} {
		in := sample()
		in.Tree.(files)["one.json"], in.Tree.(files)["other.json"] = `{"a": 1, "b": {"c": [2]}}`, strings.ReplaceAll(text, "nil", "null")
		for check, want := range map[string]bool{
			`json("one.json") == json("other.json")`:   want,
			`json("other.json") == json("one.json")`:   want,
			`json("one.json") != json("other.json")`:   !want,
			`json("one.json") in [json("other.json")]`: want,
		} {
			if holds, why, err := eval(t, check, in); err != nil || holds != want {
				t.Errorf("%s with %s = %v, %q, %v; want %v", check, text, holds, why, err, want)
			}
		}
	}
}

func TestOperatorsBindAsInTheLanguageThatTheyArePartOf(t *testing.T) {
	for _, check := range []string{
		"2 + 3 * 4 == 14", "20 - 8 / 4 == 18", "9 + 7 % 4 == 12", "2 * 7 % 4 == 2", "7 % 4 * 2 == 6", "7 / 2 * 2 == 7",
		"9 - 2 + 3 == 10", "9 + 2 - 3 == 8", "-2 * 3 == -6", "-(2 + 3) == -5", "not false and true", "!(true and false)", "true or false and false", "not (false and false or false)",
		"true || false && false", `"a" + "b" == "ab"`, `"a" + "b" contains "ab"`, `"a" + "b" startsWith "ab"`, `"a" + "b" endsWith "ab"`, `"a" + "b" matches "^ab$"`, `"a" + "b" in ["ab"]`,
		"1 + 1 < 3", "1 + 1 <= 2", "2 > 1 + 0", "2 >= 1 + 1", "2 != 1 + 2", `(json("cov.json")?.wrong ?? 2) * 3 == 6`,
		"false ? false : true ? true : false", "1 == 2 or 2 == 2 ? true : false",
	} {
		if holds, why, err := eval(t, check, sample()); err != nil || !holds {
			t.Errorf("%s = %v, %q, %v", check, holds, why, err)
		}
	}
}

func TestWhatDoesNotCompilePointsIntoTheExpression(t *testing.T) {
	for check, want := range map[string][2]string{ // what it says, what is above the caret
		"":                                        {"there is no expression", ""},
		"diff.files":                              {"line 1, column 1: an invariant is true or false, and this is a number; compare it", "d"},
		"diff.files <= ":                          {"line 1, column 14: the expression ends too early", ""},
		"diff.files <= 3 &&\n  difs.x > 1":        {"line 2, column 3: unknown name difs", "d"},
		"all(files, true) and # == 1":             {"line 1, column 22: # is the value that all", "#"},
		"# == 1":                                  {"line 1, column 1: # is the value that all", "#"},
		"all(#, true)":                            {"line 1, column 5: # is the value that all", "#"},
		"diff.fils <= 3":                          {`line 1, column 6: diff has no value "fils"; it has files, added, removed and paths`, "f"},
		`diff.files == "3"`:                       {`line 1, column 15: a number is never equal to a text; compare values of the same kind`, `"`},
		"the tests must pass":                     {`line 1, column 5: unexpected "tests"; an invariant is a condition such as diff.files <= 3, not a sentence`, "t"},
		`file("x") == 1`:                          {"line 1, column 1: there is no function file", "f"},
		`now() > date("2020-01-01")`:              {"line 1, column 1: there is no function now", "n"},
		`repeat("x", 9) == "x"`:                   {"line 1, column 1: there is no function repeat", "r"},
		`fromJSON("1") == 1`:                      {"line 1, column 1: there is no function fromJSON", "f"},
		`len(1..1e9) > 1`:                         {"line 1, column", "."},
		`len(1..1000000000) > 1`:                  {`line 1, column 6: expected , or ), got ".."`, "."},
		`2 ** 9 > 1`:                              {`line 1, column 3: unexpected "**"`, "*"},
		`reduce(files, #acc + 1) > 1`:             {"line 1, column", ""},
		`let x = 1; x > 0`:                        {"line 1, column 1: an invariant is one expression, without let", "l"},
		`files[0:2] == files`:                     {"line 1, column 8: parts of lists", ":"},
		`base.diff.files == 1`:                    {"line 1, column 6: ", "d"},
		`base == base`:                            {"line 1, column 1: base has no value by itself", "b"},
		`json == json`:                            {"line 1, column", ""},
		`$env != nil`:                             {`line 1, column 1: unexpected "$"`, "$"},
		`output("a") matches files[0]`:            {"line 1, column 21: what a text matches is a constant", "f"},
		`output("a") matches "("`:                 {"line 1, column", ""},
		"[1, 2 == files":                          {"expected", ""},
		`json("a")[wrong] == 1`:                   {"line 1, column 11: unknown name wrong", "w"},
		`(wrong?.x) == 1`:                         {"line 1, column 2: unknown name wrong", "w"},
		`wrong?.x?.y == 1`:                        {"line 1, column 1: unknown name wrong", "w"},
		`files[wrong] == "a"`:                     {"line 1, column 7: unknown name wrong", "w"},
		`base.json("a" == 1`:                      {"expected", ""},
		`not wrong`:                               {"line 1, column 5: unknown name wrong", "w"},
		`[wrong] == files`:                        {"line 1, column 2: unknown name wrong", "w"},
		`true ? wrong : 1 > 2`:                    {"line 1, column 8: unknown name wrong", "w"},
		`wrong ? true : false`:                    {"line 1, column 1: unknown name wrong", "w"},
		`true ? false : wrong`:                    {"line 1, column 16: unknown name wrong", "w"},
		"diff.paths.len() > 1":                    {"len is called on a value", "l"},
		`base.file("x") == 1`:                     {"base has no function file", ""},
		`1 in 2`:                                  {"in needs a list or an object, and this is a number", "2"},
		`{"a": 1} == {"a": 1}`:                    {`line 1, column 1: unexpected "{"`, "{"},
		`b"x" == b"x"`:                            {"line 1, column 2: unexpected", `"`},
		"true and \u202e == 1":                    {"line 1, column 10: ", ""},
		strings.Repeat("true and ", 300) + "true": {"the expression is longer than 2000 bytes", ""},
		strings.Repeat("1+", 300) + "1 > 2":       {"the expression has more than 400 parts", ""},
		strings.Repeat("(", 1500) + "true":        {"line 1, column", ""},
		strings.Repeat("!", 1500) + "true":        {"the expression has more than 400 parts", ""},
	} {
		_, err := invariant.Compile(check)
		e, ok := errors.AsType[*invariant.Error](err)
		if !ok || !strings.Contains(err.Error(), want[0]) {
			t.Errorf("Compile(%.60q) = %v\nwant %q", check, err, want[0])
			continue
		}
		line, caret, _ := strings.Cut(e.Pointer(), "\n")
		if e.Line > 0 && e.Offset < len(check) && want[1] != "" && check[e.Offset:e.Offset+1] != want[1] {
			t.Errorf("Compile(%.60q) is wrong at byte %d, want %q", check, e.Offset, want[1])
		}
		if at := strings.Index(caret, "^"); want[1] != "" && (at < 0 || at >= len(line) || line[at:at+1] != want[1]) {
			t.Errorf("Compile(%.60q) points to\n%s\nwant %q", check, e.Pointer(), want[1])
		}
		if strings.ContainsRune(err.Error(), '\u202e') {
			t.Errorf("Compile(%.60q) shows a character that nobody sees: %q", check, err)
		}
	}
}

func TestWhatCannotBeEvaluatedIsAnError(t *testing.T) {
	deep := strings.Repeat("[", 5000)
	in := sample()
	tree := in.Tree.(files)
	tree["twice.json"], tree["two.json"], tree["short.json"], tree["empty.json"] = `{"a":1,"a":2}`, `{"a":1} {"a":2}`, `{"a":1`, ""
	tree["deep.json"], tree["large.json"], tree["huge.json"] = deep, `"`+strings.Repeat("x", 4<<20)+`"`, `{"a":1e999}`
	tree["bomb.yaml"] = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
	tree["tag.yaml"], tree["merge.yaml"], tree["two.yaml"], tree["nan.yaml"] = "a: !!python/object x\n", "<<: {a: 1}\n", "a: 1\n---\nb: 1\n", "a: .nan\n"
	tree["deep.yaml"], tree["twice.yaml"], tree["bad.yaml"] = "a: "+deep+"\n", "a: 1\na: 2\n", "a: [1\n"
	tree["dashes.yaml"] = strings.Repeat("- ", 2000) + "a\n"
	tree["names.yaml"] = ".inf: 1\n"
	tree["keys.yaml"] = strings.Repeat("a: b\n", 10_000)
	for check, want := range map[string]string{
		`yaml("keys.yaml").a == "b"`:                          "it has 30000 words and signs",
		`json("missing.json").a == 1`:                         `line 1, column 1: the candidate has no file "missing.json"; if it may be missing, ask first whether "missing.json" in files`,
		`base.json("app.json").a == 1`:                        `line 1, column 1: the base has no file "app.json"`,
		`json("cov.json").typo >= base.json("cov.json").typo`: `line 1, column 18: json("cov.json") has no value "typo"; if it may be missing, write ?.`,
		`json("cov.json").typo == base.json("cov.json").typo`: `json("cov.json") has no value "typo"`,
		`json("cov.json").none > 1`:                           "> compares two numbers or two texts, not nil and the number 1",
		`json("cov.json").total`:                              "this has to be true or false, and it is the number 81.5",
		`json("../x") == 1`:                                   "is not a path in the repository",
		`json("/etc/passwd") == 1`:                            "is not a path in the repository",
		`json("README.md") == 1`:                              `"README.md" of the candidate: `,
		`json("twice.json").a == 1`:                           `the name "a" comes twice`,
		`json("two.json").a == 1`:                             "there is more than one value of JSON",
		`json("short.json").a == 1`:                           "the JSON ends too early",
		`json("empty.json") == nil`:                           "the JSON ends too early",
		`json("deep.json") == nil`:                            "values are more than 200 deep",
		`json("large.json") == nil`:                           "is too large",
		`json("huge.json") == nil`:                            "1e999 is not a number that can be compared",
		`yaml("bomb.yaml").c != nil`:                          "line 1: anchors, aliases and tags of YAML are not read",
		`yaml("tag.yaml").a != nil`:                           "anchors, aliases and tags",
		`yaml("merge.yaml").a != nil`:                         "anchors, aliases and tags",
		`yaml("two.yaml").a != nil`:                           "there are 2 documents of YAML",
		`yaml("nan.yaml").a != nil`:                           "this part of YAML is not read",
		`yaml("deep.yaml").a != nil`:                          "values are more than 200 deep",
		`yaml("names.yaml") != nil`:                           "this name of YAML is not read",
		`none([1], json("gone.json") == #)`:                   "has no file",
		`any([1], json("gone.json") == #)`:                    "has no file",
		`one([1], json("gone.json") == #)`:                    "has no file",
		`find([1], json("gone.json") == #) == nil`:            "has no file",
		`count([1], json("gone.json") == #) == 0`:             "has no file",
		`len(filter([1], json("gone.json") == #)) == 0`:       "has no file",
		`len(map([1], json("gone.json"))) == 0`:               "has no file",
		`sum([1], json("gone.json")) == 0`:                    "has no file",
		`sum(["a"]) == 0`:                                     "+ needs two numbers",
		`yaml("twice.yaml").a != nil`:                         `the name "a" comes twice`,
		`yaml("bad.yaml").a != nil`:                           "it is not valid YAML",
		`yaml("dashes.yaml") != nil`:                          "a line begins with more than 1000 spaces",
		`output("none") == ""`:                                `there is no output of a gate "none"`,
		`base.output("verify") == ""`:                         `there is no output of a gate "verify"`,
		`json("cov.json").total / 0 > 1`:                      "division by zero",
		`diff.files % (diff.files - 2) == 1`:                  "division by zero",
		`max(json("cov.json").packages) > 1`:                  "max compares two numbers",
		`min([]) > 1`:                                         "min of an empty list",
		`files[99] == "x"`:                                    "has no value 99",
		`json("cov.json").total.x == 1`:                       "has no values of its own",
		`all(json("cov.json"), true)`:                         "all goes through a list, and this is an object",
		`all(json("cov.json").packages, true)`:                "all goes through a list",
		`int("x") == 1`:                                       `"x" is not a whole number`,
		`float("inf") > 1`:                                    `"inf" is not a number`,
	} {
		holds, _, err := eval(t, check, in)
		if holds || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, %v\nwant %q", check, holds, err, want)
		}
	}
	in.Base = nil
	if _, _, err := eval(t, `len(base.files) > 0`, in); err == nil || !strings.Contains(err.Error(), "the base is not known here") {
		t.Errorf("base.files without a base = %v", err)
	}
}

// None of these may take long or much memory; the test ends because they end.
func TestAnEvaluationEnds(t *testing.T) {
	in := sample()
	in.Tree.(files)["many.json"] = "[" + strings.Repeat("1,", 1_000_000) + "1]"
	in.Tree.(files)["lists.json"] = "[" + strings.Repeat("[],", 1_300_000) + "1]"
	in.Tree.(files)["text.json"] = `"` + strings.Repeat("a", 4_000_000) + `"`
	text := `json("text.json")`
	for check, want := range map[string]string{
		`all(json("many.json"), all(json("many.json"), true))`:                           "too many steps",
		`len(map(json("many.json"), map(json("many.json"), #))) > 0`:                     "too much memory",
		`all(json("many.json"), json("many.json") == json("many.json"))`:                 "too many steps",
		`all(json("many.json"), 2 in json("many.json") or true)`:                         "too many steps",
		`all(json("many.json"), len(` + text + `) > 0)`:                                  "too many steps",
		`all(json("many.json"), ` + text + ` contains "b" or true)`:                      "too many steps",
		`all(json("many.json"), ` + text + ` < ` + text + ` or true)`:                    "too many steps",
		text + ` matches "(a?){200}a{200}b"`:                                             "too many steps",
		`all(json("many.json"), ` + text + ` matches "a*a*b" or true)`:                   "too many steps",
		`len(split(` + text + `, "a")) > 1`:                                              "too much memory",
		text + ` + ` + text + ` == "x"`:                                                  "too much memory",
		`lower(` + text + `) == "x"`:                                                     "too much memory",
		`len(json("lists.json")) > 1`:                                                    "too much memory",
		strings.Repeat(`map(`, 40) + `["a"]` + strings.Repeat(`, # + #)`, 40) + ` == []`: "too much memory",
	} {
		_, _, err := eval(t, check, in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s = %v, want %q", check, err, want)
		}
	}
}

func TestAnEvaluationStopsWithItsContext(t *testing.T) {
	p, err := invariant.Compile("diff.files <= 3")
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("the run was stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, _, err := p.Eval(ctx, sample()); !errors.Is(err, why) {
		t.Errorf("Eval with a context that is over = %v, want its cause", err)
	}
}

func TestAProgramKeepsNothingBetweenEvaluations(t *testing.T) {
	p, err := invariant.Compile(`json("cov.json").total > 80`)
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, total := range []string{"81", "79", "90"} {
		in := sample()
		in.Tree.(files)["cov.json"] = `{"total": ` + total + `}`
		holds, _, err := p.Eval(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, holds)
	}
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("three evaluations (-want +got):\n%s", diff)
	}
}

func TestACommandInBackticksIsNotTakenForAnExpression(t *testing.T) {
	for check, want := range map[string]bool{
		"`tsc --noEmit`":                    true,
		"Types: `tsc --noEmit` is quiet":    true,
		"`npm test`":                        true,
		"`pytest`":                          true,
		"`./check.sh && go vet ./...`":      true,
		"tsc --noEmit":                      false, // without backticks it is a sentence
		"`diff.files <= 3`":                 false,
		"`diff.fils <= 3`":                  false,
		"`difs <= 3`":                       false,
		"`json(\"x\").a >= 1`":              false,
		"`not files`":                       false,
		"`jsn(\"x\") == 1`":                 false,
		"`go.mod in files`":                 false,
		"`unclosed":                         false,
		"no change to the public interface": false,
	} {
		if got := invariant.LooksLikeCommand(check); got != want {
			t.Errorf("LooksLikeCommand(%s) = %v, want %v", check, got, want)
		}
	}
}

func FuzzEval(f *testing.F) {
	for _, n := range invariant.Names() {
		f.Add(n.Example, `{"total": 1}`, "a: 1\n")
	}
	f.Add("`"+`all(json("f.json"), yaml("f.yaml").a?.b ?? # == 1)`+"`", "[1]", "a: {b: [1, 'x']}\n")
	f.Add(`yaml("f.yaml") == json("f.json")`, `{"a":[{}]}`, "? x\n: |\n  y\n")
	f.Fuzz(func(t *testing.T, check, j, y string) {
		invariant.LooksLikeCommand(check)
		p, err := invariant.Compile(check)
		if err != nil {
			e, ok := errors.AsType[*invariant.Error](err)
			if !ok || e.What == "" || strings.ContainsRune(e.Pointer(), '\u202e') {
				t.Fatalf("Compile(%q) = %#v", check, err)
			}
			return
		}
		in := sample()
		for _, name := range []string{"f.json", "cov.json"} {
			in.Tree.(files)[name] = j
		}
		for _, name := range []string{"f.yaml", "app.yaml"} {
			in.Tree.(files)[name] = y
		}
		holds, why, err := p.Eval(t.Context(), in)
		again, why2, err2 := p.Eval(t.Context(), in)
		if holds != again || why != why2 || (err == nil) != (err2 == nil) {
			t.Fatalf("%q = %v %q %v, and then %v %q %v", check, holds, why, err, again, why2, err2)
		}
		if err == nil && holds != (why == "") || holds && err != nil {
			t.Fatalf("%q = %v, %q, %v", check, holds, why, err)
		}
		if means, wrong := asExpr(p.String(), in); err == nil && wrong == nil && means != holds && !strings.ContainsAny(check, "0123456789") {
			t.Fatalf("%q = %v, and %v in the language that it is part of", check, holds, means) // Of large numbers, ours are not cut off.
		}
		if q, err := invariant.Compile(p.String()); err != nil || q.String() != p.String() {
			t.Fatalf("Compile(%q) of what it was compiled from = %v", p, err)
		}
	})
}
