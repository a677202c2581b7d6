package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/dirglob"
)

// installation is the directory into which a program was installed. If rest is empty,
// the program is a single file.
type installation struct {
	root string
	subs []string // the parts that are shown; if empty, all of it
	rest string   // the path of the file after the root, with the slash
}

// environmentOf returns the Python environment that has name in its bin directory,
// or an empty string. It does not follow links: Python goes by the name, too.
func environmentOf(name string) string {
	root := filepath.Dir(filepath.Dir(name))
	if info, err := os.Stat(filepath.Join(root, "pyvenv.cfg")); err == nil && info.Mode().IsRegular() {
		return root
	}
	return ""
}

// rootOf returns the directory above that of a program.
func rootOf(real string) string { return filepath.Dir(filepath.Dir(real)) }

// landmarks are globs of files that only the top of an installation has.
var landmarks = []string{
	"lib/python[23].*/os.py", "conda-meta", "pyvenv.cfg", // Python
	"src/runtime/runtime.go", "pkg/tool", // Go
	"include/node/node.h", "lib/node_modules/npm", // Node
	"lib/rustlib", "lib/ruby/[0-9]*", "lib/modules", "lib/rt.jar", "jre/lib/rt.jar", // Rust, Ruby, Java
	"boot/plexus-classworlds*.jar", "lib/gradle-launcher-*.jar", "lib/ant-launcher.jar", "lib/kotlin-compiler.jar", "lib/scala-library*.jar",
	"lib/php", "lib/erlang", "lib/elixir", "lib/perl5/[0-9]*", "lib/swift", "lib/clang",
}

// isToolchain reports whether a directory is the top of a complete installation.
func isToolchain(root string) bool {
	return slices.ContainsFunc(landmarks, func(pattern string) bool {
		return len(dirglob.Find(root, pattern)) > 0
	})
}

// Parts of an installation without a landmark, of one in a directory with others, of
// the .NET directory, which also has private keys, and of Homebrew.
var (
	usualParts = []string{"bin", "sbin", "lib", "lib64", "libexec", "share", "include", "jre", "conf"}
	amongParts = []string{"lib", "lib64", "libexec"}
	dotnetPart = []string{"dotnet", "host", "shared", "sdk", "packs", "templates", "sdk-manifests", "library-packs"}
	brewParts  = []string{"bin", "sbin", "Cellar", "opt", "lib", "libexec", "include", "share", "etc/ca-certificates", "etc/openssl@3"}
)

// secrets are the names of credentials and of directories with credentials.
var secrets = []string{
	".ssh", ".gnupg", ".aws", ".docker", ".kube", ".azure", ".npmrc", ".yarnrc.yml", ".netrc", ".pypirc", ".condarc", ".env",
	".git-credentials", "credentials", "credentials.toml", "credentials.json", "auth.json", "auth.toml", ".pgpass", ".vault-token",
}

// isSecret reports whether a path is a credential or in a directory of credentials.
func isSecret(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool {
		return slices.Contains(secrets, part)
	})
}

func holdsSecret(dir string) bool {
	return slices.ContainsFunc(secrets, func(name string) bool { return isThere(filepath.Join(dir, name)) })
}

// installationOf finds the installation of a file.
func (r *resolver) installationOf(real string) installation {
	if r.area.isVisible(real) {
		return installation{}
	}
	if root, subs := storeOf(real); root != "" {
		return installation{root: root, subs: existingParts(root, subs), rest: strings.TrimPrefix(real, root)}
	}
	root := rootOf(real)
	parts := usualParts
	switch {
	case filepath.Base(real) == "dotnet" && isDir(filepath.Join(filepath.Dir(real), "shared")):
		root, parts = filepath.Dir(real), dotnetPart
	case r.area.tooWide(root):
		return installation{}
	case r.area.isPersonal(root) && environmentOf(real) == "":
		if parts = amongParts; !isToolchain(root) {
			return installation{}
		}
	case isToolchain(root) && !holdsSecret(root):
		parts = nil
	case !isToolchain(root) && !isProgramDir(real):
		return installation{}
	}
	subs := existingParts(root, parts)
	if parts != nil && subs == nil {
		return installation{}
	}
	return installation{root: root, subs: subs, rest: strings.TrimPrefix(real, root)}
}

// storeOf returns the directory that holds many installations which refer to each
// other, and the parts of it that they use. It is empty if the file is in none.
func storeOf(real string) (root string, subs []string) {
	slashed := filepath.ToSlash(real)
	switch i := strings.Index(slashed, "/node_modules/"); {
	case isBelow("/nix/store", real):
		return "/nix/store", nil
	case strings.Contains(slashed, "/.linuxbrew/"):
		before, _, _ := strings.Cut(slashed, "/.linuxbrew/")
		return filepath.FromSlash(before + "/.linuxbrew"), brewParts
	case i > 0:
		return filepath.FromSlash(slashed[:i+len("/node_modules")]), nil
	case strings.HasPrefix(slashed, "/snap/") && strings.Count(slashed, "/") > 3:
		words := strings.SplitN(slashed, "/", 5)
		return filepath.FromSlash(strings.Join(words[:4], "/")), nil
	}
	return "", nil
}

// isProgramDir reports whether a file is in a bin directory with a lib or share
// directory beside it.
func isProgramDir(real string) bool {
	dir := filepath.Dir(real)
	if !slices.Contains([]string{"bin", "sbin", "libexec"}, filepath.Base(dir)) {
		return false
	}
	return slices.ContainsFunc([]string{"lib", "lib64", "libexec", "share"}, func(name string) bool {
		return isDir(filepath.Join(filepath.Dir(dir), name))
	})
}

// existingParts returns the names that exist below root.
func existingParts(root string, names []string) []string {
	var all []string
	for _, name := range names {
		if isThere(filepath.Join(root, name)) {
			all = append(all, name)
		}
	}
	return all
}
