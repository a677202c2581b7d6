package readiness

import "strings"

// Suggest returns the fix for an unknown name: the similar one, if any, and all
// existing names.
func Suggest(name string, there []string) string {
	fix := "there are: " + strings.Join(there, ", ")
	if near := NearestName(name, there); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return fix
}

// freeKeys begins the keys that anybody may add to a file of definitions.
const freeKeys = "x-"

// IsFreeKey reports whether a key is one that anybody may add.
func IsFreeKey(key string) bool { return strings.HasPrefix(key, freeKeys) }

// Misspelt returns the key that an unknown one was meant to be, of those that its file lacks:
// it differs by case and punctuation only, by one typing error, or, if the key has eight
// letters or more, by two. It is empty if there is none. Of several the nearest counts, of
// those the first.
func Misspelt(key string, lacking []string) string {
	if IsFreeKey(key) {
		return ""
	}
	best, nearest := "", 3
	for _, l := range lacking {
		most := 1
		if len(lettersOnly(l)) >= 8 {
			most = 2
		}
		d := editDistance(key, l, most)
		if plain := lettersOnly(l); plain == lettersOnly(key) {
			d = 1
		}
		if d <= most && d < nearest {
			best, nearest = l, d
		}
	}
	return best
}

// NearestName returns the valid value that was probably meant by a text: it differs
// only by case and punctuation, or by one or two typing errors. It is empty if there is
// none, or more than one.
func NearestName(text string, valid []string) string {
	text = lettersOnly(text)
	best, nearest, tied := "", 3, false
	for _, v := range valid {
		word := lettersOnly(v)
		// A short word is near many others.
		most := min(2, len(word)/3)
		switch d := editDistance(text, word, most); {
		case d > most || d > nearest:
		case d == nearest:
			tied = true
		default:
			best, nearest, tied = v, d, false
		}
	}
	if tied {
		return ""
	}
	return best
}

func didYouMean(text string, valid []string) string {
	if near := NearestName(text, valid); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// lettersOnly keeps ASCII letters, in lower case, and digits.
func lettersOnly(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, text)
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours
// between two words. If there are more than most, any larger number may be returned.
func editDistance(a, b string, most int) int {
	if gap := len(a) - len(b); gap > most || -gap > most {
		return most + 1
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j]+cost, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
