//go:build unix

package definition

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestLoadReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loop.config.yaml")
	write(t, path, configA)
	doc, data, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != configA {
		t.Errorf("source %q, want the file", data)
	}
	if got, _ := doc.Scalar("name"); got.Text != "keep-green" {
		t.Errorf("name %q, want keep-green", got.Text)
	}
}

func TestLoadRefusesWhatIsNoPlainFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real"), configA)
	write(t, filepath.Join(dir, "big"), "name: "+strings.Repeat("x", 10<<20))
	write(t, filepath.Join(dir, "two"), configA)
	if err := os.Link(filepath.Join(dir, "two"), filepath.Join(dir, "names")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		exit int
		why  string
	}{
		"missing": {3, "no such file"},
		"big":     {4, "larger than"},
		"link":    {4, "symbolic link"},
		"names":   {4, "second name"},
		"fifo":    {4, "not a regular file"},
		".":       {4, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(filepath.Join(dir, name))
			fault, ok := errors.AsType[*loop.Fault](err)
			if !ok || fault.Exit != want.exit || !strings.Contains(fault.Why, want.why) || fault.Fix == "" {
				t.Errorf("Load = %#v, want exit status %d with %q and a fix", err, want.exit, want.why)
			}
			if want.exit == 3 && !errors.Is(err, loop.ErrNotFound) {
				t.Errorf("%v is not loop.ErrNotFound", err)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
