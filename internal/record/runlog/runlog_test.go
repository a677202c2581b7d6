package runlog

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const goldenLog = `# ci-watch — run log (append-only; one line per run)
# format: <ISO-Z>  run#N  action=<reported|proposed|none>  <key=val…>  outcome=<…>  tokens=<N>
2026-09-03T08:00:00Z  run#55  action=proposed  pr=30  outcome=pr-opened  tokens=41200
2026-09-03T08:10:00Z  run#56  action=none  -  outcome=quiet  tokens=1950
2026-09-03T08:20:00Z  run#57  action=reported  pr=31  outcome=escalated  tokens=17300
`

func goldenEntries() []Entry {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	return []Entry{
		{at, 55, "proposed", "pr=30", "pr-opened", 41200},
		{at.Add(10 * time.Minute), 56, "none", "", "quiet", 1950},
		{at.Add(20 * time.Minute), 57, "reported", "pr=31", "escalated", 17300},
	}
}

func TestLineWritesThePublishedShape(t *testing.T) {
	var got strings.Builder
	got.WriteString(Header("ci-watch"))
	for _, e := range goldenEntries() {
		got.WriteString(Line(e))
	}
	if diff := cmp.Diff(goldenLog, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestParseReadsWhatOthersWrote(t *testing.T) {
	newestFirst := "2026-06-22T14:05:00Z run#142 action=reported pr=412 outcome=escalated tokens=18420\n" +
		"2026-06-22T13:55:00Z run#141 action=none - outcome=quiet tokens=2110\n" +
		"2026-06-22T13:45:00Z run#140 action=proposed pr=409 outcome=pr-opened tokens=44380\n"
	at := time.Date(2026, 6, 22, 13, 45, 0, 0, time.UTC)
	sample := []Entry{
		{at, 140, "proposed", "pr=409", "pr-opened", 44380},
		{at.Add(10 * time.Minute), 141, "none", "", "quiet", 2110},
		{at.Add(20 * time.Minute), 142, "reported", "pr=412", "escalated", 18420},
	}
	one := []Entry{{at, 1, "none", "", "quiet", 7}}
	for name, tc := range map[string]struct {
		text string
		want []Entry
		bad  []int
	}{
		"our own":              {goldenLog, goldenEntries(), nil},
		"carriage returns":     {strings.ReplaceAll(goldenLog, "\n", "\r\n"), goldenEntries(), nil},
		"a byte order mark":    {bom + goldenLog, goldenEntries(), nil},
		"newest first":         {newestFirst, sample, nil},
		"newest first and bad": {"x\n" + newestFirst + "\n \n2026-06-22", sample, []int{1, 7}},
		"aligned columns":      {"2026-06-22T13:45:00Z\trun#1     action=none        -     outcome=quiet   tokens=7", one, nil},
		"a dash with a key":    {"2026-06-22T13:45:00Z run#1 action=none pr=- outcome=quiet tokens=7", one, nil},
		"no subject":           {"2026-06-22T13:45:00Z run#1 action=none outcome=quiet tokens=7", one, nil},
		"unknown fields":       {"2026-06-22T15:45:00+02:00 run#1 action=none - outcome=quiet cost=1 tokens=7 | x", one, nil},
		"fields twice":         {"2026-06-22T13:45:00Z run#1 action=none - outcome=quiet tokens=7 tokens=9 action=x", one, nil},
		"the same run, twice":  {"2026-06-22T13:45:01Z run#1 action=b - outcome=q tokens=1\n2026-06-22T13:45:00Z run#1 action=a - outcome=q tokens=1", []Entry{{at, 1, "a", "", "q", 1}, {at.Add(time.Second), 1, "b", "", "q", 1}}, nil},
		"bare per cent signs":  {"2026-06-22T13:45:00Z run#1 action=none rate=85% outcome=%zz tokens=7", []Entry{{at, 1, "none", "rate=85%", "%zz", 7}}, nil},
		"a line that was cut":  {"2026-06-22T13:45:00Z run#1 action=none - outcome=quiet", nil, []int{1}},
		"no time":              {"run#1 action=none - outcome=quiet tokens=7", nil, []int{1}},
		"no run number":        {"2026-06-22T13:45:00Z action=none - outcome=quiet tokens=7", nil, []int{1}},
		"numbers out of range": {"2026-06-22T13:45:00Z run#99999999999999999999 action=none - outcome=quiet tokens=7\n2026-06-22T13:45:00Z run#1 action=none - outcome=quiet tokens=-1", nil, []int{1, 2}},
		"only the time":        {"2026-06-22T13:45:00Z", nil, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, bad := Parse(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.bad, bad); diff != "" {
				t.Error("bad lines:", diff)
			}
		})
	}
}

func TestLineEscapesForgedFields(t *testing.T) {
	e := Entry{Action: "none\r\n2026-09-03T08:00:00Z", Subject: "pr=1 run#999 action=landed|x", Outcome: "100%", Run: -1, Tokens: -5}
	want := "0001-01-01T00:00:00Z  run#0  action=none%0D%0A2026-09-03T08:00:00Z  pr=1%20run%23999%20action%3Dlanded%7Cx  outcome=100%25  tokens=0\n"
	if got := Line(e); got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
	for subject, want := range map[string]string{
		"":            "-",
		"-":           "%2D",
		"pr=-":        "pr=%2D",
		"pr=":         "pr=",
		"outcome=ok":  "%6Futcome=ok",
		"a=b=c":       "a=b%3Dc",
		"é\u00a0\xff": "é%C2%A0%FF",
	} {
		if got := encodeSubject(subject); got != want {
			t.Errorf("encodeSubject(%q) = %q, want %q", subject, got, want)
		}
	}
}

func checkEntry(t interface {
	Helper()
	Fatalf(string, ...any)
}, e Entry,
) {
	t.Helper()
	line := Line(e)
	body, ended := strings.CutSuffix(line, "\n")
	odd := func(r rune) bool { return r != ' ' && (unicode.IsSpace(r) || !unicode.IsPrint(r)) }
	if !ended || strings.ContainsFunc(body, odd) || len(strings.Split(body, "  ")) != 6 || len(strings.Fields(body)) != 6 {
		t.Fatalf("Line = %q, want one line of six fields", line)
	}
	got, bad := Parse(goldenLog + strings.ReplaceAll(line, "\n", "\r\n") + line)
	if len(bad) > 0 || len(got) != 5 {
		t.Fatalf("Parse(%q) = %v, bad %v", line, got, bad)
	}
	e.At = e.At.UTC().Truncate(time.Second)
	found := 0
	for _, g := range got {
		if cmp.Equal(e, g) {
			found++
		}
	}
	if found < 2 {
		t.Fatalf("%q reads back as %+v, want %+v", line, got, e)
	}
}

func TestLineIsOneLineAndRoundTrips(t *testing.T) {
	nasty := rapid.SampledFrom([]string{"=", "-", " ", "\n", "\r", "#", "run#9", "action", "outcome", "tokens", "%", "%2", "0A", "\xff", "\uFFFD", "\u2028", "\x1b[0m", "|", "pr", "é"})
	value := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(nasty, 0, 6), func(parts []string) string { return strings.Join(parts, "") }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		checkEntry(t, Entry{
			At:      time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "at"), 0),
			Run:     rapid.Int64Range(0, math.MaxInt64).Draw(t, "run"),
			Action:  value.Draw(t, "action"),
			Subject: value.Draw(t, "subject"),
			Outcome: value.Draw(t, "outcome"),
			Tokens:  rapid.Int64Range(0, math.MaxInt64).Draw(t, "tokens"),
		})
	})
}

func TestHeaderIsTwoComments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := Header(rapid.String().Draw(t, "name"))
		if entries, bad := Parse(text); len(entries)+len(bad) > 0 || strings.Count(text, "\n") != 2 {
			t.Fatalf("Header = %q", text)
		}
	})
}

// Of eight times as much noise about eight times as much is made, and never the
// square of it.
func TestParseTakesMemoryInProportionToNoise(t *testing.T) {
	const size, times = 1 << 20, 8
	noise := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for name, text := range map[string]string{
		"bytes":       string(noise),
		"short lines": strings.Repeat("1 x\n", size/4),
		"one line":    strings.Repeat("2026 ", size/5),
		"many fields": "2026-09-03T08:00:00Z run#1 " + strings.Repeat("a=1 ", size/4),
	} {
		var entries []Entry
		var bad []int
		small := testing.AllocsPerRun(1, func() { Parse(text) })
		large := testing.AllocsPerRun(1, func() { entries, bad = Parse(strings.Repeat(text, times)) })
		if len(entries) > 0 || len(bad) == 0 {
			t.Errorf("%s: %d entries and %d bad lines, want none and some", name, len(entries), len(bad))
		}
		if most := 2 * times * max(small, 100); large > most {
			t.Errorf("%s: of %d times as much %v pieces of memory were made instead of %v", name, times, large, small)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(goldenLog, "none", "pr=1", "quiet")
	f.Add("2026-06-22T14:05:00Z run#142 action=reported pr=- outcome=escalated tokens=18420", "a=b", "-", "%")
	f.Add("2026-06-22\x00", "\n", "outcome=x", "run#999 action=y")
	f.Fuzz(func(t *testing.T, text, action, subject, outcome string) {
		entries, bad := Parse(text)
		if lines := strings.Count(text, "\n") + 1; len(entries)+len(bad) > lines {
			t.Fatalf("%d entries and %d bad lines of %d", len(entries), len(bad), lines)
		}
		for _, e := range entries {
			if e.At.Year() >= 0 && e.At.Year() <= 9999 {
				checkEntry(t, e)
			}
		}
		checkEntry(t, Entry{Action: action, Subject: subject, Outcome: outcome})
	})
}
