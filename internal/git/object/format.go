package object

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Object formats of a repository.
const (
	SHA1   = "sha1"
	SHA256 = "sha256"
)

// Format is how a repository names its objects: SHA1 or SHA256.
type Format string

// Check refuses everything but a full object name of the repository's own
// format, so that no argument can be an option or a revision expression.
func (f Format) Check(id string) error {
	if len(id) == f.HexLen() && isHex(id) {
		return nil
	}
	return fmt.Errorf("%q is not a full %s object name: %w", id, f, loop.ErrNotFound)
}

// HexLen is the length of an object name as text.
func (f Format) HexLen() int {
	if f == SHA256 {
		return 64
	}
	return 40
}

func isHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// NameLen is the length of an object name in bytes, half of its digits.
func (f Format) NameLen() int { return f.HexLen() / 2 }

// EmptyTree is the name of the tree without files, which git knows in every
// repository.
func (f Format) EmptyTree() string { return f.ID("tree", nil) }
