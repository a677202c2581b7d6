package policy

import (
	"fmt"
	"strings"
	"testing"
)

const (
	sum1 = "sha512-aaaa"
	sum2 = "sha512-bbbb"
	hex1 = "1111111111111111111111111111111111111111111111111111111111111111"
	hex2 = "2222222222222222222222222222222222222222222222222222222222222222"
)

// locks is a small lockfile of each kind, with one package at 1.2.3.
var locks = map[string]string{
	"package-lock.json": `{"name":"x","version":"1.0.0","lockfileVersion":3,"packages":{
		"":{"name":"x","dependencies":{"left":"^1.2.3"}},
		"node_modules/left":{"version":"1.2.3","resolved":"https://registry.example/left/-/left-1.2.3.tgz","integrity":"` + sum1 + `","license":"MIT"},
		"node_modules/right":{"version":"2.0.0","resolved":"https://registry.example/right/-/right-2.0.0.tgz","integrity":"sha512-rr"}}}`,
	"npm-shrinkwrap.json": `{"name":"x","lockfileVersion":2,"requires":true,"packages":{"":{},
		"node_modules/left":{"version":"1.2.3","resolved":"https://registry.example/left/-/left-1.2.3.tgz","integrity":"` + sum1 + `"}},
		"dependencies":{"left":{"version":"1.2.3","resolved":"https://registry.example/left/-/left-1.2.3.tgz","integrity":"` + sum1 + `","requires":{"y":"^1.2.3"},
		"dependencies":{"deep":{"version":"1.2.3","resolved":"https://registry.example/deep/-/deep-1.2.3.tgz","integrity":"` + sum1 + `"}}}}}`,
	"yarn.lock": "# yarn lockfile v1\n\n\n\"@a/left@^1.2.3\", \"@a/left@^1.0.0\":\n  version \"1.2.3\"\n  resolved \"https://registry.example/left-1.2.3.tgz#00\"\n  integrity " + sum1 +
		"\n  dependencies:\n    right \"^2.0.0\"\n  optionalDependencies:\n    \"@a/fs\" \"^1.2.3\"\n\nright@^2.0.0:\n  version \"2.0.0\"\n  resolved \"https://registry.example/right-2.0.0.tgz#11\"\n  integrity sha512-rr\n",
	"go.sum":     "example.org/left v1.2.3 h1:" + hex1 + "=\nexample.org/left v1.2.3/go.mod h1:mmmm=\nexample.org/right v2.0.0 h1:rrrr=\n",
	"Cargo.lock": "version = 3\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\"left\"]\n[[package]]\nname = \"left\"\nversion = \"1.2.3\"\nsource = \"registry+x\"\nchecksum = \"" + hex1 + "\"\n",
	"poetry.lock": "[[package]]\nname = \"left\"\nversion = \"1.2.3\"\noptional = false\nfiles = [{file = \"left-1.2.3.tar.gz\", hash = \"sha256:" + hex1 + "\"}]\n" +
		"[metadata]\nlock-version = \"2.0\"\npython-versions = \"^3.11\"\ncontent-hash = \"cc\"\n",
	"uv.lock": "version = 1\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\nsource = { virtual = \".\" }\ndependencies = [{ name = \"left\" }]\n[package.metadata]\nrequires-dist = [{ name = \"left\", specifier = \">=1.2.3\" }]\n" +
		"[[package]]\nname = \"left\"\nversion = \"1.2.3\"\nsource = { registry = \"https://pypi.example/simple\" }\nsdist = { url = \"https://files.example/left-1.2.3.tar.gz\", hash = \"sha256:" + hex1 + "\", size = 1 }\n" +
		"wheels = [{ url = \"https://files.example/left-1.2.3-py3.whl\", hash = \"sha256:" + hex1 + "\" }]\n",
}

// bump is what an honest tool writes for another version.
func bump(lock, version string) string {
	return strings.NewReplacer("1.2.3", version, sum1, sum2, hex1, hex2, "cc", "dd", "mmmm", "nnnn", "#00", "#22").Replace(lock)
}

// notPatches fails unless a change is not of the class, alone and beside another
// lockfile that goes up as it should.
func notPatches(t *testing.T, what string, c Change) {
	t.Helper()
	honest := "Cargo.lock"
	if c.Path == honest {
		honest = "go.sum"
	}
	beside := Change{Path: honest, Old: file(locks[honest]), New: file(bump(locks[honest], "1.2.4"))}
	for _, changes := range [][]Change{{c}, {c, beside}, {beside, c}} {
		v := LockfilePatch(changes)
		if v.Allowed || v.Code != ClassLockfilePatch || v.Rule == "" || v.Path != c.Path {
			t.Errorf("%s, of %d files: %+v, want %q not to be the class", what, len(changes), v, c.Path)
		}
	}
}

func TestALockfileWithPatchesOnlyIsLockfilePatch(t *testing.T) {
	for name, lock := range locks {
		t.Run(name, func(t *testing.T) {
			change := Change{Path: "sub/" + name, Old: file(lock), New: file(bump(lock, "1.2.10"))}
			v := LockfilePatch([]Change{change})
			if !v.Allowed || v.Path != change.Path || !strings.HasPrefix(v.Rule, "versions that go up by their patch level: ") {
				t.Fatalf("a patch: %+v", v)
			}
			// This lockfile of npm lists a package twice.
			if bumped := map[bool]string{false: ": 1;", true: ": 2;"}[name == "package-lock.json"]; !strings.Contains(v.Rule, bumped) {
				t.Errorf("the reason is %q, want%s in it", v.Rule, bumped)
			}
			if got := codes(Classify(onBranch(change)).May); len(got) != 2 || got[1] != "lockfile-patch" {
				t.Errorf("classes %v, want green-pr and lockfile-patch", got)
			}
			for what, text := range map[string]string{
				"a minor version":   bump(lock, "1.3.0"),
				"a major version":   bump(lock, "2.2.3"),
				"a downgrade":       bump(lock, "1.2.2"),
				"a prerelease":      bump(lock, "1.2.4-rc.1"),
				"a fourth number":   bump(lock, "1.2.3.1"),
				"a leading zero":    bump(lock, "1.2.04"),
				"the content alone": bump(lock, "1.2.3"),
				"another host":      strings.NewReplacer("registry.example", "evil.example", "pypi.example", "evil.example", "files.example", "evil.example", "registry+x", "registry+y", "example.org/left", "evil.org/left", "left-1.2.4.tar.gz\", hash", "evil.whl\", hash").Replace(bump(lock, "1.2.4")),
				"the version alone": strings.ReplaceAll(lock, "1.2.3", "1.2.4"),
				"half of it":        lock[:len(lock)/2],
				"nothing at all":    "",
			} {
				notPatches(t, what, Change{Path: name, Old: file(lock), New: file(text)})
			}
			if v := LockfilePatch([]Change{{Path: name, Old: file(lock), New: file(lock)}}); v.Allowed || v.Rule == "" {
				t.Errorf("nothing goes up: %+v, want it not to be the class", v)
			}
		})
	}
}

func TestWhatIsMoreThanAVersionIsNoLockfilePatch(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new string }{
		"an install script":          {"package-lock.json", `"license":"MIT"`, `"license":"MIT","hasInstallScript":true`},
		"a new npm package":          {"package-lock.json", `"node_modules/right":{`, `"node_modules/new":{"version":"1.0.0"},"node_modules/right":{`},
		"a checksum of an old one":   {"package-lock.json", "sha512-rr", "sha512-xx"},
		"the lockfile's version":     {"package-lock.json", `"lockfileVersion":3`, `"lockfileVersion":2`},
		"a range that opens":         {"package-lock.json", `"left":"^1.2.4"`, `"left":"*"`},
		"a weak checksum":            {"package-lock.json", sum2, "sha1-bbbb"},
		"a nested tree that differs": {"npm-shrinkwrap.json", `"requires":{"y":"^1.2.4"}`, `"requires":{"y":"^1.2.4","z":"*"}`},
		"a yarn checksum":            {"yarn.lock", "sha512-rr", "sha512-xx"},
		"a yarn dependency":          {"yarn.lock", `right "^2.0.0"`, `right "^3.0.0"`},
		"a line that yarn has not":   {"yarn.lock", "  version \"2.0.0\"", "  version \"2.0.0\"\n      x"},
		"a module's checksum":        {"go.sum", "rrrr", "ssss"},
		"a module that goes":         {"go.sum", "example.org/right v2.0.0 h1:rrrr=\n", ""},
		"a new module":               {"go.sum", "example.org/right v2.0.0", "example.org/new v1.0.0 h1:n=\nexample.org/right v2.0.0"},
		"a crate's needs":            {"Cargo.lock", "checksum", "dependencies = [\"evil\"]\nchecksum"},
		"a new crate":                {"Cargo.lock", "[[package]]\nname = \"left\"", "[[package]]\nname = \"evil\"\nversion = \"1.0.0\"\n[[package]]\nname = \"left\""},
		"a Python file of no hash":   {"poetry.lock", "sha256:", "md5:"},
		"a Python marker":            {"poetry.lock", "optional = false", "optional = true"},
		"another Python":             {"poetry.lock", "^3.11", "^3.12"},
		"a project's needs":          {"uv.lock", `{ name = "left" }]`, `{ name = "left" }, { name = "evil" }]`},
	} {
		t.Run(name, func(t *testing.T) {
			lock := locks[c.file]
			text := strings.Replace(bump(lock, "1.2.4"), c.old, c.new, 1)
			if text == bump(lock, "1.2.4") {
				t.Fatalf("%q is not in the lockfile", c.old)
			}
			notPatches(t, name, Change{Path: c.file, Old: file(lock), New: file(text)})
		})
	}
}

func TestALockfileOfAnUnusualShapeIsNoLockfilePatch(t *testing.T) {
	const cargoLeft = "[[package]]\nname = \"left\"\nversion = \"1.2.3\"\n"
	for name, c := range map[string]struct{ file, from, to, old, new string }{ // from → to on both sides, then old → new on the new one
		"an npm lockfile of version 1":         {"package-lock.json", `"lockfileVersion":3`, `"lockfileVersion":1`, "", ""},
		"an npm package of no address":         {"package-lock.json", `"resolved":"https://registry.example/left/-/left-1.2.3.tgz",`, "", "", ""},
		"an npm package over plain HTTP":       {"package-lock.json", "https://registry.example/left", "http://registry.example/left", "", ""},
		"an npm address that stays":            {"package-lock.json", "", "", "left-1.2.4.tgz", "left-1.2.3.tgz"},
		"an npm address without a version":     {"package-lock.json", "left-1.2.3.tgz", "left.tgz", "", ""},
		"a weak npm checksum before":           {"package-lock.json", sum1, "sha1-aaaa", "", ""},
		"no packages":                          {"package-lock.json", `"packages":{`, `"parcels":{`, "", ""},
		"a nested npm package comes":           {"npm-shrinkwrap.json", "", "", `"dependencies":{"deep"`, `"dependencies":{"evil":{"version":"1.2.4"},"deep"`},
		"a nested npm package has new code":    {"npm-shrinkwrap.json", `"deep":{"version":"1.2.3"`, `"deep":{"version":"1.0.0"`, "", ""},
		"npm needs of an old version":          {"npm-shrinkwrap.json", `"requires":{"y":"^1.2.3"}`, `"requires":{"y":"^1.2.3"},"z":{"version":"1.2.3"}`, "", ""},
		"yarn 2":                               {"yarn.lock", "lockfile v1", "lockfile v2", "", ""},
		"a yarn line outside of a package":     {"yarn.lock", "lockfile v1\n", "lockfile v1\n  x \"1\"\n", "", ""},
		"a yarn section nobody knows":          {"yarn.lock", "  dependencies:", "  bin:", "", ""},
		"a yarn entry of two packages":         {"yarn.lock", "@a/left@^1.0.0", "@a/other@^1.0.0", "", ""},
		"a yarn entry that is not a package":   {"yarn.lock", `"@a/left@^1.2.3", "@a/left@^1.0.0":`, "left:", "", ""},
		"a yarn range that goes":               {"yarn.lock", "", "", `, "@a/left@^1.0.0"`, ""},
		"a yarn range that opens":              {"yarn.lock", "", "", `"@a/left@^1.2.4"`, `"@a/left@*"`},
		"a yarn optional need that opens":      {"yarn.lock", "", "", `"@a/fs" "^1.2.4"`, `"@a/fs" "*"`},
		"a weak yarn checksum":                 {"yarn.lock", "", "", sum2, "sha1-bbbb"},
		"a yarn field":                         {"yarn.lock", "\n  dependencies:", "\n  kind \"hard\"\n  dependencies:", "hard", "soft"},
		"a line that is not a checksum":        {"go.sum", "example.org/right v2.0.0 h1:rrrr=", "example.org/right v2.0.0", "", ""},
		"a checksum of another kind":           {"go.sum", "h1:rrrr=", "h2:rrrr=", "", ""},
		"two checksums of one module":          {"go.sum", "h1:rrrr=\n", "h1:rrrr=\nexample.org/right v2.0.0 h1:ssss=\n", "", ""},
		"a second content of one version":      {"go.sum", "", "", "h1:" + hex2, "h1:" + hex1},
		"a checksum that comes alone":          {"go.sum", "", "", "example.org/right v2.0.0 ", "example.org/right v2.0.0/go.mod h1:gggg=\nexample.org/right v2.0.0 "},
		"a crate of no name":                   {"Cargo.lock", "name = \"left\"\n", "", "", ""},
		"no crates":                            {"Cargo.lock", "[[package]]", "[[parcel]]", "", ""},
		"a crate of this repository":           {"Cargo.lock", "source = \"registry+x\"\n", "", "", ""},
		"a crate of a weak checksum":           {"Cargo.lock", "", "", hex2, "abc"},
		"a crate of a weak checksum before":    {"Cargo.lock", hex1, "abc", "", ""},
		"a crate's other key":                  {"Cargo.lock", "checksum", "edition = \"a\"\nchecksum", "edition = \"a\"", "edition = \"b\""},
		"a crate that goes":                    {"Cargo.lock", "", "", "[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\"left\"]\n", ""},
		"one crate becomes two":                {"Cargo.lock", "", "", "[[package]]\nname = \"left\"", "[[package]]\nname = \"left\"\nversion = \"1.2.5\"\nsource = \"registry+x\"\nchecksum = \"" + hex2 + "\"\n[[package]]\nname = \"left\""},
		"it is not certain which crate":        {"Cargo.lock", cargoLeft, "[[package]]\nname = \"left\"\nversion = \"1.2.2\"\nsource = \"registry+x\"\n" + cargoLeft, `"1.2.2"`, `"1.2.5"`},
		"the lockfile's version":               {"Cargo.lock", "", "", "version = 3", "version = 4"},
		"a Python file of another version":     {"poetry.lock", "", "", "left-1.2.4.tar.gz", "left-9.tar.gz"},
		"a Python file that is not an address": {"poetry.lock", "left-1.2.3", "%zz-1.2.3", "", ""},
		"a Python file that stays":             {"poetry.lock", "", "", hex2, hex1},
		"a Python package of no files":         {"poetry.lock", "files = [{file = \"left-1.2.3.tar.gz\", hash = \"sha256:" + hex1 + "\"}]", "files = []", "", ""},
		"another poetry":                       {"poetry.lock", "", "", `lock-version = "2.0"`, `lock-version = "2.1"`},
		"a package that is in no registry":     {"uv.lock", `registry = "https://pypi.example/simple"`, `git = "https://git.example/x"`, "", ""},
		"what the project asks for opens":      {"uv.lock", "", "", ">=1.2.4", ">=0.0.0"},
		"the Python that a project needs":      {"uv.lock", "[package.metadata]\n", "[package.metadata]\npython = \"1.0.0\"\n", `"1.0.0"`, `"1.0.1"`},
		"a package changes at its version":     {"uv.lock", "name = \"app\"\nversion = \"0.1.0\"\nsource = { virtual = \".\" }", "name = \"app\"\nversion = \"0.1.0\"\nsource = { registry = \".\" }", "", ""},
		"a weak wheel":                         {"uv.lock", "", "", "py3.whl\", hash = \"sha256:" + hex2, "py3.whl\", hash = \"md5:" + hex2},
		"a wheel from elsewhere":               {"uv.lock", "", "", "https://files.example/left-1.2.4-py3", "https://evil.example/left-1.2.4-py3"},
		"a source file from elsewhere":         {"uv.lock", "", "", "https://files.example/left-1.2.4.tar", "https://evil.example/left-1.2.4.tar"},
	} {
		t.Run(name, func(t *testing.T) {
			lock := strings.ReplaceAll(locks[c.file], c.from, c.to)
			if c.from == "" {
				lock = locks[c.file]
			}
			bumped := bump(lock, "1.2.4")
			text := strings.Replace(bumped, c.old, c.new, 1)
			if lock == locks[c.file] && text == bumped {
				t.Fatalf("neither %q nor %q is in the lockfile", c.from, c.old)
			}
			notPatches(t, name, Change{Path: c.file, Old: file(lock), New: file(text)})
		})
	}
}

func TestMoreVersionsThanCanBeComparedAreNoLockfilePatch(t *testing.T) {
	for n, allowed := range map[int]bool{maxSimilar: true, maxSimilar + 1: false} {
		var crates, modules strings.Builder
		for i := range n {
			fmt.Fprintf(&crates, "[[package]]\nname = \"left\"\nversion = \"1.2.%d\"\nsource = \"registry+x\"\nchecksum = \"%s\"\n", i, hex1)
			fmt.Fprintf(&modules, "example.org/m%d v1.2.3 h1:%s=\n", i, hex1)
		}
		for name, c := range map[string]Change{
			"of one crate": {Path: "Cargo.lock", Old: file(crates.String()), New: file(strings.Replace(crates.String(), "1.2.0\"\nsource = \"registry+x\"\nchecksum = \""+hex1, "1.2.999\"\nsource = \"registry+x\"\nchecksum = \""+hex2, 1))},
			"of modules":   {Path: "go.sum", Old: file(modules.String()), New: file(strings.NewReplacer("v1.2.3", "v1.2.4", hex1, hex2).Replace(modules.String()))},
		} {
			if !allowed {
				notPatches(t, fmt.Sprint(n, " versions ", name), c)
			} else if v := LockfilePatch([]Change{c}); !v.Allowed {
				t.Errorf("%d versions %s: %+v, want the class", n, name, v)
			}
		}
	}
}

func TestManifestsMayFollowTheirLockfile(t *testing.T) {
	lock := Change{Path: "go.sum", Old: file(locks["go.sum"]), New: file(bump(locks["go.sum"], "1.2.4"))}
	for name, c := range map[string]struct {
		file, old, new string
		allowed        bool
	}{
		"a required module":       {"go.mod", "module x\n\ngo 1.26\n\nrequire (\n\tleft.org/x v1.2.3 // indirect\n)\n", "module x\n\ngo 1.26\n\nrequire (\n\tleft.org/x v1.2.4 // indirect\n)\n", true},
		"one required module":     {"go.mod", "module x\nrequire left.org/x v1.2.3\n", "module x\nrequire left.org/x v1.2.4\n", true},
		"a minor module":          {"go.mod", "module x\nrequire left.org/x v1.2.3\n", "module x\nrequire left.org/x v1.3.3\n", false},
		"a pseudo-version":        {"go.mod", "require a v0.0.0-20200101000000-000000000000\n", "require a v0.0.0-20200102000000-000000000000\n", false},
		"a replaced module":       {"go.mod", "require a v1.2.3\n", "require a v1.2.4\nreplace a => ../b\n", false},
		"a changed replacement":   {"go.mod", "replace (\n\ta => b v1.2.3\n)\n", "replace (\n\ta => b v1.2.4\n)\n", false},
		"the Go version":          {"go.mod", "go 1.26.0\n", "go 1.26.1\n", false},
		"an npm range":            {"package.json", `{"dependencies":{"a":"^1.2.3"}}`, `{"dependencies":{"a":"^1.2.4"}}`, true},
		"an npm script":           {"package.json", `{"scripts":{"test":"1.2.3"}}`, `{"scripts":{"test":"1.2.4"}}`, false},
		"the package's version":   {"package.json", `{"version":"1.2.3"}`, `{"version":"1.2.4"}`, false},
		"an npm alias":            {"package.json", `{"dependencies":{"a":"npm:b@1.2.3"}}`, `{"dependencies":{"a":"npm:c@1.2.4"}}`, false},
		"an npm operator":         {"package.json", `{"dependencies":{"a":"~1.2.3"}}`, `{"dependencies":{"a":"^1.2.4"}}`, false},
		"a crate":                 {"Cargo.toml", "[dependencies]\na = \"1.2.3\"\n", "[dependencies]\na = \"1.2.4\"\n", true},
		"a crate with features":   {"Cargo.toml", "[target.x.dependencies]\na = {version = \"1.2.3\"}\n", "[target.x.dependencies]\na = {version = \"1.2.4\"}\n", true},
		"a crate from git":        {"Cargo.toml", "[dependencies]\na = {git = \"x\", tag = \"1.2.3\"}\n", "[dependencies]\na = {git = \"x\", tag = \"1.2.4\"}\n", false},
		"the crate's version":     {"Cargo.toml", "[package]\nversion = \"1.2.3\"\n", "[package]\nversion = \"1.2.4\"\n", false},
		"a requirement":           {"pyproject.toml", "[project]\ndependencies = [\"h11>=1.2.3; x\"]\n", "[project]\ndependencies = [\"h11>=1.2.4; x\"]\n", true},
		"a poetry dependency":     {"pyproject.toml", "[tool.poetry.dependencies]\na = \"^1.2.3\"\n", "[tool.poetry.dependencies]\na = \"^1.2.4\"\n", true},
		"another requirement":     {"pyproject.toml", "[project]\ndependencies = [\"a>=1.2.3\"]\n", "[project]\ndependencies = [\"b>=1.2.4\"]\n", false},
		"a poetry Python":         {"pyproject.toml", "[tool.poetry.dependencies]\npython = \"^3.11.1\"\n", "[tool.poetry.dependencies]\npython = \"^3.11.2\"\n", false},
		"test options":            {"pyproject.toml", "[tool.pytest]\naddopts = \"1.2.3\"\n", "[tool.pytest]\naddopts = \"1.2.4\"\n", false},
		"something else entirely": {"src/a.go", "a", "b", false},

		"another module":                {"go.mod", "require a v1.2.3\n", "require b v1.2.4\n", false},
		"a comment on a requirement":    {"go.mod", "require a v1.2.3 // indirect\n", "require a v1.2.4 // x\n", false},
		"a requirement loses a comment": {"go.mod", "require a v1.2.3 // indirect\n", "require a v1.2.4\n", false},
		"a requirement of no version":   {"go.mod", "require a\n", "require b\n", false},
		"a requirement from nothing":    {"go.mod", "module x\n\n", "module x\nrequire a v1.2.4\n", false},
		"a requirement that goes":       {"go.mod", "require a v1.2.3\n", "\n", false},
		"an excluded module":            {"go.mod", "exclude a v1.2.3\n", "exclude a v1.2.4\n", false},
		"a requirement excludes":        {"go.mod", "require a v1.2.3\n", "exclude a v1.2.4\n", false},
		"an exclusion requires":         {"go.mod", "exclude a v1.2.3\n", "require a v1.2.4\n", false},
		"a replacement after a block":   {"go.mod", "require (\n\ta v1.2.3\n)\nb v1.2.3\n", "require (\n\ta v1.2.3\n)\nb v1.2.4\n", false},
		"a require in a replace block":  {"go.mod", "replace (\n\trequire a v1.2.3\n)\n", "replace (\n\trequire a v1.2.4\n)\n", false},
		"broken JSON":                   {"package.json", "{", "[", false},
		"JSON that breaks":              {"package.json", "{}", "{", false},
		"an npm table within a table":   {"package.json", `{"dependencies":{"a":{"b":"1.2.3"}}}`, `{"dependencies":{"a":{"b":"1.2.4"}}}`, false},
		"an npm table that comes":       {"package.json", `{}`, `{"dependencies":{}}`, false},
		"an npm range that is a list":   {"package.json", `{"dependencies":["^1.2.3"]}`, `{"dependencies":["^1.2.4"]}`, true},
		"an npm range that is a number": {"package.json", `{"dependencies":{"a":1}}`, `{"dependencies":{"a":2}}`, false},
		"a list of another length":      {"package.json", `{"files":["a"]}`, `{"files":["a","b"]}`, false},
		"a development npm range":       {"package.json", `{"devDependencies":{"a":"1.2.3"}}`, `{"devDependencies":{"a":"1.2.4"}}`, true},
		"an optional npm range":         {"package.json", `{"optionalDependencies":{"a":"=1.2.3"}}`, `{"optionalDependencies":{"a":"=1.2.4"}}`, true},
		"a peer's npm range":            {"package.json", `{"peerDependencies":{"a":"~1.2.3"}}`, `{"peerDependencies":{"a":"~1.2.4"}}`, true},
		"broken TOML":                   {"Cargo.toml", "= 1\n", "= 2\n", false},
		"TOML that breaks":              {"Cargo.toml", "", "= 2\n", false},
		"broken TOML of Python":         {"pyproject.toml", "= 1\n", "= 2\n", false},
		"a development crate":           {"Cargo.toml", "[dev-dependencies]\na = \"1.2.3\"\n", "[dev-dependencies]\na = \"1.2.4\"\n", true},
		"a crate that builds":           {"Cargo.toml", "[build-dependencies]\na = \"1.2.3\"\n", "[build-dependencies]\na = \"1.2.4\"\n", true},
		"a crate of the workspace":      {"Cargo.toml", "[workspace.dependencies]\na = \"1.2.3\"\n", "[workspace.dependencies]\na = \"1.2.4\"\n", true},
		"a workspace's own key":         {"Cargo.toml", "workspace = \"1.2.3\"\n", "workspace = \"1.2.4\"\n", false},
		"a target's own key":            {"Cargo.toml", "[target]\nx = \"1.2.3\"\n", "[target]\nx = \"1.2.4\"\n", false},
		"a feature of a crate":          {"Cargo.toml", "[dependencies.a]\nfeatures = \"1.2.3\"\n", "[dependencies.a]\nfeatures = \"1.2.4\"\n", false},
		"a table of other crates":       {"Cargo.toml", "[patch.dependencies]\na = \"1.2.3\"\n", "[patch.dependencies]\na = \"1.2.4\"\n", false},
		"an optional requirement":       {"pyproject.toml", "[project.optional-dependencies]\nx = [\"a[b]>=1.2.3\"]\n", "[project.optional-dependencies]\nx = [\"a[b]>=1.2.4\"]\n", true},
		"a group's requirement":         {"pyproject.toml", "[dependency-groups]\ndev = [\"a ~= 1.2.3\"]\n", "[dependency-groups]\ndev = [\"a ~= 1.2.4\"]\n", true},
		"a group within a group":        {"pyproject.toml", "[dependency-groups]\ndev = [[\"a==1.2.3\"]]\n", "[dependency-groups]\ndev = [[\"a==1.2.4\"]]\n", false},
		"a minor requirement":           {"pyproject.toml", "[project]\ndependencies = [\"a==1.2.3\"]\n", "[project]\ndependencies = [\"a==1.3.0\"]\n", false},
		"a requirement's marker":        {"pyproject.toml", "[project]\ndependencies = [\"a==1.2.3; x\"]\n", "[project]\ndependencies = [\"a==1.2.4; y\"]\n", false},
		"a requirement's operator":      {"pyproject.toml", "[project]\ndependencies = [\"a==1.2.3\"]\n", "[project]\ndependencies = [\"a>=1.2.4\"]\n", false},
		"a requirement from a URL":      {"pyproject.toml", "[project]\ndependencies = [\"a @ https://x/1.2.3\"]\n", "[project]\ndependencies = [\"a @ https://x/1.2.4\"]\n", false},
		"an invalid requirement":        {"pyproject.toml", "[project]\ndependencies = [\"a>=1.2.3\"]\n", "[project]\ndependencies = [\"a @ https://x\"]\n", false},
		"what builds a project":         {"pyproject.toml", "[build-system]\nrequires = [\"a==1.2.3\"]\n", "[build-system]\nrequires = [\"a==1.2.4\"]\n", false},
		"a poetry table":                {"pyproject.toml", "[tool.poetry.dependencies.a]\nversion = \"1.2.3\"\n", "[tool.poetry.dependencies.a]\nversion = \"1.2.4\"\n", true},
		"a poetry tag":                  {"pyproject.toml", "[tool.poetry.dependencies.a]\ntag = \"1.2.3\"\n", "[tool.poetry.dependencies.a]\ntag = \"1.2.4\"\n", false},
		"a poetry group":                {"pyproject.toml", "[tool.poetry.group.dev.dependencies]\na = \"1.2.3\"\n", "[tool.poetry.group.dev.dependencies]\na = \"1.2.4\"\n", true},
		"a poetry group's own key":      {"pyproject.toml", "[tool.poetry.group.dev]\na = \"1.2.3\"\n", "[tool.poetry.group.dev]\na = \"1.2.4\"\n", false},
		"a poetry group's other table":  {"pyproject.toml", "[tool.poetry.group.dev.urls]\na = \"1.2.3\"\n", "[tool.poetry.group.dev.urls]\na = \"1.2.4\"\n", false},
		"another tool's dependencies":   {"pyproject.toml", "[tool.x.dependencies]\na = \"1.2.3\"\n", "[tool.x.dependencies]\na = \"1.2.4\"\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := Change{Path: c.file, Old: file(c.old), New: file(c.new)}
			if v := LockfilePatch([]Change{lock, manifest}); v.Allowed != c.allowed {
				t.Errorf("with the lockfile: %+v, want %v", v, c.allowed)
			}
			if v := LockfilePatch([]Change{manifest}); v.Allowed {
				t.Errorf("without a lockfile: %+v, want it not to be the class", v)
			}
		})
	}
	for name, c := range map[string]Change{
		"a new lockfile": {Path: "go.sum", New: lock.New}, "a deleted lockfile": {Path: "go.sum", Old: lock.Old},
		"an executable lockfile": {Path: "go.sum", Old: lock.Old, New: File{modeExec, lock.New.Size, lock.New.Text}},
		"an unread lockfile":     {Path: "go.sum", Old: lock.Old, New: File{Mode: modeFile, Size: 10}},
		"an unknown lockfile":    {Path: "pnpm-lock.yaml", Old: lock.Old, New: lock.New},
	} {
		if v := LockfilePatch([]Change{c}); v.Allowed {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func FuzzLockfilePatch(f *testing.F) {
	for name, lock := range locks {
		f.Add(name, lock, bump(lock, "1.2.4"))
	}
	f.Add("go.mod", "require a v1.2.3\n", "require a v1.2.4\n")
	f.Add("pyproject.toml", "[tool.poetry.dependencies]\na = \"1.2.3\"\n", "[tool.poetry]\ndependencies = \"1.2.4\"\n")
	f.Fuzz(func(t *testing.T, name, old, text string) {
		forth := LockfilePatch([]Change{{Path: name, Old: file(old), New: file(text)}})
		back := LockfilePatch([]Change{{Path: name, Old: file(text), New: file(old)}})
		if forth.Allowed && back.Allowed {
			t.Errorf("both ways are patches")
		}
		if same := LockfilePatch([]Change{{Path: name, Old: file(old), New: file(old)}}); same.Allowed {
			t.Errorf("the same text is a patch")
		}
	})
}
