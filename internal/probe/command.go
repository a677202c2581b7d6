package probe

import (
	"slices"
	"strings"
)

// command makes a command of the place. Its first word is the program that it
// needs. Lines are constants and quoted names: nothing else that a repository
// contains reaches a shell.
func (p *place) command(line, from string) *Command {
	word, _, _ := strings.Cut(strings.TrimPrefix(line, "CI=true "), " ")
	c := &Command{Line: line, From: from, Needs: []Need{{Dir: p.dir, Word: word}}}
	if p.dir != "." {
		c.Line = "(cd " + Quoted(p.dir) + " && " + line + ")"
		c.From = p.dir + "/" + from
	}
	return c
}

// when is command, or nil if the condition does not hold.
func (p *place) when(ok bool, line, from string) *Command {
	if !ok {
		return nil
	}
	return p.command(line, from)
}

// stack begins a stack of the place, named and found by its manifest.
func (p *place) stack(family, name, manifest string) *found {
	return &found{family: family, Stack: Stack{Name: name, Dir: p.dir, Manifest: p.path(manifest)}}
}

// lockfile is the path of the first of the names that there is, or empty.
func (p *place) lockfile(names ...string) string {
	if name := p.first(names...); name != "" {
		return p.path(name)
	}
	return ""
}

// plainToShell are the characters that have no meaning to a shell.
const plainToShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+@:,"

// Quoted makes one word of the shell out of any text.
func Quoted(word string) string {
	if strings.HasPrefix(word, "-") {
		word = "./" + word
	}
	if word != "" && strings.Trim(word, plainToShell) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// join chains commands so that each runs only if those before it succeeded.
// Nil and repeated commands are left out.
func join(commands ...*Command) Command {
	var lines, froms []string
	var needs []Need
	for _, c := range commands {
		if c == nil || slices.Contains(lines, c.Line) {
			continue
		}
		lines, froms, needs = append(lines, c.Line), append(froms, c.From), append(needs, c.Needs...)
	}
	return Command{Line: strings.Join(lines, " && "), From: strings.Join(unique(froms), ", "), Needs: unique(needs)}
}

// unique keeps the first of equal elements.
func unique[T comparable](list []T) []T {
	var all []T
	for _, e := range list {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}
