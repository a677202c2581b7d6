// Package projection writes the files of a loop's memory from the changes that a
// run has recorded, and reads them as a person may have left them. Writing again
// after a crash changes nothing: what is there already stays, and so does what a
// person wrote meanwhile.
//
// It never decides what the files say, never writes what is not recorded first,
// keeps no rows, and follows no link out of the workspace.
package projection

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxFile is the largest file of a protocol's memory that is read, in bytes.
const MaxFile = 4 << 20

// File is a file as it was read. The zero File did not exist.
type File struct {
	Exists  bool
	Content string
	TooBig  bool // over the limit, which is MaxFile for a memory; Content is empty then
}

// Memory is the files in which a loop keeps what it knows. Its methods may be
// called by several processes at once.
type Memory struct {
	Home string // pawl's home, which records whose changes were written last
	Root string // of the workspace
	Loop string // id
	// NotMerged is called with the lines of an edit that were not merged into the
	// file, because a person changed the same place meanwhile. It may be nil.
	NotMerged func(path string, lines []string)
	// Mergers are ways to merge, by the names that edits have for them.
	Mergers map[string]Merger
}

// Merger makes the edit from base to ours again on theirs, which a person has made from base.
// Left says what was not done, because the person did something else. Merging what it
// returned again changes nothing.
type Merger func(base, ours, theirs string) (merged string, left []string)

// Read reads a file of the workspace, by its slash-separated path. It never leaves
// the workspace, not even by a link.
func (m Memory) Read(name string) (File, error) {
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = root.Close() }()
	return readInRoot(root, filepath.FromSlash(name))
}

// ReadFile reads a file outside of any workspace, if it has at most limit bytes.
func ReadFile(name string, limit int64) (File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	return readBounded(file, err, limit)
}

func readBounded(file *os.File, err error, limit int64) (File, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, err
	}
	defer func() { _ = file.Close() }()
	switch info, err := file.Stat(); {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{}, fmt.Errorf("%s is not a regular file", file.Name())
	case info.Size() > limit:
		return File{Exists: true, TooBig: true}, nil
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if int64(len(data)) > limit {
		return File{Exists: true, TooBig: true}, nil
	}
	return File{Exists: true, Content: string(data)}, err
}
