package toolchain

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestASetupIsFoundByItsLockfiles(t *testing.T) {
	npm := []string{"registry.npmjs.org"}
	pypi := []string{"files.pythonhosted.org", "pypi.org"}
	for name, c := range map[string]struct {
		files map[string]string
		want  Setup
	}{
		"nothing":               {files: map[string]string{"README": ""}},
		"npm without lockfile":  {files: map[string]string{"package.json": `{"dependencies": {"a": "1"}}`}},
		"go without checksums":  {files: map[string]string{"go.mod": "module m\n"}},
		"go with vendored code": {files: map[string]string{"go.mod": "module m\n", "go.sum": "", "vendor/modules.txt": ""}},
		"npm": {
			files: map[string]string{"package.json": "{}", "package-lock.json": "{}", ".npmrc": "registry=https://evil.example"},
			want:  Setup{Command: "npm ci", Lockfiles: []string{".npmrc", "package-lock.json", "package.json"}, Hosts: npm},
		},
		"yarn, the first": {
			files: map[string]string{"package.json": "{}", "yarn.lock": "# yarn lockfile v1\n"},
			want: Setup{
				Command: "yarn install --frozen-lockfile", Lockfiles: []string{"package.json", "yarn.lock"},
				Hosts: []string{"registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com"},
			},
		},
		"pnpm": {
			files: map[string]string{"package.json": "{}", "pnpm-lock.yaml": "", "pnpm-workspace.yaml": ""},
			want: Setup{
				Command: "pnpm install --frozen-lockfile", Lockfiles: []string{"package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml"}, Hosts: npm,
			},
		},
		"go": {
			files: map[string]string{"go.mod": "module m\n", "go.sum": ""},
			want:  Setup{Command: "go mod download", Lockfiles: []string{"go.mod", "go.sum"}, Hosts: []string{"proxy.golang.org", "sum.golang.org"}},
		},
		"cargo": {
			files: map[string]string{"Cargo.toml": "[package]\n", "Cargo.lock": "", "rust-toolchain.toml": ""},
			want: Setup{
				Command: "cargo fetch --locked", Lockfiles: []string{"Cargo.lock", "Cargo.toml", "rust-toolchain.toml"},
				Hosts: []string{"index.crates.io", "static.crates.io"},
			},
		},
		"uv": {
			files: map[string]string{"pyproject.toml": "[project]\n", "uv.lock": "", ".python-version": "3.12"},
			want:  Setup{Command: "uv sync --frozen", Lockfiles: []string{".python-version", "pyproject.toml", "uv.lock"}, Hosts: pypi},
		},
		"poetry keeps its environment in the tree": {
			files: map[string]string{"pyproject.toml": "[tool.poetry]\n", "poetry.lock": ""},
			want: Setup{
				Command: "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction", Lockfiles: []string{"poetry.lock", "pyproject.toml"}, Hosts: pypi,
			},
		},
		"pip gets an environment": {
			files: map[string]string{"requirements.txt": "a", "requirements-dev.txt": "b"},
			want: Setup{
				Command:   "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt -r requirements-dev.txt",
				Lockfiles: []string{"requirements-dev.txt", "requirements.txt"}, Hosts: pypi, PathDirs: []string{".venv/bin"},
			},
		},
		"bundler keeps its gems in the tree": {
			files: map[string]string{"Gemfile": "", "Gemfile.lock": ""},
			want: Setup{
				Command:   "bundle config set --local path vendor/bundle && BUNDLE_FROZEN=true bundle install",
				Lockfiles: []string{"Gemfile", "Gemfile.lock"}, Hosts: []string{"index.rubygems.org", "rubygems.org"},
			},
		},
		"composer": {
			files: map[string]string{"composer.json": "{}", "composer.lock": "{}"},
			want: Setup{
				Command: "composer install --no-interaction", Lockfiles: []string{"composer.json", "composer.lock"},
				Hosts: []string{"api.github.com", "codeload.github.com", "packagist.org", "repo.packagist.org"},
			},
		},
		"several, in directories whose names a shell would take apart": {
			files: map[string]string{
				"go.mod": "module m\n", "go.sum": "", "a && b/requirements.txt": "x", "web/package.json": "{}", "web/package-lock.json": "{}",
			},
			want: Setup{
				Command: "go mod download && (cd 'a && b' && python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt)" +
					" && (cd web && npm ci)",
				Lockfiles: []string{"a && b/requirements.txt", "go.mod", "go.sum", "web/package-lock.json", "web/package.json"},
				Hosts:     []string{"files.pythonhosted.org", "proxy.golang.org", "pypi.org", "registry.npmjs.org", "sum.golang.org"},
				PathDirs:  []string{"a && b/.venv/bin"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
			}
			got, ok := SetupFor(root)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Setup{}, "Stacks")); diff != "" {
				t.Errorf("set-up (-want +got)\n%s", diff)
			}
			if ok != (c.want.Command != "") || ok != (len(got.Stacks) > 0) {
				t.Errorf("found %v, with the stacks %v", ok, got.Stacks)
			}
		})
	}
}
