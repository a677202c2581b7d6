package board

import (
	"slices"
	"strings"
	"unicode"
)

// tooCommon are words that say nothing about what a text is about.
var tooCommon = []string{
	"about", "again", "agree", "all", "also", "and", "any", "are", "but", "can", "for", "from", "got", "great", "has", "have", "hello", "here", "into", "it", "its", "just", "must", "need",
	"new", "noted", "not", "now", "okay", "ok", "one", "our", "perfect", "please", "set", "should", "some", "sure", "thank", "that", "the", "then", "there", "this", "understood", "use",
	"welcome", "when", "will", "with", "yes", "you", "your", "to", "of", "in", "on", "is", "be", "we", "an", "as", "at", "by", "do", "if", "me", "my", "no", "or", "so", "us", "hi",
}

// wordsOf are the words of texts that say what they are about, in lower case and without the
// s of a plural.
func wordsOf(texts ...string) map[string]bool {
	words := map[string]bool{}
	for _, text := range texts {
		for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if s, plural := strings.CutSuffix(w, "s"); plural && len(s) > 2 && !strings.HasSuffix(s, "s") {
				w = s
			}
			if len(w) > 1 && !slices.Contains(tooCommon, w) {
				words[w] = true
			}
		}
	}
	return words
}

func common(a, b map[string]bool) int {
	n := 0
	for w := range a {
		if b[w] {
			n++
		}
	}
	return n
}

// alike is how much two sets of words have in common: 1 if they are the same, 0 if they
// have no word in common or one of them is empty.
func alike(a, b map[string]bool) float64 {
	if len(a)+len(b) == 0 {
		return 0
	}
	return 2 * float64(common(a, b)) / float64(len(a)+len(b))
}

// share is the part of the words of a that are in b; 0 without words.
func share(a, b map[string]bool) float64 {
	if len(a) == 0 {
		return 0
	}
	return float64(common(a, b)) / float64(len(a))
}
