package git

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
)

// checkID refuses everything but a full object name of the repository's own
// format, so that no argument can be an option or a revision expression.
func (r *Repo) checkID(id string) error {
	if len(id) == r.hexLen() && isHex(id) {
		return nil
	}
	return fmt.Errorf("%q is not a full %s object name: %w", id, r.Format, loop.ErrNotFound)
}

func (r *Repo) hexLen() int {
	if r.Format == SHA256 {
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
