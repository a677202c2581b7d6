package toolchain

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// needed is a program that was found.
type needed struct {
	word  string
	entry string // the file by which it is started
	real  string // its path without links
	shim  string
}

// addImplied adds what a program needs beside itself, and the variables by which it
// finds that.
func (r *resolver) addImplied(ctx context.Context, p needed) error {
	switch {
	case p.shim == "corepack":
		return r.addCorepack(p.word)
	case isGoWord(p.word):
		r.addGo(p)
	case p.word == "cargo":
		r.addCargo(p)
		return r.resolveWord(ctx, "rustc")
	case slices.Contains([]string{"mvn", "gradle", "ant", "sbt", "scala", "kotlinc"}, p.word):
		return r.addJava(ctx)
	case p.word == "java" || p.word == "javac":
		root := rootOf(p.real)
		if filepath.Base(root) == "jre" {
			root = filepath.Dir(root) // The JDK has a part that only runs programs.
		}
		if !r.area.isVisible(root) {
			r.addVariable("JAVA_HOME", root)
		}
	case p.word == "dotnet" && !r.area.isVisible(p.real):
		r.addVariable("DOTNET_ROOT", filepath.Dir(p.real))
	case p.word == "ruby":
		r.passOn("GEM_HOME")
		r.passOn("GEM_PATH")
	case p.word == "uv" || p.word == "uvx":
		return r.addUVPython(ctx, p.entry)
	}
	return nil
}

// passOn passes on a variable that lists directories, and shows them.
func (r *resolver) passOn(name string) {
	value := proc.LookupVariable(r.env, name)
	if value == "" {
		return
	}
	for _, dir := range proc.PathDirs(value) {
		if isDir(dir) {
			r.showTree(dir)
		}
	}
	r.addVariable(name, value)
}

// addCargo adds the subcommands that were installed beside its shim, and sets the
// toolchain for build scripts that ask rustup.
func (r *resolver) addCargo(p needed) {
	if p.shim != "rustup" {
		return
	}
	r.addVariable("RUSTUP_TOOLCHAIN", filepath.Base(rootOf(p.real)))
	home := proc.LookupVariable(r.env, "CARGO_HOME")
	if !filepath.IsAbs(home) {
		home = filepath.Join(r.prober.Home, ".cargo")
	}
	bin := filepath.Join(home, "bin")
	found := false
	for _, path := range dirglob.Find(bin, "cargo-*") {
		// A link to rustup is for a program that the toolchain has, too.
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			r.binds, found = append(r.binds, path), true
		}
	}
	if found {
		r.out.PathDirs = append(r.out.PathDirs, filepath.Dir(p.real), bin)
	}
}

// addJava adds the Java that JAVA_HOME names, as build tools do, or that in PATH.
func (r *resolver) addJava(ctx context.Context) error {
	home := proc.LookupVariable(r.env, "JAVA_HOME")
	if home == "" {
		return r.resolveWord(ctx, "java")
	}
	path := filepath.Join(home, "bin", "java")
	if !filepath.IsAbs(home) || !isThere(path) {
		return r.newFault("java", "JAVA_HOME is "+home+", and there is no bin/java", "set JAVA_HOME to the directory of a JDK, or unset it")
	}
	real, err := r.followFile(ctx, path)
	if err != nil {
		return err
	}
	r.addVariable("JAVA_HOME", home)
	r.addPathDir(path, real)
	return nil
}

var (
	pythonName = lazyregexp.New(`^python(\d+(?:\.\d+)?)?$`)
	pythonFull = lazyregexp.New(`^python(\d+\.\d+)$`)
	madeWith   = lazyregexp.New(`(?m)^(home|executable)\s*=\s*(.+?)\s*$`)
)

// addPython adds what a Python interpreter needs outside of its prefix: in an
// environment, the interpreter with which that was made; else the packages that the
// user installed for it.
func (r *resolver) addPython(ctx context.Context, names []string) error {
	real := names[len(names)-1]
	inEnvironment := false
	for _, name := range names {
		if root := environmentOf(name); root != "" {
			inEnvironment = true
			if err := r.followEnvironment(ctx, root, filepath.Base(real)); err != nil {
				return err
			}
		}
	}
	if m := pythonFull.FindStringSubmatch(filepath.Base(real)); m != nil && !inEnvironment {
		r.showUserSite(m[1])
	}
	return nil
}

// followEnvironment follows the interpreter with which an environment was made.
func (r *resolver) followEnvironment(ctx context.Context, root, name string) error {
	if r.seen["env:"+root] {
		return nil
	}
	r.seen["env:"+root] = true
	if filepath.Clean(proc.LookupVariable(r.env, "VIRTUAL_ENV")) == root {
		r.addVariable("VIRTUAL_ENV", root)
	}
	text, err := headOf(filepath.Join(root, "pyvenv.cfg"))
	if err != nil {
		return r.newFault(name, "reading "+root+"/pyvenv.cfg: "+withoutPath(err), "make the environment again: python3 -m venv --clear "+root)
	}
	base := basePython(text, name)
	if base == "" {
		return r.newFault(name, root+" was made with an interpreter that is not there any more", "make the environment again: python3 -m venv --clear "+root)
	}
	if real, err := filepath.EvalSymlinks(base); r.area.ofProject(root) && err == nil && !r.area.isVisible(real) && !isInstalled(real) {
		return r.untrustedLink(filepath.Join(root, "pyvenv.cfg"), base)
	}
	_, err = r.followFile(ctx, base)
	return err
}

// basePython returns the interpreter that a pyvenv.cfg names, or an empty string.
func basePython(text, name string) string {
	var candidates []string
	for _, m := range madeWith.FindAllStringSubmatch(text, -1) {
		switch {
		case !filepath.IsAbs(m[2]):
		case m[1] == "executable":
			candidates = append(candidates, m[2])
		default:
			for _, n := range []string{name, "python3", "python"} {
				if pythonName.MatchString(n) {
					candidates = append(candidates, filepath.Join(m[2], n))
				}
			}
		}
	}
	if i := slices.IndexFunc(candidates, isThere); i >= 0 {
		return candidates[i]
	}
	return ""
}

// showUserSite shows the packages that pip installed for this user only.
func (r *resolver) showUserSite(version string) {
	base := proc.LookupVariable(r.env, "PYTHONUSERBASE")
	if filepath.IsAbs(base) {
		r.addVariable("PYTHONUSERBASE", base)
	} else if base = filepath.Join(r.prober.Home, ".local"); r.prober.Home == "" {
		return
	}
	if dir := filepath.Join(base, "lib", "python"+version, "site-packages"); isDir(dir) {
		r.showTree(dir)
	}
}

// addUVPython adds the interpreter that uv would choose in the directory. An
// environment there does not count: it is the project's and is not run.
func (r *resolver) addUVPython(ctx context.Context, uv string) error {
	if dir := proc.LookupVariable(r.env, "UV_PYTHON_INSTALL_DIR"); dir != "" {
		r.addVariable("UV_PYTHON_INSTALL_DIR", dir)
	}
	said, why := r.prober.AnswerOf(ctx, r.dir, uv, "python", "find", "--system")
	path := ""
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); filepath.IsAbs(line) {
			path = line
		}
	}
	if why != "" || path == "" {
		return r.newFault("python", "uv finds no interpreter: "+why, "uv python install")
	}
	real, err := r.followFile(ctx, path)
	if err != nil {
		return err
	}
	r.addPathDir(path, real)
	return nil
}

// addCorepack shows the package managers that corepack fetched. The one that the
// project asks for must be among them, because nothing is fetched during a run.
func (r *resolver) addCorepack(word string) error {
	name := map[string]string{"pnpx": "pnpm", "yarnpkg": "yarn"}[word]
	if name == "" {
		name = word
	}
	home := proc.LookupVariable(r.env, "COREPACK_HOME")
	if !filepath.IsAbs(home) {
		home = filepath.Join(cacheHome(r.env), "node", "corepack")
	}
	version := wantedManagerVersion(r.dir, name)
	if !isDir(filepath.Join(home, name, version)) && !isDir(filepath.Join(home, "v1", name, version)) {
		return r.newFault(word, "corepack has not fetched "+strings.TrimSuffix(name+"@"+version, "@"), "corepack install, in "+r.dir)
	}
	r.showTree(home)
	r.addVariable("COREPACK_HOME", home)
	r.addVariable("COREPACK_ENABLE_NETWORK", "0")
	return nil
}

var plainVersion = lazyregexp.New(`^[0-9][0-9A-Za-z.-]*$`)

// wantedManagerVersion returns the version of the package manager that the project asks
// for, or an empty string.
func wantedManagerVersion(dir, name string) string {
	text, err := boundedFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		PackageManager string `json:"packageManager"`
	}
	if json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	named, version, _ := strings.Cut(manifest.PackageManager, "@")
	version, _, _ = strings.Cut(version, "+")
	if named != name || !plainVersion.MatchString(version) {
		return ""
	}
	return version
}
