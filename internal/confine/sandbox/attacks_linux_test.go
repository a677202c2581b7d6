package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage/selftest"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// newPlainCell returns a box of tier full with a directory of the host as its tree.
func newPlainCell(tb testing.TB) Box {
	tb.Helper()
	b := Box{Tier: Full, Tree: "/srv/project", Home: "/home/somebody", Dir: tb.TempDir()}
	giveToProgram(tb, b.Dir)
	return b
}

// attackedBoxes returns the boxes in which an attack on files is tried, and the
// directories of the host with the tree's files.
func attackedBoxes(t *testing.T) map[string]struct {
	box  Box
	root string
} {
	t.Helper()
	layered, plain := newCell(t), newPlainCell(t)
	return map[string]struct {
		box  Box
		root string
	}{"layered": {layered, layered.Layers.Lower[0]}, "plain": {plain, plain.Dir}}
}

// writeInTree writes a file of the tree, and makes the directories above it.
func writeInTree(t *testing.T, root, name, text string) string {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(path); isWithin(dir, root); dir = filepath.Dir(dir) {
		giveToProgram(t, dir)
	}
	writeFile(t, path, text)
	giveToProgram(t, path)
	return path
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

func TestAttack001AFileOutsideOfTheScopeIsWritten(t *testing.T) {
	for name, c := range attackedBoxes(t) {
		t.Run(name, func(t *testing.T) {
			readme := writeInTree(t, c.root, "docs/README.md", "text")
			c.box.Protect = []string{c.box.Tree + "/docs/README.md"}
			out, _ := runScript(t, c.box, `exec 2>&1; echo x > docs/README.md; rm -f docs/README.md; mv docs/README.md docs/other; mv docs moved 2>/dev/null && echo moved; cat docs/README.md`)
			if strings.Contains(out, "moved") || !strings.Contains(out, "Read-only file system") || !strings.HasSuffix(out, "text") {
				t.Errorf("printed:\n%s", out)
			}
			wantText(t, readme, "text")
		})
	}
}

func TestAttack004ASymbolicLinkToASecretLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	open755(t, dir)
	secret := writeInTree(t, dir, "secret", "the secret")
	for name, c := range attackedBoxes(t) {
		t.Run(name, func(t *testing.T) {
			out, _ := runScript(t, c.box, `exec 2>&1; ln -s "$SECRET" l; cat l; for up in .. ../.. ../../../../../..; do cat "$up$SECRET"; done; cat /proc/1/root"$SECRET" /proc/self/root"$SECRET"`,
				"SECRET="+secret)
			if strings.Contains(out, "the secret") || !strings.Contains(out, "No such file") {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

func TestAttack005ALinkedDirectoryIsNoWayAroundWhatIsProtected(t *testing.T) {
	for name, c := range attackedBoxes(t) {
		t.Run(name, func(t *testing.T) {
			config := writeInTree(t, c.root, ".loops/x/loop.config.yaml", "text")
			c.box.Protect = []string{c.box.Tree + "/.loops"}
			out, _ := runScript(t, c.box, `exec 2>&1; mkdir src; ln -s ../.loops src/d; echo x > src/d/x/loop.config.yaml; echo x > src/d/new; ls .loops`)
			if strings.Count(out, "Read-only file system") != 2 || !strings.HasSuffix(out, "\nx") {
				t.Errorf("printed:\n%s", out)
			}
			wantText(t, config, "text")
		})
	}
}

func TestALinkInTheTreeDoesNotLeadTheStageOut(t *testing.T) {
	// The new root is mounted at /tmp while it is built, which hides the host's.
	target, err := os.MkdirTemp("/var/tmp", "pawl-link-") //nolint:usetesting // A directory of the test lies below /tmp.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(target) })
	giveToProgram(t, target)
	for name, c := range attackedBoxes(t) {
		for what, link := range map[string]string{"absolute": target, "upwards": "../../../../../../.." + target} {
			t.Run(name+" "+what, func(t *testing.T) {
				runScript(t, c.box, `rm -f cache; ln -s "$LINK" cache`, "LINK="+link)
				b := c.box
				b.Binds = []Bind{{From: t.TempDir(), To: b.Tree + "/cache/made"}}
				_, err := b.Run(t.Context(), proc.Spec{Argv: []string{"/bin/true"}, Dir: b.Tree})
				if _, ok := errors.AsType[*SetupError](err); !ok {
					t.Errorf("Run = %v", err)
				}
				if made, _ := os.ReadDir(target); len(made) > 0 {
					t.Errorf("the stage made %v on the host", made)
				}
			})
		}
	}
}

func TestAttack007AHardLinkFromBeforeTheRunIsCopiedWhenItIsWritten(t *testing.T) {
	b := newCell(t)
	outside := writeInTree(t, filepath.Dir(b.Layers.Lower[0]), "outside/secret.txt", "text")
	if err := os.Link(outside, filepath.Join(b.Layers.Lower[0], "h")); err != nil {
		t.Fatal(err)
	}
	if out, _ := runScript(t, b, `echo x > h; cat h`); out != "x" {
		t.Errorf("printed %q", out)
	}
	wantText(t, outside, "text")
}

func TestAttack008AHardLinkIsNotMadeToWhatIsElsewhere(t *testing.T) {
	shown := writeInTree(t, t.TempDir(), "shown", "text")
	for name, c := range attackedBoxes(t) {
		t.Run(name, func(t *testing.T) {
			writeInTree(t, c.root, "rules", "text")
			c.box.Protect = []string{c.box.Tree + "/rules"}
			c.box.Binds = []Bind{{From: shown}}
			out, _ := runScript(t, c.box, `exec 2>&1; ln "$SHOWN" a; ln rules b; ln /etc/passwd c; ln /proc/self/exe d; ls`, "SHOWN="+shown)
			if strings.Count(out, "cross-device link") != 4 {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

func TestAttack023NoDeviceIsMade(t *testing.T) {
	for name, c := range attackedBoxes(t) {
		t.Run(name, func(t *testing.T) {
			out, _ := runScript(t, c.box, `exec 2>&1; mknod c c 1 3; mknod /tmp/b b 7 0; mknod $HOME/c c 1 3; mknod /dev/c c 1 3; ls; mkfifo f && echo fifo`)
			if strings.Count(out, "not permitted") != 4 || !strings.HasSuffix(out, "fifo") {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

func TestAttack061AProgramOfATrustedNameInTheTreeIsNotFound(t *testing.T) {
	for name, c := range attackedBoxes(t) {
		t.Run(name, func(t *testing.T) {
			for _, dir := range []string{"", "bin"} {
				path := writeInTree(t, c.root, filepath.Join(dir, "uname"), "#!/bin/sh\necho hijacked\n")
				if err := os.Chmod(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			_, err := c.box.Run(t.Context(), proc.Spec{
				Argv: []string{"uname"}, Dir: c.box.Tree, Env: []string{"PATH=:.:bin:./bin:/usr/bin:/bin"}, Stdout: &out,
			})
			if err != nil || out.String() != "Linux\n" {
				t.Errorf("printed %q, %v", out.String(), err)
			}
		})
	}
}

func TestAttack067AGateCannotWriteTheTreeThatItJudges(t *testing.T) {
	b := newCell(t)
	b.Layers.Upper, b.Layers.Work = "", ""
	out, _ := runScript(t, b, `exec 2>&1; echo x > base.txt; touch new; rm -f base.txt; cat base.txt`)
	if strings.Count(out, "Read-only file system") != 3 || !strings.HasSuffix(out, "from the base") {
		t.Errorf("printed:\n%s", out)
	}
	wantText(t, filepath.Join(b.Layers.Lower[0], "base.txt"), "from the base\n")
}

func TestAttack073NothingOfOurEnvironmentIsInside(t *testing.T) {
	for _, name := range []string{"GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "LD_PRELOAD", "GIT_DIR", "NODE_OPTIONS", "BASH_ENV", "TMPDIR"} {
		t.Setenv(name, t.TempDir())
	}
	b := newCell(t)
	var out bytes.Buffer
	_, err := b.Run(t.Context(), proc.Spec{Argv: []string{"/usr/bin/env"}, Dir: b.Tree, Env: []string{"A=1", "HOME=/root"}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("A=1\nHOME=/home/somebody\n", out.String()); diff != "" {
		t.Errorf("the environment inside (-want +got):\n%s", diff)
	}
}

func TestAttack074TheSupervisorCannotBeRead(t *testing.T) {
	t.Setenv("PAWL_TEST_SECRET", "the secret")
	out, _ := runScript(t, newCell(t), `exec 2>&1
		for what in environ mem maps root/etc/hostname cwd fd/3 task/1/environ auxv stack; do cat /proc/1/$what >/dev/null && echo "read $what"; done
		ls /proc/1/fd /proc/1/map_files && echo listed
		grep -aq 'the secre[t]' /proc/[0-9]*/environ && echo found
		test -e /proc/$PPID/environ && test $PPID != 1 && echo "the parent is $PPID"
		ls -l /proc/self/fd | grep -v 'null$\|pipe:\|total\|/proc/.*/fd$'`)
	for _, sign := range []string{"read ", "listed", "found", "the parent is", "->"} {
		if strings.Contains(out, sign) {
			t.Errorf("%q in what was printed:\n%s", sign, out)
		}
	}
	if strings.Count(out, "ermission denied") < 6 {
		t.Errorf("printed:\n%s", out)
	}
}

func TestAttack079NothingLeavesPastTheProxy(t *testing.T) {
	for _, tier := range confiningTiers(t) {
		t.Run(string(tier), func(t *testing.T) {
			dir := t.TempDir()
			open755(t, dir)
			r, err := Test(t.Context(), tier, dir)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]Answer{}
			for _, row := range r.Rows {
				got[row.Action] = row.Got
			}
			for _, way := range []string{
				selftest.ConnectTCP4, selftest.ConnectTCP6, selftest.SendUDP, selftest.ConnectMPTCP, selftest.ConnectEarly, selftest.OtherProtocols,
				selftest.ConnectPath, selftest.ConnectAbstract, selftest.OpenVSOCK, selftest.OpenPacket, selftest.AskResolver, selftest.ReachMetadata,
			} {
				if got[way] != Denied {
					t.Errorf("%s: %q", way, got[way])
				}
			}
		})
	}
}
