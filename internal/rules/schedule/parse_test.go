package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseReadsIntervals(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1m": time.Minute, "10m": 10 * time.Minute, " 6h ": 6 * time.Hour, "1d": 24 * time.Hour,
		"1d12h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1w2d3h4m": 9*24*time.Hour + 3*time.Hour + 4*time.Minute,
		"90m": 90 * time.Minute, "010m": 10 * time.Minute, "1d0h": 24 * time.Hour,
	} {
		if got, ok := mustParse(t, text).Interval(); !ok || got != want {
			t.Errorf("%q = %v, want %v", text, got, want)
		}
	}
}

func TestParseRefusesWithTheFieldAndTheFix(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "write an interval",
		"0m":                     "the shortest is 1m",
		"0d0h":                   "the shortest is 1m",
		"30s":                    "seconds are too short",
		"1m30s":                  "seconds are too short",
		"12h1d":                  "longest first",
		"1.5h":                   "whole numbers",
		"-5m":                    "whole numbers",
		"+5m":                    "whole numbers",
		"h":                      "whole numbers",
		"10":                     "whole numbers",
		"10M":                    "whole numbers",
		"1h1h":                   "whole numbers",
		"1000000d":               "whole numbers",
		"99999d":                 "longer than ten years",
		"520w99d":                "longer than ten years",
		"whenever":               "whole numbers",
		"* * * * * *":            "6 fields; write five",
		"0 0 1 1 * 1000000":      "6 fields; write five",
		"* * * *":                "4 fields; write five",
		"@every 0s":              "write the interval alone",
		"@every 1ns":             "write the interval alone",
		"@reboot":                "unknown",
		"0 0 31 2 *":             "day-of-month: never fires",
		"0 0 30 2 *":             "day-of-month: never fires",
		"0 0 31 4,6,9,11 *":      "day-of-month: never fires",
		"60 * * * *":             "minute: 60 is not from 0 to 59",
		"* 24 * * *":             "hour: 24 is not from 0 to 23",
		"* * 0 * *":              "day-of-month: 0 is not from 1 to 31",
		"* * * 13 *":             "month: 13 is not from 1 to 12",
		"* * * * 8":              "day-of-week: 8 is not from 0 to 7",
		"*/0 * * * *":            "minute: step /0",
		"*/90 * * * *":           "minute: step /90: the field has only 60 values",
		"*/x * * * *":            "minute: step /X",
		"0 22-2 * * *":           "hour: 22-2 runs backwards: write 22-23,0-2",
		"0 0 * * FRI-MON":        "day-of-week: FRI-MON runs backwards: write FRI-6,0-MON",
		"1,,2 * * * *":           `minute: "" is not a number`,
		"** * * * *":             `minute: "**" is not a number`,
		"? * * * *":              `minute: "?" is not a number`,
		"0 0 * FOO *":            `month: "FOO" is neither a number from 1 to 12 nor a name`,
		"0 0 * * MONDAY":         "day-of-week",
		"0 0 * * 1#6":            "the number after # is 1 to 5",
		"0 0 * * L":              "name the weekday of L",
		"0 0 L-3 * *":            "day-of-month",
		"H(5) * * * *":           "write H, H/15 or H(0-29)",
		"H(0-99) * * * *":        "minute: 99 is not from 0 to 59",
		"HOUR * * * *":           "write H, H/15 or H(0-29)",
		strings.Repeat("*", 300): "longer than 256 bytes",
	} {
		c, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want an error with %q", text, c, want)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %q in it", text, err, want)
		}
	}
}

func TestWordsStandForExpressions(t *testing.T) {
	after := time.Date(2026, 5, 17, 13, 14, 15, 0, time.UTC)
	for word, expression := range macros {
		got, want := mustParse(t, word).Next(after, nil), mustParse(t, expression).Next(after, nil)
		if !got.Equal(want) {
			t.Errorf("%s fires at %s, %s at %s", word, got, expression, want)
		}
	}
}

func TestHashSpreadsAFleetAndIsStable(t *testing.T) {
	minutes := map[int]int{}
	after := time.Date(2026, 5, 17, 0, 0, 0, 0, time.UTC)
	for i := range 600 {
		key := fmt.Sprintf("loop-%d", i)
		c, err := ParseFor("H H(1-3) * * *", key)
		if err != nil {
			t.Fatal(err)
		}
		at := c.Next(after, nil)
		if again, _ := ParseFor("H H(1-3) * * *", key); again != c {
			t.Fatalf("%s is read twice in two ways", key)
		}
		if at.Hour() < 1 || at.Hour() > 3 {
			t.Fatalf("%s fires at %s, want hours 1 to 3", key, at)
		}
		minutes[at.Minute()]++
	}
	if len(minutes) < 50 {
		t.Errorf("600 loops use %d of 60 minutes", len(minutes))
	}
}

func TestHashWithAStepKeepsTheStep(t *testing.T) {
	c, err := ParseFor("H/15 * * * *", "nightly")
	if err != nil {
		t.Fatal(err)
	}
	at := c.Next(time.Unix(0, 0), nil)
	for range 20 {
		next := c.Next(at, nil)
		if next.Sub(at) != 15*time.Minute {
			t.Fatalf("from %s to %s, want 15 minutes", at, next)
		}
		at = next
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range append([]string{
		"10m", "1d12h", "2w", "0s", "@daily", "@every 0s", "* * * * * *", "0 0 31 2 *", "0 9 L * *", "0 9 * * 7",
		"H H * * *", "H(0-29)/10 * * * *", "0 0 * * 1#5", "0 0 * * FRIL", "*/0 * * * *", "1-2-3 * * * *", "1000000d",
	}, patterns...) {
		f.Add(seed, int64(1_700_000_000))
	}
	berlin := load(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		c, err := ParseFor(text, "key")
		if err != nil {
			if c != (Cadence{}) {
				t.Fatalf("%q is refused (%v) and gives %v", text, err, c)
			}
			return
		}
		after := time.Unix(unix%8_000_000_000, 0)
		next := c.Next(after, berlin)
		if !next.After(after) {
			t.Fatalf("%q: Next(%s) = %s", text, after, next)
		}
		if again, err := ParseFor(c.String(), "key"); err != nil || again != c {
			t.Fatalf("%q is not read again as itself: %v", c, err)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	loc := load(b, "Europe/Berlin")
	for _, text := range []string{"10m", "*/5 * * * *", "30 2 * * 1-5", "0 0 29 2 *"} {
		b.Run(text, func(b *testing.B) {
			c := mustParse(b, text)
			at := time.Date(2026, 3, 1, 0, 0, 0, 0, loc)
			b.ReportAllocs()
			for b.Loop() {
				at = c.Next(at, loc)
				if at.Year() > 2200 {
					at = time.Date(2026, 3, 1, 0, 0, 0, 0, loc)
				}
			}
		})
	}
}

func TestAttack130HostileCadencesAreRefused(t *testing.T) {
	for _, text := range []string{
		"* * * * * *", "0 0 31 2 *", "@every 0s", "@every 1ns", "0 0 1 1 * 1000000", "1000000d", "0m", "1s", "1ns",
		strings.Repeat("1,", 1_000_000) + "1 * * * *", "*/1000000 * * * *", "99999999999999999999m",
	} {
		if c, err := Parse(text); err == nil {
			t.Errorf("Parse(%.40q) = %v, want an error", text, c)
		}
	}
}
