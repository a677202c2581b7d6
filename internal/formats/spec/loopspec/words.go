package loopspec

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word of a text in the form in which phrases are compared: lower case,
// without abbreviations. Several words of a text may have one place: PR is two.
type word struct {
	text string
	n    int // the number of a count or a number
	at   int // bytes of the text before it
	end  int // byte after it
}

// Texts of words that stand for more than themselves.
const (
	wordCount  = "N×" // 3×, 3x, 3 times, once, twice
	wordNumber = "N"
	wordCode   = "`…`" // a text in backticks
	wordArrow  = "→"
)

var spelledOut = map[string][]string{
	"pr": {"pull", "request"}, "don't": {"do", "not"}, "don’t": {"do", "not"}, "w/": {"with"}, "+": {"and"}, "->": {wordArrow},
}

// wordsOf splits a text into words. Commas and white space only separate them, and a
// full stop at the end is dropped.
func wordsOf(text string) []word {
	var all []word
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case unicode.IsSpace(r) || r == ',':
			at += size
			continue
		case r == '.' && isBlank(text[at+1:]):
			return all
		}
		length := wordLength(text[at:])
		all = appendWord(all, text[at:at+length], at)
		at += length
	}
	return all
}

// wordLength returns the length of the word with which a text begins.
func wordLength(text string) int {
	for _, whole := range []string{wordArrow, "->", "+", "×"} {
		if strings.HasPrefix(text, whole) {
			return len(whole)
		}
	}
	if text[0] == '`' {
		if end := strings.IndexByte(text[1:], '`'); end >= 0 {
			return end + 2
		}
		return len(text)
	}
	if len(text) >= 2 && strings.EqualFold(text[:2], "w/") {
		return 2
	}
	if digits := len(text) - len(strings.TrimLeft(text, "0123456789")); digits > 0 {
		return digits
	}
	for i, r := range text {
		switch {
		case r == ':':
			return i + 1
		case i > 0 && (unicode.IsSpace(r) || strings.ContainsRune(",`+→", r) || strings.HasPrefix(text[i:], "->")),
			r == '.' && isBlank(text[i+1:]):
			return i
		}
	}
	return len(text)
}

func appendWord(all []word, text string, at int) []word {
	w := word{text: strings.ToLower(text), at: at, end: at + len(text)}
	last := len(all) - 1
	switch {
	case text[0] == '`':
		w.text = wordCode
	case text[0] >= '0' && text[0] <= '9':
		w.n, w.text = number(text), wordNumber
	case last >= 0 && all[last].text == wordNumber && (w.text == "x" || w.text == "×" || w.text == "times"):
		all[last].text, all[last].end = wordCount, w.end
		return all
	case w.text == "once":
		w.n, w.text = 1, wordCount
	case w.text == "twice":
		w.n, w.text = 2, wordCount
	case spelledOut[w.text] != nil:
		for _, one := range spelledOut[w.text] {
			w.text = one
			all = append(all, w)
		}
		return all
	}
	return append(all, w)
}

// mostCount is the largest number in a phrase.
const mostCount = 1000

// number reads digits. One that is too large is mostCount+1.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > mostCount {
		return mostCount + 1
	}
	return n
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// matched is what a row of a field says in a text.
type matched struct {
	row  Phrase
	n    int    // its number, if it has one
	nAt  int    // bytes of the text before the number
	has  bool   // it has a number
	rest string // what PATHS, PATH, COMMAND or TEXT is, without white space around it
	at   int    // bytes of the text before the rest
	next int    // index of the first word after the row
	far  int    // index of the first word that fits neither this row nor another one of its field
}

// matchPhrase finds the row of a field that explains the most words from one on.
func matchPhrase(field Field, text string, words []word, from int) (best matched, found bool) {
	farthest := from
	for _, row := range PhrasesOf(field) {
		m, ok := matchRow(row, text, words, from)
		farthest = max(farthest, m.next)
		if ok && (!found || m.next > best.next) {
			best, found = m, true
		}
	}
	best.far = farthest
	return best, found
}

// matchRow reports whether words begin with a row. If not, next is the index of the
// first word that does not fit.
func matchRow(row Phrase, text string, words []word, from int) (matched, bool) {
	m := matched{row: row, next: from}
	for _, part := range rowParts(row.Text) {
		var w word
		if m.next < len(words) {
			w = words[m.next]
		}
		switch part {
		case "PATHS", "PATH", "COMMAND", "TEXT":
			m.at = len(text)
			if m.next < len(words) {
				m.at = w.at
			}
			m.rest = strings.TrimSpace(text[m.at:])
			if m.rest == "" {
				return m, false
			}
			m.next = len(words)
			continue
		case "[N×]":
			if w.text == wordCount {
				m.n, m.nAt, m.has = w.n, w.at, true
				m.next++
			}
			continue
		case "`COMMAND`":
			code := text[w.at:w.end]
			if w.text != wordCode || len(code) < 3 || !strings.HasSuffix(code, "`") || isBlank(code[1:len(code)-1]) {
				return m, false
			}
			m.rest, m.at = strings.TrimSpace(code[1:len(code)-1]), w.at
		case wordCount, wordNumber:
			if w.text != part {
				return m, false
			}
			m.n, m.nAt, m.has = w.n, w.at, true
		default:
			if w.text != part {
				return m, false
			}
		}
		m.next++
	}
	return m, true
}

// rowParts splits a row into what its words are compared with.
func rowParts(text string) []string {
	var parts []string
	for one := range strings.FieldsSeq(strings.ReplaceAll(text, ",", " ")) {
		lower := strings.ToLower(one)
		switch {
		case strings.Contains(one, "N") && one != "no" || strings.ToUpper(one) == one && len(one) > 2:
			parts = append(parts, one)
		case spelledOut[lower] != nil:
			parts = append(parts, spelledOut[lower]...)
		default:
			parts = append(parts, lower)
		}
	}
	return parts
}
