package judging

import (
	"strings"
	"testing"
)

func TestWhereAGateCannotBeFollowedIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		tree files
		want string // part of the only place
	}{
		"a text that a file holds":        {`sh -c "$(cat src/cmd)"`, files{"src/cmd": "true"}, "a text that it runs is computed (verify)"},
		"eval of a file":                  {`eval "$(cat src/cmd)"`, nil, "a text that it runs is computed (verify)"},
		"eval of a program's output":      {`eval "$(./src/gen)"`, nil, "a text that it runs is computed (verify)"},
		"a program that a file names":     {`$(cat src/program) --all`, nil, "what it runs is computed (verify)"},
		"a script that a file names":      {`sh "$(head -1 src/list)"`, files{"src/list": "a.sh\n"}, "the name of a file that it runs is computed (verify)"},
		"a name that is read":             {"while read -r f; do sh \"$f\"; done < src/list", files{"src/list": "a.sh\n"}, "the name of a file that it runs is computed (verify)"},
		"a sourced name that is computed": {`x=$(cat src/x); . "$x"`, nil, "the name of a file that it reads is computed (verify)"},
		"a generated script":              {"python -c 'print(1)' | sh", nil, "a shell runs what another program prints (verify)"},
		"in a recipe":                     {"make t", files{"Makefile": "t:\n\tsh -c \"$$(cat src/cmd)\"\n"}, "a text that it runs is computed (Makefile)"},
		"make reads it":                   {"make t", files{"Makefile": "CMD := $(shell cat src/cmd)\nt:\n\t$(CMD)\n"}, "what it runs is computed (Makefile)"},
		"an include that is computed":     {"make t", files{"Makefile": "include $(shell cat src/list)\nt:\n\ttrue\n"}, "the name of a makefile that it includes is computed (Makefile)"},
		"in a script of npm":              {"npm test", files{"package.json": `{"scripts":{"test":"sh -c \"$(cat src/cmd)\""}}`}, "a text that it runs is computed (package.json)"},
		"names from a program":            {"./src/list | xargs sh", nil, "the names of what sh runs are computed (verify)"},
		"a text that nobody can parse":    {"sh 'unfinished", nil, "it cannot be read as a text for the shell (verify)"},
		"a script that nobody can parse":  {"sh a.sh", files{"a.sh": "if then\n"}, "it cannot be read as a text for the shell (a.sh)"},
		"a script that is too large":      {"sh a.sh", files{"a.sh": strings.Repeat("# x\n", 300_000)}, "a.sh is too large or cannot be read (verify)"},
		"a module that is computed":       {`python -m "$(cat src/module)"`, nil, "the module that python runs is computed (verify)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Follow(c.tree, "verify", c.line)
			if len(got.Lost) != 1 || got.Lost[0] != c.want {
				t.Errorf("Follow(%.80q) lost %q, want %q", c.line, got.Lost, c.want)
			}
		})
	}
}

// A message that is shown for ordinary repositories would be read by nobody.
func TestGatesOfOrdinaryRepositoriesAreFollowedToTheirEnd(t *testing.T) {
	makefile := `SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
ROOT_DIR := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
GOBIN ?= $(shell go env GOPATH)/bin
VERSION := $(shell git describe --tags --always 2>/dev/null || echo dev)
PKGS := $(shell go list ./... | grep -v /vendor/)
FILES = $(shell find . -name '*.go' -not -path './vendor/*')
COMMIT = $(shell git rev-parse --short HEAD)
LDFLAGS = -ldflags "-X main.version=$(VERSION)"
define run-tests
	@echo "testing $(1)"
	@go test $(LDFLAGS) $(1)
endef
.PHONY: all test lint help
all: test
ifeq ($(OS),Windows_NT)
EXT := .exe
else
EXT :=
endif
help: ## this text
	@awk 'BEGIN {FS = ":.*##"} /^[a-zA-Z_-]+:.*?##/ { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
test: build generate ## run tests
	$(call run-tests,./...)
	@for pkg in $(PKGS); do go vet $$pkg || exit 1; done
	@test -z "$$(gofmt -l $(FILES))"
	@if [ -n "$$(git status --porcelain)" ]; then exit 1; fi
build: bin/app$(EXT)
bin/app$(EXT): $(FILES)
	@mkdir -p $(@D)
	CGO_ENABLED=0 go build $(LDFLAGS) -o $@ ./cmd/app
lint: $(GOBIN)/golangci-lint
	$(GOBIN)/golangci-lint run
$(GOBIN)/golangci-lint:
	GOBIN=$(GOBIN) go install github.com/golangci/golangci-lint/cmd/golangci-lint@latest
generate:
	go generate ./...
-include .env
export
`
	c := `CC ?= gcc
CFLAGS += -Wall -O2 $(shell pkg-config --cflags glib-2.0)
SRCS := $(wildcard src/*.c)
OBJS := $(patsubst src/%.c,build/%.o,$(SRCS))
DEPS := $(OBJS:.o=.d)
build/%.o: src/%.c | build
	$(CC) $(CFLAGS) -MMD -c -o $@ $<
build:
	mkdir -p $@
app: $(OBJS)
	$(CC) -o $@ $^
check test: app
	./app --self-test
	cd tests && ctest --output-on-failure
-include $(DEPS)
`
	script := `#!/usr/bin/env bash
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$ROOT"
log() { printf '%s\n' "$*" >&2; }
run() { log "+ $*"; "$@"; }
die() { log "$1"; exit "${2:-1}"; }
while [[ $# -gt 0 ]]; do case "$1" in -v) VERBOSE=1; shift ;; *) ARGS+=("$1"); shift ;; esac; done
PYTHON="${PYTHON:-$(command -v python3)}"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
run "$PYTHON" -m pytest -q ${ARGS[@]+"${ARGS[@]}"}
changed=$(git diff --name-only HEAD | grep '\.py$' || true)
if [ -n "$changed" ]; then run ruff check $changed; fi
count=$(grep -c TODO src/app.py || true)
[ "$count" -le 3 ] || die "too many"
while read -r line; do echo "$line"; done < <(git ls-files)
`
	for name, c := range map[string]struct {
		line string
		tree files
	}{
		"go":                {"go test ./... && go vet ./...", files{"go.mod": "module x\n"}},
		"go, formatted":     {`go build ./... && test -z "$(gofmt -l .)" && go test -race -count=1 ./...`, nil},
		"npm":               {"npm ci && npm test", files{"package.json": `{"scripts":{"test":"jest","prepare":"husky install","lint":"eslint .","build":"tsc -p ."}}`}},
		"npm with wrappers": {"npm run check", files{"package.json": `{"scripts":{"check":"npm-run-all --parallel lint test","lint":"eslint \"src/**/*.ts\" && prettier --check .","test":"cross-env NODE_ENV=test c8 mocha --require ts-node/register 'test/**/*.spec.ts'","posttest":"nyc report"}}`}},
		"pnpm":              {"pnpm install --frozen-lockfile && pnpm -r test", files{"package.json": `{"scripts":{"test":"vitest run"}}`, "packages/a/package.json": `{"scripts":{"test":"vitest run --coverage"}}`}},
		"turbo":             {"npx turbo run test lint", files{"package.json": `{"scripts":{"test":"vitest"}}`}},
		"pytest":            {"pytest -q", nil},
		"python -m pytest":  {"python3 -m pytest tests && python -m mypy .", nil},
		"uv":                {"uv sync && uv run pytest -x && uv run ruff check .", files{"pyproject.toml": "[project]\nname='x'\n[project.scripts]\nx='x.cli:main'\n"}},
		"poetry":            {"poetry run pytest && poetry run mypy src", files{"pyproject.toml": "[tool.poetry.scripts]\nx='x:y'\n"}},
		"tox":               {"tox", files{"tox.ini": "[tox]\nenvlist = py3\n[testenv]\ndeps = -rreq.txt\nallowlist_externals = make\ncommands =\n    coverage run -m pytest {posargs:tests}\n    coverage report\n"}},
		"django":            {"python manage.py test", files{"manage.py": "import os\nimport sys\nfrom django.core.management import execute_from_command_line\n"}},
		"cargo":             {"cargo test --all-features && cargo clippy -- -D warnings && cargo fmt --check", nil},
		"maven":             {"./mvnw -B verify", files{"mvnw": "#!/bin/sh\nset -e\nAPP_HOME=$(cd \"$(dirname \"$0\")\" && pwd)\nif [ -n \"$JAVA_HOME\" ]; then JAVACMD=\"$JAVA_HOME/bin/java\"; else JAVACMD=$(command -v java); fi\nexec \"$JAVACMD\" -jar \"$APP_HOME/.mvn/wrapper/maven-wrapper.jar\" \"$@\"\n"}},
		"gradle":            {"./gradlew check", files{"gradlew": "#!/bin/sh\napp_path=$0\nwhile [ -h \"$app_path\" ]; do ls=$( ls -ld -- \"$app_path\" ); link=${ls#*' -> '}; case $link in /*) app_path=$link ;; *) app_path=$APP_HOME$link ;; esac; done\nAPP_HOME=$( cd -P \"${APP_HOME:-./}..\" > /dev/null && printf '%s\\n' \"$PWD\" ) || exit\nif [ -n \"$JAVA_HOME\" ] ; then JAVACMD=$JAVA_HOME/bin/java; else JAVACMD=java; fi\nset -- -classpath \"$CLASSPATH\" org.gradle.wrapper.GradleWrapperMain \"$@\"\nexec \"$JAVACMD\" \"$@\"\n"}},
		"dotnet":            {"dotnet test --no-restore", nil},
		"ruby":              {"bundle exec rspec && bundle exec rubocop", nil},
		"rake":              {"bundle exec rake test", nil},
		"php":               {"composer install && vendor/bin/phpunit", nil},
		"elixir":            {"mix test", nil},
		"swift":             {"swift test", nil},
		"deno":              {"deno test -A && deno lint", nil},
		"bun":               {"bun install && bun test", files{"package.json": `{}`}},
		"make for go":       {"make test lint", files{"Makefile": makefile}},
		"make for c":        {"make check", files{"Makefile": c, "src/a.c": ""}},
		"a script":          {"./scripts/test.sh -v", files{"scripts/test.sh": script, "src/app.py": ""}},
		"cmake":             {"cmake -B build && cmake --build build -j$(nproc) && ctest --test-dir build", nil},
		"just":              {"just test", files{"justfile": "set shell := ['bash', '-uc']\nversion := `git describe`\ntest *args: build\n    cargo test {{args}}\nbuild:\n    cargo build\n"}},
		"bazel":             {"bazel test //...", nil},
		"shellcheck":        {"git ls-files '*.sh' | xargs shellcheck && find . -name '*.py' | xargs python -m py_compile", nil},
		"a filter":          {"go test ./... 2>&1 | tee out.txt | tail -20; grep -c ok out.txt", nil},
		"a loop":            {"for d in a b; do (cd $d && npm test); done", files{"a/package.json": `{"scripts":{"test":"jest"}}`}},
		"docker":            {"docker compose run --rm app pytest", nil},
		"the environment":   {`"$HOME/bin/check" && $RUNNER src && ${CI:+ci-tool} go test ./...`, nil},
		"pre-commit":        {"pre-commit run --all-files", files{".pre-commit-config.yaml": "repos:\n- repo: https://github.com/psf/black\n  rev: 1\n  hooks: [{id: black}]\n"}},
		"a virtual env":     {". .venv/bin/activate && pytest", nil},
		"nvm":               {`export NVM_DIR="$HOME/.nvm"; [ -s "$NVM_DIR/nvm.sh" ] && . "$NVM_DIR/nvm.sh"; npm test`, files{"package.json": `{"scripts":{"test":"node --test"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Follow(c.tree, "verify", c.line)
			if len(got.Lost) > 0 {
				t.Errorf("Follow(%q) lost %q", c.line, got.Lost)
			}
			wide := func(name string) bool { // What a wide scope covers and nothing protects.
				return strings.HasPrefix(name, "src/") && !strings.HasSuffix(name, ".d")
			}
			if all := got.Rewritable(c.tree, wide); len(all) > 0 {
				t.Errorf("Follow(%q) says that it can be rewritten by %q", c.line, all)
			}
		})
	}
}
