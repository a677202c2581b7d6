package catalog

import (
	"crypto/sha256"
	"encoding/hex"
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
	text, err := readText(root, name)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	return parseText(root, name, text)
}

// ReadFile is ReadDefinition for a file wherever it lies, of a loop with that name.
func ReadFile(path, name string) (def loop.Definition, warnings []string, err error) {
	text, err := definition.Read(path)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	return parseFile(path, path, name, text)
}

// readText reads the file of a loop.
func readText(root, name string) ([]byte, error) {
	text, err := definition.Read(filepath.Join(root, DefinitionFile(name)))
	if errors.Is(err, loop.ErrNotFound) {
		err = missingFault(name)
	}
	return text, err
}

// parseText is ReadDefinition for a file that was read.
func parseText(root, name string, text []byte) (def loop.Definition, warnings []string, err error) {
	rel := DefinitionFile(name)
	return parseFile(filepath.Join(root, rel), rel, name, text)
}

// parseFile is parseText for a file at a path, which messages call rel.
func parseFile(path, rel, name string, text []byte) (def loop.Definition, warnings []string, err error) {
	doc, err := definition.Parse(path, text)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	def, findings := doc.Definition(name)
	if doc.Notice != "" {
		warnings = append(warnings, doc.Notice)
	}
	var problems []string
	for _, f := range findings {
		said := f.Render(rel, text)
		if f.Severity == readiness.SeverityError {
			problems = append(problems, said)
			continue
		}
		warnings = append(warnings, said)
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

// cache keeps what was read while the file has the same size and time.
type cache struct {
	now     func() time.Time
	version string // of this pawl: another one may judge a file differently
	mu      sync.Mutex
	kept    map[string]*reading // by name
}

// reading is what was read of a file.
type reading struct {
	info     fs.FileInfo
	source   string // digest of the file and of the pawl that judges it; empty if the file is missing
	parsed   bool   // the others are set
	def      loop.Definition
	warnings []string
	problem  error
}

// read reads the definition of a loop, or finds it in the cache. Info describes the file
// as it is now. If the digest is the known one, the file is not parsed.
func (c *cache) read(root, name string, info fs.FileInfo, known string) reading {
	c.mu.Lock()
	k, ok := c.kept[name]
	c.mu.Unlock()
	if ok && os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) && (k.parsed || k.source == known) {
		return *k
	}
	k = &reading{info: info}
	text, err := readText(root, name)
	k.source = c.digest(text, err)
	switch {
	case err != nil:
		k.parsed, k.problem = true, err
	case k.source != known:
		k.parsed = true
		k.def, k.warnings, k.problem = parseText(root, name, text)
		k.warnings = slices.Clip(k.warnings) // Who appends to them gets a copy.
	}
	if !info.Mode().IsRegular() || c.now().Sub(info.ModTime()) < settleTime {
		return *k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*reading{}
	}
	c.kept[name] = k
	return *k
}

// forgetParsed keeps only what tells whether the file of a loop has changed.
func (c *cache) forgetParsed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[name]; k != nil && k.problem == nil {
		c.kept[name] = &reading{info: k.info, source: k.source}
	}
}

// digest returns the source of a file with this text, or which cannot be read.
func (c *cache) digest(text []byte, err error) string {
	if errors.Is(err, loop.ErrNotFound) {
		return ""
	}
	head := c.version + "\x00"
	if err != nil {
		head += "\x00" + err.Error()
	}
	h := sha256.New()
	_, _ = h.Write([]byte(head))
	_, _ = h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
