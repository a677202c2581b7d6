package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ownersFile is the file of pawl's home that lists the repositories of other users that a
// person has accepted.
const ownersFile = "owners.json"

// acceptedOwner is a repository of other users that was accepted. It counts only while the
// same users own it.
type acceptedOwner struct {
	Root   string `json:"root"`
	Owners []int  `json:"owners"`
}

// Users returns the ids of the users for whom a process with that environment works: its
// own, and for root also that of the user who called sudo.
func Users(environ []string) []int {
	users := []int{os.Geteuid()}
	if users[0] == 0 {
		if uid, err := strconv.Atoi(proc.LookupVariable(environ, "SUDO_UID")); err == nil {
			users = append(users, uid)
		}
	}
	return users
}

// CheckOwner refuses a repository that belongs to somebody else than users, unless a person
// has accepted it in that home. The error is a *loop.Fault that is loop.ErrOwner.
func CheckOwner(home string, dirs gitdir.Dirs, users []int) error {
	others, err := othersOf(dirs, users)
	if err != nil || len(others) == 0 {
		return err
	}
	accepted, err := readOwners(home)
	if err != nil || slices.ContainsFunc(accepted, func(a acceptedOwner) bool { return a.Root == dirs.Root && slices.Equal(a.Owners, others) }) {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitRefused, What: dirs.Root + " belongs to another user", Err: loop.ErrOwner,
		Why: fmt.Sprintf("it is of the user with the id %s, and pawl is started by that with the id %s: whoever owns a repository decides what is executed in it", joinIDs(others), joinIDs(users)),
		Fix: "if you trust its owner: {1} there; else make a clone of your own", Actions: []loop.Command{loop.PawlCommand("init").WithFlag("accept-owner")},
	}
}

// AcceptOwner records that a person trusts the owners of a repository as they are now. It
// reports false if the repository belongs to users, so that there is nothing to accept.
func AcceptOwner(home string, dirs gitdir.Dirs, users []int) (bool, error) {
	others, err := othersOf(dirs, users)
	if err != nil || len(others) == 0 {
		return false, err
	}
	accepted, err := readOwners(home)
	if err != nil {
		return false, err
	}
	accepted = slices.DeleteFunc(accepted, func(a acceptedOwner) bool { return a.Root == dirs.Root })
	if err := os.MkdirAll(home, 0o700); err != nil {
		return false, err
	}
	if err := replace(filepath.Join(home, ownersFile), append(accepted, acceptedOwner{dirs.Root, others})); err != nil {
		return false, fmt.Errorf("accept the owner of %s: %w", dirs.Root, err)
	}
	return true, nil
}

// othersOf returns who owns a repository beside users.
func othersOf(dirs gitdir.Dirs, users []int) ([]int, error) {
	owners, err := dirs.Owners()
	if err != nil {
		return nil, gitdir.Unreadable(dirs.Root, err)
	}
	return slices.DeleteFunc(owners, func(uid int) bool { return slices.Contains(users, uid) }), nil
}

func readOwners(home string) (list []acceptedOwner, err error) {
	path := filepath.Join(home, ownersFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: loop.ExitUnreadable, What: "read whose repositories are accepted from " + path, Why: err.Error(), Err: err,
			Fix: "restore the file, or remove it and accept them again: {1} in each", Actions: []loop.Command{loop.PawlCommand("init").WithFlag("accept-owner")},
		}
	}
	return list, nil
}

func joinIDs(ids []int) string {
	var words []string
	for _, id := range ids {
		words = append(words, strconv.Itoa(id))
	}
	return strings.Join(words, " and ")
}
