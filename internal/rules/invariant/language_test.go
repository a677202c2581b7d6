package invariant_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/expr-lang/expr"
	"github.com/goccy/go-yaml"

	"github.com/pawl-run/pawl/internal/rules/invariant"
)

// asExpr evaluates an expression with expr-lang, of which invariants are a part.
func asExpr(check string, in invariant.Inputs) (any, error) {
	of := func(t files, outputs map[string]string) map[string]any {
		names, _ := t.Names()
		return map[string]any{
			"files": names, "output": func(gate string) string { return outputs[gate] },
			"json": func(name string) (v any, err error) {
				d := json.NewDecoder(bytes.NewReader([]byte(t[name])))
				return v, d.Decode(&v)
			},
			"yaml": func(name string) (v any, err error) { return v, yaml.Unmarshal([]byte(t[name]), &v) },
		}
	}
	env := of(in.Tree.(files), in.Outputs)
	env["base"] = of(in.Base.(files), in.BaseOutputs)
	env["diff"] = map[string]any{"files": in.Diff.Files, "added": in.Diff.Added, "removed": in.Diff.Removed, "paths": in.Diff.Paths}
	env["iteration"], env["tokens"] = in.Iteration, int(in.Tokens)
	return expr.Eval(check, env)
}

// languages are expressions that mean the same in both; the examples of Names are
// tried as well.
var languages = []string{
	"1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "7 - 2 - 1 == 4", "8 / 4 / 2 == 1", "7 % 4 == 3", "-2 * -3 == 6", "- 1 < 0", "1.5e1 == 15", "1_000 == 1000",
	"true or false and false", "(true or false) and false", "not true or true", "!false && true", "not (1 > 2)", "not true == false",
	"1 < 2 < 3", "3 > 2 > 2", "1 < 2 == true", "1 == 1 and 2 == 2", "1 < 2 <= 2 and 3 >= 3 > 1",
	"1 in [1, 2]", "3 not in [1, 2]", `"a" in ["a"]`, `"ab" contains "b"`, `"ab" not contains "c"`, `'it"s' == "it\"s"`,
	`"a" + "b" == "ab"`, `"a" < "b"`, `"a\n" == "a\n"`, `"é" == "\u00e9"`, `len("é") == 1`, `"abc" matches "^a.c$"`, `"abc" startsWith "ab" == true`,
	"true ? 1 == 1 : 2 == 1", "false ? false : true ? true : false", "(nil ?? 1) == 1", "[1, [2]] == [1, [2]]", "[1, 2][-1] == 2", "[1, 2,] == [1, 2]",
	"all([1, 2], # > 0)", "any([1, 2], # > 1)", "none([1, 2], # > 2)", "one([1, 2], # > 1)", "count([1, 2, 3], # > 1) == 2", "count([true, false]) == 1", "sum([1, 2]) == 3",
	"sum([1, 2], # * 2) == 6", "filter([1, 2], # > 1) == [2]", "map([1, 2], # + 1) == [2, 3]", "find([1, 2], # > 1) == 2", "all([[1], [2]], any(#, # > 0))",
	"min(1, 2.5) == 1", "max([1, 2.5]) == 2.5", "abs(-2) == 2", "floor(1.5) == 1", "ceil(1.2) == 2", "round(1.5) == 2", `int("12") == 12`, "int(1.9) == 1", `float("1.5") == 1.5`,
	"string(1) == \"1\"", `upper("a") == "A"`, `lower("A") == "a"`, `trim(" a ") == "a"`, `split("a,b", ",") == ["a", "b"]`, "first([1, 2]) == 1", "last([1, 2]) == 2",
	`json("cov.json").packages.a.missed == 3`, `json("cov.json")["total"] > 81`, `json("cov.json")?.wrong?.deeper == nil`, `len(keys(json("cov.json").packages)) == 2`,
}

func TestExpressionsMeanWhatTheyMeanInTheLanguageThatTheyArePartOf(t *testing.T) {
	for _, n := range invariant.Names() {
		languages = append(languages, n.Example)
	}
	for _, check := range languages {
		got, _, err := eval(t, check, sample())
		want, wrong := asExpr(check, sample())
		if err != nil || wrong != nil || want != got {
			t.Errorf("%s = %v, %v; the language says %v, %v", check, got, err, want, wrong)
		}
	}
}
