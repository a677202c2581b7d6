package taskfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAPitfallIsAddedBelowItsHeading(t *testing.T) {
	c := ParseContext("# dev\r\n## Known Pitfalls\r\nMind the gap.\r\n\r\n## Decision Pipeline\r\nx")
	c.AddPitfall(Pitfall{Date: noon, Step: "step-3", Cause: "the API is down\n## x", Advice: "ask ops first"})
	c.AddPitfall(Pitfall{Date: noon, Cause: "no key"})
	want := "# dev\r\n## Known Pitfalls\r\nMind the gap.\r\n\r\n- 2026-11-27, step-3: the API is down ## x — instead: ask ops first\r\n- 2026-11-27: no key\r\n\r\n## Decision Pipeline\r\nx"
	if d := cmp.Diff(want, c.String()); d != "" {
		t.Error(d)
	}
}

func TestTheSameCauseIsCountedUp(t *testing.T) {
	c := ParseContext(NewContext("dev"))
	for i, cause := range []string{"Timeout after 3 attempts", "timeout  after 14 attempts", "Time out after 1 attempts"} {
		c.AddPitfall(Pitfall{Date: noon.Add(time.Duration(i) * 24 * time.Hour), Step: "step-1", Cause: cause, Advice: "wait"})
	}
	want := []Pitfall{{
		Date: noon.Truncate(24 * time.Hour), Last: noon.Truncate(24 * time.Hour).Add(48 * time.Hour), Step: "step-1", Cause: "Timeout after 3 attempts", Advice: "wait", Times: 3,
	}}
	if d := cmp.Diff(want, c.Pitfalls()); d != "" || !strings.Contains(c.String(), "attempts — instead: wait (3 times, last 2026-11-29)\n") {
		t.Error(c.String(), d)
	}
}

func TestLinesOfPeopleAreNotPitfallsOfPawl(t *testing.T) {
	text := "## Known Pitfalls\n- 2026-11-27: no key (see wiki) (1 times, last 2026-11-27)\n- 2026-13-27: no key\n-  2026-11-27: no key\n```\n- 2026-11-27: no key\n```\n"
	c := ParseContext(text)
	c.AddPitfall(Pitfall{Date: noon, Cause: "no key"})
	if want := text + "\n- 2026-11-27: no key\n"; c.String() != want {
		t.Error(cmp.Diff(want, c.String()))
	}
}

func TestAPitfallIsReadAsItWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"a", "b — instead: c", "x (3 times, last 2026-11-27)", "y: z", "```", "1 2", "<!--", ", d: e"})
		c := ParseContext(drawLines(t, []string{"## Known Pitfalls", "# x", "- 2026-11-27: a", "text", "```", "<!--", "-->", "- note"}))
		before := c.String()
		n, cause, advice := len(c.Pitfalls()), words.Draw(t, "cause"), words.Draw(t, "advice")
		c.AddPitfall(Pitfall{Date: noon, Cause: cause, Advice: advice, Step: "step-1"})
		again := ParseContext(c.String())
		if d := cmp.Diff(c.Pitfalls(), again.Pitfalls()); d != "" {
			t.Fatalf("it is read otherwise: %s", d)
		}
		if got := len(again.Pitfalls()); got != n+1 && got != n || !isInside(strings.ReplaceAll(before, "- 2026-11-27: a\n", ""), c.String()) {
			t.Fatalf("%q became %q", before, c)
		}
		c.AddPitfall(Pitfall{Date: noon, Cause: strings.ToUpper(cause)})
		if got := len(c.Pitfalls()); got != len(again.Pitfalls()) {
			t.Fatalf("the same cause is there twice in %q", c)
		}
	})
}

func TestTextOfAnAgentHidesNothingAbove(t *testing.T) {
	text := "## Known Pitfalls\n<!-- a note\n- 2026-11-27: no key\n```\n"
	c := ParseContext(text)
	c.Append("I saw:\n```\n--> x\n")
	if want := text + "I saw:\n\\```\n--\\> x\n"; c.String() != want || len(c.Pitfalls()) != 1 {
		t.Error(c.Pitfalls(), cmp.Diff(want, c.String()))
	}
}

func FuzzContext(f *testing.F) {
	f.Add(NewContext("dev"), "x")
	f.Add("## Known Pitfalls\n- 2026-11-27: a", "a\n(2 times, last 2026-11-27)")
	f.Fuzz(func(t *testing.T, text, cause string) {
		c := ParseContext(text)
		if c.String() != text {
			t.Fatalf("%q became %q", text, c)
		}
		c.AddPitfall(Pitfall{Date: noon, Cause: cause, Advice: cause})
		c.AddErrorLine(noon, "no_structured_output")
		if d := cmp.Diff(c.Pitfalls(), ParseContext(c.String()).Pitfalls()); d != "" {
			t.Fatal(d)
		}
	})
}
