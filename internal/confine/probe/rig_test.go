package probe

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// machine is a home and a PATH of a test's own, with a project.
type machine struct {
	t    *testing.T
	home string
	bin  string
	dir  string // the project
	env  []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	top := t.TempDir()
	m := &machine{t: t, home: filepath.Join(top, "home"), bin: filepath.Join(top, "bin"), dir: filepath.Join(top, "project")}
	for _, dir := range []string{m.home, m.bin, m.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) prober(path ...string) Prober {
	list := append(path, m.bin, "/usr/bin", "/bin")
	return Prober{
		Exec: proc.Plain{}, Home: m.home, Now: time.Unix(1_800_000_000, 0),
		Environ: append([]string{"PATH=" + strings.Join(list, string(filepath.ListSeparator)), "HOME=" + m.home}, m.env...),
	}
}

// write puts a file below the home.
func (m *machine) write(name, text string) {
	m.t.Helper()
	m.put(filepath.Join(m.home, filepath.FromSlash(name)), text, 0o600)
}

// script puts a program at a path below dir, and returns the directory in which
// it lies.
func (m *machine) script(dir, name, body string) string {
	m.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	m.put(path, "#!/bin/sh\n"+body+"\n", 0o755)
	return filepath.Dir(path)
}

func (m *machine) put(path, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// shellWords is what a shell makes of a line.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	var out strings.Builder
	res, err := proc.Plain{}.Run(t.Context(), proc.Spec{
		Argv: []string{"/bin/sh", "-c", `set -f; for w in ` + line + `; do printf '%s\0' "$w"; done`},
		Dir:  t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Timeout: time.Minute,
	})
	if err != nil || res.Exit != 0 {
		t.Fatalf("sh: %v, exit %d", err, res.Exit)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
}

// stopAtOutput runs programs and calls stop as soon as one of them writes.
type stopAtOutput struct{ stop context.CancelFunc }

func (s stopAtOutput) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	spec.Stdout = writer(func(data []byte) (int, error) {
		s.stop()
		return len(data), nil
	})
	return proc.Plain{}.Run(ctx, spec)
}

type writer func([]byte) (int, error)

func (w writer) Write(data []byte) (int, error) { return w(data) }
