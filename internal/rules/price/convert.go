package price

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// vendors are the vendors in the list of genai-prices whose own models are taken.
// Resellers use other names or other prices, so that their models need a table of
// the user's own.
var vendors = []string{"anthropic", "openai", "google", "x-ai", "mistral", "deepseek", "moonshotai", "zai", "minimax"}

// notTextModels matches models that write no text that an agent could use.
var notTextModels = lazyregexp.New(`embed|tts|audio|realtime|image|whisper|transcribe|moderation|ocr|voice|voxtral|live|omni|robotics|computer-use|^(ada|babbage|curie|davinci|text-)|davinci|^ft:|:free$|\.ft-`)

// provider is an entry of the list that the project genai-prices publishes as
// JSON.
type provider struct {
	ID     string `json:"id"`
	Models []struct {
		ID     string          `json:"id"`
		Match  nameMatch       `json:"match"`
		Prices json.RawMessage `json:"prices"`
	} `json:"models"`
}

// nameMatch says which names mean a model.
type nameMatch struct {
	Or       []nameMatch `json:"or"`
	And      []nameMatch `json:"and"`
	Equals   string      `json:"equals"`
	Begins   string      `json:"starts_with"`
	Contains string      `json:"contains"`
	Ends     string      `json:"ends_with"`
}

// convertGenaiPrices takes the vendors' own models from the list of genai-prices.
func convertGenaiPrices(data []byte) (Table, error) {
	if err := checkJSON(data); err != nil {
		return Table{}, err
	}
	var all []provider
	if err := json.Unmarshal(data, &all); err != nil {
		return Table{}, fmt.Errorf("neither an object {…} nor the list of genai-prices: %w", err)
	}
	t := Table{Patterns: map[string]Tokens{}}
	seen := map[string]bool{}
	for _, p := range all {
		if !slices.Contains(vendors, p.ID) {
			continue
		}
		for _, entry := range p.Models {
			foreign := p.ID == "google" && !strings.HasPrefix(entry.ID, "gemini")
			if foreign || seen[entry.ID] || notTextModels.MatchString(entry.ID) {
				continue
			}
			m := Model{ID: entry.ID, MinPrefix: DefaultMinPrefix, Vendor: p.ID}
			priced, err := m.convertPrices(entry.Prices)
			if err != nil {
				return Table{}, fmt.Errorf("%s: %s: %w", p.ID, entry.ID, err)
			}
			if !priced {
				continue
			}
			m.addNames(entry.Match)
			seen[m.ID] = true
			t.Models = append(t.Models, m)
		}
	}
	if len(t.Models) == 0 {
		return Table{}, errors.New("neither an object {…} nor a list of genai-prices with a vendor that is known: " + strings.Join(vendors, ", "))
	}
	return t, nil
}

// addNames adds the names that mean the model. It leaves out names that differ
// only by a date, which Find ignores anyway.
func (m *Model) addNames(by nameMatch) {
	for _, part := range slices.Concat(by.Or, by.And) {
		m.addNames(part)
	}
	if by.Equals != "" && by.Equals != m.ID && withoutDate(by.Equals) != m.ID {
		m.Names = append(m.Names, by.Equals)
	}
	for _, p := range []string{by.Begins, by.Contains, by.Ends} {
		if p = strings.TrimRight(p, "-@"); p != "" && !slices.Contains(m.Prefixes, p) {
			m.Prefixes = append(m.Prefixes, p)
		}
	}
}

// amount is a price that may grow with the input of a call.
type amount struct {
	base  float64
	tiers []struct {
		Start int64   `json:"start"`
		Price float64 `json:"price"`
	}
}

// UnmarshalJSON reads a number or an object with tiers.
func (a *amount) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		return json.Unmarshal(data, &a.base)
	}
	var tiered struct {
		Base  float64 `json:"base"`
		Tiers []struct {
			Start int64   `json:"start"`
			Price float64 `json:"price"`
		} `json:"tiers"`
	}
	err := json.Unmarshal(data, &tiered)
	a.base, a.tiers = tiered.Base, tiered.Tiers
	return err
}

// priceAbove returns the price of a call whose input is longer than n tokens.
func (a amount) priceAbove(n int64) float64 {
	price := a.base
	for _, t := range a.tiers {
		if t.Start <= n {
			price = t.Price
		}
	}
	return price
}

// convertPrices reads one set of prices, or several sets that each apply from a
// day on or at certain hours. If the price depends on the hour, the highest one
// is used all day, so that nothing is charged too low.
func (m *Model) convertPrices(raw json.RawMessage) (priced bool, err error) {
	type conditional struct {
		Constraint *struct {
			Day  string `json:"start_date"`
			Hour string `json:"start_time"`
		} `json:"constraint"`
		Prices map[string]amount `json:"prices"`
	}
	var sets []conditional
	if strings.HasPrefix(string(raw), "[") {
		err = json.Unmarshal(raw, &sets)
	} else {
		sets = []conditional{{}}
		err = json.Unmarshal(raw, &sets[0].Prices)
	}
	if err != nil {
		return false, err
	}
	for _, set := range sets {
		_, in := set.Prices["input_mtok"]
		_, out := set.Prices["output_mtok"]
		_, perRequest := set.Prices["requests_kcount"]
		if !in || !out || perRequest {
			return false, nil
		}
		for key, a := range set.Prices {
			if a.base < 0 || math.IsNaN(a.base) {
				return false, fmt.Errorf("%s: a negative price", key)
			}
		}
		switch c := set.Constraint; {
		case c == nil || c.Hour != "":
			m.raiseRates(set.Prices)
		case len(m.From) == 0 || m.From[len(m.From)-1].Date < c.Day:
			m.From = append(m.From, Change{Date: c.Day, Rates: ratesAt(set.Prices, 0)})
			if len(tiersOf(set.Prices)) > 0 || len(m.Long) > 0 {
				m.Long = tiersOf(set.Prices) // Only the tiers of the newest prices are kept.
			}
		}
		if a, ok := set.Prices["web_searches_kcount"]; ok {
			m.WebSearch = new(a.base)
		}
		if a, ok := set.Prices["storage_searches_kcount"]; ok {
			m.FileSearch = new(a.base)
		}
	}
	return true, nil
}

// raiseRates sets the model's prices if they are higher than those that it has.
func (m *Model) raiseRates(prices map[string]amount) {
	if r := ratesAt(prices, 0); r.Output >= m.Output {
		m.Rates, m.Long = r, tiersOf(prices)
		for i := range m.From { // Sets with an hour come after those with a day.
			m.From[i].Rates = r
		}
	}
}

// ratesAt returns the prices of a call whose input is longer than n tokens.
func ratesAt(prices map[string]amount, n int64) Rates {
	or := func(key string, otherwise float64) float64 {
		if a, ok := prices[key]; ok {
			return a.priceAbove(n)
		}
		return otherwise
	}
	r := Rates{Input: or("input_mtok", 0), Output: or("output_mtok", 0)}
	r.CacheRead, r.CacheWrite5m, r.Reasoning = or("cache_read_mtok", r.Input), or("cache_write_mtok", r.Input), or("output_reasoning_mtok", r.Output)
	r.CacheWrite1h = or("cache_write_1h_mtok", r.CacheWrite5m)
	return r
}

// tiersOf returns the prices of long input.
func tiersOf(prices map[string]amount) []Tier {
	var bounds []int64
	for _, a := range prices {
		for _, t := range a.tiers {
			bounds = append(bounds, t.Start)
		}
	}
	slices.Sort(bounds)
	var tiers []Tier
	for _, n := range slices.Compact(bounds) {
		tiers = append(tiers, Tier{Above: n, Rates: ratesAt(prices, n)})
	}
	return tiers
}
