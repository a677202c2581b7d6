package kit_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/probe/toolchain"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/workspace/kit"
)

// below reports whether path lies in dir.
func below(path, dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }

func TestOnlyWhatAHumanVouchesForAddsToWhatOthersSee(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no tier of this system shows caches")
	}
	host := tree(t, map[string]string{"aa/entry": "compiled"})
	k := kit.Kit{Caches: []toolchain.Cache{{Kind: "go-build", Path: host, Env: "GOCACHE", Value: host}}}
	shelf := kit.Shelf{Dir: filepath.Join(t.TempDir(), "caches"), UID: -1, GID: -1}
	views := func(vouched bool) (sandbox.View, func()) {
		t.Helper()
		all, done, err := k.Views(shelf, kit.Access{Scratch: t.TempDir(), Vouched: vouched})
		if err != nil || len(all) != 1 {
			t.Fatalf("Views = %+v, %v", all, err)
		}
		if all[0].At != host || all[0].Lower[len(all[0].Lower)-1] != host {
			t.Errorf("the host's own is not at the bottom: %+v", all[0])
		}
		return all[0], done
	}
	vouched, done := views(true)
	if !below(vouched.Upper, shelf.Dir) {
		t.Errorf("what is vouched for goes to %s", vouched.Upper)
	}
	second, doneSecond := views(true)
	if below(second.Upper, shelf.Dir) || !slices.Contains(second.Lower, vouched.Upper) {
		t.Errorf("a second writer at the same time gets %+v", second)
	}
	doneSecond()
	done()
	agent, done := views(false)
	if below(agent.Upper, shelf.Dir) || !slices.Contains(agent.Lower, vouched.Upper) {
		t.Errorf("an agent gets %+v", agent)
	}
	done()
	if again, done := views(true); !below(again.Upper, shelf.Dir) {
		t.Errorf("after the first let go, the next that is vouched for gets %s", again.Upper)
	} else {
		done()
	}
}

func TestProgramsOfAnotherUserReadTheHostsDownloadsAndAddToTheirOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no tier of this system shows caches")
	}
	host := tree(t, map[string]string{"m/f": "1"})
	for name, c := range map[string]struct {
		downloads, setup, shown bool
	}{
		"downloads are read":                      {true, false, true},
		"a set-up downloads into a place it owns": {true, true, false},
		"build caches are read and added to":      {false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := kit.Kit{Caches: []toolchain.Cache{{Kind: "x", Path: host, Downloads: c.downloads}}}
			all, done, err := k.Views(kit.Shelf{Dir: filepath.Join(t.TempDir(), "c"), UID: os.Geteuid(), GID: os.Getegid()}, kit.Access{Scratch: t.TempDir(), Downloads: c.setup})
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			if got := slices.Contains(all[0].Lower, host); got != c.shown {
				t.Errorf("the host's is shown: %v, want %v (%+v)", got, c.shown, all[0])
			}
			if _, err := os.Stat(filepath.Join(all[0].Lower[0], "m")); (err == nil) == c.downloads {
				t.Errorf("the folders of the host's are there for programs to add to: %v", err)
			}
		})
	}
}
