package budgets

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestACapIsReadExactly(t *testing.T) {
	for name, c := range map[string]struct {
		flag, text string
		want       int64
		why        string
	}{
		"whole dollars":                 {"usd", "5", 5_000_000, ""},
		"cents":                         {"usd", "2.50", 2_500_000, ""},
		"a millionth":                   {"usd", "0.000001", 1, ""},
		"zeros at the end":              {"usd", "1.0000000000000000000000", 1_000_000, ""},
		"zeros at the start":            {"usd", "00000000000000000000007", 7_000_000, ""},
		"less than a millionth":         {"usd", "0.0000001", 0, "it is finer than can be counted"},
		"the most":                      {"usd", "9223372036854.775807", math.MaxInt64, ""},
		"more than the most":            {"usd", "9223372036854.775808", 0, "it is more than can be counted: 9223372036854775808, and the most is 9223372036854775807"},
		"far more":                      {"usd", strings.Repeat("9", 4000), 0, "it is more than can be counted"},
		"no number":                     {"usd", "NaN", 0, "it is not a number"},
		"no end":                        {"usd", "+Inf", 0, "it is not a number"},
		"an exponent":                   {"usd", "1e9999999999", 0, "it is not a number"},
		"a fraction":                    {"usd", "1/3", 0, "it is not a number"},
		"a comma":                       {"usd", "2,50", 0, "it is not a number"},
		"digits of another script":      {"usd", "٥", 0, "it is not a number"},
		"nothing":                       {"usd", "", 0, "it is not a number"},
		"negative":                      {"usd", "-0.01", 0, "it is negative"},
		"zero":                          {"usd", "0.00", 0, "a cap of 0 would be none"},
		"none":                          {"usd", "none", 0, ""},
		"thousands of tokens":           {"tokens", "500k", 500_000, ""},
		"millions of tokens":            {"tokens", "2M", 2_000_000, ""},
		"a part of a million of tokens": {"output", "1.5M", 1_500_000, ""},
		"half a token":                  {"tokens", "0.5", 0, "it is finer than can be counted"},
		"too many tokens":               {"tokens", "9300000000G", 0, "it is more than can be counted: 9300000000000000000, and the most is 9223372036854775807"},
		"a unit alone":                  {"tokens", "k", 0, "it is not a number"},
		"a unit of iterations":          {"iterations", "5k", 0, "it is not a number"},
		"items":                         {"items", " 10 ", 10, ""},
		"a time":                        {"wall", "1h30m", int64(90 * time.Minute), ""},
		"no time":                       {"wall", "90", 0, "it is not a time"},
		"too long":                      {"wall", "9999999h", 0, "it is not a time"},
		"a negative time":               {"wall", "-1s", 0, "it is negative"},
		"a time of nothing":             {"wall", "0s", 0, "a cap of 0 would be none"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, why := parseCap(c.flag, c.text); why != c.why || why == "" && got != c.want {
				t.Errorf("parseCap(%s, %q) = %d, %q, want %d, %q", c.flag, c.text, got, why, c.want, c.why)
			}
		})
	}
}

func TestEveryAmountOfMoneyIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		text := rapid.SampledFrom([]string{"", "0", "000"}).Draw(t, "zeros")
		digits := []byte("0000000" + decimalOf(n))
		text += strings.TrimLeft(string(digits[:len(digits)-6]), "0") + "." + string(digits[len(digits)-6:])
		if strings.HasPrefix(text, ".") {
			text = "0" + text
		}
		if got, why := parseCap("usd", text); got != n || why != "" {
			t.Fatalf("parseCap(%q) = %d, %q, want %d", text, got, why, n)
		}
	})
}

func decimalOf(n int64) string {
	body, _ := json.Marshal(n)
	return string(body)
}

func FuzzParseCap(f *testing.F) {
	for _, seed := range []string{"5", "2.50", "2M", "1h30m", "none", "NaN", "-1", "1e9", "9223372036854775808", "0", "", ".", "1.", "k"} {
		for _, name := range capFlags {
			f.Add(name, seed)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		n, why := parseCap(name, text)
		if n < 0 || why == "" && n == 0 && strings.TrimSpace(text) != noCap {
			t.Errorf("parseCap(%q, %q) = %d, %q", name, text, n, why)
		}
	})
}
