package price

import (
	"slices"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// family is a line of models of one vendor, of which new ones come out.
type family struct {
	name    string
	pattern *lazyregexp.Regexp // of the vendor's names, without seller and date
}

// families are those of which a price is assumed. The first that fits counts: of models
// that cost many times as much as their siblings, the row is above that of the siblings.
var families = []family{
	{"gpt pro", lazyregexp.New(`^gpt-([5-9]|[1-9][0-9])(\.[0-9]+)?-pro$`)},
	{"gpt-5", lazyregexp.New(`^gpt-5(\.[0-9]+)?(-[a-z]+)*$`)},
	{"gpt", lazyregexp.New(`^gpt-([6-9]|[1-9][0-9])(\.[0-9]+)?(-(astra|luna|sol|terra|codex|mini|nano))*$`)},
	{"claude fable", lazyregexp.New(`^claude-fable-[0-9]+(-[0-9]+)?$`)},
	{"claude opus", lazyregexp.New(`^claude-opus-[4-9](-[0-9]+)?$`)},
	{"claude sonnet", lazyregexp.New(`^claude-sonnet-[4-9](-[0-9]+)?$`)},
	{"claude haiku", lazyregexp.New(`^claude-haiku-[4-9](-[0-9]+)?$`)},
	{"gemini pro", lazyregexp.New(`^gemini-[2-9](\.[0-9]+)?-pro(-preview)?$`)},
	{"gemini flash", lazyregexp.New(`^gemini-[2-9](\.[0-9]+)?-flash(-preview)?$`)},
	{"gemini flash-lite", lazyregexp.New(`^gemini-[2-9](\.[0-9]+)?-flash-lite(-preview)?$`)},
	{"qwen max", lazyregexp.New(`^qwen[3-9](\.[0-9]+)?-max$`)},
	{"qwen plus", lazyregexp.New(`^qwen[3-9](\.[0-9]+)?-plus$`)},
}

// familyOf returns the index of the family of a name; -1 if there is none.
func familyOf(name string) int {
	plain := withoutDate(withoutReseller(name))
	return slices.IndexFunc(families, func(f family) bool { return f.pattern.MatchString(plain) })
}

// PriceOf is Find, and for a model without a price of a known family the price that is
// assumed: twice the dearest of the family in each rate. Its Assumed names the family. A
// model of no known family has none, and neither has one of a family without prices, or if
// NoAssumed is set.
func (t Table) PriceOf(name string) (Model, bool) {
	if m, ok := t.Find(name); ok || t.NoAssumed {
		return m, ok
	}
	at := familyOf(name)
	if at < 0 {
		return Model{}, false
	}
	assumed := Model{ID: name, Assumed: families[at].name, MinPrefix: DefaultMinPrefix}
	found := false
	for _, m := range t.Models {
		if familyOf(m.ID) != at {
			continue
		}
		found = true
		assumed.Rates, assumed.Vendor = dearer(assumed.Rates, m.Rates), m.Vendor
		assumed.WebSearch, assumed.FileSearch = dearerFee(assumed.WebSearch, m.WebSearch), dearerFee(assumed.FileSearch, m.FileSearch)
		for _, long := range m.Long {
			if assumed.Long == nil {
				assumed.Long = []Tier{long}
			}
			assumed.Long[0].Above, assumed.Long[0].Rates = min(assumed.Long[0].Above, long.Above), dearer(assumed.Long[0].Rates, long.Rates)
		}
	}
	assumed.Rates = assumed.double()
	for i := range assumed.Long { // Of a model with one price, that price counts for long input as well.
		assumed.Long[i].Rates = dearer(assumed.Rates, assumed.Long[i].double())
	}
	assumed.WebSearch, assumed.FileSearch = doubleFee(assumed.WebSearch), doubleFee(assumed.FileSearch)
	if !found {
		return Model{}, false
	}
	return assumed, true
}

func dearer(a, b Rates) Rates {
	return Rates{
		Input: max(a.Input, b.Input), Output: max(a.Output, b.Output), CacheRead: max(a.CacheRead, b.CacheRead),
		CacheWrite5m: max(a.CacheWrite5m, b.CacheWrite5m), CacheWrite1h: max(a.CacheWrite1h, b.CacheWrite1h), Reasoning: max(a.Reasoning, b.Reasoning),
	}
}

func (r Rates) double() Rates {
	return Rates{2 * r.Input, 2 * r.Output, 2 * r.CacheRead, 2 * r.CacheWrite5m, 2 * r.CacheWrite1h, 2 * r.Reasoning}
}

func dearerFee(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func doubleFee(fee *float64) *float64 {
	if fee == nil {
		return nil
	}
	return new(2 * *fee)
}
