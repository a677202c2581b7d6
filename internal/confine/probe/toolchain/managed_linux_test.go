package toolchain

// python is an installation of Python as far as its layout goes.
func (m *machine) python(prefix string) {
	m.t.Helper()
	m.binary(prefix + "/bin/python3.11")
	m.link(prefix+"/bin/python3", "python3.11")
	m.file(prefix+"/lib/python3.11/os.py", "", 0o644)
}

// node is an installation of Node with its npm.
func (m *machine) node(prefix string) {
	m.t.Helper()
	m.binary(prefix + "/bin/node")
	m.script(prefix+"/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n")
	m.link(prefix+"/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js")
}

// managed are layouts of managers of versions.
var managed = map[string]layout{
	"pyenv chooses by the file of the project": {
		make: func(m *machine) {
			m.versions("pyenv", ".pyenv", ".python-version")
			m.shim("pyenv", ".pyenv", "python3")
			m.python(".pyenv/versions/3.11.7")
			m.file("./.python-version", "3.11.7\n", 0o644)
		},
		word: "python3",
		want: Toolchain{
			Path: "/HOME/.pyenv/versions/3.11.7/bin/python3.11", Shim: "pyenv",
			Bind: []string{"/HOME/.pyenv/versions/3.11.7"}, PathDirs: []string{"/HOME/.pyenv/versions/3.11.7/bin"},
		},
	},
	"an environment of pyenv-virtualenv brings the version that it was made with": {
		make: func(m *machine) {
			m.versions("pyenv", ".pyenv", ".python-version")
			m.shim("pyenv", ".pyenv", "python3")
			m.python(".pyenv/versions/3.11.7")
			m.link(".pyenv/versions/mine", "/HOME/.pyenv/versions/3.11.7/envs/mine")
			m.link(".pyenv/versions/3.11.7/envs/mine/bin/python3", "/HOME/.pyenv/versions/3.11.7/bin/python3")
			m.file(".pyenv/versions/3.11.7/envs/mine/pyvenv.cfg", "home = /HOME/.pyenv/versions/3.11.7/bin\n", 0o644)
			m.env = []string{"PYENV_VERSION=mine"}
		},
		word: "python3",
		want: Toolchain{
			Path: "/HOME/.pyenv/versions/3.11.7/bin/python3.11", Shim: "pyenv",
			Bind:     []string{"/HOME/.pyenv/versions/3.11.7", "/HOME/.pyenv/versions/mine"},
			PathDirs: []string{"/HOME/.pyenv/versions/3.11.7/envs/mine/bin"},
		},
	},
	"a script of rbenv brings its Ruby": {
		make: func(m *machine) {
			m.versions("rbenv", ".rbenv", ".ruby-version")
			m.shim("rbenv", ".rbenv", "bundle")
			m.binary(".rbenv/versions/3.3.0/bin/ruby")
			m.file(".rbenv/versions/3.3.0/lib/ruby/3.3.0/set.rb", "", 0o644)
			m.script(".rbenv/versions/3.3.0/bin/bundle", "#!/HOME/.rbenv/versions/3.3.0/bin/ruby\n")
			m.file(".rbenv/version", "3.3.0", 0o644)
		},
		word: "bundle",
		want: Toolchain{
			Path: "/HOME/.rbenv/versions/3.3.0/bin/bundle", Shim: "rbenv",
			Bind: []string{"/HOME/.rbenv/versions/3.3.0"}, PathDirs: []string{"/HOME/.rbenv/versions/3.3.0/bin"},
		},
	},
	"goenv gives each version its modules": {
		make: func(m *machine) {
			m.versions("goenv", ".goenv", ".go-version")
			m.shim("goenv", ".goenv", "go")
			m.binary(".goenv/versions/1.22.0/bin/go")
			m.file(".goenv/versions/1.22.0/VERSION", "go1.22.0\ntime 2024\n", 0o644)
			m.file(".goenv/versions/1.22.0/src/runtime/runtime.go", "", 0o644)
			m.file("./.go-version", "1.22.0", 0o644)
		},
		word: "go",
		want: Toolchain{
			Path: "/HOME/.goenv/versions/1.22.0/bin/go", Shim: "goenv", Version: "1.22.0", Env: []string{"GOPATH=/HOME/go/1.22.0"},
			Bind: []string{"/HOME/.goenv/versions/1.22.0"}, PathDirs: []string{"/HOME/.goenv/versions/1.22.0/bin"},
		},
	},
	"nvm is the PATH of the shell": {
		make: func(m *machine) {
			m.node(".nvm/versions/node/v20.11.0")
			m.before(".nvm/versions/node/v20.11.0/bin")
		},
		word: "npm",
		want: Toolchain{
			Path: "/HOME/.nvm/versions/node/v20.11.0/lib/node_modules/npm/bin/npm-cli.js",
			Bind: []string{"/HOME/.nvm/versions/node/v20.11.0"}, PathDirs: []string{"/HOME/.nvm/versions/node/v20.11.0/bin"},
		},
	},
	"fnm is a link per shell to an installation": {
		make: func(m *machine) {
			m.node(".local/share/fnm/node-versions/v20.11.0/installation")
			m.link("run/fnm_multishells/77_1", "/HOME/.local/share/fnm/node-versions/v20.11.0/installation")
			m.before("run/fnm_multishells/77_1/bin")
		},
		word: "node",
		want: Toolchain{
			Path:     "/HOME/.local/share/fnm/node-versions/v20.11.0/installation/bin/node",
			Bind:     []string{"/HOME/.local/share/fnm/node-versions/v20.11.0/installation", "/HOME/run/fnm_multishells/77_1"},
			PathDirs: []string{"/HOME/.local/share/fnm/node-versions/v20.11.0/installation/bin"},
		},
	},
	"asdf": {
		make: func(m *machine) {
			m.node(".asdf/installs/nodejs/20.11.0")
			m.script("bin/asdf", `#!/bin/sh
[ "$1" = which ] && grep -q '^nodejs 20.11.0$' .tool-versions && echo "/HOME/.asdf/installs/nodejs/20.11.0/bin/$2"
`)
			m.script(".asdf/shims/node", "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.11.0\nexec asdf exec \"node\" \"$@\"\n")
			m.file("./.tool-versions", "nodejs 20.11.0\n", 0o644)
			m.before(".asdf/shims", "bin")
		},
		word: "node",
		want: Toolchain{
			Path: "/HOME/.asdf/installs/nodejs/20.11.0/bin/node", Shim: "asdf",
			Bind: []string{"/HOME/.asdf/installs/nodejs/20.11.0"}, PathDirs: []string{"/HOME/.asdf/installs/nodejs/20.11.0/bin"},
		},
	},
	"mise names the version by a link": {
		make: func(m *machine) {
			m.node(".local/share/mise/installs/node/20.11.0")
			m.link(".local/share/mise/installs/node/20", "./20.11.0")
			m.script(".local/bin/mise", "#!/bin/sh\n[ \"$1\" = which ] && echo \"/HOME/.local/share/mise/installs/node/20/bin/$2\"\n")
			m.link(".local/share/mise/shims/node", "/HOME/.local/bin/mise")
			m.before(".local/share/mise/shims", ".local/bin")
		},
		word: "node",
		want: Toolchain{
			Path: "/HOME/.local/share/mise/installs/node/20.11.0/bin/node", Shim: "mise",
			Bind:     []string{"/HOME/.local/share/mise/installs/node/20", "/HOME/.local/share/mise/installs/node/20.11.0"},
			PathDirs: []string{"/HOME/.local/share/mise/installs/node/20.11.0/bin"},
		},
	},
	"a package of volta is a script that another shim runs": {
		make: func(m *machine) {
			m.node(".volta/tools/image/node/20.11.0")
			m.script(".volta/tools/image/packages/typescript/lib/node_modules/typescript/bin/tsc", "#!/usr/bin/env node\n")
			m.link(".volta/tools/image/packages/typescript/bin/tsc", "../lib/node_modules/typescript/bin/tsc")
			m.script(".volta/bin/volta", `#!/bin/sh
case "$2" in
node) echo "/HOME/.volta/tools/image/node/20.11.0/bin/node" ;;
*) echo "/HOME/.volta/tools/image/packages/typescript/bin/tsc" ;;
esac
`)
			m.binary(".volta/bin/volta-shim")
			m.link(".volta/bin/node", "/HOME/.volta/bin/volta-shim")
			m.link(".volta/bin/tsc", "/HOME/.volta/bin/volta-shim")
			m.before(".volta/bin")
		},
		word: "tsc",
		want: Toolchain{
			Path: "/HOME/.volta/tools/image/packages/typescript/lib/node_modules/typescript/bin/tsc", Shim: "volta",
			Bind: []string{
				"/HOME/.volta/tools/image/node/20.11.0", "/HOME/.volta/tools/image/packages/typescript/bin/tsc",
				"/HOME/.volta/tools/image/packages/typescript/lib/node_modules",
			},
			PathDirs: []string{"/HOME/.volta/tools/image/packages/typescript/bin", "/HOME/.volta/tools/image/node/20.11.0/bin"},
		},
	},
	"rustup has a toolchain, and cargo its own commands": {
		make: func(m *machine) {
			m.binary(".rustup/toolchains/stable-x86_64/bin/cargo", ".rustup/toolchains/stable-x86_64/bin/rustc", ".cargo/bin/cargo-nextest")
			m.file(".rustup/toolchains/stable-x86_64/lib/rustlib/components", "", 0o644)
			m.script(".cargo/bin/rustup", "#!/bin/sh\n[ \"$1\" = which ] && echo \"/HOME/.rustup/toolchains/stable-x86_64/bin/$2\"\n")
			for _, word := range []string{"cargo", "rustc", "cargo-clippy"} {
				m.link(".cargo/bin/"+word, "rustup")
			}
			m.file(".cargo/credentials.toml", "[registry]\ntoken = \"x\"\n", 0o600)
			m.before(".cargo/bin")
		},
		word: "cargo",
		want: Toolchain{
			Path: "/HOME/.rustup/toolchains/stable-x86_64/bin/cargo", Shim: "rustup", Env: []string{"RUSTUP_TOOLCHAIN=stable-x86_64"},
			Bind:     []string{"/HOME/.cargo/bin/cargo-nextest", "/HOME/.rustup/toolchains/stable-x86_64"},
			PathDirs: []string{"/HOME/.rustup/toolchains/stable-x86_64/bin", "/HOME/.cargo/bin"},
		},
	},
	"sdkman's current is a link, and Maven needs a Java": {
		make: func(m *machine) {
			m.binary(".sdkman/candidates/java/21.0.2-tem/bin/java")
			m.file(".sdkman/candidates/java/21.0.2-tem/lib/modules", "", 0o644)
			m.link(".sdkman/candidates/java/current", "21.0.2-tem")
			m.script(".sdkman/candidates/maven/3.9.6/bin/mvn", "#!/bin/sh\n")
			m.file(".sdkman/candidates/maven/3.9.6/boot/plexus-classworlds-2.7.0.jar", "", 0o644)
			m.link(".sdkman/candidates/maven/current", "/HOME/.sdkman/candidates/maven/3.9.6")
			m.before(".sdkman/candidates/java/current/bin", ".sdkman/candidates/maven/current/bin")
			m.env = []string{"JAVA_HOME=/HOME/.sdkman/candidates/java/current"}
		},
		word: "mvn",
		want: Toolchain{
			Path: "/HOME/.sdkman/candidates/maven/3.9.6/bin/mvn", Env: []string{"JAVA_HOME=/HOME/.sdkman/candidates/java/current"},
			Bind: []string{
				"/HOME/.sdkman/candidates/java/21.0.2-tem", "/HOME/.sdkman/candidates/java/current",
				"/HOME/.sdkman/candidates/maven/3.9.6", "/HOME/.sdkman/candidates/maven/current",
			},
			PathDirs: []string{"/HOME/.sdkman/candidates/maven/3.9.6/bin", "/HOME/.sdkman/candidates/java/21.0.2-tem/bin"},
		},
	},
	"jenv names a version by a link": {
		make: func(m *machine) {
			m.versions("jenv", ".jenv", ".java-version")
			m.shim("jenv", ".jenv", "java")
			m.binary("jdks/jdk-21/bin/java")
			m.file("jdks/jdk-21/lib/modules", "", 0o644)
			m.link(".jenv/versions/21", "/HOME/jdks/jdk-21")
			m.file("./.java-version", "21", 0o644)
		},
		word: "java",
		want: Toolchain{
			Path: "/HOME/jdks/jdk-21/bin/java", Shim: "jenv", Env: []string{"JAVA_HOME=/HOME/jdks/jdk-21"},
			Bind: []string{"/HOME/.jenv/versions/21", "/HOME/jdks/jdk-21"}, PathDirs: []string{"/HOME/jdks/jdk-21/bin"},
		},
	},
	"uv brings the Python that it would choose": {
		make: func(m *machine) {
			m.python(".local/share/uv/python/cpython-3.11.7-linux-x86_64-gnu")
			m.link(".local/share/uv/python/cpython-3.11-linux-x86_64-gnu", "cpython-3.11.7-linux-x86_64-gnu")
			m.script(".local/bin/uv", "#!/bin/dash\n[ \"$*\" = 'python find --system' ] && echo /HOME/.local/share/uv/python/cpython-3.11-linux-x86_64-gnu/bin/python3.11\n[ \"$1\" = --version ] && echo uv 0.9.1 || exit 0\n")
			m.before(".local/bin")
		},
		word: "uv",
		want: Toolchain{
			Path: "/HOME/.local/bin/uv", Version: "0.9.1",
			Bind: []string{
				"/HOME/.local/bin/uv", "/HOME/.local/share/uv/python/cpython-3.11-linux-x86_64-gnu",
				"/HOME/.local/share/uv/python/cpython-3.11.7-linux-x86_64-gnu",
			},
			PathDirs: []string{"/HOME/.local/bin", "/HOME/.local/share/uv/python/cpython-3.11.7-linux-x86_64-gnu/bin"},
		},
	},
}
