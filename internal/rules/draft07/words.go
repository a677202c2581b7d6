package draft07

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// mostDigits bounds numbers that are computed with: 1e999999999 would fill the memory.
const mostDigits = 1000

// rational returns a number exactly, and false if it has too many digits.
func rational(text string) (*big.Rat, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if exponent != "" {
		if n, err := strconv.Atoi(exponent); err != nil || n > mostDigits || n < -mostDigits {
			return new(big.Rat), strings.Trim(mantissa, "-0.") == ""
		}
	}
	if len(mantissa) > mostDigits {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func isInteger(text string) bool {
	n, ok := rational(text)
	return ok && n.IsInt()
}

// wholeNumber reads a bound of a schema, which may be written 2.0.
func wholeNumber(text string) (int64, bool) {
	n, ok := rational(text)
	if !ok || !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// normal is a text that equal values share: 1 and 1.0 are the same number, and the
// order of names does not matter.
func normal(v *jsontree.Value) string {
	var b strings.Builder
	writeNormal(&b, v)
	return b.String()
}

func writeNormal(b *strings.Builder, v *jsontree.Value) {
	switch v.Kind {
	case jsontree.Text:
		b.WriteString(strconv.Quote(v.Text))
	case jsontree.Number:
		if n, ok := rational(v.Text); ok {
			b.WriteString(n.RatString())
			return
		}
		b.WriteString(v.Text)
	case jsontree.List:
		b.WriteByte('[')
		for _, item := range v.Items {
			writeNormal(b, item)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case jsontree.Object:
		b.WriteByte('{')
		members := slices.SortedFunc(slices.Values(v.Members), func(x, y jsontree.Member) int { return strings.Compare(x.Name, y.Name) })
		for _, m := range members {
			b.WriteString(strconv.Quote(m.Name) + ":")
			writeNormal(b, m.Value)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case jsontree.Bool, jsontree.Null:
		b.WriteString(v.Text)
	}
}

// formats are those that are asserted.
var formats = map[string]func(string) bool{
	"date-time": func(text string) bool { _, ok := ParseTime(text); return ok },
	"date":      func(text string) bool { _, ok := ParseTime(text + "T00:00:00Z"); return ok },
	"time":      func(text string) bool { _, ok := ParseTime("2000-01-31T" + text); return ok },
}

// ParseTime reads a date-time of RFC 3339, and reports false for anything else. A leap
// second is the second before.
func ParseTime(text string) (time.Time, bool) {
	const shape = "0000-00-00T00:00:00"
	text = strings.ToUpper(text)
	if len(text) <= len(shape) || strings.Contains(text, ",") {
		return time.Time{}, false
	}
	for i, want := range []byte(shape) {
		if is := text[i]; want == '0' && (is < '0' || is > '9') || want != '0' && is != want {
			return time.Time{}, false
		}
	}
	leap := text[17:19] == "60"
	if leap {
		text = text[:17] + "59" + text[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if leap && err == nil && t.UTC().Format("15:04") != "23:59" {
		return time.Time{}, false
	}
	return t, err == nil
}
