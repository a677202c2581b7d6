package probe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const viteScripts = `"scripts": {"test": "vitest run", "lint": "eslint .", "typecheck": "tsc -b", "build": "vite build"}, "devDependencies": {"typescript": "5"}`

func TestEveryStackNamesItsCommands(t *testing.T) {
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"an empty repository has none": {files: tree{"README.md": ""}},
		"a Go module": {
			files: tree{"go.mod": "module x\n", "go.sum": "x", ".golangci.yml": ""},
			want: `go . go.mod go.sum
				setup: go mod download
				test: go test ./...
				lint: golangci-lint run
				typecheck: go vet ./...
				build: go build ./...`,
		},
		"a Go module without dependencies needs no setup": {
			files: tree{"go.mod": "module x\n"},
			want: `go . go.mod
				test: go test ./...
				typecheck: go vet ./...
				build: go build ./...`,
		},
		"a module that only lists tools is not a stack": {
			files: tree{"go.mod": "module x\n", "tools/go.mod": "module tools\n", "tools/go.sum": "", "api/go.mod": "module api\n", "api/api.go": ""},
			want: `go . go.mod
				test: go test ./...
				typecheck: go vet ./...
				build: go build ./...
			go api api/go.mod
				test: (cd api && go test ./...)
				typecheck: (cd api && go vet ./...)
				build: (cd api && go build ./...)`,
		},
		"a Go workspace names its modules and covers them": {
			files: tree{"go.work": "go 1.26\nuse ./a\nuse (\n\t./b c // note\n\t./tools/d // why\n\t../out\n)\n", "a/go.mod": "module a", "tools/d/go.mod": "module d"},
			want: `go . go.work
				test: go test ./a/... ./tools/d/...
				typecheck: go vet ./a/... ./tools/d/...
				build: go build ./a/... ./tools/d/...`,
		},
		"npm": {
			files: tree{"package.json": "\ufeff{" + viteScripts + "}", "package-lock.json": "{}"},
			want: `npm . package.json package-lock.json
				setup: npm ci
				test: npm test
				lint: npm run lint
				typecheck: npm run typecheck
				build: npm run build`,
		},
		"npm's own default is not a test": {
			files: tree{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`},
			want:  `npm . package.json`,
		},
		"npm without a lockfile installs instead of failing": {
			files: tree{"package.json": `{"scripts":{"test":"node --test"},"dependencies":{"a":"1"}}`},
			want: `npm . package.json
				setup: npm install
				test: npm test`,
		},
		"a test that watches is replaced by one that ends": {
			files: tree{"package.json": `{"scripts":{"test":"jest --watchAll","test:ci":"jest --ci"}}`},
			want: `npm . package.json
				test: npm run test:ci`,
		},
		"a test that watches alone is none": {
			files: tree{"package.json": `{"scripts":{"test":"jest --watch"}}`},
			want:  `npm . package.json`,
		},
		"react-scripts is told not to watch": {
			files: tree{"package.json": `{"scripts":{"test":"react-scripts test"}}`},
			want: `npm . package.json
				test: CI=true npm test`,
		},
		"a tsconfig with the compiler is a typecheck": {
			files: tree{"package.json": `{"devDependencies":{"typescript":"5"}}`, "tsconfig.json": "{ /* */ }", "pnpm-lock.yaml": ""},
			want: `pnpm . package.json pnpm-lock.yaml
				setup: pnpm install --frozen-lockfile
				typecheck: pnpm exec tsc --noEmit`,
		},
		"npx fetches no compiler that nobody asked for": {
			files: tree{"package.json": `{}`, "tsconfig.json": "{}"},
			want:  `npm . package.json`,
		},
		"pnpm by its field, whatever lockfile was left behind": {
			files: tree{"package.json": `{"packageManager":"pnpm@9.1.0+sha512.abc",` + viteScripts + `}`, "package-lock.json": "{}"},
			want: `pnpm . package.json
				setup: pnpm install
				test: pnpm test
				lint: pnpm run lint
				typecheck: pnpm run typecheck
				build: pnpm run build`,
		},
		"yarn berry by its lockfile": {
			files: tree{"package.json": `{"scripts":{"test":"jest"}}`, "yarn.lock": "__metadata:\n  version: 8\n"},
			want: `yarn . package.json yarn.lock
				setup: yarn install --immutable
				test: yarn test`,
		},
		"yarn berry by its field": {
			files: tree{"package.json": `{"packageManager":"yarn@4.5.0","scripts":{"test":"jest"}}`, "yarn.lock": ""},
			want: `yarn . package.json yarn.lock
				setup: yarn install --immutable
				test: yarn test`,
		},
		"yarn classic": {
			files: tree{"package.json": `{"scripts":{"test":"jest"}}`, "yarn.lock": "# yarn lockfile v1\n"},
			want: `yarn . package.json yarn.lock
				setup: yarn install --frozen-lockfile
				test: yarn test`,
		},
		"bun runs the script and not its own tests": {
			files: tree{"package.json": `{"scripts":{"test":"vitest run"}}`, "bun.lock": ""},
			want: `bun . package.json bun.lock
				setup: bun install --frozen-lockfile
				test: bun run test`,
		},
		"a workspace tests its packages where the root tests nothing": {
			files: tree{"package.json": `{"workspaces":["packages/*"]}`, "package-lock.json": "{}", "packages/a/package.json": `{"scripts":{"test":"node --test"}}`},
			want: `npm . package.json package-lock.json
				setup: npm ci
				test: npm test --workspaces --if-present`,
		},
		"packages without a workspace stand alone": {
			files: tree{"web/package.json": `{"scripts":{"test":"node --test"}}`, "web app/it's/package.json": `{"scripts":{"test":"node --test"}}`},
			want: `npm web web/package.json
				test: (cd web && npm test)
			npm web app/it's web app/it's/package.json
				test: (cd 'web app/it'\''s' && npm test)`,
		},
		"deno prefers its task": {
			files: tree{"deno.json": `{"tasks":{"test":"deno test -A"}}`, "deno.lock": "{}"},
			want: `deno . deno.json deno.lock
				setup: deno install --frozen
				test: deno task test
				lint: deno lint
				typecheck: deno check .`,
		},
		"uv": {
			files: tree{"pyproject.toml": "[dependency-groups]\ndev=['pytest>=8']\n[tool.ruff]\n[tool.mypy]\nstrict=true\n", "uv.lock": ""},
			want: `python-uv . pyproject.toml uv.lock
				setup: uv sync --frozen
				test: uv run pytest
				lint: uv run ruff check
				typecheck: uv run mypy .`,
		},
		"uv installs the extra that has pytest": {
			files: tree{"pyproject.toml": "[project]\nname='x'\n[project.optional-dependencies]\ntest=['pytest[x]~=8.0']\n", "uv.lock": ""},
			want: `python-uv . pyproject.toml uv.lock
				setup: uv sync --frozen --extra test
				test: uv run pytest`,
		},
		"poetry": {
			files: tree{"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest='^8'\n[tool.mypy]\nfiles='src'\n", "poetry.lock": ""},
			want: `poetry . pyproject.toml poetry.lock
				setup: poetry install --no-interaction
				test: poetry run pytest
				typecheck: poetry run mypy`,
		},
		"poetry installs the optional group that has pytest": {
			files: tree{"pyproject.toml": "[tool.poetry.group.test]\noptional=true\n[tool.poetry.group.test.dependencies]\npytest={version='^8'}\n", "poetry.lock": ""},
			want: `poetry . pyproject.toml poetry.lock
				setup: poetry install --no-interaction --with test
				test: poetry run pytest`,
		},
		"pdm": {
			files: tree{"pyproject.toml": "[tool.pdm]\n[tool.pytest.ini_options]\n[tool.pyright]\n", "pdm.lock": ""},
			want: `pdm . pyproject.toml pdm.lock
				setup: pdm sync
				test: pdm run pytest
				typecheck: pdm run pyright`,
		},
		"pipenv": {
			files: tree{"Pipfile": "[dev-packages]\npytest = '*'\n", "Pipfile.lock": "{}"},
			want: `pipenv . Pipfile Pipfile.lock
				setup: pipenv sync --dev
				test: pipenv run pytest`,
		},
		"requirements": {
			files: tree{"requirements.txt": "flask\n", "requirements-dev.txt": "pytest-cov\nPyTest==8\n"},
			want: `pip . requirements.txt
				setup: python -m pip install -r requirements.txt -r requirements-dev.txt
				test: python -m pytest`,
		},
		"a plugin of pytest is not pytest": {
			files: tree{"requirements.txt": "pytest-cov\n"},
			want: `pip . requirements.txt
				setup: python -m pip install -r requirements.txt`,
		},
		"a tests directory means pytest": {
			files: tree{"setup.py": "", "tests/test_x.py": ""},
			want: `pip . setup.py
				test: python -m pytest`,
		},
		"test files alone mean unittest": {
			files: tree{"setup.py": "", "test_x.py": ""},
			want: `pip . setup.py
				test: python -m unittest`,
		},
		"a tests directory written for unittest": {
			files: tree{"setup.py": "", "tests/test_x.py": "import unittest\n", "tests/test_y.py": "x = 1\n"},
			want: `pip . setup.py
				test: python -m unittest discover -s tests`,
		},
		"a package of tests written for unittest": {
			files: tree{"setup.py": "", "tests/__init__.py": "", "tests/test_x.py": "from unittest import TestCase\n"},
			want: `pip . setup.py
				test: python -m unittest discover -s tests -t .`,
		},
		"unittest beside pytest means pytest, which runs both": {
			files: tree{"setup.py": "", "tests/test_x.py": "import unittest\n", "tests/test_y.py": "import pytest\n"},
			want: `pip . setup.py
				test: python -m pytest`,
		},
		"tox where nothing says pytest": {
			files: tree{"tox.ini": "[tox]\n", "tests/test_x.py": ""},
			want: `pip . tox.ini
				test: tox`,
		},
		"nox": {files: tree{"noxfile.py": ""}, want: `pip . noxfile.py
				test: nox`},
		"Django": {files: tree{"requirements.txt": "django\n", "manage.py": ""}, want: `pip . requirements.txt
				setup: python -m pip install -r requirements.txt
				test: python manage.py test`},
		"a Rust package": {
			files: tree{"Cargo.toml": "[package]\nname='x'\n", "Cargo.lock": ""},
			want: `cargo . Cargo.toml Cargo.lock
				setup: cargo fetch --locked
				test: cargo test
				lint: cargo clippy
				typecheck: cargo check
				build: cargo build`,
		},
		"a Rust workspace with a package at its root means all of it": {
			files: tree{"Cargo.toml": "[package]\nname='x'\n[workspace]\nmembers=['crates/*']\n", "crates/a/Cargo.toml": "[package]\nname='a'\n"},
			want: `cargo . Cargo.toml
				setup: cargo fetch
				test: cargo test --workspace
				lint: cargo clippy --workspace
				typecheck: cargo check --workspace
				build: cargo build --workspace`,
		},
		"Gradle with its wrapper covers its projects": {
			files: tree{"settings.gradle.kts": "", "gradlew": "", "app/build.gradle.kts": ""},
			want: `gradle . settings.gradle.kts
				setup: ./gradlew testClasses
				test: ./gradlew test
				lint: ./gradlew check
				build: ./gradlew assemble`,
		},
		"Maven without a wrapper": {
			files: tree{"pom.xml": "<project><modules/><modules></modules></project>", "core/pom.xml": "<project/>"},
			want: `maven . pom.xml
				setup: mvn -q dependency:go-offline
				test: mvn -q test
				typecheck: mvn -q test-compile
				build: mvn -q -DskipTests package`,
		},
		"a makefile with targets": {
			files: tree{"Makefile": ".PHONY: build lint\nVERSION := 1:2\ntest: export X = 1\ntest lint: deps ## words\n\tgo test\nbuild::\n\tx:\ndefine T\nsetup:\nendef\n%.o: %.c\ntypecheck \\\n  types:; tsc\n"},
			want: `make . Makefile
				test: make test
				lint: make lint
				typecheck: make typecheck
				build: make build`,
		},
		"a phony declaration is not a target":    {files: tree{"Makefile": ".PHONY: test\nall:\n"}},
		"a variable of a target is not a target": {files: tree{"Makefile": "test: X := 1\n"}},
		"a justfile, without recipes that need an argument": {
			files: tree{"justfile": "build := 'x'\ndefault:\n  just --list\n@test *ARGS:\n  cargo test {{ARGS}}\nlint level='all':\n  x\ntypecheck FILE:\n  tsc {{FILE}}\nalias check := test\n"},
			want: `just . justfile
				test: just test
				lint: just lint`,
		},
		"a Taskfile": {
			files: tree{"Taskfile.yml": "version: '3'\nvars:\n  build: x\ntasks:\n  # note\n  test:\n    cmds:\n      - go test\n    setup: no\n  'lint':\n    cmd: x\nincludes:\n  deps: y\n"},
			want: `task . Taskfile.yml
				test: task test
				lint: task lint`,
		},
		"PHP": {
			files: tree{"composer.json": `{"require-dev":{"phpunit/phpunit":"^11"}}`, "phpunit.xml": "", "phpstan.neon": ""},
			want: `composer . composer.json
				setup: composer install --no-interaction
				test: vendor/bin/phpunit
				typecheck: vendor/bin/phpstan analyse --no-progress`,
		},
		"Ruby with rspec": {
			files: tree{"Gemfile": "", "Gemfile.lock": "", "spec/x_spec.rb": "", ".rubocop.yml": ""},
			want: `bundler . Gemfile Gemfile.lock
				setup: bundle install
				test: bundle exec rspec
				lint: bundle exec rubocop`,
		},
		"Ruby with rake": {files: tree{"Gemfile": "", "Rakefile": "", "test/x.rb": ""}, want: `bundler . Gemfile
				setup: bundle install
				test: bundle exec rake test`},
		"Elixir": {
			files: tree{"mix.exs": "", ".formatter.exs": ""},
			want: `mix . mix.exs
				setup: mix deps.get
				test: mix test
				lint: mix format --check-formatted
				typecheck: mix compile --warnings-as-errors
				build: mix compile`,
		},
		"a .NET solution covers its projects": {
			files: tree{"X.sln": "", "Y & Z.sln": "", "src/X/X.csproj": ""},
			want: `dotnet . X.sln
				setup: dotnet restore X.sln
				test: dotnet test X.sln
				build: dotnet build X.sln`,
		},
		"CMake with one preset of each kind": {
			files: tree{"CMakeLists.txt": "", "CMakePresets.json": `{"configurePresets":[{"name":"base","hidden":true},{"name":"dev"}],"buildPresets":[{"name":"dev"}],"testPresets":[{"name":"d;ev"}]}`},
			want: `cmake . CMakePresets.json
				test: cmake --preset dev && cmake --build --preset dev && ctest --preset 'd;ev'
				build: cmake --preset dev && cmake --build --preset dev`,
		},
		"Swift": {files: tree{"Package.swift": "", "Tests/x.swift": ""}, want: `swift . Package.swift
				setup: swift package resolve
				test: swift test
				build: swift build`},
		"what is vendored, hidden or an example is not looked at": {
			files: tree{"node_modules/a/package.json": "{}", ".cache/go.mod": "", "examples/x/go.mod": "", "a/b/c/go.mod": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := surveyed(t, c.files)
			var want []string
			for line := range strings.Lines(c.want) {
				line = strings.TrimSpace(line)
				if strings.Contains(line, ": ") {
					line = "  " + line
				}
				want = append(want, line)
			}
			if diff := cmp.Diff(want, drawn(repo.Stacks), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("stacks (-want +got)\n%s", diff)
			}
			if len(repo.Problems) > 0 {
				t.Errorf("problems %v, want none", repo.Problems)
			}
		})
	}
}
