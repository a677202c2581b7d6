package boots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// writer writes files of the checkout, and follows no link out of it.
type writer struct{ root *os.Root }

// openWriter opens the checkout for writing.
func (s *Service) openWriter() (writer, func() error, error) {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return writer{}, nil, err
	}
	return writer{root}, root.Close, nil
}

// create makes a file that is not there yet.
func (w writer) create(name string, text []byte) error {
	err := durable.CreateIn(w.root, name, text)
	if errors.Is(err, fs.ErrExist) {
		return takenFault(name)
	}
	if err != nil {
		return writeFault(name, err)
	}
	return nil
}

// replace puts a new text in the place of a file whose text is still the old one.
func (w writer) replace(name string, before, text []byte) error {
	now, err := w.root.ReadFile(filepath.FromSlash(name))
	if err != nil || !bytes.Equal(now, before) {
		return &loop.Fault{
			Exit: loop.ExitHeld, What: "write " + name, Why: "it was changed by somebody else meanwhile", Err: err, Fix: "look at it, and do this again",
		}
	}
	half := name + ".pawl-new"
	if err := w.root.Remove(filepath.FromSlash(half)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writeFault(name, err)
	}
	if err := w.create(half, text); err != nil {
		return err
	}
	if err := w.root.Rename(filepath.FromSlash(half), filepath.FromSlash(name)); err != nil {
		return writeFault(name, errors.Join(err, w.root.Remove(filepath.FromSlash(half))))
	}
	return durable.SyncFolderIn(w.root, path.Dir(name))
}

func writeFault(name string, err error) error {
	return &loop.Fault{Exit: loop.ExitError, What: "write " + name, Why: err.Error(), Err: err, Fix: "see that the folder can be written, and do this again"}
}

func takenFault(names ...string) error {
	return &loop.Fault{
		Exit: loop.ExitMissing, What: fmt.Sprintf("already there: %s", strings.Join(names, ", ")), Why: "no file is written over",
		Fix: "{1} says whether the files are in order; move them away to begin anew", Actions: []loop.Command{loop.PawlCommand("boot check")},
	}
}
