package readiness

import "strings"

// Suggest is the fix for a name that is not one of those that there are.
func Suggest(name string, there []string) string {
	fix := "there are: " + strings.Join(there, ", ")
	if near := NearestName(name, there); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return fix
}

// NearestName is the one of some valid values that a text was probably meant to be:
// the same but for case and punctuation, or a slip or two away. It is empty if
// there is none, or more than one.
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

// lettersOnly keeps the ASCII letters, as lower-case ones, and the digits.
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
// between two words; above most it may give any larger number.
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
