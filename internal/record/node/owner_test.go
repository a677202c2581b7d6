package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// TestARepositoryOfAnotherUserIsRefusedUntilAPersonAcceptsIt is asked by a user who has another
// id than the one that has made the repository.
func TestARepositoryOfAnotherUserIsRefusedUntilAPersonAcceptsIt(t *testing.T) {
	t.Parallel()
	own, home := []int{os.Geteuid()}, t.TempDir()
	other, third := []int{own[0] + 1}, []int{own[0] + 2}
	here, there := dirsOf(t, gittest.Repo(t, nil)), dirsOf(t, gittest.Repo(t, nil))
	if err := node.CheckOwner(home, here, own); err != nil {
		t.Errorf("a repository of one's own: %v", err)
	}
	err := node.CheckOwner(home, here, other)
	if wantFault(t, err, loop.ExitRefused, "belongs to another user", "pawl init --accept-owner"); !errors.Is(err, loop.ErrOwner) {
		t.Errorf("the error is %v, want ErrOwner", err)
	}
	if accepted, err := node.AcceptOwner(home, here, own); accepted || err != nil {
		t.Errorf("one's own is accepted: %t, %v", accepted, err)
	}
	for range 2 {
		if accepted, err := node.AcceptOwner(home, here, other); !accepted || err != nil {
			t.Fatalf("accepted: %t, %v", accepted, err)
		}
	}
	if err := node.CheckOwner(home, here, other); err != nil {
		t.Errorf("accepted and refused: %v", err)
	}
	for name, c := range map[string]error{
		"another repository":                  node.CheckOwner(home, there, other),
		"a home in which nobody accepted it":  node.CheckOwner(t.TempDir(), here, other),
		"a home that is not there":            node.CheckOwner(filepath.Join(home, "none"), here, other),
		"one of the owners, of several users": node.CheckOwner(home, there, third),
	} {
		if !errors.Is(c, loop.ErrOwner) {
			t.Errorf("%s: %v, want ErrOwner", name, c)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "owners.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := node.CheckOwner(home, here, other); err == nil || errors.Is(err, loop.ErrOwner) || !strings.Contains(err.Error(), "owners.json") {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestWhoCalledSudoOwnsTheRepositoriesOfRoot holds what git holds, too.
func TestWhoCalledSudoOwnsTheRepositoriesOfRoot(t *testing.T) {
	t.Parallel()
	got, want := node.Users([]string{"SUDO_UID=1234"}), 1
	if os.Geteuid() == 0 {
		want = 2
	}
	if len(got) != want || got[0] != os.Geteuid() || want == 2 && got[1] != 1234 {
		t.Errorf("users = %v", got)
	}
}
