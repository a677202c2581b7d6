package schedule

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	rateBegins = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	rateEnds   = time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestPerDayOfKnownCadences(t *testing.T) {
	for text, want := range map[string]*big.Rat{
		"10m":             big.NewRat(144, 1),
		"5m":              big.NewRat(288, 1),
		"7m":              big.NewRat(1440, 7),
		"1m":              big.NewRat(1440, 1),
		"6h":              big.NewRat(4, 1),
		"5h":              big.NewRat(24, 5),
		"1d":              big.NewRat(1, 1),
		"3d":              big.NewRat(1, 3),
		"1d12h":           big.NewRat(2, 3),
		"2w":              big.NewRat(1, 14),
		"3660d":           big.NewRat(1, 3660),
		"* * * * *":       big.NewRat(1440, 1),
		"*/10 * * * *":    big.NewRat(144, 1),
		"*/15 * * * *":    big.NewRat(96, 1),
		"*/7 * * * *":     big.NewRat(9*24, 1), // Minutes 0 to 56; the hour begins anew.
		"17 * * * *":      big.NewRat(24, 1),
		"0 9 * * *":       big.NewRat(1, 1),
		"@hourly":         big.NewRat(24, 1),
		"@weekly":         big.NewRat(209, 1461),
		"0 9 * * 1-5":     big.NewRat(1043, 1461),
		"@monthly":        big.NewRat(48, 1461),
		"@yearly":         big.NewRat(4, 1461),
		"0 0 L * *":       big.NewRat(48, 1461),
		"0 0 29 2 *":      big.NewRat(1, 1461),
		"0 0 31 * *":      big.NewRat(28, 1461),
		"0 12 29 2 */7":   big.NewRat(0, 1), // 29 February 2028 is a Tuesday.
		"0,30 9-17 1 1 *": big.NewRat(72, 1461),
	} {
		t.Run(text, func(t *testing.T) {
			want, _ := want.Float64()
			if got := mustParse(t, text).PerDay(); got != want {
				t.Errorf("PerDay = %v, want %v", got, want)
			}
		})
	}
}

func TestTheZeroCadenceNeverFiresOnAnyDay(t *testing.T) {
	if got := (Cadence{}).PerDay(); got != 0 {
		t.Errorf("PerDay = %v, want 0", got)
	}
}

func TestPerDayIgnoresTheAnchor(t *testing.T) {
	c := mustParse(t, "90m")
	if got := c.Anchored(time.Unix(12345, 678)).PerDay(); got != 16 || got != c.PerDay() {
		t.Errorf("PerDay = %v, want 16 with and without an anchor", got)
	}
}

func TestPerDayAgreesWithEveryMinuteOfFourYears(t *testing.T) {
	for _, text := range patterns {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c, o := mustParse(t, text), newOracle(text)
			if got, want := c.PerDay(), o.perDay(); got != want {
				t.Errorf("PerDay = %v, and the oracle counts %v", got, want)
			}
			if got, want := c.PerDay(), perDayByNext(c); got != want {
				t.Errorf("PerDay = %v, and Next walks %v", got, want)
			}
		})
	}
}

func TestPerDayAgreesWithEveryMinuteForRandomExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawExpression(t)
		c, err := Parse(text)
		if err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				t.Fatalf("Parse(%q): %v", text, err)
			}
			t.Skip("impossible date")
		}
		o := newOracle(text)
		if got, want := c.PerDay(), o.perDay(); got != want {
			t.Fatalf("%s: PerDay = %v, and the oracle counts %v", text, got, want)
		}
	})
}

// perDay asks for every minute of the four years.
func (o *oracle) perDay() float64 {
	var minutes [60]bool
	for m := range minutes {
		minutes[m] = o.sets[0][m]
	}
	fired, days := 0, 0
	for at := rateBegins; at.Before(rateEnds); at = at.AddDate(0, 0, 1) {
		days++
		date := o.matchesDay(at)
		for h := range 24 {
			hour := o.sets[1][h]
			for m := range 60 {
				if date && hour && minutes[m] {
					fired++
				}
			}
		}
	}
	return float64(fired) / float64(days)
}

// perDayByNext walks all firings of the four years.
func perDayByNext(c Cadence) float64 {
	fired := 0
	for at := c.Next(rateBegins.Add(-1), nil); at.Before(rateEnds) && !at.IsZero(); at = c.Next(at, nil) {
		fired++
	}
	return float64(fired) / (rateEnds.Sub(rateBegins).Hours() / 24)
}

func BenchmarkPerDay(b *testing.B) {
	for _, text := range []string{"* * * * *", "30 2 */2 * 7", "10m"} {
		c := mustParse(b, text)
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				c.PerDay()
			}
		})
	}
}
