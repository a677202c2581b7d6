package toolchain

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// layout is how a program lies on a machine.
type layout struct {
	make func(m *machine)
	word string
	want Toolchain // with /HOME and /PROJECT for where they are
}

func TestEveryLayoutShowsWhatItsProgramNeedsAndNoMore(t *testing.T) {
	confined := canEnter(t)
	if !confined {
		t.Log("this host makes no new roots: what is listed is compared, and not tried")
	}
	all := maps.Clone(managed)
	maps.Copy(all, installed)
	if len(all) < len(managed)+len(installed) {
		t.Fatal("two layouts have one name")
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.make(m)
			got, err := m.resolve(c.word)
			if err != nil {
				t.Fatalf("resolve %s: %+v", c.word, err)
			}
			named := got
			named.Bind, named.PathDirs, named.Env = m.names(got.Bind), m.names(got.PathDirs), m.names(got.Env)
			named.Path = strings.Join(m.names([]string{got.Path}), "")
			c.want.Program = c.word
			ignored := cmpopts.IgnoreFields(Toolchain{}, "Digest")
			if c.want.Version == "" {
				ignored = cmpopts.IgnoreFields(Toolchain{}, "Digest", "Version")
			}
			if diff := cmp.Diff(c.want, named, ignored); diff != "" {
				t.Errorf("toolchain (-want +got)\n%s", diff)
			}
			if confined && got.Path != "" {
				m.mustEnter(got, c.word, "--version")
			}
		})
	}
}

func TestWhatCannotBeResolvedIsAFaultWithTheFix(t *testing.T) {
	for name, c := range map[string]struct {
		make func(m *machine)
		word string
		why  string
		fix  string
	}{
		"a program that is not there": {
			make: func(*machine) {}, word: "no-such-program",
			why: "no-such-program is not in PATH", fix: "install no-such-program, or put its directory into PATH",
		},
		"a version that is not installed": {
			make: func(m *machine) {
				m.versions("pyenv", ".pyenv", ".python-version")
				m.shim("pyenv", ".pyenv", "python3")
				m.file("./.python-version", "3.13.1", 0o644)
			},
			word: "python3", why: "pyenv: version '3.13.1' is not installed (set by /PROJECT/.python-version)", fix: "pyenv install 3.13.1",
		},
		"a manager that names a file which is gone": {
			make: func(m *machine) {
				m.script(".cargo/bin/rustup", "#!/bin/sh\necho /HOME/.rustup/toolchains/stable/bin/cargo\n")
				m.link(".cargo/bin/cargo", "rustup")
				m.before(".cargo/bin")
			},
			word: "cargo", why: "rustup names /HOME/.rustup/toolchains/stable/bin/cargo, which is not there", fix: "rustup default stable",
		},
		"an interpreter that is gone": {
			make: func(m *machine) {
				m.script(".local/bin/black", "#!/HOME/old/bin/python\n")
				m.before(".local/bin")
			},
			word: "black", why: "/HOME/.local/bin/black names the interpreter /HOME/old/bin/python, which is not there",
			fix: "reinstall black: what it was installed with is gone",
		},
		"an environment whose Python is gone": {
			make: func(m *machine) {
				m.binary("envs/mine/bin/python3")
				m.file("envs/mine/pyvenv.cfg", "home = /HOME/gone/bin\n", 0o644)
				m.before("envs/mine/bin")
			},
			word: "python3", why: "/HOME/envs/mine was made with an interpreter that is not there any more",
			fix: "make the environment again: python3 -m venv --clear /HOME/envs/mine",
		},
		"a toolchain that go.mod asks for and nobody fetched": {
			make: func(m *machine) {
				m.binary("sdk/go/bin/go")
				m.file("sdk/go/VERSION", "go1.26.0\n", 0o644)
				m.file("./go.mod", "module m\n\ngo 1.27.1\n", 0o644)
				m.before("sdk/go/bin")
			},
			word: "go", why: "/PROJECT/go.mod asks for go1.27.1, and only go1.26.0 is installed",
			fix: "GOTOOLCHAIN=auto go version, in /PROJECT: it fetches go1.27.1",
		},
		"a version that corepack did not fetch": {
			make: func(m *machine) {
				m.node("node20")
				m.script("node20/lib/node_modules/corepack/dist/yarn.js", "#!/usr/bin/env node\nrequire('./lib/corepack.cjs')\n")
				m.link("node20/bin/yarn", "../lib/node_modules/corepack/dist/yarn.js")
				m.file("./package.json", `{"packageManager": "yarn@4.1.0"}`, 0o644)
				m.before("node20/bin")
			},
			word: "yarn", why: "corepack has not fetched yarn@4.1.0", fix: "corepack install, in /PROJECT",
		},
		"a snap that needs its daemon": {
			make: func(m *machine) {
				m.binary("snapd/snap")
				m.link("snap/bin/ruby", "/HOME/snapd/snap")
				m.before("snap/bin")
			},
			word: "ruby", why: "/HOME/snap/bin/ruby is a snap, which only the daemon of snaps can start",
			fix: "install ruby in another way, and put it before /HOME/snap/bin in PATH",
		},
		"Maven without a Java": {
			make: func(m *machine) {
				m.script("maven/bin/mvn", "#!/bin/sh\n")
				m.file("maven/boot/plexus-classworlds-2.7.0.jar", "", 0o644)
				m.before("maven/bin")
				m.env = []string{"JAVA_HOME=/HOME/gone"}
			},
			word: "mvn", why: "JAVA_HOME is /HOME/gone, and there is no bin/java", fix: "set JAVA_HOME to the directory of a JDK, or unset it",
		},
		"a script that starts nothing": {
			make: func(m *machine) {
				m.script("bin/node", "#!/bin/sh\nexit 3\n")
				m.before("bin")
			},
			word: "node", why: "/HOME/bin/node is a script that does not say which program it starts: nothing answered",
			fix: "put the directory of the real node before /HOME/bin in PATH",
		},
		"a program that lies with credentials": {
			make: func(m *machine) {
				m.binary(".ssh/bin/helper")
				m.before(".ssh/bin")
			},
			word: "helper", why: "it needs /HOME/.ssh/bin/helper, which is too much to show to a confined program",
			fix: "install helper in a directory of its own, or for the whole system",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.make(m)
			got, err := m.resolve(c.word)
			fault, ok := errors.AsType[*loop.Fault](err)
			if !ok {
				t.Fatalf("resolve %s = %+v, %v, want a fault", c.word, got, err)
			}
			said := []string{fault.Why, fault.Fix}
			if diff := cmp.Diff([]string{c.why, c.fix}, m.names(said)); diff != "" || fault.Exit != loop.ExitMissing {
				t.Errorf("fault with exit %d (-want +got)\n%s", fault.Exit, diff)
			}
		})
	}
}

func TestAProjectDoesNotChooseWhatOfTheHomeIsShown(t *testing.T) {
	for name, make := range map[string]func(m *machine){
		"a link to a key":                 func(m *machine) { m.link("./tool", "/HOME/keys/id") },
		"an interpreter that is a key":    func(m *machine) { m.script("./tool", "#!/HOME/keys/id\n") },
		"an interpreter that is a script": func(m *machine) { m.script("./tool", "#!/HOME/keys/deploy.sh\n") },
		"an environment made with a directory of the home": func(m *machine) {
			m.link("./venv/bin/tool", "/usr/bin/true")
			m.file("./venv/pyvenv.cfg", "home = /HOME/keys\nexecutable = /HOME/keys/deploy.sh\n", 0o644)
			m.link("./tool", "venv/bin/tool")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.file("keys/id", "secret", 0o700)
			m.script("keys/deploy.sh", "#!/bin/sh\n")
			make(m)
			if got, err := m.resolve("./tool"); err == nil {
				t.Errorf("resolve = %+v, want a fault", got)
			}
		})
	}
}

func TestTheDigestChangesWithTheInstallation(t *testing.T) {
	m := newMachine(t)
	m.python("python")
	m.before("python/bin")
	first, err := m.resolve("python3")
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.resolve("python3")
	if err != nil || first.Digest != again.Digest {
		t.Errorf("the same installation has the digests %s and %s, %v", first.Digest, again.Digest, err)
	}
	file, err := os.OpenFile(filepath.Join(m.home, "python/bin/python3.11"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("more")
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	other, err := m.resolve("python3")
	if err != nil || other.Digest == first.Digest {
		t.Errorf("another file has the same digest, %v", err)
	}
}
