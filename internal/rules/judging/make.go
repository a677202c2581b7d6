package judging

import (
	"path"
	"slices"
	"strings"
)

// makefiles are the names that make looks for, in its order.
var makefiles = []string{"GNUmakefile", "makefile", "Makefile"}

// followMake follows the targets that a call of make names, or else the first one.
func (f *follower) followMake(sh *shellState, args []string) {
	var files, targets []string
	given := map[string]string{}
	for i := 0; i < len(args); i++ {
		w := args[i]
		name, value, assigned := strings.Cut(w, "=")
		switch {
		case (w == "-C" || w == "--directory") && i+1 < len(args):
			i++
			sh = sh.onlyIn(args[i])
		case strings.HasPrefix(w, "--directory="):
			sh = sh.onlyIn(value)
		case strings.HasPrefix(w, "-C") && len(w) > 2:
			sh = sh.onlyIn(w[2:])
		case (w == "-f" || w == "--file" || w == "--makefile") && i+1 < len(args):
			i++
			files = append(files, args[i])
		case strings.HasPrefix(w, "--file=") || strings.HasPrefix(w, "--makefile="):
			files = append(files, value)
		case strings.HasPrefix(w, "-f") && len(w) > 2:
			files = append(files, w[2:])
		case slices.Contains([]string{"-I", "--include-dir", "-o", "-W", "-E"}, w):
			i++
		case w == "-j" || w == "-l":
			if i+1 < len(args) && strings.Trim(args[i+1], "0123456789.") == "" {
				i++
			}
		case strings.HasPrefix(w, "-") || w == "":
		case assigned:
			given[name] = value
		default:
			targets = append(targets, w)
		}
	}
	named := len(files) > 0
	if !named {
		files = makefiles
	}
	for _, name := range files {
		globs := sh.globs(name)
		if named {
			f.protectFiles(globs)
		}
		for _, glob := range globs {
			for _, file := range f.matchingFiles(glob) {
				if _, there := f.readText(sh.where, file); there {
					f.withinDepth(file, func() { f.followMakefile(sh, file, targets, given) })
				}
			}
		}
	}
}

// onlyIn returns the shell for a command that runs in one other folder, relative to
// its own.
func (sh *shellState) onlyIn(dir string) *shellState {
	c := sh.movedTo(dir)
	if !c.anywhere && len(c.dirs) > len(sh.dirs) {
		c.dirs = c.dirs[len(sh.dirs):]
	}
	return c
}

// rule is one rule of a makefile.
type rule struct {
	targets, needs []string
	recipe         []string
	where          string
}

// makefile is what is read of a makefile and of all that it includes.
type makefile struct {
	*follower
	vars  map[string]string
	given map[string]string // variables of the command line
	files map[string]bool   // that were read
	rules []rule
	shell string
	first string // target, if none is named
	one   bool   // a recipe is one text for the shell
	local *shellState
}

// followMakefile follows the recipes of some targets of a makefile.
func (f *follower) followMakefile(sh *shellState, file string, targets []string, given map[string]string) {
	key := []string{"make", file, strings.Join(sh.dirs, ":"), strings.Join(targets, " ")}
	for name, value := range given {
		key = append(key, name+"="+value)
	}
	if !f.firstTime(key[:4]...) {
		return
	}
	f.protectFiles([]string{file})
	inner := *sh
	inner.where = file
	if slices.Contains(sh.dirs, path.Dir(file)) {
		inner.dirs = []string{path.Dir(file)} // It was found there.
	}
	m := &makefile{follower: f, vars: map[string]string{}, files: map[string]bool{}, given: given, local: &inner}
	m.readFile(file)
	if len(targets) == 0 {
		targets = []string{m.first}
		if goal := m.expand("$(.DEFAULT_GOAL)", nil); goal != "" && !partlyUnknown(goal) {
			targets = []string{goal}
		}
	}
	done := map[string]bool{}
	for _, t := range targets {
		m.followTarget(t, done)
	}
}

// followTarget follows the recipes of a target and of all that it needs.
func (m *makefile) followTarget(name string, done map[string]bool) {
	if name == "" || done[name] || len(done) > 2000 {
		return
	}
	done[name] = true
	known := false
	for _, pass := range []bool{false, true} {
		if pass && known {
			break // A pattern is for what no rule names.
		}
		for _, r := range m.rules {
			for _, t := range r.targets {
				stem, ok := "", t == name || partlyUnknown(t) && t != outside && matchesUnknown(t, name)
				if pattern := strings.Contains(t, "%"); pattern != pass {
					continue
				} else if pattern {
					stem, ok = stemOf(t, name)
				}
				if !ok {
					continue
				}
				known = known || len(r.recipe) > 0
				var needs []string
				for _, n := range r.needs {
					needs = append(needs, strings.ReplaceAll(n, "%", stem))
				}
				m.followRecipe(r, name, stem, needs)
				for _, n := range needs {
					m.followTarget(n, done)
				}
				break
			}
		}
	}
}

// matchesUnknown compares a name with a target that has unknown parts.
func matchesUnknown(target, name string) bool {
	glob := strings.NewReplacer(outside, "*", computed, "*").Replace(target)
	return strings.Trim(glob, "*/") != "" && Matches(glob, name)
}

func stemOf(pattern, name string) (string, bool) {
	head, tail, _ := strings.Cut(pattern, "%")
	if len(name) <= len(head)+len(tail) || !strings.HasPrefix(name, head) || !strings.HasSuffix(name, tail) {
		return "", false
	}
	return name[len(head) : len(name)-len(tail)], true
}

func (m *makefile) followRecipe(r rule, target, stem string, needs []string) {
	first := ""
	if len(needs) > 0 {
		first = needs[0]
	}
	auto := map[string]string{
		"@": target, "*": stem, "<": first, "^": strings.Join(needs, " "), "+": strings.Join(needs, " "), "?": strings.Join(needs, " "),
		"@D": path.Dir(target), "@F": path.Base(target), "<D": path.Dir(first), "<F": path.Base(first), "|": "",
	}
	lines := r.recipe
	if m.one && len(lines) > 0 {
		lines = []string{strings.Join(lines, "\n")}
	}
	for _, line := range lines {
		expanded := m.expand(line, auto)
		for text := range strings.SplitSeq(expanded, "\n") {
			if m.one {
				text = expanded
			}
			text = strings.TrimLeft(text, "@-+ \t")
			inner := *m.local
			inner.where, inner.dirs, inner.vars = r.where, slices.Clone(m.local.dirs), map[string][]string{}
			if words := strings.Fields(m.shell); len(words) > 0 && !slices.Contains(shells, path.Base(words[len(words)-1])) {
				m.followCommand(&inner, append(words, "-c", text), feed{})
			}
			m.followRecipeLine(&inner, text)
			if m.one {
				break
			}
		}
	}
}

// readFile reads rules and variables. Both branches of a condition count.
func (m *makefile) readFile(file string) {
	text, there := m.readText(m.local.where, file)
	if !there || m.files[file] {
		return
	}
	m.files[file] = true
	var current []int // rules that the recipe lines at hand belong to
	define := ""
	for _, line := range logicalLines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case define != "":
			if trimmed == "endef" {
				define = ""
			} else {
				m.vars[define] = strings.TrimPrefix(m.vars[define]+"\n"+line, "\n")
			}
			continue
		case strings.HasPrefix(line, "\t"):
			for _, i := range current {
				m.rules[i].recipe = append(m.rules[i].recipe, strings.TrimPrefix(line, "\t"))
			}
			if current != nil || trimmed == "" {
				continue
			}
		}
		trimmed = strings.TrimSpace(withoutComment(trimmed))
		word, rest, _ := strings.Cut(trimmed, " ")
		switch word {
		case "":
		case "ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "undefine", "unexport", "vpath", "endef":
		case "define":
			define = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), ":?+="))
			m.vars[define] = ""
		case "include", "-include", "sinclude":
			m.includeFiles(file, m.expand(rest, nil))
		default:
			for _, modifier := range []string{"export ", "override ", "private "} {
				trimmed = strings.TrimPrefix(trimmed, modifier)
			}
			if m.readVariable(trimmed) {
				continue
			}
			current = m.addRule(file, trimmed)
		}
	}
}

// logicalLines joins lines that end in a backslash.
func logicalLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var lines []string
	part := ""
	for line := range strings.SplitSeq(text, "\n") {
		if head, ok := strings.CutSuffix(line, `\`); ok && len(lines) < 50_000 {
			if part != "" {
				head = strings.TrimLeft(head, "\t ")
			}
			part += head + " "
			continue
		}
		if part != "" {
			line = strings.TrimLeft(line, "\t ")
		}
		lines = append(lines, part+line)
		part = ""
	}
	return lines
}

func withoutComment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] != '\\') {
			return line[:i]
		}
	}
	return line
}

// readVariable reads a line as an assignment and reports whether it is one.
func (m *makefile) readVariable(line string) bool {
	i := strings.IndexByte(line, '=')
	if i <= 0 {
		return false
	}
	name := line[:i]
	value := strings.TrimSpace(line[i+1:])
	op := byte(0)
	if c := name[len(name)-1]; strings.IndexByte(":?+!", c) >= 0 {
		op, name = c, strings.TrimRight(name[:len(name)-1], ":")
	}
	name = strings.TrimSpace(name)
	if at := strings.LastIndexByte(name, ':'); at >= 0 && !strings.Contains(name, "$(") {
		name = strings.TrimSpace(name[at+1:]) // For one target, which is taken for all.
	}
	if name == "" || strings.ContainsAny(name, " \t:#\"'") {
		return false
	}
	if _, ok := m.given[name]; ok {
		return true
	}
	switch old, known := m.vars[name]; {
	case op == '+':
		value = strings.TrimSpace(old + " " + value)
	case op == '?' && known:
		return true
	case op == '!':
		value = "$(shell " + value + ")"
	case op == ':':
		value = strings.ReplaceAll(m.expand(value, nil), "$", "$$")
	}
	m.vars[name] = value
	if name == "SHELL" {
		m.shell = m.expand(value, nil)
	}
	return true
}

// addRule adds a rule and returns where its recipe goes.
func (m *makefile) addRule(file, line string) []int {
	head, inline, hasInline := strings.Cut(line, ";")
	head = m.expand(head, nil)
	names, needs, ok := strings.Cut(head, ":")
	if !ok {
		return nil // A call of a function, whose text is the makefile's own.
	}
	r := rule{targets: strings.Fields(strings.TrimSuffix(names, "&")), where: file}
	needs = strings.TrimPrefix(needs, ":")
	if pattern, more, static := strings.Cut(needs, ":"); static && !strings.Contains(pattern, "=") {
		needs = more // targets: pattern: what they need.
	}
	r.needs = strings.Fields(strings.ReplaceAll(needs, "|", " "))
	if hasInline {
		r.recipe = append(r.recipe, strings.TrimSpace(inline))
	}
	if len(r.targets) == 0 {
		return nil
	}
	if r.targets[0] == ".ONESHELL" {
		m.one = true
	}
	if m.first == "" && !strings.HasPrefix(r.targets[0], ".") && !strings.Contains(r.targets[0], "%") {
		m.first = r.targets[0]
	}
	m.rules = append(m.rules, r)
	return []int{len(m.rules) - 1}
}

// includeFiles follows other makefiles. One that need not exist is protected too,
// because somebody could add it. If a name is unknown, its ending is protected.
func (m *makefile) includeFiles(from, names string) {
	for name := range strings.FieldsSeq(names) {
		globs := m.local.globs(name)
		if dir := path.Dir(from); dir != "." && !partlyUnknown(name) {
			globs = append(globs, m.local.inFolder(dir).globs(name)...)
		}
		if len(globs) == 0 && strings.Contains(name, computed) {
			m.reportLost(from, "the name of a makefile that it includes is computed")
		}
		for _, file := range m.protectFiles(globs) {
			m.withinDepth(file, func() { m.readFile(file) })
		}
	}
}
