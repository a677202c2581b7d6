package listen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Bounds of what is looked at below one checkout.
const (
	mostFiles   = 100_000 // that match the globs of its loops
	mostEntries = 500_000 // files and folders on the way
)

// isIgnored reports whether no glob matches a name, nor what is below it: pawl and git write there
// with each run.
func isIgnored(name string) bool { return name == ".git" || name == ".loops" }

// stamp is how a file looks from outside.
type stamp struct {
	size, changed int64
	mode          fs.FileMode
}

// files are the files that match a glob, by their paths in the checkout.
type files map[string]stamp

// scanned is one look at the files of a checkout.
type scanned struct {
	files files
	dirs  []string // folders in which a matching file may appear
}

// scan looks at the files below root that match one of the globs. It follows no links. A
// checkout that is gone, or on a disk that is not mounted, is an error, and not one without
// files.
func scan(root string, globs []string) (s scanned, err error) {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err != nil {
		return s, fmt.Errorf("look at the checkout: %w", err)
	}
	s.files = files{}
	entries := 0
	for _, start := range startsOf(globs) {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(start)), func(path string, e fs.DirEntry, err error) error {
			rel, relErr := filepath.Rel(root, path)
			name := filepath.ToSlash(rel)
			switch {
			case err != nil || relErr != nil:
				return nil //nolint:nilerr // It is gone, or cannot be read: nothing in it matches.
			case rel != "." && isIgnored(e.Name()) && e.IsDir():
				return fs.SkipDir
			case rel != "." && isIgnored(e.Name()):
				return nil
			}
			if entries++; entries > mostEntries {
				return fmt.Errorf("more than %d files and folders are on the way; write globs that begin with a folder", mostEntries)
			}
			if e.IsDir() {
				s.dirs = append(s.dirs, path)
				return nil
			}
			if !slices.ContainsFunc(globs, func(g string) bool { return policy.Covers(g, name) }) {
				return nil
			}
			info, err := e.Info()
			if err != nil {
				return nil //nolint:nilerr // It is gone.
			}
			if s.files[name] = stampOf(info); len(s.files) > mostFiles {
				return fmt.Errorf("more than %d files match; write narrower globs", mostFiles)
			}
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{info.Size(), info.ModTime().UnixNano(), info.Mode()}
}

// startsOf returns the folders from which all files can be found that match the globs, none
// below another.
func startsOf(globs []string) []string {
	var starts []string
	for _, glob := range globs {
		all, _ := policy.Alternatives(strings.TrimPrefix(glob, "./"))
		for _, one := range all {
			parts := strings.Split(one, "/")
			n := 0
			for n < len(parts)-1 && !strings.ContainsAny(parts[n], `*?[\`) {
				n++
			}
			starts = append(starts, strings.Join(parts[:n], "/"))
		}
	}
	slices.Sort(starts)
	var apart []string
	for _, s := range slices.Compact(starts) {
		if !slices.ContainsFunc(apart, func(above string) bool { return above == "" || s == above || strings.HasPrefix(s, above+"/") }) {
			apart = append(apart, s)
		}
	}
	return apart
}

// of returns those of the files that match a glob.
func (f files) of(glob string) files {
	some := files{}
	for name, s := range f {
		if policy.Covers(glob, name) {
			some[name] = s
		}
	}
	return some
}

// digest is the same for the same files that look the same.
func (f files) digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		s := f[name]
		_, _ = fmt.Fprintf(h, "%q %d %d %o\n", name, s.size, s.changed, s.mode)
	}
	_, _ = io.WriteString(h, "1")
	return hex.EncodeToString(h.Sum(nil))
}

// changes says which files differ from before, one a line.
func (f files) changes(before files) string {
	var lines []string
	for name, now := range f {
		switch was, ok := before[name]; {
		case !ok:
			lines = append(lines, "created "+name)
		case was != now:
			lines = append(lines, "changed "+name)
		}
	}
	for name := range before {
		if _, ok := f[name]; !ok {
			lines = append(lines, "removed "+name)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
