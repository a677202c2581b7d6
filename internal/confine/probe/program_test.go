//go:build unix

package probe

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

func TestAShimCountsOnlyIfItStandsForSomethingInTheDirectory(t *testing.T) {
	const silent = "echo never asked >&2; exit 1"
	for name, c := range map[string]struct {
		shim string // below the home
		body string
		word string
		want Program
	}{
		"pyenv with a version": {
			shim: ".pyenv/shims/python3", body: "echo Python 3.12.1", word: "python3",
			want: Program{Shim: "pyenv", OK: true, Version: "3.12.1"},
		},
		"pyenv whose version is not installed": {
			shim: ".pyenv/shims/python3", word: "python3",
			body: "echo \"pyenv: version \\`3.13.1' is not installed (set by $PWD/.python-version)\" >&2; exit 1",
			want: Program{Shim: "pyenv", Problem: "pyenv: version `3.13.1' is not installed (set by DIR/.python-version)", Fix: "pyenv install 3.13.1"},
		},
		"pyenv with the program in another version": {
			shim: ".pyenv/shims/python3.9", word: "python3",
			body: silent,
			want: Program{Problem: "python3 is not in PATH", Fix: "install python3, or put its directory into PATH"},
		},
		"pyenv that names another version": {
			shim: ".pyenv/shims/python", word: "python",
			body: "printf 'pyenv: python: command not found\\n\\nThe `python'\"'\"' command exists in these Python versions:\\n  3.11.4\\n' >&2; exit 127",
			want: Program{Shim: "pyenv", Problem: "pyenv: python: command not found", Fix: "pyenv local 3.11.4"},
		},
		"asdf without a version": {
			shim: ".asdf/shims/node", word: "node",
			body: "printf 'No version is set for command node\\nConsider adding one of the following versions in your config file at %s/.tool-versions\\nnodejs 20.11.0\\n' \"$PWD\" >&2; exit 126",
			want: Program{Shim: "asdf", Problem: "No version is set for command node", Fix: "add the line nodejs 20.11.0 to .tool-versions"},
		},
		"asdf with a version that is not installed": {
			shim: ".asdf/shims/node", word: "node",
			body: "printf 'No preset version installed for command node\\nPlease install a version by running one of the following:\\n\\nasdf install nodejs 22.1.0\\n' >&2; exit 126",
			want: Program{Shim: "asdf", Problem: "No preset version installed for command node", Fix: "asdf install nodejs 22.1.0"},
		},
		"mise": {
			shim: ".local/share/mise/shims/go", word: "go",
			body: "printf '\\033[31mmise\\033[0m ERROR No version is set for shim: go\\nSet a global default version with one of the following:\\nmise use -g go@1.26.0\\n' >&2; exit 1",
			want: Program{Shim: "mise", Problem: "mise ERROR No version is set for shim: go", Fix: "mise use go@1.26.0"},
		},
		"volta": {
			shim: ".volta/bin/npm", word: "npm",
			body: "printf 'error: Node is not available.\\n\\nTo run any Node command, first set a default version using `volta install node`\\n' >&2; exit 126",
			want: Program{Shim: "volta", Problem: "error: Node is not available.", Fix: "volta install node"},
		},
		"rbenv that says nothing": {
			shim: ".rbenv/shims/ruby", word: "ruby", body: "exit 127",
			want: Program{Shim: "rbenv", Problem: "ruby answers --version with exit status 127", Fix: "rbenv install"},
		},
		"an answer that would be pasted into a shell is not taken over": {
			shim: ".asdf/shims/node", word: "node",
			body: "printf 'No version\\nasdf install $(touch x) ; asdf install `id`\\n' >&2; exit 126",
			want: Program{Shim: "asdf", Problem: "No version", Fix: "asdf install"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			dir := m.script(m.home, c.shim, c.body)
			// Nothing of the machine's own may answer instead.
			p := m.prober()
			p.Environ[0] = "PATH=" + dir
			got := p.FindProgram(t.Context(), m.dir, c.word)
			got.Problem = strings.ReplaceAll(got.Problem, m.dir, "DIR")
			c.want.Word = c.word
			if c.want.Shim != "" {
				c.want.Path = filepath.Join(dir, c.word)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("program (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAShimIsRecognisedWhereverItLies(t *testing.T) {
	m := newMachine(t)
	elsewhere := filepath.Join(m.home, "elsewhere")
	m.script(elsewhere, "pyenv/shims/python", "echo 3.1.2")
	m.script(m.bin, "ruby", "# plugin: ruby\nif false; then exec asdf exec ruby; fi; echo ruby 3.4.1")
	m.script(m.bin, "rustup", "case \"$0\" in */cargo) echo 'error: rustup could not choose a version of cargo to run' >&2; exit 1;; */rustc) echo rustc 1.80.0;; esac")
	for name, link := range map[string]func(string, string) error{"cargo": os.Symlink, "rustc": os.Link} {
		if err := link(filepath.Join(m.bin, "rustup"), filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.env = []string{"PYENV_ROOT=" + filepath.Join(elsewhere, "pyenv")}
	p := m.prober(filepath.Join(elsewhere, "pyenv", "shims"))
	for word, want := range map[string]Program{
		"python": {Shim: "pyenv", OK: true, Version: "3.1.2"},
		"ruby":   {Shim: "asdf", OK: true, Version: "3.4.1"},
		"cargo":  {Shim: "rustup", Problem: "error: rustup could not choose a version of cargo to run", Fix: "rustup default stable"},
		"rustc":  {Shim: "rustup", OK: true, Version: "1.80.0"},
	} {
		got := p.FindProgram(t.Context(), m.dir, word)
		got.Word, got.Path = "", ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", word, diff)
		}
	}
}

func TestAManagerIsAskedWithTheFolderThatItsShimIsIn(t *testing.T) {
	m := newMachine(t)
	elsewhere := filepath.Join(m.home, "elsewhere")
	m.script(elsewhere, "pyenv/shims/python", "exec /elsewhere/pyenv exec python")
	m.script(elsewhere, "pyenv/versions/3/bin/python", "echo 3")
	m.script(m.bin, "pyenv", `echo "$PYENV_ROOT/versions/3/bin/python"`)
	for _, env := range [][]string{nil, {"PYENV_ROOT=" + filepath.Join(elsewhere, "pyenv")}} {
		m.env = env
		p := m.prober(filepath.Join(elsewhere, "pyenv", "shims"))
		want := Program{Word: "python", Shim: "pyenv", OK: true, Path: filepath.Join(elsewhere, "pyenv/versions/3/bin/python")}
		if diff := cmp.Diff(want, p.RealProgram(t.Context(), m.dir, "python")); diff != "" {
			t.Errorf("with %q (-want +got)\n%s", env, diff)
		}
	}
}

func TestNothingRunsThatMightBeOfTheProject(t *testing.T) {
	m := newMachine(t)
	ran := filepath.Join(m.home, "ran")
	trap := "echo 1 >> " + ran
	venv := m.script(m.dir, ".venv/bin/python", trap)
	m.script(m.dir, "gradlew", trap)
	m.script(m.bin, "deploy", trap)
	shims := m.script(m.home, ".pyenv/shims/pytest", trap)
	m.script(m.home, ".pyenv/bin/pyenv", `[ "$1 $2" = "which pytest" ] || exit 1; if [ "${PWD##*/}" = project ]; then echo /x/3.12/bin/pytest; else exit 1; fi`)
	p := m.prober(venv, shims)
	for word, want := range map[string]Program{
		"python":    {Path: filepath.Join(venv, "python"), OK: true},
		"./gradlew": {Path: filepath.Join(m.dir, "gradlew"), OK: true},
		"deploy":    {Path: filepath.Join(m.bin, "deploy"), OK: true},
		"pytest":    {Path: filepath.Join(shims, "pytest"), OK: true, Shim: "pyenv"},
	} {
		want.Word = word
		if diff := cmp.Diff(want, p.FindProgram(t.Context(), m.dir, word)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", word, diff)
		}
	}
	if isThere(ran) {
		t.Error("something ran that must not")
	}
	if got := p.FindProgram(t.Context(), m.home, "pytest"); got.OK || got.Fix != "python -m pip install pytest && pyenv rehash" {
		t.Errorf("pytest where it is not installed = %+v, want the fix", got)
	}
}

func TestAShimWithoutItsManagerIsAProblem(t *testing.T) {
	m := newMachine(t)
	shims := m.script(m.home, ".asdf/shims/mytool", "exit 0")
	got := m.prober(shims).FindProgram(t.Context(), m.dir, "mytool")
	if got.OK || got.Problem != "mytool is a shim of asdf, which is not there itself" {
		t.Errorf("program %+v, want a problem with asdf", got)
	}
}

func TestAWordIsFoundAsAShellWould(t *testing.T) {
	m := newMachine(t)
	first := m.script(m.home, "first/node", "echo v24.1.0")
	m.script(m.bin, "node", "echo v20.0.0")
	m.script(m.dir, "relative/lonely", "echo 1.0")
	m.put(filepath.Join(m.dir, "notes"), "x", 0o644)
	m.put(filepath.Join(m.bin, "make"), "x", 0o644)
	m.write(".nvm/nvm.sh", "")
	p := m.prober("relative", first)
	p.Environ[0] = strings.TrimSuffix(p.Environ[0], ":/usr/bin:/bin")
	for word, want := range map[string]Program{
		"node":       {Path: filepath.Join(first, "node"), OK: true, Version: "24.1.0"},
		"lonely":     {Problem: "lonely is not in PATH", Fix: "install lonely, or put its directory into PATH"},
		"make":       {Problem: "make is not in PATH", Fix: "install make, or put its directory into PATH"},
		"npm":        {Problem: "npm is not in PATH", Fix: "nvm install, and start pawl from that shell: nvm works through the PATH of the shell that loaded it"},
		"./notes":    {Problem: "./notes is not executable", Fix: "chmod +x ./notes"},
		"./gradlew":  {Problem: "./gradlew is not there", Fix: "create it, or name another command"},
		"./relative": {Problem: "./relative is not there", Fix: "create it, or name another command"},
		"":           {Problem: " is not in PATH", Fix: "install , or put its directory into PATH"},
	} {
		want.Word = word
		if diff := cmp.Diff(want, p.FindProgram(t.Context(), m.dir, word)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", word, diff)
		}
	}
}

func TestAProgramThatIsThereAndDoesNotRunIsAProblem(t *testing.T) {
	m := newMachine(t)
	m.put(filepath.Join(m.bin, "node"), "#!/none/such\n", 0o755)
	m.script(m.bin, "java", "echo 'error while loading shared libraries: libx.so' >&2; exit 127")
	p := m.prober()
	for word, want := range map[string]string{
		"node": "the interpreter of the program is missing", "java": "error while loading shared libraries",
	} {
		got := p.FindProgram(t.Context(), m.dir, word)
		if got.OK || !strings.Contains(got.Problem, want) || got.Fix == "" {
			t.Errorf("%s = %+v, want a problem with %q", word, got, want)
		}
	}
}

func TestAQuestionIsAskedOfflineWithoutInputAndOutsideTheProject(t *testing.T) {
	m := newMachine(t)
	m.env = []string{"NO_PROXY=*", "GOTOOLCHAIN=auto", "OWN=1"}
	m.script(m.bin, "go", `read line && exit 9; [ "$GOTOOLCHAIN$NO_PROXY$OWN" = local1 ] || exit 8; [ "$https_proxy" = http://127.0.0.1:9 ] || exit 7; [ "$PWD" = "$HOME" ] || exit 6; [ "$*" = version ] || exit 5; echo go version go1.26.1 linux/amd64`)
	got := m.prober().FindProgram(t.Context(), m.dir, "go")
	if !got.OK || got.Version != "1.26.1" {
		t.Errorf("go = %+v, want 1.26.1", got)
	}
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	m := newMachine(t)
	m.script(m.bin, "node", "echo started; while :; do :; done")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := m.prober()
	p.Exec = stopAtOutput{cancel}
	got := p.FindProgram(ctx, m.dir, "node")
	if got.OK || got.Problem != "node was not waited for" {
		t.Errorf("node = %+v, want a problem", got)
	}
}

// TestAPipeForAManifestIsNotWaitedFor ends, which it would not if the pipe were
// opened.
func TestAPipeForAManifestIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "Makefile"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := Repo{Problems: []Problem{{"Makefile", "not a regular file"}}}
	if diff := cmp.Diff(want, Repository(os.DirFS(dir))); diff != "" {
		t.Errorf("repository (-want +got)\n%s", diff)
	}
}

// TestTheProgramsOfThisMachineAnswer looks at what happens to be installed.
func TestTheProgramsOfThisMachineAnswer(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	p := Prober{Exec: proc.Plain{}, Environ: os.Environ(), Home: home}
	for _, word := range []string{"go", "git", "npm", "cargo", "python3"} {
		got := p.FindProgram(t.Context(), t.TempDir(), word)
		t.Logf("%+v", got)
		if got.OK && got.Version == "" || !got.OK && (got.Problem == "" || got.Fix == "") {
			t.Errorf("%s = %+v, want a version or a problem with a fix", word, got)
		}
	}
}
