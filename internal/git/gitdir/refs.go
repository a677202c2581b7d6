package gitdir

import (
	"errors"
	"fmt"
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
	packed, err := d.packedRefs()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range names {
		below, all := strings.CutSuffix(name, "*")
		if !all {
			if err := d.resolveRef(name, packed, found); err != nil {
				return nil, err
			}
			continue
		}
		for ref, id := range packed {
			if strings.HasPrefix(ref, below) {
				found[ref] = id
			}
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
	}
	return found, nil
}

// resolveRef adds a ref to those that were found, if it exists.
func (d Dirs) resolveRef(name string, packed, found map[string]string) error {
	at := name
	for range mostLinks {
		text, err := Read(filepath.Join(d.CommonDir, filepath.FromSlash(at)))
		switch {
		case errors.Is(err, fs.ErrNotExist), err != nil && isDir(filepath.Join(d.CommonDir, filepath.FromSlash(at))):
			if id, ok := packed[at]; ok {
				found[name] = id
			}
			return nil
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

// packedRefs reads the refs that git has packed.
func (d Dirs) packedRefs() (map[string]string, error) {
	f, err := os.ReadFile(filepath.Join(d.CommonDir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	packed := map[string]string{}
	for line := range strings.Lines(string(f)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && isObjectName(id) && strings.HasPrefix(name, "refs/") {
			packed[name] = id
		}
	}
	return packed, nil
}

func isObjectName(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
