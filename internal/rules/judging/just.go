package judging

import (
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

var (
	justHead   = lazyregexp.New(`^@?([A-Za-z_][\w-]*)([^:=]*):(?:[^=]|$)(.*)$`)
	justSet    = lazyregexp.New(`^(?:export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.+)$`)
	justImport = lazyregexp.New(`^(?:import\??|mod\??\s+[\w-]+)\s+["'](.+)["']`)
	justBraces = lazyregexp.New(`\{\{\s*([^{}]*?)\s*\}\}`)
)

// justfile is what is read of a justfile and of all that it imports.
type justfile struct {
	*follower
	recipes map[string]rule
	first   string
	vars    map[string]string
}

// followJust follows the recipes that a call of just names, or else the first one.
func (f *follower) followJust(sh *shellState, args []string) {
	names := []string{"justfile", "Justfile", ".justfile"}
	for i, w := range args {
		if (w == "-f" || w == "--justfile") && i+1 < len(args) {
			names = []string{args[i+1]}
		}
		if (w == "-d" || w == "--working-directory") && i+1 < len(args) {
			sh = sh.movedTo(args[i+1])
		}
	}
	targets := argsOnly(args, "-f --justfile -d --working-directory --set --shell")
	for _, name := range names {
		for _, file := range sh.globs(name) {
			if _, there := f.readText(sh.where, file); !there || !f.firstTime("just", file, strings.Join(targets, " ")) {
				continue
			}
			j := justfile{follower: f, recipes: map[string]rule{}, vars: map[string]string{}}
			j.readFile(sh, file, 0)
			run := targets
			if len(run) == 0 {
				run = []string{j.first}
			}
			inner := sh.inFolder(path.Dir(file))
			done := map[string]bool{}
			for _, t := range run {
				j.followRecipe(inner, t, done)
			}
		}
	}
}

// readFile reads recipes and variables.
func (j *justfile) readFile(sh *shellState, file string, depth int) {
	text, there := j.readText(sh.where, file)
	j.protectFiles([]string{file})
	if !there || depth > 8 {
		return
	}
	current := ""
	for _, line := range logicalLines(text) {
		if indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"); indented {
			if r, ok := j.recipes[current]; ok {
				r.recipe = append(r.recipe, strings.TrimSpace(line))
				j.recipes[current] = r
			}
			continue
		}
		if m := justImport.FindStringSubmatch(line); m != nil {
			j.readFile(sh, path.Join(path.Dir(file), m[1]), depth+1)
			continue
		}
		if m := justSet.FindStringSubmatch(line); m != nil {
			j.vars[m[1]] = strings.Trim(strings.TrimSpace(m[2]), `"'`)
			continue
		}
		m := justHead.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		current = m[1]
		if j.first == "" {
			j.first = current
		}
		_, needs, _ := strings.Cut(line, ":")
		needs = strings.NewReplacer("&&", " ", "(", " ", ")", " ").Replace(withoutComment(needs))
		j.recipes[current] = rule{targets: []string{current}, needs: strings.Fields(needs), where: file}
	}
}

// followRecipe follows a recipe after those that it needs.
func (j *justfile) followRecipe(sh *shellState, name string, done map[string]bool) {
	r, ok := j.recipes[name[strings.LastIndexByte(name, ':')+1:]]
	if !ok || done[name] {
		return
	}
	done[name] = true
	for _, n := range r.needs {
		j.followRecipe(sh, n, done)
	}
	inner := *sh
	inner.where, inner.dirs = r.where, slices.Clone(sh.dirs)
	lines := make([]string, len(r.recipe))
	for i, line := range r.recipe {
		lines[i] = justBraces.ReplaceAllStringFunc(line, func(m string) string {
			key := justBraces.FindStringSubmatch(m)[1]
			if value, ok := j.vars[key]; ok && !strings.ContainsAny(value, "(`+") {
				return value
			}
			return outside
		})
	}
	if len(lines) > 0 && strings.HasPrefix(lines[0], "#!") {
		text := strings.Join(lines, "\n")
		if how := firstLine("", text); slices.Contains(shells, how) {
			j.followLine(&inner, text)
		}
		return
	}
	for _, line := range lines {
		j.followLine(&inner, strings.TrimLeft(line, "@- "))
	}
}
