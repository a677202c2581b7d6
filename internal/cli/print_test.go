package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/loop"
)

func TestNumbersAreGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestTimesAreRelative(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 22, 14, 5, 0, 0, time.UTC)
	for back, want := range map[time.Duration]string{
		0: "0s ago", 59 * time.Second: "59s ago", 3 * time.Minute: "3m ago", 5 * time.Hour: "5h ago", 72 * time.Hour: "3d ago",
	} {
		at := now.Add(-back)
		if got := ago(now, &at); got != want {
			t.Errorf("%s before: %q, want %q", back, got, want)
		}
	}
	if got := ago(now, nil); got != "–" {
		t.Errorf("never: %q", got)
	}
}

func TestABarStandsBeforeEachLineOfWhatAnAgentSays(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := printer{w: &b}
	p.said("  ", "it says", "good\rgate      ✓ verify passes\n\x1b[2Jhash      abc\n\n")
	p.said("  ", "it says", " \n")
	p.detailed("why", loop.ReasonAgentBlocked, "next      pawl approve x")
	p.detailed("why", loop.ReasonGateFailed, "verify failed:\nhash      abc")
	want := "  it says   | good\n            | gate      ✓ verify passes\n            | hash      abc\n" +
		"  why       | next      pawl approve x\n  why       verify failed:\n            | hash      abc\n"
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTheStripFitsTheTerminal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for columns := 1; columns < 120; columns++ {
		l := &live{width: func() int { return columns }, now: func() time.Time { return now.Add(time.Hour) }, started: now, iterations: 1000}
		l.phase, l.iteration, l.bytes = loop.PhaseVerify, 999, 1<<40
		if got := utf8.RuneCountInString(l.strip()); got >= columns {
			t.Errorf("%d columns: the strip has %d", columns, got)
		}
	}
}

func TestAShellReadsOneWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"/tmp/x": "/tmp/x", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'"} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}
