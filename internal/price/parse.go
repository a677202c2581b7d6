package price

import (
	"bytes"
	_ "embed" // The prices are data beside the code.
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

//go:embed prices.json
var builtIn []byte

// mostTokens is the largest number of tokens that a float64 holds exactly.
const mostTokens = 1 << 53

// BuiltIn is the table that pawl comes with. The caller owns it.
func BuiltIn() Table {
	t, err := parse(builtIn, Table{})
	if err != nil {
		panic("prices.json: " + err.Error()) // The file is part of the program, and a test reads it.
	}
	return t
}

// Parse reads a table of prices in JSON:
//
//	{"_as_of": "2026-06", "_source": "…",
//	 "models": {ID: {"input_per_mtok": 1, "output_per_mtok": 5, "min_prefix_tokens": 4096}},
//	 "_pattern_defaults": {PATTERN: {"input": 15000, "output": 3000, "subagents": 1}}}
//
// Prices are in US dollars per million tokens. Only models and the prices must
// be there. A model without min_prefix_tokens has that of the built-in model of
// the same name, else DefaultMinPrefix; without _source the name is the source.
// Unknown keys are ignored, and so are models and patterns that begin with _.
// The error names the table, the line, the place and what is wanted there; it
// comes with the zero Table.
func Parse(name string, data []byte) (Table, error) {
	t, err := parse(data, BuiltIn())
	if err != nil {
		return Table{}, fmt.Errorf("prices %s: %w", name, err)
	}
	if t.Source == "" {
		t.Source = name
	}
	return t, nil
}

// parse takes the base only for the prefixes that the data leaves out.
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

// valid finds what is no JSON and says where.
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
	if old, ok := base.Model(m.ID); ok {
		m.MinPrefix = old.MinPrefix
	}
	keys, err := members(entry)
	if err != nil {
		return Model{}, err
	}
	missing := map[string]bool{"input_per_mtok": true, "output_per_mtok": true}
	for _, k := range keys {
		delete(missing, k.key)
		switch k.key {
		case "input_per_mtok":
			m.Input, err = dollars(k)
		case "output_per_mtok":
			m.Output, err = dollars(k)
		case "min_prefix_tokens":
			m.MinPrefix, err = whole(k)
		}
		if err != nil {
			return Model{}, err
		}
	}
	for _, key := range []string{"input_per_mtok", "output_per_mtok"} {
		if missing[key] {
			return Model{}, entry.wrong(key + ": missing; write US dollars per million tokens")
		}
	}
	return m, nil
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
	if err := json.Unmarshal(m.value, &n); err != nil || n == nil || *n < 0 {
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
