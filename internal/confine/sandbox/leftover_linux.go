package sandbox

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/ground/flock"
)

// A self-test that is killed leaves its directory and the folder of its socket. Both
// have the name of a claim, which is made before them and removed after them: if
// nobody holds the claim, they are left over.
const (
	selftestPrefix = "selftest-"
	claimPrefix    = "." + selftestPrefix
	socketPrefix   = "/tmp/pawl-" // The path of a socket must not be long.
)

// claimName claims a new name below dir for a self-test. Another one that is removing
// leftovers at this moment may lock the file first: then the next name is tried.
func claimName(dir string) (name string, claim *os.File, err error) {
	for {
		name = rand.Text()
		claim, err = flock.Try(filepath.Join(dir, claimPrefix+name))
		if !errors.Is(err, flock.ErrHeld) {
			return name, claim, err
		}
	}
}

// removeLeftovers removes what killed self-tests left below dir.
func removeLeftovers(dir string) {
	claims := dirglob.Find(dir, claimPrefix+"*") // A directory that cannot be listed has no leftovers.
	for _, path := range claims {
		claim, err := flock.Try(path)
		if err != nil {
			continue
		}
		_ = removeAndRelease(dir, strings.TrimPrefix(filepath.Base(path), claimPrefix), claim) // The next self-test tries again.
	}
}

// removeAndRelease removes the files of the self-test with the name and, if that
// succeeds, the claim.
func removeAndRelease(dir, name string, claim *os.File) error {
	err := RemoveTree(filepath.Join(dir, selftestPrefix+name))
	if info, there := os.Lstat(socketPrefix + name); there == nil && isOwnFolder(info) {
		err = errors.Join(err, os.RemoveAll(socketPrefix+name))
	}
	if err == nil {
		err = os.Remove(claim.Name())
	}
	return errors.Join(err, claim.Close())
}

// isOwnFolder reports whether this is a directory of this user: anybody can make one
// with that name in /tmp.
func isOwnFolder(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(s.Uid) == os.Geteuid()
}
