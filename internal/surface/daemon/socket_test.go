//go:build unix

package daemon_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/daemon"
)

// shortDir makes a folder whose name is short enough for a socket, whatever the test is called.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pawl-") //nolint:usetesting // A t.TempDir has a long name.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// listen claims the seat of a home and opens its socket.
func listen(t *testing.T, home, sockets string) (net.Listener, error) {
	t.Helper()
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	claimed, err := daemon.SeatOf(config.Settings{Home: home, Database: filepath.Join(home, "pawl.db"), Sockets: sockets}).Claim(daemon.Running{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claimed.Leave() })
	l, err := claimed.Listen(t.Context())
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

func TestASocketWithTooLongAPathIsInAFolderForTemporaryFiles(t *testing.T) {
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	home := filepath.Join(shortDir(t), strings.Repeat("h", 120))
	l, err := listen(t, home, home)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Addr().String()
	if dir := filepath.Join(temporary, fmt.Sprintf("pawl-%d", os.Getuid())); filepath.Dir(path) != dir {
		t.Errorf("the socket is %s, want it in %s", path, dir)
	}
	for name, mode := range map[string]os.FileMode{path: os.ModeSocket | 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
		}
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestASocketThatIsTooLongEverywhereIsRefusedWithItsPlace(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(shortDir(t), strings.Repeat("t", 120)))
	home := filepath.Join(shortDir(t), strings.Repeat("h", 120))
	_, err := listen(t, home, home)
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != loop.ExitNotReady || !strings.Contains(f.What, os.TempDir()) || !strings.Contains(f.Why, "bytes") || f.Fix != "set TMPDIR to a folder with a shorter name" {
		t.Errorf("error = %#v", err)
	}
}

func TestASocketIsNotPutIntoAFolderOfOthers(t *testing.T) {
	theirs := "/" // It is root's.
	if os.Getuid() == 0 {
		theirs = shortDir(t)
		if err := os.Chown(theirs, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	open, own := shortDir(t), shortDir(t)
	link := filepath.Join(own, "link")
	if err := errors.Join(os.Chmod(open, 0o777), os.Symlink(own, link)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, fix string }{
		"a folder of another user": {theirs, "set PAWL_HOME to a folder of your own"},
		"others can write there":   {open, "chmod 700 " + open},
		"a link to a folder":       {link, "set PAWL_HOME to a folder of your own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := listen(t, shortDir(t), c.dir)
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != loop.ExitRefused || !strings.Contains(f.What, c.dir) || f.Advice().String() != c.fix {
				t.Errorf("error = %#v; want exit %d with %s and %q", err, loop.ExitRefused, c.dir, c.fix)
			}
		})
	}
	t.Run("a folder for temporary files that another user has made", func(t *testing.T) {
		temporary := shortDir(t)
		t.Setenv("TMPDIR", temporary)
		if err := os.Symlink(own, filepath.Join(temporary, fmt.Sprintf("pawl-%d", os.Getuid()))); err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(shortDir(t), strings.Repeat("h", 120))
		_, err := listen(t, home, home)
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitRefused || f.Fix != "set TMPDIR to a folder of your own" {
			t.Errorf("error = %#v", err)
		}
	})
}
