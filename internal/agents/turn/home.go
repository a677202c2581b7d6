package turn

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mostRead is the size in bytes of the largest file that Read reads.
const mostRead = 1 << 20

// Home is a directory on the host that a program has as its home. Whatever the
// program puts there, no method follows a path out of it. It must be closed.
type Home struct {
	root     *os.Root
	seen     string
	uid, gid int // the user that the program runs as; -1 means pawl's own user
}

// OpenHome makes dir, which must be inside a directory of pawl's own, and opens
// it. Programs see it at seen.
func OpenHome(dir, seen string, uid, gid int) (*Home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	h := &Home{root: root, seen: seen, uid: uid, gid: gid}
	if err := h.giveToProgram("."); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return h, nil
}

// Close closes the directory but does not remove it.
func (h *Home) Close() error { return h.root.Close() }

// Path returns the directory as the program sees it.
func (h *Home) Path() string { return h.seen }

// Write writes a file that only the program's user can read. A file that exists
// is replaced, not written through.
func (h *Home) Write(name string, content []byte) error {
	if err := h.makeFolders(path.Dir(name)); err != nil {
		return fmt.Errorf("write %s into the agent's home: %w", name, err)
	}
	if err := h.root.RemoveAll(name); err != nil {
		return fmt.Errorf("write %s into the agent's home: %w", name, err)
	}
	f, err := h.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s into the agent's home: %w", name, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close(), h.giveToProgram(name)); err != nil {
		return fmt.Errorf("write %s into the agent's home: %w", name, err)
	}
	return nil
}

// makeFolders makes a directory and its parents, and gives each to the program.
func (h *Home) makeFolders(name string) error {
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		switch err := h.root.Mkdir(at, 0o700); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := h.giveToProgram(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read reads a regular file, which the program may have written.
func (h *Home) Read(name string) ([]byte, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostRead {
		return nil, fmt.Errorf("read %s from the agent's home: it is not a file of at most %d bytes", name, mostRead)
	}
	f, err := h.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostRead))
}

// Remove removes a file or a directory if it exists.
func (h *Home) Remove(name string) error { return h.root.RemoveAll(name) }

// KeepFolders removes everything except the named folders, which hold
// conversations. Anything else that a program left would be settings for the next
// one.
func (h *Home) KeepFolders(folders []string) error {
	return h.keepFolders(".", folders)
}

func (h *Home) keepFolders(dir string, folders []string) error {
	d, err := h.root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if slices.Contains(folders, name) && e.IsDir() {
			continue
		}
		above := slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(f, name+"/") })
		if above && e.IsDir() {
			err = h.keepFolders(name, folders)
		} else {
			err = h.root.RemoveAll(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *Home) giveToProgram(name string) error {
	if h.uid < 0 {
		return nil
	}
	return h.root.Lchown(filepath.FromSlash(name), h.uid, h.gid)
}
