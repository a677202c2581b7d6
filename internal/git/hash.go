package git

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/regular"
)

// HashFile returns the object name that the file at path has as a blob, byte
// for byte, and its size. mode says what must be there: ModeSymlink hashes the
// link's target, everything else must be a regular file of at most limit
// bytes. Links are not followed in the last component, and a FIFO does not
// block.
func (r *Repo) HashFile(path string, mode uint32, limit int64) (id string, size int64, err error) {
	if mode == ModeSymlink {
		target, err := os.Readlink(path)
		if err != nil {
			return "", 0, fmt.Errorf("hash link: %w", err)
		}
		target = filepath.ToSlash(target)
		return r.HashBytes([]byte(target)), int64(len(target)), nil
	}
	f, info, err := regular.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("hash file: %w", err)
	}
	defer f.Close()
	if info.Size() > limit {
		return "", info.Size(), fmt.Errorf("hash %s: %d bytes are more than %d", path, info.Size(), limit)
	}
	h := r.blobHash(info.Size())
	n, err := io.Copy(h, io.LimitReader(f, info.Size()+1))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("size changed from %d to %d while it was read", info.Size(), n)
	}
	if err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// HashBytes returns the object name of data as a blob.
func (r *Repo) HashBytes(data []byte) string {
	return r.objectID("blob", data)
}

// objectID returns the object name of a whole object.
func (r *Repo) objectID(kind string, body []byte) string {
	h := r.objectHash(kind, int64(len(body)))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func (r *Repo) blobHash(size int64) hash.Hash { return r.objectHash("blob", size) }

func (r *Repo) objectHash(kind string, size int64) hash.Hash {
	h := r.newHash()
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}

func (r *Repo) newHash() hash.Hash {
	if r.Format == SHA256 {
		return sha256.New()
	}
	return sha1.New()
}
