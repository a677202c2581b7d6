package price

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const example = `{"_as_of": "2026-09", "_source": "an invoice", "_comment": [1],
 "models": {
  "claude-haiku-4-5": {"input_per_mtok": 0.8, "output_per_mtok": 4, "currency": "USD"},
  "local": {"input_per_mtok": 0, "output_per_mtok": 0, "min_prefix_tokens": 0},
  "_note": 3,
  "other": {"input_per_mtok": 2e0, "output_per_mtok": 3.5}},
 "_pattern_defaults": {
  "ci-watch": {"input": 70000, "output": 9000.0, "subagents": 3, "why": ""},
  "mine": {"input": 5e3},
  "_custom": {"input": "never read"}}}`

func TestParseReadsATable(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	want := Table{
		AsOf: "2026-09", Source: "an invoice",
		Models: []Model{
			{
				ID: "claude-haiku-4-5", Vendor: "anthropic", MinPrefix: 4096, WebSearch: new(10.0),
				// What is not there stands to the input as in the built-in table.
				Rates: Rates{Input: 0.8, Output: 4, CacheRead: 0.08, CacheWrite5m: 1, CacheWrite1h: 1.6, Reasoning: 4},
			},
			flat("local", 0, 0, 0),
			flat("other", 2, 3.5, 1024),
		},
		Patterns: map[string]Tokens{
			"ci-watch": {n(70_000), n(9_000), n(3)},
			"mine":     {Input: n(5_000)},
		},
	}
	for name, text := range map[string]string{"as it is": example, "with a byte-order mark": "\ufeff" + example} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("p.json", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATableNeedsOnlyModels(t *testing.T) {
	got, err := Parse("p.json", []byte(`{"models": {"m": {"input_per_mtok": -0.0, "output_per_mtok": 1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Table{Source: "p.json", Models: []Model{flat("m", 0, 1, 1024)}, Patterns: map[string]Tokens{}}
	if diff := cmp.Diff(want, got); diff != "" || math.Signbit(got.Models[0].Input) {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseNamesThePlace(t *testing.T) {
	model := func(text string) string { return `{"models": {"m": ` + text + `}}` }
	with := func(text string) string {
		return `{"models": {"m": {"input_per_mtok": 1, "output_per_mtok": 5}}, ` + text + `}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"an empty file": {"", "line 1, column 1: not JSON: unexpected end of JSON input"},
		"a price on the fourth line": {
			"{\n \"models\": {\n  \"m\": {\"input_per_mtok\": 1,\n   \"output_per_mtok\":\n\"5\"}}}",
			"line 4: models: m: output_per_mtok: not a number from 0 up; write US dollars per million tokens",
		},
		"a cut file":           {"{\n \"ä\": [", "line 2, column 7: not JSON: unexpected end of JSON input"},
		"a comma too many":     {"{\n \"ä\": 1,\n}", "line 3, column 1: not JSON: invalid character '}' looking for beginning of object key string"},
		"two tables":           {"{}{}", "line 1, column 3: not JSON: invalid character '{' after top-level value"},
		"a list":               {"[]", "neither an object {…} nor a list of genai-prices with a vendor that is known: anthropic, openai, google, x-ai, mistral, deepseek, moonshotai, zai, minimax"},
		"null":                 {"null", "not an object {…}"},
		"no models":            {"{}", `no models: write "models": {ID: {"input_per_mtok": 1, "output_per_mtok": 5}}`},
		"only notes in models": {`{"models": {"_a": 1}}`, `no models: write "models": {ID: {"input_per_mtok": 1, "output_per_mtok": 5}}`},
		"models as a list":     {`{"models": []}`, "line 1: models: not an object {…}"},
		"models as null":       {`{"models": null}`, "line 1: models: not an object {…}"},
		"Models in capitals":   {`{"Models": {}}`, `no models: write "models": {ID: {"input_per_mtok": 1, "output_per_mtok": 5}}`},
		"a model as a number":  {model("3"), "line 1: models: m: not an object {…}"},
		"a model without a name": {
			`{"models": {"": {"input_per_mtok": 1, "output_per_mtok": 5}}}`,
			`line 1: models: "": a model needs a name`,
		},
		"no price of input": {model(`{"output_per_mtok": 5}`), "line 1: models: m: input_per_mtok: missing; write US dollars per million tokens"},
		"no price of output": {
			model(`{"input_per_mtok": 5, "Output_per_mtok": 5}`),
			"line 1: models: m: output_per_mtok: missing; write US dollars per million tokens",
		},
		"a price as text": {
			model(`{"input_per_mtok": "1", "output_per_mtok": 5}`),
			"line 1: models: m: input_per_mtok: not a number from 0 up; write US dollars per million tokens",
		},
		"a negative price": {
			model(`{"input_per_mtok": 1, "output_per_mtok": -5}`),
			"line 1: models: m: output_per_mtok: not a number from 0 up; write US dollars per million tokens",
		},
		"a price that no number holds": {
			model(`{"input_per_mtok": 1e999, "output_per_mtok": 5}`),
			"line 1: models: m: input_per_mtok: not a number from 0 up; write US dollars per million tokens",
		},
		"a price of null": {
			model(`{"input_per_mtok": null, "output_per_mtok": 5}`),
			"line 1: models: m: input_per_mtok: not a number from 0 up; write US dollars per million tokens",
		},
		"not a number":             {model(`{"input_per_mtok": NaN}`), "line 1, column 37: not JSON: invalid character 'N' looking for beginning of value"},
		"a price twice":            {model(`{"input_per_mtok": 1, "input_per_mtok": 2}`), "line 1: models: m: input_per_mtok: there twice"},
		"a model twice":            {`{"models": {"m": {"input_per_mtok": 1, "output_per_mtok": 5}, "m": {}}}`, "line 1: models: m: there twice"},
		"half a token of a prefix": {model(`{"min_prefix_tokens": 0.5}`), "line 1: models: m: min_prefix_tokens: not a whole number from 0 up"},
		"a date in words":          {with(`"_as_of": "June 2026"`), "line 1: _as_of: not a date; write YYYY-MM, like 2026-06"},
		"a month that is none":     {with(`"_as_of": "2026-13"`), "line 1: _as_of: not a date; write YYYY-MM, like 2026-06"},
		"a date as a number":       {with(`"_as_of": 2026`), "line 1: _as_of: not a text"},
		"a source as null":         {with(`"_source": null`), "line 1: _source: not a text"},
		"patterns as a list":       {with(`"_pattern_defaults": []`), "line 1: _pattern_defaults: not an object {…}"},
		"a pattern as a number":    {with(`"_pattern_defaults": {"p": 1}`), "line 1: _pattern_defaults: p: not an object {…}"},
		"tokens as text":           {with(`"_pattern_defaults": {"p": {"input": "1"}}`), "line 1: _pattern_defaults: p: input: not a whole number from 0 up"},
		"negative tokens":          {with(`"_pattern_defaults": {"p": {"output": -1}}`), "line 1: _pattern_defaults: p: output: not a whole number from 0 up"},
		"too many tokens":          {with(`"_pattern_defaults": {"p": {"input": 1e16}}`), "line 1: _pattern_defaults: p: input: not a whole number from 0 up"},
		"subagents of null":        {with(`"_pattern_defaults": {"p": {"subagents": null}}`), "line 1: _pattern_defaults: p: subagents: not a whole number from 0 up"},
		"a name that moves the cursor": {
			`{"models": {"m\u001b[2J": 3}}`,
			`line 1: models: "m\x1b[2J": not an object {…}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("p.json", []byte(c.text))
			if err == nil {
				t.Fatalf("Parse = %v, want an error", got)
			}
			if diff := cmp.Diff("prices p.json: "+c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Table{}, got); diff != "" {
				t.Errorf("a table comes with the error: %s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		string(builtInFile), example, "", "{", "null", `{"models": {}}`, `{"models": {"m": {"input_per_mtok": 1e999}}}`,
		`{"_as_of": "2026-06-01", "models": {"m": {"input_per_mtok": 1, "output_per_mtok": 5}}}`,
		`{"models": {"m": {"input_per_mtok": 1, "output_per_mtok": 5}}, "_pattern_defaults": {"p": {"input": -1}}}`,
		`{"models": {"\ud800": {"input_per_mtok": 1, "output_per_mtok": 5}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse("p", data)
		if err != nil {
			if len(table.Models) != 0 || !strings.HasPrefix(err.Error(), "prices p: ") {
				t.Fatalf("%q gives %v and %v", data, table, err)
			}
			return
		}
		if len(table.Models) == 0 || table.Source == "" {
			t.Fatalf("%q gives %v", data, table)
		}
		for _, m := range table.Models {
			if m.ID == "" || !(m.Input >= 0 && m.Input <= math.MaxFloat64) || !(m.Output >= 0 && m.Output <= math.MaxFloat64) || m.MinPrefix < 0 {
				t.Fatalf("%q gives %+v", data, m)
			}
			if got, ok := table.MergeOver(BuiltIn()).FindID(m.ID); !ok || cmp.Diff(m, got) != "" {
				t.Fatalf("%q over the built-in table gives %+v, want %+v", data, got, m)
			}
		}
		again, err := Parse("p", table.JSON())
		if diff := cmp.Diff(table, again); err != nil || diff != "" {
			t.Fatalf("%q is not read again as itself: %v\n%s", data, err, diff)
		}
	})
}

func TestPricesOfLongInputAndOfALaterDayAreRead(t *testing.T) {
	got, err := Parse("p.json", []byte(`{"models": {"m": {"input_per_mtok": 2, "output_per_mtok": 8, "cache_read_per_mtok": 0.5, "web_search_per_1000": 3,
	 "long_context": [{"above_tokens": 100, "input_per_mtok": 4, "output_per_mtok": 12}],
	 "from": [{"date": "2027-03-01", "input_per_mtok": 1, "output_per_mtok": 4}], "names": ["n"], "prefixes": ["m-pro"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"m": 100*2 + 8, "n": 100*2 + 8, "m-pro-latest": 100*2 + 8} {
		if m, ok := got.Find(name); !ok || m.Cost(Usage{Input: 100, Output: 1}) != want {
			t.Errorf("%s: %v, want %d", name, ok, want)
		}
	}
	m, _ := got.FindID("m")
	// A cached token of long input keeps its share: 50·4 + 60·1 + 12.
	if cost := m.Cost(Usage{Input: 50, CacheRead: 60, Output: 1}); cost != 272 {
		t.Errorf("long input costs %d, want 272", cost)
	}
	if later, _ := got.OnDay("2027-03-01").FindID("m"); later.Cost(Usage{Input: 100}) != 100 {
		t.Errorf("later: %+v", later.Rates)
	}
}

func TestWhatIsWrongWithLongInputIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		`"long_context": {}`:                      "line 1: models: m: long_context: not a list […]",
		`"long_context": [{"input_per_mtok": 1}]`: "line 1: models: m: long_context: 1: above_tokens: missing; write how long the input is from which these prices count",
		`"long_context": [{"above_tokens": 5, "input_per_mtok": 1, "output_per_mtok": 1}, {"above_tokens": 5, "input_per_mtok": 1, "output_per_mtok": 1}]`: "line 1: models: m: long_context: 2: above_tokens: not above that of the tier before it",
		`"from": [{"date": "soon"}]`: "line 1: models: m: from: 1: date: not a day; write YYYY-MM-DD",
		`"names": "n"`:               "line 1: models: m: names: not a list of texts",
		`"web_search_per_1000": -1`:  "line 1: models: m: web_search_per_1000: not a number from 0 up; write US dollars per 1,000",
	} {
		_, err := Parse("p.json", []byte(`{"models": {"m": {"input_per_mtok": 1, "output_per_mtok": 5, `+text+`}}}`))
		if err == nil || err.Error() != "prices p.json: "+want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestTheListOfGenaiPricesIsRead(t *testing.T) {
	const list = `[{"id": "openai", "models": [
	  {"id": "gpt-x", "match": {"or": [{"equals": "gpt-x"}, {"equals": "gpt-x-codex"}, {"starts_with": "gpt-x-chat"}]},
	   "prices": {"input_mtok": {"base": 2, "tiers": [{"start": 100, "price": 4}]}, "cache_read_mtok": 0.2, "output_mtok": 10, "web_searches_kcount": 10}},
	  {"id": "gpt-x-audio", "match": {"equals": "gpt-x-audio"}, "prices": {"input_mtok": 1, "output_mtok": 1}},
	  {"id": "gpt-free", "match": {"equals": "gpt-free"}, "prices": {}}]},
	 {"id": "deepseek", "models": [{"id": "deepseek-y", "match": {"equals": "deepseek-y"}, "prices": [
	   {"prices": {"input_mtok": 1, "output_mtok": 2}},
	   {"constraint": {"type": "start_date", "start_date": "2026-10-01"}, "prices": {"input_mtok": 1.5, "output_mtok": 3}}]}]},
	 {"id": "reseller", "models": [{"id": "gpt-z", "match": {"equals": "gpt-z"}, "prices": {"input_mtok": 1, "output_mtok": 1}}]}]`
	table, err := Parse("data.json", []byte(list))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range table.Models {
		ids = append(ids, m.ID)
	}
	if diff := cmp.Diff([]string{"gpt-x", "deepseek-y"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	x, ok := table.Find("gpt-x-codex")
	// 50·4 + 60·0.20 + 10 + 10,000, as 110 tokens are more than 100.
	if cost := x.Cost(Usage{Input: 50, CacheRead: 60, Output: 1, WebSearches: 1}); !ok || cost != 200+12+10+10_000 {
		t.Errorf("gpt-x costs %d", cost)
	}
	for day, want := range map[string]int64{"2026-09-30": 100, "2026-10-01": 150} {
		if y, _ := table.OnDay(day).Find("deepseek-y"); y.Cost(Usage{Input: 100}) != want {
			t.Errorf("deepseek-y on %s: %+v, want %d", day, y.Rates, want)
		}
	}
}

// The built-in file is read without the checks that a file of a person needs.
func TestTheBuiltInFileReadsTheSameWithAllChecks(t *testing.T) {
	checked, err := parseTable(builtInFile, Table{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(checked, BuiltIn()); diff != "" {
		t.Errorf("with all checks it is different (-checked +built in):\n%s", diff)
	}
}
