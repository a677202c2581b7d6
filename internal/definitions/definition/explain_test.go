package definition

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAnExplanationIsWhatThereIsToKnow(t *testing.T) {
	for key, want := range map[string]string{
		"max_items": `max_items
  needed   no
  kind     a whole number from 1, in digits
  default  1

How many steps one run may finish.

With more than 1, a run takes the next step of Priority when one has passed, as long as
max_iterations, max_wall_clock and budget_tokens allow it.

Example:
  max_items: 3
`,
		"catch_up": `catch_up
  needed   no
  kind     one of the values
  values   skip, one, all
  default  one

How many runs make up for those that were missed.

Runs are missed while no pawl up or pawl worker is at work. one makes up for all of them with a
single run; all makes up for each, for at most 100; skip waits for the next planned time, unless
start_deadline says how late a run may still start.

Example:
  catch_up: skip
`,
		"include_dirty": `include_dirty
  needed   no
  kind     true or false
  default  false
  now      not supported by this version yet: only false is accepted

Whether uncommitted work is a part of what a run starts from.

A run starts from the tip of base; commit what it should see. It is refused because a proposal has
to land as the tree that its gates passed: with your uncommitted work in it, landing would commit
that as the agent's or meet it in the checkout; without it, the tree is not the one that passed.

Example:
  include_dirty: true
`,
	} {
		got, err := ExplainKey(key)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Explain(%s): %v (-want +got):\n%s", key, err, diff)
		}
	}
}

func TestEveryKeyIsExplainedInPlainLinesOfBoundedWidth(t *testing.T) {
	for _, f := range Fields() {
		text, err := ExplainKey(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		joined := strings.Join(strings.Fields(text), " ")
		for _, part := range []string{f.Name, f.neededText(), f.kindText(), strings.Join(f.Values, ", "), f.Fallback(), f.Meaning, f.More, f.ExampleLine()} {
			if !strings.Contains(joined, strings.Join(strings.Fields(part), " ")) {
				t.Errorf("the explanation of %s lacks %q:\n%s", f.Name, part, text)
			}
		}
		checkPlain(t, strings.TrimSuffix(text, f.ExampleLine()+"\n"))
	}
	checkPlain(t, ExplainAll())
}

func checkPlain(t *testing.T, text string) {
	t.Helper()
	if !strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "Example:\n  ") {
		t.Errorf("no newline at the end of %q", text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > 100 || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("too long or not plain: %q", line)
		}
	}
}

func TestTheListHasOneLineForEachKey(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(ExplainAll(), "\n"), "\n")
	if len(lines) != len(Fields())+1 {
		t.Fatalf("%d lines for %d keys", len(lines), len(Fields()))
	}
	for i, f := range Fields() {
		words := strings.Fields(lines[i+1])
		if words[0] != f.Name || !strings.HasSuffix(lines[i+1], "  "+f.Meaning) || !strings.Contains(lines[i+1], " "+f.Required+f.NotYet+" ") {
			t.Errorf("line %d is %q, want %s, what is needed or not honoured, and the meaning", i+1, lines[i+1], f.Name)
		}
	}
}

func TestAnUnknownKeyIsNotFoundAndSaysWhatWasMeant(t *testing.T) {
	for key, want := range map[string]string{
		"kil_switch": "did you mean kill_switch? `pawl explain` lists the keys",
		"maxItems":   "did you mean max_items? `pawl explain` lists the keys",
		"colour":     "`pawl explain` lists the keys",
		"":           "`pawl explain` lists the keys",
		"a\x1b[31m":  "`pawl explain` lists the keys",
	} {
		text, err := ExplainKey(key)
		fault, ok := errors.AsType[*loop.Fault](err)
		if !ok || text != "" || fault.Exit != loop.ExitNotFound || !errors.Is(err, loop.ErrNotFound) || fault.Advice().String() != want {
			t.Errorf("Explain(%q) = %q, %v, want exit status 3 and %q", key, text, err, want)
		}
		if strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("the error repeats control characters: %q", err)
		}
	}
}

func TestWrappingKeepsTheWordsAndTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abcé \n")), 0, 200, -1).Draw(t, "text")
		width := rapid.IntRange(1, 40).Draw(t, "width")
		lines := wrapText(text, width)
		if diff := cmp.Diff(strings.Fields(text), strings.Fields(strings.Join(lines, " "))); diff != "" {
			t.Fatalf("words (-want +got):\n%s", diff)
		}
		for i, line := range lines {
			if utf8.RuneCountInString(line) > width && strings.Contains(line, " ") {
				t.Fatalf("line %d is wider than %d: %q", i, width, line)
			}
			if i > 0 && utf8.RuneCountInString(lines[i-1])+1+utf8.RuneCountInString(strings.Fields(line)[0]) <= width {
				t.Fatalf("the first word of %q fits into the line before", line)
			}
		}
	})
}
