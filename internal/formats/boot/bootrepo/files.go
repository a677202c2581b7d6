package bootrepo

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/git/object"
)

// Bounds of what is read of a boot repository.
const (
	maxFolders     = 20_000
	maxPaths       = 200_000
	maxSchemas     = 200
	maxSchemaBytes = 20 << 20 // of all schemas together
)

// StopLineName is the name of the file of stop lines.
const StopLineName = "STOP_LINES.md"

const schemasFolder = "schemas/"

// files are what a commit has of a contract, as they were read and not yet judged.
type files struct {
	Commit  string            `json:"commit"`
	Fetched time.Time         `json:"fetched"`
	Folder  string            `json:"folder"`            // of the contract; the top is empty
	Missing []string          `json:"missing,omitempty"` // paths in the repository
	Content map[string][]byte `json:"content"`           // by paths below the folder
	Refused map[string]string `json:"refused,omitempty"` // why a file of the contract is not read
	Several []string          `json:"several,omitempty"` // files of stop lines of which none is used
	Unfound string            `json:"unfound,omitempty"` // why no folder of a contract is found
	Lines   string            `json:"lines,omitempty"`   // the file of stop lines, below the folder
}

// readFiles reads the contract of a commit. BootPath is its folder; empty, it is looked
// for.
func readFiles(blobs *object.Blobs, commit, bootPath string) (*files, error) {
	enter := func(dir string) bool {
		return bootPath == "" || dir == bootPath || strings.HasPrefix(bootPath, dir+"/") || strings.HasPrefix(dir, bootPath+"/")
	}
	entries, all, err := blobs.Within(commit, maxFolders, enter)
	if err != nil {
		return nil, err
	}
	f := &files{Commit: commit, Content: map[string][]byte{}, Refused: map[string]string{}}
	if !all || len(entries) > maxPaths {
		f.Unfound = "it has too many files to look for the contract among them"
		return f, nil
	}
	regular := map[string]object.Entry{}
	var paths []string
	for _, e := range entries {
		if e.Mode = object.PlainMode(e.Mode); object.CheckPath(e.Path) != nil {
			continue
		}
		switch e.Mode {
		case object.ModeFile, object.ModeExec:
			regular[e.Path] = e
			paths = append(paths, e.Path)
		case object.ModeSymlink:
			f.Refused[e.Path] = "is a symbolic link, which is not followed"
		default:
			f.Refused[e.Path] = "is a submodule, which is not read"
		}
	}
	f.findFolder(bootPath, paths)
	if f.Unfound == "" {
		f.Missing = bootlink.MissingFiles(f.Folder, paths)
	}
	wanted := f.wantedFiles(paths)
	f.keepRefused(wanted)
	return f, f.read(blobs, wanted, regular)
}

// findFolder finds the folder of the contract among the paths of a repository.
func (f *files) findFolder(bootPath string, paths []string) {
	if bootPath != "" {
		f.Folder = bootPath
		return
	}
	folder, found := bootlink.ContractFolder(paths)
	f.Folder = folder
	if found {
		return
	}
	// One at the top that lacks something is told what.
	missing := bootlink.MissingFiles("", paths)
	if !slices.Contains(missing, bootlink.VersionFile) || !slices.Contains(missing, bootlink.RulesFile) {
		return
	}
	var versions []string
	for _, p := range paths {
		if path.Base(p) == bootlink.VersionFile {
			versions = append(versions, p)
		}
	}
	if slices.Sort(versions); len(versions) > 1 {
		f.Unfound = "several folders have a contract: " + strings.Join(versions[:min(len(versions), 5)], ", ")
		return
	}
	f.Unfound = fmt.Sprintf("no folder has a %s with contract/ and schemas/ beside it", bootlink.VersionFile)
}

// wantedFiles lists the files of the contract, and finds the file of stop lines.
func (f *files) wantedFiles(paths []string) []string {
	var wanted, lines []string
	for _, p := range paths {
		name, below := f.inFolder(p)
		switch {
		case !below:
		case name == bootlink.VersionFile, name == bootlink.RulesFile, strings.HasPrefix(name, schemasFolder) && strings.HasSuffix(name, ".json"):
			wanted = append(wanted, name)
		case path.Base(name) == StopLineName:
			lines = append(lines, name)
		}
	}
	for _, usual := range []string{StopLineName, "contract/" + StopLineName} {
		if slices.Contains(lines, usual) {
			lines = []string{usual}
		}
	}
	switch len(lines) {
	case 0:
	case 1:
		f.Lines = lines[0]
		wanted = append(wanted, f.Lines)
	default:
		f.Several = lines
	}
	return wanted
}

// inFolder returns a path of the repository as it is below the contract's folder.
func (f *files) inFolder(p string) (name string, below bool) {
	if f.Folder == "" {
		return p, true
	}
	return strings.CutPrefix(p, f.Folder+"/")
}

// keepRefused forgets links and submodules that are not in the way of the contract.
func (f *files) keepRefused(wanted []string) {
	refused := map[string]string{}
	for p, why := range f.Refused {
		name, below := f.inFolder(p)
		missing := slices.ContainsFunc(f.Missing, func(m string) bool { return m == p || strings.HasPrefix(m, p+"/") })
		isSchema := below && strings.HasPrefix(name, schemasFolder) && strings.HasSuffix(name, ".json")
		isLines := below && len(f.Several) == 0 && f.Lines == "" && (name == StopLineName || name == "contract/"+StopLineName)
		if missing || isSchema || isLines {
			refused[p] = why
		}
	}
	f.Refused = refused
	schemas := 0
	for _, name := range wanted {
		if strings.HasPrefix(name, schemasFolder) {
			schemas++
		}
	}
	if schemas > maxSchemas {
		f.Refused[path.Join(f.Folder, schemasFolder)] = fmt.Sprintf("has %d schemas, and at most %d are read", schemas, maxSchemas)
	}
}

// read reads files, each within its bound.
func (f *files) read(blobs *object.Blobs, wanted []string, entries map[string]object.Entry) error {
	var ids []string
	for _, name := range wanted {
		ids = append(ids, entries[path.Join(f.Folder, name)].ID)
	}
	total := int64(0)
	return blobs.Each(ids[:min(len(ids), maxSchemas+8)], func(i int, size int64, content io.Reader) error {
		name, limit := wanted[i], int64(bootlink.MaxBytes)
		if strings.HasPrefix(name, schemasFolder) {
			if limit = bootstate.MaxBytes; size <= limit {
				total += size
			}
		}
		switch p := path.Join(f.Folder, name); {
		case size > limit:
			f.Refused[p] = fmt.Sprintf("has %d bytes, and at most %d are read", size, limit)
			return nil
		case total > maxSchemaBytes:
			f.Refused[p] = fmt.Sprintf("is not read: the schemas have more than %d bytes together", maxSchemaBytes)
			return nil
		}
		text, err := io.ReadAll(content)
		f.Content[name] = text
		return err
	})
}
