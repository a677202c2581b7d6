package price

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	list = flag.String("list", "", "the list of genai-prices as JSON, from which prices.json is drawn anew; tools/prices.sh gives it")
	day  = flag.String("day", "", "the day on which that list was published")
)

// notice is the licence of genai-prices, which has to go with its data.
const notice = `The MIT License (MIT). Copyright (c) Pydantic Services Inc. 2025 to present. Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions: The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

// fees are those that a vendor takes for a search whatever the model is, in US
// dollars per 1,000. Google bills models before Gemini 3 once for each prompt that
// was grounded, however many searches that took: counted are searches, which is
// never too little. What is free each day or month is not taken off.
var fees = []struct {
	vendor, begins string
	web, file      float64
}{
	{"anthropic", "claude-", 10, 0},
	{"openai", "", 10, 2.5},
	{"google", "gemini-3", 14, 0},
	{"google", "gemini-2", 35, 0},
}

// prefixes are the shortest prompt prefixes that are cached, where they are not
// DefaultMinPrefix.
var prefixes = map[string]int64{"claude-fable-5": 512, "claude-haiku-4-5": 4096}

// finished is m with what the list does not say.
func finished(m Model) Model {
	for _, f := range fees {
		if m.Vendor != f.vendor || !strings.HasPrefix(m.ID, f.begins) {
			continue
		}
		if m.WebSearch == nil {
			m.WebSearch = new(f.web)
		}
		if m.FileSearch == nil && f.file > 0 {
			m.FileSearch = new(f.file)
		}
	}
	if n, ok := prefixes[m.ID]; ok {
		m.MinPrefix = n
	}
	return m
}

// settled is m with the changes that have come by the day.
func settled(m Model, day string) Model {
	m = Table{Models: []Model{m}}.OnDay(day).Models[0]
	m.From = slices.DeleteFunc(m.From, func(c Change) bool { return c.Date <= day })
	return m
}

// drawn is the built-in table, made of the list and of the models that are newer.
func drawn(list, newer Table, day string) Table {
	t := newer.MergeOver(list)
	t.AsOf, t.Notice = day, notice
	t.Source = "vendors' list prices, from @pydantic/genai-prices; models newer than that as of " + newer.AsOf
	for i, m := range t.Models {
		t.Models[i] = finished(settled(m, day))
	}
	slices.SortStableFunc(t.Models, func(a, b Model) int { return strings.Compare(a.Vendor, b.Vendor) })
	return t
}

// The list is not kept beside the code, but what is drawn is: drawing it once more
// on top of itself changes nothing, so that neither file was edited alone.
func TestTheBuiltInTableIsDrawnFromItsSources(t *testing.T) {
	read := func(file string) Table {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Parse(file, data)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	newer := read("newer.json")
	if *list != "" {
		if err := os.WriteFile("prices.json", drawn(read(*list), newer, *day).JSON(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.ReadFile("prices.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(file), string(drawn(BuiltIn(), newer, BuiltIn().AsOf).JSON())); diff != "" {
		t.Errorf("prices.json is not what tools/prices.sh makes of newer.json (-is +would be):\n%s", diff)
	}
}
