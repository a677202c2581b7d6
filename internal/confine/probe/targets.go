package probe

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// runners are the programs that only start others. In a repository with several
// stacks, their test target tests all of them.
var runners = []string{"make", "just", "task"}

func makeStack(p *place) *found {
	name := p.firstOf("GNUmakefile", "makefile", "Makefile")
	data, ok := p.read(name)
	if !ok {
		return nil
	}
	targets, phony := makeTargets(string(data))
	// If a directory has the name of a target, make does not run the recipe.
	targets = slices.DeleteFunc(targets, func(t string) bool {
		idle := p.names[t] != 0 && p.hasDir(t) && !slices.Contains(phony, t)
		if idle && t == "test" {
			p.addProblem(p.pathOf(name), "target test never runs, because there is a directory test and it is not .PHONY")
		}
		return idle
	})
	return targetStack(p, "make", name, targets)
}

func justStack(p *place) *found {
	name := p.firstOf("justfile", "Justfile", ".justfile")
	data, ok := p.read(name)
	if !ok {
		return nil
	}
	return targetStack(p, "just", name, justRecipes(string(data)))
}

func taskStack(p *place) *found {
	name := p.firstOf("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
	data, ok := p.read(name)
	if !ok {
		return nil
	}
	return targetStack(p, "task", name, taskNames(string(data)))
}

// targetStack makes the stack of a file with targets. It returns nil if none of them
// is of use; below the root only a target that tests is.
func targetStack(p *place, program, file string, targets []string) *found {
	pick := func(names ...string) *Command {
		for _, name := range names {
			if slices.Contains(targets, name) {
				return p.command(program+" "+name, file+" "+name)
			}
		}
		return nil
	}
	f := p.newStack(program, program, file)
	f.covers = true
	f.Setup = pick("setup", "deps", "bootstrap")
	f.Test = pick("test", "tests", "check")
	f.Lint = pick("lint")
	f.Typecheck = pick("typecheck", "type-check", "types")
	f.Build = pick("build")
	useful := f.Test != nil || p.dir == "." && (f.Lint != nil || f.Typecheck != nil || f.Build != nil || f.Setup != nil)
	if !useful {
		return nil
	}
	return f
}

// makeTargets lists the targets of a makefile whose names have no variables or
// patterns, and the targets that are declared phony.
func makeTargets(text string) (targets, phony []string) {
	define := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, _, _ = strings.Cut(strings.TrimRight(line, "\r\n"), "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '\t':
			continue
		case words[0] == "define":
			define = true
		case words[0] == "endef":
			define = false
		}
		if define {
			continue
		}
		left, right, ok := strings.Cut(line, ":")
		if !ok || isAssignment(left, right) {
			continue
		}
		names := strings.Fields(left)
		if slices.Equal(names, []string{".PHONY"}) {
			phony = append(phony, strings.Fields(right)...)
			continue
		}
		for _, name := range names {
			if !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "%$(){}=") {
				targets = append(targets, name)
			}
		}
	}
	return targets, phony
}

// isAssignment reports whether a line with a colon sets a variable and is not a rule.
func isAssignment(left, right string) bool {
	value, _, _ := strings.Cut(right, ";")
	value = strings.TrimPrefix(strings.TrimPrefix(value, ":"), ":")
	return strings.Contains(left, "=") || strings.Contains(value, "=")
}

var (
	justRecipe = lazyregexp.New(`^@?([A-Za-z][A-Za-z0-9_-]*)((?:\s+[^:=\s]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s:"']+))?)*)\s*:(?:[^=]|$)`)
	justAlias  = lazyregexp.New(`^alias\s+([A-Za-z][A-Za-z0-9_-]*)\s*:=`)
)

// justRecipes lists the recipes that need no argument.
func justRecipes(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if match := justAlias.FindStringSubmatch(line); match != nil {
			all = append(all, match[1])
		}
		if match := justRecipe.FindStringSubmatch(line); match != nil && allOptional(match[2]) {
			all = append(all, match[1])
		}
	}
	return all
}

// allOptional reports whether each parameter of a recipe has a default or may be
// missing.
func allOptional(parameters string) bool {
	for word := range strings.FieldsSeq(parameters) {
		if !strings.HasPrefix(word, "*") && !strings.Contains(word, "=") {
			return false
		}
	}
	return true
}

var taskName = lazyregexp.New(`^(\s+)["']?([A-Za-z0-9][A-Za-z0-9_.-]*)["']?:(?:\s|$)`)

// taskNames lists the keys directly below tasks. It reads lines and does not parse
// YAML: the names that matter are plain, and no alias of an untrusted file is
// expanded.
func taskNames(text string) []string {
	var all []string
	inside, indent := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		switch {
		case line == "" || strings.HasPrefix(strings.TrimSpace(line), "#"):
			continue
		case line[0] != ' ':
			inside, indent = line == "tasks:", ""
			continue
		}
		match := taskName.FindStringSubmatch(line)
		if !inside || match == nil {
			continue
		}
		if indent == "" {
			indent = match[1]
		}
		if match[1] == indent {
			all = append(all, match[2])
		}
	}
	return all
}
