//go:build ignore

// Makes prices.json: the vendors' models of the list of genai-prices, with those
// of newer.json over them. Tools/prices.sh calls it with that list as JSON and the
// day on which it was published.
//
//	go run generate.go LIST.json YYYY-MM-DD > prices.json
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/price"
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
// price.DefaultMinPrefix.
var prefixes = map[string]int64{"claude-fable-5": 512, "claude-haiku-4-5": 4096}

func main() {
	if len(os.Args) != 3 {
		fail(errors.New("usage: go run generate.go LIST.json YYYY-MM-DD"))
	}
	list, newer := read(os.Args[1]), read("newer.json")
	t := newer.Over(list)
	t.AsOf, t.Notice = os.Args[2], notice
	t.Source = "vendors' list prices, from @pydantic/genai-prices; models newer than that as of " + newer.AsOf
	for i, m := range t.Models {
		t.Models[i] = finished(settled(m, t.AsOf))
	}
	slices.SortStableFunc(t.Models, func(a, b price.Model) int { return strings.Compare(a.Vendor, b.Vendor) })
	_, _ = os.Stdout.Write(t.JSON())
}

// finished is m with what the list does not say.
func finished(m price.Model) price.Model {
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
func settled(m price.Model, day string) price.Model {
	m = price.Table{Models: []price.Model{m}}.On(day).Models[0]
	m.From = slices.DeleteFunc(m.From, func(c price.Change) bool { return c.Date <= day })
	return m
}

func read(file string) price.Table {
	data, err := os.ReadFile(file)
	if err != nil {
		fail(err)
	}
	t, err := price.Parse(file, data)
	if err != nil {
		fail(err)
	}
	return t
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
