package policy

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// Group is a set of protected globs with one reason. Globs are compared with
// folded names, so that no letter case and no compatibility form gets around
// one.
type Group struct {
	Name   string
	Judges bool // a gate takes what these match from the base
	Globs  []string
}

// Groups are the built-in protected globs by reason: what judges the agent's
// work, what runs before anything is judged, and what tells an agent or git
// what to do. Callers must not change it.
//
// Names of tests and of what configures them are the frameworks' own. Folders of
// tests count wherever they are, but spec only at the top: below, it is an
// everyday name for a package.
var Groups = []Group{
	{testsGroup, true, defaultsOf(func(f framework) []string { return f.tests })},
	{"test_config", true, defaultsOf(func(f framework) []string { return f.configs })},
	{"lockfile", true, []string{
		"**/go.sum", "**/go.work.sum", "vendor/modules.txt", "**/package-lock.json", "**/npm-shrinkwrap.json", "**/yarn.lock", "**/pnpm-lock.y*ml", "**/bun.lock*",
		"**/deno.lock", "**/Cargo.lock", "**/poetry.lock", "**/uv.lock", "**/pdm.lock", "**/pylock*.toml", "**/Pipfile.lock", "**/Gemfile.lock", "**/gems.locked",
		"**/composer.lock", "**/mix.lock", "**/pubspec.lock", "**/Package.resolved", "**/Podfile.lock", "**/packages.lock.json", "**/gradle.lockfile",
		"**/flake.lock", "**/conan.lock", "**/buf.lock", "**/MODULE.bazel.lock", "**/.terraform.lock.hcl", "**/verification-metadata.xml", "**/conda-lock.yml",
		"**/pixi.lock", "**/requirements*.lock",
	}},
	{"build", true, []string{
		"**/Makefile", "**/Makefile.*", "**/GNUmakefile", "**/*.mk", "**/*.mak", "**/configure", "**/configure.ac", "**/justfile", "**/.justfile", "**/*.just", "**/Taskfile*.y*ml",
		"**/Rakefile", "**/*.rake", "**/magefile.go", "magefiles/**", "**/Earthfile", "**/Snakefile", "**/SConstruct", "**/SConscript", "**/wscript",
		"**/go.mod", "**/go.work", "**/.golangci.*", "**/.goreleaser.y*ml",
		"**/package.json", "**/package.json5", "**/package.yaml", "**/pnpm-workspace.yaml", "**/lerna.json", "**/turbo.json*", "**/nx.json", "**/project.json",
		"**/workspace.json", "**/rush.json", "**/deno.json*", "**/jsr.json", "**/tsconfig*.json", "**/jsconfig*.json", "**/angular.json", "**/biome.json*",
		"**/vite.config.*", "**/webpack*.config.*", "**/webpack.*.js", "**/rollup.config.*", "**/rolldown.config.*", "**/esbuild.config.*", "**/esbuild.*js",
		"**/rspack.config.*", "**/rsbuild.config.*", "**/tsup.config.*", "**/tsdown.config.*", "**/metro.config.*", "**/craco.config.*", "**/next.config.*",
		"**/nuxt.config.*", "**/svelte.config.*", "**/astro.config.*", "**/remix.config.*", "**/vue.config.*", "**/gatsby-*.[cmjt]*", "**/ember-cli-build.js",
		"**/postcss.config.*", "**/.postcssrc*", "**/tailwind.config.*", "**/babel.config.*", "**/.babelrc*", "**/.swcrc", "**/.parcelrc", "**/eslint.config.*",
		"**/.eslintrc*", "**/.eslintignore", "**/prettier.config.*", "**/.prettierrc*", "**/stylelint.config.*", "**/.stylelintrc*", "**/commitlint.config.*",
		"**/.commitlintrc*", "**/.lintstagedrc*", "**/lint-staged.config.*", "**/.releaserc*", "**/release.config.*", "**/.release-it.*", "**/Gruntfile.*",
		"**/gulpfile.*", "**/Jakefile", "**/Jakefile.*", "**/.oxlintrc.json", "**/dprint.json", "**/knip.json*", "**/knip.ts",
		"**/pyproject.toml", "**/setup.py", "**/setup.cfg", "**/MANIFEST.in", "**/requirements*.txt", "**/requirements*.in", "**/constraints*.txt", "**/Pipfile",
		"**/sitecustomize.*", "**/sitecustomize/**", "**/usercustomize.*", "**/usercustomize/**", "**/__pycache__/**", "**/*.pth", "**/hatch.toml", "**/hatch_build.py", "**/pixi.toml", "**/environment.y*ml", "**/ruff.toml",
		"**/.ruff.toml", "**/mypy.ini", "**/.mypy.ini", "**/.flake8", "**/.pylintrc", "**/pyrightconfig.json", "**/tasks.py", "**/fabfile.py", "**/dodo.py",
		"**/Cargo.toml", "**/build.rs", "**/clippy.toml", "**/.clippy.toml", "**/rustfmt.toml", "**/.rustfmt.toml", "**/deny.toml", "**/Makefile.toml",
		"**/build.gradle*", "**/settings.gradle*", "**/*.gradle", "**/*.gradle.kts", "**/gradle.properties", "**/gradlew*", "gradle/**", "**/gradle/wrapper/**", "**/gradle/*.toml", "**/buildSrc/**",
		"**/pom.xml", "**/mvnw*", "**/.mvn/**", "**/build.sbt", "**/project/*.sbt", "**/project/build.properties", "**/build.sc", "**/build.mill", "**/build.xml",
		"**/ivy.xml", "**/project.clj", "**/deps.edn", "**/bb.edn", "**/*.csproj", "**/*.fsproj", "**/*.vbproj", "**/*.sln", "**/*.slnx", "**/*.props",
		"**/*.targets", "**/nuget.config", "**/.config/dotnet-tools.json", "**/build.cake",
		"**/CMakeLists.txt", "**/*.cmake", "**/CMake*Presets.json", "**/meson.build", "**/meson_options.txt", "**/meson.options", "**/*.ninja", "**/*.pro",
		"**/conanfile.*", "**/vcpkg.json", "**/BUILD", "**/BUILD.bazel", "**/WORKSPACE", "**/WORKSPACE.bazel", "**/MODULE.bazel", "**/*.bzl", "**/.bazelrc",
		"**/.bazelignore", "**/BUCK", "**/.buckconfig*", "**/*.pants", "**/pants.toml", "**/pants*.toml", "**/Tiltfile", "**/skaffold.y*ml",
		"**/Gemfile", "**/gems.rb", "**/*.gemspec", "**/.rubocop*", "**/composer.json", "**/phpstan*.neon*", "**/psalm.xml*", "**/mix.exs", "**/rebar.config",
		"**/.formatter.exs", "**/.credo.exs", "**/pubspec.yaml", "**/build.yaml", "**/analysis_options.yaml", "**/Package.swift", "**/Podfile", "**/Cartfile*",
		"**/*.xcconfig", "**/*.pbxproj", "**/build.zig*", "**/dune", "**/dune-project", "**/*.opam", "**/*.cabal", "**/cabal.project*", "**/stack.yaml",
		"**/shard.yml", "**/*.nimble", "**/Project.toml", "**/Manifest.toml", "**/DESCRIPTION", "**/.Rprofile", "**/foundry.toml",
		"**/hardhat.config.*", "**/truffle-config.js", "**/buf.yaml", "**/buf.gen*.yaml", "**/buf.work.yaml", "**/sqlc.y*ml", "**/gqlgen.y*ml", "**/codegen.y*ml", "**/codegen.ts",
		"**/Dockerfile", "**/Dockerfile.*", "**/*.Dockerfile", "**/Containerfile", "**/Containerfile.*", "**/.dockerignore", "**/docker-compose*.y*ml", "**/compose*.y*ml", "**/docker-bake.*",
		"**/Vagrantfile", "**/Procfile", "**/Procfile.*", "**/flake.nix", "**/default.nix", "**/shell.nix", "**/devenv.nix",
	}},
	{"ci", true, []string{
		"**/.github/**", "**/.gitlab-ci*", "**/.gitlab/**", "**/.circleci/**", "**/.ci/**", "ci/**", "**/Jenkinsfile", "**/Jenkinsfile.*", "**/azure-pipelines*", "**/.azure-pipelines/**",
		"**/.azuredevops/**", "**/.travis.y*ml", "**/appveyor.y*ml", "**/.appveyor.y*ml", "**/.drone.*", "**/.woodpecker*/**", "**/.woodpecker.y*ml",
		"**/.buildkite/**", "**/bitbucket-pipelines.y*ml", "**/cloudbuild*.y*ml", "**/buildspec*.y*ml", "**/.teamcity/**", "**/.semaphore/**", "**/.cirrus.*",
		"**/.gitea/**", "**/.forgejo/**", "**/.builds/**", "**/.build.yml", "**/.tekton/**", "**/.dagger/**", "**/dagger.json", "**/.zuul.*", "**/wercker.yml",
		"**/codemagic.yaml", "**/bitrise.yml", "**/netlify.toml", "**/vercel.json", "**/fly.toml", "**/render.yaml", "**/renovate.json*", "**/.renovaterc*",
		"**/CODEOWNERS", "**/sonar-project.properties", "**/.trivyignore*", "**/.snyk", "**/.gitleaks*", "**/.hadolint.y*ml",
	}},
	{"toolchain", true, []string{
		"**/.tool-versions", "**/mise*.toml", "**/.mise*.toml", "**/mise/config*.toml", "**/.mise/**", "**/.config/mise*/**", "**/.rtx.toml", "**/.asdfrc", "**/.nvmrc",
		"**/.node-version", "**/.python-version*", "**/.ruby-version", "**/.ruby-gemset", "**/.java-version", "**/.sdkmanrc", "**/.go-version", "**/.terraform-version",
		"**/.php-version", "**/.swift-version", "**/.xcode-version", "**/.crystal-version", "**/rust-toolchain*", "global.json", "**/runtime.txt", "**/elm-tooling.json",
		"**/.npmrc", "**/.yarnrc*", "**/.yarn/**", "**/.pnp.*", "**/.pnpmfile.*js", "**/bunfig.toml", "**/.bunfig.toml", "**/.cargo/**", "**/.bazelversion",
		"**/pip.conf", "**/pip.ini", "**/uv.toml", "**/.pypirc", "**/pyvenv.cfg", "**/.venv/**", "**/venv/**", "**/.bundle/**", "**/node_modules/**", "**/.bin/**",
		"**/.env", "**/.env.*", "**/*.env", "**/.envrc", "**/.envrc.*", "**/.flaskenv", "**/.direnv/**", "**/.curlrc", "**/.wgetrc", "**/.netrc", "**/.devbox/**",
		"**/devbox.json", "**/flox.toml", "**/.flox/**", "**/.hermit/**", "**/hermit.hcl", "**/.jvmopts", "**/.sbtopts", "**/.jvm/**", "**/.gdbinit", "**/.lldbinit",
		"**/.bashrc", "**/.profile", "**/.zshenv", "**/.terraformrc", "**/terragrunt.hcl", "**/.terraform/**", "**/aqua.y*ml",
	}},
	{"agent", false, []string{
		"**/.claude/**", "**/.claude.json", "**/.claudeignore", "**/.claude-plugin/**", "**/CLAUDE.md", "**/CLAUDE.local.md", "**/AGENTS.md", "**/AGENT.md",
		"**/AGENTS.override.md", "**/GEMINI.md", "**/QWEN.md", "**/CODEX.md", "**/.mcp.json", "**/mcp.json", "**/.agents/**", "**/.agent/**", "**/.codex/**",
		"**/.gemini/**", "**/.qwen/**", "**/.geminiignore", "**/.opencode/**", "**/opencode.json*", "**/.cursor/**", "**/.cursorrules", "**/.cursorignore",
		"**/.windsurf/**", "**/.windsurfrules", "**/.codeium/**", "**/.clinerules*/**", "**/.clinerules", "**/.cline/**", "**/.roo/**", "**/.roomodes", "**/.rooignore",
		"**/.roorules*", "**/.kilocode/**", "**/.aider*", "**/.continue/**", "**/.continuerc.json", "**/.goose/**", "**/.goosehints", "**/.amp/**", "**/.augment/**",
		"**/.junie/**", "**/.kiro/**", "**/.trae/**", "**/.zed/**", "**/.zencoder/**", "**/.amazonq/**", "**/.crush/**", "**/crush.json", "**/.crush.json",
		"**/.factory/**", "**/.openhands/**", "**/.github/copilot-*", "**/.github/instructions/**", "**/.github/agents/**", "**/.github/prompts/**",
		"**/.github/chatmodes/**", "**/SKILL.md", "AGENT_LINK.md",
		"**/.vscode/**", "**/*.code-workspace", "**/.idea/**", "**/.fleet/**", "**/.devcontainer/**", "**/.devcontainer.json", "**/.gitpod*", "**/devfile.yaml",
		"**/.devfile.yaml", "**/.nvim.lua", "**/.nvimrc", "**/.exrc", "**/.vimrc", "**/.dir-locals*.el", "**/.sublime-project",
	}},
	{"git", false, []string{
		"**/.gitattributes", "**/.gitmodules", "**/.gitignore", "**/.gitconfig", "**/.mailmap", "**/.git-blame-ignore-revs", "**/.lfsconfig", "**/.gitreview",
		"**/.githooks/**", "**/.git-hooks/**", "**/githooks/**", "**/.husky/**", "**/.huskyrc*", "**/.pre-commit-config.y*ml", "**/.pre-commit-hooks.y*ml",
		"**/lefthook*.y*ml", "**/lefthook*.toml", "**/lefthook*.json", "**/.lefthook*", "**/.lefthook/**", "**/.overcommit.yml", "**/.simple-git-hooks.*", "**/simple-git-hooks.[cj]*", "**/.jj/**", "**/.hg/**",
	}},
}

// Protected are the globs of all Groups.
var Protected = func() []string {
	var all []string
	for _, g := range Groups {
		all = append(all, g.Globs...)
	}
	return all
}()

// never are globs that no scope entry can open: the definitions themselves and
// git directories.
var never = []string{".loops/**", "**/.git/**"}

// testsGroup is the name of the group of tests.
const testsGroup = "tests"

// ownGroup is the name of the group of the definition's own protect globs.
const ownGroup = "protect"

// loose are globs for variants of a file, as Dockerfile.dev, that would also
// take the source code that deals with such files.
var loose = []string{"**/makefile.*", "**/dockerfile.*", "**/containerfile.*", "**/procfile.*", "**/jenkinsfile.*"}

var sourceCode = []string{".c", ".cc", ".cpp", ".cs", ".ex", ".go", ".h", ".java", ".js", ".kt", ".md", ".php", ".py", ".rb", ".rs", ".scala", ".swift", ".ts"}

// guard is one protected glob.
type guard struct {
	group string
	glob  string // as it was written
	fold  string

	head, tail string // of the last part, before and after its wildcards
	must       string // letters without which nothing matches
}

// guards finds the guards of a folded name without trying them all: most of
// them are a file's or a folder's plain name.
type guards struct {
	files   map[string]guard // by the last part
	folders map[string]guard // by any part
	bases   []guard          // with wildcards in the last part
	globs   []guard          // everything else
}

var builtin = sync.OnceValue(func() guards {
	all := guards{files: map[string]guard{}, folders: map[string]guard{}}
	for _, group := range Groups {
		for _, glob := range group.Globs {
			all.add(guard{group: group.Name, glob: glob, fold: foldName(glob)})
		}
	}
	return all
})

func (g *guards) add(one guard) {
	rest, anywhere := strings.CutPrefix(one.fold, "**/")
	folder, below := strings.CutSuffix(rest, "/**")
	switch {
	case anywhere && !strings.ContainsAny(rest, `/*?[\`):
		g.files[rest] = one
	case anywhere && below && !strings.ContainsAny(folder, `/*?[\`):
		g.folders[folder] = one
	case anywhere && !strings.ContainsAny(rest, `/?[\`):
		one.head, one.tail = rest[:strings.Index(rest, "*")], rest[strings.LastIndex(rest, "*")+1:]
		g.bases = append(g.bases, one)
	default:
		for run := range strings.FieldsFuncSeq(one.fold, func(c rune) bool { return strings.ContainsRune(`*?[]/\`, c) }) {
			if len(run) > len(one.must) && !strings.ContainsAny(one.fold, `[\`) {
				one.must = run
			}
		}
		g.globs = append(g.globs, one)
	}
}

// of returns the guards of a folded name.
func (g *guards) of(folded string) []guard {
	var found []guard
	part := ""
	for part = range strings.SplitSeq(folded, "/") {
		if one, ok := g.folders[part]; ok {
			found = append(found, one)
		}
	}
	if one, ok := g.files[part]; ok {
		found = append(found, one)
	}
	for _, one := range g.bases {
		if strings.HasPrefix(part, one.head) && strings.HasSuffix(part, one.tail) && one.matches(folded, part) {
			found = append(found, one)
		}
	}
	for _, one := range g.globs {
		if strings.Contains(folded, one.must) && one.matches(folded, part) {
			found = append(found, one)
		}
	}
	return found
}

// matches compares a folded name, whose last part is part.
func (g guard) matches(folded, part string) bool {
	if slices.Contains(loose, g.fold) && slices.Contains(sourceCode, path.Ext(part)) || slices.Contains(prosy, g.fold) && slices.Contains(prose, path.Ext(part)) ||
		slices.Contains(notTests[g.fold], path.Ext(part)) {
		return false
	}
	return match(g.fold, folded)
}

// guardsOf returns the built-in guards of a name, in all its spellings.
func guardsOf(name string) []guard {
	all := builtin()
	var found []guard
	for _, spelling := range spellings(name) {
		found = append(found, all.of(spelling)...)
	}
	return slices.DeleteFunc(found, func(g guard) bool { return caseMatters(g.group, g.glob) && !sameCase(g.glob, name) })
}

// Judging reports whether a path is one that judges, or decides with what is
// judged: tests and their configuration, lockfiles, build, CI and toolchain
// files, in any spelling. A gate takes these from the base.
func Judging(name string) bool {
	for _, g := range guardsOf(name) {
		for _, group := range Groups {
			if group.Judges && group.Name == g.group {
				return true
			}
		}
	}
	return false
}
