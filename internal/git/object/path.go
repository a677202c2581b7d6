package object

import (
	"fmt"
	"path"
	"strings"
)

// MaxPath is the longest path in bytes that is accepted.
const MaxPath = 4096

// CheckPath refuses a path that could leave a tree or reach a git directory:
// empty, absolute, not clean, with a NUL, longer than MaxPath, or with a
// component that any file system takes for .git. Paths are slash separated.
func CheckPath(p string) error {
	switch {
	case p == "" || p == ".":
		return fmt.Errorf("path is empty")
	case len(p) > MaxPath:
		return fmt.Errorf("path %.40q… is longer than %d bytes", p, MaxPath)
	case strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("path %q holds a NUL", p)
	case p[0] == '/' || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("path %q leaves the tree or is not clean", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if IsDotGit(part) {
			return fmt.Errorf("path %q names a git directory", p)
		}
	}
	return nil
}

// IsDotGit reports whether a file system could take the path component for
// .git: by case, by NTFS short name, stream or trailing dots, or by HFS+
// ignoring characters.
func IsDotGit(part string) bool {
	if !strings.ContainsAny(part, "gG") {
		return false
	}
	part, _, _ = strings.Cut(part, ":")
	part = strings.TrimRight(strings.Map(visible, part), ". ")
	return strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1")
}

// visible drops the code points that HFS+ ignores when it compares names.
func visible(c rune) rune {
	switch {
	case c >= 0x200c && c <= 0x200f, c >= 0x202a && c <= 0x202e, c >= 0x206a && c <= 0x206f, c == 0xfeff:
		return -1
	}
	return c
}
