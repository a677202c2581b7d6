package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ForGoal returns those of the entries that count and that fit a goal, the best first, at
// most limit. One fits if it has a word in common with the goal; a command that has passed
// always does. More words in common go first, then more confidence, then what was confirmed
// last. The order of the entries makes no difference.
func ForGoal(entries []loop.Memory, goal string, limit int) []loop.Memory {
	wanted := wordsOf(goal)
	type ranked struct {
		loop.Memory

		common int
	}
	var fit []ranked
	for _, m := range entries {
		common := 0
		for word := range wordsOf(m.Text) {
			if wanted[word] {
				common++
			}
		}
		if m.State == loop.MemoryActive && (common > 0 || m.Kind == loop.MemoryCommand) {
			fit = append(fit, ranked{m, common})
		}
	}
	slices.SortFunc(fit, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(b.common, a.common), cmp.Compare(Confidence(b.Memory), Confidence(a.Memory)), b.Seen.Compare(a.Seen), cmp.Compare(a.N, b.N),
		)
	})
	best := make([]loop.Memory, 0, min(len(fit), max(0, limit)))
	for _, r := range fit[:cap(best)] {
		best = append(best, r.Memory)
	}
	return best
}

// tooCommon are words that say nothing about what a text is about.
var tooCommon = []string{"the", "and", "for", "with", "that", "this", "are", "not", "all", "from", "into", "must", "has", "have", "run", "make", "use", "never", "always"}

// wordsOf are the words of a text that say what it is about, in lower case and without the
// s of a plural.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) < 2 || slices.Contains(tooCommon, w) {
			continue
		}
		if s, plural := strings.CutSuffix(w, "s"); plural && len(s) > 2 && !strings.HasSuffix(s, "s") {
			w = s
		}
		words[w] = true
	}
	return words
}

// Text lists entries that count for a prompt, each on a line of its own with its number,
// so that an answer can name it. It is data from outside: put it into an envelope.
func Text(entries []loop.Memory) string {
	var b strings.Builder
	for _, m := range entries {
		if m.State != loop.MemoryActive {
			continue
		}
		label := string(m.Kind)
		if m.Kind == loop.MemoryCommand && m.Failed > 0 {
			label += fmt.Sprintf(", did not pass in the last %d runs", m.Failed)
		}
		fmt.Fprintf(&b, "[%d] %s (%s, %s)\n", m.N, strings.Join(strings.Fields(m.Text), " "), label, m.Seen.UTC().Format(time.DateOnly))
	}
	return b.String()
}
