package toolset_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/probe/toolchain"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
)

// below reports whether path lies in dir.
func below(path, dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }

func TestOnlyWhatAHumanVouchesForAddsToWhatOthersSee(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no tier of this system shows caches")
	}
	host := tree(t, map[string]string{"aa/entry": "compiled"})
	k := toolset.Set{Caches: []toolchain.Cache{{Kind: "go-build", Path: host, Env: "GOCACHE", Value: host}}}
	cache := toolset.Cache{Dir: filepath.Join(t.TempDir(), "caches"), UID: -1, GID: -1}
	views := func(vouched bool) (sandbox.View, func()) {
		t.Helper()
		all, done, err := k.Views(cache, toolset.Access{Scratch: t.TempDir(), Vouched: vouched})
		if err != nil || len(all) != 1 {
			t.Fatalf("Views = %+v, %v", all, err)
		}
		if all[0].At != host || all[0].Lower[len(all[0].Lower)-1] != host {
			t.Errorf("the host's own is not at the bottom: %+v", all[0])
		}
		return all[0], done
	}
	vouched, done := views(true)
	if !below(vouched.Upper, cache.Dir) {
		t.Errorf("what is vouched for goes to %s", vouched.Upper)
	}
	second, doneSecond := views(true)
	if below(second.Upper, cache.Dir) || !slices.Contains(second.Lower, vouched.Upper) {
		t.Errorf("a second writer at the same time gets %+v", second)
	}
	doneSecond()
	done()
	agent, done := views(false)
	if below(agent.Upper, cache.Dir) || !slices.Contains(agent.Lower, vouched.Upper) {
		t.Errorf("an agent gets %+v", agent)
	}
	done()
	if again, done := views(true); !below(again.Upper, cache.Dir) {
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
			k := toolset.Set{Caches: []toolchain.Cache{{Kind: "x", Path: host, Downloads: c.downloads}}}
			all, done, err := k.Views(toolset.Cache{Dir: filepath.Join(t.TempDir(), "c"), UID: os.Geteuid(), GID: os.Getegid()}, toolset.Access{Scratch: t.TempDir(), Downloads: c.setup})
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

func TestWithoutLayersCachesAreReadOrEmptyAndNeverShared(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no tier of this system shows caches")
	}
	host, layer, scratch := tree(t, map[string]string{"m/f": "1"}), tree(t, map[string]string{"caches/downloads-0/m/g": "2"}), t.TempDir()
	cache := toolset.Cache{Dir: filepath.Join(t.TempDir(), "caches"), UID: -1, GID: -1}
	for name, c := range map[string]struct {
		downloads bool
		access    toolset.Access
		read      string // the only layer of a view; empty: there is a folder of its own to write to
	}{
		"the host's downloads are read":             {true, toolset.Access{}, host},
		"a set-up's downloads are read before them": {true, toolset.Access{Layer: layer}, filepath.Join(layer, "caches/downloads-0")},
		"a set-up downloads into an empty folder":   {true, toolset.Access{Downloads: true}, ""},
		"nothing compiled is shown":                 {false, toolset.Access{Layer: layer}, ""},
		"what is vouched for stays alone too":       {false, toolset.Access{Vouched: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind := map[bool]string{true: "downloads", false: "compiled"}[c.downloads]
			k := toolset.Set{Caches: []toolchain.Cache{{Kind: kind, Path: host, Downloads: c.downloads}}}
			c.access.Scratch = filepath.Join(scratch, name)
			views, binds, err := k.FolderViews(cache, c.access)
			if err != nil {
				t.Fatal(err)
			}
			if c.read != "" {
				if len(views) != 1 || len(binds) != 0 || views[0].At != host || views[0].Upper != "" || !slices.Equal(views[0].Lower, []string{c.read}) {
					t.Errorf("views %+v, binds %+v, want %s to be read", views, binds, c.read)
				}
				return
			}
			if len(views) != 0 || len(binds) != 1 || binds[0].To != host || !binds[0].Write || !below(binds[0].From, c.access.Scratch) {
				t.Fatalf("views %+v, binds %+v, want a folder of its own", views, binds)
			}
			if entries, err := os.ReadDir(binds[0].From); err != nil || len(entries) != 0 {
				t.Errorf("it holds %v, %v", entries, err)
			}
		})
	}
	if _, err := os.Stat(cache.Dir); err == nil {
		t.Error("something is kept for programs that come later")
	}
}
