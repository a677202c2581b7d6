package probe

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pyproject is what matters of a pyproject.toml. What may have several shapes,
// and only has to be there, is any.
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

// python is a place with Python in it, and how programs are run there.
type python struct {
	*place
	project pyproject
	reqs    []string // requirement files
	texts   string   // of requirement files and Pipfile
	tox     string   // text of tox.ini and setup.cfg
	run     string   // before a program of the environment
}

func pythonStack(p *place) *found {
	manifest := p.first("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt", "tox.ini", "noxfile.py")
	if manifest == "" {
		return nil
	}
	py := &python{place: p}
	if manifest == "pyproject.toml" && !p.decode(manifest, &py.project) {
		manifest = p.first("requirements.txt", "setup.py")
		py.project = pyproject{}
		if manifest == "" {
			return nil
		}
	}
	py.readTexts()
	f := p.stack("python", "pip", manifest)
	py.environment(f)
	py.test(f)
	py.check(f)
	return f
}

// readTexts reads what has no structure worth parsing.
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

// environment decides who installs dependencies and runs programs.
func (py *python) environment(f *found) {
	tool := py.project.Tool
	switch {
	case py.has("uv.lock") || tool.UV != nil:
		f.covers = tool.UV != nil && tool.UV.Workspace != nil
		py.managed(f, "python-uv", "uv run ", "uv.lock", "uv sync --frozen", "uv sync")
	case py.has("poetry.lock") || tool.Poetry != nil:
		py.managed(f, "poetry", "poetry run ", "poetry.lock", "poetry install --no-interaction", "poetry install --no-interaction")
	case py.has("pdm.lock") || tool.PDM != nil:
		py.managed(f, "pdm", "pdm run ", "pdm.lock", "pdm sync", "pdm install")
	case py.has("Pipfile"):
		py.managed(f, "pipenv", "pipenv run ", "Pipfile.lock", "pipenv sync --dev", "pipenv install --dev")
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
		f.Setup = py.when(line != "", "python -m pip install"+line, from)
	}
}

// managed fills in a stack whose manager has an environment of its own.
func (py *python) managed(f *found, name, run, lock, frozen, install string) {
	f.Name, py.run = name, run
	f.Lockfile = py.lockfile(lock)
	f.Setup = py.command(install+py.selection(name), path.Base(f.Manifest)+", no lockfile")
	if f.Lockfile != "" {
		f.Setup = py.command(frozen+py.selection(name), lock)
	}
}

// selection is the flag for the extra or group that brings pytest, where it is
// not installed by itself.
func (py *python) selection(name string) string {
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

// optionalGroup is poetry's group with pytest that is not installed unasked.
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

func (py *python) test(f *found) {
	runner := strings.TrimSuffix(py.run, "python -m ")
	switch from := py.pytest(); {
	case from != "":
		f.Test = py.command(py.run+"pytest", from)
	case py.has("tox.ini") || py.project.Tool.Tox != nil:
		f.Test = py.command("tox", py.either("tox.ini"))
	case py.has("noxfile.py"):
		f.Test = py.command("nox", "noxfile.py")
	case py.has("manage.py"):
		f.Test = py.command(runner+"python manage.py test", "manage.py")
	case py.unittests() != "":
		dir := py.testDir()
		arguments := "-s " + dir
		// A directory that is a package is imported from above it.
		if _, err := fs.Stat(py.root, py.path(dir+"/__init__.py")); err == nil {
			arguments += " -t ."
		}
		f.Test = py.command(runner+"python -m unittest discover "+arguments, py.unittests())
	case py.hasDir("tests") || py.hasDir("test"):
		f.Test = py.command(py.run+"pytest", "the tests directory")
	case py.testFile() != "":
		f.Test = py.command(runner+"python -m unittest", py.testFile())
	}
}

// pytest is the file that says that tests run with pytest, or empty.
func (py *python) pytest() string {
	project := py.project
	inProject := project.Tool.Pytest != nil || names(project.Project.Dependencies, "pytest") ||
		groupWith(project.Groups, "pytest") != "" || groupWith(project.Project.Optional, "pytest") != "" ||
		py.poetryHas("pytest") || project.Tool.UV != nil && names(project.Tool.UV.Dev, "pytest")
	switch config := py.first("pytest.ini", "conftest.py"); {
	case inProject:
		return "pyproject.toml"
	case config != "":
		return config
	case strings.Contains(py.tox, "[pytest]") || strings.Contains(py.tox, "[tool:pytest]"):
		return py.either("tox.ini", "setup.cfg")
	case requires(py.texts, "pytest"):
		return py.either("requirements.txt", "Pipfile")
	}
	return ""
}

// either is the first file of these that there is, or the project's own.
func (py *python) either(files ...string) string {
	if name := py.first(files...); name != "" {
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

// unittests is a file of the tests directory that is written for unittest, if
// none there is written for pytest.
func (py *python) unittests() string {
	dir := py.testDir()
	entries, err := fs.ReadDir(py.root, py.path(dir))
	if dir == "" || err != nil || len(entries) > maxEntries {
		return ""
	}
	found := ""
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "test") || !strings.HasSuffix(e.Name(), ".py") {
			continue
		}
		text, err := readFile(py.root, py.path(dir+"/"+e.Name()))
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
	importsPytest   = regexp.MustCompile(`(?m)^\s*(import|from)\s+pytest\b`)
	importsUnittest = regexp.MustCompile(`(?m)^\s*(import|from)\s+unittest\b`)
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
	for _, name := range py.matching(".py") {
		if strings.HasPrefix(name, "test") || strings.HasSuffix(name, "_test.py") {
			return name
		}
	}
	return ""
}

// check fills in what judges without running the code.
func (py *python) check(f *found) {
	tool := py.project.Tool
	if config := py.first("ruff.toml", ".ruff.toml"); config != "" || tool.Ruff != nil {
		f.Lint = py.command(py.run+"ruff check", py.either("ruff.toml", ".ruff.toml"))
	}
	switch {
	case tool.Mypy != nil && (tool.Mypy.Files != nil || tool.Mypy.Packages != nil):
		f.Typecheck = py.command(py.run+"mypy", "pyproject.toml tool.mypy")
	case tool.Mypy != nil || py.first("mypy.ini", ".mypy.ini") != "":
		f.Typecheck = py.command(py.run+"mypy .", py.either("mypy.ini", ".mypy.ini"))
	case tool.Pyright != nil || py.has("pyrightconfig.json"):
		f.Typecheck = py.command(strings.TrimSuffix(py.run, "python -m ")+"pyright", py.either("pyrightconfig.json"))
	}
}

// groupWith is the first group, by name, that requires a package.
func groupWith(groups map[string][]any, name string) string {
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if names(groups[group], name) && plain(group) {
			return group
		}
	}
	return ""
}

func names(requirements []any, name string) bool {
	return slices.ContainsFunc(requirements, func(r any) bool {
		text, ok := r.(string)
		return ok && requires(text, name)
	})
}

// requirement is the name at the start of a line, before version, extras and
// marks, or before the = of a Pipfile.
var requirement = regexp.MustCompile(`(?m)^\s*"?([A-Za-z0-9][A-Za-z0-9._-]*)`)

func requires(text, name string) bool {
	for _, match := range requirement.FindAllStringSubmatch(text, -1) {
		if strings.EqualFold(match[1], name) {
			return true
		}
	}
	return false
}
