package loops

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Found is a definition on disk, not yet read.
type Found struct {
	Name  string // of the folder that it lies in
	Path  string // absolute
	Shown string // for people: relative to the working directory if that is shorter

	formats format.List
	root    string        // of the workspace of source
	source  format.Source // of which format it is; the zero Source: Path alone defines it
}

// FindDefinitions finds the definitions that arg means in dir: the path of a definition
// or of the folder with one, the name of a loop, or, if it is empty, all loops. It
// needs no repository: loops are in .loops of dir or of the nearest folder above it
// that has one. The error is a *loop.Fault with exit status 3, or 2 if arg names several loops.
func FindDefinitions(formats format.List, dir, arg string) ([]Found, error) {
	root := loopsRoot(formats, dir)
	if arg == "" {
		return everyDefinition(formats, dir, root)
	}
	if path := pathOnDisk(formats, dir, arg); path != "" {
		return []Found{foundAt(formats, dir, path)}, nil
	}
	there, err := formats.FindNamed(root, arg)
	if protocol, name, both := strings.Cut(arg, ":"); both && len(there) == 0 && err == nil {
		there, err = formats.FindNamed(root, name)
		there = slices.DeleteFunc(there, func(s format.Source) bool { return s.Format != protocol })
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(there) == 1:
		return []Found{foundAs(formats, dir, root, there[0])}, nil
	case len(there) > 1:
		var choice []string
		for _, s := range there {
			choice = append(choice, s.Format+":"+s.Name)
		}
		return nil, catalog.AmbiguousFault(arg, choice)
	}
	if err := formats.MissingNamed(root, arg); err != nil {
		return nil, err
	}
	return nil, noDefinitionFault(formats, dir, root, arg)
}

// pathOnDisk returns the definition that arg names as a path; empty if missing.
func pathOnDisk(formats format.List, dir, arg string) string {
	path := arg
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case !info.IsDir():
		return path
	}
	if config := filepath.Join(path, definition.ConfigFile); isThere(config) {
		return config
	}
	root := filepath.Dir(filepath.Dir(path))
	there, _ := formats.FindNamed(root, filepath.Base(path)) // What cannot be listed is not there.
	for _, s := range there {
		if file := filepath.Join(root, s.Edited()); filepath.Dir(file) == path {
			return file
		}
	}
	return ""
}

func isThere(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// loopsRoot returns the nearest folder from dir upwards that has .loops, .git or a file by
// which a format knows a workspace, or else dir.
func loopsRoot(formats format.List, dir string) string {
	marks := append(formats.Marks(), ".git")
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, definition.LoopsDir)); err == nil && info.IsDir() {
			return at
		}
		if slices.ContainsFunc(marks, func(name string) bool { return isThere(filepath.Join(at, name)) }) {
			return at
		}
		if filepath.Dir(at) == at {
			return dir
		}
	}
}

func everyDefinition(formats format.List, dir, root string) ([]Found, error) {
	there, err := formats.Find(root)
	if err != nil {
		return nil, err
	}
	all := make([]Found, 0, len(there))
	for _, s := range there {
		all = append(all, foundAs(formats, dir, root, s))
	}
	if len(all) == 0 {
		return nil, &loop.Fault{
			Exit: loop.ExitNotFound, What: "there is no loop in " + root, Err: loop.ErrNotFound,
			Why:     "no folder of .loops holds a " + definition.ConfigFile,
			Fix:     "make one: {1}, or {2}",
			Actions: []loop.Command{loop.PawlCommand("init"), loop.PawlCommand("new", "NAME").WithFlag("pattern", "ci-watch").WithBlanks("NAME")},
		}
	}
	return all, nil
}

func newFound(dir, path string) Found {
	f := Found{Name: filepath.Base(filepath.Dir(path)), Path: path, Shown: path}
	if rel, err := filepath.Rel(dir, path); err == nil && len(rel) < len(path) {
		f.Shown = rel
	}
	return f
}

// foundAs is a definition of the workspace at root.
func foundAs(formats format.List, dir, root string, s format.Source) Found {
	f := newFound(dir, filepath.Join(root, s.Edited()))
	f.Name, f.formats, f.root, f.source = s.Name, formats, root, s
	return f
}

// foundAt is the definition at a path, which may be one of a workspace.
func foundAt(formats format.List, dir, path string) Found {
	f := newFound(dir, path)
	f.formats = formats
	for _, root := range []string{filepath.Dir(path), f.Root(""), filepath.Dir(filepath.Dir(filepath.Dir(path)))} {
		if root == "" {
			continue
		}
		for _, name := range append(formats.OnlyNames(), f.Name) {
			there, _ := formats.FindNamed(root, name) // What cannot be listed is not there.
			for _, s := range there {
				if filepath.Join(root, s.Edited()) == path {
					return foundAs(formats, dir, root, s)
				}
			}
		}
	}
	return f
}

// Root returns the folder that contains .loops, to which the paths of a definition are
// relative, or otherwise if the definition is in no .loops.
func (f Found) Root(otherwise string) string {
	if f.root != "" {
		return f.root
	}
	if loops := filepath.Dir(filepath.Dir(f.Path)); filepath.Base(loops) == definition.LoopsDir {
		return filepath.Dir(loops)
	}
	return otherwise
}

func noDefinitionFault(formats format.List, dir, root, arg string) error {
	f := &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no loop and no file %q", arg), Err: loop.ErrNotFound,
		Why: fmt.Sprintf("neither %s nor %s is there", arg, filepath.Join(".loops", arg, definition.ConfigFile)),
		Fix: "make it: {1}", Actions: []loop.Command{loop.PawlCommand("new", filepath.Base(arg))},
	}
	if filepath.Base(arg) != arg {
		f.Why = "there is nothing at this path"
	}
	if info, err := os.Stat(filepath.Join(dir, arg)); err == nil && info.IsDir() {
		f.Why = "the folder holds no " + definition.ConfigFile
	}
	if names, err := formats.Names(root); err == nil && len(names) > 0 {
		f = f.WithAdvice(loop.Advise(readiness.Suggest(arg, names)))
	}
	return f
}
