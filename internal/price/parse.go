package price

import (
	"bytes"
	_ "embed" // The prices are data beside the code.
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

// readBuiltIn reads the file that this program wrote itself: each model in it has
// all of its rates. Parse, which says what is wrong and where, takes five times
// as long, and every run needs the prices.
var readBuiltIn = sync.OnceValue(func() Table {
	var file struct {
		AsOf   string  `json:"_as_of"`
		Source string  `json:"_source"`
		Notice string  `json:"_notice"`
		Models inOrder `json:"models"`
	}
	if err := json.Unmarshal(builtInFile, &file); err != nil {
		panic("prices.json: " + err.Error()) // The file is part of the program, and a test reads it.
	}
	return Table{AsOf: file.AsOf, Source: file.Source, Notice: file.Notice, Models: file.Models}
})

// inOrder are models in the order in which an object names them.
type inOrder []Model

// UnmarshalJSON reads the object.
func (list *inOrder) UnmarshalJSON(data []byte) error {
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

// mostTokens is the largest number of tokens that a float64 holds exactly.
const mostTokens = 1 << 53

// mostDollars is far above any price.
const mostDollars = 1e9

// BuiltIn is the table that pawl comes with. The caller may add to its lists and
// must not change what is in them.
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
// or the list of providers that the project genai-prices publishes, of which the
// vendors' own models are taken. docs/budgets.md lists the keys of a model.
//
// Prices are in US dollars per million tokens. Only models, their input and their
// output must be there. A rate of cached tokens that is left out follows from the
// built-in model of the same name, in the same proportion to its input; without
// one such a token costs as much as any other of the input. Reasoning costs as
// much as output unless a rate says otherwise, and searches and min_prefix_tokens
// are those of the built-in model. Without _source the name is the source. Unknown
// keys are ignored, and so are models and patterns that begin with _. The error
// names the table, the line, the place and what is wanted there; it comes with the
// zero Table.
func Parse(name string, data []byte) (Table, error) {
	var t Table
	var err error
	if text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff"))); bytes.HasPrefix(text, []byte("[")) {
		t, err = convert(text)
	} else {
		t, err = parse(data, BuiltIn())
	}
	if err != nil {
		return Table{}, fmt.Errorf("prices %s: %w", name, err)
	}
	if t.Source == "" {
		t.Source = name
	}
	return t, nil
}

// parse takes from the base what the data leaves out.
func parse(data []byte, base Table) (Table, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := valid(data); err != nil {
		return Table{}, err
	}
	all, err := members(member{value: data, at: 1})
	if err != nil {
		return Table{}, err
	}
	t := Table{Patterns: map[string]Tokens{}}
	for _, m := range all {
		switch m.key {
		case "_as_of":
			t.AsOf, err = date(m)
		case "_source":
			t.Source, err = text(m)
		case "_notice":
			t.Notice, err = text(m)
		case "models":
			t.Models, err = models(m, base)
		case "_pattern_defaults":
			t.Patterns, err = patterns(m)
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

// valid finds what is not JSON and says where.
func valid(data []byte) error {
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

// member is one key of an object with its value; place and line are where
// errors say that it is.
type member struct {
	place string
	line  int // of the key
	key   string
	value json.RawMessage
	at    int // line on which the value begins
}

// wrong says what is wrong with a member.
func (m member) wrong(words string) error {
	if m.place == "" {
		return errors.New(words)
	}
	return fmt.Errorf("line %d: %s: %s", m.line, m.place, words)
}

// members are the keys of an object in the order in which they are written.
func members(of member) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(of.value))
	// lines are those before the end of what was read so far, less the last bytes.
	lines := func(but int) int { return of.at + bytes.Count(of.value[:int(d.InputOffset())-but], []byte("\n")) }
	open, err := d.Token()
	if err != nil || open != json.Delim('{') {
		return nil, of.wrong("not an object {…}")
	}
	var all []member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key), line: lines(0)}
		m.place = strings.TrimPrefix(of.place+": "+visible(m.key), ": ")
		if err := d.Decode(&m.value); err != nil {
			return nil, m.wrong(err.Error())
		}
		if m.at = lines(len(m.value)); seen[m.key] {
			return nil, m.wrong("there twice")
		}
		seen[m.key] = true
		all = append(all, m)
	}
	return all, nil
}

// elements are those of a list.
func elements(of member) ([]member, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(of.value, &list); err != nil || list == nil {
		return nil, of.wrong("not a list […]")
	}
	var all []member
	for i, raw := range list {
		all = append(all, member{place: fmt.Sprintf("%s: %d", of.place, i+1), line: of.line, at: of.at, value: raw})
	}
	return all, nil
}

// visible is a key as it is written unless that could harm a terminal.
func visible(key string) string {
	quoted := fmt.Sprintf("%q", key)
	if key != "" && quoted == `"`+key+`"` {
		return key
	}
	return quoted
}

func models(all member, base Table) ([]Model, error) {
	entries, err := members(all)
	if err != nil {
		return nil, err
	}
	var list []Model
	for _, entry := range entries {
		if strings.HasPrefix(entry.key, "_") {
			continue
		}
		m, err := model(entry, base)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func model(entry member, base Table) (Model, error) {
	m := Model{ID: entry.key, MinPrefix: DefaultMinPrefix}
	if m.ID == "" {
		return Model{}, entry.wrong("a model needs a name")
	}
	old, known := base.Find(m.ID)
	if known {
		m.MinPrefix, m.WebSearch, m.FileSearch, m.Vendor = old.MinPrefix, old.WebSearch, old.FileSearch, old.Vendor
	}
	keys, err := members(entry)
	if err != nil {
		return Model{}, err
	}
	given := map[string]member{}
	for _, k := range keys {
		given[k.key] = k
		switch k.key {
		case "min_prefix_tokens":
			m.MinPrefix, err = whole(k)
		case "web_search_per_1000":
			m.WebSearch, err = perThousand(k)
		case "file_search_per_1000":
			m.FileSearch, err = perThousand(k)
		case "vendor":
			m.Vendor, err = text(k)
		case "names":
			m.Names, err = texts(k)
		case "prefixes":
			m.Prefixes, err = texts(k)
		}
		if err != nil {
			return Model{}, err
		}
	}
	if m.Rates, err = rates(entry, given, old.Rates); err != nil {
		return Model{}, err
	}
	if long, ok := given["long_context"]; ok {
		if m.Long, err = tiers(long, m.Rates); err != nil {
			return Model{}, err
		}
	}
	if from, ok := given["from"]; ok {
		m.From, err = changes(from, m.Rates)
	}
	return m, err
}

// rates reads those of an object. What is left out follows from like, in the same
// proportion to its input or output.
func rates(of member, given map[string]member, like Rates) (r Rates, err error) {
	for _, k := range []struct {
		key         string
		into        *float64
		base        *float64 // of r, set by then; nil: it must be given
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
			*k.into, err = dollars(m)
		case k.base == nil:
			err = of.wrong(k.key + ": missing; write US dollars per million tokens")
		case k.from > 0:
			*k.into = decimal(*k.base * k.liked / k.from)
		default:
			*k.into = *k.base
		}
		if err != nil {
			return Rates{}, err
		}
	}
	return r, nil
}

// decimal takes from a product of decimals the digits that only a double has.
func decimal(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// tiers reads the prices of long input, in the order of their bounds.
func tiers(all member, base Rates) ([]Tier, error) {
	entries, err := elements(all)
	if err != nil {
		return nil, err
	}
	var list []Tier
	for _, entry := range entries {
		given, err := keyed(entry)
		if err != nil {
			return nil, err
		}
		bound, ok := given["above_tokens"]
		if !ok {
			return nil, entry.wrong("above_tokens: missing; write how long the input is from which these prices count")
		}
		t := Tier{}
		if t.Above, err = whole(bound); err != nil {
			return nil, err
		}
		if t.Rates, err = rates(entry, given, base); err != nil {
			return nil, err
		}
		if len(list) > 0 && list[len(list)-1].Above >= t.Above {
			return nil, entry.wrong("above_tokens: not above that of the tier before it")
		}
		list = append(list, t)
	}
	return list, nil
}

// changes reads announced prices, in the order of their days.
func changes(all member, base Rates) ([]Change, error) {
	entries, err := elements(all)
	if err != nil {
		return nil, err
	}
	var list []Change
	for _, entry := range entries {
		given, err := keyed(entry)
		if err != nil {
			return nil, err
		}
		c := Change{}
		if day, ok := given["date"]; ok {
			c.Date, err = text(day)
		}
		if _, bad := time.Parse(time.DateOnly, c.Date); err != nil || bad != nil {
			return nil, entry.wrong("date: not a day; write YYYY-MM-DD")
		}
		if c.Rates, err = rates(entry, given, base); err != nil {
			return nil, err
		}
		if len(list) > 0 && list[len(list)-1].Date >= c.Date {
			return nil, entry.wrong("date: not after that of the change before it")
		}
		list = append(list, c)
	}
	return list, nil
}

func keyed(entry member) (map[string]member, error) {
	keys, err := members(entry)
	given := map[string]member{}
	for _, k := range keys {
		given[k.key] = k
	}
	return given, err
}

func patterns(all member) (map[string]Tokens, error) {
	entries, err := members(all)
	if err != nil {
		return nil, err
	}
	found := map[string]Tokens{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.key, "_") {
			continue
		}
		if found[entry.key], err = tokens(entry); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func tokens(entry member) (Tokens, error) {
	keys, err := members(entry)
	if err != nil {
		return Tokens{}, err
	}
	var t Tokens
	for _, k := range keys {
		into, ok := map[string]**int64{"input": &t.Input, "output": &t.Output, "subagents": &t.Subagents}[k.key]
		if !ok {
			continue
		}
		n, err := whole(k)
		if err != nil {
			return Tokens{}, err
		}
		*into = &n
	}
	return t, nil
}

func dollars(m member) (float64, error) {
	var n *float64
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 || *n > mostDollars {
		return 0, m.wrong("not a number from 0 up; write US dollars per million tokens")
	}
	return math.Abs(*n), nil // No cost is -0.
}

func whole(m member) (int64, error) {
	var n *float64
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 || *n > mostTokens || *n != math.Trunc(*n) {
		return 0, m.wrong("not a whole number from 0 up")
	}
	return int64(*n), nil
}

func perThousand(m member) (*float64, error) {
	var n *float64
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 || *n > mostDollars {
		return nil, m.wrong("not a number from 0 up; write US dollars per 1,000")
	}
	return new(math.Abs(*n)), nil
}

func texts(m member) ([]string, error) {
	var list []string
	if err := json.Unmarshal(m.value, &list); err != nil {
		return nil, m.wrong("not a list of texts")
	}
	return list, nil
}

func text(m member) (string, error) {
	var s *string
	if err := json.Unmarshal(m.value, &s); err != nil || s == nil {
		return "", m.wrong("not a text")
	}
	return *s, nil
}

func date(m member) (string, error) {
	s, err := text(m)
	if err != nil {
		return "", err
	}
	for _, form := range []string{"2006-01", time.DateOnly} {
		if _, err := time.Parse(form, s); err == nil {
			return s, nil
		}
	}
	return "", m.wrong("not a date; write YYYY-MM, like 2026-06")
}
