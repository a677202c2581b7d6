package judging

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tool follows programs that take their commands from files of the tree. It
// reports false of a program that is not one.
func (f *follower) tool(sh *shellState, program string, args []string, in feed) bool {
	switch program {
	case "make", "gmake", "bmake":
		f.make(sh, args)
	case "npm", "pnpm", "yarn", "bun", "npx", "pnpx", "bunx", "corepack", "run-s", "run-p", "npm-run-all", "npm-run-all2", "concurrently", "turbo", "nx", "lerna", "rushx", "wireit":
		return f.nodeTool(sh, program, args, in)
	case "go":
		return f.goTool(sh, args)
	case "cargo":
		f.cargo(sh, args)
	case "just":
		f.just(sh, args)
	case "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "coverage", "uvx", "pipx", "conda", "mamba", "pixi":
		f.pythonTool(sh, program, args, in)
	case "tox":
		f.tox(sh)
	case "nox":
		f.nox(sh, args)
	case "poe":
		f.pyproject(sh, args)
	case "pre-commit", "prek":
		f.preCommit(sh)
	case "bundle":
		if len(args) > 1 && args[0] == "exec" {
			f.command(sh, args[1:], in)
		}
	case "dotnet", "mix", "gradle", "mvn", "bazel", "rake", "composer":
		return program == "composer" && f.composer(sh, args)
	case "tsc", "prettier", "eslint":
		f.configured(sh, program, args)
	case "deno":
		return f.deno(sh, args)
	default:
		return false
	}
	return true
}

// argsOnly are arguments without options, of which some take the next word.
func argsOnly(args []string, valued string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "--":
			return append(rest, args[i+1:]...)
		case strings.HasPrefix(w, "-"):
			if slices.Contains(strings.Fields(valued), w) {
				i++
			}
		default:
			rest = append(rest, w)
		}
	}
	return rest
}

// goTool follows go run, go tool and the options of go test that name programs.
func (f *follower) goTool(sh *shellState, args []string) bool {
	if len(args) > 1 && args[0] == "-C" {
		return f.goTool(sh.moved(args[1]), args[2:])
	}
	if len(args) == 0 {
		return true
	}
	f.configured(sh, "go", args)
	switch args[0] {
	case "run", "tool":
	default:
		return true
	}
	for _, w := range argsOnly(args[1:], "-C -mod -modfile -tags -ldflags -gcflags -exec -p -overlay -toolexec -buildmode -o") {
		if strings.Contains(w, computed) && len(sh.globs(w)) == 0 {
			f.lose(sh.where, "what go runs is computed")
		}
		if strings.HasSuffix(w, ".go") {
			f.protect(sh.globs(w))
			continue // There may be several.
		}
		f.goPackage(sh, w)
		break
	}
	return true
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

func (f *follower) goPackage(sh *shellState, name string) {
	name, _, _ = strings.Cut(name, "@")
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, top) || unknown(name) {
		f.protectFolder(sh, name)
		return
	}
	for _, mod := range sh.globs("go.mod") {
		text, _ := f.read(sh.where, mod)
		m := moduleLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if rest, ok := strings.CutPrefix(name, m[1]+"/"); ok {
			f.protectFolder(sh.in(path.Dir(mod)), rest)
		}
	}
}

// protectFolder protects a folder whose files are one program. The top of the
// tree is none: that would be everything.
func (f *follower) protectFolder(sh *shellState, name string) {
	for _, glob := range sh.globs(name) {
		f.programs[glob+"/**"] = true
	}
}

// cargo follows cargo run of a package that is named, and the usual xtask.
func (f *follower) cargo(sh *shellState, args []string) {
	for i, w := range args {
		switch {
		case w == "xtask" && i == 0:
			f.protectFolder(sh, "xtask")
		case args[0] == "run" && (w == "-p" || w == "--package") && i+1 < len(args):
			f.protectFolder(sh, args[i+1])
		case args[0] == "run" && (w == "--bin" || w == "--example") && i+1 < len(args):
			for _, file := range append(sh.globs("src/bin/"+args[i+1]+".rs"), sh.globs("examples/"+args[i+1]+".rs")...) {
				if _, there := f.read(sh.where, file); there {
					f.protect([]string{file})
				}
			}
		}
	}
}

// pythonTool follows the programs that run others in an environment.
func (f *follower) pythonTool(sh *shellState, program string, args []string, in feed) {
	const valued = "--with --extra --group --python -p --package --project --directory --env-file --from -e --env -C -P -n --name --only-group --with-requirements --index-url " +
		"--rcfile --source --omit --include --data-file --context --environment --manifest-path"
	for i, w := range args {
		if (w == "--directory" || w == "-C" || w == "-P" || w == "--project") && i+1 < len(args) {
			sh = sh.moved(args[i+1])
		}
	}
	direct := slices.Contains([]string{"uvx", "pipx"}, program)
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "run" && !direct:
			direct = true
		case direct && (w == "-m" || w == "--module") && i+1 < len(args):
			f.pythonModule(sh, args[i+1], args[i+2:])
			return
		case direct && (w == "-s" || w == "--script") && program == "uv" && i+1 < len(args):
			f.run(sh, args[i+1], args[i+2:], "python")
			return
		case strings.HasPrefix(w, "-"):
			if slices.Contains(strings.Fields(valued), w) {
				i++
			}
		case !direct:
			return // uv pip, poetry install.
		case w == "run" && program == "pipx":
		case strings.HasSuffix(w, ".py"):
			f.run(sh, w, args[i+1:], "python")
			return
		case program == "coverage":
			f.run(sh, w, args[i+1:], "python")
			return
		default:
			f.pyproject(sh, args[i:])
			f.command(sh, args[i:], in)
			return
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

// pyproject follows a script by its name: an entry point is a module of the
// tree, anything else a line.
func (f *follower) pyproject(sh *shellState, words []string) {
	if len(words) == 0 {
		return
	}
	name := words[0][strings.LastIndexByte(words[0], ':')+1:]
	for _, file := range append(sh.globs("pyproject.toml"), append(sh.globs("Pipfile"), sh.globs("pixi.toml")...)...) {
		text, there := f.read(sh.where, file)
		var p project
		if !there || toml.Unmarshal([]byte(text), &p) != nil {
			continue
		}
		inner := sh.in(path.Dir(file))
		inner.where = file
		for _, entries := range []map[string]any{p.Project.Scripts, p.Tool.Poetry.Scripts} {
			if entry, ok := entries[name].(string); ok && f.once("entry", file, name) {
				f.protect([]string{file})
				f.entryPoint(inner, entry)
			}
		}
		tables := []map[string]any{p.Scripts, p.Tool.PDM.Scripts, p.Tool.Rye.Scripts, p.Tool.Poe.Tasks, p.Tool.Pixi.Tasks}
		for _, env := range p.Tool.Hatch.Envs {
			tables = append(tables, env.Scripts)
		}
		for _, table := range tables {
			if entry, ok := table[name]; ok && f.once("task", file, name) {
				f.protect([]string{file})
				for _, line := range linesOf(entry) {
					f.line(inner, line)
				}
			}
		}
	}
}

// linesOf are the command lines in a value that may be one, a list, or a table
// with one.
func linesOf(value any) []string {
	var lines []string
	switch v := value.(type) {
	case string:
		lines = append(lines, v)
	case []any:
		for _, one := range v {
			lines = append(lines, linesOf(one)...)
		}
	case map[string]any:
		for _, key := range []string{"cmd", "shell", "script", "call", "composite", "sequence", "command"} {
			lines = append(lines, linesOf(v[key])...)
		}
	}
	return lines
}

// entryPoint protects the module of "package.module:function".
func (f *follower) entryPoint(sh *shellState, entry string) {
	module, _, _ := strings.Cut(entry, ":")
	name := strings.ReplaceAll(strings.TrimSpace(module), ".", "/")
	for _, prefix := range []string{"", "src/"} {
		for _, end := range []string{".py", "/__init__.py"} {
			for _, file := range sh.globs(prefix + name + end) {
				if _, there := f.read(sh.where, file); there {
					f.protect([]string{file})
				}
			}
		}
	}
}

// tox follows the commands of every environment.
func (f *follower) tox(sh *shellState) {
	for _, file := range append(sh.globs("tox.ini"), append(sh.globs("setup.cfg"), sh.globs("pyproject.toml")...)...) {
		text, there := f.read(sh.where, file)
		if !there {
			continue
		}
		if path.Ext(file) == ".toml" {
			var p project
			if toml.Unmarshal([]byte(text), &p) != nil {
				continue
			}
			text = p.Tool.Tox.LegacyToxIni
		}
		if path.Base(file) == "setup.cfg" && !strings.Contains(text, "[tox") {
			continue
		}
		f.protect([]string{file})
		inner := sh.in(path.Dir(file))
		inner.where = file
		for _, line := range iniCommands(text) {
			f.line(inner, line)
		}
	}
}

var iniBraces = regexp.MustCompile(`\{[^{}]*\}`)

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
	sessionRun = regexp.MustCompile(`(?s)session\.run(?:_always|_install)?\(([^()]*)`)
	literals   = regexp.MustCompile(`["']([^"'\n]*)["']`)
)

// nox follows the commands that sessions run in literal words.
func (f *follower) nox(sh *shellState, args []string) {
	name := "noxfile.py"
	for i, w := range args {
		if (w == "-f" || w == "--noxfile") && i+1 < len(args) {
			name = args[i+1]
		}
	}
	for _, file := range f.protect(sh.globs(name)) {
		text, there := f.read(sh.where, file)
		if !there || !f.once("nox", file) {
			continue
		}
		inner := sh.in(path.Dir(file))
		inner.where = file
		for _, m := range sessionRun.FindAllStringSubmatch(text, 100) {
			var words []string
			for _, w := range literals.FindAllStringSubmatch(m[1], 50) {
				words = append(words, w[1])
			}
			f.command(inner, words, feed{})
		}
	}
}

var hookEntry = regexp.MustCompile(`(?m)^\s*(?:-\s+)?entry:\s*(.+?)\s*$`)

// preCommit follows the hooks that a repository has of its own.
func (f *follower) preCommit(sh *shellState) {
	for _, file := range append(sh.globs(".pre-commit-config.yaml"), sh.globs(".pre-commit-config.yml")...) {
		text, there := f.read(sh.where, file)
		if !there || !f.once("hooks", file) {
			continue
		}
		f.protect([]string{file})
		inner := sh.in(path.Dir(file))
		inner.where = file
		for _, m := range hookEntry.FindAllStringSubmatch(text, 100) {
			f.line(inner, strings.Trim(m[1], `"'`))
		}
	}
}
