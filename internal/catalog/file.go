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

// Names lists the loops that files of the workspace at root define, by name. No
// definition is opened. A .loops that cannot be listed is a *loop.Fault.
func Names(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, ".loops"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: loop.ExitUnreadable, What: "list loops", Why: err.Error(), Err: err, Fix: "put a readable folder there, or nothing",
		}
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(root, File(e.Name()))); err == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isDefined reports whether Names lists the name, without listing the others.
func isDefined(root, name string) (bool, error) {
	if name == "." || name == ".." || filepath.Base(name) != name {
		return false, nil
	}
	_, err := os.Lstat(filepath.Join(root, File(name)))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err == nil, nil
	}
	_, err = Names(root) // A folder that cannot be listed is told alike by all.
	return false, err
}

// Read reads the definition that a file of the workspace at root has for a loop.
// Findings that do not keep it from running come back beside it. Any other is an
// error, a *loop.Fault, beside what could be read.
func Read(root, name string) (def loop.Definition, warnings []string, err error) {
	rel := File(name)
	doc, source, err := definition.Load(filepath.Join(root, rel))
	if errors.Is(err, loop.ErrNotFound) {
		err = missing(name)
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

// settled is how old a file has to be so that whoever writes it once more gives it
// another time: clocks of file systems are coarse.
const settled = 2 * time.Second

// cache keeps what Read returned for as long as the file has the same size and time.
type cache struct {
	now  func() time.Time
	mu   sync.Mutex
	kept map[string]known // by name
}

// known is what is known of a file.
type known struct {
	info     fs.FileInfo
	def      loop.Definition
	warnings []string
	problem  error
}

func (c *cache) read(root, name string) (loop.Definition, []string, error) {
	info, err := os.Lstat(filepath.Join(root, File(name)))
	if err != nil {
		return Read(root, name)
	}
	c.mu.Lock()
	k, ok := c.kept[name]
	c.mu.Unlock()
	if ok && os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) {
		return k.def, k.warnings, k.problem
	}
	k = known{info: info}
	k.def, k.warnings, k.problem = Read(root, name)
	k.warnings = slices.Clip(k.warnings) // Who appends to them gets a copy.
	if !info.Mode().IsRegular() || c.now().Sub(info.ModTime()) < settled {
		return k.def, k.warnings, k.problem
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]known{}
	}
	c.kept[name] = k
	return k.def, k.warnings, k.problem
}
