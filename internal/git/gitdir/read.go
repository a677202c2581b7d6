package gitdir

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/ground/safeopen"
)

// MaxRead is the largest file in bytes that Read returns.
const MaxRead = 4 << 20

// Read returns the content of a file. Links to it are followed; what is not a
// regular file in the end, or is larger than MaxRead, is an error.
func Read(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f, info, err := safeopen.Open(real)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > MaxRead {
		return nil, fmt.Errorf("%d bytes are more than %d", info.Size(), MaxRead)
	}
	return io.ReadAll(io.LimitReader(f, MaxRead))
}
