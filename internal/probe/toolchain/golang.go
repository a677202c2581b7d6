package toolchain

import (
	"errors"
	"go/version"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/proc"
)

func goWord(word string) bool { return word == "go" || word == "gofmt" }

// goVersion is that of the installation, go1.26.8, or empty.
func goVersion(root string) string {
	text, err := boundedFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first)
}

// golang hands on what moves the installation and the modules.
func (r *resolver) golang(p needed) {
	if root := proc.Variable(r.env, "GOROOT"); filepath.IsAbs(root) {
		r.showTree(root)
		r.setenv("GOROOT", root)
	}
	if p.shim != "goenv" || proc.Variable(r.env, "GOENV_DISABLE_GOPATH") == "1" {
		return
	}
	// goenv gives each version a directory of modules of its own.
	if path := r.goenvPath(rootOf(p.real)); path != "" {
		r.setenv("GOPATH", path)
	}
}

func (r *resolver) goenvPath(root string) string {
	prefix := proc.Variable(r.env, "GOENV_GOPATH_PREFIX")
	if prefix == "" && r.prober.Home != "" {
		prefix = filepath.Join(r.prober.Home, "go")
	}
	number := strings.TrimPrefix(goVersion(root), "go")
	if !filepath.IsAbs(prefix) || number == "" {
		return ""
	}
	return filepath.Join(prefix, number)
}

// goAsked is the file of the go command that answers in the directory: go
// itself is a shim of the toolchain that go.mod asks for.
func (r *resolver) goAsked(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, nil //nolint:nilerr // following the same path says what is wrong with it
	}
	have := goVersion(rootOf(real))
	file, want := goWanted(r.dir)
	if have == "" || want == "" || version.Compare(want, have) <= 0 {
		return path, nil
	}
	choice := goSetting(r.env, "GOTOOLCHAIN")
	dir := filepath.Join(goModCache(r.env), "golang.org", "toolchain@v0.0.1-"+want+"."+runtime.GOOS+"-"+runtime.GOARCH)
	if choice == "local" || !isThere(filepath.Join(dir, "bin", "go")) {
		return "", r.fault("go", file+" asks for "+want+", and only "+have+" is installed", "GOTOOLCHAIN=auto go version, in "+r.dir+": it fetches "+want)
	}
	return filepath.Join(dir, "bin", filepath.Base(path)), nil
}

var goLine = regexp.MustCompile(`(?m)^(?:go\s+(\d[0-9a-z.]*)|toolchain\s+(go\d[0-9a-z.]*))\s*(?://.*)?$`)

// goWanted is the newest version that go.work or go.mod names, in dir or above
// it, and the file that does.
func goWanted(dir string) (file, want string) {
	for {
		for _, name := range []string{"go.work", "go.mod"} {
			file = filepath.Join(dir, name)
			text, err := boundedFile(file)
			if err != nil {
				continue
			}
			for _, m := range goLine.FindAllStringSubmatch(string(text), -1) {
				if v := goNumber(m); version.Compare(v, want) > 0 {
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

func goNumber(match []string) string {
	if match[2] != "" {
		return match[2]
	}
	return "go" + match[1]
}

// goSetting is a variable of the go command: from the environment, or from the
// file that go env -w writes.
func goSetting(env []string, name string) string {
	if value := proc.Variable(env, name); value != "" {
		return value
	}
	file := proc.Variable(env, "GOENV")
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
	return proc.Variable(strings.Split(string(text), "\n"), name)
}

const maxBytes = 1 << 20

// boundedFile reads a regular file that is not larger than a manifest may be.
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
