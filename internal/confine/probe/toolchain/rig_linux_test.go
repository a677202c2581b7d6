package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// machine is a home, a PATH and a project of a test's own.
type machine struct {
	t    *testing.T
	home string
	dir  string // the project
	path []string
	env  []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, home: filepath.Join(top, "home"), dir: filepath.Join(top, "project")}
	for _, dir := range []string{m.home, m.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// at is a path of the machine: below the home, or below the project with a
// leading dot and slash, or as it is if it is absolute.
func (m *machine) at(name string) string {
	switch rest, ok := strings.CutPrefix(name, "./"); {
	case ok:
		return filepath.Join(m.dir, rest)
	case filepath.IsAbs(name):
		return name
	}
	return filepath.Join(m.home, name)
}

// text is a text with /HOME and /PROJECT for where they are.
func (m *machine) text(s string) string {
	return strings.NewReplacer("/PROJECT", m.dir, "/HOME", m.home).Replace(s)
}

// names is a text with what text puts in taken out.
func (m *machine) names(list []string) []string {
	var all []string
	for _, s := range list {
		all = append(all, strings.NewReplacer(m.dir, "/PROJECT", m.home, "/HOME").Replace(s))
	}
	return all
}

func (m *machine) file(name, text string, mode os.FileMode) {
	m.t.Helper()
	path := m.at(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(m.text(text)), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) script(name, text string) {
	m.t.Helper()
	m.file(name, text, 0o755)
}

func (m *machine) link(name, target string) {
	m.t.Helper()
	path := m.at(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(m.text(target), path); err != nil {
		m.t.Fatal(err)
	}
}

// binary puts a program there that is not a script: it says true whatever it is
// asked, and its version if that.
func (m *machine) binary(names ...string) {
	m.t.Helper()
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, name := range names {
		m.file(name, "", 0o755)
		if err := os.WriteFile(m.at(name), text, 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
}

// before puts directories before the rest of PATH.
func (m *machine) before(dirs ...string) {
	for _, dir := range dirs {
		m.path = append(m.path, m.at(dir))
	}
}

func (m *machine) environ() []string {
	dirs := append(append([]string{}, m.path...), "/usr/bin", "/bin")
	all := []string{"PATH=" + strings.Join(dirs, ":"), "HOME=" + m.home}
	for _, entry := range m.env {
		all = append(all, m.text(entry))
	}
	return all
}

func (m *machine) resolve(word string) (Toolchain, error) {
	return Resolve(m.t.Context(), proc.Plain{}, m.environ(), m.dir, word)
}

// mustEnter makes a root of the system's directories, an empty home, the
// project and what the toolchain binds, and runs argv in it with the
// toolchain's PATH and variables alone. It returns what was written.
func (m *machine) mustEnter(tc Toolchain, argv ...string) string {
	m.t.Helper()
	out, res := m.enter(tc, argv...)
	if res.Exit != 0 {
		m.t.Fatalf("%v in the new root exits with %d:\n%s\nbound: %v", argv, res.Exit, out, tc.Bind)
	}
	return out
}

const newRoot = `set -e
mount -t tmpfs none "$ROOT"
for d in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /dev /proc; do
	if [ -d "$d" ]; then mkdir -p "$ROOT$d"; mount --rbind "$d" "$ROOT$d"; fi
done
mkdir -p "$ROOT$HOME" "$ROOT/tmp"
while read -r place; do
	if [ -d "$place" ]; then mkdir -p "$ROOT$place"; else mkdir -p "$ROOT${place%/*}"; : >>"$ROOT$place"; fi
	mount --rbind -o ro "$place" "$ROOT$place"
done
exec chroot "$ROOT" /usr/bin/env -i -C "$DIR" HOME="$HOME" "$@"
`

func (m *machine) enter(tc Toolchain, argv ...string) (string, proc.Result) {
	m.t.Helper()
	var out strings.Builder
	binds := strings.Join(append([]string{m.dir}, tc.Bind...), "\n") + "\n"
	inside := append([]string{"PATH=" + strings.Join(append(append([]string{}, tc.PathDirs...), "/usr/bin", "/bin"), ":")}, tc.Env...)
	res, err := proc.Plain{}.Run(m.t.Context(), proc.Spec{
		Argv: append(append([]string{"/usr/bin/unshare", "-Urm", "/bin/sh", "-c", newRoot, "root"}, inside...), argv...),
		Dir:  m.dir, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOT=" + m.t.TempDir(), "HOME=" + m.home, "DIR=" + m.dir},
		Stdin: strings.NewReader(binds), Stdout: &out, Stderr: &out, Timeout: time.Minute,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out.String(), res
}

// canEnter reports whether this host lets a test make a root of its own.
func canEnter(t *testing.T) bool {
	t.Helper()
	res, err := proc.Plain{}.Run(t.Context(), proc.Spec{
		Argv: []string{"/usr/bin/unshare", "-Urm", "/bin/true"}, Env: []string{"PATH=/usr/bin:/bin"}, Timeout: time.Minute,
	})
	return err == nil && res.Exit == 0
}

// startsNothing fails the test that starts a program.
type startsNothing struct{ testing.TB }

func (s startsNothing) Run(_ context.Context, spec proc.Spec) (proc.Result, error) {
	s.Fatalf("%v is started", spec.Argv)
	return proc.Result{}, nil
}

// versions is a manager as pyenv and its kin are: a script that chooses among
// versions/NAME by a variable, a file in the directory or above it, or a file
// of its own, and shims that hand over to it.
func (m *machine) versions(name, root, file string) {
	m.t.Helper()
	upper := strings.ToUpper(name)
	m.script(root+"/libexec/"+name, fmt.Sprintf(`#!/usr/bin/env bash
set -e
root="/HOME/%[1]s"
version="$%[2]s_VERSION"
dir="$PWD"
while [ -z "$version" ] && [ -n "$dir" ]; do
  if [ -f "$dir/%[3]s" ]; then version="$(cat "$dir/%[3]s")"; fi
  dir="${dir%%/*}"
done
if [ -z "$version" ]; then version="$(cat "$root/version" 2>/dev/null || echo system)"; fi
case "$1" in
which)
  if [ ! -d "$root/versions/$version" ]; then
    echo "%[4]s: version '$version' is not installed (set by $PWD/%[3]s)" >&2
    exit 1
  fi
  if [ ! -x "$root/versions/$version/bin/$2" ]; then
    echo "%[4]s: $2: command not found" >&2
    exit 127
  fi
  echo "$root/versions/$version/bin/$2" ;;
exec)
  shift
  program="$1"
  shift
  exec "$("$0" which "$program")" "$@" ;;
esac
`, root, upper, file, name))
	m.link(root+"/bin/"+name, "../libexec/"+name)
	m.before(root+"/shims", root+"/bin")
}

// shim is one of such a manager.
func (m *machine) shim(name, root, word string) {
	m.t.Helper()
	m.script(root+"/shims/"+word, fmt.Sprintf(`#!/usr/bin/env bash
set -e
program="${0##*/}"
export %s_ROOT="/HOME/%s"
exec "/HOME/%s/libexec/%s" exec "$program" "$@"
`, strings.ToUpper(name), root, root, name))
}
