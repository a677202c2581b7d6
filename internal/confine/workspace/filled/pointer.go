package filled

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// pointer is the text that git LFS puts in a commit in place of a file.
type pointer struct {
	oid  string // SHA-256 of the content
	size int64
}

// maxPointer is the longest pointer in bytes.
const maxPointer = 1024

var pointerRule = lazyregexp.New(`^version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n$`)

// parsePointer reads a pointer as git LFS writes it. It reports false for one with
// extensions, which are programs.
func parsePointer(text string) (pointer, bool) {
	m := pointerRule.FindStringSubmatch(text)
	if m == nil {
		return pointer{}, false
	}
	size, err := strconv.ParseInt(m[2], 10, 64)
	return pointer{oid: m[1], size: size}, err == nil
}

// findIn returns the file with the content in the first store that has one of the right
// size; empty if missing.
func (p pointer) findIn(stores []string) string {
	for _, dir := range stores {
		name := filepath.Join(dir, "objects", p.oid[:2], p.oid[2:4], p.oid)
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == p.size {
			return name
		}
	}
	return ""
}
