package toolchain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// compile runs the C compiler below the home.
func (m *machine) compile(args ...string) {
	m.t.Helper()
	for i, arg := range args {
		args[i] = m.text(arg)
	}
	res, err := proc.Plain{}.Run(m.t.Context(), proc.Spec{
		Argv: append([]string{"cc"}, args...), Dir: m.home, Env: []string{"PATH=/usr/bin:/bin"}, Timeout: time.Minute,
	})
	if err != nil || res.Exit != 0 {
		m.t.Fatalf("cc %v: %v, exit %d", args, err, res.Exit)
	}
}

// withLibraries is a program that needs one library, which needs another.
func withLibraries(m *machine, rpath ...string) {
	m.file("inner.c", "int inner(void) { return 42; }\n", 0o644)
	m.file("outer.c", "int inner(void);\nint outer(void) { return inner(); }\n", 0o644)
	m.file("main.c", "int outer(void);\nint main(void) { return outer() == 42 ? 0 : 1; }\n", 0o644)
	m.file("deps/a/.keep", "", 0o644)
	m.file("deps/b/.keep", "", 0o644)
	m.file("tool/.keep", "", 0o644)
	m.compile("-shared", "-fPIC", "-o", "/HOME/deps/b/libinner.so", "/HOME/inner.c")
	m.compile("-shared", "-fPIC", "-Wl,-soname,libouter.so.1", "-Wl,-rpath,$ORIGIN/../b", "-o", "/HOME/deps/a/libouter.so.1.0", "/HOME/outer.c", "-L/HOME/deps/b", "-linner")
	m.link("deps/a/libouter.so.1", "libouter.so.1.0")
	m.link("deps/a/libouter.so", "libouter.so.1")
	m.compile(append([]string{"-o", "/HOME/tool/answer", "/HOME/main.c", "-L/HOME/deps/a", "-louter", "-Wl,-rpath-link,/HOME/deps/b"}, rpath...)...)
	m.before("tool")
}

func TestLibrariesOutsideOfTheSystemAreShownWithWhatTheyNeed(t *testing.T) {
	if _, err := Resolve(t.Context(), proc.Plain{}, []string{"PATH=/usr/bin:/bin"}, t.TempDir(), "cc"); err != nil {
		t.Skipf("there is no compiler to make a library with: %v", err)
	}
	files := []string{"/HOME/deps/a/libouter.so.1", "/HOME/deps/a/libouter.so.1.0", "/HOME/deps/b/libinner.so", "/HOME/tool/answer"}
	for name, c := range map[string]struct {
		rpath []string
		env   []string
		want  []string // variables
	}{
		"by the path in the program":  {rpath: []string{"-Wl,-rpath,$ORIGIN/../deps/a"}},
		"by the older path in it":     {rpath: []string{"-Wl,--disable-new-dtags,-rpath,${ORIGIN}/../deps/a"}},
		"by a variable":               {env: []string{"LD_LIBRARY_PATH=/HOME/deps/a"}, want: []string{"LD_LIBRARY_PATH=/HOME/deps/a"}},
		"by a variable not looked at": {rpath: []string{"-Wl,-rpath,/HOME/deps/a"}, env: []string{"LD_LIBRARY_PATH=/HOME/other"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			withLibraries(m, c.rpath...)
			m.env = c.env
			got, err := m.resolve("answer")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(files, m.names(got.Bind)); diff != "" {
				t.Errorf("bound (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.want, m.names(got.Env)); diff != "" {
				t.Errorf("variables (-want +got)\n%s", diff)
			}
			if canEnter(t) {
				m.mustEnter(got, "answer")
			}
		})
	}
}

func TestANewRootHasNothingThatIsNotBound(t *testing.T) {
	if !canEnter(t) {
		t.Skip("this host makes no new roots")
	}
	m := newMachine(t)
	m.file("secret", "x", 0o644)
	m.binary("deno/deno")
	m.before("deno")
	got, err := m.resolve("deno")
	if err != nil {
		t.Fatal(err)
	}
	m.mustEnter(got, "deno")
	if out, res := m.enter(got, "cat", m.at("secret")); res.Exit == 0 {
		t.Errorf("the home is seen: %s", out)
	}
	got.Bind = nil
	if out, res := m.enter(got, "deno"); res.Exit == 0 {
		t.Errorf("the program runs without what is bound: %s", out)
	}
}
