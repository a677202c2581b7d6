package spine

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const golden = `# ci-watch — STATE
_Updated: 2026-09-03T08:20:00Z · run #57 · readiness 95/100_

## Priority   (act on these next)
- [P1] PR #31 red for 2h — author told

## Watch      (not yet actionable)
- PR #29 waits for review since 40m

## Noise      (seen + dismissed this run)
- PR #33 is a draft

---
_Source: cron · config: loop.config.yaml_
`

// collapsed is the sample as it was published, its white space collapsed.
const collapsed = "# <loop-name> — STATE\n" +
	"_Updated: 2026-06-22T14:05:00Z · run #142 · readiness 100/100_\n" +
	"## Priority (act on these next)\n" +
	"- [P1] PR #412 failing CI 3h — owner pinged\n" +
	"- [P2] dep `axios` patch 1.14.0→1.14.1 available, cooldown clears 2026-06-25\n" +
	"## Watch (not yet actionable)\n" +
	"- PR #408 awaiting review 1h\n" +
	"- flag `new-checkout` at 100% rollout 6d — cleanup candidate\n" +
	"## Noise (seen + dismissed this run)\n" +
	"- PR #410 draft — skip until ready\n" +
	"- dep `left-pad` major bump — escalates, not auto\n" +
	"---\n" +
	"_Source: .github/workflows/<loop>.yml · config: loop.config.yaml_\n"

func parse(tb testing.TB, text string) *State {
	tb.Helper()
	s, err := ParseState(text)
	if err != nil {
		tb.Fatalf("ParseState = %v, want a state, of\n%s", err, text)
	}
	return s
}

func texts(s *State, section Section) []string {
	var out []string
	for _, it := range s.Items(section) {
		out = append(out, it.Text)
	}
	return out
}

// lists are the texts of the three sections.
func lists(s *State) [3][]string {
	return [3][]string{texts(s, SectionPriority), texts(s, SectionWatch), texts(s, SectionNoise)}
}

func TestStateReadsTheWrittenShape(t *testing.T) {
	s := parse(t, golden)
	if s.Name != "ci-watch" || s.RunN != 57 || s.Readiness != 95 || !s.Updated.Equal(time.Date(2026, 9, 3, 8, 20, 0, 0, time.UTC)) {
		t.Errorf("header = %q %v run %d readiness %d", s.Name, s.Updated, s.RunN, s.Readiness)
	}
	want := []Item{{SectionPriority, 1, "PR #31 red for 2h — author told", "pr #31 red for 2h — author told"}}
	if diff := cmp.Diff(want, s.Items(SectionPriority)); diff != "" {
		t.Error(diff)
	}
	if s.String() != golden {
		t.Errorf("String changed the file:\n%s", cmp.Diff(golden, s.String()))
	}
}

func TestStateReadsTheCollapsedSample(t *testing.T) {
	s := parse(t, collapsed)
	if s.Name != "<loop-name>" || s.RunN != 142 || s.Readiness != 100 {
		t.Errorf("header = %q run %d readiness %d", s.Name, s.RunN, s.Readiness)
	}
	want := [3][]string{
		{"PR #412 failing CI 3h — owner pinged", "dep `axios` patch 1.14.0→1.14.1 available, cooldown clears 2026-06-25"},
		{"PR #408 awaiting review 1h", "flag `new-checkout` at 100% rollout 6d — cleanup candidate"},
		{"PR #410 draft — skip until ready", "dep `left-pad` major bump — escalates, not auto"},
	}
	if diff := cmp.Diff(want, lists(s)); diff != "" {
		t.Error(diff)
	}
	s.SetHeader(time.Date(2026, 6, 22, 14, 15, 0, 0, time.UTC), 143, 90)
	s.ReplaceLists([]string{"[P1] PR #412 failing CI 3h — owner pinged"}, want[1], want[2])
	again := strings.Replace(collapsed, "2026-06-22T14:05:00Z · run #142 · readiness 100/100", "2026-06-22T14:15:00Z · run #143 · readiness 90/100", 1)
	again = strings.Replace(again, "- [P2] dep `axios` patch 1.14.0→1.14.1 available, cooldown clears 2026-06-25\n", "", 1)
	if diff := cmp.Diff(again, s.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNewStateIsTheTemplate(t *testing.T) {
	want := `# dep-bump — STATE
_Updated: 0001-01-01T00:00:00Z · run #0 · readiness 100/100_

## Priority   (act on these next)
- (none yet)

## Watch      (not yet actionable)
- (none yet)

## Noise      (seen + dismissed this run)
- (none yet)

---
_Source: cron · config: loop.config.yaml_
`
	s := NewState("dep-bump", "cron")
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Error(diff)
	}
	if s.Name != "dep-bump" || !s.Updated.IsZero() || s.RunN != 0 || s.Readiness != 100 {
		t.Errorf("header = %q %v run %d readiness %d", s.Name, s.Updated, s.RunN, s.Readiness)
	}
	if got := lists(s); !cmp.Equal(got, [3][]string{}) {
		t.Errorf("items = %q, want none", got)
	}
	s.SetHeader(time.Date(2026, 9, 3, 10, 20, 0, 5, time.FixedZone("", 7200)), 57, 95)
	s.ReplaceLists([]string{"[P1] PR #31 red for 2h — author told"}, []string{"PR #29 waits for review since 40m"}, []string{"PR #33 is a draft"})
	if diff := cmp.Diff(strings.Replace(golden, "ci-watch", "dep-bump", 1), s.String()); diff != "" {
		t.Errorf("a filled template is not the published shape:\n%s", diff)
	}
}

func TestParseStateToleratesWhatPeopleType(t *testing.T) {
	one := [3][]string{{"a"}, {"b"}, {"c"}}
	for name, tc := range map[string]struct {
		text string
		want [3][]string
	}{
		"carriage returns":          {strings.ReplaceAll("# x — STATE\n## Priority\n- a\n## Watch\n- b\n## Noise\n- c\n", "\n", "\r\n"), one},
		"a byte order mark":         {"\uFEFF# x — STATE\n## Priority\n- a\n## Watch\n- b\n## Noise\n- c", one},
		"other headings' spacing":   {"#  x - State\n##Priority(now)\n- a\n##\tWATCH\n- b\n## noise — old stuff ##\n- c\n", one},
		"decorated headings":        {"# x: STATE (snapshot)\n## **Priority**\n- a\n## 👀 Watch:\n- b\n### Noise\n- c\n", one},
		"sections in another order": {"# x — STATE\n## Noise\n- c\n## Watch\n- b\n## Priority\n- a\n", one},
		"other bullets":             {"# x — STATE\n## Priority\n* a\n## Watch\n+ b\n## Noise\n -   c\n", one},
		"indented lists":            {"# x — STATE\n## Priority\n   - a\n## Watch\n\t- b\n## Noise\n      - c\n", one},
		"comments": {"<!-- # y — STATE -->\n# x — STATE <!-- c -->\n<!--\n## Priority\n- no\n-->\n## Priority <!-- c -->\n- <!-- c --> a <!-- c -->\n" +
			"<!-- - no -->\n## Watch\n<!-- - no\n- no\n\n- no --> no\n- b\n## Noise\n- c\n", one},
		"code fences":             {"# x — STATE\n## Priority\n- a\n````\n## Noise\n- no\n````\n## Watch\n- b\n  ~~~ sh\n- no\n  ~~~\n## Noise\n- c\n", one},
		"a fence in a line":       {"# x — STATE\n## Priority\n- a\n```x``` y\n## Watch\n- b\n## Noise\n- c\n```\n", one},
		"an open comment":         {"# x — STATE\n<!-- oops\n## Priority\n- a\n## Watch\n- b\n```\n## Noise\n- c\n", one},
		"free text and headings":  {"---\nkey: value\n---\nhello\n- no\n# x — STATE\n## Plan\n- no\n## Priority\ntext\n\n- a\n\ntext\n### Deeper\n- no\n## Watch\n- b\n---\n- no\n## Noise\n- c\n---\n- no\n", one},
		"lines below an item":     {"# x — STATE\n## Priority\n- a\n  more\nlazy\n\n  - deeper\n\n      code\n## Watch\n- b\n    ## Noise\n## Noise\n- c\n", one},
		"the word in a list":      {"# x — STATE\n## Priority\n- a\n### Watch out\n- no\n## Watch\n- b\n## Noise\n- c\n", one},
		"two headings of a kind":  {"# x — STATE\n## Priority\n- a\n## Watch\n- b\n## Noise\n## Watch\n- b2\n## Noise\n- c\n", [3][]string{{"a"}, {"b", "b2"}, {"c"}}},
		"placeholders":            {"# x — STATE\n## Priority\n- (none yet)\n## Watch\n* _(None yet)_\n## Noise\n-\n- [P1]\n- <!-- -->\n", [3][]string{}},
		"escapes in an item":      {"# x — STATE\n## Priority\n- \x1b[31ma\x1b[0m\x07\n## Watch\n- b\u202e\n## Noise\n- \x1b]8;;http://x\x1b\\c\rd\n", [3][]string{{"a"}, {"b"}, {"c d"}}},
		"no footer and no header": {"# STATE\n## Priority\n## Watch\n## Noise", [3][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, tc.text)
			if diff := cmp.Diff(tc.want, lists(s)); diff != "" {
				t.Error(diff)
			}
			if s.String() != tc.text {
				t.Errorf("String = %q, want %q", s.String(), tc.text)
			}
		})
	}
}

func TestParseStateReadsHeadersThatPeopleTyped(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 20, 0, 0, time.UTC)
	for line, want := range map[string]struct {
		at    time.Time
		run   int64
		ready int
	}{
		"_Updated: 2026-09-03T08:20:00Z · run #57 · readiness 95/100_":        {at, 57, 95},
		"**Updated:** 2026-09-03 10:20+0200, run 57, readiness: 95":           {at, 57, 95},
		"updated: 2026-09-03T08:20:00.5Z - Run#57":                            {at.Add(time.Second / 2), 57, -1},
		"_Updated: never · run #99999999999999999999 · readiness 400/100_":    {time.Time{}, 0, 100},
		"_Updated: 2026-99-03T08:20:00Z · run #-4 · readiness high_":          {time.Time{}, 0, -1},
		"_Updated: 2026-09-03 · run #1 · readiness 0/100_ and thanks, run #9": {time.Date(2026, 9, 3, 0, 0, 0, 0, time.UTC), 1, 0},
		"nothing": {time.Time{}, 0, -1},
	} {
		s := parse(t, "# x — STATE\n"+line+"\n## Priority\n## Watch\n## Noise\n")
		if !s.Updated.Equal(want.at) || s.RunN != want.run || s.Readiness != want.ready {
			t.Errorf("%q = %v %d %d, want %v", line, s.Updated, s.RunN, s.Readiness, want)
		}
	}
}

func TestParseStateRefusesWhatIsNoState(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		line int
	}{
		"nothing":            {"", 1},
		"no title":           {"## Priority\n## Watch\n## Noise\n", 3},
		"title in a comment": {"<!-- # x — STATE -->\n## Priority\n## Watch\n## Noise\n", 4},
		"half a file":        {golden[:strings.Index(golden, "## Noise")], 9},
		"no header left":     {"# ci-watch — STA", 1},
		"a NUL byte":         {"# x — STATE\n## Priority\n- \x00\n## Watch\n## Noise\n", 3},
		"Latin-1":            {"# x — STATE \uFFFD\n## Priority\n- caf\xe9\n## Watch\n## Noise\n", 3},
		"UTF-16":             {"\xff\xfe#\x00", 1},
		"too much":           {golden + strings.Repeat("\n", MaxState), 1},
	} {
		_, err := ParseState(tc.text)
		broken, ok := errors.AsType[*BrokenError](err)
		if !ok || broken.Line != tc.line {
			t.Errorf("%s: ParseState = %v, want a BrokenError of line %d", name, err, tc.line)
		}
	}
}

func TestParseStateMakesLittleOfNoise(t *testing.T) {
	noise := make([]byte, 10<<20)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise)
	printable := []byte(strings.Repeat("`#-~<!> \n", MaxState/9))
	rand.New(random).Shuffle(len(printable), func(i, j int) { printable[i], printable[j] = printable[j], printable[i] })
	for name, text := range map[string]string{
		"bytes":      string(noise),
		"one line":   strings.Repeat("a", 10<<20),
		"signs":      string(printable),
		"fences":     strings.Repeat("~~~ sh\n", MaxState/7),
		"comments":   strings.Repeat("<!--\n", MaxState/5),
		"items":      "## Priority\n" + strings.Repeat("- a\n", MaxState/4-10),
		"empty ones": strings.Repeat("\n", MaxState),
		"escapes":    "## Priority\n- " + strings.Repeat("\x1b[<!--", MaxState/6-10),
	} {
		var err error
		steps := testing.AllocsPerRun(1, func() { _, err = ParseState(text) })
		if _, ok := errors.AsType[*BrokenError](err); !ok {
			t.Errorf("%s: ParseState = %v, want a BrokenError", name, err)
		}
		t.Logf("%s: %v pieces of memory", name, steps)
		if len(text) > MaxState && steps > 100 {
			t.Errorf("%s: %v pieces of memory were made of what is too large to be read", name, steps)
		}
	}
}

func TestPriorityOrdersByTagAndThenByPlace(t *testing.T) {
	s := parse(t, "# x — STATE\n## Priority\n- plain\n- [P9] nine\n- [p2] two\n- [P1] one\n- [P2]two again\n- [P0] zero\n- [P10] ten\n- [P1] [P3] one again\n## Watch\n## Noise\n")
	var got []string
	for _, it := range s.Priority() {
		got = append(got, it.Text)
	}
	want := []string{"one", "one again", "two", "two again", "nine", "plain", "[P0] zero", "[P10] ten"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first := texts(s, SectionPriority)[0]; first != "plain" {
		t.Errorf("first in the file = %q, want it to stay %q", first, "plain")
	}
}

func FuzzParseState(f *testing.F) {
	for _, seed := range []string{
		golden, collapsed, NewState("x", "y").String(), strings.ReplaceAll(golden, "\n", "\r\n"), bom + golden,
		"# STATE\n## Priority\n  - a\n\n   b\n- c\n## Watch\n- (none yet)\n  - d\n## Noise\n<!--\n- e\n~~~\n", "", "\x00", "\xff",
	} {
		f.Add(seed, "[P1] new --> thing", "PR #29 waits for review since 40m")
	}
	f.Add(golden, "<!-- x", "```\n## Watch")
	f.Fuzz(func(t *testing.T, text, added, moved string) {
		s, err := ParseState(text)
		if err != nil {
			if _, ok := errors.AsType[*BrokenError](err); !ok {
				t.Fatalf("ParseState = %T, want a *BrokenError", err)
			}
			return
		}
		if s.String() != text {
			t.Fatalf("String = %q, want %q", s.String(), text)
		}
		all := s.Items(SectionPriority)
		for _, it := range append(all, s.Items(SectionNoise)...) {
			s.Move(it.Key, SectionWatch)
		}
		s.Add(SectionPriority, 0, added)
		s.ReplaceLists([]string{moved}, texts(s, SectionPriority), []string{added})
		s.SetHeader(time.Unix(0, 0), 1, 1)
		again := parse(t, s.String())
		if diff := cmp.Diff(lists(s), lists(again)); diff != "" {
			t.Fatalf("the file reads back differently:\n%s", diff)
		}
	})
}
