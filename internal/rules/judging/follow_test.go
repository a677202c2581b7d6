package judging

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files is a tree of texts.
type files map[string]string

func (f files) Read(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (f files) Names() ([]string, error) { return slices.Sorted(maps.Keys(f)), nil }

func TestWhatAGateRunsIsFollowedThroughTheFilesOfTheTree(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		tree files
		want string // programs
	}{
		"a recipe of a makefile":         {"make test", files{"Makefile": "test: build\n\t@sh ci/check.sh\nbuild:\n\t./ci/build.sh\nother:\n\tsh other.sh\n", "ci/check.sh": ". ci/lib.sh\n"}, "Makefile ci/build.sh ci/check.sh ci/lib.sh"},
		"the first target":               {"make", files{"Makefile": ".PHONY: all\nall:\n\tsh a.sh\nb:\n\tsh b.sh\n"}, "Makefile a.sh"},
		"an included makefile":           {"make test", files{"Makefile": "include rules/common.make\n-include local.cfg\n", "rules/common.make": "test:\n\tpython3 tools/check.py\n"}, "Makefile local.cfg rules/common.make tools/check.py"},
		"variables of make":              {"make test", files{"Makefile": "PY ?= python3\nDIR := tools\nCHECK = $(DIR)/check.py\ntest: ; $(PY) $(CHECK)\n"}, "Makefile tools/check.py"},
		"a makefile calls make":          {"make all", files{"Makefile": "all:\n\t$(MAKE) -C sub check\n", "sub/Makefile": "check:\n\t./verify.sh\n"}, "Makefile sub/Makefile sub/verify.sh"},
		"a pattern rule":                 {"make a.ok", files{"Makefile": "%.ok: %.in\n\tsh ci/one.sh $<\n"}, "Makefile ci/one.sh"},
		"functions of make":              {"make t", files{"Makefile": "t: $(addprefix t-,a b)\nt-%:\n\tsh ci/$*.sh\n"}, "Makefile ci/a.sh ci/b.sh"},
		"dependency files":               {"make t", files{"Makefile": "SRC := $(wildcard src/*.c)\nOBJ = $(SRC:.c=.o)\nt: $(OBJ)\n\tcc $^\n-include $(OBJ:.o=.d)\n"}, "Makefile src/*.d"},
		"a script of npm":                {"npm test", files{"package.json": `{"scripts":{"pretest":"node ci/pre.js","test":"npm run check -- --fast","check":"sh ci/check.sh"}}`}, "ci/check.sh ci/pre.js package.json"},
		"npm in a folder":                {"npm --prefix web run lint", files{"web/package.json": `{"scripts":{"lint":"node scripts/lint.mjs"}}`}, "web/package.json web/scripts/lint.mjs"},
		"yarn and pnpm":                  {"yarn check && pnpm lint", files{"package.json": `{"scripts":{"check":"node a.js","lint":"run-s lint:*","lint:one":"node b.js"}}`}, "a.js b.js package.json"},
		"scripts of all packages":        {"pnpm -r test", files{"package.json": `{}`, "packages/a/package.json": `{"scripts":{"test":"node check.js"}}`}, "packages/a/check.js packages/a/package.json"},
		"a program of the package":       {"npm test", files{"package.json": `{"name":"x","bin":{"verify-it":"./bin/verify.js"},"scripts":{"test":"verify-it"}}`, "bin/verify.js": "1"}, "bin/verify.js package.json"},
		"a sourced file":                 {". ./env.sh && check", files{"env.sh": "check() { sh ci/a.sh \"$@\"; }\n"}, "ci/a.sh env.sh"},
		"a function that runs its words": {"sh run.sh", files{"run.sh": "step() { echo \"$1\"; shift; \"$@\"; }\nstep one ./ci/a.sh\n"}, "ci/a.sh run.sh"},
		"the folder of the script":       {"bash ci/run.sh", files{"ci/run.sh": "DIR=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\n. \"$DIR/lib.sh\"\nsh \"$(dirname \"$0\")/two.sh\"\nsh ${0%/*}/three.sh\n"}, "ci/lib.sh ci/run.sh ci/three.sh ci/two.sh"},
		"the top of the repository":      {"bash ci/run.sh", files{"ci/run.sh": "cd \"$(git rev-parse --show-toplevel)\"\nexec tools/check\n"}, "ci/run.sh tools/check"},
		"a module of python":             {"python -m tools.check", files{"tools/check.py": "import sys\n", "tools/__init__.py": ""}, "tools/__init__.py tools/check.* tools/check.py tools/check/**"},
		"an installed module":            {"python -m pytest", files{"tests/a.py": ""}, "pytest.* pytest/**"},
		"a script on standard input":     {"bash < ci/a.sh", files{"ci/a.sh": "sh ci/b.sh\n"}, "ci/a.sh ci/b.sh"},
		"a script through a pipe":        {"cat ci/a.sh | sh", files{"ci/a.sh": "sh ci/b.sh\n"}, "ci/a.sh ci/b.sh"},
		"a filtered script":              {"sed s/x/y/ ci/a.sh | bash -e", files{"ci/a.sh": "sh ci/b.sh\n"}, "ci/a.sh ci/b.sh"},
		"a here-document":                {"sh <<EOF\nsh ci/a.sh\nEOF\n", nil, "ci/a.sh"},
		"find runs them":                 {"find ci -name '*.sh' -exec sh {} \\;", files{"ci/a.sh": "sh tools/b.sh\n"}, "ci/**/*.sh tools/b.sh"},
		"xargs runs them":                {"ls ci/*.sh | xargs -n1 sh", files{"ci/a.sh": "sh tools/b.sh\n"}, "ci/*.sh tools/b.sh"},
		"a loop runs them":               {"for f in ci/*.sh; do sh \"$f\"; done", files{"ci/a.sh": "sh tools/b.sh\n"}, "ci/*.sh tools/b.sh"},
		"npx":                            {"npx tsx scripts/check.ts", nil, "scripts/check.ts"},
		"uv run":                         {"uv run --frozen python tools/check.py && uv run check-it", files{"pyproject.toml": "[project.scripts]\ncheck-it = \"mypkg.cli:main\"\n", "src/mypkg/cli.py": ""}, "pyproject.toml src/mypkg/cli.py tools/check.py"},
		"poetry run":                     {"poetry run python -m tools.check", files{"tools/check.py": ""}, "tools/__init__.py tools/check.* tools/check.py tools/check/**"},
		"a script of a Pipfile":          {"pipenv run check", files{"Pipfile": "[scripts]\ncheck = \"python tools/check.py\"\n"}, "Pipfile tools/check.py"},
		"just":                           {"just verify", files{"justfile": "dir := 'ci'\nverify: lint\n    ./{{dir}}/check.sh\nlint:\n    sh ci/lint.sh\nother:\n    sh other.sh\n"}, "ci/check.sh ci/lint.sh justfile"},
		"tox":                            {"tox -e py", files{"tox.ini": "[testenv]\ndeps =\n  x\ncommands =\n  python tools/check.py {posargs}\n  pytest\n"}, "tools/check.py tox.ini"},
		"nox":                            {"nox", files{"noxfile.py": "import nox\n@nox.session\ndef t(session):\n    session.run(\"python\", \"tools/check.py\")\n"}, "noxfile.py tools/check.py"},
		"hooks of the repository":        {"pre-commit run -a", files{".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: scripts/x.sh\n    language: script\n"}, ".pre-commit-config.yaml scripts/x.sh"},
		"a folder that go runs":          {"go run ./tools/check ./...", nil, "tools/check/**"},
		"a package that go runs":         {"go run example.com/x/tools/check", files{"go.mod": "module example.com/x\n"}, "tools/check/**"},
		"a file that node loads first":   {"node --require ./ci/hook.js --import ./ci/b.mjs app.js", nil, "app.js ci/b.mjs ci/hook.js"},
		"env -S in the first line":       {"./ci/run", files{"ci/run": "#!/usr/bin/env -S bash -e\nsh ci/a.sh\n"}, "ci/a.sh ci/run"},
		"a script's arguments":           {"sh run.sh ci/a.sh", files{"run.sh": "exec sh \"$1\"\n"}, "ci/a.sh run.sh"},
		"a variable with a default":      {"sh run.sh", files{"run.sh": "${PYTHON:-python3} tools/a.py\n$PYTHON tools/b.py\n", "tools/b.py": ""}, "run.sh tools/a.py tools/b.py"},
		"an interpreter of the tests":    {"pytest -c ci/py.ini checks/all.py::test_a", files{"ci/py.ini": "", "checks/all.py": ""}, "checks/all.py ci/py.ini"},
		"another folder":                 {"cd web && ./check.sh", nil, "check.sh web/check.sh"},
		"a link to a makefile":           {"make t", files{"Makefile": "build/rules", "build/rules": "t:\n\tsh ci/a.sh\n"}, "Makefile build/rules ci/a.sh"},
		"a script that runs itself":      {"sh a.sh", files{"a.sh": "sh a.sh\nsh b.sh\n", "b.sh": "sh a.sh x\n"}, "a.sh b.sh"},
		"composer":                       {"composer test", files{"composer.json": `{"scripts":{"test":["@lint","php ci/check.php"],"lint":"sh ci/lint.sh"}}`}, "ci/check.php ci/lint.sh composer.json"},
		"a task of deno":                 {"deno task check", files{"deno.json": `{"tasks":{"check":"deno run -A ci/check.ts"}}`}, "ci/check.ts deno.json"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Follow(c.tree, "verify", c.line)
			if diff := cmp.Diff(c.want, strings.Join(got.Programs, " ")); diff != "" {
				t.Errorf("Follow(%q):\n%s", c.line, diff)
			}
			if len(got.Lost) > 0 {
				t.Errorf("Follow(%q) lost %q", c.line, got.Lost)
			}
		})
	}
}

func TestFilesThatAProgramLoadsFromItsOwnFolderAreTold(t *testing.T) {
	tree := files{
		"ci/check.js": "const lib = require('./lib');\nimport x from \"../src/index.js\";\nimport('./deep/more.mjs')\n", "ci/lib.js": "require('./second.js')\n",
		"ci/second.js": "", "ci/deep/more.mjs": "", "src/index.js": "",
		"tools/a.py": "import json\nfrom helper import x\nimport sub.part\n", "tools/helper.py": "", "tools/sub/part.py": "", "run.py": "import app\n", "app.py": "",
		"ci/c.rb": "require_relative 'd'\n", "ci/d.rb": "",
	}
	for line, want := range map[string]string{
		"node ci/check.js":  "ci/deep/more.mjs ci/lib.js ci/second.js",
		"python tools/a.py": "tools/helper.py tools/sub/part.py",
		"python run.py":     "", // At the top of the tree is the code under test.
		"ruby ci/c.rb":      "ci/d.rb",
	} {
		got := Follow(tree, "verify", line)
		if diff := cmp.Diff(want, strings.Join(got.Imports, " ")); diff != "" {
			t.Errorf("Follow(%q) loads:\n%s", line, diff)
		}
	}
}

func TestAFileOfTheScopeThatDecidesIsTold(t *testing.T) {
	tree := files{"Makefile": "t:\n\tsh src/check.sh\n\tnode ci/a.js\n", "src/check.sh": "", "ci/a.js": "require('./b')", "ci/b.js": "", "src/app.go": "package app"}
	j := Follow(tree, "verify", "make t && go run ./src/gen")
	got := j.Rewritable(tree, func(name string) bool { return name != "Makefile" && name != "ci/a.js" })
	if diff := cmp.Diff([]string{"ci/b.js", "src/check.sh"}, got); diff != "" {
		t.Errorf("rewritable by:\n%s", diff)
	}
	if got := Follow(nil, "verify", "python -m x").Rewritable(nil, func(string) bool { return false }); len(got) > 0 {
		t.Errorf("without a tree it is rewritable by %q", got)
	}
	tree["src/gen/main.go"] = "package main"
	if got := j.Rewritable(tree, func(name string) bool { return strings.HasPrefix(name, "src/gen/") }); !slices.Equal(got, []string{"src/gen/main.go"}) {
		t.Errorf("rewritable by %q, want the program that go runs", got)
	}
}
