package toolchain

import (
	"cmp"
	"errors"
	"go/version"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

func isGoWord(word string) bool { return word == "go" || word == "gofmt" }

// goVersion returns the version of the installation, like go1.26.8, or an empty
// string.
func goVersion(root string) string {
	text, err := boundedFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first)
}

// addGo passes on the variables that move the installation and the modules.
func (r *resolver) addGo(p needed) {
	if root := proc.LookupVariable(r.env, "GOROOT"); filepath.IsAbs(root) {
		r.showTree(root)
		r.addVariable("GOROOT", root)
	}
	if p.shim != "goenv" || proc.LookupVariable(r.env, "GOENV_DISABLE_GOPATH") == "1" {
		return
	}
	// goenv gives each version its own directory of modules.
	prefix := proc.LookupVariable(r.env, "GOENV_GOPATH_PREFIX")
	if prefix == "" && r.prober.Home != "" {
		prefix = filepath.Join(r.prober.Home, "go")
	}
	if number := strings.TrimPrefix(goVersion(rootOf(p.real)), "go"); filepath.IsAbs(prefix) && number != "" {
		r.addVariable("GOPATH", filepath.Join(prefix, number))
	}
}

// chooseGoFile returns the file of the go command that runs in the directory: go itself
// hands over to the toolchain that go.mod asks for.
func (r *resolver) chooseGoFile(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, nil //nolint:nilerr // following the same path says what is wrong with it
	}
	have := goVersion(rootOf(real))
	file, want := wantedGoVersion(r.dir)
	if have == "" || want == "" || version.Compare(want, have) <= 0 {
		return path, nil
	}
	choice := goSetting(r.env, "GOTOOLCHAIN")
	dir := filepath.Join(goModCache(r.env), "golang.org", "toolchain@v0.0.1-"+want+"."+runtime.GOOS+"-"+runtime.GOARCH)
	if choice == "local" || !isThere(filepath.Join(dir, "bin", "go")) {
		return "", r.newFault("go", file+" asks for "+want+", and only "+have+" is installed", "GOTOOLCHAIN=auto go version, in "+r.dir+": it fetches "+want)
	}
	return filepath.Join(dir, "bin", filepath.Base(path)), nil
}

var goLine = lazyregexp.New(`(?m)^(?:go\s+(\d[0-9a-z.]*)|toolchain\s+(go\d[0-9a-z.]*))\s*(?://.*)?$`)

// wantedGoVersion returns the newest version that go.work or go.mod names, in dir or above
// it, and that file.
func wantedGoVersion(dir string) (file, want string) {
	for {
		for _, name := range []string{"go.work", "go.mod"} {
			file = filepath.Join(dir, name)
			text, err := boundedFile(file)
			if err != nil {
				continue
			}
			for _, m := range goLine.FindAllStringSubmatch(string(text), -1) {
				if v := cmp.Or(m[2], "go"+m[1]); version.Compare(v, want) > 0 {
					want = v
				}
			}
			return file, want
		}
		if up := filepath.Dir(dir); up != dir && !isThere(filepath.Join(dir, ".git")) {
			dir = up
			continue
		}
		return "", ""
	}
}

// goSetting returns a variable of the go command, from the environment or from the
// file that go env -w writes.
func goSetting(env []string, name string) string {
	if value := proc.LookupVariable(env, name); value != "" {
		return value
	}
	file := proc.LookupVariable(env, "GOENV")
	if file == "" {
		file = filepath.Join(configHome(env), "go", "env")
	}
	if !filepath.IsAbs(file) {
		return ""
	}
	text, err := boundedFile(file)
	if err != nil {
		return ""
	}
	return proc.LookupVariable(strings.Split(string(text), "\n"), name)
}

const maxBytes = 1 << 20

// boundedFile reads a regular file of at most maxBytes.
func boundedFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxBytes:
		return nil, errors.New("not a regular file of at most 1 MiB")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxBytes))
}
