package judging

import (
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// python follows what the programs of Python run.
type python struct{ *follower }

// followModule follows python -m. The folder in which it works comes first when
// modules are looked up, so whoever adds a file of that name there is asked
// too.
func (p python) followModule(sh *shellState, module string, args []string) {
	if partlyUnknown(module) {
		if strings.Contains(module, computed) {
			p.reportLost(sh.where, "the module that python runs is computed")
		}
		return
	}
	first, _, _ := strings.Cut(module, ".")
	name := strings.ReplaceAll(module, ".", "/")
	known := false
	for _, prefix := range []string{"", "src/", "lib/", "python/"} {
		for _, end := range []string{".py", "/__main__.py"} {
			for _, file := range sh.globs(prefix + name + end) {
				text, there := p.readText(sh.where, file)
				if !there {
					continue
				}
				known = true
				p.protectFiles([]string{file})
				// A package, and a compiled module, come before a file of that name.
				p.protectFiles([]string{strings.TrimSuffix(file, ".py") + ".*", strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__main__") + "/**"})
				if strings.Contains(file, "/") {
					p.protectFiles([]string{path.Join(path.Dir(file), "__init__.py")})
				}
				if strings.Contains(name, "/") && end == ".py" {
					p.noteImports(file, text, pythonImports)
				}
			}
		}
	}
	if !known { // An installed one: nothing of the tree is to take its name.
		p.protectFiles(append(sh.globs(first+".*"), sh.globs(first+"/**")...))
	}
	p.followProgram(sh, first, args, feed{})
	if module == "unittest" {
		p.protectUnittests(sh, args)
	}
}

// protectUnittests protects the modules that are named to it.
func (p python) protectUnittests(sh *shellState, args []string) {
	for _, w := range args {
		if strings.HasPrefix(w, "-") || w == "discover" {
			continue
		}
		for _, file := range sh.globs(strings.ReplaceAll(strings.TrimSuffix(w, ".py"), ".", "/") + ".py") {
			if _, there := p.readText(sh.where, file); there {
				p.protectFiles([]string{file})
			}
		}
	}
}

// followEnvironment follows the programs that run others in an environment.
func (p python) followEnvironment(sh *shellState, program string, args []string, in feed) {
	const valued = "--with --extra --group --python -p --package --project --directory --env-file --from -e --env -C -P -n --name --only-group --with-requirements --index-url " +
		"--rcfile --source --omit --include --data-file --context --environment --manifest-path"
	for i, w := range args {
		if (w == "--directory" || w == "-C" || w == "-P" || w == "--project") && i+1 < len(args) {
			sh = sh.movedTo(args[i+1])
		}
	}
	direct := slices.Contains([]string{"uvx", "pipx"}, program)
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "run" && !direct:
			direct = true
		case direct && (w == "-m" || w == "--module") && i+1 < len(args):
			p.followModule(sh, args[i+1], args[i+2:])
			return
		case direct && (w == "-s" || w == "--script") && program == "uv" && i+1 < len(args):
			p.followFile(sh, args[i+1], args[i+2:], "python")
			return
		case strings.HasPrefix(w, "-"):
			if slices.Contains(strings.Fields(valued), w) {
				i++
			}
		case !direct:
			return // uv pip, poetry install.
		case w == "run" && program == "pipx":
		case strings.HasSuffix(w, ".py"):
			p.followFile(sh, w, args[i+1:], "python")
			return
		case program == "coverage":
			p.followFile(sh, w, args[i+1:], "python")
			return
		default:
			p.followProjectScript(sh, args[i:])
			p.followCommand(sh, args[i:], in)
			return
		}
	}
}

// followProjectScript follows a script by its name: an entry point is a module of the
// tree, anything else a line.
func (p python) followProjectScript(sh *shellState, words []string) {
	if len(words) == 0 {
		return
	}
	name := words[0][strings.LastIndexByte(words[0], ':')+1:]
	for _, file := range append(sh.globs("pyproject.toml"), append(sh.globs("Pipfile"), sh.globs("pixi.toml")...)...) {
		text, there := p.readText(sh.where, file)
		var told project
		if !there || toml.Unmarshal([]byte(text), &told) != nil {
			continue
		}
		inner := sh.inFolder(path.Dir(file))
		inner.where = file
		for _, entries := range []map[string]any{told.Project.Scripts, told.Tool.Poetry.Scripts} {
			if entry, ok := entries[name].(string); ok && p.firstTime("entry", file, name) {
				p.protectFiles([]string{file})
				p.protectEntryPoint(inner, entry)
			}
		}
		tables := []map[string]any{told.Scripts, told.Tool.PDM.Scripts, told.Tool.Rye.Scripts, told.Tool.Poe.Tasks, told.Tool.Pixi.Tasks}
		for _, env := range told.Tool.Hatch.Envs {
			tables = append(tables, env.Scripts)
		}
		for _, table := range tables {
			if entry, ok := table[name]; ok && p.firstTime("task", file, name) {
				p.protectFiles([]string{file})
				for _, line := range linesOf(entry) {
					p.followLine(inner, line)
				}
			}
		}
	}
}

// protectEntryPoint protects the module of "package.module:function".
func (p python) protectEntryPoint(sh *shellState, entry string) {
	module, _, _ := strings.Cut(entry, ":")
	name := strings.ReplaceAll(strings.TrimSpace(module), ".", "/")
	for _, prefix := range []string{"", "src/"} {
		for _, end := range []string{".py", "/__init__.py"} {
			for _, file := range sh.globs(prefix + name + end) {
				if _, there := p.readText(sh.where, file); there {
					p.protectFiles([]string{file})
				}
			}
		}
	}
}

// followTox follows the commands of every environment.
func (p python) followTox(sh *shellState) {
	for _, file := range append(sh.globs("tox.ini"), append(sh.globs("setup.cfg"), sh.globs("pyproject.toml")...)...) {
		text, there := p.readText(sh.where, file)
		if !there {
			continue
		}
		if path.Ext(file) == ".toml" {
			var told project
			if toml.Unmarshal([]byte(text), &told) != nil {
				continue
			}
			text = told.Tool.Tox.LegacyToxIni
		}
		if path.Base(file) == "setup.cfg" && !strings.Contains(text, "[tox") {
			continue
		}
		p.protectFiles([]string{file})
		inner := sh.inFolder(path.Dir(file))
		inner.where = file
		for _, line := range iniCommands(text) {
			p.followLine(inner, line)
		}
	}
}

// followNox follows the commands that sessions run in literal words.
func (p python) followNox(sh *shellState, args []string) {
	name := "noxfile.py"
	for i, w := range args {
		if (w == "-f" || w == "--noxfile") && i+1 < len(args) {
			name = args[i+1]
		}
	}
	for _, file := range p.protectFiles(sh.globs(name)) {
		text, there := p.readText(sh.where, file)
		if !there || !p.firstTime("nox", file) {
			continue
		}
		inner := sh.inFolder(path.Dir(file))
		inner.where = file
		for _, m := range sessionRun.FindAllStringSubmatch(text, 100) {
			var words []string
			for _, w := range literals.FindAllStringSubmatch(m[1], 50) {
				words = append(words, w[1])
			}
			p.followCommand(inner, words, feed{})
		}
	}
}

// project is what pyproject.toml and a Pipfile say of scripts.
type project struct {
	Scripts map[string]any // of a Pipfile
	Project struct {
		Scripts map[string]any
	}
	Tool struct {
		Poetry struct{ Scripts map[string]any }
		PDM    struct{ Scripts map[string]any }
		Rye    struct{ Scripts map[string]any }
		Poe    struct{ Tasks map[string]any }
		Pixi   struct{ Tasks map[string]any }
		Hatch  struct {
			Envs map[string]struct{ Scripts map[string]any }
		}
		Tox struct {
			LegacyToxIni string `toml:"legacy_tox_ini"`
		}
	}
}

var iniBraces = lazyregexp.New(`\{[^{}]*\}`)

// iniCommands are the lines of the keys commands, commands_pre and
// commands_post, in which braces stand for something known elsewhere.
func iniCommands(text string) []string {
	var lines []string
	inside := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !indented && ok {
			inside = strings.HasPrefix(key, "commands") || strings.HasPrefix(key, "allowlist")
			inside = inside && strings.HasPrefix(key, "commands")
			line = value
		} else if !indented && strings.TrimSpace(line) != "" {
			inside = false
		}
		line = strings.TrimLeft(strings.TrimSpace(line), "-! ")
		if inside && line != "" && !strings.HasPrefix(line, "#") {
			line = strings.NewReplacer("{toxinidir}", ".", "{tox_root}", ".", "{posargs}", "", "{/}", "/").Replace(line)
			lines = append(lines, strings.TrimSpace(iniBraces.ReplaceAllString(line, outside)))
		}
	}
	return lines
}

var (
	sessionRun = lazyregexp.New(`(?s)session\.run(?:_always|_install)?\(([^()]*)`)
	literals   = lazyregexp.New(`["']([^"'\n]*)["']`)
)
