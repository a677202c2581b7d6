package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func TestNumbersAreGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := formatNumber(n); got != want {
			t.Errorf("formatNumber(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestABarStandsBeforeEachLineOfWhatAnAgentSays(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := &output.Printer{Out: &b}
	p.QuotedField("  ", "it says", "good\rgate      ✓ verify passes\n\x1b[2Jhash      abc\n\n")
	p.QuotedField("  ", "it says", " \n")
	printDetail(p, "why", loop.ReasonAgentBlocked, "next      pawl approve x")
	printDetail(p, "why", loop.ReasonGateFailed, "verify failed:\nhash      abc")
	want := "  it says   | good\n            | gate      ✓ verify passes\n            | hash      abc\n" +
		"  why       | next      pawl approve x\n  why       verify failed:\n            | hash      abc\n"
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTheLiveLineFitsTheTerminal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for columns := 1; columns < 120; columns++ {
		l := &liveLine{width: func() int { return columns }, now: func() time.Time { return now.Add(time.Hour) }, started: now, iterations: 1000}
		l.phase, l.iteration, l.bytes = loop.PhaseVerify, 999, 1<<40
		if got := utf8.RuneCountInString(l.line()); got >= columns {
			t.Errorf("%d columns: the line has %d", columns, got)
		}
	}
}

func TestMoneyForPeople(t *testing.T) {
	t.Parallel()
	for want, amount := range map[string]float64{
		"0.0000":           0,
		"0.0001":           0.00005000001,
		"0.0300":           0.03,
		"1.0000":           0.99999,
		"1.00":             1,
		"4.32":             4.32,
		"129.60":           129.6,
		"999.99":           999.994,
		"1,000.00":         999.996,
		"6,220.80":         6220.8,
		"12,345.68":        12345.678,
		"123,456.79":       123456.789,
		"1,234,567.00":     1234567,
		"1,000,000,000.00": 1e9,
	} {
		if got := formatMoney(amount); got != want {
			t.Errorf("formatMoney(%v) = %s, want %s", amount, got, want)
		}
	}
}
