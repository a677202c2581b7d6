package policy

import (
	"slices"
	"strings"
	"testing"
)

// guarded are names that each group is there for, one for each of its globs:
// who takes a glob out, or misspells one, sees which file is protected no more.
// Those of tests are in foundBy.
var guarded = map[string]string{
	"lockfile": `
		go.sum go.work.sum vendor/modules.txt package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yml bun.lockb deno.lock Cargo.lock poetry.lock uv.lock
		pdm.lock pylock.dev.toml Pipfile.lock Gemfile.lock gems.locked composer.lock mix.lock pubspec.lock Package.resolved Podfile.lock packages.lock.json
		gradle.lockfile flake.lock conan.lock buf.lock MODULE.bazel.lock .terraform.lock.hcl verification-metadata.xml conda-lock.yml pixi.lock
		requirements-dev.lock
	`,
	"build": `
		Makefile Makefile.am GNUmakefile rules.mk win.mak configure configure.ac justfile .justfile ci.just Taskfile.yml Rakefile lib/tasks/db.rake
		magefile.go magefiles/x.txt Earthfile Snakefile SConstruct SConscript wscript go.mod go.work .golangci.yml .goreleaser.yml package.json package.json5
		package.yaml pnpm-workspace.yaml lerna.json turbo.jsonc nx.json project.json workspace.json rush.json deno.jsonc jsr.json tsconfig.base.json
		jsconfig.json angular.json biome.jsonc vite.config.x webpackx.config.x webpack.prod.js rollup.config.x rolldown.config.x esbuild.config.x esbuild.mjs
		rspack.config.x rsbuild.config.x tsup.config.x tsdown.config.x metro.config.x craco.config.x next.config.x nuxt.config.x svelte.config.x
		astro.config.x remix.config.x vue.config.x gatsby-node.js ember-cli-build.js postcss.config.x .postcssrc.json tailwind.config.x babel.config.x
		.babelrc.json .swcrc .parcelrc eslint.config.x .eslintrc.json .eslintignore prettier.config.x .prettierrc stylelint.config.x .stylelintrc.json
		commitlint.config.x .commitlintrc.yml .lintstagedrc lint-staged.config.x .releaserc.json release.config.x .release-it.json Gruntfile.js gulpfile.mjs
		Jakefile Jakefile.js .oxlintrc.json dprint.json knip.jsonc knip.ts pyproject.toml setup.py setup.cfg MANIFEST.in requirements-dev.txt requirements.in
		constraints.txt Pipfile sitecustomize.py sitecustomize/x.txt usercustomize.py usercustomize/x.txt __pycache__/x.txt site.pth hatch.toml hatch_build.py
		pixi.toml environment.yml ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .pylintrc pyrightconfig.json tasks.py fabfile.py dodo.py Cargo.toml build.rs
		clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml deny.toml Makefile.toml build.gradle settings.gradle.kts versions.gradle versions.gradle.kts
		gradle.properties gradlew.bat gradle/x.txt app/gradle/wrapper/gradle-wrapper.jar app/gradle/libs.versions.toml buildSrc/x.txt pom.xml mvnw.cmd
		.mvn/x.txt build.sbt project/plugins.sbt project/build.properties build.sc build.mill build.xml ivy.xml project.clj deps.edn bb.edn App.csproj
		App.fsproj App.vbproj App.sln App.slnx Directory.Build.props Directory.Build.targets nuget.config .config/dotnet-tools.json build.cake CMakeLists.txt
		cmake/find.cmake CMakeUserPresets.json meson.build meson_options.txt meson.options build.ninja proguard.pro conanfile.py vcpkg.json BUILD BUILD.bazel
		WORKSPACE WORKSPACE.bazel MODULE.bazel defs.bzl .bazelrc .bazelignore BUCK .buckconfig.local macros.pants pants.toml pants.ci.toml Tiltfile
		skaffold.yml Gemfile gems.rb a.gemspec .rubocop.yml composer.json phpstan.neon.dist psalm.xml.dist mix.exs rebar.config .formatter.exs .credo.exs
		pubspec.yaml build.yaml analysis_options.yaml Package.swift Podfile Cartfile.resolved Debug.xcconfig App.xcodeproj/project.pbxproj build.zig.zon dune
		dune-project a.opam a.cabal cabal.project.local stack.yaml shard.yml a.nimble Project.toml Manifest.toml DESCRIPTION .Rprofile foundry.toml
		hardhat.config.x truffle-config.js buf.yaml buf.gen.yaml buf.work.yaml sqlc.yml gqlgen.yml codegen.yml codegen.ts Dockerfile Dockerfile.dev
		web.Dockerfile Containerfile Containerfile.dev .dockerignore docker-compose.ci.yml compose.yml docker-bake.hcl Vagrantfile Procfile Procfile.dev
		flake.nix default.nix shell.nix devenv.nix
	`,
	"ci": `
		.github/x.txt .gitlab-ci.yml .gitlab/x.txt .circleci/x.txt .ci/x.txt ci/x.txt Jenkinsfile Jenkinsfile.release azure-pipelines.yml
		.azure-pipelines/x.txt .azuredevops/x.txt .travis.yml appveyor.yml .appveyor.yml .drone.yml .woodpecker/build.yml .woodpecker.yml .buildkite/x.txt
		bitbucket-pipelines.yml cloudbuild.yml buildspec.yml .teamcity/x.txt .semaphore/x.txt .cirrus.star .gitea/x.txt .forgejo/x.txt .builds/x.txt
		.build.yml .tekton/x.txt .dagger/x.txt dagger.json .zuul.yaml wercker.yml codemagic.yaml bitrise.yml netlify.toml vercel.json fly.toml render.yaml
		renovate.json5 .renovaterc.json CODEOWNERS sonar-project.properties .trivyignore.yaml .snyk .gitleaks.toml .hadolint.yml
	`,
	"toolchain": `
		.tool-versions mise.local.toml .mise.toml mise/config.toml .mise/x.txt .config/mise/conf.d/a.toml .rtx.toml .asdfrc .nvmrc .node-version
		.python-versions .ruby-version .ruby-gemset .java-version .sdkmanrc .go-version .terraform-version .php-version .swift-version .xcode-version
		.crystal-version rust-toolchain.toml global.json runtime.txt elm-tooling.json .npmrc .yarnrc.yml .yarn/x.txt .pnp.cjs .pnpmfile.cjs bunfig.toml
		.bunfig.toml .cargo/x.txt .bazelversion pip.conf pip.ini uv.toml .pypirc pyvenv.cfg .venv/x.txt venv/x.txt .bundle/x.txt node_modules/x.txt .bin/x.txt
		.env .env.test ci.env .envrc .envrc.x .flaskenv .direnv/x.txt .curlrc .wgetrc .netrc .devbox/x.txt devbox.json flox.toml .flox/x.txt .hermit/x.txt
		hermit.hcl .jvmopts .sbtopts .jvm/x.txt .gdbinit .lldbinit .bashrc .profile .zshenv .terraformrc terragrunt.hcl .terraform/x.txt aqua.yml
	`,
	"agent": `
		.claude/x.txt .claude.json .claudeignore .claude-plugin/x.txt CLAUDE.md CLAUDE.local.md AGENTS.md AGENT.md AGENTS.override.md GEMINI.md QWEN.md
		CODEX.md .mcp.json mcp.json .agents/x.txt .agent/x.txt .codex/x.txt .gemini/x.txt .qwen/x.txt .geminiignore .opencode/x.txt opencode.jsonc
		.cursor/x.txt .cursorrules .cursorignore .windsurf/x.txt .windsurfrules .codeium/x.txt .clinerules-code/a.md .clinerules .cline/x.txt .roo/x.txt
		.roomodes .rooignore .roorules-code .kilocode/x.txt .aider.conf.yml .continue/x.txt .continuerc.json .goose/x.txt .goosehints .amp/x.txt
		.augment/x.txt .junie/x.txt .kiro/x.txt .trae/x.txt .zed/x.txt .zencoder/x.txt .amazonq/x.txt .crush/x.txt crush.json .crush.json .factory/x.txt
		.openhands/x.txt .github/copilot-instructions.md .github/instructions/x.txt .github/agents/x.txt .github/prompts/x.txt .github/chatmodes/x.txt
		SKILL.md AGENT_LINK.md .vscode/x.txt app.code-workspace .idea/x.txt .fleet/x.txt .devcontainer/x.txt .devcontainer.json .gitpod.yml devfile.yaml
		.devfile.yaml .nvim.lua .nvimrc .exrc .vimrc .dir-locals-2.el .sublime-project
	`,
	"git": `
		.gitattributes .gitmodules .gitignore .gitconfig .mailmap .git-blame-ignore-revs .lfsconfig .gitreview .githooks/x.txt .git-hooks/x.txt githooks/x.txt
		.husky/x.txt .huskyrc.json .pre-commit-config.yml .pre-commit-hooks.yml lefthook.yml lefthook.toml lefthook.json .lefthook.yml .lefthook/x.txt
		.overcommit.yml .simple-git-hooks.cjs simple-git-hooks.cjs .jj/x.txt .hg/x.txt
	`,
}

func TestEachNameThatAGroupIsThereForIsProtected(t *testing.T) {
	s := scopeOf(t, "**/*", "*")
	for _, group := range Groups {
		if group.Name == testsGroup || group.Name == "test_config" {
			continue
		}
		names := strings.Fields(guarded[group.Name])
		for _, name := range names {
			ofGroup := slices.ContainsFunc(guardsOf(name), func(g guard) bool { return g.group == group.Name })
			if v := s.Judge(name); v.Allowed || v.Code != CodeProtected || !ofGroup {
				t.Errorf("%s: Judge(%q) = %+v, of the group: %v; want protected by it", group.Name, name, v, ofGroup)
			}
			if group.Judges && !Judging(name) {
				t.Errorf("%s: Judging(%q) is false, so no gate takes it from the base", group.Name, name)
			}
		}
		for _, glob := range group.Globs {
			if !slices.Contains(Protected, glob) {
				t.Errorf("%s: %q is not among Protected", group.Name, glob)
			}
			if !slices.ContainsFunc(names, func(name string) bool { return match(foldName(glob), foldName(name)) }) {
				t.Errorf("%s: %q protects none of the names that are tried: add one to guarded", group.Name, glob)
			}
		}
	}
}

func TestWhatOnlyTellsAnAgentOrGitWhatToDoIsNotTakenFromTheBase(t *testing.T) {
	for _, name := range []string{"AGENTS.md", ".claude/settings.json", ".vscode/tasks.json", ".gitattributes", ".husky/pre-commit"} {
		if Judging(name) {
			t.Errorf("Judging(%q) is true", name)
		}
	}
}

// farReaching are paths that never land without a human, by their class.
var farReaching = map[Code]string{
	ClassDeploy: `
		deploy/x.txt deployment/x.txt deployments/x.txt deploy.sh deploy-prod.sh deploy_prod.py release.sh k8s/x.txt kubernetes/x.txt kube/x.txt helm/x.txt
		charts/x.txt Chart.yaml helmfile.yaml kustomization.yml kustomize/x.txt argocd/x.txt argo/x.txt flux/x.txt fluxcd/x.txt manifests/x.txt
		terraform/x.txt main.tf main.tf.json prod.tfvars main.tofu job.hcl Pulumi.prod.yml pulumi/x.txt cdk.json cdk/x.txt serverless.yml cloudformation/x.txt
		main.bicep ansible/x.txt playbooks/x.txt infra/x.txt infrastructure/x.txt Dockerfile web.Dockerfile Containerfile docker-compose.yml compose.yml
		Procfile app.yaml app.yml fly.prod.toml vercel.json netlify.toml render.yaml railway.json wrangler.toml skaffold.yml Capfile .goreleaser.yml
		.releaserc.json nomad/x.txt web.nomad systemd/x.txt web.service nginx.conf crontab firebase.json
	`,
	ClassMigration: `
		migrations/x.txt migration/x.txt migrate/x.txt alembic/x.txt flyway/x.txt liquibase/x.txt changelog-master.xml db/schema.rb schema.sql structure.sql
		schema.prisma 001-migration-users.sql migrate_users.sql
	`,
	ClassPermissions: `
		iam/x.txt iam.json iam-role.json iam_role.json prod-iam.json prod_iam.json prod-iam-role.json prod_iam_role.json rbac/x.txt web-rbac.yaml
		permissions/x.txt permissions.yml web-rolebinding.yaml web-role-binding.yaml web_role_binding.yaml web-serviceaccount.yaml CODEOWNERS OWNERS
		OWNERS_ALIASES .github/settings.yml sudoers.d authorized_keys firestore.rules storage.rules policy.rego web-bucket-policy.json server.pem
	`,
}

func TestPathsThatReachBeyondTheRepositoryNeedAHuman(t *testing.T) {
	for _, kind := range high {
		names := strings.Fields(farReaching[kind.class])
		for _, name := range names {
			for _, path := range []string{name, "sub/" + name} {
				if got := codes(Classify(onBranch(edit(path))).Never); !slices.Contains(got, string(kind.class)) {
					t.Errorf("%q never lands by %v, want %s", path, got, kind.class)
				}
			}
		}
		for _, glob := range kind.globs {
			if !slices.ContainsFunc(names, func(name string) bool { return match(glob, foldName(name)) }) {
				t.Errorf("%s: %q takes none of the paths that are tried: add one to farReaching", kind.class, glob)
			}
		}
	}
}
