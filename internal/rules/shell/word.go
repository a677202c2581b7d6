// Package shell says what is certain about a line for the shell before it runs.
// It runs nothing and expands nothing.
package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// quotedEscapes are the escapes that double quotes know.
var quotedEscapes = strings.NewReplacer("\\\n", "", `\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`")

// Unescaped is a part of a word without quotes, as the shell passes it on.
func Unescaped(p *syntax.Lit) string {
	if !strings.Contains(p.Value, `\`) {
		return p.Value
	}
	var b strings.Builder
	for i := 0; i < len(p.Value); i++ {
		if p.Value[i] == '\\' {
			if i++; i == len(p.Value) || p.Value[i] == '\n' {
				continue
			}
		}
		b.WriteByte(p.Value[i])
	}
	return b.String()
}

// UnescapedQuoted is a part of a text in double quotes, as the shell passes it on.
func UnescapedQuoted(p *syntax.Lit) string { return quotedEscapes.Replace(p.Value) }

// Literal is what a word says before the shell expands anything, or empty if
// only the shell knows.
func Literal(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(Unescaped(p))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(UnescapedQuoted(lit))
			}
		default:
			return ""
		}
	}
	return b.String()
}
