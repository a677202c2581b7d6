package definition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// explainWidth is the longest line that ExplainKey and ExplainAll print, in characters;
// only an example may be longer.
const explainWidth = 100

// ExplainKey explains a key in plain text, without colours. The text ends with a newline.
// The error for an unknown key is a *loop.Fault with exit status 3 that suggests a similar
// one.
func ExplainKey(key string) (string, error) {
	f, ok := LookupField(key)
	if !ok {
		return "", unknownKey(key)
	}
	var b strings.Builder
	b.WriteString(f.Name + "\n")
	for _, row := range f.factRows() {
		fmt.Fprintf(&b, "  %-9s%s\n", row[0], strings.Join(wrapText(row[1], explainWidth-11), "\n"+strings.Repeat(" ", 11)))
	}
	for _, paragraph := range []string{f.Meaning, f.More} {
		b.WriteString("\n" + strings.Join(wrapText(paragraph, explainWidth), "\n") + "\n")
	}
	b.WriteString("\nExample:\n  " + f.ExampleLine() + "\n")
	return b.String(), nil
}

func unknownKey(key string) error {
	fix := "{1} lists the keys"
	if similar := SimilarKey(key); similar != "" {
		fix = "did you mean " + similar + "? " + fix
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "explain " + readiness.Quote(key), Why: "there is no such key", Err: loop.ErrNotFound,
		Fix: fix, Actions: []loop.Command{loop.PawlCommand("explain")},
	}
}

// factRows returns the rows at the start of an explanation.
func (f Field) factRows() [][2]string {
	rows := [][2]string{{"needed", f.neededText()}, {"kind", f.kindText()}}
	if len(f.Values) > 0 {
		values := strings.Join(f.Values, ", ")
		if f.Open {
			values += ", or another"
		}
		rows = append(rows, [2]string{"values", values})
	}
	if fallback := f.Fallback(); fallback != "" {
		rows = append(rows, [2]string{"default", fallback})
	}
	if f.NotYet == Refused {
		rows = append(rows, [2]string{"now", "not supported by this version yet: " + f.onlyDefault()})
	}
	return rows
}

func (f Field) neededText() string {
	switch f.Required {
	case RequiredAlways:
		return "yes"
	case RequiredFromL2:
		return "yes, from tier L2 on"
	case RequiredAdvised:
		return "recommended: without it pawl check warns"
	}
	return "no"
}

// kindText says how the value is written.
func (f Field) kindText() string {
	words := map[Kind]string{
		KindText: "text", KindCommand: "a command, run by /bin/sh -c", KindEnum: "one of the values",
		KindCadence: "an interval like 10m, 6h or 1d, or five cron fields", KindGlobs: "a list of globs, or one",
		KindList: "a list, or one item", KindCount: "a whole number from 1, in digits", KindAmount: "US dollars",
		KindDuration: "a duration like 90s, 10m, 1h30m, 2d or 1w", KindSize: "a size like 8GiB or 500MB", KindFlag: "true or false",
	}
	return words[f.Kind]
}

// ExplainAll returns a line of headings and one line for each key. It ends with a newline.
func ExplainAll() string {
	var b strings.Builder
	row := func(name, mark, meaning string) { fmt.Fprintf(&b, "%-19s  %-11s  %s\n", name, mark, meaning) }
	row("KEY", "NEEDED", "MEANING")
	for _, f := range fields {
		mark := f.Required
		if f.NotYet != "" {
			mark = f.NotYet
		}
		row(f.Name, mark, f.Meaning)
	}
	return b.String()
}

// wrapText breaks a text at its spaces into lines of at most width characters; a
// longer word has a line of its own.
func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
