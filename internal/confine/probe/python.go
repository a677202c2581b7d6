package probe

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// pyproject is the part of a pyproject.toml that is read. A key has the type any if
// only its presence matters and it may have several types.
type pyproject struct {
	Project struct {
		Dependencies []any            `toml:"dependencies"`
		Optional     map[string][]any `toml:"optional-dependencies"`
	} `toml:"project"`
	Groups      map[string][]any `toml:"dependency-groups"`
	BuildSystem any              `toml:"build-system"`
	Tool        struct {
		Pytest  any `toml:"pytest"`
		Ruff    any `toml:"ruff"`
		Pyright any `toml:"pyright"`
		Tox     any `toml:"tox"`
		PDM     any `toml:"pdm"`
		Mypy    *struct {
			Files    any `toml:"files"`
			Packages any `toml:"packages"`
		} `toml:"mypy"`
		UV *struct {
			Workspace any   `toml:"workspace"`
			Dev       []any `toml:"dev-dependencies"`
		} `toml:"uv"`
		Poetry *struct {
			Dependencies map[string]any `toml:"dependencies"`
			Dev          map[string]any `toml:"dev-dependencies"`
			Group        map[string]struct {
				Optional     bool           `toml:"optional"`
				Dependencies map[string]any `toml:"dependencies"`
			} `toml:"group"`
		} `toml:"poetry"`
	} `toml:"tool"`
}

// python is a place with Python in it.
type python struct {
	*place
	project pyproject
	reqs    []string // requirement files
	texts   string   // of requirement files and Pipfile
	tox     string   // text of tox.ini and setup.cfg
	run     string   // prefix of a command that runs in the environment
}

func pythonStack(p *place) *found {
	manifest := p.firstOf("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt", "tox.ini", "noxfile.py")
	if manifest == "" {
		return nil
	}
	py := &python{place: p}
	if manifest == "pyproject.toml" && !p.decode(manifest, &py.project) {
		manifest = p.firstOf("requirements.txt", "setup.py")
		py.project = pyproject{}
		if manifest == "" {
			return nil
		}
	}
	py.readTexts()
	f := p.newStack("python", "pip", manifest)
	py.chooseManager(f)
	py.chooseTests(f)
	py.chooseChecks(f)
	return f
}

// readTexts reads the files that are searched for words and not parsed.
func (py *python) readTexts() {
	for _, name := range []string{"requirements.txt", "requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt", "requirements-test.txt", "test-requirements.txt"} {
		if data, ok := py.read(name); ok {
			py.reqs = append(py.reqs, name)
			py.texts += string(data) + "\n"
		}
	}
	if data, ok := py.read("Pipfile"); ok {
		py.texts += string(data)
	}
	for _, name := range []string{"tox.ini", "setup.cfg"} {
		if data, ok := py.read(name); ok {
			py.tox += string(data) + "\n"
		}
	}
}

// chooseManager decides which program installs dependencies and runs commands.
func (py *python) chooseManager(f *found) {
	tool := py.project.Tool
	switch {
	case py.has("uv.lock") || tool.UV != nil:
		f.covers = tool.UV != nil && tool.UV.Workspace != nil
		py.useManager(f, "python-uv", "uv run ", "uv.lock", "uv sync --frozen", "uv sync")
	case py.has("poetry.lock") || tool.Poetry != nil:
		py.useManager(f, "poetry", "poetry run ", "poetry.lock", "poetry install --no-interaction", "poetry install --no-interaction")
	case py.has("pdm.lock") || tool.PDM != nil:
		py.useManager(f, "pdm", "pdm run ", "pdm.lock", "pdm sync", "pdm install")
	case py.has("Pipfile"):
		py.useManager(f, "pipenv", "pipenv run ", "Pipfile.lock", "pipenv sync --dev", "pipenv install --dev")
	default:
		py.run = "python -m "
		line := ""
		for _, name := range py.reqs {
			line += " -r " + name
		}
		from := strings.Join(py.reqs, ", ")
		if line == "" && (py.project.BuildSystem != nil || py.project.Project.Dependencies != nil) {
			line, from = " -e .", "pyproject.toml"
			if extra := groupWith(py.project.Project.Optional, "pytest"); extra != "" {
				line = " -e " + Quoted(".["+extra+"]")
			}
		}
		f.Setup = py.commandIf(line != "", "python -m pip install"+line, from)
	}
}

// useManager fills in a stack whose manager makes an environment by itself.
func (py *python) useManager(f *found, name, run, lock, frozen, install string) {
	f.Name, py.run = name, run
	f.Lockfile = py.findLockfile(lock)
	f.Setup = py.command(install+py.pytestFlag(name), path.Base(f.Manifest)+", no lockfile")
	if f.Lockfile != "" {
		f.Setup = py.command(frozen+py.pytestFlag(name), lock)
	}
}

// pytestFlag returns the flag that installs the extra or group with pytest, or an
// empty string if it is installed anyway.
func (py *python) pytestFlag(name string) string {
	group := groupWith(py.project.Groups, "pytest")
	extra := groupWith(py.project.Project.Optional, "pytest")
	switch {
	case name == "python-uv" && group != "" && group != "dev":
		return " --group " + Quoted(group)
	case name == "poetry" && py.optionalGroup() != "":
		return " --with " + Quoted(py.optionalGroup())
	case extra == "" || group != "":
		return ""
	case name == "python-uv":
		return " --extra " + Quoted(extra)
	case name == "poetry":
		return " --extras " + Quoted(extra)
	case name == "pdm":
		return " --group " + Quoted(extra)
	}
	return ""
}

// optionalGroup returns poetry's optional group with pytest, or an empty string.
func (py *python) optionalGroup() string {
	poetry := py.project.Tool.Poetry
	if poetry == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(poetry.Group)) {
		if g := poetry.Group[name]; g.Optional && g.Dependencies["pytest"] != nil {
			return name
		}
	}
	return ""
}

func (py *python) chooseTests(f *found) {
	runner := strings.TrimSuffix(py.run, "python -m ")
	switch from := py.pytestConfig(); {
	case from != "":
		f.Test = py.command(py.run+"pytest", from)
	case py.has("tox.ini") || py.project.Tool.Tox != nil:
		f.Test = py.command("tox", py.firstOrPyproject("tox.ini"))
	case py.has("noxfile.py"):
		f.Test = py.command("nox", "noxfile.py")
	case py.has("manage.py"):
		f.Test = py.command(runner+"python manage.py test", "manage.py")
	case py.unittestFile() != "":
		dir := py.testDir()
		arguments := "-s " + dir
		// A directory that is a package is imported from above it.
		if _, err := fs.Stat(py.root, py.pathOf(dir+"/__init__.py")); err == nil {
			arguments += " -t ."
		}
		f.Test = py.command(runner+"python -m unittest discover "+arguments, py.unittestFile())
	case py.hasDir("tests") || py.hasDir("test"):
		f.Test = py.command(py.run+"pytest", "the tests directory")
	case py.testFile() != "":
		f.Test = py.command(runner+"python -m unittest", py.testFile())
	}
}

// pytestConfig returns the file that shows that tests run with pytest, or an empty
// string.
func (py *python) pytestConfig() string {
	project := py.project
	inProject := project.Tool.Pytest != nil || anyRequires(project.Project.Dependencies, "pytest") ||
		groupWith(project.Groups, "pytest") != "" || groupWith(project.Project.Optional, "pytest") != "" ||
		py.poetryHas("pytest") || project.Tool.UV != nil && anyRequires(project.Tool.UV.Dev, "pytest")
	switch config := py.firstOf("pytest.ini", "conftest.py"); {
	case inProject:
		return "pyproject.toml"
	case config != "":
		return config
	case strings.Contains(py.tox, "[pytest]") || strings.Contains(py.tox, "[tool:pytest]"):
		return py.firstOrPyproject("tox.ini", "setup.cfg")
	case requiresPackage(py.texts, "pytest"):
		return py.firstOrPyproject("requirements.txt", "Pipfile")
	}
	return ""
}

// firstOrPyproject returns the first of the files that exists, or pyproject.toml.
func (py *python) firstOrPyproject(files ...string) string {
	if name := py.firstOf(files...); name != "" {
		return name
	}
	return "pyproject.toml"
}

func (py *python) poetryHas(name string) bool {
	poetry := py.project.Tool.Poetry
	if poetry == nil {
		return false
	}
	for _, g := range poetry.Group {
		if g.Dependencies[name] != nil {
			return true
		}
	}
	return poetry.Dependencies[name] != nil || poetry.Dev[name] != nil
}

// unittestFile returns a file of the tests directory that imports unittest, or an
// empty string if there is none or another imports pytest.
func (py *python) unittestFile() string {
	dir := py.testDir()
	entries, err := fs.ReadDir(py.root, py.pathOf(dir))
	if dir == "" || err != nil || len(entries) > maxEntries {
		return ""
	}
	found := ""
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "test") || !strings.HasSuffix(e.Name(), ".py") {
			continue
		}
		text, err := readFile(py.root, py.pathOf(dir+"/"+e.Name()))
		switch {
		case err != nil:
		case importsPytest.Match(text):
			return ""
		case importsUnittest.Match(text):
			found = dir + "/" + e.Name()
		}
	}
	return found
}

var (
	importsPytest   = lazyregexp.New(`(?m)^\s*(import|from)\s+pytest\b`)
	importsUnittest = lazyregexp.New(`(?m)^\s*(import|from)\s+unittest\b`)
)

func (py *python) testDir() string {
	for _, dir := range []string{"tests", "test"} {
		if py.hasDir(dir) {
			return dir
		}
	}
	return ""
}

func (py *python) testFile() string {
	for _, name := range py.filesEndingIn(".py") {
		if strings.HasPrefix(name, "test") || strings.HasSuffix(name, "_test.py") {
			return name
		}
	}
	return ""
}

// chooseChecks fills in the linter and the type check.
func (py *python) chooseChecks(f *found) {
	tool := py.project.Tool
	if config := py.firstOf("ruff.toml", ".ruff.toml"); config != "" || tool.Ruff != nil {
		f.Lint = py.command(py.run+"ruff check", py.firstOrPyproject("ruff.toml", ".ruff.toml"))
	}
	switch {
	case tool.Mypy != nil && (tool.Mypy.Files != nil || tool.Mypy.Packages != nil):
		f.Typecheck = py.command(py.run+"mypy", "pyproject.toml tool.mypy")
	case tool.Mypy != nil || py.firstOf("mypy.ini", ".mypy.ini") != "":
		f.Typecheck = py.command(py.run+"mypy .", py.firstOrPyproject("mypy.ini", ".mypy.ini"))
	case tool.Pyright != nil || py.has("pyrightconfig.json"):
		f.Typecheck = py.command(strings.TrimSuffix(py.run, "python -m ")+"pyright", py.firstOrPyproject("pyrightconfig.json"))
	}
}

// groupWith returns the first group, by name, that requires a package, or an empty
// string.
func groupWith(groups map[string][]any, name string) string {
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if anyRequires(groups[group], name) && isPlain(group) {
			return group
		}
	}
	return ""
}

func anyRequires(requirements []any, name string) bool {
	return slices.ContainsFunc(requirements, func(r any) bool {
		text, ok := r.(string)
		return ok && requiresPackage(text, name)
	})
}

// requirement matches the name at the start of a line, before version, extras and
// markers, or before the = of a Pipfile.
var requirement = lazyregexp.New(`(?m)^\s*"?([A-Za-z0-9][A-Za-z0-9._-]*)`)

func requiresPackage(text, name string) bool {
	for _, match := range requirement.FindAllStringSubmatch(text, -1) {
		if strings.EqualFold(match[1], name) {
			return true
		}
	}
	return false
}
