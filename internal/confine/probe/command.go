package probe

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// command makes a command that runs in the place; from is the reason for it, and
// begins with a file name. The first word of line is the program that it needs.
// Lines consist of constants and quoted names, so that nothing else in a repository
// reaches a shell.
func (p *place) command(line, from string) *Command {
	word, _, _ := strings.Cut(strings.TrimPrefix(line, "CI=true "), " ")
	c := &Command{Line: line, From: from, Needs: []Need{{Dir: p.dir, Word: word}}}
	if p.dir != "." {
		c.Line = "(cd " + Quoted(p.dir) + " && " + line + ")"
		c.From = p.dir + "/" + from
	}
	return c
}

// commandIf returns nil if the condition is false.
func (p *place) commandIf(ok bool, line, from string) *Command {
	if !ok {
		return nil
	}
	return p.command(line, from)
}

// newStack makes a stack of the place without commands.
func (p *place) newStack(family, name, manifest string) *found {
	return &found{family: family, Stack: Stack{Name: name, Dir: p.dir, Manifest: p.pathOf(manifest)}}
}

// findLockfile returns the path of the first of the names that exists, or an empty
// string.
func (p *place) findLockfile(names ...string) string {
	if name := p.firstOf(names...); name != "" {
		return p.pathOf(name)
	}
	return ""
}

// Quoted returns word quoted so that a shell reads it as one word, and so that a
// program does not take it for a flag.
func Quoted(word string) string {
	if strings.HasPrefix(word, "-") {
		word = "./" + word
	}
	return loop.QuoteWord(word)
}

// joinCommands chains commands with &&. It leaves out nil and repeated commands.
func joinCommands(commands ...*Command) Command {
	var lines, froms []string
	var needs []Need
	for _, c := range commands {
		if c == nil || slices.Contains(lines, c.Line) {
			continue
		}
		lines, froms, needs = append(lines, c.Line), append(froms, c.From), append(needs, c.Needs...)
	}
	return Command{Line: strings.Join(lines, " && "), From: strings.Join(withoutRepeats(froms), ", "), Needs: withoutRepeats(needs)}
}

// withoutRepeats keeps the first of equal elements.
func withoutRepeats[T comparable](list []T) []T {
	var all []T
	for _, e := range list {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}
