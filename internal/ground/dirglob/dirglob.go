// Package dirglob finds files below a directory by a pattern. Characters of the
// directory's own path never mean a pattern, unlike in filepath.Glob, to which
// a [ in the path of pawl's home hides all that is below it.
package dirglob

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Find lists the files below dir that match the pattern of path.Match, as paths
// that begin with dir, in lexical order. What cannot be listed has no files. The
// pattern is one of the program's own: if it is malformed, Find panics.
func Find(dir, pattern string) []string {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		panic(fmt.Sprintf("dirglob: the pattern %q: %v", pattern, err))
	}
	for i, name := range names {
		names[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return names
}
