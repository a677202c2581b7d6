package loops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// ScaffoldRequest says which loop to make, and where.
type ScaffoldRequest struct {
	format.LoopRequest
	Work   string // working directory; empty: the process's
	Dir    string // folder of loops, relative to Work; empty: .loops
	Force  bool   // replace the four files in a folder that is not empty, and keep copies of them
	DryRun bool   // check everything and write nothing
}

// Scaffolded is a new loop, schema pawl.new/v1.
type Scaffolded struct {
	Schema  string           `json:"schema"`
	Loop    string           `json:"loop"`
	Path    string           `json:"path"` // of the definition, below Dir as it was given
	Written bool             `json:"written"`
	Note    string           `json:"note,omitempty"` // anything else that a person should know
	Files   []ScaffoldedFile `json:"files"`          // the definition is the last
}

// ScaffoldedFile is one file of a new loop. Its path begins with Dir as it was
// given.
type ScaffoldedFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Config returns the text of the definition.
func (s Scaffolded) Config() string { return s.Files[len(s.Files)-1].Text }

// Scaffold makes the folder of a new loop. It needs no repository and no store. Each
// file is written completely before it gets its name, and the definition, which makes
// the folder a loop, is last. If it fails, it removes what it made.
//
// Errors are of type *loop.Fault: exit status 2 for an invalid request, 5 for a folder
// that is not empty or a link in the path, 1 for a failed write.
func Scaffold(ctx context.Context, formats format.List, r ScaffoldRequest) (Scaffolded, error) {
	files, err := formats.New(r.LoopRequest)
	if err != nil {
		return Scaffolded{}, err
	}
	given := r.Dir
	if given == "" {
		given = ".loops"
	}
	made := Scaffolded{Schema: "pawl.new/v1", Loop: r.Name, Path: filepath.Join(given, r.Name, definition.ConfigFile), Note: r.patternNote()}
	for _, f := range files {
		made.Files = append(made.Files, ScaffoldedFile{Path: filepath.Join(given, r.Name, f.Name), Text: string(f.Body)})
	}
	p := place{dir: given, name: r.Name, files: files, kept: ".before-" + r.Now.UTC().Format("20060102T150405.000Z")}
	if !filepath.IsAbs(given) {
		p.dir = filepath.Join(r.Work, given)
	}
	if err := p.checkFree(r.Force); err != nil {
		return Scaffolded{}, err
	}
	if r.DryRun {
		return made, nil
	}
	if err := p.writeFolder(ctx); err != nil {
		return Scaffolded{}, p.unwrittenFault(err)
	}
	made.Written = true
	return made, nil
}

func (r ScaffoldRequest) patternNote() string {
	if _, known := pattern.Find(r.Pattern); known || r.Pattern == "" {
		return ""
	}
	return fmt.Sprintf("there is no pattern %s, so what the loop is for is left to fill in; %s", r.Pattern, readiness.Suggest(r.Pattern, pattern.Names()))
}

// place is where a loop is made.
type place struct {
	dir, name string // of all loops, of this one
	files     []format.NewFile
	kept      string // added to the name of the copy of a replaced file
}

func (p place) targetDir() string { return filepath.Join(p.dir, p.name) }

// checkFree refuses a folder that contains anything else. It writes nothing.
func (p place) checkFree(force bool) error {
	for _, dir := range []string{p.dir, p.targetDir()} {
		switch info, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return p.unwrittenFault(err)
		case !info.IsDir():
			return p.takenFault(dir+" is "+fileKind(info), "move it away, or name another folder: --dir DIR")
		}
	}
	entries, err := os.ReadDir(p.targetDir())
	if err != nil {
		return p.unwrittenFault(err)
	}
	for _, e := range entries {
		switch ours := slices.ContainsFunc(p.files, func(f format.NewFile) bool { return f.Name == e.Name() }); {
		case p.leftOver(e.Name()):
		case !force:
			return p.takenFault(p.targetDir()+" is not empty: it holds "+e.Name(),
				"choose another name, or pass --force to write over "+p.fileNames()+" and keep copies of them; everything else in it stays")
		case ours && !e.Type().IsRegular():
			return p.takenFault(filepath.Join(p.targetDir(), e.Name())+" is not a regular file", "move it away")
		}
	}
	return nil
}

func (p place) takenFault(why, fix string) error {
	return &loop.Fault{Exit: loop.ExitMissing, What: "make the loop " + p.name, Why: why, Fix: fix}
}

func (p place) unwrittenFault(err error) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: "make the loop " + p.name, Why: err.Error(), Err: err,
		Fix: "see that there is space and that you may write there, or name another folder: --dir DIR",
	}
}

func fileKind(info fs.FileInfo) string {
	if info.Mode().Type() == fs.ModeSymlink {
		return "a symbolic link"
	}
	return "not a folder"
}

func (p place) fileNames() string {
	var names []string
	for _, f := range p.files {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// leftOver reports whether a file was left by a process that was killed while writing.
func (p place) leftOver(name string) bool {
	return slices.ContainsFunc(p.files, func(f format.NewFile) bool { return stagedName(f.Name) == name })
}

func stagedName(name string) string { return "." + name + ".pawl-tmp" }

var (
	beforeStage  = fault.New("loops.scaffold.stage.before")
	beforeSync   = fault.New("loops.scaffold.sync.before")
	beforeRename = fault.New("loops.scaffold.rename.before")
	afterRename  = fault.New("loops.scaffold.rename.after")
)

// writeFolder makes the missing folders and writes the files. If it fails, it removes
// the folders that it made.
func (p place) writeFolder(ctx context.Context) (err error) {
	folders := durable.MissingFolders(p.targetDir())
	defer func() {
		for _, dir := range folders {
			if err != nil {
				_ = os.Remove(dir) // It stays if it is not empty.
			}
		}
	}()
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	root, err := p.openRoot()
	if err != nil {
		return err
	}
	return errors.Join(p.putFiles(ctx, root), root.Close())
}

// putFiles writes the files. All are on the disk before the first gets its name, so
// that a full disk changes nothing.
func (p place) putFiles(ctx context.Context, root *os.Root) (err error) {
	var added []string
	defer func() {
		for _, name := range added {
			if err != nil {
				_ = root.Remove(name)
			}
		}
	}()
	for _, f := range p.files {
		added = append(added, stagedName(f.Name))
		if err := stageFile(ctx, root, f); err != nil {
			return err
		}
	}
	for _, f := range p.files {
		old, err := root.ReadFile(f.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			added = append(added, f.Name)
		case err != nil:
			return err
		case !bytes.Equal(old, f.Body):
			added = append(added, f.Name+p.kept)
			if err := writeNew(root, f.Name+p.kept, string(old)); err != nil {
				return err
			}
		}
		if err := renameStaged(ctx, root, f.Name); err != nil {
			return err
		}
	}
	return nil
}

// openRoot opens the loop's folder as a root, so that no link leads out of it.
func (p place) openRoot() (*os.Root, error) {
	loops, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = loops.Close() }()
	if err := loops.Mkdir(p.name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return loops.OpenRoot(p.name)
}

// stageFile writes a file under a temporary name. It first removes what a killed
// process left there, because that may be a link by now.
func stageFile(ctx context.Context, root *os.Root, f format.NewFile) error {
	if err := beforeStage.Hit(ctx); err != nil {
		return err
	}
	name := stagedName(f.Name)
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Body)
	if err == nil {
		err = beforeSync.Hit(ctx)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func renameStaged(ctx context.Context, root *os.Root, name string) error {
	if err := beforeRename.Hit(ctx); err != nil {
		return err
	}
	if err := root.Rename(stagedName(name), name); err != nil {
		return err
	}
	return afterRename.Hit(ctx)
}

// writeNew writes and syncs a file that must not exist, so that nothing is
// written through a link.
func writeNew(root *os.Root, name, text string) error {
	file, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, durable.SyncFile(file), file.Close())
}
