package spine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const handEdited = "\uFEFF<!-- owner: bob -->\r\n" +
	"# ci-watch — STATE\r\n" +
	"_Updated: 2026-09-03T08:20:00Z · run #57 · readiness 95/100_ <!-- keep -->\r\n" +
	"\r\n" +
	"Read the wiki first.\r\n" +
	"## priority: urgent\r\n" +
	"*  [p2]  Flaky test <!-- since May -->\r\n" +
	"   seen on arm only\r\n" +
	"\r\n" +
	"   - ask Ann\r\n" +
	"- PR #31\r\n" +
	"\r\n" +
	"A note of mine.\r\n" +
	"## Watch\r\n" +
	"- (none yet)\r\n" +
	"\r\n" +
	"## My plan\r\n" +
	"- do not touch\r\n" +
	"## Noise\r\n" +
	"- draft"

func TestEditsKeepEveryOtherByte(t *testing.T) {
	flaky := "*  [p2]  Flaky test <!-- since May -->\r\n   seen on arm only\r\n\r\n   - ask Ann\r\n"
	for name, tc := range map[string]struct {
		edit func(*State) bool
		old  []string // old, new, old, new …
	}{
		"an item comes": {
			func(s *State) bool { return s.Add(SectionPriority, 1, "  New\nthing ") },
			[]string{"- PR #31\r\n", "- PR #31\r\n- [P1] New thing\r\n"},
		},
		"the placeholder goes when an item comes": {
			func(s *State) bool { return s.Add(SectionWatch, 0, "New") },
			[]string{"- (none yet)\r\n", "- New\r\n"},
		},
		"an item moves with its lines": {
			func(s *State) bool { return s.Move("flaky test", SectionWatch) },
			[]string{flaky, "", "- (none yet)\r\n", flaky},
		},
		"an item moves behind a line without an end": {
			func(s *State) bool { return s.Move("flaky test", SectionNoise) },
			[]string{flaky, "", "- draft", "- draft\r\n" + flaky},
		},
		"the placeholder comes when the last item goes": {
			func(s *State) bool { return s.Remove("draft") },
			[]string{"- draft", "- (none yet)\r\n"},
		},
		"the header changes": {
			func(s *State) bool { s.SetHeader(time.Unix(1788500000, 0), 58, 120); return true },
			[]string{"2026-09-03T08:20:00Z · run #57 · readiness 95/100", "2026-09-04T05:33:20Z · run #58 · readiness 100/100"},
		},
		"a report names all again": {
			func(s *State) bool {
				return s.ReplaceLists([]string{"pr #31", "[P1] FLAKY  test", "- flaky test"}, nil, []string{"draft"}) == 0
			},
			[]string{"*  [p2]  Flaky", "*  [P1] Flaky"},
		},
		"a report without tags leaves tags": {
			func(s *State) bool {
				return s.ReplaceLists([]string{"Flaky test", "PR #31"}, nil, []string{"draft"}) == 0
			},
			nil,
		},
		"a report changes the lists": {
			func(s *State) bool {
				return s.ReplaceLists([]string{"[P3] draft", "New"}, []string{"Flaky test", "draft"}, nil) == 0
			},
			[]string{flaky, "", "- PR #31\r\n", "- [P3] draft\r\n- New\r\n", "- (none yet)\r\n", flaky, "## Noise\r\n- draft", "## Noise\r\n- (none yet)\r\n"},
		},
		"a note comes below what belongs to an item, in one line": {
			func(s *State) bool { s.SetNote("flaky test", 58, "no\n# key"); return true },
			[]string{"   - ask Ann\r\n", "   - ask Ann\r\n  - escalated in run #58: no # key\r\n"},
		},
		"a note comes below a line without an end": {
			func(s *State) bool { s.SetNote("draft", 58, ""); return true },
			[]string{"- draft", "- draft\r\n  - escalated in run #58\r\n"},
		},
		"a newer note takes the place of an older one and moves along": {
			func(s *State) bool {
				s.SetNote("pr #31", 57, "old")
				s.SetNote("pr #31", 58, "new")
				return s.Move("pr #31", SectionWatch)
			},
			[]string{"- PR #31\r\n", "", "- (none yet)\r\n", "- PR #31\r\n  - escalated in run #58: new\r\n"},
		},
		"a note goes":               {func(s *State) bool { s.SetNote("flaky test", 57, "old"); s.SetNote("flaky test", 0, ""); return true }, nil},
		"nobody's note":             {func(s *State) bool { s.SetNote("nobody", 58, "why"); return true }, nil},
		"nothing is there to move":  {func(s *State) bool { return !s.Move("nobody", SectionNoise) }, nil},
		"an item stays where it is": {func(s *State) bool { return !s.Move("draft", SectionNoise) }, nil},
		"no such section":           {func(s *State) bool { return !s.Move("draft", "Plan") && !s.Add("Plan", 0, "x") }, nil},
		"nothing is there to remove": {
			func(s *State) bool { return !s.Remove("(none yet)") && !s.Remove("") && !s.Remove("do not touch") }, nil,
		},
		"a known item is not added": {func(s *State) bool { return !s.Add(SectionWatch, 0, "DRAFT") }, nil},
		"nothing is not added": {
			func(s *State) bool {
				return !s.Add(SectionWatch, 0, "- [P1] \x1b[0m <!-- x -->") && !s.Add(SectionWatch, 1, "(none yet)")
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, handEdited)
			if !tc.edit(s) {
				t.Error("the edit does not report what it did")
			}
			want := strings.NewReplacer(tc.old...).Replace(handEdited)
			if diff := cmp.Diff(want, s.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetHeaderPutsAMissingLineUnderTheTitle(t *testing.T) {
	s := parse(t, "## Priority\n## Watch\n## Noise\n# x — STATE")
	s.SetHeader(time.Unix(0, 0), -3, -1)
	want := "## Priority\n## Watch\n## Noise\n# x — STATE\n_Updated: 1970-01-01T00:00:00Z · run #0 · readiness 0/100_\n"
	if s.String() != want || s.RunN != 0 || s.Readiness != 0 {
		t.Errorf("String = %q, want %q", s.String(), want)
	}
}

func TestItemTextCannotBreakTheStructure(t *testing.T) {
	for text, want := range map[string]string{
		"a\n## Watch\n- b":              "a ## Watch - b",
		"## Noise":                      "## Noise",
		"---":                           "---",
		"- - [P2] - deep":               "deep",
		"\x1b[2J\x1b]0;title\x07gone\r": "gone",
		"a\x00b\u2028c\u0085d":          "a b c d",
		"pay\u202eload\u200b":           "payload",
		"👩\u200d💻 works":                "👩\u200d💻 works",
		"<!-- hidden":                   "<! -- hidden",
		"x <!-- gone --> y --> z":       "x y → z",
		"<!--->":                        "<! -→",
		"bad \xff byte":                 "bad \uFFFD byte",
		"```":                           "```",
	} {
		s := parse(t, golden)
		if !s.Add(SectionWatch, 0, text) {
			t.Errorf("Add(%q) added nothing", text)
			continue
		}
		again := parse(t, s.String())
		if got := texts(again, SectionWatch); got[len(got)-1] != want {
			t.Errorf("Add(%q) reads back as %q, want %q", text, got, want)
		}
		if got, want := strings.Count(s.String(), "\n"), strings.Count(golden, "\n")+1; got != want {
			t.Errorf("Add(%q) makes %d lines, want %d", text, got, want)
		}
	}
}

func TestItemsInAFileWithAnOpenCommentMoveHarmlessly(t *testing.T) {
	s := parse(t, "# x — STATE\n## Priority\n- a\n## Watch\n- b <!-- c -->\n  <!-- c -->\n  ```\n## Noise\n- d --> e\n<!-- open\n")
	if !s.Move("b", SectionPriority) || !s.Move("b", SectionNoise) {
		t.Fatal("b does not move")
	}
	want := "# x — STATE\n## Priority\n- a\n## Watch\n- (none yet)\n## Noise\n- d --> e\n- b\n  \\<!-- c --\\>\n  \\```\n<!-- open\n"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNoEditMakesAFileThatIsTooBig(t *testing.T) {
	s := NewState("x", "y")
	long := make([]string, 3000)
	for i := range long {
		long[i] = strings.Repeat("é", 490) + string(rune('a'+i%26)) + strings.Repeat("x", i/26%9) + strings.Repeat("y", i/234)
	}
	left := s.ReplaceLists(long, nil, nil)
	if left == 0 || s.Add(SectionWatch, 0, strings.Repeat("z", 500)) && len(s.String()) > MaxState {
		t.Errorf("%d entries left out of a file of %d bytes", left, len(s.String()))
	}
	parse(t, s.String())
}

// handLines are what people write into a STATE.md; each is made unique by its
// number.
var handLines = []string{
	"- [P2] item N", "- item N", "* item N", " - item N", "  - item N", "\t+ item N", "- item N <!-- n -->",
	"", "", "  more N", "lazy N", "    deep N", "- (none yet)", "  - sub N", "   - sub N",
	"<!-- note N -->", "  <!-- note N -->", "<!-- a N\n- b N\n## Watch\n-->", "```\n## Noise N\n```", "  ~~~ N\n- x N\n~~~",
	"### Heading N", "## Other N", "---", "<!-- open N", "``` N", "x --> N", "1. one N", "-", "[P1] N", "# title N",
	"## Watch N", "## Noise N", "## Priority N", "### Watch N",
}

func drawState(t *rapid.T) string {
	n := 0
	free := rapid.Custom(func(t *rapid.T) string {
		n++
		line := rapid.SampledFrom(handLines).Draw(t, "line")
		return strings.ReplaceAll(line, "N", "n"+strings.Repeat("i", n%5)+string(rune('a'+n%26))) + "\n"
	})
	some := func() string {
		return strings.Join(rapid.SliceOfN(free, 0, 8).Draw(t, "lines"), "")
	}
	text := some() + "# x — STATE\n" + rapid.SampledFrom([]string{"", headerText(time.Unix(0, 0), 5, 50) + "\n"}).Draw(t, "header")
	for _, section := range rapid.Permutation(sections).Draw(t, "order") {
		text += some() + "## " + string(section) + "\n" + some()
	}
	if rapid.Bool().Draw(t, "cut") {
		text = strings.TrimSuffix(text, "\n")
	}
	if rapid.Bool().Draw(t, "crlf") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

func mayParse(t *rapid.T, text string) *State {
	s, err := ParseState(text)
	if err != nil {
		t.Skip("a comment or fence hides a section")
	}
	return s
}

func TestReadingAndWritingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawState(t)
		s := mayParse(t, text)
		if s.String() != text {
			t.Fatalf("String = %q, want %q", s.String(), text)
		}
		plain := mayParse(t, strings.ReplaceAll(text, "\r", ""))
		marked := mayParse(t, bom+text)
		for _, other := range []*State{plain, marked} {
			if diff := cmp.Diff(lists(s), lists(other)); diff != "" || !other.Updated.Equal(s.Updated) || other.RunN != s.RunN {
				t.Fatalf("line ends or a byte order mark change what is read:\n%s", diff)
			}
		}
		if marked.String() != bom+text {
			t.Fatal("the byte order mark is lost")
		}
	})
}

// ownLines counts the lines of a file without those that the state may take
// away or change: the lines of the given items, placeholders and the header.
func ownLines(s *State, gone func(part) bool) map[string]int {
	lines := make(map[string]int)
	skip := map[int]bool{s.header: true}
	for _, p := range s.parts {
		for i := p.start; i < p.end && (gone(p) || p.empty && p.end-p.start == 1); i++ {
			skip[i] = true
		}
	}
	for i, line := range s.lines {
		if !skip[i] {
			lines[unescaped.Replace(strings.Trim(strings.TrimSpace(line), "-*+ \t"))]++
		}
	}
	return lines
}

// unescaped undoes what may happen to a line that moves in a file with an open
// comment: its comments go, its markers are escaped.
var unescaped = strings.NewReplacer(`\`, "", " <!-- n -->", "")

func TestEditingNeverLosesAHandWrittenLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mayParse(t, drawState(t))
		var keys []string
		for _, p := range s.parts {
			if !p.empty && !slices.Contains(keys, p.Key) {
				keys = append(keys, p.Key)
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			key := rapid.SampledFrom(append(keys, "nobody")).Draw(t, "key")
			section := rapid.SampledFrom(sections).Draw(t, "section")
			gone := func(p part) bool { return false }
			before, wanted := ownLines(s, gone), map[string]Section{}
			for _, p := range s.parts {
				if !p.empty {
					wanted[p.Key] = p.Section
				}
			}
			dup := len(wanted) < len(slices.DeleteFunc(slices.Clone(s.parts), func(p part) bool { return p.empty }))
			switch rapid.IntRange(0, 4).Draw(t, "edit") {
			case 4:
				s.SetNote(key, rapid.Int64Range(0, 2).Draw(t, "run"), rapid.String().Draw(t, "why"))
				maps.DeleteFunc(before, func(line string, _ int) bool { return strings.HasPrefix("- "+line, noteStart) })
			case 0:
				text := rapid.String().Draw(t, "text")
				if s.Add(section, rapid.IntRange(0, 9).Draw(t, "priority"), text) {
					wanted[ItemKey(text)] = section
				}
			case 1:
				if s.Move(key, section); wanted[key] != "" {
					wanted[key] = section
				}
			case 2:
				before = ownLines(s, func(p part) bool { return p.hasKey(key) })
				s.Remove(key)
				delete(wanted, key)
			case 3:
				s.SetHeader(time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "at"), 0), 7, 70)
			}
			after := ownLines(s, gone)
			for line, n := range before {
				if after[line] < n {
					t.Fatalf("line %q stands %d times, want %d, in\n%s", line, after[line], n, s)
				}
			}
			again := mayParse(t, s.String())
			if diff := cmp.Diff(lists(s), lists(again)); diff != "" {
				t.Fatalf("the file reads back differently:\n%s\n%s", diff, s)
			}
			got := map[string]Section{}
			for _, p := range s.parts {
				if !p.empty {
					got[p.Key] = p.Section
				}
			}
			if diff := cmp.Diff(wanted, got); diff != "" && !dup {
				t.Fatalf("items stand elsewhere:\n%s\n%q", diff, s)
			}
		}
	})
}

func TestReplaceMakesTheListsOfTheReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mayParse(t, drawState(t))
		known := append(append(texts(s, SectionPriority), texts(s, SectionWatch)...), texts(s, SectionNoise)...)
		entry := rapid.OneOf(rapid.SampledFrom(append(known, "new")), rapid.String())
		report := [3][]string{}
		for i := range report {
			report[i] = rapid.SliceOfN(entry, 0, 5).Draw(t, "list")
		}
		listed := make(map[string]bool)
		for _, it := range wantedItems(report[0], report[1], report[2]) {
			listed[it.Key] = true
		}
		before := ownLines(s, func(p part) bool { return !p.empty })
		if left := s.ReplaceLists(report[0], report[1], report[2]); left != 0 {
			t.Fatalf("%d entries left out of a small file", left)
		}
		seen := make(map[string]bool)
		for i, section := range sections {
			var want []string
			for _, text := range report[i] {
				if key := ItemKey(text); key != "" && !seen[key] {
					seen[key] = true
					want = append(want, key)
				}
			}
			var got []string
			for _, it := range s.Items(section) {
				got = append(got, it.Key)
			}
			slices.Sort(want)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(want, got) {
				t.Fatalf("%s = %q, want %q, in\n%s", section, got, want, s)
			}
			shown := slices.ContainsFunc(s.parts, func(p part) bool { return p.Section == section && p.empty })
			if len(got) == 0 && !shown {
				t.Fatalf("%s is empty without a placeholder:\n%s", section, s)
			}
		}
		after := ownLines(s, func(part) bool { return false })
		for line, n := range before {
			if after[line] < n {
				t.Fatalf("free line %q stands %d times, want %d, in\n%s", line, after[line], n, s)
			}
		}
		once := s.String()
		s.ReplaceLists(report[0], report[1], report[2])
		if s.String() != once {
			t.Fatalf("the same report changes the file again:\n%s", cmp.Diff(once, s.String()))
		}
	})
}

func TestItemTextIsCleanOnceAndForAll(t *testing.T) {
	nasty := rapid.SampledFrom([]string{"<!--", "-->", "--", ">", "\x1b[", "\u009b", "m", "- ", "[P3]", " ", "\n", "a", "\u200b", "<!", "\xff", "…"})
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(nasty), func(parts []string) string { return strings.Join(parts, "") }))
	rapid.Check(t, func(t *rapid.T) {
		in := text.Draw(t, "text") + strings.Repeat(text.Draw(t, "again"), rapid.IntRange(0, 100).Draw(t, "n"))
		priority, out := cleanItem(in)
		if tag, again := cleanItem(out); again != out || tag != 0 {
			t.Fatalf("clean(%q) = %q, then %q", in, out, again)
		}
		if tag, again := cleanItem(strings.TrimPrefix(itemLine("", priority, out), "-")); again != out || tag != priority {
			t.Fatalf("%d %q is written as %q and read as %d %q", priority, out, itemLine("", priority, out), tag, again)
		}
		hidden := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u202e' }
		if strings.ContainsFunc(out, hidden) || utf8.RuneCountInString(out) > maxText || !utf8.ValidString(out) {
			t.Fatalf("clean(%q) = %q", in, out)
		}
	})
}

func TestNewStateTakesAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewState(rapid.String().Draw(t, "name"), rapid.String().Draw(t, "source"))
		if got := strings.Count(s.String(), "\n"); got != 14 {
			t.Fatalf("%d lines, want 14:\n%s", got, s)
		}
		name := rapid.StringMatching(`[a-z0-9]+(-[a-z0-9]+)*`).Draw(t, "kebab")
		if got := NewState(name, "").Name; got != name {
			t.Fatalf("Name = %q, want %q", got, name)
		}
	})
}
