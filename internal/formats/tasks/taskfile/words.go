package taskfile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// MaxValue is the longest value that is written into one line, in characters.
const MaxValue = 500

// arrowEscape is what text has for the end of a comment.
const arrowEscape = `--\>`

var escapes = lazyregexp.New(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x07\x1b\x{9c}]*(?:\x07|\x1b\\|\x{9c})?|\x1b[ -/]*[0-~]?`)

// fold makes any text one line without control and invisible characters and without
// the marks of comments, at most MaxValue characters long.
func fold(text string) string {
	text = strings.Join(strings.Fields(cleanRunes(text, false)), " ")
	if strings.Contains(text, "--") {
		text = strings.NewReplacer("<!--", "<! --", "-->", "→").Replace(text)
	}
	return bound(text, MaxValue)
}

// foldRows makes any text lines without control and invisible characters. The first
// and the last one are not blank.
func foldRows(text string) []string {
	rows := strings.Split(cleanRunes(strings.ReplaceAll(text, "\r\n", "\n"), true), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRightFunc(row, unicode.IsSpace)
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	for len(rows) > 0 && rows[0] == "" {
		rows = rows[1:]
	}
	return rows
}

// cleanRunes replaces control characters by spaces and removes invisible ones. The two
// joiners are part of ordinary words and pictures.
func cleanRunes(text string, lines bool) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = escapes.ReplaceAllString(text, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u200c' || r == '\u200d', lines && (r == '\n' || r == '\t'):
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}

func bound(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for at := range text {
		if n++; n == most {
			return text[:at] + "…"
		}
	}
	return text
}

// value is the part of a line that a field owns.
type value struct {
	text       string // without marks and trailing comment
	start, end int    // bytes of the line
}

// cutField reads "- Name: value", "**Name**: value" and the like from a line that is
// indented or not. Without a colon or with a name of other characters ok is false.
func cutField(line string) (name string, v value, ok bool) {
	at := len(line) - len(strings.TrimLeft(line, " \t"))
	if rest := line[at:]; len(rest) > 1 && strings.IndexByte("-*+", rest[0]) >= 0 && (rest[1] == ' ' || rest[1] == '\t') {
		at = len(line) - len(strings.TrimLeft(rest[1:], " \t"))
	}
	for at < len(line) && (line[at] == '*' || line[at] == '_') {
		at++
	}
	first := at
	for at < len(line) && isNameByte(line[at]) {
		at++
	}
	name = strings.TrimRight(line[first:at], " _")
	for at < len(line) && (line[at] == '*' || line[at] == ' ') {
		at++
	}
	if name == "" || len(name) > 40 || at >= len(line) || line[at] != ':' {
		return "", value{}, false
	}
	at++
	if strings.HasPrefix(line[at:], "**") || strings.HasPrefix(line[at:], "__") {
		at += 2
	}
	return name, cutValue(line, at), true
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == ' ' || c == '_' || c == '-'
}

// cutValue finds the value that begins at or after a byte of a line. A comment behind
// it, and the blanks, are not part of it.
func cutValue(line string, at int) value {
	text, _ := cutLineEnd(line)
	at = min(at, len(text))
	if c := strings.Index(text[at:], "<!--"); c >= 0 {
		text = text[:at+c]
	}
	start := len(text) - len(strings.TrimLeft(text[at:], " \t"))
	end := max(len(strings.TrimRight(text, " \t")), start)
	return value{text: text[start:end], start: start, end: end}
}

// setValue replaces the value of a line.
func setValue(line string, v value, text string) string {
	before := line[:v.start]
	if text != "" && strings.HasSuffix(before, ":") {
		before += " "
	}
	after := line[v.end:]
	if text != "" && strings.HasPrefix(after, "<") {
		after = " " + after
	}
	return before + text + after
}

// enumWord is a word of an enum as it is compared.
func enumWord(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '_':
			return '-'
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, strings.Trim(text, "*_`\"' \t"))
}

// cutList splits a list of words: "[a, b]", "a; b", "none" and "-".
func cutList(text string) []string {
	text = strings.Trim(text, "[] \t")
	if text == "" {
		return nil
	}
	var words []string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		word = strings.Trim(word, "*`\"' \t")
		switch strings.ToLower(word) {
		case "", "-", "–", "—", "none", "n/a", "nothing":
		default:
			words = append(words, word)
		}
	}
	return words
}
