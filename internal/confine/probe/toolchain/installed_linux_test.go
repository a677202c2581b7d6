package toolchain

import "os"

// installed are layouts in which nothing chooses between versions.
var installed = map[string]layout{
	"a program of the system needs nothing": {
		make: func(*machine) {}, word: "true",
		want: Toolchain{Path: "/usr/bin/true", PathDirs: []string{"/usr/bin"}},
	},
	"a program of pipx is seen without what lies beside it": {
		make: func(m *machine) {
			m.python(".pyenv/versions/3.11.7")
			venv := ".local/share/pipx/venvs/poetry"
			m.script(venv+"/bin/poetry", "#!/HOME/"+venv+"/bin/python\n")
			m.link(venv+"/bin/python", "/HOME/.pyenv/versions/3.11.7/bin/python3.11")
			m.file(venv+"/pyvenv.cfg", "home = /HOME/.pyenv/versions/3.11.7/bin\nversion = 3.11.7\n", 0o644)
			m.link(".local/bin/poetry", "/HOME/"+venv+"/bin/poetry")
			m.binary(".local/bin/other")
			m.before(".local/bin")
		},
		word: "poetry",
		want: Toolchain{
			Path:     "/HOME/.local/share/pipx/venvs/poetry/bin/poetry",
			Bind:     []string{"/HOME/.local/bin/poetry", "/HOME/.local/share/pipx/venvs/poetry", "/HOME/.pyenv/versions/3.11.7"},
			PathDirs: []string{"/HOME/.local/bin"},
		},
	},
	"an environment that is active": {
		make: func(m *machine) {
			m.python(".pyenv/versions/3.11.7")
			m.link("envs/mine/bin/python3", "/HOME/.pyenv/versions/3.11.7/bin/python3.11")
			m.file("envs/mine/pyvenv.cfg", "home = /HOME/.pyenv/versions/3.11.7/bin\n", 0o644)
			m.before("envs/mine/bin")
			m.env = []string{"VIRTUAL_ENV=/HOME/envs/mine"}
		},
		word: "python3",
		want: Toolchain{
			Path: "/HOME/.pyenv/versions/3.11.7/bin/python3.11", Env: []string{"VIRTUAL_ENV=/HOME/envs/mine"},
			Bind:     []string{"/HOME/.pyenv/versions/3.11.7", "/HOME/envs/mine"},
			PathDirs: []string{"/HOME/envs/mine/bin"},
		},
	},
	"an environment of the project needs only the Python that it was made with": {
		make: func(m *machine) {
			m.python(".pyenv/versions/3.11.7")
			m.link("./.venv/bin/python3", "/HOME/.pyenv/versions/3.11.7/bin/python3.11")
			m.script("./.venv/bin/pytest", "#!/PROJECT/.venv/bin/python3\n")
			m.file("./.venv/pyvenv.cfg", "home = /HOME/.pyenv/versions/3.11.7/bin\n", 0o644)
		},
		word: ".venv/bin/pytest",
		want: Toolchain{Path: "/PROJECT/.venv/bin/pytest", Bind: []string{"/HOME/.pyenv/versions/3.11.7"}},
	},
	"a file of the project that the set-up makes needs nothing yet": {
		make: func(*machine) {}, word: "node_modules/.bin/jest",
	},
	"conda": {
		make: func(m *machine) {
			m.binary("miniconda3/envs/ml/bin/python3.11")
			m.link("miniconda3/envs/ml/bin/python3", "python3.11")
			m.file("miniconda3/envs/ml/conda-meta/history", "", 0o644)
			m.before("miniconda3/envs/ml/bin")
		},
		word: "python3",
		want: Toolchain{
			Path: "/HOME/miniconda3/envs/ml/bin/python3.11",
			Bind: []string{"/HOME/miniconda3/envs/ml"}, PathDirs: []string{"/HOME/miniconda3/envs/ml/bin"},
		},
	},
	"homebrew's programs refer to each other": {
		make: func(m *machine) {
			m.node("linuxbrew/.linuxbrew/Cellar/node/20.11.0")
			m.link("linuxbrew/.linuxbrew/bin/node", "../Cellar/node/20.11.0/bin/node")
			m.file("linuxbrew/.linuxbrew/var/postgres/pg_hba.conf", "", 0o600)
			m.before("linuxbrew/.linuxbrew/bin")
		},
		word: "node",
		want: Toolchain{
			Path:     "/HOME/linuxbrew/.linuxbrew/Cellar/node/20.11.0/bin/node",
			Bind:     []string{"/HOME/linuxbrew/.linuxbrew/Cellar", "/HOME/linuxbrew/.linuxbrew/bin"},
			PathDirs: []string{"/HOME/linuxbrew/.linuxbrew/Cellar/node/20.11.0/bin"},
		},
	},
	"deno stands alone": {
		make: func(m *machine) {
			m.binary(".deno/bin/deno")
			m.before(".deno/bin")
		},
		word: "deno",
		want: Toolchain{Path: "/HOME/.deno/bin/deno", Bind: []string{"/HOME/.deno/bin/deno"}, PathDirs: []string{"/HOME/.deno/bin"}},
	},
	"bunx is bun by another name": {
		make: func(m *machine) {
			m.binary(".bun/bin/bun")
			m.link(".bun/bin/bunx", "bun")
			m.before(".bun/bin")
		},
		word: "bunx",
		want: Toolchain{Path: "/HOME/.bun/bin/bun", Bind: []string{"/HOME/.bun/bin/bun", "/HOME/.bun/bin/bunx"}, PathDirs: []string{"/HOME/.bun/bin"}},
	},
	"a program that go install made": {
		make: func(m *machine) {
			m.binary("go/bin/stringer")
			m.file("go/pkg/mod/x", "", 0o644)
			m.before("go/bin")
		},
		word: "stringer",
		want: Toolchain{Path: "/HOME/go/bin/stringer", Bind: []string{"/HOME/go/bin/stringer"}, PathDirs: []string{"/HOME/go/bin"}},
	},
	".NET leaves its private keys where they are": {
		make: func(m *machine) {
			m.binary(".dotnet/dotnet")
			m.file(".dotnet/shared/x", "", 0o644)
			m.file(".dotnet/corefx/cryptography/x509stores/my/key.pfx", "", 0o600)
			m.before(".dotnet")
		},
		word: "dotnet",
		want: Toolchain{
			Path: "/HOME/.dotnet/dotnet", Env: []string{"DOTNET_ROOT=/HOME/.dotnet"},
			Bind: []string{"/HOME/.dotnet/dotnet", "/HOME/.dotnet/shared"}, PathDirs: []string{"/HOME/.dotnet"},
		},
	},
	"corepack brings what it fetched": {
		make: func(m *machine) {
			m.node("node20")
			m.script("node20/lib/node_modules/corepack/dist/pnpm.js", "#!/usr/bin/env node\nrequire('./lib/corepack.cjs').runMain(['pnpm']);\n")
			m.link("node20/bin/pnpm", "../lib/node_modules/corepack/dist/pnpm.js")
			m.file("./package.json", `{"packageManager": "pnpm@9.1.0+sha512.abc"}`, 0o644)
			m.file(".cache/node/corepack/v1/pnpm/9.1.0/package.json", "{}", 0o644)
			m.before("node20/bin")
		},
		word: "pnpm",
		want: Toolchain{
			Path: "/HOME/node20/lib/node_modules/corepack/dist/pnpm.js", Shim: "corepack",
			Bind: []string{"/HOME/.cache/node/corepack", "/HOME/node20"}, PathDirs: []string{"/HOME/node20/bin"},
			Env: []string{"COREPACK_ENABLE_NETWORK=0", "COREPACK_HOME=/HOME/.cache/node/corepack"},
		},
	},
	"go is a shim of the toolchain that go.mod asks for": {
		make: func(m *machine) {
			for root, version := range map[string]string{"sdk/go1.26.0": "go1.26.0", "go/pkg/mod/golang.org/toolchain@v0.0.1-go1.26.8.linux-" + goArch: "go1.26.8"} {
				m.binary(root + "/bin/go")
				m.file(root+"/VERSION", version+"\n", 0o644)
				m.file(root+"/src/runtime/runtime.go", "", 0o644)
			}
			m.file("./go.mod", "module m\n\ngo 1.26.0\n\ntoolchain go1.26.8\n", 0o644)
			m.before("sdk/go1.26.0/bin")
		},
		word: "go",
		want: Toolchain{
			Path:     "/HOME/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.26.8.linux-" + goArch + "/bin/go",
			Version:  "1.26.8",
			Bind:     []string{"/HOME/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.26.8.linux-" + goArch},
			PathDirs: []string{"/HOME/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.26.8.linux-" + goArch + "/bin"},
		},
	},
	"a script of the user's own is asked by looking at what it starts": {
		make: func(m *machine) {
			m.python("tools/python-3.11")
			m.script("bin/python3", "#!/bin/sh\nexport X=1\n/HOME/tools/python-3.11/bin/python3 \"$@\"\n")
			m.before("bin")
		},
		word: "python3",
		want: Toolchain{
			Path: "/HOME/bin/python3",
			Bind: []string{"/HOME/bin/python3", "/HOME/tools/python-3.11"}, PathDirs: []string{"/HOME/bin"},
		},
	},
	"a script that pip installed for the user brings the user's packages": {
		make: func(m *machine) {
			m.python("python")
			m.script(".local/bin/pytest", "#!/HOME/python/bin/python3\n")
			m.file(".local/lib/python3.11/site-packages/pytest.py", "", 0o644)
			m.file(".local/share/keyrings/login", "", 0o600)
			m.before(".local/bin")
		},
		word: "pytest",
		want: Toolchain{
			Path: "/HOME/.local/bin/pytest", PathDirs: []string{"/HOME/.local/bin"},
			Bind: []string{"/HOME/.local/bin/pytest", "/HOME/.local/lib/python3.11/site-packages", "/HOME/python"},
		},
	},
	"Ruby's gems lie where the variables say": {
		make: func(m *machine) {
			m.binary(".rvm/rubies/ruby-3.3.0/bin/ruby")
			m.file(".rvm/rubies/ruby-3.3.0/lib/ruby/3.3.0/set.rb", "", 0o644)
			m.file(".rvm/gems/ruby-3.3.0/x", "", 0o644)
			m.before(".rvm/rubies/ruby-3.3.0/bin")
			m.env = []string{"GEM_HOME=/HOME/.rvm/gems/ruby-3.3.0"}
		},
		word: "ruby",
		want: Toolchain{
			Path: "/HOME/.rvm/rubies/ruby-3.3.0/bin/ruby", Env: []string{"GEM_HOME=/HOME/.rvm/gems/ruby-3.3.0"},
			Bind: []string{"/HOME/.rvm/gems/ruby-3.3.0", "/HOME/.rvm/rubies/ruby-3.3.0"}, PathDirs: []string{"/HOME/.rvm/rubies/ruby-3.3.0/bin"},
		},
	},
	"of an installation that is not known the usual parts are shown": {
		make: func(m *machine) {
			m.binary("sw/cmake/bin/cmake")
			m.file("sw/cmake/share/cmake/x", "", 0o644)
			m.file("sw/cmake/notes/private", "", 0o644)
			m.before("sw/cmake/bin")
		},
		word: "cmake",
		want: Toolchain{
			Path: "/HOME/sw/cmake/bin/cmake", Bind: []string{"/HOME/sw/cmake/bin", "/HOME/sw/cmake/share"}, PathDirs: []string{"/HOME/sw/cmake/bin"},
		},
	},
	"an installation with a credential in it is shown in parts": {
		make: func(m *machine) {
			m.node("node20")
			m.file("node20/.npmrc", "//registry/:_authToken=x", 0o600)
			m.before("node20/bin")
		},
		word: "node",
		want: Toolchain{
			Path: "/HOME/node20/bin/node", Bind: []string{"/HOME/node20/bin", "/HOME/node20/lib"}, PathDirs: []string{"/HOME/node20/bin"},
		},
	},
	"a home that is itself a link": {
		make: func(m *machine) {
			real := m.home + "-disk"
			if err := os.Rename(m.home, real); err != nil {
				m.t.Fatal(err)
			}
			m.link(m.home, real)
			m.python("python")
			m.script("python/bin/tool", "#!/HOME/python/bin/python3\n")
			m.before("python/bin")
		},
		word: "tool",
		want: Toolchain{
			Path: "/HOME-disk/python/bin/tool", Bind: []string{"/HOME-disk/python", "/HOME/python"}, PathDirs: []string{"/HOME-disk/python/bin"},
		},
	},
	"a classic snap runs without its daemon": {
		make: func(m *machine) {
			m.binary("snapd/snap", "snap/go/1063/bin/go")
			m.file("snap/go/1063/VERSION", "go1.26.1\n", 0o644)
			m.file("snap/go/1063/pkg/tool/x", "", 0o644)
			m.link("snap/go/current", "1063")
			m.link("snap/bin/go", "/HOME/snapd/snap")
			m.before("snap/bin")
		},
		word: "go",
		want: Toolchain{
			Path: "/HOME/snap/go/1063/bin/go", Version: "1.26.1",
			Bind: []string{"/HOME/snap/go/1063", "/HOME/snap/go/current"}, PathDirs: []string{"/HOME/snap/go/1063/bin"},
		},
	},
}
