package definition

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// WriteEntry returns an entry of a definition, without its line end, from which a YAML parser
// and a reader of lines both read exactly the same value.
func WriteEntry(key, value string) string { return key + ": " + yamlText(value) }

// WriteList returns an entry with one item on each line. If an item needs escapes, all are
// written in one line as a flow list, which readers of lines pass to a YAML parser.
func WriteList(key string, items []string) string {
	lines, flow := key+":", make([]string, len(items))
	inLine := false
	for i, item := range items {
		text, ok := lineText(item)
		inLine = inLine || !ok
		lines += "\n  - " + text
		flow[i] = quoteFlow(item)
	}
	if inLine {
		return key + ": [" + strings.Join(flow, ", ") + "]"
	}
	return lines
}

// yamlText writes a value so that a YAML parser and a reader of lines both return
// exactly the same value: in one line if possible, otherwise as a block.
func yamlText(value string) string {
	if text, ok := lineText(value); ok {
		return text
	}
	return "|-\n  " + strings.ReplaceAll(value, "\n", "\n  ")
}

// bareText matches values that every reader takes for text.
var bareText = lazyregexp.New(`^[A-Za-z_./][A-Za-z0-9_./*-]*$|^[0-9]+[A-Za-z][A-Za-z0-9_.-]*$`)

// yamlWords are words that YAML parsers do not take for text.
var yamlWords = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n", ".", "..", "...", ".inf", ".nan"}

// lineText writes a value without quotes, or in quotes that need no escapes, which
// readers of lines do not know. It reports false if the value needs escapes.
func lineText(value string) (string, bool) {
	_, notFloat := strconv.ParseFloat(value, 64)
	_, notInt := strconv.ParseInt(value, 0, 64)
	switch {
	case strings.Contains(value, "\n"):
		return "", false
	case bareText.MatchString(value) && notFloat != nil && notInt != nil && !slices.Contains(yamlWords, strings.ToLower(value)):
		return value, true
	case !strings.ContainsAny(value, `"\`):
		return `"` + value + `"`, true
	case !strings.Contains(value, "'"):
		return "'" + value + "'", true
	}
	return "", false
}

var flowEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func quoteFlow(value string) string { return `"` + flowEscapes.Replace(value) + `"` }
