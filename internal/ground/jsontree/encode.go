package jsontree

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Encode writes a tree in its one form: two spaces for each level, names in their
// order, and a newline at the end. Parse reads it as the same tree.
func Encode(v *Value) []byte {
	var b bytes.Buffer
	write(&b, v, "\n")
	b.WriteByte('\n')
	return b.Bytes()
}

func write(b *bytes.Buffer, v *Value, newline string) {
	inner := newline + "  "
	switch {
	case v.Kind == Text:
		writeText(b, v.Text)
	case v.Kind == Object && len(v.Members) > 0:
		for i, m := range v.Members {
			b.WriteString(separator(i, "{") + inner)
			writeText(b, m.Name)
			b.WriteString(": ")
			write(b, m.Value, inner)
		}
		b.WriteString(newline + "}")
	case v.Kind == Object:
		b.WriteString("{}")
	case v.Kind == List && len(v.Items) > 0:
		for i, item := range v.Items {
			b.WriteString(separator(i, "[") + inner)
			write(b, item, inner)
		}
		b.WriteString(newline + "]")
	case v.Kind == List:
		b.WriteString("[]")
	default:
		b.WriteString(v.Text)
	}
}

func separator(i int, open string) string {
	if i == 0 {
		return open
	}
	return ","
}

func writeText(b *bytes.Buffer, text string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic("jsontree: a text does not marshal: " + err.Error())
	}
	b.Truncate(b.Len() - 1) // the newline
}

// Compare orders values of any kind. It is 0 for values that are written alike, but for
// white space and the order of names.
func Compare(a, b *Value) int { return strings.Compare(sorted(a), sorted(b)) }

// sorted is a value with its names in order.
func sorted(v *Value) string {
	if v == nil {
		return ""
	}
	c := v.Clone()
	sortNames(c)
	return string(Encode(c))
}

func sortNames(v *Value) {
	slices.SortFunc(v.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range v.Members {
		sortNames(m.Value)
	}
	for _, item := range v.Items {
		sortNames(item)
	}
}
