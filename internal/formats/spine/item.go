package spine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// maxText is the longest text of an item, in runes.
const maxText = 500

var (
	escapes  = lazyregexp.New(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x07\x1b\x{9c}]*(?:\x07|\x1b\\|\x{9c})?|\x1b[ -/]*[0-~]?`)
	comments = lazyregexp.New(`<!--.*?-->`)
	leading  = lazyregexp.New(`^(?:[-*+](?: |$)|\[[Pp]([1-9])\] ?)`)
	tagged   = lazyregexp.New(`^([ \t]*[-*+][ \t]+)(?:\[[Pp][1-9]\][ \t]*)?`)

	// Marks that remain after complete comments were removed must neither open nor
	// close a comment in the file.
	unpair = strings.NewReplacer("<!--", "<! --")
	arrow  = strings.NewReplacer("-->", "→")
)

// ItemKey returns the identity of an item with this text, which may have bullet, tag
// and comments. It is empty for a text that cannot be an item.
func ItemKey(text string) string {
	_, text = cleanItem(text)
	return cleanKey(text)
}

func cleanKey(clean string) string {
	if isPlaceholder(clean) {
		return ""
	}
	return strings.ToLower(clean)
}

func isPlaceholder(clean string) bool {
	bare := strings.Trim(clean, "_* ")
	return strings.EqualFold(bare, placeholder) || strings.EqualFold(bare, "(none)")
}

// cleanItem splits an item's text into the number of its first tag and the text in
// the form that it has when the line of STATE.md is read again.
func cleanItem(text string) (priority int, line string) {
	line = foldText(text)
	for {
		m := leading.FindStringSubmatch(line)
		if m == nil {
			return priority, boundText(line)
		}
		if m[1] != "" && priority == 0 {
			priority = int(m[1][0] - '0')
		}
		line = strings.TrimLeft(line[len(m[0]):], " ")
	}
}

func oneLine(text string) string { return boundText(foldText(text)) }

// foldText makes any text one line that is harmless on a terminal and in Markdown,
// without escapes, control characters, direction marks and comments.
func foldText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = escapes.ReplaceAllString(text, "")
	}
	text = strings.Map(foldRune, text)
	if strings.Contains(text, "--") {
		text = arrow.Replace(unpair.Replace(comments.ReplaceAllString(text, "")))
	}
	return strings.Join(strings.Fields(text), " ")
}

// foldRune replaces an invisible character by a space, or removes it if it hides
// between letters. The two joiners are part of ordinary words and emoji.
func foldRune(r rune) rune {
	switch {
	case r == '\u200c' || r == '\u200d':
		return r
	case unicode.IsControl(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return ' '
	case unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

func boundText(text string) string {
	if len(text) <= maxText || utf8.RuneCountInString(text) <= maxText {
		return text
	}
	runes := 0
	for at := range text {
		if runes++; runes == maxText {
			return text[:at] + "…"
		}
	}
	return text
}

// itemLine is the line of a new item, without its line end.
func itemLine(indent string, priority int, text string) string {
	return setTag(indent+"- "+text, priority)
}

// setTag gives an item's line the tag of a priority of 1 to 9. The rest of the line,
// spacing included, stays.
func setTag(line string, priority int) string {
	m := tagged.FindStringSubmatch(line)
	if m == nil || priority < 1 || priority > 9 {
		return line
	}
	return fmt.Sprintf("%s[P%d] %s", m[1], priority, line[len(m[0]):])
}
