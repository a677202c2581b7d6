// Package orgs carries out the verbs for organisations of agents: makes their files, checks
// them, says how each agent stands, and takes over a tree that exists elsewhere.
//
// Only Init and Import write, and only files of the checkout that are not there yet. The
// package commits nothing and starts no run; what the files mean is known to orgdef.
package orgs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Service carries out the verbs for one workspace.
type Service struct{ ws *lookup.Workspace }

// New makes the service.
func New(ws *lookup.Workspace) *Service { return &Service{ws} }

// NewFile is a file that is made.
type NewFile struct {
	Path string `json:"path"` // relative to the workspace, with slashes
	Text string `json:"text,omitempty"`
}

// writeNew makes files. None may be there.
func (s *Service) writeNew(files []NewFile) error {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		err := durable.CreateIn(root, f.Path, []byte(f.Text))
		if errors.Is(err, fs.ErrExist) {
			return takenFault(f.Path)
		}
		if err != nil {
			return &loop.Fault{Exit: loop.ExitError, What: "write " + f.Path, Why: err.Error(), Err: err, Fix: "see that the folder can be written, and do this again"}
		}
	}
	return nil
}

func takenFault(names ...string) error {
	return &loop.Fault{
		Exit: loop.ExitMissing, What: fmt.Sprintf("already there: %s", strings.Join(names, ", ")), Why: "no file is written over",
		Fix: "{1} says whether the files are in order", Actions: []loop.Command{loop.PawlCommand("org check")},
	}
}

// isThere reports whether anything has a name in the workspace.
func (s *Service) isThere(name string) bool {
	_, err := os.Lstat(filepath.Join(s.ws.Root, filepath.FromSlash(name)))
	return !errors.Is(err, fs.ErrNotExist)
}

// findAgents lists the folders of agents below root, sorted.
func findAgents(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, orgdef.AgentsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &loop.Fault{Exit: loop.ExitUnreadable, What: "list agents", Why: err.Error(), Err: err, Fix: "put a readable folder there, or nothing"}
	}
	var ids []string
	for _, e := range entries {
		for _, name := range []string{orgdef.LoopFile, orgdef.Manifest} {
			if _, err := os.Lstat(filepath.Join(root, orgdef.AgentsDir, e.Name(), name)); err == nil {
				ids = append(ids, e.Name())
				break
			}
		}
	}
	return ids, nil
}
