package toolchain

import (
	"path/filepath"
	"slices"
	"strings"
)

// systemDirs are in every confined file system.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc"}

// area knows what is always visible, and what must never be shown as a whole.
type area struct {
	project []string // the directory of the project, as named and without links
	homes   []string // the user's home, as named and without links
}

func newArea(home, dir string) area {
	a := area{project: bothNames(dir)}
	if home != "" {
		a.homes = bothNames(home)
	}
	// If the project is the whole home, toolchains there are not part of it.
	if slices.ContainsFunc(a.project, a.tooWide) {
		a.project = nil
	}
	return a
}

// bothNames returns a path as named and, if that differs, without links.
func bothNames(path string) []string {
	names := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		names = append(names, real)
	}
	return withoutRepeats(names)
}

// ofProject reports whether a path lies in the project.
func (a area) ofProject(path string) bool {
	return slices.ContainsFunc(a.project, func(dir string) bool { return isBelow(dir, path) })
}

// isVisible reports whether a path can be seen without a bind.
func (a area) isVisible(path string) bool {
	return isSystem(path) || a.ofProject(path)
}

func isSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return isBelow(dir, path) })
}

// tooWide reports whether a directory is a home, holds one, or is the root or a
// directory in it.
func (a area) tooWide(dir string) bool {
	dir = filepath.Clean(dir)
	if dir == "/" || filepath.Dir(dir) == "/" {
		return true
	}
	if parent := filepath.Dir(dir); parent == "/home" || parent == "/Users" {
		return true
	}
	return slices.ContainsFunc(a.homes, func(home string) bool { return isBelow(dir, home) })
}

// sharedDirs are directories of a home in which many programs keep files, besides
// hidden ones.
var sharedDirs = []string{"go", "bin", "lib", "src", "snap", "Library", "Documents", "Desktop", "Downloads"}

// isPersonal reports whether many programs keep private files in a directory: it is a
// shared one of a home, or a hidden one anywhere.
func (a area) isPersonal(dir string) bool {
	base, up := filepath.Base(dir), filepath.Dir(dir)
	return a.tooWide(dir) || strings.HasPrefix(base, ".") ||
		strings.HasPrefix(filepath.Base(up), ".") && slices.Contains([]string{"share", "state", "lib", "config"}, base) ||
		slices.Contains(a.homes, up) && slices.Contains(sharedDirs, base)
}

// isBelow reports whether path is dir or is in it, by their names.
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// withoutNested sorts paths and leaves out each that is below another.
func withoutNested(paths []string) []string {
	sorted := slices.Clone(paths)
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(a+"/", b+"/") })
	var all []string
	for _, p := range sorted {
		if n := len(all); n == 0 || !isBelow(all[n-1], p) {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}
