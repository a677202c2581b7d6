package sandbox

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawl-run/pawl/internal/dirglob"
	"github.com/pawl-run/pawl/internal/flock"
)

// A self-test that is killed leaves its directory, and the folder of its socket.
// Both have the name of a claim that is there before them and goes after them:
// what has one that nobody holds is left over.
const (
	selftestPrefix = "selftest-"
	claimPrefix    = "." + selftestPrefix
	socketPrefix   = "/tmp/pawl-" // The path of a socket must not be long.
)

// claimName takes a name below dir for a self-test. Another one may sweep at this
// moment and take the file for left over, before it is locked here: then the
// next name is tried.
func claimName(dir string) (name string, claim *os.File, err error) {
	for {
		name = rand.Text()
		claim, err = flock.Try(filepath.Join(dir, claimPrefix+name))
		if !errors.Is(err, flock.ErrHeld) {
			return name, claim, err
		}
	}
}

// removeLeftovers removes what self-tests left below dir that nobody makes any more.
func removeLeftovers(dir string) {
	claims, _ := dirglob.Find(dir, claimPrefix+"*") // A directory that cannot be listed has nothing to be removed.
	for _, path := range claims {
		claim, err := flock.Try(path)
		if err != nil {
			continue
		}
		_ = removeAndRelease(dir, strings.TrimPrefix(filepath.Base(path), claimPrefix), claim) // The next self-test tries it again.
	}
}

// removeAndRelease removes what has the name and, when that is gone, the claim.
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

// isOwnFolder reports whether a directory in a folder of everybody was made by this user.
func isOwnFolder(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(s.Uid) == os.Geteuid()
}
