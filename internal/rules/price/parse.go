package price

import (
	"bytes"
	_ "embed" // for prices.json
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed prices.json
var builtInFile []byte

// readBuiltIn reads the embedded file, in which each model has all of its rates.
// Parse, which says where a mistake is, takes five times as long, and every run
// needs the prices.
var readBuiltIn = sync.OnceValue(func() Table {
	var file struct {
		AsOf   string    `json:"_as_of"`
		Source string    `json:"_source"`
		Notice string    `json:"_notice"`
		Models modelList `json:"models"`
	}
	if err := json.Unmarshal(builtInFile, &file); err != nil {
		panic("prices.json: " + err.Error()) // The file is embedded, and a test parses it.
	}
	return Table{AsOf: file.AsOf, Source: file.Source, Notice: file.Notice, Models: file.Models}
})

// modelList is a list of models in the order of the object that they are read from.
type modelList []Model

// UnmarshalJSON reads an object whose keys are IDs of models.
func (list *modelList) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		m := Model{ID: key.(string)}
		if err := d.Decode(&m); err != nil {
			return err
		}
		*list = append(*list, m)
	}
	return nil
}

// maxTokens is the largest count of tokens; a float64 holds it exactly.
const maxTokens = 1 << 53

// maxDollars is the highest price; it is far above any real one.
const maxDollars = 1e9

// BuiltIn returns the built-in table. The caller may append to its lists but must
// not change their elements.
func BuiltIn() Table {
	t := readBuiltIn()
	t.Models, t.Patterns = slices.Clone(t.Models), map[string]Tokens{}
	return t
}

// Parse reads a table of prices in JSON:
//
//	{"_as_of": "2026-06", "_source": "…",
//	 "models": {ID: {"input_per_mtok": 1, "output_per_mtok": 5, "cache_read_per_mtok": 0.1, …}},
//	 "_pattern_defaults": {PATTERN: {"input": 15000, "output": 3000, "subagents": 1}}}
//
// or the list of providers that the project genai-prices publishes, from which it
// takes the vendors' own models. docs/budgets.md lists the keys of a model.
//
// Prices are in US dollars per million tokens. Only models and their input and
// output prices are required. A missing rate of cached tokens is derived from the
// built-in model of the same name, in the same proportion to the input rate;
// without such a model, cached tokens cost as much as other input. Reasoning
// costs as much as output unless a rate is given. Missing prices of searches and
// a missing min_prefix_tokens are those of the built-in model. If _source is
// missing, it is the name. Unknown keys are ignored, and so are models and
// patterns whose names begin with _. The error says in which table and on which
// line the mistake is, and what is expected there; the Table is zero then.
func Parse(name string, data []byte) (Table, error) {
	var t Table
	var err error
	if text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff"))); bytes.HasPrefix(text, []byte("[")) {
		t, err = convertGenaiPrices(text)
	} else {
		t, err = parseTable(data, BuiltIn())
	}
	if err != nil {
		return Table{}, fmt.Errorf("prices %s: %w", name, err)
	}
	if t.Source == "" {
		t.Source = name
	}
	return t, nil
}

// parseTable reads a table. What the data leaves out is taken from base.
func parseTable(data []byte, base Table) (Table, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := checkJSON(data); err != nil {
		return Table{}, err
	}
	all, err := objectMembers(member{value: data, at: 1})
	if err != nil {
		return Table{}, err
	}
	t := Table{Patterns: map[string]Tokens{}}
	for _, m := range all {
		switch m.key {
		case "_as_of":
			t.AsOf, err = readDate(m)
		case "_source":
			t.Source, err = readText(m)
		case "_notice":
			t.Notice, err = readText(m)
		case "models":
			t.Models, err = readModels(m, base)
		case "_pattern_defaults":
			t.Patterns, err = readPatterns(m)
		}
		if err != nil {
			return Table{}, err
		}
	}
	if len(t.Models) == 0 {
		return Table{}, errors.New(`no models: write "models": {ID: {"input_per_mtok": 1, "output_per_mtok": 5}}`)
	}
	return t, nil
}

// checkJSON returns where the data is not valid JSON.
func checkJSON(data []byte) error {
	var all json.RawMessage
	err := json.Unmarshal(data, &all)
	wrong, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err
	}
	before := data[:min(max(wrong.Offset-1, 0), int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return fmt.Errorf("line %d, column %d: not JSON: %w", line, column, wrong)
}

// member is a key of an object with its value. Errors name its place and its
// line.
type member struct {
	place string
	line  int // of the key
	key   string
	value json.RawMessage
	at    int // line on which the value begins
}

// errorf returns an error about a member.
func (m member) errorf(words string) error {
	if m.place == "" {
		return errors.New(words)
	}
	return fmt.Errorf("line %d: %s: %s", m.line, m.place, words)
}

// objectMembers returns the members of an object in the order in which they are
// written.
func objectMembers(of member) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(of.value))
	// lines returns the line at which the text read so far ends, without its last
	// bytes.
	lines := func(but int) int { return of.at + bytes.Count(of.value[:int(d.InputOffset())-but], []byte("\n")) }
	open, err := d.Token()
	if err != nil || open != json.Delim('{') {
		return nil, of.errorf("not an object {…}")
	}
	var all []member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key), line: lines(0)}
		m.place = strings.TrimPrefix(of.place+": "+quoteUnsafe(m.key), ": ")
		if err := d.Decode(&m.value); err != nil {
			return nil, m.errorf(err.Error())
		}
		if m.at = lines(len(m.value)); seen[m.key] {
			return nil, m.errorf("there twice")
		}
		seen[m.key] = true
		all = append(all, m)
	}
	return all, nil
}

// listElements returns the elements of a list.
func listElements(of member) ([]member, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(of.value, &list); err != nil || list == nil {
		return nil, of.errorf("not a list […]")
	}
	var all []member
	for i, raw := range list {
		all = append(all, member{place: fmt.Sprintf("%s: %d", of.place, i+1), line: of.line, at: of.at, value: raw})
	}
	return all, nil
}

// quoteUnsafe returns a key as it is written, or quoted if a terminal could act
// on it.
func quoteUnsafe(key string) string {
	quoted := fmt.Sprintf("%q", key)
	if key != "" && quoted == `"`+key+`"` {
		return key
	}
	return quoted
}

func readModels(all member, base Table) ([]Model, error) {
	entries, err := objectMembers(all)
	if err != nil {
		return nil, err
	}
	var list []Model
	for _, entry := range entries {
		if strings.HasPrefix(entry.key, "_") {
			continue
		}
		m, err := readModel(entry, base)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func readModel(entry member, base Table) (Model, error) {
	m := Model{ID: entry.key, MinPrefix: DefaultMinPrefix}
	if m.ID == "" {
		return Model{}, entry.errorf("a model needs a name")
	}
	old, known := base.Find(m.ID)
	if known {
		m.MinPrefix, m.WebSearch, m.FileSearch, m.Vendor = old.MinPrefix, old.WebSearch, old.FileSearch, old.Vendor
	}
	keys, err := objectMembers(entry)
	if err != nil {
		return Model{}, err
	}
	given := map[string]member{}
	for _, k := range keys {
		given[k.key] = k
		switch k.key {
		case "min_prefix_tokens":
			m.MinPrefix, err = readWhole(k)
		case "web_search_per_1000":
			m.WebSearch, err = readPerThousand(k)
		case "file_search_per_1000":
			m.FileSearch, err = readPerThousand(k)
		case "vendor":
			m.Vendor, err = readText(k)
		case "names":
			m.Names, err = readTexts(k)
		case "prefixes":
			m.Prefixes, err = readTexts(k)
		}
		if err != nil {
			return Model{}, err
		}
	}
	if m.Rates, err = readRates(entry, given, old.Rates); err != nil {
		return Model{}, err
	}
	if long, ok := given["long_context"]; ok {
		if m.Long, err = readTiers(long, m.Rates); err != nil {
			return Model{}, err
		}
	}
	if from, ok := given["from"]; ok {
		m.From, err = readChanges(from, m.Rates)
	}
	return m, err
}

// readRates reads the rates of an object. A missing rate is derived from like, in
// the same proportion to its input or output rate.
func readRates(of member, given map[string]member, like Rates) (r Rates, err error) {
	for _, k := range []struct {
		key         string
		into        *float64
		base        *float64 // a rate of r that was read before; nil if this rate is required
		liked, from float64
	}{
		{"input_per_mtok", &r.Input, nil, 0, 0},
		{"output_per_mtok", &r.Output, nil, 0, 0},
		{"cache_read_per_mtok", &r.CacheRead, &r.Input, like.CacheRead, like.Input},
		{"cache_write_5m_per_mtok", &r.CacheWrite5m, &r.Input, like.CacheWrite5m, like.Input},
		{"cache_write_1h_per_mtok", &r.CacheWrite1h, &r.CacheWrite5m, like.CacheWrite1h, like.CacheWrite5m},
		{"reasoning_per_mtok", &r.Reasoning, &r.Output, like.Reasoning, like.Output},
	} {
		m, there := given[k.key]
		switch {
		case there:
			*k.into, err = readDollars(m)
		case k.base == nil:
			err = of.errorf(k.key + ": missing; write US dollars per million tokens")
		case k.from > 0:
			*k.into = roundDecimal(*k.base * k.liked / k.from)
		default:
			*k.into = *k.base
		}
		if err != nil {
			return Rates{}, err
		}
	}
	return r, nil
}

// roundDecimal removes the digits that the multiplication of floats adds to a
// decimal.
func roundDecimal(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// readTiers reads the prices of long input, in the order of their bounds.
func readTiers(all member, base Rates) ([]Tier, error) {
	entries, err := listElements(all)
	if err != nil {
		return nil, err
	}
	var list []Tier
	for _, entry := range entries {
		given, err := membersByKey(entry)
		if err != nil {
			return nil, err
		}
		bound, ok := given["above_tokens"]
		if !ok {
			return nil, entry.errorf("above_tokens: missing; write how long the input is from which these prices count")
		}
		t := Tier{}
		if t.Above, err = readWhole(bound); err != nil {
			return nil, err
		}
		if t.Rates, err = readRates(entry, given, base); err != nil {
			return nil, err
		}
		if len(list) > 0 && list[len(list)-1].Above >= t.Above {
			return nil, entry.errorf("above_tokens: not above that of the tier before it")
		}
		list = append(list, t)
	}
	return list, nil
}

// readChanges reads announced prices, in the order of their days.
func readChanges(all member, base Rates) ([]Change, error) {
	entries, err := listElements(all)
	if err != nil {
		return nil, err
	}
	var list []Change
	for _, entry := range entries {
		given, err := membersByKey(entry)
		if err != nil {
			return nil, err
		}
		c := Change{}
		if day, ok := given["date"]; ok {
			c.Date, err = readText(day)
		}
		if _, bad := time.Parse(time.DateOnly, c.Date); err != nil || bad != nil {
			return nil, entry.errorf("date: not a day; write YYYY-MM-DD")
		}
		if c.Rates, err = readRates(entry, given, base); err != nil {
			return nil, err
		}
		if len(list) > 0 && list[len(list)-1].Date >= c.Date {
			return nil, entry.errorf("date: not after that of the change before it")
		}
		list = append(list, c)
	}
	return list, nil
}

func membersByKey(entry member) (map[string]member, error) {
	keys, err := objectMembers(entry)
	given := map[string]member{}
	for _, k := range keys {
		given[k.key] = k
	}
	return given, err
}

func readPatterns(all member) (map[string]Tokens, error) {
	entries, err := objectMembers(all)
	if err != nil {
		return nil, err
	}
	found := map[string]Tokens{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.key, "_") {
			continue
		}
		if found[entry.key], err = readTokens(entry); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func readTokens(entry member) (Tokens, error) {
	keys, err := objectMembers(entry)
	if err != nil {
		return Tokens{}, err
	}
	var t Tokens
	for _, k := range keys {
		into, ok := map[string]**int64{"input": &t.Input, "output": &t.Output, "subagents": &t.Subagents}[k.key]
		if !ok {
			continue
		}
		n, err := readWhole(k)
		if err != nil {
			return Tokens{}, err
		}
		*into = &n
	}
	return t, nil
}

func readDollars(m member) (float64, error) {
	var n *float64
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 || *n > maxDollars {
		return 0, m.errorf("not a number from 0 up; write US dollars per million tokens")
	}
	return math.Abs(*n), nil // turns -0 into 0
}

func readWhole(m member) (int64, error) {
	var n *float64
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 || *n > maxTokens || *n != math.Trunc(*n) {
		return 0, m.errorf("not a whole number from 0 up")
	}
	return int64(*n), nil
}

func readPerThousand(m member) (*float64, error) {
	var n *float64
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 || *n > maxDollars {
		return nil, m.errorf("not a number from 0 up; write US dollars per 1,000")
	}
	return new(math.Abs(*n)), nil
}

func readTexts(m member) ([]string, error) {
	var list []string
	if err := json.Unmarshal(m.value, &list); err != nil {
		return nil, m.errorf("not a list of texts")
	}
	return list, nil
}

func readText(m member) (string, error) {
	var s *string
	if err := json.Unmarshal(m.value, &s); err != nil || s == nil {
		return "", m.errorf("not a text")
	}
	return *s, nil
}

func readDate(m member) (string, error) {
	s, err := readText(m)
	if err != nil {
		return "", err
	}
	for _, form := range []string{"2006-01", time.DateOnly} {
		if _, err := time.Parse(form, s); err == nil {
			return s, nil
		}
	}
	return "", m.errorf("not a date; write YYYY-MM, like 2026-06")
}
