package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Collisions returns a verdict for each changed path that a file system could
// take for another one: it, or a folder that it is in, differs from a path of
// the tree or of the change only in letter case, Unicode form or characters
// that do not show. changed are the paths that exist after the change, beside
// files and folders that do: at least all that lie in a folder of a changed
// path. A path may stand in both, and the same path collides with nothing.
func Collisions(changed, beside []string) []Verdict {
	seen := spelled{}
	for _, name := range changed {
		eachPrefix(name, func(folded, _ string) bool {
			seen[folded] = nil
			return true
		})
	}
	for _, name := range beside {
		// What is not even the folder of a changed path has nothing below it
		// that could be one.
		eachPrefix(name, func(folded, written string) bool {
			_, wanted := seen[folded]
			if wanted {
				seen.add(folded, written)
			}
			return wanted
		})
	}
	var all []Verdict
	for _, name := range changed {
		if other, as := findCollision(seen, name); other != "" {
			all = append(all, collisionVerdict(name, as, other))
		}
	}
	return all
}

// spelled holds how each folded path was written, in two ways at most: one of
// them is another one than any third.
type spelled map[string][]string

func (s spelled) add(folded, written string) {
	if known := s[folded]; len(known) < 2 && !slices.Contains(known, written) {
		s[folded] = append(known, written)
	}
}

// findCollision returns the first path that name, or a folder of it, collides
// with, and adds what collides with nothing.
func findCollision(seen spelled, name string) (other, as string) {
	eachPrefix(name, func(folded, written string) bool {
		for _, known := range seen[folded] {
			if known != written {
				other, as = known, written
				return false
			}
		}
		seen.add(folded, written)
		return true
	})
	return other, as
}

// collisionVerdict says that a name collides. Invisible characters of both names
// are written out.
func collisionVerdict(name, as, other string) Verdict {
	if strings.EqualFold(as, other) {
		return Verdict{Path: name, Code: CodeCaseCollision, Rule: fmt.Sprintf("%+q is %+q in other letters", as, other)}
	}
	return Verdict{Path: name, Code: CodeNormalisation, Rule: fmt.Sprintf("%+q is %+q in another Unicode form", as, other)}
}

// eachPrefix calls fn for the folders of a path from the top, and then for the
// path, folded and as written, until fn returns false.
func eachPrefix(name string, fn func(folded, written string) bool) {
	folded := foldName(name)
	f, w := 0, 0
	for {
		nf, nw := strings.IndexByte(folded[f:], '/'), strings.IndexByte(name[w:], '/')
		if nf < 0 || nw < 0 {
			fn(folded, name)
			return
		}
		f, w = f+nf, w+nw
		if !fn(folded[:f], name[:w]) {
			return
		}
		f, w = f+1, w+1
	}
}
