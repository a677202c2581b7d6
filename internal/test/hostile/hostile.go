// Package hostile holds definitions that are made to hurt whoever reads them:
// by what they expand to, how deep they go, or how often a scanner looks back.
//
// It reads nothing itself. Only tests and measurements import it.
package hostile

import (
	"fmt"
	"strings"
)

// Text is one definition.
type Text struct {
	Text   string
	Refuse bool // it must be refused; otherwise it is read as written
}

// Large is the number of bytes from which on a text is long rather than
// intricate.
const Large = 500_000

// Texts are the definitions, by what is wrong with them.
func Texts() map[string]Text {
	return map[string]Text{
		"an alias bomb":              {nestedAliases(), false},
		"an anchor in itself":        {"name: &a [*a, *a]\n", false},
		"a merge bomb":               {"a: &a {x: y}\nname: x\n" + strings.Repeat("<<: [*a, *a]\n", 400), false},
		"deep brackets":              {"name: " + strings.Repeat("[", 100_000), true},
		"deep closed brackets":       {"name: " + strings.Repeat("[", 900) + strings.Repeat("]", 900), true},
		"deep brackets behind fakes": {"name: " + strings.Repeat(`["]",`, 20_000), true},
		"deep braces":                {"name: " + strings.Repeat("{a: ", 100_000), true},
		"deep dashes":                {"name:\n" + strings.Repeat("- ", 100_000), true},
		"deep indentation":           {deepStairs(), true},
		"deep question marks":        {"name: x\n" + strings.Repeat("? ", 15_000), false},
		"many tags":                  {"name: " + strings.Repeat("!!a ", 7_500), false},
		"many tabs":                  {"name: x" + strings.Repeat("\t", 30_000) + "y", false},
		"many words and tabs":        {"name: x" + strings.Repeat("\ty", 4_000), false},
		"many marks":                 {"name: " + strings.Repeat(": !", 2_600), false},
		"many flow pairs":            {"name: x\nscope: [é," + strings.Repeat("a: b, ", 1_300) + "x]", false},
		"many flow items":            {strings.Repeat("name: [é,"+strings.Repeat("é,", 2_500)+"x]\n", 2), false},
		"many flow marks":            {"name: [" + strings.Repeat("!,&,", 1_900) + "x]", false},
		"many anchors":               {"name: " + strings.Repeat("&a ", 10_000), false},
		"many blank lines":           {"name: |\n" + strings.Repeat("\n", 30_000) + " x\n", false},
		"blank lines in runs":        {"name: |\n" + strings.Repeat(" x\n"+strings.Repeat("\n", 100), 300), false},
		"a million commas":           {"name: [" + strings.Repeat("b,", 500_000) + "]", false},
		"a megabyte of prose":        {"name: x\n" + strings.Repeat("b\n", 500_000), false},
		"a megabyte of keys":         {strings.Repeat("abc: d\n", 140_000), true},
		"too many keys":              {strings.Repeat("abc: d\n", 1_001), true},
		"ten megabytes":              {"name: " + strings.Repeat("x", 10<<20), true},
		"a megabyte of marks":        {"name: x\n" + strings.Repeat(`"'`, 500_000), false},
		"a megabyte of lists":        {"name: x: y\nscope:\n" + strings.Repeat("- \"a #\n", 140_000), false},
	}
}

// nestedAliases returns a list of ten lists of ten items, nested ten times.
func nestedAliases() string {
	var b strings.Builder
	b.WriteString("name: x\na: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'k'; c++ {
		alias := "*" + string(c-1)
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.Repeat(alias+", ", 9)+alias)
	}
	return b.String()
}

func deepStairs() string {
	var b strings.Builder
	for i := range 200 {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
