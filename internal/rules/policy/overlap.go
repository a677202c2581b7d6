package policy

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Overlap returns two globs, one of each scope, that a path may match both of, read as
// Covers reads them: a plain folder covers what is below it. Letter case and Unicode
// forms make no difference, because on some file systems they do not. It may report an
// overlap where there is no such path, and never the other way round.
func Overlap(a, b []string) (inA, inB string, overlap bool) {
	others := make([][][]string, len(b))
	for i, glob := range b {
		others[i] = pathsBelow(glob)
	}
	for _, glob := range a {
		for _, one := range pathsBelow(glob) {
			for i := range others {
				for _, other := range others[i] {
					if partsMeet(one, other) {
						return glob, b[i], true
					}
				}
			}
		}
	}
	return "", "", false
}

// pathsBelow are the globs without braces that a glob stands for, in parts, each with
// all that is below it. Of a glob with too many of them it is one that covers all.
func pathsBelow(glob string) [][]string {
	all, ok := Alternatives(strings.TrimSuffix(strings.TrimPrefix(glob, "./"), "/"))
	if !ok {
		return [][]string{{"**"}}
	}
	list := make([][]string, len(all))
	for i, one := range all {
		list[i] = append(strings.Split(one, "/"), "**")
	}
	return list
}

// partsMeet reports whether a path may match two globs, given in parts. A ** stands
// for any number of parts, none too.
func partsMeet(a, b []string) bool {
	// meet[j] says whether the rest of a from the current part on and b[j:] meet.
	meet, below := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		meet, below = below, meet
		for j := len(b); j >= 0; j-- {
			switch {
			case i < len(a) && a[i] == "**":
				meet[j] = below[j] || j < len(b) && meet[j+1]
			case j < len(b) && b[j] == "**":
				meet[j] = meet[j+1] || i < len(a) && below[j]
			case i == len(a) || j == len(b):
				meet[j] = i == len(a) && j == len(b)
			default:
				meet[j] = below[j+1] && namesMeet(a[i], b[j])
			}
		}
	}
	return meet[0]
}

// namesMeet reports whether a name, of a file or a folder, may match two globs without
// a slash. Folding may change how long a name is, so they are compared as they are too.
func namesMeet(a, b string) bool {
	if a == b || runesMeet(nameGlob(a), nameGlob(b)) {
		return true
	}
	foldedA, foldedB := foldName(a), foldName(b)
	return (foldedA != a || foldedB != b) && runesMeet(nameGlob(foldedA), nameGlob(foldedB))
}

// Parts of a glob of names that are not a letter. No text has such runes.
const (
	anyRun rune = -1 - iota // *: any letters, none too
	anyOne                  // ? or a class in brackets: one letter
)

// nameGlob splits a glob without a slash. A class is taken for any letter, and so is
// what is not a valid glob for any name.
func nameGlob(glob string) []rune {
	if !doublestar.ValidatePattern(glob) {
		return []rune{anyRun}
	}
	var parts []rune
	for in := []rune(glob); len(in) > 0; in = in[1:] {
		switch in[0] {
		case '*':
			parts = append(parts, anyRun)
		case '?':
			parts = append(parts, anyOne)
		case '\\':
			in = in[1:]
			parts = append(parts, in[0])
		case '[':
			parts = append(parts, anyOne)
			in = in[classEnd(in):]
		default:
			parts = append(parts, in[0])
		}
	}
	return parts
}

// classEnd returns where the class ends that a valid glob begins with.
func classEnd(glob []rune) int {
	for i := 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(glob) - 1
}

func runesMeet(a, b []rune) bool {
	meet, below := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		meet, below = below, meet
		for j := len(b); j >= 0; j-- {
			switch {
			case i < len(a) && a[i] == anyRun:
				meet[j] = below[j] || j < len(b) && meet[j+1]
			case j < len(b) && b[j] == anyRun:
				meet[j] = meet[j+1] || i < len(a) && below[j]
			case i == len(a) || j == len(b):
				meet[j] = i == len(a) && j == len(b)
			default:
				meet[j] = below[j+1] && (a[i] == b[j] || a[i] == anyOne || b[j] == anyOne)
			}
		}
	}
	return meet[0]
}
