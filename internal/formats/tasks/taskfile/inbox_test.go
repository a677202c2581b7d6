package taskfile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestAnEntryHasAllOfItsLines(t *testing.T) {
	text := "# INBOX\r\n\r\n## Pending\r\n_nothing else_\r\n\r\n" +
		"### [2026-11-27T10:00:00Z] From: chief | Priority: HIGH\r\nAdd a login page.\r\n\r\n```\r\n### [x] From: y\r\nTags: none of ours\r\n```\r\nTask-ID: 7\r\nTags: code, web\r\nDepends-on: Step 1\r\n\r\n" +
		"### 2026-11-27T11:00 From: ops\r\nDelivery: d-1\r\n" +
		"## Processed\r\n### [2026-11-01] From: chief\r\nOld\r\nProcessed: 2026-11-02T00:00:00Z → Step 1\r\n## Notes\r\n### no entry\r\n"
	b, problems := ParseInbox(text)
	if len(problems) > 0 || b.String() != text {
		t.Fatalf("%v %s", problems, cmp.Diff(text, b.String()))
	}
	want := []Entry{
		{
			At: noon.Add(-2 * time.Hour), From: "chief", Priority: PriorityHigh, Tags: []string{"code", "web"}, DependsOn: []string{"step-1"}, Line: 6,
			Text: "Add a login page.\n\n```\n### [x] From: y\nTags: none of ours\n```\nTask-ID: 7",
		},
		{ID: "d-1", At: noon.Add(-time.Hour), From: "ops", Priority: PriorityMedium, Delivery: "d-1", Line: 17},
	}
	got := b.Pending()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Entry{}, "ID")); d != "" {
		t.Error(d)
	}
	if got[1].ID != "d-1" || len(got[0].ID) != 16 {
		t.Errorf("ids %q and %q", got[0].ID, got[1].ID)
	}
	if p := b.Processed(); len(p) != 1 || p[0].Processed != "2026-11-02T00:00:00Z → Step 1" || p[0].Text != "Old" {
		t.Errorf("processed: %+v", p)
	}
	if !b.Has("d-1") || b.Has("d-2") || b.Has("") {
		t.Error("what was delivered is not known")
	}
}

func TestAnEntryThatCannotBeReadIsNamed(t *testing.T) {
	b, problems := ParseInbox("## Pending\n### hello\n### [2026-11-27T10:00:00Z] From: x | Priority: asap\n### [2026-11-27T10:00:00Z] From: y\n")
	want := []Problem{
		{2, 5, `an entry says who it is from, as in "### [2026-11-27T10:00:00Z] From: chief | Priority: high"`},
		{3, 48, `"asap" is not a priority; write critical, high, medium or low`},
	}
	if d := cmp.Diff(want, problems); d != "" || len(b.Pending()) != 1 {
		t.Error(b.Pending(), d)
	}
}

func TestAProcessedEntryIsMovedWithAllOfItsLines(t *testing.T) {
	b, _ := ParseInbox("## Pending\n\n### [2026-11-27T10:00:00Z] From: a  \nOne\r\n\nTask-ID: 1\n\n### [2026-11-27T10:00:00Z] From: b\nTwo\n\n## Processed\n\nA note.\n\n## Notes\n")
	id := b.Pending()[0].ID
	if !b.Process(id, noon, "Step 7\n## x") || b.Process(id, noon, "again") {
		t.Error("it is not processed once")
	}
	want := "## Pending\n\n### [2026-11-27T10:00:00Z] From: b\nTwo\n\n## Processed\n\nA note.\n\n### [2026-11-27T10:00:00Z] From: a  \nOne\r\n\nTask-ID: 1\nProcessed: 2026-11-27T12:00:00Z → Step 7 ## x\n\n## Notes\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	if p := b.Processed(); len(p) != 1 || p[0].ID != id {
		t.Errorf("it has another id than %s: %+v", id, p)
	}
}

func TestTwoEqualEntriesAreTwo(t *testing.T) {
	one := "### [2026-11-27T10:00:00Z] From: a\nOne\n"
	b, _ := ParseInbox("## Pending\n" + one + "\n" + one)
	first, second := b.Pending()[0].ID, b.Pending()[1].ID
	if first == second || !b.Process(first, noon, "") {
		t.Fatal("one id for both, or the first is not processed")
	}
	if p := b.Pending(); len(p) != 1 || p[0].ID != second {
		t.Errorf("the second one had %s and has %+v", second, p)
	}
}

func TestAFileWithoutSectionsGetsThem(t *testing.T) {
	b, _ := ParseInbox("# hello")
	id := b.AddPending(NewEntry{At: noon, From: "a|b", Text: "x", Kind: "order"})
	if !b.Process(id, noon, "Step 1") {
		t.Fatal("not processed")
	}
	want := "# hello\n\n## Pending\n\n## Processed\n\n### [2026-11-27T12:00:00Z] From: a/b | Priority: medium\nx\nKind: order\nProcessed: 2026-11-27T12:00:00Z → Step 1\n\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestWhatIsDeliveredTwiceIsThereOnce(t *testing.T) {
	b, _ := ParseInbox(NewInbox("dev"))
	one := NewEntry{At: noon, From: "a", Text: "x", Delivery: "d 1"}
	id := b.AddPending(one)
	text := b.String()
	if again := b.AddPending(one); again != id || b.String() != text || !b.Has("d 1") {
		t.Errorf("%s is %s the second time: %s", id, again, b)
	}
	b.Process(id, noon, "")
	text = b.String()
	if again := b.AddPending(one); again != id || b.String() != text {
		t.Errorf("a processed one came again: %s", b)
	}
}

func TestTextOfAnEntryIsNeverAnythingElse(t *testing.T) {
	for _, text := range []string{
		"## Processed\n### [2026-11-27T10:00:00Z] From: owner | Priority: critical\nDo it", "```\nopen", "~~~~", "<!-- x", "-->", "Delivery: d-7\nTags: root", "\\# x", "**Delivery**: d-8",
		"  ## x", "a\r\nb\x1b[2J\u202ec",
	} {
		b, _ := ParseInbox(NewInbox("dev"))
		id := b.AddPending(NewEntry{At: noon, From: "x", Text: text, Tags: []string{"t"}})
		b.AddPending(NewEntry{At: noon, From: "y", Text: "second"})
		want := strings.NewReplacer("\r", "", "\x1b[2J", "", "\u202e", "").Replace(text)
		p := b.Pending()
		if len(p) != 2 || p[0].ID != id || p[0].Text != want || !slices.Equal(p[0].Tags, []string{"t"}) || p[0].Delivery != "" || len(b.Processed()) > 0 {
			t.Errorf("%q became %+v in %q", text, p, b)
		}
	}
}

var inboxLines = []string{
	"# dev", "## Pending", "## Processed", "### Pending", "## Notes", "### [2026-11-27T10:00:00Z] From: a", "### [2026-11-27T10:00:00Z] From: a | Priority: low", "### From: b", "### x",
	"Tags: a, b", "Delivery: d-1", "Delivery: d-2", "Task-ID: 1", "text", "Processed: 2026-11-27T10:00:00Z", "#### deep", "```", "~~~", "````md", "<!--", "-->", `\# x`, "---", bom,
}

// sortedLines are the lines of a text that are not blank, without line ends, sorted.
func sortedLines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// without removes one occurrence each of the words of b from a.
func without(a, b []string) []string {
	a = slices.Clone(a)
	for _, word := range b {
		if i := slices.Index(a, word); i >= 0 {
			a = slices.Delete(a, i, i+1)
		}
	}
	return a
}

func TestProcessingLosesNoLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawLines(t, inboxLines)
		b, _ := ParseInbox(text)
		if b.String() != text {
			t.Fatalf("%q became %q", text, b)
		}
		p := b.Pending()
		if len(p) == 0 {
			return
		}
		id := p[rapid.IntRange(0, len(p)-1).Draw(t, "entry")].ID
		if !b.Process(id, noon, "Step 1") {
			t.Fatalf("%s is not processed in %q", id, text)
		}
		again, _ := ParseInbox(b.String())
		if !slices.ContainsFunc(again.Processed(), func(e Entry) bool { return e.ID == id || strings.HasSuffix(e.Processed, "Step 1") }) {
			t.Fatalf("%s is not below Processed: %q became %q", id, text, b)
		}
		unescaped := func(text string) []string {
			return sortedLines(strings.ReplaceAll(strings.ReplaceAll(text, `--\>`, "-->"), `\`, ""))
		}
		if lost := without(unescaped(text), unescaped(b.String())); len(lost) > 0 {
			t.Fatalf("%q is lost: %q became %q", lost, text, b)
		}
	})
}

func TestAddingAnEntryOnlyInserts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawLines(t, inboxLines)
		b, _ := ParseInbox(text)
		count := len(b.entries)
		id := b.AddPending(NewEntry{At: noon, From: "x", Text: drawLines(t, inboxLines)})
		if id == "" || len(b.entries) != count+1 || !isInside(text, b.String()) {
			t.Fatalf("%q: %q became %q", id, text, b)
		}
	})
}

func FuzzInbox(f *testing.F) {
	f.Add(NewInbox("dev"), "x")
	f.Add("## Pending\n### [2026-11-27T10:00:00Z] From: a\n```\n## Processed\n### From: b", "```\n-->")
	f.Fuzz(func(t *testing.T, text, message string) {
		b, _ := ParseInbox(text)
		if b.String() != text {
			t.Fatalf("%q became %q", text, b)
		}
		if b.AddPending(NewEntry{From: message, Text: message, Delivery: "fuzz-1"}) == "" {
			t.Fatal("not added")
		}
		for _, e := range b.Pending() {
			b.Process(e.ID, noon, message) // Lines that move may end a code block, and hide the next one.
		}
		again, _ := ParseInbox(b.String())
		if !again.Has("fuzz-1") {
			t.Fatalf("the entry is lost in %q", b)
		}
	})
}
