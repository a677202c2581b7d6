package bootrepo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	contractsName = "contracts"
	tipsName      = "tips"
	lockName      = "lock"

	halfPrefix    = ".half-" // of a file that is being written
	maxKept       = 32       // contracts of one repository
	maxKeptBytes  = 64 << 20 // of one of them
	digestHexSize = 2 * sha256.Size
)

// contractPath is where the files of a commit are kept. Another folder of the same
// commit is another contract.
func (r *repository) contractPath(commit string) string {
	name := commit
	if r.bootPath != "" {
		sum := sha256.Sum256([]byte(r.bootPath))
		name += "-" + hex.EncodeToString(sum[:6])
	}
	return filepath.Join(r.dir, contractsName, name)
}

// readFiles returns the files of a commit if they are kept, and whole.
func (r *repository) readFiles(commit string) (*files, bool) {
	f := &files{}
	if !readSealed(r.contractPath(commit), f) || f.Commit != commit {
		return nil, false
	}
	return f, true
}

// writeFiles keeps the files of a commit. The caller has the lock.
func (r *repository) writeFiles(f *files) error {
	if err := writeSealed(r.contractPath(f.Commit), f); err != nil {
		return fmt.Errorf("keep the contract of %s: %w", f.Commit, err)
	}
	return r.removeOld()
}

// removeOld removes the contracts that were kept first, beyond some.
func (r *repository) removeOld() error {
	dir := filepath.Join(r.dir, contractsName)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= maxKept {
		return err
	}
	var infos []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, old := range infos[min(maxKept, len(infos)):] {
		err = errors.Join(err, os.Remove(filepath.Join(dir, old.Name())))
	}
	return err
}

// readTips returns the commits at which branches and tags were last seen.
func (r *repository) readTips() map[string]string {
	tips := map[string]string{}
	if !readSealed(filepath.Join(r.dir, tipsName), &tips) {
		return map[string]string{}
	}
	return tips
}

// noteTip remembers where the reference is.
func (r *repository) noteTip(ctx context.Context, commit string) error {
	if r.readTips()[r.reference] == commit {
		return nil
	}
	turn, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer turn.Close()
	tips := r.readTips()
	tips[r.reference] = commit
	if err := writeSealed(filepath.Join(r.dir, tipsName), tips); err != nil {
		return fmt.Errorf("remember where %s is: %w", r.reference, err)
	}
	return nil
}

// readSealed reads a file that writeSealed has written, and reports false for one that
// is not there or not whole.
func readSealed(path string, into any) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxKeptBytes {
		return false
	}
	text, err := os.ReadFile(path)
	if err != nil || len(text) < digestHexSize+1 {
		return false
	}
	sum, body := text[:digestHexSize], text[digestHexSize+1:]
	return bytes.Equal(sum, digestOf(body)) && json.Unmarshal(body, into) == nil
}

// writeSealed writes a value with its digest, so that a file that was cut or damaged is
// noticed. Nobody sees a half of it.
func writeSealed(path string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	half := filepath.Join(filepath.Dir(path), halfPrefix+filepath.Base(path))
	if err := os.WriteFile(half, slices.Concat(digestOf(body), []byte{'\n'}, body), 0o600); err != nil {
		return err
	}
	return os.Rename(half, path)
}

func digestOf(body []byte) []byte {
	sum := sha256.Sum256(body)
	return hex.AppendEncode(nil, sum[:])
}

// removeHalves removes files that were not written to their end.
func removeHalves(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), halfPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
