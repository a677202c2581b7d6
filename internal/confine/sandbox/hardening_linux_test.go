package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// openTerminal makes a pair of a terminal and its far end.
func openTerminal(t *testing.T) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	var number int
	raw, err := near.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

func TestATerminalToWriteToCannotBeReadInside(t *testing.T) {
	for _, tier := range confiningTiers(t) {
		t.Run(string(tier), func(t *testing.T) {
			b := newCell(t)
			if tier == Landlock {
				b = Box{Tier: Landlock, Dir: t.TempDir(), Scratch: t.TempDir()}
				open755(t, b.Dir)
				open755(t, b.Scratch)
			}
			_, far := openTerminal(t)
			var out bytes.Buffer
			dir := b.Tree
			if tier == Landlock {
				dir = "/"
			}
			_, err := b.Run(t.Context(), proc.Spec{
				Argv: []string{"/bin/sh", "-c", `test -t 2 && echo "a terminal"; test -t 1 && echo x`}, Dir: dir, Stdout: &out, Stderr: far,
			})
			if err != nil || out.Len() > 0 {
				t.Errorf("inside: %q, %v", out.String(), err)
			}
		})
	}
}

func TestCoreFilesAreOffAndStayOff(t *testing.T) {
	out, _ := runScript(t, newCell(t), `grep 'Max core' /proc/self/limits; ulimit -c 0 && echo said; ulimit -n 100; grep -E 'Max (core|open)' /proc/self/limits`)
	lines := strings.Split(out, "\n")
	if len(lines) != 4 {
		t.Fatalf("printed:\n%s", out)
	}
	for i, want := range []string{"Max core file size 1 1 bytes", "said", "Max core file size 1 1 bytes", "Max open files 100 100 files"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEmptyFilesAreCountedToo(t *testing.T) {
	out, _ := runScript(t, newCell(t), `for dir in /tmp /dev/shm $HOME; do stat -f -c '%c' $dir; done`)
	for total := range strings.FieldsSeq(out) {
		if len(total) > 6 || total == "0" {
			t.Errorf("room for %s files", total)
		}
	}
	if len(strings.Fields(out)) != 3 {
		t.Errorf("printed %q", out)
	}
}
