package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// survey is one look at a repository.
type survey struct {
	root     fs.FS
	problems []Problem
}

func (s *survey) addProblem(file, why string) {
	s.problems = append(s.problems, Problem{File: file, Why: why})
}

// folder is a directory and the names in it.
type folder struct {
	dir   string
	names map[string]fs.FileMode // the type of each entry, without following links
}

// has reports whether there is something other than a directory with the name.
func (f folder) has(name string) bool {
	mode, ok := f.names[name]
	return ok && !mode.IsDir()
}

// hasDir reports whether there is a directory with the name. A link to a
// directory does not count.
func (f folder) hasDir(name string) bool {
	mode, ok := f.names[name]
	return ok && mode.IsDir()
}

// firstOf returns the first of the names that exists, or an empty string.
func (f folder) firstOf(names ...string) string {
	for _, name := range names {
		if f.has(name) {
			return name
		}
	}
	return ""
}

// filesEndingIn lists the files whose names end with one of the suffixes, sorted.
func (f folder) filesEndingIn(suffixes ...string) []string {
	var all []string
	for name, mode := range f.names {
		if !mode.IsDir() && slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) }) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// pathOf returns the path of an entry, or of the folder itself, relative to the root.
func (f folder) pathOf(name string) string { return path.Join(f.dir, name) }

// listFolders lists the root and the directories below it that may hold a project,
// breadth first.
func (s *survey) listFolders() []folder {
	all := []folder{}
	level := []string{"."}
	for depth := 0; depth <= maxDepth && len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			if len(all) == maxFolders {
				s.addProblem(dir, fmt.Sprintf("not looked at, and what follows neither: more than %d directories", maxFolders))
				return all
			}
			f, ok := s.listFolder(dir)
			if !ok {
				continue
			}
			all = append(all, f)
			next = append(next, f.subfolders()...)
		}
		level = next
	}
	return all
}

// listFolder reads the names of a directory.
func (s *survey) listFolder(dir string) (folder, bool) {
	entries, err := readDir(s.root, dir)
	if err != nil {
		s.addProblem(dir, withoutPath(err))
		return folder{}, false
	}
	if len(entries) > maxEntries {
		s.addProblem(dir, fmt.Sprintf("more than %d entries; some were not looked at", maxEntries))
		entries = entries[:maxEntries]
	}
	names := make(map[string]fs.FileMode, len(entries))
	for _, e := range entries {
		names[e.Name()] = e.Type()
	}
	return folder{dir: dir, names: names}, true
}

// readDir reads at most maxEntries+1 entries: a directory may have millions.
func readDir(root fs.FS, dir string) ([]fs.DirEntry, error) {
	file, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list, ok := file.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("not a directory")
	}
	entries, err := list.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return entries, nil
}

// skippedDirs are names of directories that hold no project of the repository's own.
var skippedDirs = []string{
	"node_modules", "vendor", "third_party", "testdata", "fixtures", "target", "dist", "build", "out", "bin", "obj",
	"venv", "env", "site-packages", "__pycache__", "coverage", "deps", "_build", "Pods",
	"docs", "doc", "example", "examples", "sample", "samples", "template", "templates",
}

// subfolders lists the directories of f that may hold a project, sorted.
func (f folder) subfolders() []string {
	var all []string
	for name, mode := range f.names {
		if mode.IsDir() && name[0] != '.' && !slices.Contains(skippedDirs, name) && isPlain(name) {
			all = append(all, f.pathOf(name))
		}
	}
	slices.Sort(all)
	return all
}

// isPlain reports whether a name can be written into a definition.
func isPlain(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// place is a directory of a survey, as detectors see it.
type place struct {
	*survey
	folder
}

// read returns a file of the place. It records a Problem if the file exists and
// cannot be read.
func (p *place) read(name string) ([]byte, bool) {
	if _, ok := p.names[name]; !ok {
		return nil, false
	}
	data, err := readFile(p.root, p.pathOf(name))
	if err != nil {
		p.addProblem(p.pathOf(name), withoutPath(err))
		return nil, false
	}
	return data, true
}

func readFile(root fs.FS, name string) ([]byte, error) {
	// Opening a FIFO would wait for its writer.
	info, err := fs.Stat(root, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("larger than %d KiB", maxBytes>>10)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("larger than %d KiB", maxBytes>>10)
	}
	return data, err
}

// withoutPath returns the text of err without the path, which the Problem names.
func withoutPath(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// decode reads a manifest into v. It reports false if the manifest is missing or
// malformed; a malformed one becomes a Problem.
func (p *place) decode(name string, v any) bool {
	data, ok := p.read(name)
	if !ok {
		return false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	err := errors.New("not valid UTF-8")
	if utf8.Valid(data) {
		err = parseManifest(name, data, v)
	}
	if err != nil {
		p.addProblem(p.pathOf(name), err.Error())
	}
	return err == nil
}

func parseManifest(name string, data []byte, v any) error {
	if strings.HasSuffix(name, ".toml") || name == "Pipfile" {
		err := toml.Unmarshal(data, v)
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, _ := e.Position()
			return fmt.Errorf("line %d: %w", row, err)
		}
		return err
	}
	err := json.Unmarshal(data, v)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", lineAt(data, e.Offset), err)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d: %s is a JSON %s", lineAt(data, e.Offset), cmp.Or(e.Field, "the document"), e.Value)
	}
	return err
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}
