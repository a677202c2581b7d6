// Package shell says what is certain about a line for the shell before it runs.
// It runs nothing and expands nothing.
package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unescaped takes the escapes of double quotes out.
var unescaped = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`")

// Literal is what a word says before the shell expands anything, or empty if
// only the shell knows.
func Literal(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(unescaped.Replace(lit.Value))
			}
		default:
			return ""
		}
	}
	return b.String()
}
