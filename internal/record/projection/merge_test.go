package projection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawText draws texts of few different lines, so that many are alike, with
// and without a last line feed.
var drawText = rapid.Custom(func(t *rapid.T) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "- (none yet)\n", "a\r\n"}), 0, 8).Draw(t, "lines")
	return strings.Join(lines, "") + rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "last")
})

func TestAMergeWithOneChangeIsThatChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, x := drawText.Draw(t, "base"), drawText.Draw(t, "x")
		if got, _ := mergeLines(b, b, x); got != x {
			t.Fatalf("merge(b, b, x) = %q, want %q", got, x)
		}
		if got, _ := mergeLines(b, x, b); got != x {
			t.Fatalf("merge(b, x, b) = %q, want %q", got, x)
		}
		if got, _ := mergeLines(b, x, x); got != x {
			t.Fatalf("merge(b, x, x) = %q, want %q", got, x)
		}
	})
}

// drawLines draws texts in which no line stands twice, in any order.
var drawLines = rapid.Custom(func(t *rapid.T) string {
	lines := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-h]`), 0, 8, rapid.ID[string]).Draw(t, "lines")
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + rapid.SampledFrom([]string{"\n", "\n", ""}).Draw(t, "last")
})

// A process that dies between the rename and the row of it merges again. Where
// lines stand twice a diff can take one for the other, and then this does not
// hold: a line that we inserted may be inserted once more.
func TestMergingAgainChangesNothingWhereNoLineStandsTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, o, th := drawLines.Draw(t, "base"), drawLines.Draw(t, "ours"), drawLines.Draw(t, "theirs")
		once, _ := mergeLines(b, o, th)
		if twice, _ := mergeLines(b, o, once); twice != once {
			t.Fatalf("merge(%q, %q, %q) = %q, and merged again %q", b, o, th, once, twice)
		}
	})
}

// hunk replaces lines of a base by new ones.
type hunk struct {
	at, end int
	lines   []string
}

// drawHunks draws changes of a base of n lines, each at least one untouched
// line away from the one before it. Whose it is alternates at random.
func drawHunks(t *rapid.T, n int) (ours, theirs []hunk) {
	for at := 0; at <= n; {
		at += rapid.IntRange(0, 3).Draw(t, "gap")
		if at > n {
			break
		}
		who, to := "theirs", &theirs
		if rapid.Bool().Draw(t, "ours") {
			who, to = "ours", &ours
		}
		h := hunk{at: at, end: min(n, at+rapid.IntRange(0, 2).Draw(t, "deleted"))}
		for i := range rapid.IntRange(0, 2).Draw(t, "inserted") {
			h.lines = append(h.lines, fmt.Sprintf("%s at %d, line %d\n", who, at, i))
		}
		*to = append(*to, h)
		at = h.end + 1
	}
	return ours, theirs
}

func changed(base []string, hunks []hunk) string {
	var out strings.Builder
	at := 0
	for _, h := range hunks {
		out.WriteString(strings.Join(base[at:h.at], "") + strings.Join(h.lines, ""))
		at = h.end
	}
	return out.String() + strings.Join(base[at:], "")
}

func TestChangesThatDoNotTouchAreBothKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var base []string
		for i := range rapid.IntRange(0, 15).Draw(t, "lines") {
			base = append(base, fmt.Sprintf("base %d\n", i))
		}
		ours, theirs := drawHunks(t, len(base))
		both := append(slices.Clone(ours), theirs...)
		slices.SortFunc(both, func(a, b hunk) int { return a.at - b.at })
		got, _ := mergeLines(changed(base, nil), changed(base, ours), changed(base, theirs))
		if diff := cmp.Diff(changed(base, both), got); diff != "" {
			t.Fatalf("merged (-want +got):\n%s", diff)
		}
	})
}

func TestNoLineThatAPersonWroteIsEverLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var base []string
		for i := range rapid.IntRange(0, 10).Draw(t, "lines") {
			base = append(base, fmt.Sprintf("base %d\n", i))
		}
		ours, _ := drawHunks(t, len(base))
		theirs, more := drawHunks(t, len(base)) // At the same places as often as not.
		theirs = append(theirs, more...)
		slices.SortFunc(theirs, func(a, b hunk) int { return a.at - b.at })
		got, _ := mergeLines(changed(base, nil), changed(base, ours), changed(base, theirs))
		at := 0
		for _, h := range theirs {
			for _, line := range h.lines {
				found := strings.Index(got[at:], line)
				if found < 0 {
					t.Fatalf("%q is gone, or elsewhere:\n%s", line, got)
				}
				at += found
			}
			for _, line := range base[h.at:h.end] {
				if strings.Contains(got, line) {
					t.Fatalf("%q was deleted and is back:\n%s", line, got)
				}
			}
		}
	})
}

func TestWhereBothChangedALineThePersonsHandWins(t *testing.T) {
	const base = "# x — STATE\n_Updated: 1_\n\n## Priority\n- one\n- two\n\n## Watch\n- (none yet)\n"
	edit := func(text string, oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(text) }
	for name, c := range map[string]struct{ ours, theirs, want string }{
		"the header and an item that a person added": {
			edit(base, "_Updated: 1_", "_Updated: 2_"), edit(base, "- two\n", "- two\n- three\n"),
			edit(base, "_Updated: 1_", "_Updated: 2_", "- two\n", "- two\n- three\n"),
		},
		"an item that moves and a note of a person": {
			edit(base, "- two\n", "", "- (none yet)\n", "- two\n"), edit(base, "# x — STATE\n", "# x — STATE\nMind the gap.\n"),
			edit(base, "- two\n", "", "- (none yet)\n", "- two\n", "# x — STATE\n", "# x — STATE\nMind the gap.\n"),
		},
		"the same line, differently": {
			edit(base, "- one", "- [P2] one"), edit(base, "- one", "- one, urgent"), edit(base, "- one", "- one, urgent"),
		},
		"the same line, alike": {
			edit(base, "- one", "- [P2] one"), edit(base, "- one", "- [P2] one", "- two", "- too"), edit(base, "- one", "- [P2] one", "- two", "- too"),
		},
		"a line that a person deleted": {edit(base, "- one", "- [P2] one"), edit(base, "- one\n", ""), edit(base, "- one\n", "")},
		"a line next to a person's": {
			edit(base, "- one", "- [P2] one"), edit(base, "- two", "- too"), edit(base, "- one", "- [P2] one", "- two", "- too"),
		},
		"a file that a person emptied": {edit(base, "- one", "- [P2] one"), "", ""},
		"the same line, and one beside a blank line that goes": {
			edit(base, "- one", "- [P2] one", "\n## Watch", "## Watch"), edit(base, "- one", "- one, urgent"), edit(base, "- one", "- one, urgent", "\n## Watch", "## Watch"),
		},
		"other line ends": {
			edit(base, "_Updated: 1_", "_Updated: 2_"), strings.ReplaceAll(base, "\n", "\r\n"), strings.ReplaceAll(base, "\n", "\r\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := mergeLines(base, c.ours, c.theirs)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// Lines that stand twice can be taken for one another: without a second look the
// line that ours added would be added to what was made from ours.
func TestWhatWasMadeFromOursIsNotMergedAgain(t *testing.T) {
	const base, ours, theirs = "f\nf\ne\na\n", "c\nf\nf\n", "f\n"
	if got, _ := mergeLines(base, ours, theirs); got != theirs {
		t.Errorf("merged = %q, want %q", got, theirs)
	}
}

func TestAMovedLineStaysWhereItWasWhenItsNewPlaceIsTaken(t *testing.T) {
	const base = "## Priority\n- one\n- two\n\n## Watch\n- (none yet)\n"
	const ours = "## Priority\n- two\n\n## Watch\n- one\n"
	const theirs = "## Priority\n- one\n- two\n\n## Watch\n- by hand\n"
	if got, _ := mergeLines(base, ours, theirs); got != theirs {
		t.Errorf("merged = %q, want the person's text with both items", got)
	}
}

// A line of which one end of its move was brought in and the other was not would
// be lost, or stand twice and be worked on twice.
func TestALineMovesWholeOrNotAtAll(t *testing.T) {
	const base = "## Priority\n- one\n- two\n\n## Watch\n- three\n"
	const ours = "## Priority\n- two\n\n## Watch\n- three\n- one\n"
	edit := strings.NewReplacer
	for name, c := range map[string]struct {
		theirs, want string
		left         []string
	}{
		"an edit of the line below": {edit("- two", "- two, soon").Replace(base), edit("- two", "- two, soon").Replace(ours), nil},
		"an edit of the line above": {edit("## Priority", "## Priority (today)").Replace(base), edit("## Priority", "## Priority (today)").Replace(ours), nil},
		"a new line below":          {edit("- two", "- new\n- two").Replace(base), edit("- two", "- new\n- two").Replace(ours), nil},
		"a new line above":          {edit("- one", "- new\n- one").Replace(base), edit("- two", "- new\n- two").Replace(ours), nil},
		"the line below is gone":    {edit("- two\n", "").Replace(base), edit("- two\n", "").Replace(ours), nil},
		"a line in its new place":   {base + "- four\n", edit("- one\n", "- four\n- one\n").Replace(ours), nil},
		"an edit of the line":       {edit("- one", "- one, soon").Replace(base), edit("- one", "- one, soon").Replace(base), []string{"- one"}},
		"the line is gone":          {edit("- one\n", "").Replace(base), edit("- one\n", "").Replace(base), []string{"- one"}},
		"the line moved by hand":    {ours + "- five\n", ours + "- five\n", []string{"- one"}},
		"a new list in its place":   {edit("- three", "- by hand").Replace(base), edit("- three", "- by hand").Replace(base), []string{"- one"}},
	} {
		t.Run(name, func(t *testing.T) {
			merged, left := mergeLines(base, ours, c.theirs)
			if diff := cmp.Diff(c.want, merged) + cmp.Diff(c.left, left); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if again, _ := mergeLines(base, ours, merged); again != merged {
				t.Errorf("merged again = %q, want %q", again, merged)
			}
		})
	}
}

// A merge of the merge would take what is beside a line that moved for a part of
// the move.
func TestWhatIsBesideALineThatAPersonMovedStaysAsItIs(t *testing.T) {
	for name, c := range map[string]struct{ base, ours, theirs string }{
		"a line beside its old place goes":         {"a\nb\nc\n", "a\nb\n", "b\na\nc\n"},
		"a line that comes beside its new place":   {"a\nb\n", "c\na\nb\n", "b\na\n"},
		"an edit of the line beside its old place": {"a\nb\nc\n", "a\nb\nc, soon\n", "b\na\nc\n"},
	} {
		if got, left := mergeLines(c.base, c.ours, c.theirs); got != c.theirs || len(left) != 1 {
			t.Errorf("%s: merged = %q, left out are %q, want the person's text and one line", name, got, left)
		}
	}
}
