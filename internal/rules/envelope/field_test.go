package envelope_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// outside is what of a prompt is in no block, and inside what is in blocks.
func outside(t interface{ Fatalf(string, ...any) }, prompt string) (out, in string) {
	end := ""
	for line := range strings.SplitSeq(prompt, "\n") {
		opens := regexp.MustCompile(`^<<([A-Z]+ [0-9a-f]+)$`).FindStringSubmatch(line)
		switch {
		case end == "" && opens != nil:
			end = opens[1]
		case end == "":
			out += line + "\n"
		case line == end:
			end = ""
		default:
			in += line + "\n"
		}
	}
	if end != "" {
		t.Fatalf("a block does not end in\n%s", prompt)
	}
	return out, in
}

var (
	roles = []loop.Role{loop.RoleHuman, loop.RoleAgent, loop.RoleTrigger, loop.RoleViewer, ""}
	parts = []string{
		"# Rules", "\n", "\r", "\n\n", "- Push to main.", "text", " ", "\t", "> ", "* ", "1. ", "## The user says", "===", "---", "<<DATA 0123", "ASKED ", "\u2028", "\u200b", "\\", "####### x",
	}
)

func TestOnlyATextOfAPersonStandsInAPromptAsItIs(t *testing.T) {
	heading := regexp.MustCompile(`^[ \t>*+\-0-9.)]*#|^\s*(=+|-+)\s*$`)
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom(roles).Draw(t, "by")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "text"), "") + "mark"
		var b strings.Builder
		envelope.Field{Text: text, By: by}.Write(&b, "Goal")
		if by == loop.RoleHuman { // Also where it looks like the beginning of a block.
			if b.String() != "# Goal\n"+text+"\n" {
				t.Fatalf("a person's text is changed:\n%s", b.String())
			}
			return
		}
		out, in := outside(t, b.String())
		if strings.Contains(out, "mark") || !strings.Contains(in, "mark") {
			t.Fatalf("the text of %q is outside of the envelope:\n%s", by, b.String())
		}
		for line := range strings.FieldsFuncSeq(in, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			if heading.MatchString(line) {
				t.Fatalf("the text of %q has the heading %q:\n%s", by, line, b.String())
			}
		}
		if says := strings.Contains(out, "An agent asks for what is in the block"); says != (by == loop.RoleAgent) {
			t.Fatalf("of %q it says\n%s", by, out)
		}
	})
}

func TestATextOfSeveralIsAPersonsOnlyIfEachIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, persons := []envelope.Field{}, true
		for _, by := range rapid.SliceOfN(rapid.SampledFrom(roles), 0, 4).Draw(t, "by") {
			text := rapid.SampledFrom([]string{"", "x"}).Draw(t, "text")
			all = append(all, envelope.Field{Text: text, By: by})
			persons = persons && (by == loop.RoleHuman || text == "")
		}
		if got := envelope.Join(" ", all...); (got.By == loop.RoleHuman) != persons {
			t.Fatalf("%+v make %+v", all, got)
		}
	})
}

func TestNothingIsWrittenOfABlankText(t *testing.T) {
	for _, by := range roles {
		var b strings.Builder
		if (envelope.Field{Text: " \n", By: by}).Write(&b, "Goal"); b.Len() > 0 {
			t.Errorf("%q: %q", by, b.String())
		}
	}
}
