package toolchain

import (
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/proc"
)

const (
	maxLibraryDepth = 6
	maxLoader       = 4 << 10
)

// libraries shows the libraries of a binary that are outside of the system and of its
// own installation. A file that is not an ELF binary has none.
func (r *resolver) libraries(path string, depth int) {
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
		r.library(loader, depth)
	}
	needs, err := file.ImportedLibraries()
	if err != nil {
		return
	}
	dirs := r.searched(file, path)
	for _, name := range needs {
		found := foundIn(dirs, name)
		if found == "" {
			continue
		}
		r.library(found, depth)
		if list := proc.Variable(r.env, "LD_LIBRARY_PATH"); slices.Contains(filepath.SplitList(list), filepath.Dir(found)) {
			r.setenv("LD_LIBRARY_PATH", list)
		}
	}
}

// library shows one library, with its own libraries.
func (r *resolver) library(path string, depth int) {
	names, err := stages(path)
	if err != nil {
		return
	}
	real := names[len(names)-1]
	if r.area.ofProject(real) {
		return
	}
	in := r.installation(real)
	for _, name := range names {
		r.show(name, in)
	}
	r.libraries(real, depth+1)
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

// searched lists the directories that the loader searches, in its order.
func (r *resolver) searched(file *elf.File, path string) []string {
	old := paths(file, elf.DT_RPATH, path)
	now := paths(file, elf.DT_RUNPATH, path)
	if len(now) > 0 {
		old = nil // The loader ignores it then.
	}
	given := proc.PathDirs(proc.Variable(r.env, "LD_LIBRARY_PATH"))
	return slices.Concat(old, given, now, configured())
}

func paths(file *elf.File, tag elf.DynTag, path string) []string {
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

// configured lists the directories outside of the system in which the loader is
// configured to search.
func configured() []string {
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

func foundIn(dirs []string, name string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}
