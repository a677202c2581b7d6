package toolchain

import (
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

const (
	maxLibraryDepth = 6
	maxLoader       = 4 << 10
)

// showLibraries shows the libraries of a binary that are outside of the system and of its
// own installation. A file that is not an ELF binary has none.
func (r *resolver) showLibraries(path string, depth int) {
	if depth > maxLibraryDepth || r.seen["elf:"+path] {
		return
	}
	r.seen["elf:"+path] = true
	file, err := elf.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	if loader := loaderOf(file); loader != "" && isThere(loader) {
		r.showLibrary(loader, depth)
	}
	needs, err := file.ImportedLibraries()
	if err != nil {
		return
	}
	dirs := r.librarySearchDirs(file, path)
	for _, name := range needs {
		found := findLibrary(dirs, name)
		if found == "" {
			continue
		}
		r.showLibrary(found, depth)
		if list := proc.LookupVariable(r.env, "LD_LIBRARY_PATH"); slices.Contains(filepath.SplitList(list), filepath.Dir(found)) {
			r.addVariable("LD_LIBRARY_PATH", list)
		}
	}
}

// showLibrary shows one library, with its own libraries.
func (r *resolver) showLibrary(path string, depth int) {
	names, err := linkStages(path)
	if err != nil {
		return
	}
	real := names[len(names)-1]
	if r.area.ofProject(real) {
		return
	}
	in := r.installationOf(real)
	for _, name := range names {
		r.showName(name, in)
	}
	r.showLibraries(real, depth+1)
}

// loaderOf returns the program that the kernel starts for a binary, or an empty
// string.
func loaderOf(file *elf.File) string {
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			text, err := io.ReadAll(io.LimitReader(p.Open(), maxLoader))
			if loader := strings.TrimRight(string(text), "\x00"); err == nil && filepath.IsAbs(loader) {
				return loader
			}
		}
	}
	return ""
}

// librarySearchDirs lists the directories that the loader searches, in its order.
func (r *resolver) librarySearchDirs(file *elf.File, path string) []string {
	old := libraryPaths(file, elf.DT_RPATH, path)
	now := libraryPaths(file, elf.DT_RUNPATH, path)
	if len(now) > 0 {
		old = nil // The loader ignores it then.
	}
	given := proc.PathDirs(proc.LookupVariable(r.env, "LD_LIBRARY_PATH"))
	return slices.Concat(old, given, now, configuredDirs())
}

func libraryPaths(file *elf.File, tag elf.DynTag, path string) []string {
	values, err := file.DynString(tag)
	if err != nil {
		return nil
	}
	origin := strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path))
	var all []string
	for _, value := range values {
		for _, dir := range filepath.SplitList(value) {
			if dir = origin.Replace(dir); filepath.IsAbs(dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}

// configuredDirs lists the directories outside of the system in which the loader is
// configured to search.
func configuredDirs() []string {
	files, err := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	if err != nil {
		return nil
	}
	var all []string
	for _, name := range append(files, "/etc/ld.so.conf") {
		text, err := boundedFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if dir := strings.TrimSpace(line); filepath.IsAbs(dir) && !isSystem(dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}

func findLibrary(dirs []string, name string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}
