package price

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// JSON returns the table in the form that Parse reads, one model per line.
func (t Table) JSON() []byte {
	var b bytes.Buffer
	b.WriteString("{\n")
	for _, k := range []struct{ key, value string }{{"_as_of", t.AsOf}, {"_source", t.Source}, {"_notice", t.Notice}} {
		if k.value != "" {
			b.WriteString("  " + encoded(k.key) + ": " + encoded(k.value) + ",\n")
		}
	}
	b.WriteString("  \"models\": {")
	for i, m := range t.Models {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    " + encoded(m.ID) + ": " + encoded(entry(m)))
	}
	b.WriteString("\n  }")
	if len(t.Patterns) > 0 {
		b.WriteString(",\n  \"_pattern_defaults\": {")
		for i, name := range slices.Sorted(maps.Keys(t.Patterns)) {
			if i > 0 {
				b.WriteByte(',')
			}
			p := t.Patterns[name]
			b.WriteString("\n    " + encoded(name) + ": " + encoded(struct {
				Input     *int64 `json:"input,omitempty"`
				Output    *int64 `json:"output,omitempty"`
				Subagents *int64 `json:"subagents,omitempty"`
			}{p.Input, p.Output, p.Subagents}))
		}
		b.WriteString("\n  }")
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

// entry returns a model without its ID, which is the key.
func entry(m Model) any {
	type model Model
	return struct {
		ID string `json:"model,omitempty"` // hides the field of the model
		model
	}{model: model(m)}
}

func encoded(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // It consists of text and finite numbers.
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
