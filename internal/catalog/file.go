package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

// DefinedNames returns the names of the loops that files of the workspace at root
// define, sorted. It opens no definition. If .loops cannot be listed, the error is a
// *loop.Fault.
func DefinedNames(root string) ([]string, error) {
	files, err := findFiles(root)
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	return names, err
}

// file is the definition of a loop, not opened.
type file struct {
	name string // of the loop
	info fs.FileInfo
}

func (f file) sortKey() Key { return Key{f.name, loop.ProtocolSpine} }

// findFiles finds all definitions, in the order of a listing.
func findFiles(root string) ([]file, error) {
	entries, err := os.ReadDir(filepath.Join(root, ".loops"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: loop.ExitUnreadable, What: "list loops", Why: err.Error(), Err: err, Fix: "put a readable folder there, or nothing",
		}
	}
	files := make([]file, 0, len(entries))
	for _, e := range entries {
		if info, err := os.Lstat(filepath.Join(root, DefinitionFile(e.Name()))); err == nil {
			files = append(files, file{e.Name(), info})
		}
	}
	return files, nil
}

// findFile finds the definition of one loop, as findFiles does; nil if missing.
func findFile(root, name string) (fs.FileInfo, error) {
	if name == "." || name == ".." || filepath.Base(name) != name {
		return nil, nil
	}
	info, err := os.Lstat(filepath.Join(root, DefinitionFile(name)))
	switch {
	case err == nil:
		return info, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	}
	_, err = findFiles(root) // For the same error if .loops cannot be listed.
	return nil, err
}

// ReadDefinition reads the definition of a loop from its file in the workspace at root.
// Findings with which the loop still runs are warnings. If there is any other, the
// error is a *loop.Fault and def has what could be read.
func ReadDefinition(root, name string) (def loop.Definition, warnings []string, err error) {
	rel := DefinitionFile(name)
	doc, source, err := definition.Load(filepath.Join(root, rel))
	if errors.Is(err, loop.ErrNotFound) {
		err = missingFault(name)
	}
	if err != nil {
		return loop.Definition{}, nil, err
	}
	def, findings := doc.Definition(name)
	if doc.Notice != "" {
		warnings = append(warnings, doc.Notice)
	}
	var problems []string
	for _, f := range findings {
		text := f.Render(rel, source)
		if f.Severity == readiness.SeverityError {
			problems = append(problems, text)
			continue
		}
		warnings = append(warnings, text)
	}
	if len(problems) > 0 {
		err = &loop.Fault{
			Exit: loop.ExitNotReady, What: name + " is not ready to run", Why: strings.Join(problems, "\n"), Fix: "correct " + rel,
		}
	}
	return def, warnings, err
}

// settleTime is the least age of a file that is cached. Clocks of file systems are
// coarse: a younger file may be written again without a new time.
const settleTime = 2 * time.Second

// cache keeps the results of ReadDefinition while the file has the same size and time.
type cache struct {
	now  func() time.Time
	mu   sync.Mutex
	kept map[string]*cachedFile // by name
}

// cachedFile is the result of reading a file.
type cachedFile struct {
	info     fs.FileInfo
	def      loop.Definition
	warnings []string
	problem  error
}

// readCached is ReadDefinition with the cache. Info describes the file as it is now.
func (c *cache) readCached(root, name string, info fs.FileInfo) (loop.Definition, []string, error) {
	c.mu.Lock()
	k, ok := c.kept[name]
	c.mu.Unlock()
	if ok && os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) {
		return k.def, k.warnings, k.problem
	}
	k = &cachedFile{info: info}
	k.def, k.warnings, k.problem = ReadDefinition(root, name)
	k.warnings = slices.Clip(k.warnings) // Who appends to them gets a copy.
	if !info.Mode().IsRegular() || c.now().Sub(info.ModTime()) < settleTime {
		return k.def, k.warnings, k.problem
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*cachedFile{}
	}
	c.kept[name] = k
	return k.def, k.warnings, k.problem
}
