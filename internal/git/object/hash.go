package object

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/ground/safeopen"
)

// HashFile returns the object name that the file at path has as a blob, byte
// for byte, and its size. mode says what must be there: ModeSymlink hashes the
// link's target, everything else must be a regular file of at most limit
// bytes. Links are not followed in the last component, and a FIFO does not
// block.
func (f Format) HashFile(path string, mode uint32, limit int64) (id string, size int64, err error) {
	if mode == ModeSymlink {
		target, err := os.Readlink(path)
		if err != nil {
			return "", 0, fmt.Errorf("hash link: %w", err)
		}
		target = filepath.ToSlash(target)
		return f.HashBytes([]byte(target)), int64(len(target)), nil
	}
	file, info, err := safeopen.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("hash file: %w", err)
	}
	defer file.Close()
	if info.Size() > limit {
		return "", info.Size(), fmt.Errorf("hash %s: %d bytes are more than %d", path, info.Size(), limit)
	}
	h := f.blobHash(info.Size())
	n, err := io.Copy(h, io.LimitReader(file, info.Size()+1))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("size changed from %d to %d while it was read", info.Size(), n)
	}
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// HashBytes returns the object name of data as a blob.
func (f Format) HashBytes(data []byte) string {
	return f.ID("blob", data)
}

// ID returns the object name of a whole object.
func (f Format) ID(kind string, body []byte) string {
	h := f.hasher(kind, int64(len(body)))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func (f Format) blobHash(size int64) hash.Hash { return f.hasher("blob", size) }

func (f Format) hasher(kind string, size int64) hash.Hash {
	h := f.New()
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}

// New returns the hash by which objects are named.
func (f Format) New() hash.Hash {
	if f == SHA256 {
		return sha256.New()
	}
	return sha1.New()
}
