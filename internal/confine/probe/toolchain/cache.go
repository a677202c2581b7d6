package toolchain

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Cache is a directory of downloaded or compiled things that may be shown to a
// confined program. No credential is known to lie in it.
type Cache struct {
	Kind      string // go-build go-mod npm pip uv poetry cargo-registry cargo-git yarn pnpm maven gradle bundler composer nuget deno bun hex
	Path      string // absolute, there or not
	Env       string // the variable that moves it; or empty: none does
	Value     string // what that variable is when the cache lies at Path
	Downloads bool   // only a set-up command adds to it
}

// Caches lists the caches of the tools that are among programs or that the stacks of
// a repository use, at their places in the environment env. It starts nothing. It
// leaves out a cache in a place that would show a home or credentials.
func Caches(env, programs []string, stacks []probe.Stack) []Cache {
	names := slices.Clone(programs)
	for _, stack := range stacks {
		names = append(names, stack.Name)
	}
	used := map[string]bool{}
	for _, name := range names {
		if tool, ok := cachesOf[path.Base(filepath.ToSlash(name))]; ok {
			used[tool] = true
		}
	}
	homes := area{homes: bothNames(proc.LookupVariable(env, "HOME"))}
	var all []Cache
	for _, tool := range slices.Sorted(maps.Keys(used)) {
		for _, c := range cachePlaces[tool](env) {
			reveals := slices.ContainsFunc(bothNames(c.Path), func(name string) bool {
				return homes.tooWide(name) || isSecret(name) || holdsSecret(name)
			})
			if filepath.IsAbs(c.Path) && !reveals {
				all = append(all, c)
			}
		}
	}
	return all
}

// cachesOf says whose caches a program, or a stack of package probe, uses.
var cachesOf = map[string]string{
	"go": "go", "gofmt": "go", "golangci-lint": "go", "gopls": "go", "gotestsum": "go", "staticcheck": "go",
	"npm": "npm", "npx": "npm", "node": "npm", "yarn": "yarn", "yarnpkg": "yarn", "pnpm": "pnpm", "pnpx": "pnpm",
	"bun": "bun", "bunx": "bun", "deno": "deno",
	"python": "pip", "python3": "pip", "pip": "pip", "pip3": "pip", "pipenv": "pip", "pdm": "pip", "tox": "pip", "nox": "pip",
	"uv": "uv", "uvx": "uv", "python-uv": "uv", "poetry": "poetry",
	"cargo": "cargo", "rustc": "cargo", "mvn": "maven", "mvnw": "maven", "maven": "maven", "gradle": "gradle", "gradlew": "gradle",
	"bundle": "bundler", "bundler": "bundler", "gem": "bundler", "rake": "bundler", "composer": "composer", "dotnet": "nuget",
	"mix": "hex",
}

// cachePlaces says where each tool keeps its caches.
var cachePlaces = map[string]func(env []string) []Cache{
	"go": goCaches, "npm": npmCaches, "yarn": yarnCaches, "pnpm": pnpmCaches, "maven": mavenCaches, "composer": composerCaches,
	"cargo": func(env []string) []Cache {
		registry := cachesBelow(env, "cargo-registry", "CARGO_HOME", belowHome(env, ".cargo"), "registry")
		return append(registry, cachesBelow(env, "cargo-git", "CARGO_HOME", belowHome(env, ".cargo"), "git")...)
	},
	"gradle": func(env []string) []Cache {
		return cachesBelow(env, "gradle", "GRADLE_USER_HOME", belowHome(env, ".gradle"), "caches", "wrapper/dists")
	},
	"poetry": func(env []string) []Cache {
		return cachesBelow(env, "poetry", "POETRY_CACHE_DIR", joinBelow(cacheHome(env), "pypoetry"), "cache", "artifacts")
	},
	"deno": func(env []string) []Cache {
		return cachesBelow(env, "deno", "DENO_DIR", joinBelow(cacheHome(env), "deno"), "deps", "npm", "remote", "gen")
	},
	"pip": func(env []string) []Cache {
		return cachesBelow(env, "pip", "PIP_CACHE_DIR", joinBelow(cacheHome(env), "pip"), ".")
	},
	"uv": func(env []string) []Cache {
		return cachesBelow(env, "uv", "UV_CACHE_DIR", joinBelow(plainCacheHome(env), "uv"), ".")
	},
	"bundler": func(env []string) []Cache {
		return cachesBelow(env, "bundler", "BUNDLE_USER_CACHE", belowHome(env, ".bundle/cache"), ".")
	},
	"nuget": func(env []string) []Cache {
		return cachesBelow(env, "nuget", "NUGET_PACKAGES", belowHome(env, ".nuget/packages"), ".")
	},
	"bun": func(env []string) []Cache {
		return cachesBelow(env, "bun", "BUN_INSTALL_CACHE_DIR", belowHome(env, ".bun/install/cache"), ".")
	},
	"hex": func(env []string) []Cache {
		return cachesBelow(env, "hex", "HEX_HOME", belowHome(env, ".hex"), "packages")
	},
}

// cachesBelow lists the parts of a directory that hold only packages. The variable name
// moves the directory.
func cachesBelow(env []string, kind, name, usual string, parts ...string) []Cache {
	dir := usual
	if value := proc.LookupVariable(env, name); filepath.IsAbs(value) {
		dir = filepath.Clean(value)
	}
	if dir == "" {
		return nil
	}
	var all []Cache
	for _, part := range parts {
		all = append(all, Cache{Kind: kind, Path: filepath.Join(dir, filepath.FromSlash(part)), Env: name, Value: dir, Downloads: true})
	}
	return all
}

func belowHome(env []string, path string) string {
	return joinBelow(proc.LookupVariable(env, "HOME"), path)
}

func goCaches(env []string) []Cache {
	build := goSetting(env, "GOCACHE")
	if !filepath.IsAbs(build) {
		build = joinBelow(cacheHome(env), "go-build")
	}
	modules := goModCache(env)
	return []Cache{
		{Kind: "go-build", Path: build, Env: "GOCACHE", Value: build},
		{Kind: "go-mod", Path: modules, Env: "GOMODCACHE", Value: modules, Downloads: true},
	}
}

func npmCaches(env []string) []Cache {
	usual := npmSetting(env, "cache", belowHome(env, ".npm"))
	if upper := proc.LookupVariable(env, "NPM_CONFIG_CACHE"); filepath.IsAbs(upper) {
		usual = upper
	}
	return cachesBelow(env, "npm", "npm_config_cache", usual, "_cacache")
}

// npmSetting returns one setting of the user's .npmrc. It reads no other line: some
// hold tokens.
func npmSetting(env []string, name, usual string) string {
	text, err := boundedFile(belowHome(env, ".npmrc"))
	if err != nil {
		return usual
	}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, "=")
		if value = strings.TrimSpace(value); ok && strings.TrimSpace(key) == name && filepath.IsAbs(value) {
			return value
		}
	}
	return usual
}

func yarnCaches(env []string) []Cache {
	classic := cachesBelow(env, "yarn", "YARN_CACHE_FOLDER", joinBelow(cacheHome(env), "yarn"), ".")
	return append(classic, cachesBelow(env, "yarn", "YARN_GLOBAL_FOLDER", belowHome(env, ".yarn/berry"), "cache")...)
}

func pnpmCaches(env []string) []Cache {
	store := joinBelow(dataHome(env), "pnpm/store")
	if dir := proc.LookupVariable(env, "PNPM_HOME"); filepath.IsAbs(dir) {
		store = filepath.Join(dir, "store")
	}
	return cachesBelow(env, "pnpm", "npm_config_store_dir", npmSetting(env, "store-dir", store), ".")
}

var localRepository = lazyregexp.New(`<localRepository>\s*([^<$]+?)\s*</localRepository>`)

// mavenCaches lists the packages, and the copies of Maven that its wrapper fetched.
// From the settings, which may hold passwords, it takes only the place of the
// packages.
func mavenCaches(env []string) []Cache {
	packages := belowHome(env, ".m2/repository")
	if text, err := boundedFile(belowHome(env, ".m2/settings.xml")); err == nil {
		if m := localRepository.FindSubmatch(text); m != nil && filepath.IsAbs(string(m[1])) {
			packages = filepath.Clean(string(m[1]))
		}
	}
	return append([]Cache{{Kind: "maven", Path: packages, Downloads: true}},
		cachesBelow(env, "maven", "MAVEN_USER_HOME", belowHome(env, ".m2"), "wrapper/dists")...)
}

// composerCaches uses the older one of Composer's two homes if it exists.
func composerCaches(env []string) []Cache {
	usual := joinBelow(plainCacheHome(env), "composer")
	if old := belowHome(env, ".composer"); old != "" && isDir(old) {
		usual = filepath.Join(old, "cache")
	}
	if home := proc.LookupVariable(env, "COMPOSER_HOME"); filepath.IsAbs(home) {
		usual = filepath.Join(home, "cache")
	}
	return cachesBelow(env, "composer", "COMPOSER_CACHE_DIR", usual, "files", "repo", "vcs")
}
