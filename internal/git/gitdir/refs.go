package gitdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrRefStorage means that a repository keeps its refs in another form than files.
var ErrRefStorage = errors.New("the repository keeps its refs in another form than files")

// mostLinks is how many symbolic refs in a row are followed, as in git.
const mostLinks = 5

// Refs returns the objects that refs name, by the full names of the refs. A name that ends
// with /* means all below it. A ref that does not exist is left out. Refs that belong to
// one checkout only, such as HEAD, are not looked for.
func (d Dirs) Refs(names ...string) (map[string]string, error) {
	if isDir(filepath.Join(d.CommonDir, "reftable")) {
		return nil, ErrRefStorage
	}
	packed := &packedRefs{path: filepath.Join(d.CommonDir, "packed-refs")}
	found := map[string]string{}
	for _, name := range names {
		below, all := strings.CutSuffix(name, "*")
		if !all {
			if err := d.resolveRef(name, packed, found); err != nil {
				return nil, err
			}
			continue
		}
		err := filepath.WalkDir(filepath.Join(d.CommonDir, filepath.FromSlash(below)), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // It was removed meanwhile, or nothing is below the name.
			}
			if err != nil || e.IsDir() || strings.HasSuffix(path, ".lock") {
				return err
			}
			ref, err := filepath.Rel(d.CommonDir, path)
			if err != nil {
				return err
			}
			return d.resolveRef(filepath.ToSlash(ref), packed, found)
		})
		if err != nil {
			return nil, fmt.Errorf("list refs %s: %w", name, err)
		}
		list, err := packed.read() // After the files: what was packed meanwhile is in one of them.
		if err != nil {
			return nil, err
		}
		for ref, id := range list {
			if _, loose := found[ref]; !loose && strings.HasPrefix(ref, below) {
				found[ref] = id
			}
		}
	}
	return found, nil
}

// resolveRef adds a ref to those that were found, if it exists.
func (d Dirs) resolveRef(name string, packed *packedRefs, found map[string]string) error {
	at := name
	for range mostLinks {
		text, err := Read(filepath.Join(d.CommonDir, filepath.FromSlash(at)))
		switch {
		case errors.Is(err, fs.ErrNotExist), err != nil && isDir(filepath.Join(d.CommonDir, filepath.FromSlash(at))):
			list, err := packed.read() // After the file: it may have been packed meanwhile.
			if id, ok := list[at]; ok {
				found[name] = id
			}
			return err
		case err != nil:
			return fmt.Errorf("read ref %s: %w", at, err)
		}
		value := strings.TrimSpace(string(text))
		link, symbolic := strings.CutPrefix(value, "ref: ")
		switch {
		case !symbolic && isObjectName(value):
			found[name] = value
			return nil
		case !symbolic || !strings.HasPrefix(link, "refs/") || strings.Contains(link, ".."):
			return nil // It is broken, as after a power cut; git says so.
		}
		at = link
	}
	return nil
}

// packedRefs are the refs that git has packed into one file.
type packedRefs struct {
	path string
	info fs.FileInfo // of the file that was read; nil: none was
	refs map[string]string
}

// read returns the packed refs as they are now. The file is read again only if it is another
// one, as git makes it.
func (p *packedRefs) read() (map[string]string, error) {
	f, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	if p.info != nil && os.SameFile(p.info, info) && p.info.Size() == info.Size() && p.info.ModTime().Equal(info.ModTime()) {
		return p.refs, nil
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	p.info, p.refs = info, map[string]string{}
	for line := range strings.Lines(string(text)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && isObjectName(id) && strings.HasPrefix(name, "refs/") {
			p.refs[name] = id
		}
	}
	return p.refs, nil
}

func isObjectName(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
