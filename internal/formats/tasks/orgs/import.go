package orgs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ImportRequest names a tree that is taken over.
type ImportRequest struct {
	Dir  string `json:"dir"`  // absolute, or relative to Base
	Base string `json:"base"` // the folder at which a relative path begins
}

// Imported is what Import would take over or has taken over, schema pawl.org-import/v1.
type Imported struct {
	Schema  string    `json:"schema"`
	Dir     string    `json:"dir"`
	Agents  []string  `json:"agents"`
	Files   []NewFile `json:"files"` // that are copied, byte for byte; their text is not shown
	Kept    []string  `json:"kept"`  // files that are here already, and stay as they are
	Left    []Left    `json:"left"`  // what is not taken over
	Check   Checked   `json:"check"` // of the tree that is taken over
	Written bool      `json:"written"`
}

// Left is something in a tree that is not taken over.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// PlanImport says what Import would do, and writes nothing.
func (s *Service) PlanImport(_ context.Context, r ImportRequest) (Imported, error) {
	v, err := s.planImport(r)
	for i := range v.Files {
		v.Files[i].Text = ""
	}
	return v, err
}

func (s *Service) planImport(r ImportRequest) (Imported, error) {
	v := Imported{Schema: "pawl.org-import/v1", Dir: r.Dir, Agents: []string{}, Files: []NewFile{}, Kept: []string{}, Left: []Left{}}
	dir := r.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.Base, dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return v, &loop.Fault{Exit: loop.ExitNotFound, What: "import " + r.Dir, Why: "there is no such folder", Err: loop.ErrNotFound, Fix: "name the folder that has agents/ in it"}
	}
	ids, err := findAgents(dir)
	if err == nil && len(ids) == 0 {
		err = NoAgents(dir)
	}
	if err != nil {
		return v, err
	}
	v.Agents = ids
	if v.Check, err = checkTree(dir); err != nil {
		return v, err
	}
	for _, name := range orgdef.SharedFiles {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			s.take(&v, dir, name)
		}
	}
	for _, id := range ids {
		entries, err := os.ReadDir(filepath.Join(dir, orgdef.AgentsDir, id))
		if err != nil {
			v.Left = append(v.Left, Left{orgdef.AgentsDir + "/" + id, err.Error()})
			continue
		}
		for _, e := range entries {
			s.take(&v, dir, orgdef.AgentFile(id, e.Name()))
		}
	}
	return v, nil
}

// take plans one file of a tree.
func (s *Service) take(v *Imported, dir, name string) {
	at := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Lstat(at)
	switch {
	case err != nil:
		v.Left = append(v.Left, Left{name, err.Error()})
		return
	case info.IsDir():
		v.Left = append(v.Left, Left{name + "/", "it is a folder"})
		return
	case info.Mode()&fs.ModeSymlink != 0 || !info.Mode().IsRegular():
		v.Left = append(v.Left, Left{name, "it is a link, or no regular file"})
		return
	case filepath.Base(name) == orgdef.PausedFile:
		v.Left = append(v.Left, Left{name, "it is a kill switch"})
		return
	}
	if s.isThere(name) {
		v.Kept = append(v.Kept, name)
		return
	}
	f, err := projection.ReadFile(at, maxFile)
	switch {
	case err != nil:
		v.Left = append(v.Left, Left{name, err.Error()})
	case f.TooBig:
		v.Left = append(v.Left, Left{name, fmt.Sprintf("it has more than %d bytes", maxFile)})
	case !f.Exists:
		v.Left = append(v.Left, Left{name, "it is gone"})
	default:
		v.Files = append(v.Files, NewFile{Path: name, Text: f.Content})
	}
}

// Import copies the files of a tree, of which none is here yet. A tree that is the workspace
// itself stays as it is.
func (s *Service) Import(_ context.Context, r ImportRequest) (Imported, error) {
	v, err := s.planImport(r)
	if err == nil {
		err = s.writeNew(v.Files)
	}
	v.Written = err == nil
	for i := range v.Files {
		v.Files[i].Text = ""
	}
	return v, err
}
