package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

// Limits of what is looked into. Beyond them a line is unclear.
const (
	deepest = 6 // shells within shells
	longest = 64 << 10
)

// word is one word of a command, as the shell would pass it on. Open means that
// a part of it is only known when it runs.
// Glob means that it stands for names of files, which may begin as an option does.
type word struct {
	text string
	open bool
	glob bool
}

// script is what a line for a shell runs, as far as it can be told without
// running it: every simple command at any depth, pipes, substitutions and
// groups taken apart. Unclear means that something was not understood.
type script struct {
	commands [][]word
	here     []string // texts that commands get on standard input
	unclear  bool
}

// readScript reads a text that is depth levels deep in others.
func readScript(text string, depth int) script {
	var s script
	if depth > deepest || len(text) > longest {
		s.unclear = true
		return s
	}
	file, err := shell.Parse(text)
	s.addFile(text, file)
	if err == nil {
		return s
	}
	s.unclear = true
	for line := range strings.Lines(text) { // Some shells accept more, and run the other lines.
		if file, err := shell.Parse(line); err == nil {
			s.addFile(line, file)
		}
	}
	return s
}

// addFile adds all statements of a text, at any depth.
func (s *script) addFile(text string, file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if stmt, ok := n.(*syntax.Stmt); ok {
			s.addStatement(text, stmt)
		}
		return true
	})
}

// addStatement adds the simple command of a statement and what it reads. The
// statements within are added by themselves.
func (s *script) addStatement(text string, stmt *syntax.Stmt) {
	var words []word
	cmd := stmt.Cmd
	switch c := cmd.(type) {
	case *syntax.TimeClause:
		words = append(words, word{text: "time"})
		if c.Stmt != nil {
			cmd = c.Stmt.Cmd
		}
	case *syntax.CoprocClause:
		words, cmd = append(words, word{text: "coproc"}), c.Stmt.Cmd
	}
	if call, ok := cmd.(*syntax.CallExpr); ok {
		for _, w := range call.Args {
			words = append(words, wordOf(w, len(words) == 0))
		}
	}
	for _, r := range stmt.Redirs {
		switch {
		case r.Hdoc != nil:
			// A document that ends with the text may have positions behind it.
			size := uint(len(text))
			s.here = append(s.here, text[min(r.Hdoc.Pos().Offset(), size):min(r.Hdoc.End().Offset(), size)])
		case r.Op == syntax.WordHdoc && len(words) > 0:
			words = append(words, wordOf(r.Word, false))
		}
	}
	if len(words) > 0 {
		s.commands = append(s.commands, words)
	}
}

// wordOf is what is known of a word. Only of the first word of a command it
// matters that it is a pattern: what others stand for are files.
func wordOf(w *syntax.Word, first bool) word {
	var b strings.Builder
	var open, glob bool
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			open = open || first && strings.ContainsAny(p.Value, "*?[{") && p.Value != "["
			glob = glob || b.Len() == 0 && p.Value != "" && strings.ContainsAny(p.Value[:1], "*?[")
			b.WriteString(shell.Unescaped(p))
		case *syntax.SglQuoted:
			open = open || p.Dollar && strings.Contains(p.Value, `\`)
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					b.WriteString(shell.UnescapedQuoted(lit))
				} else {
					open = true
				}
			}
		default:
			open = true
		}
	}
	return word{b.String(), open, glob}
}
