package policy

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// Longest names in bytes, as file systems have them.
const (
	MaxName = 255
	MaxPath = 4095
)

// shortName is a name that a file system may have given to another file, as
// PACKAG~1.JSO to package.json.
var shortName = lazyregexp.New(`^[!-~]{1,6}~[0-9]{1,6}(\.[!-~]{0,3})?$`)

// checkSpelling says why a name is not a clean relative path with a single
// spelling; both results are empty if it is.
func checkSpelling(name string) (Code, string) {
	switch {
	case name == "" || name == "." || name != path.Clean(name) || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../"):
		return CodeNonCanonical, "not a clean relative path"
	case strings.Contains(name, `\`):
		return CodeNonCanonical, "backslash in the name"
	case name[0] == '-':
		return CodeNonCanonical, "a leading dash reads as an option"
	case !utf8.ValidString(name):
		return CodeNormalisation, "not UTF-8"
	case len(name) > MaxPath:
		return CodeLength, "path of more than 4095 bytes"
	case strings.ContainsFunc(name, unicode.IsControl):
		return CodeControlChar, "control character in the name"
	case strings.ContainsFunc(name, isInvisible):
		return CodeControlChar, "invisible or direction character in the name"
	case !norm.NFC.IsNormalString(name):
		return CodeNormalisation, "not in Unicode form NFC"
	case strings.ContainsRune(name, 'İ'):
		return CodeNormalisation, "İ, whose lower case depends on the language"
	}
	for part := range strings.SplitSeq(name, "/") {
		if code, why := canonicalPart(part); why != "" {
			return code, why
		}
	}
	return "", ""
}

func canonicalPart(part string) (Code, string) {
	switch {
	case len(part) > MaxName:
		return CodeLength, "name of more than 255 bytes"
	case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
		return CodeNonCanonical, "a name ends in a dot or a space, which some file systems drop"
	case shortName.MatchString(part):
		return CodeNonCanonical, "a name that can be short for another one"
	}
	return "", ""
}

// isInvisible reports whether a character does not show and makes one name look
// like another: formats and directions, separators of lines, and fillers.
// Variation selectors are in the names of many pictures and are only ignored.
func isInvisible(c rune) bool {
	return unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// foldName is what all spellings have in common that a file system or a
// program may take for the same name. It is folded part by part, so that a
// folder's is the beginning of what its files have.
func foldName(name string) string {
	if isPlain(name) {
		return strings.ToLower(name)
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = foldPart(part)
	}
	return strings.Join(parts, "/")
}

// isPlain reports whether folding changes only the letter case of a name.
func isPlain(name string) bool {
	for i := range len(name) {
		c, last := name[i], i+1 == len(name) || name[i+1] == '/'
		if c >= utf8.RuneSelf || last && (c == '.' || c == ' ') {
			return false
		}
	}
	return true
}

// oddities are letters that fold into two, those of which the case depends on
// the language, and what compatibility forms leave of a slash.
var oddities = strings.NewReplacer("ß", "ss", "i\u0307", "i", "İ", "i", "ı", "i", "/", "\u2215")

// foldPart folds until nothing is left to fold: what one step leaves can be
// what another one takes. The bound is for what nobody has thought of.
func foldPart(part string) string {
	for range 8 {
		folded := strings.Map(foldLetter, norm.NFKC.String(strings.Map(dropInvisible, part)))
		folded = strings.TrimRight(oddities.Replace(norm.NFKC.String(folded)), ". ")
		if folded == part {
			break
		}
		part = folded
	}
	return part
}

// foldLetter returns one and the same letter for all that differ in case only.
// It is not cases.Fold, which swaps the cases of Cherokee.
func foldLetter(c rune) rune {
	least := c
	for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	if 'A' <= least && least <= 'Z' {
		return least - 'A' + 'a'
	}
	return least
}

// dropInvisible leaves out what is invisible.
func dropInvisible(c rune) rune {
	if isInvisible(c) || unicode.Is(unicode.Variation_Selector, c) {
		return -1
	}
	return c
}

// spellings are the folded names by which a path can be meant: its own, and
// the one without the streams that a colon begins on NTFS.
func spellings(name string) []string {
	folded := foldName(name)
	if !strings.Contains(folded, ":") {
		return []string{folded}
	}
	parts := strings.Split(folded, "/")
	for i, part := range parts {
		part, _, _ = strings.Cut(part, ":")
		parts[i] = strings.TrimRight(part, ". ")
	}
	return []string{folded, strings.Join(parts, "/")}
}
