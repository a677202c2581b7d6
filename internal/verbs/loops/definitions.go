package loops

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Found is a definition on disk, not yet read.
type Found struct {
	Name  string // of the folder that it lies in
	Path  string // absolute
	Shown string // for people: relative to the working directory if that is shorter
	Link  string // the AGENT_LINK.md that makes the loop, absolute; empty: Path alone defines it
	Agent string // the workspace of an agent, absolute; empty: the loop is none in agents/
}

// FindDefinitions finds the definitions that arg means in dir: the path of a definition
// or of the folder with one, the name of a loop, or, if it is empty, all loops. It
// needs no repository: loops are in .loops of dir or of the nearest folder above it
// that has one. The error is a *loop.Fault with exit status 3, or 2 if arg names several loops.
func FindDefinitions(dir, arg string) ([]Found, error) {
	root := loopsRoot(dir)
	if arg == "" {
		return everyDefinition(dir, root)
	}
	if path := pathOnDisk(dir, arg); path != "" {
		return []Found{foundAt(dir, path)}, nil
	}
	there, err := catalog.DefinedAs(root, arg)
	if protocol, name, both := strings.Cut(arg, ":"); both && len(there) == 0 && err == nil {
		there, err = catalog.DefinedAs(root, name)
		there = slices.DeleteFunc(there, func(d catalog.Definition) bool { return d.Protocol != protocol })
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(there) == 1:
		return []Found{foundAs(dir, root, there[0])}, nil
	case len(there) > 1:
		var choice []string
		for _, d := range there {
			choice = append(choice, d.Protocol+":"+d.Name)
		}
		return nil, catalog.AmbiguousFault(arg, choice)
	case arg == bootdef.Name, arg == loop.ProtocolBoot+":"+bootdef.Name:
		return nil, bootdef.MissingFault(root)
	}
	return nil, noDefinitionFault(dir, root, arg)
}

// pathOnDisk returns the definition that arg names as a path; empty if missing.
func pathOnDisk(dir, arg string) string {
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
	names := []string{definition.ConfigFile}
	if filepath.Base(filepath.Dir(path)) == orgdef.AgentsDir {
		names = append(names, orgdef.LoopFile, orgdef.Manifest)
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			return filepath.Join(path, name)
		}
	}
	return ""
}

// loopsRoot returns the nearest folder from dir upwards that has .loops, AGENT_LINK.md,
// org.yaml or .git, or else dir.
func loopsRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, ".loops")); err == nil && info.IsDir() {
			return at
		}
		for _, name := range []string{bootdef.LinkFile, orgdef.OrgFile, ".git"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
		if filepath.Dir(at) == at {
			return dir
		}
	}
}

func everyDefinition(dir, root string) ([]Found, error) {
	there, err := catalog.Defined(root)
	if err != nil {
		return nil, err
	}
	all := make([]Found, 0, len(there))
	for _, d := range there {
		all = append(all, foundAs(dir, root, d))
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
func foundAs(dir, root string, d catalog.Definition) Found {
	f := newFound(dir, filepath.Join(root, d.File))
	f.Name = d.Name
	switch d.Protocol {
	case loop.ProtocolBoot:
		f.Link = filepath.Join(root, bootdef.LinkFile)
	case loop.ProtocolTasks:
		f.Agent = root
	}
	return f
}

// foundAt is the definition at a path, which may be one of a workspace.
func foundAt(dir, path string) Found {
	f := newFound(dir, path)
	for _, root := range []string{filepath.Dir(path), f.Root(""), filepath.Dir(filepath.Dir(filepath.Dir(path)))} {
		if root == "" {
			continue
		}
		for _, name := range []string{bootdef.Name, f.Name} {
			there, _ := catalog.DefinedAs(root, name) // Of a loop in .loops the path says enough.
			for _, d := range there {
				if filepath.Join(root, d.File) == path && d.Protocol != loop.ProtocolSpine {
					return foundAs(dir, root, d)
				}
			}
		}
	}
	return f
}

// Root returns the folder that contains .loops, to which the paths of a definition are
// relative, or otherwise if the definition is in no .loops.
func (f Found) Root(otherwise string) string {
	switch {
	case f.Link != "":
		return filepath.Dir(f.Link)
	case f.Agent != "":
		return f.Agent
	}
	if loops := filepath.Dir(filepath.Dir(f.Path)); filepath.Base(loops) == ".loops" {
		return filepath.Dir(loops)
	}
	return otherwise
}

func noDefinitionFault(dir, root, arg string) error {
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
	if names, err := catalog.DefinedNames(root); err == nil && len(names) > 0 {
		f = f.WithAdvice(loop.Advise(readiness.Suggest(arg, names)))
	}
	return f
}
