package policy

import (
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
		"dependencies":{"left":{"version":"1.2.3","resolved":"https://registry.example/left/-/left-1.2.3.tgz","integrity":"` + sum1 + `","requires":{"y":"^1.2.3"}}}}`,
	"yarn.lock": "# yarn lockfile v1\n\n\n\"@a/left@^1.2.3\", \"@a/left@^1.0.0\":\n  version \"1.2.3\"\n  resolved \"https://registry.example/left-1.2.3.tgz#00\"\n  integrity " + sum1 +
		"\n  dependencies:\n    right \"^2.0.0\"\n\nright@^2.0.0:\n  version \"2.0.0\"\n  resolved \"https://registry.example/right-2.0.0.tgz#11\"\n  integrity sha512-rr\n",
	"go.sum":     "example.org/left v1.2.3 h1:" + hex1 + "=\nexample.org/left v1.2.3/go.mod h1:mmmm=\nexample.org/right v2.0.0 h1:rrrr=\n",
	"Cargo.lock": "version = 3\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\"left\"]\n[[package]]\nname = \"left\"\nversion = \"1.2.3\"\nsource = \"registry+x\"\nchecksum = \"" + hex1 + "\"\n",
	"poetry.lock": "[[package]]\nname = \"left\"\nversion = \"1.2.3\"\noptional = false\nfiles = [{file = \"left-1.2.3.tar.gz\", hash = \"sha256:" + hex1 + "\"}]\n" +
		"[metadata]\nlock-version = \"2.0\"\npython-versions = \"^3.11\"\ncontent-hash = \"cc\"\n",
	"uv.lock": "version = 1\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\nsource = { virtual = \".\" }\ndependencies = [{ name = \"left\" }]\n[package.metadata]\nrequires-dist = [{ name = \"left\", specifier = \">=1.2.3\" }]\n" +
		"[[package]]\nname = \"left\"\nversion = \"1.2.3\"\nsource = { registry = \"https://pypi.example/simple\" }\nsdist = { url = \"https://files.example/left-1.2.3.tar.gz\", hash = \"sha256:" + hex1 + "\", size = 1 }\n",
}

// bump is what an honest tool writes for another version.
func bump(lock, version string) string {
	return strings.NewReplacer("1.2.3", version, sum1, sum2, hex1, hex2, "cc", "dd", "mmmm", "nnnn", "#00", "#22").Replace(lock)
}

func TestALockfileWithPatchesOnlyIsLockfilePatch(t *testing.T) {
	for name, lock := range locks {
		t.Run(name, func(t *testing.T) {
			change := Change{Path: "sub/" + name, Old: file(lock), New: file(bump(lock, "1.2.10"))}
			if v := LockfilePatch([]Change{change}); !v.Allowed || v.Path != change.Path {
				t.Fatalf("a patch: %+v", v)
			}
			if got := codes(Classify(onBranch(change)).May); len(got) != 2 || got[1] != "lockfile-patch" {
				t.Errorf("classes %v, want green-pr and lockfile-patch", got)
			}
			for what, text := range map[string]string{
				"nothing":           lock,
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
				if v := LockfilePatch([]Change{{Path: name, Old: file(lock), New: file(text)}}); v.Allowed || v.Rule == "" {
					t.Errorf("%s: %+v, want it not to be the class", what, v)
				}
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
			if v := LockfilePatch([]Change{{Path: c.file, Old: file(lock), New: file(text)}}); v.Allowed || v.Path != c.file || v.Rule == "" {
				t.Errorf("%+v, want it not to be the class", v)
			}
		})
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
